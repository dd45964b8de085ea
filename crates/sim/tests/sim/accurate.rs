//! AccECN between the ends of a connection: the handshake, and marks counted at both ends over paths that lose, reorder and
//! erase.

use crate::common::{capture, drop_tail, dumbbell, linux_flow, ms, network, rate, rows, run, ACK, ARRIVES};
use lfn_path::{AckImpair, AqmConfig, DualPi2Config, RedConfig, Reorder};
use lfn_sim::accurate::AccEcn;
use lfn_sim::config::{Change, Changed, Config, FlowConfig, LinkConfig, LinkId, Loss};
use lfn_sim::Marks;
use lfn_units::Time;
use proptest::prelude::*;

/// A flow of Prague with ECT(1).
fn prague(accecn: AccEcn, rtt: Time) -> FlowConfig {
    let mut flow = FlowConfig { accecn, l4s: true, ..linux_flow("prague", rtt) };
    flow.sender.ecn = true;
    flow.sender.ecn_repairs = true;
    flow.sender.accurate_ecn = accecn.is_on();
    flow.receiver.ecn = !accecn.is_on();
    flow.receiver.echo_each_mark = true;
    flow.ack_bytes += accecn.ack_bytes();
    flow
}

/// A link with DualPI2 and room for 400 packets.
fn dual(text: &str) -> LinkConfig {
    LinkConfig { queue: AqmConfig::DualPi2(DualPi2Config::default()), ..drop_tail(rate(text), 400) }
}

fn alone(accecn: AccEcn, text: &str, rtt: Time, seconds: u64) -> Config {
    dumbbell(dual(text), vec![prague(accecn, rtt)], Time::from_s(seconds))
}

fn marks(config: &Config) -> Option<Marks> {
    run(config).summary.flows[0].marks
}

/// Flags as recorded: 128 AE, 8 CWR, 4 ECE.
#[test]
fn a_handshake_agrees_on_it() {
    let mut config = alone(AccEcn::Option, "20Mbit/s", ms(20), 2);
    config.capture = capture([0, 1]);
    let outcome = run(&config);
    let table = &outcome.tables.packets;
    let first = |kind| (0..table.t_ps.len()).find(|&i| table.kind[i] == kind).expect("one is recorded");
    let seen = [5, 6, 7, 1].map(|kind| (table.flags[first(kind)] & 140, table.bytes[first(kind)]));
    // A SYN asks with all three; SYN-ACK and third ACK say that what they answer came as Not-ECT; the counter begins at 5.
    // The option takes 8 bytes, on the SYN none.
    assert_eq!(seen, [(140, 74), (8, 82), (8, 74), (132, 74)]);
}

/// Repeated SYNs (RFC 9768 section 3.1.4): the third asks for nothing, and a queue drops then.
#[test]
fn the_third_syn_asks_for_nothing() {
    for (lost_until_ms, agrees) in [(0, true), (500, true), (1500, false)] {
        let mut config = alone(AccEcn::Option, "20Mbit/s", ms(20), 20);
        for (at, p) in [(0, 1.0), (lost_until_ms, 0.0)] {
            config.changes.push(Change { at: ms(at), what: Changed::Loss(LinkId(0), p) });
        }
        let summary = run(&config).summary;
        assert_eq!(summary.flows[0].marks.is_some(), agrees, "{lost_until_ms}");
        assert_eq!(summary.links[0].marks > 0, agrees, "{lost_until_ms}");
        assert_eq!(summary.flows[0].retransmits > 0, !agrees, "{lost_until_ms}");
    }
}

#[test]
fn what_arrives_is_what_is_told() {
    for accecn in [AccEcn::Counter, AccEcn::Option] {
        let mut config = alone(accecn, "40Mbit/s", ms(20), 30);
        config.flows[0].size_segments = 50_000;
        let told = marks(&config).expect("they agree");
        // Far more than the three bits count.
        assert!(told.arrived > 1000 && told.told == told.arrived, "{accecn:?} {told:?}");
    }
}

/// A classic law takes the count for a mark, once a round trip, and sets no CWR.
#[test]
fn a_classic_law_reduces_once_a_round_trip() {
    let mut config = alone(AccEcn::Option, "20Mbit/s", ms(20), 20);
    let mut flow = prague(AccEcn::Option, ms(20));
    flow.l4s = false;
    config.flows = vec![FlowConfig { law: crate::common::law("cubic"), ..flow }];
    config.flows[0].sender =
        lfn_tcp::SenderConfig { ecn: true, accurate_ecn: true, ..linux_flow("cubic", ms(20)).sender };
    config.capture = capture([0]);
    let outcome = run(&config);
    let flow = &outcome.summary.flows[0];
    let told = flow.marks.expect("they agree");
    assert!(told.told > 3 && flow.loss_events <= told.told && flow.retransmits == 0, "{flow:?}");
    let table = &outcome.tables.packets;
    assert!((0..table.t_ps.len()).all(|i| table.kind[i] != 0 || table.flags[i] & 8 == 0));
}

/// Behind the queue a link erases the field: with the option the sender finds that, and is a Classic flow from then on.
/// Without it, or by the echo, no mark reaches it until the queue drops.
#[test]
fn a_path_that_erases_marks_is_found_by_the_option() {
    let l4s_packets = |accecn| {
        let links = [dual("20Mbit/s"), drop_tail(rate("100Mbit/s"), 400), drop_tail(rate("100Mbit/s"), 400)];
        let links = [("a", 0), ("b", 1), ("c", 2)].map(|(name, at)| LinkConfig {
            name: name.into(),
            bleach: at == 1,
            ..links[at].clone()
        });
        let flow = prague(accecn, ms(20));
        let config = network(links.into(), vec![vec![0, 1], vec![2]], vec![flow], Time::from_s(10));
        let outcome = run(&config);
        let classes = outcome.summary.links[0].classes.expect("dualpi2 has classes");
        (classes.l4s.packets, classes.classic.packets)
    };
    let (l4s, classic) = l4s_packets(AccEcn::Option);
    assert!(l4s < 2000 && classic > 10_000, "{l4s} {classic}");
    for accecn in [AccEcn::Off, AccEcn::Counter] {
        let (l4s, classic) = l4s_packets(accecn);
        assert!(l4s > 10_000 && classic < 10, "{accecn:?} {l4s} {classic}");
    }
}

/// A mark counts when it arrives, also where the simulator takes the packet when it is sent.
#[test]
fn marks_on_their_way_have_not_arrived() {
    let arrived = |event_mode, end_ms| {
        let marking = RedConfig { ecn: true, mark_p: 1.0, ..RedConfig::gentle(1500) };
        let link = LinkConfig { queue: AqmConfig::Red(marking), ..drop_tail(rate("20Mbit/s"), 400) };
        let link = LinkConfig { event_mode, ..link };
        let flow = prague(AccEcn::Counter, ms(80));
        marks(&dumbbell(link, vec![flow], ms(end_ms))).expect("they agree").arrived
    };
    let ends_ms: Vec<u64> = (1..60).map(|n| 50 * n).collect();
    let [closed, events] =
        [false, true].map(|mode| ends_ms.iter().map(|&end_ms| arrived(mode, end_ms)).collect::<Vec<u64>>());
    assert_eq!(closed, events);
    assert!(closed[58] > 10, "{closed:?}");
}

/// Repairs of a Classic law are Not-ECT and move no counter: 64 of them in a row are no sign of a path that erases the field.
#[test]
fn repairs_are_no_sign_of_an_erased_field() {
    let mut flow = FlowConfig { accecn: AccEcn::Option, ..linux_flow("cubic", ms(40)) };
    (flow.sender.ecn, flow.sender.accurate_ecn) = (true, true);
    flow.ack_bytes += AccEcn::Option.ack_bytes();
    let mut config = dumbbell(drop_tail(rate("50Mbit/s"), 400), vec![flow], Time::from_s(10));
    for (at, p) in [(3000, 0.9), (3200, 0.0)] {
        config.changes.push(Change { at: ms(at), what: Changed::Loss(LinkId(0), p) });
    }
    let flow = &run(&config).summary.flows[0];
    assert!(flow.retransmits > 128, "{}", flow.retransmits);
    assert_eq!(flow.ecn, Some("accecn"));
}

#[test]
fn an_ack_with_the_option_has_two_sack_blocks_at_most() {
    let mut config = alone(AccEcn::Option, "200Mbit/s", ms(20), 10);
    config.links[0].impair.loss = Loss::Bernoulli(0.2);
    config.capture = capture([1]);
    let blocks = |config: &Config| {
        let table = run(config).tables.packets;
        let most = (0..table.t_ps.len()).map(|i| [table.sack2_end[i], table.sack3_end[i]].map(|end| end > 0));
        most.fold([false; 2], |[two, three], [a, b]| [two | a, three | b])
    };
    assert_eq!(blocks(&config), [true, false]);
    config.flows = vec![crate::common::on_dumbbell(prague(AccEcn::Counter, ms(20)))];
    assert_eq!(blocks(&config), [true, true]);
    assert!(!rows(&run(&config).tables, 1, ARRIVES, ACK).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Of a transfer that is complete, over a link that loses 30 % of the ACKs and lets others overtake them: with the option
    /// both ends count the same marks; without it the sender counts no fewer.
    #[test]
    fn both_ends_agree_though_acks_are_lost_and_overtaken(
        seed in any::<u64>(),
        rate_mbit in 5u64..200,
        rtt_ms in 2u64..80,
        reordered in 0.0..0.5f64,
        held_us in 1u64..8000,
        size in 200u64..20_000,
    ) {
        for accecn in [AccEcn::Option, AccEcn::Counter] {
            let mut config = alone(accecn, &format!("{rate_mbit}Mbit/s"), ms(rtt_ms), 60);
            config.seed = seed;
            config.flows[0].size_segments = size;
            config.links[1].acks = Some(AckImpair {
                loss: Loss::Bernoulli(0.3),
                reorder: Some(Reorder { p: reordered, delay: Time::from_us(held_us) }),
                ..AckImpair::default()
            });
            let flow = run(&config).summary.flows[0].clone();
            // Where SYN-ACKs were lost the ends may not have agreed.
            let (Some(told), Some(_)) = (flow.marks, flow.completion_s) else { continue };
            match accecn {
                AccEcn::Option => prop_assert_eq!(told.told, told.arrived),
                _ => prop_assert!(told.told >= told.arrived),
            }
        }
    }
}
