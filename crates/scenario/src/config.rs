//! From a [`Scenario`] to the simulation's configuration.

use lfn_law::{LawSpec, SlowStartKind};
use lfn_path::{AqmConfig, RedConfig, Service, Thresholds, Weight as RedWeight};
use lfn_sim::background::{Config as BackgroundConfig, INITIAL_WINDOW_SEGMENTS};
use lfn_sim::config::{
    Background as SimBackground, Config, Direction as SimDirection, FlowConfig, Impair, LinkConfig, Loss,
};
use lfn_sim::rng::Stream;
use lfn_tcp::{ReceiverConfig, SenderConfig};
use lfn_units::{Bytes, Rate, Time};

use crate::model::{Compat, Direction, Flow, Mode, Queue, Red, RedPreset, Scenario, Weight};
use crate::quantity::{BufferSize, Sample, Start, Text, Window};

/// IP packet of a full background segment.
const BACKGROUND_PACKET: Bytes = Bytes(1500);
/// What a background receiver takes its RTT to be: the middle of their range.
const BACKGROUND_RTT: Time = Time::from_ms(100);

impl Compat {
    /// Bytes of headers in an IP packet: 20 of IPv4 and 32 of TCP with timestamps, or 40 as in ns-2.
    pub(crate) fn header_bytes(self) -> u32 {
        match self {
            Compat::Linux => 52,
            Compat::Ns2 => 40,
        }
    }

    /// Bytes on the wire beyond the IP packet: an Ethernet header, or nothing as in ns-2.
    pub(crate) fn framing_bytes(self) -> u32 {
        match self {
            Compat::Linux => 14,
            Compat::Ns2 => 0,
        }
    }

    /// Payload of an IP packet.
    pub(crate) fn payload_bytes(self, packet: Bytes) -> u32 {
        u32::try_from(packet.0).unwrap_or(u32::MAX).saturating_sub(self.header_bytes()).max(1)
    }

    /// An IP packet on the wire.
    pub(crate) fn wire_bytes(self, packet: Bytes) -> u32 {
        u32::try_from(packet.0).unwrap_or(u32::MAX).saturating_add(self.framing_bytes())
    }

    /// Full segments in a receive window.
    pub(crate) fn window_segments(self, window: Window, packet: Bytes) -> u64 {
        match window {
            Window::Packets(n) => n,
            Window::Bytes(bytes) => bytes.0 / u64::from(self.payload_bytes(packet)),
        }
    }

    fn sender(self, mss_bytes: u32, slow_start: SlowStartKind) -> SenderConfig {
        match self {
            Compat::Linux => SenderConfig::linux(mss_bytes, slow_start),
            Compat::Ns2 => SenderConfig { slow_start, ..SenderConfig::ns2(mss_bytes) },
        }
    }

    fn receiver(self, rtt: Time) -> ReceiverConfig {
        match self {
            Compat::Linux => ReceiverConfig::linux(rtt),
            Compat::Ns2 => ReceiverConfig::ns2(rtt),
        }
    }
}

impl Queue {
    pub(crate) fn size(&self) -> BufferSize {
        match self {
            Queue::DropTail(queue) => queue.size.0,
            Queue::Red(queue) => queue.size.0,
        }
    }
}

/// What sizes a buffer.
pub(crate) struct Path {
    /// Largest base RTT of the flows.
    pub(crate) rtt: Option<Time>,
    /// Largest packet on the wire.
    pub(crate) wire_bytes: u32,
    compat: Compat,
}

/// The room of a buffer.
pub(crate) enum Room {
    /// It takes this long to drain when full.
    Drains(Time),
    /// Not even one packet fits.
    BelowOnePacket,
    /// It follows from the RTT, and there is none.
    NoRtt,
}

impl Path {
    pub(crate) fn new(flows: &[Flow], compat: Compat) -> Path {
        let packet = flows.iter().map(|flow| flow.packet.0).max().unwrap_or(BACKGROUND_PACKET);
        Path { rtt: flows.iter().map(|flow| flow.rtt.0).max(), wire_bytes: compat.wire_bytes(packet), compat }
    }

    /// Packets and bytes that a buffer holds.
    fn limits(&self, size: BufferSize, rate: Rate) -> (u64, u64) {
        let packets = match size {
            BufferSize::Bytes(bytes) => return (u64::MAX, bytes.0),
            BufferSize::Packets(n) => n,
            BufferSize::MicroBdp(factor) => {
                let bytes =
                    u128::from(rate.bdp(self.rtt.unwrap_or(Time::ZERO)).0) * u128::from(factor) / 1_000_000;
                u64::try_from(bytes / u128::from(self.wire_bytes)).unwrap_or(u64::MAX)
            }
        };
        (packets, u64::MAX)
    }

    pub(crate) fn room(&self, size: BufferSize, rate: Rate) -> Room {
        if self.rtt.is_none() && matches!(size, BufferSize::MicroBdp(_)) {
            return Room::NoRtt;
        }
        let (packets, bytes) = self.limits(size, rate);
        if packets == 0 || bytes < self.wire_bytes.into() {
            return Room::BelowOnePacket;
        }
        Room::Drains(Time::from_s_f64(self.room_bytes(size, rate) * 8.0 / rate.as_bps()))
    }

    /// Bytes of a full buffer.
    pub(crate) fn room_bytes(&self, size: BufferSize, rate: Rate) -> f64 {
        let (packets, bytes) = self.limits(size, rate);
        (packets as f64 * f64::from(self.wire_bytes)).min(bytes as f64)
    }

    fn link(&self, name: &str, rate: Rate, loss: f64, queue: &Queue, mode: Mode) -> LinkConfig {
        let (packets, limit_bytes) = self.limits(queue.size(), rate);
        LinkConfig {
            name: name.into(),
            service: Service::Rate(rate),
            queue: match queue {
                Queue::DropTail(_) => AqmConfig::DropTail,
                Queue::Red(red) => AqmConfig::Red(self.red(red)),
            },
            // A queue of n packets in ns-2 counts the one in service.
            limit_packets: match self.compat {
                Compat::Ns2 if packets < u64::MAX => packets.saturating_sub(1),
                _ => packets,
            },
            limit_bytes,
            delay: Time::ZERO,
            impair: Impair { loss: Loss::Bernoulli(loss), ..Impair::default() },
            event_mode: mode == Mode::Event,
        }
    }

    fn red(&self, red: &Red) -> RedConfig {
        let preset = match red.preset {
            RedPreset::Classic => RedConfig::classic(self.wire_bytes),
            RedPreset::Gentle => RedConfig::gentle(self.wire_bytes),
            RedPreset::Adaptive => RedConfig::adaptive(self.wire_bytes),
        };
        let thresholds = match (red.min_th, red.max_th, red.target_delay) {
            (Some(Text(min_th)), Some(Text(max_th)), _) => {
                Thresholds::Fixed { min_th: min_th.0 as f64, max_th: max_th.0 as f64 }
            }
            (_, _, Some(Text(target_delay))) => Thresholds::Automatic { target_delay },
            _ => preset.thresholds,
        };
        RedConfig {
            thresholds,
            weight: match red.weight {
                Weight::Auto => RedWeight::Automatic,
                Weight::Fixed(weight) => RedWeight::Fixed(weight),
            },
            max_p: red.max_p,
            wait: red.wait,
            ecn: red.ecn,
            ..preset
        }
    }
}

impl Scenario {
    /// The simulation of this scenario with this seed. Flows are numbered in the order of the groups;
    /// a random start is drawn from the stream `flow[NUMBER].start`.
    pub fn config(&self, seed: u64) -> Config {
        let path = Path::new(&self.flow, self.compat);
        let link = &self.link;
        let members = self.flow.iter().flat_map(|flow| (0..flow.count).map(move |_| flow));
        Config {
            seed,
            duration: self.duration.0,
            warmup: self.warmup.0,
            sample: match self.sample.0 {
                Sample::Off => None,
                Sample::Every(step) => Some(step),
            },
            links: vec![
                path.link("forward", link.rate.0, link.loss, &link.queue, link.mode),
                path.link("reverse", link.reverse.rate.0, link.reverse.loss, &link.reverse.queue, link.mode),
            ],
            routes: Config::dumbbell_routes(),
            udp: Vec::new(),
            changes: Vec::new(),
            capture: None,
            flows: members.enumerate().map(|(i, flow)| self.flow(flow, i, seed)).collect(),
            background: self.background(),
        }
    }

    fn flow(&self, flow: &Flow, index: usize, seed: u64) -> FlowConfig {
        let compat = self.compat;
        let payload_bytes = compat.payload_bytes(flow.packet.0);
        let sender = compat.sender(payload_bytes, flow.slow_start.0);
        let receiver = compat.receiver(flow.rtt.0);
        let direction = match flow.direction {
            Direction::Forward => SimDirection::Forward,
            Direction::Reverse => SimDirection::Reverse,
        };
        FlowConfig {
            law: flow.law.0,
            direction,
            route: direction as u16,
            ack_route: direction.opposite() as u16,
            rtt: flow.rtt.0,
            start: match flow.start.0 {
                Start::At(time) => time,
                Start::Uniform(low, high) => {
                    let mut stream = Stream::new(seed, 0, &format!("flow[{index}].start"));
                    Time::from_s_f64(stream.uniform(low.as_s(), high.as_s()))
                }
            },
            stop: flow.stop.map_or(Time::NEVER, |stop| stop.0),
            size_segments: flow.size.map_or(u64::MAX, |size| size.0 .0.div_ceil(payload_bytes.into())),
            payload_bytes,
            wire_bytes: compat.wire_bytes(flow.packet.0),
            ack_bytes: compat.header_bytes() + compat.framing_bytes(),
            sender: SenderConfig {
                initial_window_segments: segments(flow.initial_window.0 .0),
                initial_ssthresh_segments: flow.initial_ssthresh.map(|ssthresh| segments(ssthresh.0 .0)),
                receive_window_segments: flow
                    .receive_window
                    .map_or(u64::MAX, |window| compat.window_segments(window.0, flow.packet.0)),
                sack: flow.sack,
                ecn: flow.ecn,
                pacing: flow.pacing,
                ..sender
            },
            receiver: ReceiverConfig {
                delayed_ack: flow.delayed_ack,
                sack: flow.sack,
                sack_compression: receiver.sack_compression.filter(|_| flow.sack),
                ecn: flow.ecn,
                ..receiver
            },
        }
    }

    fn background(&self) -> Option<SimBackground> {
        let traffic = BackgroundConfig::level(self.background.level, self.link.rate.0)?;
        let traffic = BackgroundConfig { long_flows: self.background.long_flows, ..traffic };
        if traffic.forward == Rate(0) && traffic.long_flows == 0 {
            return None;
        }
        let law: LawSpec = "reno".parse().expect("the registry has reno");
        let sender = self.compat.sender(self.compat.payload_bytes(BACKGROUND_PACKET), SlowStartKind::Classic);
        Some(SimBackground {
            traffic,
            law,
            sender: SenderConfig { initial_window_segments: INITIAL_WINDOW_SEGMENTS, ..sender },
            receiver: ReceiverConfig { delayed_ack: true, ..self.compat.receiver(BACKGROUND_RTT) },
            header_bytes: self.compat.header_bytes(),
            framing_bytes: self.compat.framing_bytes(),
            routes: [0, 1],
        })
    }
}

fn segments(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
