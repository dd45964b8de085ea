//! No link sends more than it can, however short the interval and wherever it begins within a packet.

use crate::common::{drop_tail, dumbbell, linux_flow, run};
use lfn_sim::config::{Change, Changed, LinkId};
use lfn_units::{Rate, Time};

/// Rates at which a packet takes from 120 ms to 1.2 us.
const RATES_BPS: [u64; 5] = [100_000, 1_000_000, 33_333_333, 1_000_000_000, 10_000_000_000];

#[test]
fn no_interval_has_more_bits_than_the_link_can_send() {
    let mut busy = 0;
    for rate_bps in RATES_BPS {
        let packet_s = 1514.0 * 8.0 / rate_bps as f64;
        for (case, packets) in [1.5, 3.3, 10.7, 40.2, 100.9].into_iter().enumerate() {
            let rtt = Time::from_s_f64(packet_s * 4.0);
            let mut config =
                dumbbell(drop_tail(Rate(rate_bps), 50), vec![linux_flow("reno", rtt); 2], Time::ZERO);
            config.warmup = Time::from_s_f64(packet_s * (30.0 + 0.37 * case as f64));
            config.duration = config.warmup.after(Time::from_s_f64(packet_s * packets));
            config.sample = Some(Time::from_s_f64(packet_s * 0.7));
            config.links[0].event_mode = case % 2 == 0;
            if case == 3 {
                let change = |packets: f64, rate_bps: u64| Change {
                    at: config.warmup.after(Time::from_s_f64(packet_s * packets)),
                    what: Changed::Rate(LinkId(0), Rate(rate_bps)),
                };
                config.changes = vec![change(5.5, 0), change(9.1, rate_bps / 3), change(20.2, rate_bps)];
            }
            let outcome = run(&config);
            let link = &outcome.summary.links[0];
            assert!(
                link.utilization <= 1.0 + 1e-9,
                "{rate_bps} bit/s, {packets} packets: {}",
                link.utilization
            );
            busy += u32::from(link.utilization > 0.9999);
            let queues = &outcome.tables.queues;
            let own: Vec<usize> = (0..queues.t_s.len()).filter(|&row| queues.link[row] == 0).collect();
            for pair in own.windows(2).filter(|pair| queues.t_s[pair[0]] >= config.warmup.as_s()) {
                let sent = queues.sent_bytes[pair[1]] - queues.sent_bytes[pair[0]];
                let most = rate_bps as f64 / 8.0 * (queues.t_s[pair[1]] - queues.t_s[pair[0]]);
                assert!(sent as f64 <= most + 1.001, "{sent} bytes of {most}");
            }
        }
    }
    assert!(busy > 10, "only {busy} of 25 links were busy all the time");
}
