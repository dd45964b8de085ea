//! Stacks as flows: each datagram is told once or lost, with its mark; copies and late ones too; and runs are equal.

use std::sync::{Arc, Mutex};

use lfn_law::{Build, Datagram, LawSpec, Progress, Prototype, SlowStartKind, Stack};
use lfn_path::{AqmConfig, CodelConfig, Impair, Reorder};
use lfn_sim::breaker::Breaker;
use lfn_sim::config::{
    BreakerConfig, Change, Changed, Config, FlowConfig, LinkConfig, RouteId, StackConfig, Watched,
};
use lfn_sim::traffic::Direction;
use lfn_sim::{Ecn, FlowSummary, Sim, StackCounts};
use lfn_units::{Rate, Time};

const DATA_BYTES: u64 = 1000;

/// Datagrams by their numbers: how often each one arrived, and whether it is forgotten.
#[derive(Clone, Default, PartialEq, Debug)]
struct Seen {
    arrived: Vec<u32>,
    forgotten: Vec<bool>,
    marked: u32,
    /// That came without ECN.
    erased: u32,
    at_ns: Vec<u64>,
    /// Numbers in the order in which end 1 got them.
    order: Vec<u64>,
    stopped_ns: Option<u64>,
}

/// End 0 sends a window of datagrams of several sizes; end 1 answers each.
struct Windowed {
    window: u64,
    in_flight: u64,
    answers: u64,
    retry_ns: u64,
    stopped: bool,
    ecn: Ecn,
    progress: Progress,
    seen: Arc<Mutex<Seen>>,
}

impl Windowed {
    fn made(&self, bytes: u32, ecn: Ecn) -> Option<Datagram> {
        let mut seen = self.seen.lock().unwrap();
        seen.arrived.push(0);
        seen.forgotten.push(false);
        let id = seen.arrived.len() as u64 - 1;
        Some(Datagram { id, bytes, ecn })
    }
}

impl Stack for Windowed {
    fn transmit(&mut self, end: usize, now_ns: u64) -> Option<Datagram> {
        if end == 1 {
            self.answers = self.answers.checked_sub(1)?;
            return self.made(60, Ecn::NotEct);
        }
        if self.in_flight >= self.window || self.stopped {
            return None;
        }
        self.in_flight += 1;
        self.retry_ns = now_ns + 1_000_000_000;
        self.made(1050 + 10 * (self.in_flight as u32 % 10), self.ecn)
    }

    fn receive(&mut self, end: usize, now_ns: u64, id: u64, ecn: Ecn) {
        let mut seen = self.seen.lock().unwrap();
        assert!(!seen.forgotten[id as usize]);
        seen.arrived[id as usize] += 1;
        seen.marked += u32::from(ecn == Ecn::Ce);
        seen.erased += u32::from(ecn == Ecn::NotEct);
        seen.at_ns.push(now_ns);
        if end == 0 {
            self.in_flight = self.in_flight.saturating_sub(1);
        } else {
            seen.order.push(id);
            self.answers += 1;
            self.progress.read_bytes += DATA_BYTES * u64::from(seen.arrived[id as usize] == 1);
        }
    }

    fn timeout_ns(&mut self, end: usize) -> u64 {
        if end == 0 {
            self.retry_ns
        } else {
            u64::MAX
        }
    }

    fn timer(&mut self, _end: usize, now_ns: u64) {
        (self.in_flight, self.retry_ns) = (0, now_ns + 1_000_000_000);
    }

    fn stop(&mut self, now_ns: u64) {
        self.stopped = true;
        self.seen.lock().unwrap().stopped_ns = Some(now_ns);
    }

    fn forget(&mut self, id: u64) {
        let mut seen = self.seen.lock().unwrap();
        assert!(!std::mem::replace(&mut seen.forgotten[id as usize], true));
    }

    fn progress(&self) -> Progress {
        let window_bytes = self.window * DATA_BYTES;
        Progress { window_bytes, segment_bytes: DATA_BYTES, ..self.progress }
    }
}

/// A stack of this window as a law.
fn windowed(window: u64, ecn: Ecn, seen: &Arc<Mutex<Seen>>) -> LawSpec {
    let seen = Arc::clone(seen);
    let build = Build::Stack(Box::new(move |setup| {
        assert_eq!((setup.now_ns, setup.packet_bytes), (100_000_000, 1400));
        let (seen, progress) = (Arc::clone(&seen), Progress::default());
        let retry_ns = u64::MAX;
        Box::new(Windowed { window, in_flight: 0, answers: 0, retry_ns, stopped: false, ecn, progress, seen })
    }));
    Prototype {
        name: "windowed".into(),
        source: "0123456789ab".into(),
        slow_start: SlowStartKind::None,
        probes: Vec::new(),
        build: Some(build),
        is_stack: true,
    }
    .into()
}

/// A flow of TCP, and after it a stack from 100 ms on.
fn config(link: LinkConfig, window: u64, ecn: Ecn, seen: &Arc<Mutex<Seen>>) -> Config {
    let flow = FlowConfig::linux("cubic".parse().unwrap(), Time::from_ms(20));
    let stack = StackConfig {
        number: 1,
        stream: 0,
        law: windowed(window, ecn, seen),
        direction: Direction::Forward,
        route: RouteId(0),
        ack_route: RouteId(1),
        rtt: Time::from_ms(20),
        start: Time::from_ms(100),
        stop: Time::NEVER,
        size_bytes: u64::MAX,
        packet_bytes: 1400,
        framing_bytes: 14,
        seed: 7,
    };
    Config { stacks: vec![stack], ..Config::dumbbell(link, vec![flow], Time::from_s(5)) }
}

struct Ran {
    seen: Seen,
    counts: [StackCounts; 2],
    flow: FlowSummary,
    hash: String,
}

fn run_of(config: &Config, seen: &Arc<Mutex<Seen>>) -> Ran {
    let mut sim = Sim::new(config).unwrap();
    sim.run_until(config.duration);
    let counts = sim.stack_counts(0).unwrap();
    assert_eq!(sim.stack_counts(1), None);
    // It ends with an error if a packet is missing or too many.
    let summary = sim.finish().unwrap().summary;
    let seen = seen.lock().unwrap().clone();
    Ran { seen, counts, flow: summary.flows[1].clone(), hash: summary.hash }
}

fn run(link: LinkConfig, window: u64, ecn: Ecn) -> Ran {
    let seen = Arc::new(Mutex::new(Seen::default()));
    run_of(&config(link, window, ecn, &seen), &seen)
}

fn slow() -> LinkConfig {
    LinkConfig::drop_tail("", Rate(10_000_000), 20)
}

#[test]
fn each_datagram_arrives_once_or_is_lost() {
    let Ran { seen, counts, flow, hash } = run(slow(), 30, Ecn::NotEct);
    let [client, server] = counts;
    assert!(client.sent > 400 && client.lost > 10, "{client:?}");
    assert!(seen.arrived.iter().all(|&times| times <= 1));
    assert_eq!(
        seen.arrived.iter().map(|&times| u64::from(times)).sum::<u64>(),
        client.delivered + server.delivered
    );
    assert_eq!(server.sent, client.delivered);
    assert!(client.sent - client.delivered - client.lost <= 30, "{client:?}");
    let gone = seen.forgotten.iter().filter(|&&gone| gone).count() as u64;
    assert_eq!(gone, client.delivered + client.lost + server.delivered + server.lost);
    assert_eq!(seen.marked, 0);
    // No sooner than the delays and its own bits allow, and never at one instant.
    assert!(seen.at_ns[0] > 110_000_000 && seen.at_ns.is_sorted());
    // Its row among the flows.
    assert_eq!(
        (flow.id, flow.transport, flow.segment_bytes, flow.wire_bytes),
        (1, Some("stack"), 1000, 1414)
    );
    assert_eq!((flow.sent, flow.delivered_bytes), (client.sent, client.delivered * DATA_BYTES));
    let goodput_bps = flow.delivered_bytes as f64 * 8.0 / 4.9;
    assert!((flow.goodput_bps.unwrap() / goodput_bps - 1.0).abs() < 1e-9);
    let window = flow.mean_cwnd_segments.unwrap();
    assert!((window - 30.0).abs() < 1e-9 && flow.srtt_s.is_none(), "{window}");
    let again = run(slow(), 30, Ecn::NotEct);
    assert_eq!((again.seen, again.counts, again.hash), (seen, counts, hash));
}

#[test]
fn a_lone_datagram_takes_the_delays_and_its_bits() {
    // 1074 bytes at 1 Tbit/s; the flow of TCP begins at 0 and leaves the link before 100 ms.
    let Ran { seen, .. } = run(LinkConfig::drop_tail("", Rate(1_000_000_000_000), 2000), 1, Ecn::NotEct);
    assert!((110_000_008..110_020_000).contains(&seen.at_ns[0]), "{}", seen.at_ns[0]);
    assert!(seen.at_ns[1] - seen.at_ns[0] >= 10_000_000);
}

#[test]
fn marks_reach_the_stack() {
    let codel = CodelConfig { ecn: true, ..CodelConfig::default() };
    let link =
        || LinkConfig { queue: AqmConfig::Codel(codel), ..LinkConfig::drop_tail("", Rate(10_000_000), 2000) };
    let Ran { seen, counts: [client, server], .. } = run(link(), 60, Ecn::Ect0);
    assert!(seen.marked > 100, "{}", seen.marked);
    assert!(u64::from(seen.marked) <= client.delivered && client.lost == 0, "{client:?}");
    // Answers are without ECN, data only behind a link that erases it.
    assert_eq!(u64::from(seen.erased), server.delivered);
    let bleached = LinkConfig { bleach: true, ..link() };
    let Ran { seen, counts: [client, server], .. } = run(bleached, 60, Ecn::Ect0);
    assert_eq!((seen.marked, u64::from(seen.erased)), (0, client.delivered + server.delivered));
    // Without ECN they are dropped.
    let Ran { seen, counts: [client, _], .. } = run(link(), 60, Ecn::NotEct);
    assert!(seen.marked == 0 && client.lost > 30, "{client:?}");
}

#[test]
fn copies_and_late_datagrams_reach_the_stack() {
    let with = |impair: Impair| {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut config = config(LinkConfig::drop_tail("", Rate(100_000_000), 2000), 10, Ecn::NotEct, &seen);
        // The answers as they are.
        config.links[0].impair = impair;
        run_of(&config, &seen)
    };
    let Ran { seen, counts: [client, server], .. } = with(Impair { duplicate: 0.1, ..Impair::default() });
    let twice = seen.arrived.iter().filter(|&&times| times == 2).count() as f64;
    assert!((0.08..0.12).contains(&(twice / client.sent as f64)), "{twice} of {}", client.sent);
    assert!(client.delivered > client.sent && server.sent == client.delivered);
    let late = Reorder { p: 0.1, delay: Time::from_ms(5) };
    let Ran { seen, counts: [client, _], .. } = with(Impair { reorder: Some(late), ..Impair::default() });
    let overtaken = seen.order.windows(2).filter(|pair| pair[0] > pair[1]).count() as f64;
    assert!(overtaken > 0.02 * client.sent as f64, "{overtaken} of {}", client.sent);
    assert!(seen.arrived.iter().all(|&times| times <= 1) && client.lost == 0);
}

#[test]
fn size_stop_and_breaker_end_it() {
    let with = |change: &dyn Fn(&mut Config)| {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut config = config(slow(), 30, Ecn::NotEct, &seen);
        change(&mut config);
        run_of(&config, &seen)
    };
    let Ran { flow, .. } = with(&|config| config.stacks[0].size_bytes = 200_000);
    let took_s = flow.completion_s.unwrap();
    assert_eq!((flow.delivered_bytes, flow.size_bytes), (200_000, Some(200_000)));
    assert_eq!((flow.ended_s, flow.goodput_bps), (Some(took_s + 0.1), Some(1.6e6 / took_s)));
    let Ran { flow, seen, .. } = with(&|config| config.stacks[0].stop = Time::from_s(2));
    assert_eq!((seen.stopped_ns, flow.ended_s, flow.completion_s), (Some(2_000_000_000), Some(2.0), None));
    assert!(seen.at_ns.last().unwrap() < &2_200_000_000);
    let breaker = Breaker { loss: 0.001, interval: Time::from_s(1), intervals: 1 };
    let breaker = BreakerConfig { breaker, watched: Watched::Flow(1) };
    let Ran { flow, .. } = with(&|config| config.breakers = vec![breaker]);
    assert_eq!(flow.tripped_s, flow.ended_s);
    assert!(flow.tripped_s.is_some(), "{flow:?}");
}

#[test]
fn it_takes_another_route_and_streams_are_one_flow() {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut config = config(slow(), 30, Ecn::NotEct, &seen);
    let second = StackConfig { number: 2, stream: 1, ..config.stacks[0].clone() };
    config.stacks.push(second);
    config.links.push(LinkConfig { name: "other".into(), delay: Time::from_ms(2), ..slow() });
    config.routes.push(vec![lfn_sim::config::LinkId(2)]);
    let what = Changed::Route { flow: 1, route: RouteId(2), ack_route: RouteId(1) };
    config.changes = vec![Change { at: Time::from_s(2), what }];
    let mut sim = Sim::new(&config).unwrap();
    sim.run_until(config.duration);
    let summary = sim.finish().unwrap().summary;
    assert_eq!((summary.flows.len(), summary.flows[1].streams), (2, 2));
    assert!(summary.links[2].arrivals > 1000, "{:?}", summary.links[2]);
    let window = summary.flows[1].mean_cwnd_segments.unwrap();
    assert!((window - 60.0).abs() < 1e-9, "{window}");
}

#[test]
fn what_is_not_there_is_refused() {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut config = config(slow(), 1, Ecn::NotEct, &seen);
    config.stacks[0].ack_route = RouteId(7);
    assert_eq!(Sim::new(&config).err().unwrap().to_string(), "there is no route 7");
    config.stacks[0].ack_route = RouteId(1);
    config.stacks[0].law = "cubic".parse().unwrap();
    let said = Sim::new(&config).err().unwrap().to_string();
    assert_eq!(said, "flow 1: cubic is no stack that can be run");
}
