//! A window and a rate that someone sets from outside, in the place of a law.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use crate::{Ack, BoxedLaw, Build, Control, Controller, Law, Loss, Prototype, Rate, SlowStartKind, Window};

/// Window and rate that a sender takes from its next congestion event or its handshake on. A change in between needs
/// `lfn_tcp::Sender::steer_to` besides.
#[derive(Debug)]
pub struct Hand {
    cwnd_q32: AtomicU64,
    pacing_bytes_per_s: AtomicU64,
}

impl Hand {
    /// The name of the law in scenarios that are read for it.
    pub const NAME: &'static str = "steered";

    /// A window, without pacing.
    pub fn new(cwnd: Window) -> Hand {
        Hand { cwnd_q32: AtomicU64::new(cwnd.q32()), pacing_bytes_per_s: AtomicU64::new(0) }
    }

    /// Window, and pacing rate in bytes of payload a second; 0: the ACK clock alone.
    pub fn set(&self, cwnd: Window, pacing_bytes_per_s: u64) {
        self.cwnd_q32.store(cwnd.q32(), Relaxed);
        self.pacing_bytes_per_s.store(pacing_bytes_per_s, Relaxed);
    }

    /// Lets a sender obey it.
    pub fn apply(&self, control: &mut Control) {
        control.cwnd = Window::from_q32(self.cwnd_q32.load(Relaxed));
        control.pacing_Bps = self.pacing_bytes_per_s.load(Relaxed);
    }

    /// The law of connections that obey it.
    pub fn law(self: &Arc<Hand>) -> Prototype {
        let hand = Arc::clone(self);
        let build = move |_: &crate::Config, control: &mut Control| {
            hand.apply(control);
            BoxedLaw::Controller(Box::new(Steered(Arc::clone(&hand)))).into()
        };
        Prototype {
            name: Hand::NAME.into(),
            source: "00000000".into(),
            slow_start: SlowStartKind::None,
            probes: Vec::new(),
            build: Some(Build::Law(Box::new(build))),
            is_stack: false,
        }
    }
}

struct Steered(Arc<Hand>);

impl Law for Steered {
    fn on_loss(&mut self, _loss: &Loss, control: &mut Control) {
        self.0.apply(control);
    }

    fn on_open(&mut self, _ack: &Ack, control: &mut Control) {
        self.0.apply(control);
    }

    fn on_undo(&mut self, control: &mut Control) {
        self.0.apply(control);
    }
}

impl Controller for Steered {
    fn on_control(&mut self, _ack: &Ack, _rate: &Rate, _control: &mut Control) -> u32 {
        0
    }

    fn samples_rates(&self) -> bool {
        false
    }
}
