//! One dumbbell from the command line, for profiling the engine without Python.
//!
//! `cargo run --release -p lfn-sim --example dumbbell -- LAW FLOWS RATE RTT BUFFER_PACKETS DURATION [linux|ns2] [closed|event] [LEVEL] [none|vcp|xcp|rcp|jetmax]`

use lfn_law::LawSpec;
use lfn_path::{JetMaxConfig, RcpConfig, RouterConfig, VcpConfig, XcpConfig};
use lfn_sim::background::{self, Direction};
use lfn_sim::config::{Background, Config, FlowConfig, LinkConfig, RouteId};
use lfn_sim::Sim;
use lfn_tcp::{ReceiverConfig, SenderConfig};
use lfn_units::{Rate, Time};

#[allow(clippy::too_many_lines, reason = "most are the fields of one configuration")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |i: usize, default: &str| args.get(i).cloned().unwrap_or_else(|| default.to_string());
    let law: LawSpec = arg(0, "cubic:linux").parse()?;
    let count: usize = arg(1, "1").parse()?;
    let rate: Rate = arg(2, "1Gbit/s").parse()?;
    let rtt: Time = arg(3, "100ms").parse()?;
    let limit_packets: u64 = arg(4, "8333").parse()?;
    let duration: Time = arg(5, "60s").parse()?;
    let ns2 = arg(6, "linux") == "ns2";
    let event_mode = arg(7, "closed") == "event";
    let level: u8 = arg(8, "0").parse()?;
    let router = match arg(9, "none").as_str() {
        "none" => None,
        "vcp" => Some(RouterConfig::Vcp(VcpConfig::default())),
        "xcp" => Some(RouterConfig::Xcp(XcpConfig::default())),
        "rcp" => Some(RouterConfig::Rcp(RcpConfig::default())),
        "jetmax" => Some(RouterConfig::JetMax(JetMaxConfig::default())),
        other => return Err(format!("no router {other:?}").into()),
    };
    let (payload_bytes, wire_bytes) = if ns2 { (1460, 1500) } else { (1448, 1514) };
    let sender = if ns2 {
        SenderConfig {
            initial_ssthresh_segments: Some(4000 / count as u32 + 10),
            ..SenderConfig::ns2(payload_bytes)
        }
    } else {
        SenderConfig::linux(payload_bytes, law.slow_start())
    };
    let link =
        |name: &str| LinkConfig { event_mode, router, ..LinkConfig::drop_tail(name, rate, limit_packets) };
    let flows = (0..count)
        .map(|i| {
            let rtt = Time(rtt.0 + if count > 1 { rtt.0 / 100 * (i as u64 % 10) / 10 } else { 0 });
            FlowConfig {
                stream: 0,
                law: law.clone(),
                direction: Direction::Forward,
                route: RouteId(0),
                ack_route: RouteId(1),
                rtt,
                law_seed: 0,
                start: Time::from_us(1370 * i as u64),
                stop: Time::NEVER,
                size_segments: u64::MAX,
                payload_bytes,
                wire_bytes,
                ack_bytes: 66,
                sender,
                receiver: if ns2 {
                    ReceiverConfig::ns2(rtt)
                } else {
                    ReceiverConfig::linux(rtt, payload_bytes)
                },
                application: None,
                misbehaves: None,
            }
        })
        .collect();
    let config = Config {
        seed: 1,
        duration,
        warmup: Time::ZERO,
        sample: None,
        links: vec![link("forward"), link("reverse")],
        routes: Config::dumbbell_routes(),
        flows,
        udp: Vec::new(),
        udt: Vec::new(),
        changes: Vec::new(),
        breakers: vec![],
        capture: None,
        traffic: Vec::new(),
        background: (level > 0)
            .then(|| -> Result<Background, Box<dyn std::error::Error>> {
                Ok(Background {
                    traffic: background::Config::level(level, rate).ok_or("no such level")?,
                    law: "reno".parse()?,
                    sender: SenderConfig {
                        initial_window_segments: 2,
                        ..SenderConfig::linux(1460, lfn_law::SlowStartKind::Classic)
                    },
                    receiver: ReceiverConfig::linux(rtt, 1460),
                    header_bytes: 40,
                    framing_bytes: 0,
                    routes: [RouteId(0), RouteId(1)],
                })
            })
            .transpose()?,
    };
    let mut sim = Sim::new(&config)?;
    sim.run_until(duration);
    let outcome = sim.finish()?;
    println!("{}", serde_json::to_string_pretty(&outcome.summary)?);
    let events = &outcome.tables.events;
    for i in 0..events.t_s.len().min(40) {
        println!(
            "{:10.4} flow {} kind {} cwnd {:.1} -> {:.1} ssthresh {:.1} lost {}",
            events.t_s[i],
            events.flow[i],
            events.kind[i],
            events.cwnd_before_seg[i],
            events.cwnd_after_seg[i],
            events.ssthresh_seg[i],
            events.lost[i]
        );
    }
    Ok(())
}
