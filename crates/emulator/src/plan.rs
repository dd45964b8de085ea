//! The part of a scenario that runs on real stacks: its path, and its senders with their start times.

use lfn_path::Service;
use lfn_sim::background::{Class, Direction, LONG_FLOW_WINDOW_PACKETS, RECEIVE_WINDOW_BYTES};
use lfn_sim::config::{Changed, Config, LinkConfig, RouteId, UdpConfig, Watched};
use lfn_units::Time;
use serde::Serialize;

use crate::EmulatorError;

/// A scenario for a test bed: flows of one path, which starts a while after everything is set up.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// How long it runs.
    pub duration_s: f64,
    /// Where averages begin.
    pub warmup_s: f64,
    /// Interval between samples of flows and links.
    pub sample_s: f64,
    /// The flows, in their order.
    pub flows: Vec<PlannedFlow>,
    /// UDP sources, in their order.
    pub udp: Vec<PlannedUdp>,
    /// The background, if there is one.
    pub background: Option<PlannedBackground>,
    /// The links, in their order.
    pub links: Vec<PlannedLink>,
    /// When links change.
    pub changes_s: Vec<f64>,
}

/// A link's rates.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedLink {
    /// Its name.
    pub id: String,
    /// Each until the next; of a trace the mean.
    pub rates: Vec<PlannedRate>,
    /// Whether it follows a trace.
    pub follows_trace: bool,
}

/// A rate from some time on.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PlannedRate {
    /// When it begins.
    pub from_s: f64,
    /// In bit/s.
    pub rate_bps: f64,
}

/// The senders, and their times.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedFlow {
    /// NAME or NAME:VARIANT; over UDT, its congestion control.
    pub law: String,
    /// Settings of a UDT connection; `None` over TCP.
    pub udt: Option<PlannedUdt>,
    /// When it begins.
    pub start_s: f64,
    /// When it ends, if before the end of the run.
    pub stop_s: Option<f64>,
    /// Payload to deliver; none for no end.
    pub size_bytes: Option<u64>,
    /// Base round-trip time.
    pub rtt_s: f64,
    /// Payload of a full segment.
    pub segment_bytes: u32,
    /// A full packet on the wire.
    pub wire_bytes: u32,
}

/// A flow over UDT.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PlannedUdt {
    /// Largest packet, with the headers of IP and UDP.
    pub mss_bytes: u32,
    /// Packets in flight at most.
    pub window_packets: u32,
}

/// A UDP source.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedUdp {
    /// Its name.
    pub name: String,
    /// forward or reverse.
    pub direction: &'static str,
    /// Bytes of a packet on the wire.
    pub packet_bytes: u32,
}

/// The background.
#[derive(Clone, Debug, Serialize)]
pub struct PlannedBackground {
    /// Its law.
    pub law: String,
    /// Most that a short flow has outstanding.
    pub short_window_bytes: u64,
    /// The same of a long flow.
    pub long_window_bytes: u64,
}

const ONE_PATH: &str = "allowed on a test bed: the path of the flows, forward or reverse";
/// New connections a second of a background that a test bed keeps up with.
const MOST_CONNECTIONS: f64 = 2000.0;
/// Segment and RTT of the background's long flows.
const LONG_FLOW_BYTES: u64 = 1460;
const LONG_FLOW_RTT: Time = Time::from_ms(100);

impl Plan {
    /// The part of a simulation that a test bed can run.
    ///
    /// # Errors
    /// [`EmulatorError::Scenario`] names the key that a test bed cannot run.
    pub fn of(config: &Config) -> Result<Plan, EmulatorError> {
        let refused = |key: &str, found: &str, hint: &str| EmulatorError::scenario(key, found, hint);
        let flows = flows(config);
        let directions = config.flows.iter().map(|flow| flow.direction);
        if directions.chain(config.udt.iter().map(|flow| flow.direction)).any(|way| way != Direction::Forward)
        {
            return Err(refused("flow.direction", "\"reverse\"", "allowed on a test bed: \"forward\""));
        }
        let streams = config.flows.iter().map(|flow| flow.stream);
        if streams.chain(config.udt.iter().map(|flow| flow.stream)).any(|stream| stream > 0) {
            return Err(refused("flow.parallel", "more than 1", "write count in its place"));
        }
        if !config.stacks.is_empty() {
            return Err(refused("flow.law", "a whole stack", "allowed in the simulator alone"));
        }
        if let Some(breaker) = config.breakers.first() {
            let key = match breaker.watched {
                Watched::Flow(_) => "flow.breakers",
                Watched::Udp(_) => "udp.breakers",
            };
            return Err(refused(key, "breakers are the simulator's", "allowed in the simulator alone"));
        }
        for flow in &config.flows {
            let simulated = [
                ("flow.application", flow.application.is_some()),
                ("flow.burst", flow.sender.burst_segments > 1),
                ("flow.misbehaves", flow.misbehaves.is_some()),
                ("flow.receiver_ecn", flow.receiver_ecn.is_some()),
            ];
            if let Some((key, _)) = simulated.into_iter().find(|&(_, given)| given) {
                return Err(refused(key, "the ends are real stacks", "allowed in the simulator alone"));
            }
        }
        let tcp = config.flows.iter().map(|flow| (flow.route, flow.ack_route, flow.rtt, flow.wire_bytes));
        let udt = config.udt.iter().map(|flow| (flow.route, flow.ack_route, flow.rtt, flow.wire_bytes()));
        let mut paths = tcp.chain(udt);
        let Some(path) = paths.next() else {
            return Err(refused("flow", "there is none", "write a [[flow]]"));
        };
        if paths.any(|other| other != path) {
            return Err(refused(
                "flow",
                "routes, RTTs or packets differ",
                "allowed on a test bed: one path for all flows",
            ));
        }
        if let Some(model) = config.traffic.first() {
            let found = format!("{:?}, a model of TCP traffic", model.name);
            let allowed = "allowed on a test bed: [[flow]], [[udp]] and [background]";
            return Err(EmulatorError::scenario("traffic", found, allowed));
        }
        if config.changes.iter().any(|change| matches!(change.what, Changed::Route { .. })) {
            return Err(refused(
                "schedule.route",
                "a route changes",
                "allowed on a test bed: changes of rate, delay and loss",
            ));
        }
        let Some(sample) = config.sample else {
            return Err(refused("sample", "\"off\"", "write for example \"10ms\""));
        };
        Ok(Plan {
            udp: udp(config, (path.0, path.1))?,
            background: background(config, [path.0, path.1], path.2)?,
            links: links(config),
            changes_s: config.changes.iter().map(|change| change.at.in_s()).collect(),
            duration_s: config.duration.in_s(),
            warmup_s: config.warmup.in_s(),
            sample_s: sample.in_s(),
            flows,
        })
    }
}

/// The links and their rates.
fn links(config: &Config) -> Vec<PlannedLink> {
    let planned = |(number, link): (usize, &LinkConfig)| {
        let begin = PlannedRate { from_s: 0.0, rate_bps: link.service.mean_rate().as_bps() };
        let changes = config.changes.iter().filter_map(|change| match change.what {
            Changed::Rate(at, rate) if at.index() == number => {
                Some(PlannedRate { from_s: change.at.in_s(), rate_bps: rate.as_bps() })
            }
            _ => None,
        });
        PlannedLink {
            id: link.name.clone(),
            rates: std::iter::once(begin).chain(changes).collect(),
            follows_trace: matches!(link.service, Service::Trace(..)),
        }
    };
    config.links.iter().enumerate().map(planned).collect()
}

/// Flows over TCP and UDT by their numbers.
fn flows(config: &Config) -> Vec<PlannedFlow> {
    let stop_s = |stop: Time| (stop < Time::NEVER).then(|| stop.in_s());
    let size_bytes =
        |count: u64, payload: u32| (count < u64::MAX).then(|| count.saturating_mul(payload.into()));
    let mut flows: Vec<PlannedFlow> = config
        .flows
        .iter()
        .map(|flow| PlannedFlow {
            law: flow.law.to_string(),
            udt: None,
            start_s: flow.start.in_s(),
            stop_s: stop_s(flow.stop),
            size_bytes: size_bytes(flow.size_segments, flow.payload_bytes),
            rtt_s: flow.rtt.in_s(),
            segment_bytes: flow.payload_bytes,
            wire_bytes: flow.wire_bytes,
        })
        .collect();
    for flow in &config.udt {
        let planned = PlannedFlow {
            law: flow.control.label(),
            udt: Some(PlannedUdt { mss_bytes: flow.mss_bytes, window_packets: flow.window_packets }),
            start_s: flow.start.in_s(),
            stop_s: stop_s(flow.stop),
            size_bytes: size_bytes(flow.size_packets, flow.payload_bytes()),
            rtt_s: flow.rtt.in_s(),
            segment_bytes: flow.payload_bytes(),
            wire_bytes: flow.wire_bytes(),
        };
        flows.insert((flow.number as usize).min(flows.len()), planned);
    }
    flows
}

fn udp(config: &Config, (route, back): (RouteId, RouteId)) -> Result<Vec<PlannedUdp>, EmulatorError> {
    let planned = |source: &UdpConfig| {
        if let Some(deadline) = source.deadline {
            let hint = "allowed in the simulator alone";
            return Err(EmulatorError::scenario("udp.deadline", deadline.to_string(), hint));
        }
        let direction = match source.route {
            forward if forward == route => "forward",
            reverse if reverse == back => "reverse",
            _ => {
                let found = format!("{:?} has a path that no flow has", source.name);
                return Err(EmulatorError::scenario("udp", found, ONE_PATH));
            }
        };
        let packet_bytes = source.traffic.packet_bytes;
        Ok(PlannedUdp { name: source.name.clone(), direction, packet_bytes })
    };
    config.udp.iter().map(planned).collect()
}

fn background(
    config: &Config,
    routes: [RouteId; 2],
    rtt: Time,
) -> Result<Option<PlannedBackground>, EmulatorError> {
    let Some(background) = &config.background else { return Ok(None) };
    if background.carrier.routes != routes {
        return Err(EmulatorError::scenario("background", "it has a path that no flow has", ONE_PATH));
    }
    let rate = |way| Class::ALL.iter().map(|&class| background.traffic.flows_per_second(way, class)).sum();
    let connections: f64 = Direction::ALL.map(rate).iter().sum();
    if connections > MOST_CONNECTIONS {
        return Err(EmulatorError::scenario(
            "background.level",
            format!("{connections:.0} new connections a second"),
            format!("allowed on a test bed: at most {MOST_CONNECTIONS}"),
        ));
    }
    Ok(Some(PlannedBackground {
        law: background.carrier.law.to_string(),
        short_window_bytes: RECEIVE_WINDOW_BYTES,
        // Here its RTT is the path's: a window that gives it the rate that it has at its own, of 100 ms.
        long_window_bytes: (u64::from(LONG_FLOW_WINDOW_PACKETS) * LONG_FLOW_BYTES * rtt.0)
            .div_ceil(LONG_FLOW_RTT.0)
            .max(2 * LONG_FLOW_BYTES),
    }))
}
