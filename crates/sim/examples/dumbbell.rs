//! One dumbbell from the command line, for profiling the engine without Python.
//!
//! `cargo run --release -p lfn-sim --example dumbbell -- LAW FLOWS RATE RTT BUFFER_PACKETS DURATION [linux|ns2] [closed|event] [LEVEL] [none|vcp|xcp|rcp|jetmax]`

use lfn_law::LawSpec;
use lfn_path::{JetMaxConfig, RcpConfig, RouterConfig, VcpConfig, XcpConfig};
use lfn_sim::background;
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
    let flows = (0..count).map(|i| {
        let rtt = Time(rtt.0 + if count > 1 { rtt.0 / 100 * (i as u64 % 10) / 10 } else { 0 });
        let flow =
            FlowConfig { start: Time::from_us(1370 * i as u64), ..FlowConfig::linux(law.clone(), rtt) };
        if !ns2 {
            return flow;
        }
        let ssthresh = Some(4000 / count as u32 + 10);
        FlowConfig {
            payload_bytes: 1460,
            wire_bytes: 1500,
            sender: SenderConfig { initial_ssthresh_segments: ssthresh, ..SenderConfig::ns2(1460) },
            receiver: ReceiverConfig::ns2(rtt),
            ..flow
        }
    });
    let link = LinkConfig { event_mode, router, ..LinkConfig::drop_tail("", rate, limit_packets) };
    let mut config = Config::dumbbell(link, flows.collect(), duration);
    if level > 0 {
        config.background = Some(Background {
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
        });
    }
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
