//! Path elements beside queues and loss of data: ACKs that are lost, late or gathered; policers, shapers, and links
//! that erase ECN.

use crate::common::{
    capture, datagrams, drop_tail, dumbbell, linux_flow, ms, network, rate, rows, run, ACK, ARRIVES, DEPARTS,
    UDP,
};
use lfn_path::{AckImpair, AqmConfig, CodelConfig, JitterConfig, Loss, Policer, Reorder, Service, Shaper};
use lfn_sim::config::{Config, LinkConfig};
use lfn_units::{Bytes, Rate, Time};

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
        assert!(outcome.summary.flows[0].goodput_bps.unwrap() > 18e6, "{:?}", outcome.summary.flows[0]);
    }

    #[test]
    fn nothing_is_as_no_table() {
        let flows = |acks| format!("{:?}", run(&with_acks("cubic", acks)).summary.flows);
        assert_eq!(flows(Some(AckImpair::default())), flows(None));
    }

    #[test]
    fn gathered_they_go_on_together() {
        // ACKs return over links 1 and 2; those of one instant arrive a picosecond apart.
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
        assert!(arrived.len() > 1000 && arrived.iter().all(|row| row.at.0 % ms(7).0 < 1000));
        assert!(
            outcome.summary.flows[0].min_rtt_s.unwrap() > 0.040,
            "{}",
            outcome.summary.flows[0].min_rtt_s.unwrap()
        );
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
            assert!(flow.goodput_bps.unwrap() > 18e6, "{acks:?}: {}", flow.goodput_bps.unwrap());
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
        let acks = AckImpair { loss: Loss::Bernoulli(0.95), ..AckImpair::default() };
        let flows = (0..40).map(|seed| {
            let config = Config { seed, duration: Time::from_s(30), ..with_acks("reno", Some(acks)) };
            run(&config).summary.flows[0].clone()
        });
        let (connected, others): (Vec<_>, Vec<_>) = flows.partition(|flow| flow.sent > 0);
        // A SYN is sent nine times in 30 s, and 0.95^9 is 0.63.
        assert!(connected.len() > 3 && others.len() > 12, "{} of 40 connected", connected.len());
        assert!(connected.iter().all(|flow| flow.goodput_bps.unwrap() < 2e6));
        assert!(connected.iter().map(|flow| flow.timeouts).sum::<u64>() > connected.len() as u64);
    }
}

mod buckets {
    use super::*;

    /// A datagram of 1500 bytes each ms from 1 s on, 12 Mbit/s, for 2 s, over `link`: when each leaves.
    fn departures(link: LinkConfig) -> Vec<Time> {
        let mut config = network(vec![link], vec![vec![0]], Vec::new(), Time::from_s(20));
        config.udp = vec![datagrams(0, 1500, Time::from_s(1), ms(1), 2000)];
        config.capture = capture([0]);
        rows(&run(&config).tables, 0, DEPARTS, UDP).iter().map(|row| row.at).collect()
    }

    #[test]
    fn a_policer_drops_what_exceeds_burst_and_rate() {
        let policer = Some(Policer { rate: rate("3Mbit/s"), burst: Bytes(150_000) });
        let link = LinkConfig { policer, ..drop_tail(rate("100Mbit/s"), 1000) };
        let gone = departures(link);
        // In 1999 ms tokens for 499.75 packets come; the first 100 were there.
        assert!((598..=600).contains(&gone.len()), "{}", gone.len());
        // The bucket empties at 12 - 3 Mbit/s; then each fourth passes.
        let early = gone.iter().take(130);
        assert!(early.copied().eq((0..130).map(|n| Time::from_us(1_000_120 + 1000 * n))), "{gone:?}");
        let late: Vec<Time> = gone[gone.len() - 50..].windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(late.iter().all(|&gap| gap == ms(4)), "{late:?}");
    }

    #[test]
    fn a_shaper_lets_them_wait() {
        let shaper = Shaper { rate: rate("3Mbit/s"), burst: Bytes(150_000) };
        let service = Service::Shaped(rate("100Mbit/s"), shaper);
        let gone = departures(LinkConfig { service, ..drop_tail(rate("100Mbit/s"), 10_000) });
        assert_eq!(gone.len(), 2000);
        // Bits leave at the line's rate: 120 us a packet.
        assert_eq!(gone[0], Time::from_us(1_000_120));
        let gaps: Vec<Time> = gone.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps[..130].iter().all(|&gap| gap == ms(1)) && gaps[140..].iter().all(|&gap| gap == ms(4)));
    }

    #[test]
    fn flows_get_the_rate_of_a_bucket() {
        let shaper = Shaper { rate: rate("20Mbit/s"), burst: Bytes(30_000) };
        let shaped = Service::Shaped(rate("1Gbit/s"), shaper);
        let policer = Some(Policer { rate: rate("20Mbit/s"), burst: Bytes(100_000) });
        let line = drop_tail(rate("1Gbit/s"), 100);
        let goodput = |link: &LinkConfig, law: &str| {
            let config = dumbbell(link.clone(), vec![linux_flow(law, ms(40))], Time::from_s(20));
            let outcome = run(&config);
            (outcome.summary.flows[0].goodput_bps.unwrap() / 20e6, outcome.summary.links[0].clone())
        };
        for law in ["reno", "cubic", "bbr"] {
            let (share, link) = goodput(&LinkConfig { service: shaped.clone(), ..line.clone() }, law);
            assert!((0.85..0.96).contains(&share), "{law}, shaped: {share}");
            assert!((0.9..=1.01).contains(&link.utilization), "{law}: {}", link.utilization);
            let (share, link) = goodput(&LinkConfig { policer, ..line.clone() }, law);
            assert!((0.3..0.97).contains(&share), "{law}, policed: {share}");
            assert_eq!((link.drops, link.max_queue_packets < 100), (link.early_drops, true), "{law}");
        }
    }

    #[test]
    fn a_bucket_that_never_empties_alters_no_flow() {
        let flows = |link: LinkConfig| {
            let config = dumbbell(link, vec![linux_flow("cubic", ms(40))], Time::from_s(5));
            format!("{:?}", run(&config).summary.flows)
        };
        let plain = drop_tail(rate("20Mbit/s"), 60);
        let policer = Some(Policer { rate: Rate(20_000_000_000), burst: Bytes(100_000) });
        assert_eq!(flows(LinkConfig { policer, ..plain.clone() }), flows(plain));
    }
}

mod bleaching {
    use super::*;

    /// A flow with ECN over three links; the middle one is slow, and CoDel marks there. The link of this number erases.
    fn erased_on(number: Option<usize>) -> Config {
        let link = |name: &str, text| LinkConfig { name: name.into(), ..drop_tail(rate(text), 300) };
        let links = vec![
            link("a", "100Mbit/s"),
            link("b", "20Mbit/s"),
            link("c", "100Mbit/s"),
            link("back", "100Mbit/s"),
        ];
        let mut flow = linux_flow("reno", ms(40));
        (flow.sender.ecn, flow.receiver.ecn) = (true, true);
        let mut config = network(links, vec![vec![0, 1, 2], vec![3]], vec![flow], Time::from_s(20));
        config.links[1].queue = AqmConfig::Codel(CodelConfig { ecn: true, ..CodelConfig::default() });
        if let Some(number) = number {
            config.links[number].bleach = true;
        }
        config
    }

    #[test]
    fn before_the_queue_it_drops_what_it_would_mark() {
        let link = |number| run(&erased_on(number)).summary.links[1].clone();
        let (with, without) = (link(None), link(Some(0)));
        assert!(with.marks > 3 && with.early_drops == 0, "{with:?}");
        assert!(without.marks == 0 && without.early_drops > 3, "{without:?}");
    }

    #[test]
    fn behind_the_queue_the_sender_never_hears_of_marks() {
        for number in [1, 2] {
            let summary = run(&erased_on(Some(number))).summary;
            let (link, flow) = (&summary.links[1], &summary.flows[0]);
            assert!(link.marks > 100, "{number}: {link:?}");
            // Nothing but the full queue ends its growth.
            assert!(link.max_queue_packets == 300 && link.drops > link.early_drops, "{number}: {link:?}");
            assert!(flow.loss_events > 0 && flow.retransmits > 0, "{number}: {flow:?}");
        }
        let heard = run(&erased_on(Some(3))).summary;
        assert_eq!(heard.flows[0].retransmits, run(&erased_on(None)).summary.flows[0].retransmits);
    }
}
