//! UDT version 4 without I/O, compatible on the wire with libudt 4.11.
//!
//! A [`Connection`] has no clock, no socket and no payload. `now` and packets are arguments, the caller asks
//! for packets to send, and the owner of the bytes keeps them by the packet's number. So the simulator drives
//! it as sockets do. Its congestion control is separate: UDT's ([`Native`]), or any law of the registry
//! ([`LawControl`]).
//!
//! Rendezvous connections are not supported; the codec can parse their packets.

mod config;
mod connection;
mod control;
mod estimate;
mod listener;
mod loss_list;
mod packet;
mod receiver;
mod sender;
mod seq;
mod trains;

pub use config::{Config, Event, Kind, Reason, State, Transmit, MIN_MSS_BYTES};
pub use connection::Connection;
pub use control::{
    Allowed, CongestionControl, ControlError, ControlSpec, FirstNak, LawControl, Native, NativeConfig, Path,
};
pub use estimate::{ArrivalFilters, Rtt, SYN};
pub use listener::{full, refusal, Answer, Listener};
pub use loss_list::{LossList, LossReport};
pub use packet::{
    data_header, AckReport, Body, Boundary, DecodeError, Handshake, Packet, Request, Speeds, HEADER_BYTES,
    IP_UDP_BYTES, MAX_MESSAGE, VERSION,
};
pub use receiver::{Arrival, ReceiverStats};
pub use sender::{Outgoing, SenderStats};
pub use seq::{Numbering, Seq};
