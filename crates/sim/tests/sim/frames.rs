//! Frames with a deadline: which come in time, over UDP and over TCP.

use crate::common::{datagrams, drop_tail, dumbbell, linux_flow, ns2_flow, rate, run};
use lfn_path::{Impair, JitterConfig, Loss};
use lfn_sim::application::Application;
use lfn_sim::config::{Config, FlowConfig};
use lfn_sim::Frames;
use lfn_units::Time;

fn ms(milliseconds: u64) -> Time {
    Time::from_ms(milliseconds)
}

/// A frame of 1250 bytes each 2 ms for 20 s, of which the first 2 s do not count, on 20 Mbit/s.
fn datagram_stream(deadline: Time, impair: Impair) -> Config {
    let mut source = datagrams(0, 1250, Time::ZERO, ms(2), 10_000);
    source.deadline = Some(deadline);
    let mut config = dumbbell(drop_tail(rate("20Mbit/s"), 60), Vec::new(), Time::from_s(20));
    config.links[0].impair = impair;
    config.warmup = Time::from_s(2);
    Config { udp: vec![source], ..config }
}

fn of_datagrams(config: &Config) -> Frames {
    run(config).summary.udp[0].frames.expect("they have a deadline")
}

/// The same rate, written by the application of a flow with an RTT of 40 ms.
fn segment_stream(mut flow: FlowConfig, deadline: Option<Time>, loss: f64) -> Config {
    flow.application = Some(Application { rate: rate("5Mbit/s"), on: None, off: None, deadline });
    flow.sender.validation = true;
    let mut config = dumbbell(drop_tail(rate("20Mbit/s"), 60), vec![flow], Time::from_s(20));
    config.links[0].impair.loss = Loss::Bernoulli(loss);
    config.warmup = Time::from_s(2);
    config
}

fn of_segments(config: &Config) -> Frames {
    run(config).summary.flows[0].frames.expect("they have a deadline")
}

#[test]
fn datagrams_are_late_lost_or_in_time() {
    // Those sent from 1.99 s to 19.99 s are due from 2 s to 20 s. The link takes 0.5 ms.
    let clean = of_datagrams(&datagram_stream(ms(10), Impair::default()));
    assert_eq!(clean, Frames { due: 9001, in_time: 9001 });
    let none = of_datagrams(&datagram_stream(Time::from_us(499), Impair::default()));
    assert_eq!((none.due, none.in_time), (9000, 0));
    let impair = Impair { loss: Loss::Bernoulli(0.1), ..Impair::default() };
    let lost = of_datagrams(&datagram_stream(ms(10), impair));
    assert_eq!(lost.due, 9001);
    // Three deviations of a mean of 0.9.
    assert!((lost.in_time as f64 / 9001.0 - 0.9).abs() < 0.0095, "{lost:?}");
    // A delay from 0 to 10 ms: half is late after 5.5 ms.
    let jitter = Some(JitterConfig::uniform(Time::ZERO, ms(10), false));
    let late = of_datagrams(&datagram_stream(Time::from_us(5500), Impair { jitter, ..Impair::default() }));
    assert!((late.in_time as f64 / late.due as f64 - 0.5).abs() < 0.016, "{late:?}");
}

#[test]
fn a_copy_of_a_datagram_is_no_second_frame() {
    let impair = Impair { duplicate: 1.0, ..Impair::default() };
    let outcome = run(&datagram_stream(ms(10), impair)).summary.udp.swap_remove(0);
    assert!(outcome.delivered > 19_990, "{}", outcome.delivered);
    assert_eq!(outcome.frames, Some(Frames { due: 9001, in_time: 9001 }));
}

#[test]
fn segments_have_to_be_in_order_by_their_deadline() {
    let rtt = ms(40);
    for flow in [linux_flow("reno", rtt), linux_flow("htcp-be", rtt), ns2_flow("reno", rtt)] {
        let name = flow.law.label();
        let within = |deadline, loss| of_segments(&segment_stream(flow.clone(), Some(deadline), loss));
        let clean = within(ms(80), 0.0);
        assert!(clean.due > 7000 && clean.in_time == clean.due, "{name}: {clean:?}");
        // No segment comes in less than half of an RTT.
        assert_eq!(within(ms(20), 0.0).in_time, 0, "{name}");
        // A retransmission comes an RTT after its first copy would, and holds up an RTT's segments. A law that halves its
        // window twice is slower than the application for a while.
        let (strict, lenient) = (within(ms(40), 0.001), within(ms(120), 0.001));
        let share = |frames: Frames| frames.in_time as f64 / frames.due as f64;
        assert!((0.5..0.99).contains(&share(strict)), "{name}: {strict:?}");
        assert!(share(lenient) > share(strict), "{name}: {lenient:?}, {strict:?}");
        let all = within(Time::from_s(10), 0.0);
        assert_eq!(all.in_time, all.due, "{name}");
    }
}

#[test]
fn a_deadline_changes_nothing_else() {
    for loss in [0.0, 0.01] {
        let flow = || linux_flow("cubic", ms(40));
        let hash = |deadline| run(&segment_stream(flow(), deadline, loss)).summary.hash;
        assert_eq!(hash(Some(ms(80))), hash(None), "{loss}");
        let mut with = datagram_stream(ms(10), Impair { loss: Loss::Bernoulli(loss), ..Impair::default() });
        let of_both = run(&with).summary.hash;
        with.udp[0].deadline = None;
        let summary = run(&with).summary;
        assert_eq!((summary.hash, summary.udp[0].frames), (of_both, None), "{loss}");
    }
}
