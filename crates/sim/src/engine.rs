//! The event loop, and the parts that it connects. Each owns its state.
//!
//! On a dumbbell there is one event per data packet, the ACK at the sender. Where a packet's departure is
//! known at its arrival (see `lfn_path::Link`), so is its arrival at the receiver, and the receiver's
//! answer: all of it happens when the packet is sent. Where packets meet another queue on their way, or
//! may overtake one another, each meeting is an event more ([`crate::network`]).
//!
//! The ends of routes ([`crate::ends`]) schedule events and hand packets over ([`crate::clock::scheduler`]); [`sim`]
//! passes these to the network, which knows the ends as [`crate::network::Endpoints`].

mod bounds;
mod memory;
mod outcome;
mod sampling;
mod setup;
mod sim;
mod steered;

pub use memory::Held;
pub use outcome::Outcome;
pub use sim::Sim;
pub use steered::Seen;
