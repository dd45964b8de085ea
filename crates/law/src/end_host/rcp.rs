//! RCP's end host (Dukkipati, Kobayashi, Zhang-Shen, McKeown, IWQoS 2005). laws/cards/rcp.md.

use lfn_header::rcp::Rcp as RcpHeader;
use lfn_header::Header;

use super::{grow_unanswered, set_cwnd, Episode};
use crate::{Ack, Config, Control, Law, Loss, RouterLaw, Window, ACK_DUP, PARAMETERS};

/// Window as a multiple of rate times RTT, so that the rate is the limit.
const WINDOW_ROUNDS: f64 = 2.0;

#[derive(Debug)]
struct Rcp {
    episode: Episode,
    rtt_s: f64,
    segment: Segment,
}

/// The law `rcp`.
pub(crate) fn new(config: &Config, _values: &[f64; PARAMETERS], control: &mut Control) -> Box<dyn RouterLaw> {
    Box::new(Rcp { episode: Episode::none(control), rtt_s: 0.0, segment: Segment::new(config) })
}

/// Bytes of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    payload: f64,
    pub(super) on_wire: f64,
}

impl Segment {
    /// Known on the wire when the first one leaves.
    pub(super) fn new(config: &Config) -> Segment {
        let payload = f64::from(config.mss_B).max(1.0);
        Segment { payload, on_wire: payload }
    }

    /// Sends at a rate, bytes on the wire per second, of at least one of payload; the window only bounds
    /// what a broken path swallows, and is the sender's while a loss is repaired.
    pub(super) fn send_at(self, rate: f64, rtt_s: f64, episode: &Episode, control: &mut Control) {
        control.pacing_Bps = (rate * self.payload / self.on_wire).max(1.0) as u64;
        if episode.recovering {
            return;
        }
        if rtt_s > 0.0 {
            set_cwnd(control, (WINDOW_ROUNDS * rate * rtt_s / self.on_wire).max(2.0));
        } else {
            control.cwnd = Window::MAX;
        }
    }
}

impl RouterLaw for Rcp {
    fn header(&mut self, _control: &Control, wire_bytes: u32) -> Header {
        self.segment.on_wire = f64::from(wire_bytes);
        Header::Rcp(RcpHeader { rate_bytes_per_s: f64::INFINITY, rtt_s: self.rtt_s })
    }

    /// A rate counts at once, also that of a handshake.
    fn on_header(&mut self, header: Header, control: &mut Control) {
        let Header::Rcp(RcpHeader { rate_bytes_per_s: rate, .. }) = header else { return };
        if rate.is_finite() {
            self.segment.send_at(rate, self.rtt_s, &self.episode, control);
        } else {
            control.pacing_Bps = 0;
        }
    }

    fn on_sample(&mut self, ack: &Ack, control: &mut Control) {
        self.rtt_s = ack.srtt_ns as f64 * 1e-9;
        if control.pacing_Bps == 0 && ack.flags & ACK_DUP == 0 && !self.episode.recovering {
            grow_unanswered(ack, control);
        }
    }
}

impl Law for Rcp {
    /// Routers know of the load: a loss is repaired, and changes no rate. Without them it halves.
    fn on_loss(&mut self, loss: &Loss, control: &mut Control) {
        self.episode.begin(loss, control);
        if control.pacing_Bps != 0 {
            control.ssthresh =
                if self.episode.recovering { control.cwnd.max(Window::MIN_SSTHRESH) } else { Window::ONE };
        }
    }

    fn on_open(&mut self, _ack: &Ack, control: &mut Control) {
        self.episode.end(control);
    }

    fn on_undo(&mut self, control: &mut Control) {
        self.episode.end(control);
    }
}
