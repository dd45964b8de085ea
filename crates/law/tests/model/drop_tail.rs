//! Cycles over a full drop-tail queue, as measured on real senders: Linux 6.12 in virtual time, and
//! ns-2.35's TCP-Linux.
//!
//! The path is a fluid: RTT = max(base, cwnd/rate), ACKs at the rate of the link. A loss is noticed
//! one RTT after the queue overflows, and repaired in another. Real senders take a little longer.

use crate::Rig;

struct Path {
    rate_pps: f64,
    base_s: f64,
    buffer: f64,
    segments_per_ack: u32,
}

impl Path {
    fn rtt_s(&self, w: f64) -> f64 {
        (w / self.rate_pps).max(self.base_s)
    }

    /// Lets `rig` send for one ACK; returns the time.
    fn ack(&self, rig: &mut Rig) -> f64 {
        let rtt_s = self.rtt_s(rig.cwnd());
        let time_s = f64::from(self.segments_per_ack) * rtt_s / rig.cwnd();
        rig.ack.now_ns += (time_s * 1e9) as u64;
        rig.ack.rtt_ns = (rtt_s * 1e9) as u64;
        rig.ack.srtt_ns = rig.ack.rtt_ns;
        rig.ack(self.segments_per_ack);
        time_s
    }

    /// Seconds from loss to loss, and the window after, of two cycles in a row; the shorter first.
    fn cycles(&self, spec: &str) -> [(f64, f64); 2] {
        let mut rig = Rig::new(spec, (self.rate_pps * self.base_s * 0.9).floor());
        let full = self.rate_pps * self.base_s + self.buffer;
        let mut cycle = || {
            let mut period_s = 0.0;
            while rig.cwnd() <= full + 1.0 {
                period_s += self.ack(&mut rig);
            }
            let noticed_s = period_s + self.rtt_s(rig.cwnd());
            while period_s < noticed_s {
                period_s += self.ack(&mut rig);
            }
            let repair_s = self.rtt_s(rig.cwnd());
            rig.lose();
            rig.ack.now_ns += (repair_s * 1e9) as u64;
            (period_s + repair_s, rig.cwnd())
        };
        for _ in 0..6 {
            cycle();
        }
        let mut two = [cycle(), cycle()];
        two.sort_by(|a, b| a.0.total_cmp(&b.0));
        two
    }
}

#[test]
fn bic_and_cubic_alternate_as_measured() {
    // 100 Mbit/s of 1514-byte packets, 200 Mbit/s and 1 Gbit/s of 1500; base RTT 100 ms.
    let linux = Path { rate_pps: 8256.0, base_s: 0.1, buffer: 833.0, segments_per_ack: 2 };
    let ns2 = Path { rate_pps: 16_667.0, base_s: 0.1, buffer: 1667.0, segments_per_ack: 1 };
    let ns2_fast = Path { rate_pps: 83_333.0, base_s: 0.1, buffer: 8333.0, segments_per_ack: 1 };
    let measured = [
        ("bic:linux", &linux, [(2.4, 1336.0), (8.3, 1352.0)]),
        ("cubic:linux", &linux, [(7.9, 1163.0), (17.7, 1173.0)]),
        ("bic:ns2", &ns2, [(4.4, 2675.0), (10.5, 2690.0)]),
        ("cubic:ns2", &ns2, [(8.6, 2668.0), (19.3, 2683.0)]),
        ("cubic:ns2", &ns2_fast, [(16.6, 13_333.0), (34.8, 13_354.0)]),
    ];
    for (spec, path, cycles) in measured {
        // A round trip for repair, and the traces are sampled every 0.1 s.
        let bound_s = path.base_s + path.buffer / path.rate_pps + 0.1;
        for (found, wanted) in path.cycles(spec).into_iter().zip(cycles) {
            assert!((found.0 - wanted.0).abs() < bound_s, "{spec}: {} s, not {}", found.0, wanted.0);
            assert!((found.1 - wanted.1).abs() <= 2.0, "{spec}: to {}, not {}", found.1, wanted.1);
        }
    }
}
