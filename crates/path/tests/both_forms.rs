//! The closed form computes at arrival the result that a link with packets computes step by step.

mod common;

use common::{Draws, Driver};
use lfn_path::{
    Aqm, Discipline, Ecn, Limit, Link, Offer, Packet, PacketKind, QueuedLink, Red, RedConfig, Thresholds,
    Weight,
};
use lfn_units::{Rate, Time};
use proptest::prelude::*;

/// Small thresholds and a fast average, so that a few hundred packets meet every branch.
fn red() -> impl Strategy<Value = Option<RedConfig>> {
    (any::<[bool; 5]>(), 1.0..10.0f64, 0.01..1.0f64).prop_map(
        |([gentle, adaptive, wait, byte_mode, ecn], min_th, weight)| {
            Some(RedConfig {
                weight: Weight::Fixed(weight),
                max_p: 0.3,
                gentle,
                adaptive,
                wait,
                byte_mode,
                ecn,
                mark_p: 0.5,
                ..RedConfig::classic(1500).between(Thresholds::Fixed { min_th, max_th: 2.0 * min_th })
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_forms_agree(
        config in prop_oneof![Just(None), red()],
        rate in prop_oneof![Just(3_000_000_000u64), 1_000_000..20_000_000_000u64],
        limit_packets in 0..40u64,
        limit_bytes in prop_oneof![Just(u64::MAX), 1000..40_000u64],
        arrivals in prop::collection::vec(
            (0.0..1.6, prop_oneof![Just(1500u32), Just(40), 1..9001u32], any::<bool>(), any::<bool>()),
            1..600),
    ) {
        let red = |config| Box::new(Red::new(config, Rate(rate), Time::from_ms(10)).expect("valid"));
        let discipline = config.map_or(Discipline::DropTail, |config| Discipline::Red(red(config)));
        let aqm = config.map_or(Aqm::DropTail(Box::default()), |config| Aqm::Red(red(config)));
        let limit = Limit { packets: limit_packets, bytes: limit_bytes };
        let mut closed = Link::new(Rate(rate), discipline, limit, 9000);
        let mut driver = Driver::new(QueuedLink::new(Rate(rate), aqm, limit, 9000));
        let mut draws = Draws(1);
        let mut now = Time::ZERO;
        let (mut departs, mut dropped) = (Vec::new(), Vec::new());
        for (word, &(gap, bytes, is_ack, ect)) in (0..).zip(&arrivals) {
            // A mean load of 5/4, and of less where packets are large.
            now = now + Time((gap * 12e15 / rate as f64) as u64);
            let kind = if is_ack { PacketKind::Ack } else { PacketKind::Data };
            let ecn = if ect { Ecn::Ect0 } else { Ecn::NotEct };
            let packet = Packet { word, more: 0, flow: 0, bytes, kind, ecn };
            match closed.offer(now, kind, bytes, ect, || draws.next()) {
                Offer::Departs { at, marked } => departs.push((at, Packet { ecn: ecn.marked(marked), ..packet })),
                Offer::Dropped(_) => dropped.push((now, packet)),
            }
            driver.arrive(now, packet);
            // Not always, so that it also has to count after it has not looked for a while.
            if word % 50 == 49 {
                closed.advance(now);
                prop_assert_eq!(driver.link.packets(), closed.packets());
                prop_assert_eq!(driver.link.bytes(), closed.bytes());
            }
        }
        let end = Time::from_s(1000);
        closed.advance(end);
        driver.run_to(end);
        prop_assert_eq!(&driver.departed, &departs);
        prop_assert_eq!(&driver.dropped, &dropped);
        prop_assert_eq!(driver.link.data_totals(), closed.data_totals());
        prop_assert_eq!(format!("{:?}", driver.link.counters()), format!("{:?}", closed.counters()));
    }
}
