//! XCP's end host (Katabi, Handley, Rohrs, SIGCOMM 2002; draft-falk-xcp-spec-03). laws/cards/xcp.md.

use lfn_header::xcp::Xcp as XcpHeader;
use lfn_header::Header;

use super::{cwnd, grow_unanswered, set_cwnd, Episode};
use crate::{
    Ack, Config, Control, Law, Loss, RouterLaw, ACK_CWND_LIMITED, ACK_DUP, ACK_ROUND_START, PARAMETERS,
};

#[derive(Debug)]
struct Xcp {
    episode: Episode,
    /// Change of rate that the current ACK grants, bytes/s.
    told: Option<f64>,
    rtt_s: f64,
    /// A segment on the wire.
    wire_bytes: f64,
    /// The window is in use.
    limited: bool,
    /// It was, at some time in this round trip.
    limited_in_round: bool,
    /// Delivered up to the beginning of the round trip.
    round_delivered: u64,
}

/// The law `xcp`.
pub(crate) fn new(
    _config: &Config,
    _values: &[f64; PARAMETERS],
    control: &mut Control,
) -> Box<dyn RouterLaw> {
    Box::new(Xcp {
        episode: Episode::none(control),
        told: None,
        rtt_s: 0.0,
        wire_bytes: 0.0,
        limited: true,
        limited_in_round: true,
        round_delivered: 0,
    })
}

impl Xcp {
    /// A window that was not in use for a round trip comes halfway down to what was.
    fn age(&mut self, ack: &Ack, control: &mut Control) {
        let used = ack.delivered.saturating_sub(self.round_delivered) as f64;
        let window = cwnd(control);
        if !self.limited_in_round && used < window {
            set_cwnd(control, 0.5 * window + 0.5 * used);
        }
        self.round_delivered = ack.delivered;
        self.limited_in_round = false;
    }
}

impl RouterLaw for Xcp {
    /// Asks for all that there is, or for nothing while more would not be used.
    fn header(&mut self, control: &Control, wire_bytes: u32) -> Header {
        self.wire_bytes = f64::from(wire_bytes);
        Header::Xcp(XcpHeader {
            gap_s: self.rtt_s / cwnd(control),
            rtt_s: self.rtt_s,
            delta_bytes_per_s: if self.limited { f64::INFINITY } else { 0.0 },
        })
    }

    fn on_header(&mut self, header: Header, _control: &mut Control) {
        if let Header::Xcp(xcp) = header {
            self.told = Some(xcp.delta_bytes_per_s);
        }
    }

    fn on_sample(&mut self, ack: &Ack, control: &mut Control) {
        let told = self.told.take();
        self.rtt_s = ack.srtt_ns as f64 * 1e-9;
        self.limited = ack.flags & ACK_CWND_LIMITED != 0;
        self.limited_in_round |= self.limited;
        if ack.flags & ACK_DUP != 0 || self.episode.recovering {
            return;
        }
        if ack.flags & ACK_ROUND_START != 0 {
            self.age(ack, control);
        }
        match told {
            Some(delta) if delta.is_finite() => {
                let change = delta * self.rtt_s / self.wire_bytes.max(1.0);
                set_cwnd(control, cwnd(control) + change);
            }
            _ => grow_unanswered(ack, control),
        }
    }
}

impl Law for Xcp {
    fn on_loss(&mut self, loss: &Loss, control: &mut Control) {
        self.episode.begin(loss, control);
    }

    fn on_open(&mut self, _ack: &Ack, control: &mut Control) {
        self.episode.end(control);
    }

    fn on_undo(&mut self, control: &mut Control) {
        self.episode.end(control);
    }
}
