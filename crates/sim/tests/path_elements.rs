//! Path elements beside queues and loss of data: ACKs that are lost, late or gathered.

mod common;

use common::{capture, drop_tail, dumbbell, linux_flow, network, rate, rows, run, ACK, ARRIVES, DEPARTS};
use lfn_path::{AckImpair, JitterConfig, Loss, Reorder};
use lfn_sim::config::{Config, LinkConfig};
use lfn_units::Time;

fn ms(n: u64) -> Time {
    Time::from_ms(n)
}

/// One flow of `law` on 20 Mbit/s × 40 ms for 10 s, with these ACKs.
fn with_acks(law: &str, acks: Option<AckImpair>) -> Config {
    let mut config =
        dumbbell(drop_tail(rate("20Mbit/s"), 60), vec![linux_flow(law, ms(40))], Time::from_s(10));
    config.links[1].acks = acks;
    config
}

mod acks {
    use super::*;

    #[test]
    fn those_chosen_are_lost_and_data_are_not() {
        let acks = AckImpair { loss: Loss::Bernoulli(0.2), ..AckImpair::default() };
        let mut config = with_acks("reno", Some(acks));
        config.capture = capture([1]);
        let outcome = run(&config);
        let count = |point| rows(&outcome.tables, 1, point, ACK).len() as f64;
        let lost = 1.0 - count(DEPARTS) / count(ARRIVES);
        assert!((lost - 0.2).abs() < 0.01, "{lost}");
        assert_eq!(outcome.summary.conservation.lost, 0);
        assert_eq!(outcome.summary.flows[0].timeouts, 0);
        // A cumulative ACK stands for those before it.
        assert!(outcome.summary.flows[0].goodput_bps > 18e6, "{:?}", outcome.summary.flows[0]);
    }

    #[test]
    fn nothing_is_as_no_table() {
        let flows = |acks| format!("{:?}", run(&with_acks("cubic", acks)).summary.flows);
        assert_eq!(flows(Some(AckImpair::default())), flows(None));
    }

    #[test]
    fn gathered_they_go_on_together() {
        // ACKs return over links 1 and 2.
        let link = |name: &str| LinkConfig { name: name.into(), ..drop_tail(rate("20Mbit/s"), 60) };
        let mut config = network(
            vec![link("there"), link("a"), link("b")],
            vec![vec![0], vec![1, 2]],
            vec![linux_flow("reno", ms(40))],
            Time::from_s(3),
        );
        config.links[1].acks = Some(AckImpair { aggregate: Some(ms(7)), ..AckImpair::default() });
        config.capture = capture([2]);
        let outcome = run(&config);
        let arrived = rows(&outcome.tables, 2, ARRIVES, ACK);
        assert!(arrived.len() > 1000 && arrived.iter().all(|row| row.at.0 % ms(7).0 == 0));
        assert!(outcome.summary.flows[0].min_rtt_s > 0.040, "{}", outcome.summary.flows[0].min_rtt_s);
    }

    #[test]
    fn out_of_order_they_are_old_news() {
        let reorder = Some(Reorder { p: 0.1, delay: ms(5) });
        let jitter = Some(JitterConfig::uniform(Time::ZERO, ms(5), false));
        for acks in [
            AckImpair { reorder, ..AckImpair::default() },
            AckImpair { jitter, ..AckImpair::default() },
            AckImpair { reorder, jitter, loss: Loss::Bernoulli(0.1), aggregate: Some(ms(1)) },
        ] {
            let flow = &run(&with_acks("reno", Some(acks))).summary.flows[0];
            // No data were late: nothing was sent again but what the queue dropped.
            let plain = &run(&with_acks("reno", None)).summary.flows[0];
            assert!(flow.retransmits <= 2 * plain.retransmits, "{acks:?}: {flow:?}");
            assert!(flow.goodput_bps > 18e6, "{acks:?}: {}", flow.goodput_bps);
        }
    }

    #[test]
    fn of_a_recorded_link_and_by_events_they_fare_the_same() {
        let acks = AckImpair { loss: Loss::Bernoulli(0.05), aggregate: Some(ms(3)), ..AckImpair::default() };
        let hash = |event_mode, recorded: bool| {
            let mut config = with_acks("cubic", Some(acks));
            config.links[1].event_mode = event_mode;
            config.capture = if recorded { capture([0, 1]) } else { None };
            run(&config).summary.hash
        };
        assert_eq!(hash(true, false), hash(false, false));
        assert_eq!(hash(false, true), hash(false, false));
    }

    #[test]
    fn nearly_all_lost_leave_a_flow_that_waits() {
        let acks = AckImpair { loss: Loss::Bernoulli(0.99), ..AckImpair::default() };
        let flow = &run(&with_acks("reno", Some(acks))).summary.flows[0];
        assert!(flow.timeouts > 2 && flow.goodput_bps < 1e6, "{flow:?}");
    }
}
