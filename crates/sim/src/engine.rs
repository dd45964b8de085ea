//! The event loop, and the parts that it connects. Each owns its state.
//!
//! On a dumbbell there is one event per data packet, the ACK at the sender. Where a packet's departure is
//! known at its arrival (see `lfn_path::Link`), so is its arrival at the receiver, and the receiver's
//! answer: all of it happens when the packet is sent. Where packets meet another queue on their way, or
//! may overtake one another, each meeting is an event more ([`network`]).
//!
//! The ends of routes ([`ends`]) schedule events and hand packets over ([`crate::scheduler`]); [`sim`]
//! passes these to the network, which knows the ends as [`network::Endpoints`].

mod bounds;
mod breakers;
mod capture;
mod context;
mod ends;
mod error;
mod handshake;
mod links;
mod memory;
mod network;
mod outcome;
mod record;
mod sampling;
mod setup;
mod sim;
mod sources;
mod streams;
mod tcp;
mod transfers;
mod udp;
mod udt;
mod waiting;

pub use error::SimError;
pub use memory::Held;
pub use outcome::Outcome;
pub use sim::Sim;
