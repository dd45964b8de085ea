//! Any control drives a connection: the laws of the registry, and one made here.

use crate::pair::{native, Crossing, Fate, Fates, Pair, CLIENT, SERVER};
use lfn_law::{registry, LawSpec, SlowStartKind};
use lfn_udt::{Body, Config, CongestionControl, Connection, LawControl, Packet, Path, State};
use lfn_units::Time;

const OWD: Time = Time::from_ms(10);
const PACKETS: u64 = 4_000;

/// Every 1,000th original is lost.
fn lossy() -> Fates {
    Box::new(|crossing| match crossing.data {
        Some((index, false)) if index % 1_000 == 999 => Fate::Lost,
        _ => Fate::Arrives,
    })
}

fn law(spec: &LawSpec) -> Box<dyn CongestionControl> {
    Box::new(LawControl::new(spec, spec.slow_start(), 1_500, Time::ZERO))
}

/// 100 Mbit/s each way, 20 ms, and a queue without end.
fn run(control: Box<dyn CongestionControl>, fates: Fates) -> Pair {
    let config = Config::default();
    let mut pair = Pair::with_control(config, config, 0, OWD, fates, control)
        .with_serialisation(Time::from_us(120))
        .connected();
    pair.client().offer(PACKETS, true, Time::NEVER);
    let all = |pair: &mut Pair| pair.client().released() == PACKETS;
    assert!(pair.run_until(all, Time::from_s(100)), "{} of {PACKETS}", pair.client().released());
    pair
}

#[test]
fn every_law_moves_data_over_a_path_that_loses() {
    let ends_alone =
        registry().iter().filter(|law| law.header.is_none() && law.slow_start != SlowStartKind::None);
    for spec in ends_alone.flat_map(|law| law.specs()) {
        let mut pair = run(law(&spec), lossy());
        assert_eq!(pair.arrived[SERVER].len() as u64, PACKETS, "{spec}");
        assert!(pair.client().window_packets() >= 1, "{spec}");
    }
}

#[test]
fn laws_see_losses_as_episodes_and_the_window_grows_between() {
    let reno = law(&"reno".parse().unwrap());
    let mut windows = Vec::new();
    let config = Config::default();
    // Two losses of one window, then none.
    let fates: Fates = Box::new(|crossing: &Crossing<'_>| match crossing.data {
        Some((1_000 | 1_002, false)) => Fate::Lost,
        _ => Fate::Arrives,
    });
    let mut pair = Pair::with_control(config, config, 0, OWD, fates, reno).connected();
    pair.client().offer(PACKETS, true, Time::NEVER);
    pair.run_until(
        |pair| {
            windows.push(pair.client().window_packets());
            pair.client().released() == PACKETS
        },
        Time::from_s(100),
    );
    let cuts: Vec<_> = windows.windows(2).filter(|two| two[1] < two[0]).collect();
    assert_eq!(cuts.len(), 1, "{cuts:?}");
    assert_eq!(cuts[0][1], cuts[0][0] / 2);
    assert_eq!((windows[0], windows.last() > Some(&cuts[0][1])), (10, true));
}

#[test]
fn cubic_fills_the_path() {
    let mut pair = run(law(&"cubic".parse().unwrap()), Box::new(|_| Fate::Arrives));
    let seconds = pair.now.as_s();
    // 4,000 packets of 120 µs, and slow start over 20 ms.
    assert!(seconds < 0.48 * 1.25 + 0.1, "{seconds} s");
    assert_eq!(pair.client().sender_stats().retransmits, 0);
}

/// UDT's sample of a window-based control: an ACK for every second packet, its own timeout.
struct Fixed;

impl CongestionControl for Fixed {
    fn on_ack(&mut self, _light: bool, _path: &Path) {}
    fn on_loss(&mut self, _first: u64, _packets: u64, _path: &Path) {}
    fn on_timeout(&mut self, _path: &Path) {}
    fn period(&self) -> Time {
        Time::from_ms(1)
    }
    fn window_packets(&self) -> u64 {
        32
    }
    fn ack_interval_packets(&self) -> u32 {
        2
    }
    fn retransmission_timeout(&self) -> Option<Time> {
        Some(Time::from_s(1))
    }
}

#[test]
fn a_control_may_ask_for_acks_by_count_and_for_its_own_timeout() {
    // Both ends have a control; the receiver's speaks for its ACKs, so the server sends.
    let config = Config::default();
    let fates: Fates =
        Box::new(|c| if c.from == CLIENT && c.now > Time::from_ms(500) { Fate::Lost } else { Fate::Arrives });
    let mut pair = Pair::with_control(config, config, 0, OWD, fates, Box::new(Fixed)).connected();
    pair.run_until(|pair| pair.log.len() > 3, Time::from_ms(100));
    pair.server().offer(1_000, true, Time::NEVER);
    pair.run_until(|_| false, Time::from_ms(400));
    let full = pair.log.iter().filter(|(_, from, bytes)| {
        *from == CLIENT && matches!(Packet::decode(bytes).unwrap().body, Body::Ack { report: Some(_), .. })
    });
    let acks = full.count() as u64;
    let arrived = pair.arrived[CLIENT].len() as u64;
    assert!((arrived / 2..=arrived / 2 + 60).contains(&acks), "{acks} ACKs for {arrived} packets");
    // The client loses its connection: 16 timeouts of 1, 2, ... 16 s, then the end.
    let now = pair.now;
    pair.ends[SERVER] = None;
    let over = |pair: &mut Pair| matches!(pair.client().state(), State::Closed(_));
    assert!(pair.run_until(over, Time::from_s(1_000)));
    let seconds = (pair.now - now).as_s();
    assert!((seconds - (1..=17).sum::<u32>() as f64).abs() < 0.1, "{seconds}");
}

#[test]
fn deadlines_never_lie_in_the_past_of_a_driven_connection() {
    let mut pair =
        Pair::with_control(Config::default(), Config::default(), 0, OWD, lossy(), native()).connected();
    pair.client().offer(PACKETS, true, Time::NEVER);
    pair.run_until(
        |pair| {
            let now = pair.now;
            let deadline = |end: &Connection| end.deadline() > now;
            assert!(pair.ends.iter().flatten().all(deadline), "at {now:?}");
            pair.client().released() == PACKETS
        },
        Time::from_s(30),
    );
}
