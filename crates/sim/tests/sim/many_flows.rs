//! A hundred flows of 40 to 200 ms at 1 Gbit/s beside ns-2.35, 60 s.
//!
//! A drop-tail queue locks flows to the times at which packets leave it, so who loses depends on RTTs in
//! units of a packet's time (12 us). Each of four runs therefore adds another fraction of a packet's time
//! to each RTT. ns-2 had the same RTTs, starts every 100 ms, ssthresh of 100 and access links without
//! serialisation.

use crate::common::{drop_tail, dumbbell, ns2_flow, rate, run};
use lfn_sim::config::FlowConfig;
use lfn_sim::Outcome;
use lfn_tcp::Reduction;
use lfn_units::Time;

const FLOWS: u64 = 100;
const RUNS: u64 = 4;
const PACKET_NS: f64 = 12_000.0;

/// Results of four runs after 20 s: mean packets dropped, mean Jain's index of goodputs, sums of the rest.
struct Measured {
    drops: f64,
    jain: f64,
    timeouts: u64,
    undos: u64,
}

fn rtt(flow: u64, shift: u64) -> Time {
    let fraction = (flow as f64 * 0.618_033_988_749_895 + shift as f64 / RUNS as f64).fract();
    Time::from_ns((40e6 + 160e6 * flow as f64 / (FLOWS - 1) as f64 + fraction * PACKET_NS).round() as u64)
}

fn hundred_flows(law: &str, reduction: Reduction, shift: u64) -> Outcome {
    let flows = (0..FLOWS)
        .map(|i| {
            let mut flow = ns2_flow(law, rtt(i, shift));
            flow.sender.initial_ssthresh_segments = Some(100);
            flow.sender.reduction = reduction;
            FlowConfig { start: Time::from_ms(100 * i), ..flow }
        })
        .collect();
    let mut config = dumbbell(drop_tail(rate("1Gbit/s"), 4999), flows, Time::from_s(60));
    config.links[1] = drop_tail(rate("1Tbit/s"), 1_000_000);
    config.warmup = Time::from_s(20);
    run(&config)
}

fn measure(law: &str, reduction: Reduction) -> Measured {
    let runs: Vec<Outcome> = (0..RUNS).map(|shift| hundred_flows(law, reduction, shift)).collect();
    let mean = |of: &dyn Fn(&Outcome) -> f64| runs.iter().map(of).sum::<f64>() / RUNS as f64;
    let count =
        |of: fn(&lfn_sim::FlowSummary) -> u64| runs.iter().flat_map(|r| &r.summary.flows).map(of).sum();
    let measured = Measured {
        drops: mean(&|run| run.summary.links[0].drops as f64),
        jain: mean(&|run| run.summary.jain.expect("several flows")),
        timeouts: count(|flow| flow.timeouts),
        undos: count(|flow| flow.undos),
    };
    println!(
        "{law}: {} drops, Jain {:.3}, {} timeouts, {} undos",
        measured.drops, measured.jain, measured.timeouts, measured.undos
    );
    measured
}

/// ns-2's four runs: mean packets dropped after 20 s, mean Jain's index.
fn agrees(ours: &Measured, drops: f64, jain: f64) {
    assert!((ours.drops / drops - 1.0).abs() <= 0.1, "{} drops, {drops} in ns-2", ours.drops);
    assert!((ours.jain - jain).abs() <= 0.1, "Jain's index {}, {jain} in ns-2", ours.jain);
}

/// ns-2's Sack1 agent with RFC 3649: 3598, 4031, 3982 and 3441 drops; Jain 0.682, 0.482, 0.667, 0.715; 1, 1,
/// 0 and 2 timeouts. With a clock of 0.1 ms in place of 10 ms ns-2 has 700 of them in a run.
#[test]
fn sack1_drops_as_much_and_hardly_times_out() {
    let ours = measure("hstcp:ns2", Reduction::Immediate);
    agrees(&ours, 3763.0, 0.637);
    assert!(ours.timeouts <= 8, "{} timeouts", ours.timeouts);
    assert_eq!(ours.undos, 0, "ns-2 takes nothing back");
}

/// ns-2's TCP-Linux agent with H-TCP, least timeout 1 s: 15106, 13003, 13869 and 12996 drops; Jain 0.853,
/// 0.745, 0.839, 0.843. Unlike Sack1 it lowers the window gradually, and a hundred flows show that: cut at
/// once, as `compat = "ns2"` has it, they drop 1.6 times as much.
#[test]
fn tcp_linux_lowers_the_window_gradually() {
    agrees(&measure("htcp:ns2", Reduction::Prr), 13744.0, 0.820);
    let at_once = measure("htcp:ns2", Reduction::Immediate);
    assert!(at_once.drops > 1.4 * 13744.0, "{} drops", at_once.drops);
}
