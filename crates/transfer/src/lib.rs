//! Files over UDT on real sockets, and flows without files.
//!
//! A stream owns a connection (`lfn_udt`), a socket and two rings of packets; files travel on it in a
//! protocol of ours ([`send`], [`serve`]), or in that of libudt's sample programs ([`compat`]). With a [`Key`] every
//! packet is encrypted and authenticated.

mod activity;
mod address;
mod bulk;
pub mod compat;
mod connections;
mod error;
mod hashing;
mod list;
mod listener;
mod place;
mod plan;
mod receive;
mod ring;
mod secure;
mod send;
mod socket;
mod statistics;
mod stream;
mod wire;

pub use bulk::{drain, send_zeros, Bulk, Look, Sent};
pub use connections::Served;
pub use error::TransferError;
pub use lfn_udt::{ControlError, ControlSpec};
pub use listener::Listener;
pub use plan::{Plan, Sizes};
pub use receive::{serve, Serving};
pub use secure::Key;
pub use send::{send, Sending};
pub use statistics::{Progress, Statistics};
pub use stream::Stream;
