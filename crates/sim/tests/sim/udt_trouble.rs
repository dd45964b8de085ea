//! UDT on random paths that lose, copy, hold up and reorder packets, and are down for a while: every byte
//! arrives, no packet is lost by the engine, and the flow is back soon after the link is.
//!
//! `LFN_UDT_DRAWS` says how many, `LFN_SEED` which.

use crate::common::{drop_tail, dumbbell, run};
use lfn_path::{GilbertElliottConfig, JitterConfig, Reorder};
use lfn_sim::background::Direction;
use lfn_sim::config::{Change, Changed, Config, Impair, LinkId, Loss, RouteId, UdtConfig};
use lfn_sim::rng::Stream;
use lfn_units::{Rate, Time};

const CONTROLS: [&str; 8] = ["udt", "udt:4.10", "udt:3.0", "udt", "reno", "cubic", "scalable", "hybla"];
/// The longest run. On the worst paths UDT 3.0 needs 1000 s for what the link sends in ten.
const DURATION: Time = Time::from_s(3000);

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: {text:?}")))
}

struct Draw(Stream);

impl Draw {
    fn chance(&mut self, p: f64) -> bool {
        self.0.f64() < p
    }

    fn magnitude(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.0.f64())
    }

    /// Impairments of the path in one direction, or none.
    fn impair(&mut self, rtt_s: f64) -> Impair {
        let mut impair = Impair::default();
        if self.chance(0.4) {
            impair.loss = Loss::Bernoulli(self.magnitude(1e-4, 0.05));
        } else if self.chance(0.3) {
            let (p, r) = (self.magnitude(1e-4, 0.02), self.0.uniform(0.1, 0.9));
            impair.loss = GilbertElliottConfig { p, r, good: 0.0, bad: 1.0 }.into();
        }
        if self.chance(0.5) {
            let delay = Time::from_s_f64(rtt_s * self.0.uniform(0.05, 0.5));
            impair.reorder = Some(Reorder { p: self.magnitude(1e-3, 0.1), delay });
        }
        if self.chance(0.4) {
            impair.duplicate = self.magnitude(1e-3, 0.2);
        }
        if self.chance(0.2) {
            let high = Time::from_s_f64(rtt_s * self.0.uniform(0.01, 0.3));
            impair.jitter = Some(JitterConfig::uniform(Time::ZERO, high, self.chance(0.5)));
        }
        impair
    }
}

/// A transfer over a bad path, and when its link is down.
fn drawn(seed: u64, i: u64) -> (Config, Option<(Time, Time)>) {
    let mut draw = Draw(Stream::new(seed, &format!("udt.trouble[{i}]")));
    let rate_bps = draw.magnitude(1e6, 1e8);
    let rtt_s = draw.magnitude(2e-3, 0.4);
    let mut link = drop_tail(Rate(rate_bps as u64), draw.magnitude(5.0, 1000.0) as u64);
    link.impair = draw.impair(rtt_s);
    let control = CONTROLS[(draw.0.f64() * CONTROLS.len() as f64) as usize];
    let flow = UdtConfig {
        number: 0,
        stream: 0,
        control: control.parse().expect("a control"),
        direction: Direction::Forward,
        route: RouteId(0),
        ack_route: RouteId(1),
        rtt: Time::from_s_f64(rtt_s),
        start: Time::ZERO,
        stop: Time::NEVER,
        size_packets: (rate_bps / 8.0 / 1514.0 * draw.magnitude(0.01, 10.0)) as u64 + 1,
        mss_bytes: 1500,
        framing_bytes: 14,
        window_packets: draw.magnitude(32.0, 1e5) as u32,
        seed: draw.0.u64(),
    };
    let mut config =
        Config { udt: vec![flow], sample: Some(Time::from_ms(100)), ..dumbbell(link, Vec::new(), DURATION) };
    config.links[1] = drop_tail(Rate((rate_bps * draw.magnitude(0.1, 1.0)) as u64), 1000);
    let outage = draw.chance(0.6).then(|| {
        let down = 2.0 + 3.0 * rtt_s + draw.0.uniform(0.0, 8.0);
        (Time::from_s_f64(down), Time::from_s_f64(down + draw.magnitude(0.1, 40.0)))
    });
    if let Some((down, up)) = outage {
        let links: &[u16] = if draw.chance(0.5) { &[0] } else { &[0, 1] };
        let change = |at, up: bool| {
            links.iter().map(move |&link| Change {
                at,
                what: Changed::Rate(LinkId(link), Rate(if up { rate_bps as u64 } else { 0 })),
            })
        };
        config.changes = change(down, false).chain(change(up, true)).collect();
    }
    (config, outage)
}

#[test]
fn every_byte_arrives_and_outages_end() {
    let (draws, seed) = (number("LFN_UDT_DRAWS", 40), number("LFN_SEED", 1));
    println!("LFN_UDT_DRAWS={draws} LFN_SEED={seed}");
    for i in 0..draws {
        let (config, outage) = drawn(seed, i);
        let wanted = &config.udt[0];
        let outcome = run(&config);
        let flow = &outcome.summary.flows[0];
        let case = || format!("draw {i}: {outage:?} {wanted:?}\n{:?}\n{flow:?}", config.links[0]);
        let bytes = wanted.size_packets * u64::from(wanted.payload_bytes());
        assert!(flow.completion_s.is_some() && flow.delivered_bytes == bytes, "{}", case());
        let Some((_, up)) = outage.filter(|&(_, up)| up.as_s() < flow.completion_s.unwrap_or(0.0)) else {
            continue;
        };
        // Something more is acknowledged within 5 s and five round trips of the link's return.
        let table = &outcome.tables.flows;
        let within_s = up.as_s() + 5.0 + 5.0 * wanted.rtt.as_s();
        let at = |t_s: f64| table.t_s.partition_point(|&t| t <= t_s).max(1) - 1;
        let (before, after) = (table.delivered_bytes[at(up.as_s())], table.delivered_bytes[at(within_s)]);
        assert!(after > before || flow.completion_s < Some(within_s), "silent after the outage, {}", case());
    }
}
