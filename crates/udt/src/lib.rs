#![doc = include_str!("../README.md")]

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
