use super::*;
use crate::counters::{Counters, DataTotals};
use crate::limit::Limit;
use crate::packet::{Packet, PacketKind};

/// A packet of 1514 bytes takes 121.12 us.
const RATE: Rate = Rate(100_000_000);
const MTU: u32 = 1514;
/// No signal of the controller.
const NO_PI: DualPi2Config = DualPi2Config {
    target: Time::from_ms(15),
    tupdate: Time::from_ms(16),
    alpha: 0.16,
    beta: 0.0,
    coupling_factor: 2,
    step_thresh: Time::from_ms(1),
    ramp: Time::ZERO,
    floor: 2,
    overload: Overload::Drop,
    c_protection: 10,
    any_ect: false,
    mtu_bytes: MTU,
};

fn packet(word: u64, ecn: Ecn) -> Packet {
    Packet { word, more: 0, flow: 0, bytes: MTU, kind: PacketKind::Data, ecn }
}

/// A queue on its own, with its books.
struct Bench {
    dual: DualPi2,
    counters: Counters,
    data: DataTotals,
    dropped: Vec<Packet>,
    limit: Limit,
}

impl Bench {
    fn new(config: DualPi2Config, rate: Rate) -> Bench {
        let limit = Limit::packets(1_000_000);
        Bench {
            dual: config.build(Site { rate, delay: Time::ZERO, salt: 0 }).expect("valid"),
            counters: Counters::new(rate, limit, MTU),
            data: DataTotals::default(),
            dropped: Vec::new(),
            limit,
        }
    }

    /// Whether the packet joins.
    fn push(&mut self, now: Time, packet: Packet) -> bool {
        let arrival = Arrival { now, packet, idle_since: None, limit: self.limit };
        let ledger =
            &mut Ledger { counters: &mut self.counters, data: &mut self.data, dropped: &mut self.dropped };
        self.dual.admit(&arrival, &mut Fifo::default(), || unreachable!("it draws nothing"), ledger).is_ok()
    }

    fn take(&mut self, now: Time) -> Option<Packet> {
        let ledger =
            &mut Ledger { counters: &mut self.counters, data: &mut self.data, dropped: &mut self.dropped };
        self.dual.take(now, &mut Fifo::default(), ledger).map(|head| head.packet)
    }

    /// As if the controller had come to this p', and stayed there.
    fn at(mut self, p: f64) -> Bench {
        self.dual.pi = Controller::fixed(p);
        self
    }

    /// Of packets with this field before a long queue of both kinds: the shares that are marked and dropped.
    fn shares(mut self, ecn: Ecn) -> (f64, f64) {
        for _ in 0..4 {
            self.push(Time::ZERO, packet(1, Ecn::NotEct));
        }
        let class = if ecn.is_l4s() { L } else { C };
        let (rounds, mut marked) = (100_000, 0);
        for _ in 0..rounds {
            let found = self.dual.decide(class, ecn, Time::ZERO);
            self.dropped.extend(found.is_none().then(|| packet(0, ecn)));
            marked += usize::from(found == Some(Ecn::Ce) && ecn != Ecn::Ce);
        }
        (marked as f64 / rounds as f64, self.dropped.len() as f64 / rounds as f64)
    }
}

fn close(got: (f64, f64), want: (f64, f64)) {
    assert!((got.0 - want.0).abs() < 1e-4 && (got.1 - want.1).abs() < 1e-4, "got {got:?}, want {want:?}");
}

#[test]
fn the_low_bit_of_the_field_chooses_the_queue_or_any_of_both() {
    for (any_ect, order) in [(false, [1, 3, 0, 2]), (true, [1, 2, 3, 0])] {
        let mut bench = Bench::new(DualPi2Config { any_ect, ..NO_PI }, RATE);
        for (word, ecn) in (0..).zip([Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce]) {
            bench.push(Time::ZERO, packet(word, ecn));
        }
        let words: Vec<u64> =
            std::iter::from_fn(|| bench.take(Time::ZERO)).map(|packet| packet.word).collect();
        assert_eq!(words, order, "{any_ect}");
    }
}

/// RFC 9332 figure 5.
#[test]
fn the_native_probability_rises_along_the_ramp() {
    let us = Time::from_us;
    let ramp = DualPi2Config { step_thresh: us(800), ramp: us(400), ..NO_PI };
    let dual = Bench::new(ramp, RATE).dual;
    for (waited, p) in [(800, 0.0), (900, 0.25), (1000, 0.5), (1200, 1.0), (5000, 1.0)] {
        assert_eq!(dual.native(us(waited)), p, "{waited}");
    }
    // Linux's step marks strictly above.
    let step = Bench::new(NO_PI, RATE).dual;
    assert_eq!((step.native(us(1000)), step.native(us(1001))), (0.0, 1.0));
}

/// At 12 Mbit/s a packet takes 1 ms: a step of 1 ms would mark all that meets another packet.
#[test]
fn the_step_is_two_packets_on_a_slow_link() {
    for (mbit, floor, step_us) in [(100, 2, 1000), (12, 2, 2018), (4, 2, 6056), (4, 1, 3028), (4, 0, 1000)] {
        let config = DualPi2Config { floor, ..NO_PI };
        let mut dual = Bench::new(config, Rate(mbit * 1_000_000)).dual;
        assert_eq!(dual.step.0 / 1_000_000, step_us, "{mbit} Mbit/s");
        dual.set_rate(RATE);
        assert_eq!(dual.step, Time::from_ms(1));
        dual.set_rate(Rate(0));
        assert_eq!(dual.step, if floor > 0 { DELAY_MAX } else { Time::from_ms(1) });
    }
}

/// Linux's credit of 10 and 90 percent.
#[test]
fn the_classic_queue_has_a_tenth_of_the_link_at_least() {
    let mut bench = Bench::new(NO_PI, RATE);
    for word in 0..100 {
        bench.push(Time::ZERO, packet(word, Ecn::Ect1));
        bench.push(Time::ZERO, packet(word, Ecn::NotEct));
    }
    let sent: Vec<bool> = (0..40).filter_map(|_| bench.take(Time::ZERO)).map(|p| p.ecn.is_l4s()).collect();
    let round = [[true; 9].as_slice(), &[false]].concat();
    assert_eq!(sent, round.repeat(4));
    // Lone packets of the L queue go first, as long as they have credit.
    let mut bench = Bench::new(NO_PI, RATE);
    for word in 0..100 {
        bench.push(Time::ZERO, packet(word, Ecn::NotEct));
    }
    for _ in 0..9 {
        bench.push(Time::ZERO, packet(7, Ecn::Ect1));
        assert!(bench.take(Time::ZERO).expect("one waits").ecn.is_l4s());
        assert!(!bench.take(Time::ZERO).expect("one waits").ecn.is_l4s());
    }
    bench.push(Time::ZERO, packet(7, Ecn::Ect1));
    assert!(!bench.take(Time::ZERO).expect("one waits").ecn.is_l4s());
}

#[test]
fn no_signal_of_the_controller_below_two_packets() {
    for (behind, drops) in [(3027, 0), (3028, 1)] {
        let mut bench = Bench::new(NO_PI, RATE).at(1.0);
        bench.dual.spread[C].hits(0.5);
        bench.push(Time::ZERO, packet(1, Ecn::NotEct));
        bench.push(Time::ZERO, Packet { bytes: behind, ..packet(2, Ecn::NotEct) });
        bench.take(Time::ZERO);
        assert_eq!(bench.dropped.len(), drops, "{behind}");
    }
}

/// The table of what happens at which p', for k = 2 (RFC 9332 section 2.5.1.1 and appendix A).
#[test]
fn each_kind_of_packet_gets_its_signal() {
    for p in [0.01, 0.1, 0.3, 0.49] {
        let bench = || Bench::new(NO_PI, RATE).at(p);
        close(bench().shares(Ecn::Ect1), (2.0 * p, 0.0));
        close(bench().shares(Ecn::Ect0), (p * p, 0.0));
        close(bench().shares(Ecn::NotEct), (0.0, p * p));
    }
    for p in [0.5, 0.6, 0.9] {
        let bench = || Bench::new(NO_PI, RATE).at(p);
        // Dropped like Classic packets; what is left is marked.
        close(bench().shares(Ecn::Ect0), (0.0, p * p));
        close(bench().shares(Ecn::NotEct), (0.0, p * p));
        let (marked, dropped) = bench().shares(Ecn::Ect1);
        close((dropped, marked), (p * p, 1.0 - p * p));
        assert_eq!(bench().shares(Ecn::Ce).0, 0.0);
    }
    let overflow = DualPi2Config { overload: Overload::Overflow, ..NO_PI };
    close(Bench::new(overflow, RATE).at(0.5).shares(Ecn::Ect1), (1.0, 0.0));
    close(Bench::new(overflow, RATE).at(0.5).shares(Ecn::Ect0), (0.25, 0.0));
    close(Bench::new(overflow, RATE).at(0.5).shares(Ecn::NotEct), (0.0, 0.25));
    let more = DualPi2Config { coupling_factor: 4, ..NO_PI };
    close(Bench::new(more, RATE).at(0.1).shares(Ecn::Ect1), (0.4, 0.0));
}

#[test]
fn the_limit_is_for_both_queues_together() {
    let mut bench = Bench::new(NO_PI, RATE);
    bench.limit = Limit { packets: 3, bytes: u64::MAX };
    let joins = [Ecn::Ect1, Ecn::NotEct, Ecn::NotEct, Ecn::Ect1, Ecn::NotEct]
        .map(|ecn| bench.push(Time::ZERO, packet(0, ecn)));
    assert_eq!(joins, [true, true, true, false, false]);
    assert_eq!(bench.dual.counts.each_ref().map(|counts| counts.drops), [1, 1]);
}

#[test]
fn the_older_head_drives_the_controller() {
    // 0.16 (0.030 - 0.015) + 3.2 (0.030 - 0)
    let config = DualPi2Config { beta: 3.2, ..NO_PI };
    for fields in [[Ecn::Ect1, Ecn::NotEct], [Ecn::NotEct, Ecn::Ect1]] {
        let mut bench = Bench::new(config, RATE);
        bench.push(Time::from_ms(2), packet(0, fields[0]));
        bench.push(Time::from_ms(20), packet(1, fields[1]));
        // At 16 ms the first has waited 14, at 32 ms 30.
        bench.dual.catch_up(Time::from_ms(33));
        let p = (0.16 * -0.001 + 3.2 * 0.014) + (0.16 * 0.015 + 3.2 * 0.016);
        assert!((bench.dual.pi.p() - p).abs() < 1e-9, "{}", bench.dual.pi.p());
    }
}

#[test]
fn impossible_parameters_are_refused() {
    let error = |config: DualPi2Config| config.check().unwrap_err().to_string();
    let says = [
        (DualPi2Config { coupling_factor: 0, ..NO_PI }, "DualPI2 needs coupling_factor from 1 to 255, got 0"),
        (DualPi2Config { c_protection: 100, ..NO_PI }, "DualPI2 needs c_protection from 1 to 99, got 100"),
        (
            DualPi2Config { step_thresh: Time::from_ms(15), ..NO_PI },
            "DualPI2 needs step_thresh below target, got 15ms and 15ms",
        ),
        (DualPi2Config { tupdate: Time::ZERO, ..NO_PI }, "PI2 needs tupdate above 0"),
        (DualPi2Config { beta: -1.0, ..NO_PI }, "PI2 needs beta of at least 0 and finite, got -1"),
    ];
    for (config, said) in says {
        assert_eq!(error(config), said);
    }
}

/// At 1/9 the sum of nine packets is not above 1 (RFC 9332 figure 7): the tenth is the first. Linux's integers, too.
#[test]
fn at_its_most_the_classic_queue_signals_no_packet_early() {
    let config = DualPi2Config { coupling_factor: 3, overload: Overload::Overflow, alpha: 1e3, ..NO_PI };
    let mut bench = Bench::new(config, RATE);
    for word in 0..4 {
        bench.push(Time::ZERO, packet(word, Ecn::NotEct));
    }
    bench.dual.catch_up(Time::from_s(1));
    let dropped = (1..=30).filter(|_| bench.dual.decide(C, Ecn::NotEct, Time::ZERO).is_none());
    assert_eq!(dropped.collect::<Vec<_>>(), [10, 19, 28]);
}
