//! What a simulation is made of: plain values, already validated and resolved.
//!
//! `lfn_scenario` makes these from TOML; nothing here parses, and nothing here has a default that
//! depends on another field.

use lfn_law::LawSpec;
use lfn_path::RedConfig;
use lfn_tcp::{ReceiverConfig, SenderConfig};
use lfn_units::{Rate, Time};

use crate::background::Config as Traffic;
pub use crate::background::Direction;

/// A dumbbell: one bottleneck each way, any number of flows.
#[derive(Clone, Debug)]
pub struct Config {
    /// Seed of every named random stream.
    pub seed: u64,
    /// Simulated time.
    pub duration: Time,
    /// Summary statistics begin here.
    pub warmup: Time,
    /// Grid of the sampled tables; `None` for no samples.
    pub sample: Option<Time>,
    /// The bottleneck, forward and reverse.
    pub links: [LinkConfig; 2],
    /// Long-lived or sized flows that are reported one by one.
    pub flows: Vec<FlowConfig>,
    /// Background traffic, reported in sum.
    pub background: Option<Background>,
}

/// Background traffic and the TCP that carries it.
#[derive(Clone, Debug)]
pub struct Background {
    /// The traffic model.
    pub traffic: Traffic,
    /// Law of every background flow.
    pub law: LawSpec,
    /// Sender of every background flow; window cap and packet size are set per flow.
    pub sender: SenderConfig,
    /// Receiver of every background flow.
    pub receiver: ReceiverConfig,
    /// Bytes of headers in a packet that are no payload; an ACK is nothing else.
    pub header_bytes: u32,
    /// Bytes on the wire beyond the IP packet.
    pub framing_bytes: u32,
}

/// One direction of the bottleneck.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Rate at which packets are serialised.
    pub rate: Rate,
    /// What a full or filling queue does.
    pub queue: QueueConfig,
    /// Most packets that may wait, besides the one in service.
    pub limit_packets: u64,
    /// Most bytes that may wait, besides the packet in service.
    pub limit_bytes: u64,
    /// Probability that a data packet is lost after the queue.
    pub loss: f64,
    /// One event per departure instead of the closed form; the results are the same.
    pub event_mode: bool,
}

/// Queue discipline.
#[derive(Clone, Debug)]
pub enum QueueConfig {
    /// Drop what does not fit.
    DropTail,
    /// Random early detection.
    Red(RedConfig),
}

/// One flow.
#[derive(Clone, Debug)]
pub struct FlowConfig {
    /// Congestion-control law.
    pub law: LawSpec,
    /// Direction of its data.
    pub direction: Direction,
    /// Round-trip time of an empty network, without serialisation.
    pub rtt: Time,
    /// When it starts to send.
    pub start: Time,
    /// When it stops to send; [`Time::NEVER`] for the end of the run.
    pub stop: Time,
    /// Segments to deliver; `u64::MAX` for no end.
    pub size_segments: u64,
    /// Payload bytes of a segment.
    pub payload_bytes: u32,
    /// Bytes of a data packet at the queue.
    pub wire_bytes: u32,
    /// Bytes of an ACK at the queue.
    pub ack_bytes: u32,
    /// Sender.
    pub sender: SenderConfig,
    /// Receiver.
    pub receiver: ReceiverConfig,
}
