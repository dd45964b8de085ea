//! A scenario drawn at random from all that a scenario can be, small enough to be run.

use std::fmt::Write;

use lfn_law::{registry, LawInfo};
use lfn_sim::rng::Stream;

struct Draw(Stream);

impl Draw {
    fn chance(&mut self, p: f64) -> bool {
        self.0.f64() < p
    }

    /// Each magnitude is as likely as any other.
    fn magnitude(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.0.f64())
    }

    /// As long as can be run, but never so short that nothing comes of it.
    fn duration_s(&mut self, rtt_s: f64, affordable_s: f64) -> f64 {
        let wanted_s = (rtt_s * self.magnitude(10.0, 500.0)).clamp(1.0, 200.0);
        wanted_s.min(affordable_s.max(8.0 * rtt_s))
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.0.f64() * of.len() as f64) as usize]
    }
}

/// Draw `number` of a series, about as long as `most_packets` take.
pub fn scenario(seed: u64, number: u64, most_packets: f64) -> String {
    let mut draw = Draw(Stream::new(seed, &format!("memory[{number}]")));
    let rate_bps = draw.magnitude(1e6, 1e11).round();
    let rtt_s = draw.magnitude(1e-3, 1.0);
    let packet_bytes = draw.one_of(&[1500.0, 1500.0, 1500.0, 9000.0, 576.0]);
    let duration_s = draw.duration_s(rtt_s, 0.5 * most_packets * 8.0 * packet_bytes / rate_bps);
    let mut text =
        format!("schema = 1\nduration = \"{:.0}us\"\nseed = {}\n", duration_s * 1e6 + 1.0, 1 + number % 7);
    let rows = draw.magnitude(10.0, 3e4);
    let sample =
        if draw.chance(0.3) { "off".into() } else { format!("{:.0}us", 1.0 + 1e6 * duration_s / rows) };
    let compat = if draw.chance(0.2) { "ns2" } else { "linux" };
    writeln!(text, "sample = \"{sample}\"\ncompat = \"{compat}\"").unwrap();
    let router = draw.one_of(&["", "", "", "", "", "vcp", "xcp", "rcp", "jetmax"]);
    let hops = link(&mut draw, &mut text, rate_bps, router);
    let groups = 1 + (draw.0.f64() * draw.0.f64() * 5.0) as u64;
    for _ in 0..groups {
        flow(&mut draw, &mut text, rtt_s, packet_bytes, duration_s, router);
    }
    others(&mut draw, &mut text, rate_bps, duration_s, hops);
    text
}

/// The links; how many hops.
fn link(draw: &mut Draw, text: &mut String, rate_bps: f64, router: &str) -> u64 {
    let hops = if draw.chance(0.2) { 1 + (draw.0.f64() * 4.0) as u64 } else { 0 };
    match hops {
        0 => writeln!(text, "[link]\nrate = \"{rate_bps}bit/s\""),
        _ => writeln!(text, "[parking-lot]\nhops = {hops}\nrate = \"{rate_bps}bit/s\""),
    }
    .unwrap();
    let size = if draw.chance(0.7) {
        format!("{:.3}bdp", draw.magnitude(0.01, 5.0))
    } else {
        format!("{:.0} packets", draw.magnitude(3.0, 2000.0))
    };
    let kind =
        draw.one_of(&["drop-tail", "drop-tail", "drop-tail", "drop-head", "red", "codel", "fq-codel", "pie"]);
    writeln!(text, "queue = {{ kind = \"{kind}\", size = \"{size}\" }}").unwrap();
    if !router.is_empty() {
        writeln!(text, "router = {{ kind = \"{router}\" }}").unwrap();
    }
    for (p, line) in [
        (0.3, format!("loss = {:.6}", draw.magnitude(1e-5, 0.05))),
        (0.1, format!("duplicate = {:.4}", draw.magnitude(1e-4, 0.1))),
        (0.1, format!("reorder = {{ p = {:.4}, delay = \"3ms\" }}", draw.magnitude(1e-3, 0.2))),
        (0.1, format!("jitter = {{ high = \"{:.0}us\" }}", draw.magnitude(10.0, 1e4))),
        (0.1, "mode = \"event\"".into()),
    ] {
        if draw.chance(p) {
            writeln!(text, "{line}").unwrap();
        }
    }
    if draw.chance(0.2) {
        let table = if hops == 0 { "link" } else { "parking-lot" };
        let reverse = rate_bps * draw.magnitude(0.005, 1.0);
        writeln!(text, "[{table}.reverse]\nrate = \"{:.0}bit/s\"", reverse.max(1e5)).unwrap();
    }
    hops
}

/// The laws that run where routers speak this protocol.
fn laws_beside(router: &str) -> Vec<&'static LawInfo> {
    let is_answered = |law: &LawInfo| (router == "vcp") == (law.name.ends_with("vcp")) && !router.is_empty();
    let runs = |law: &&LawInfo| !law.is_udt() && (law.family != "router" || is_answered(law));
    registry().iter().filter(runs).collect()
}

fn flow(draw: &mut Draw, text: &mut String, rtt_s: f64, packet_bytes: f64, duration_s: f64, router: &str) {
    let info = draw.one_of(&laws_beside(router));
    let variant = draw.one_of(info.variants);
    let rtt_us = 1e6 * rtt_s * draw.magnitude(0.5, 1.0) + 1.0;
    let udt = draw.chance(0.15) && info.family != "router" && info.family != "rate";
    let law = match udt && draw.chance(0.5) {
        true => "udt".into(),
        false => format!("{}:{variant}", info.name),
    };
    writeln!(text, "[[flow]]\nlaw = \"{law}\"\nrtt = \"{rtt_us:.0}us\"\npacket = \"{packet_bytes}B\"")
        .unwrap();
    if udt {
        writeln!(text, "transport = \"udt\"").unwrap();
    }
    let count = if draw.chance(0.5) { 1.0 } else { draw.magnitude(1.0, 100.0).round() };
    for (p, line) in [
        (1.0, format!("count = {count}")),
        (0.1, "parallel = 4".into()),
        (0.3, format!("start = \"uniform(0us, {:.0}us)\"", duration_s * 5e5 + 1.0)),
        (0.2, format!("size = \"{:.0}B\"", draw.magnitude(1e3, 1e10))),
        (0.1, format!("receive_window = \"{:.0} packets\"", draw.magnitude(40.0, 1e5))),
    ] {
        if draw.chance(p) {
            writeln!(text, "{line}").unwrap();
        }
    }
    for (p, line) in [
        (0.15, "sack = false"),
        (0.1, "delayed_ack = false"),
        (0.1, "pacing = true"),
        (0.1, "send_buffer = \"linux\""),
        (0.1, "initial_window = \"1000 packets\""),
    ] {
        if draw.chance(p) && !udt {
            writeln!(text, "{line}").unwrap();
        }
    }
}

/// Background, traffic, UDP, changes, a recording.
fn others(draw: &mut Draw, text: &mut String, rate_bps: f64, duration_s: f64, hops: u64) {
    let forward = if hops == 0 { "forward" } else { "hop1" };
    if draw.chance(0.15) {
        writeln!(
            text,
            "[background]\nlevel = {}\nlong_flows = {}",
            draw.one_of(&[1, 2, 3]),
            draw.one_of(&[0, 5])
        )
        .unwrap();
    }
    if draw.chance(0.15) && rate_bps < 1e9 {
        let load = format!("{:.0}bit/s", rate_bps * draw.magnitude(0.05, 1.3));
        let model = match (draw.0.f64() * 4.0) as u32 {
            0 => format!("short_flows = {{ load = \"{load}\" }}"),
            1 => format!("requests = {{ load = \"{load}\" }}"),
            2 => format!("packmime = {{ connections = {:.0} }}", (rate_bps / 3e5).max(1.0)),
            _ => format!("surge = {{ users = {:.0} }}", (rate_bps / 1e5).max(1.0)),
        };
        let rtt = draw.magnitude(0.05, 0.5) * 1e3;
        writeln!(text, "[[traffic]]\nrtt = \"{rtt:.0}ms\"\n{model}").unwrap();
    }
    if draw.chance(0.1) {
        let rate = rate_bps * draw.magnitude(0.01, 1.5);
        writeln!(text, "[[udp]]\nbursts = [{{ rate = \"{rate:.0}bit/s\" }}]").unwrap();
    }
    if draw.chance(0.2) {
        let at = duration_s * 1e6;
        let what = match (draw.0.f64() * 4.0) as u32 {
            0 => "down = true".into(),
            1 => format!("rate = \"{:.0}bit/s\"", rate_bps * draw.magnitude(0.1, 2.0)),
            2 => format!("delay = \"{:.0}us\"", draw.magnitude(100.0, 1e5)),
            _ => "loss = 0.2".into(),
        };
        writeln!(text, "[[schedule]]\nat = \"{:.0}us\"\nlink = \"{forward}\"\n{what}", at * 0.3).unwrap();
        if what == "down = true" {
            writeln!(text, "[[schedule]]\nat = \"{:.0}us\"\nlink = \"{forward}\"\ndown = false", at * 0.6)
                .unwrap();
        }
    }
    if draw.chance(0.1) {
        writeln!(text, "[capture]\nlinks = [\"{forward}\"]\nmax_rows = {:.0}", draw.magnitude(10.0, 1e6))
            .unwrap();
    }
}
