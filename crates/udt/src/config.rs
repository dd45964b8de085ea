//! Configuration and events of a connection.

use std::ops::Range;

use lfn_units::Time;

use crate::sender::Outgoing;
use crate::Packet;

/// The least MSS.
pub const MIN_MSS_BYTES: u32 = 76;

/// The kind of data of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A stream of bytes.
    Stream = 1,
    /// Messages, that may expire.
    Message = 2,
}

/// Options of a connection. The defaults are those of libudt 4.11, except as [`Config::compat`] and
/// [`Config::repeat_naks`] say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its kind of data.
    pub kind: Kind,
    /// Largest packet, with the headers of IP and UDP; at least 76. The smaller of both sides' holds.
    pub mss_bytes: u32,
    /// Packets that the peer may have in flight: the receive buffer and the flow window.
    pub window_packets: u32,
    /// Bytes of a packet on the path that `mss_bytes` does not count: of a longer IP header, of a seal.
    pub extra_bytes: u32,
    /// The sending rate stays below, headers and `extra_bytes` included.
    pub max_bits_per_s: Option<u64>,
    /// Time after which a client gives up.
    pub connect_timeout: Time,
    /// Time after which a client of a full server gives up, if the server answers.
    pub full_timeout: Time,
    /// Time that [`Connection::close`] waits for acknowledgements.
    pub linger: Time,
    /// Lost packets are named again after 2, 3, ... round trips (draft-gg-udt-03); 4.11 leaves that to
    /// the timeout.
    pub repeat_naks: bool,
    /// The caller may be late by up to this time: packets that were due meanwhile are sent at once.
    pub catch_up: Time,
    /// Packets come in trains that share one arrival time, as from a socket with receive offload: speeds are
    /// measured by trains, not by intervals between packets.
    pub trains: bool,
    /// Measurements are rounded as in libudt 4.11.
    pub compat: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            kind: Kind::Stream,
            mss_bytes: 1500,
            window_packets: 8192,
            extra_bytes: 0,
            max_bits_per_s: None,
            connect_timeout: Time::from_s(3),
            full_timeout: Time::from_s(60),
            linger: Time::from_s(180),
            repeat_naks: true,
            catch_up: Time::ZERO,
            trains: false,
            compat: false,
        }
    }
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// It was closed here.
    #[error("closed")]
    Closed,
    /// It was closed here, and the peer did not acknowledge all data in time.
    #[error("closed before the peer acknowledged all data")]
    Lingered,
    /// The peer closed it.
    #[error("the peer closed the connection")]
    Peer,
    /// The server refused.
    #[error("the server refused: another version, another type of socket, too many connections, or it wants a key")]
    Refused,
    /// The server had no slot for a whole minute.
    #[error("the server is full: it has as many connections as it takes, in all or from this address")]
    Full,
    /// The handshake had no answer.
    #[error("no answer to the handshake")]
    NoAnswer,
    /// Nothing came from the peer for too long.
    #[error("nothing came from the peer for too long")]
    Silence,
    /// The peer is heard, and acknowledges nothing.
    #[error(
        "nothing that was sent arrives, though the peer is heard; if the path loses large packets, a smaller --mss helps"
    )]
    Lost,
    /// The peer's machine reported several times that its port is closed.
    #[error("the peer's program ended: nobody listens at its address any more")]
    Gone,
    /// The peer named packets that were never sent.
    #[error("the peer named packets that were never sent")]
    Attack,
}

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A client waits for the server.
    Connecting,
    /// Data may flow.
    Connected,
    /// Closed here: it ends when all data are acknowledged.
    Closing,
    /// Over.
    Closed(Reason),
}

/// The meaning of a packet to the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Nothing.
    None,
    /// The client is connected.
    Connected,
    /// New data.
    Data {
        /// The packet's number within the connection, from 0.
        index: u64,
        /// Its bytes.
        payload: &'a [u8],
    },
    /// These packets will not come: their message expired.
    Dropped(Vec<Range<u64>>),
    /// The peer reports an error of its own.
    PeerError(u32),
    /// The connection is over.
    Closed(Reason),
}

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit<'a> {
    /// A control packet.
    Control(Packet<'a>),
    /// A data packet whose payload the application has; its body lies empty here.
    Data(Outgoing, Packet<'a>),
}
