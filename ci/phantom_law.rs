//! Phantom's end host (Afek, Mansour, Ostfeld, SIGCOMM 1996). laws/cards/phantom.md.

use lfn_header::phantom::Phantom as PhantomHeader;
use lfn_header::Header;

use super::rcp::Segment;
use super::{grow_unanswered, Episode};
use crate::{Ack, Config, Control, Law, Loss, ACK_DUP, PARAMETERS, RouterLaw};

#[derive(Debug)]
struct Phantom {
    episode: Episode,
    rtt_s: f64,
    segment: Segment,
}

/// The law `phantom`.
pub(crate) fn new(config: &Config, _values: &[f64; PARAMETERS], control: &mut Control) -> Box<dyn RouterLaw> {
    Box::new(Phantom { episode: Episode::none(control), rtt_s: 0.0, segment: Segment::new(config) })
}

impl RouterLaw for Phantom {
    fn header(&mut self, _control: &Control, wire_bytes: u32) -> Header {
        self.segment.on_wire = f64::from(wire_bytes);
        Header::Phantom(PhantomHeader { rate_bytes_per_s: f64::INFINITY })
    }

    fn on_header(&mut self, header: Header, control: &mut Control) {
        let Header::Phantom(PhantomHeader { rate_bytes_per_s: rate }) = header else { return };
        if rate.is_finite() {
            self.segment.send_at(rate, self.rtt_s, &self.episode, control);
        }
    }

    fn on_sample(&mut self, ack: &Ack, control: &mut Control) {
        self.rtt_s = ack.srtt_ns as f64 * 1e-9;
        if control.pacing_Bps == 0 && ack.flags & ACK_DUP == 0 && !self.episode.recovering {
            grow_unanswered(ack, control);
        }
    }
}

impl Law for Phantom {
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
