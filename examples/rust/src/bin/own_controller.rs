//! A congestion controller of a QUIC stack in the simulator: an adapter makes a law of a trait with the shape of quinn's
//! and neqo's controllers (bytes, an ACK, a congestion event, a window). The law then competes with CUBIC.

use std::path::Path;

use lfn_law::{
    Ack, BoxedLaw, Build, Control, Controller, Law, LawSpec, Loss, LossKind, Prototype, Rate, SlowStartKind,
    Window, ACK_CWND_LIMITED,
};
use lfn_scenario::{Outside, Scenario};
use lfn_sim::Sim;

/// Your controller: NewReno, which gives up only a fifth of its window at a loss.
struct Gentle {
    window: u64,
    ssthresh: u64,
}

const MSS: u64 = 1448;

impl Gentle {
    fn on_ack(&mut self, bytes: u64, app_limited: bool) {
        let is_starting = self.window < self.ssthresh;
        if !app_limited {
            self.window += if is_starting { bytes } else { MSS * bytes / self.window };
        }
    }

    fn on_congestion_event(&mut self, is_persistent: bool) {
        self.ssthresh = (self.window * 4 / 5).max(2 * MSS);
        self.window = if is_persistent { 2 * MSS } else { self.ssthresh };
    }
}

/// The adapter. Loss detection and retransmission stay those of lfn-tcp.
struct Adapter(Gentle);

impl Law for Adapter {
    fn on_loss(&mut self, loss: &Loss, control: &mut Control) {
        self.0.on_congestion_event(loss.kind == LossKind::Rto);
        control.cwnd = Window::of(self.0.window as f64 / MSS as f64);
    }
}

impl Controller for Adapter {
    fn on_control(&mut self, ack: &Ack, _: &Rate, control: &mut Control) -> u32 {
        self.0.on_ack(u64::from(ack.newly_delivered) * MSS, ack.flags & ACK_CWND_LIMITED == 0);
        control.cwnd = Window::of(self.0.window as f64 / MSS as f64);
        0
    }
}

/// Finds the law that the scenario calls `gentle`; the registry knows the others.
struct Mine;

impl Outside for Mine {
    fn find_law(&self, text: &str, _: &Path) -> Option<Result<LawSpec, String>> {
        let gentle = Prototype {
            name: "gentle".into(),
            source: "00000001".into(), // tells versions of your code apart in results
            slow_start: SlowStartKind::None,
            probes: Vec::new(),
            build: Some(Build::Law(Box::new(|_, _| {
                let gentle = Gentle { window: 10 * MSS, ssthresh: u64::MAX };
                BoxedLaw::Controller(Box::new(Adapter(gentle))).into()
            }))),
            is_stack: false,
        };
        (text == "gentle").then(|| Ok(gentle.into()))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = r#"
schema = 1
duration = "60s"
warmup = "20s"
[link]
rate = "50Mbit/s"
[[flow]]
law = "gentle"
rtt = "40ms"
[[flow]]
law = "cubic"
rtt = "40ms"
start = "1s"
"#;
    let scenario = Scenario::parse_with(text, "duel", Some(1 << 30), &Mine)?;
    let mut sim = Sim::new(&scenario.config(1))?;
    sim.run_until(sim.duration());
    for flow in sim.finish()?.summary.flows {
        println!("{:18} {:5.2} Mbit/s", flow.law, flow.goodput_bps.unwrap_or_default() / 1e6);
    }
    Ok(())
}
