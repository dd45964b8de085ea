//! JetMax's end host (Zhang, Leonard, Loguinov, INFOCOM 2006, of which only the abstract was available).
//! laws/cards/jetmax.md says what is from memory and what is ours.

use lfn_header::jetmax::JetMax as JetMaxHeader;
use lfn_header::Header;

use super::rcp::Segment;
use super::{cwnd, grow_unanswered, Episode};
use crate::{Ack, Config, Control, Law, Loss, RouterLaw, Window, ACK_DUP, PARAMETERS, PROBES};

/// Intervals until a router that has seen a packet of a flow tells a rate that counts the flow: the rest of
/// that interval, and a whole one.
const COUNTED_INTERVALS: u32 = 2;
/// Intervals in a row in which another link must name itself before it counts as the bottleneck.
const SWITCH_INTERVALS: u32 = 2;

#[derive(Debug)]
struct JetMax {
    tau: f64,
    episode: Episode,
    rtt_s: f64,
    segment: Segment,
    /// The rate, bytes/s; 0 before the first answer.
    rate: f64,
    bottleneck: u16,
    /// The bottleneck counts this flow, and does so from this interval on.
    counted: bool,
    counted_from: u32,
    /// Link and interval of the last answer.
    answered: (u16, u32),
    /// Another link that names itself, and for how many intervals it has.
    rival: (u16, u32),
}

/// The law `jetmax`; parameter: tau.
pub(crate) fn new(config: &Config, values: &[f64; PARAMETERS], control: &mut Control) -> Box<dyn RouterLaw> {
    Box::new(JetMax {
        tau: values[0],
        episode: Episode::none(control),
        rtt_s: 0.0,
        segment: Segment::new(config),
        rate: 0.0,
        bottleneck: 0,
        counted: false,
        counted_from: u32::MAX,
        answered: (0, 0),
        rival: (0, 0),
    })
}

impl JetMax {
    /// An answer of a link to a packet that named `named` as the bottleneck, while none counts this flow.
    fn join(&mut self, link: u16, interval: u32, named: u16) {
        if link != self.bottleneck {
            (self.bottleneck, self.counted_from) = (link, u32::MAX);
        }
        if named == link {
            self.counted_from = self.counted_from.min(interval.saturating_add(COUNTED_INTERVALS));
            self.counted = interval >= self.counted_from;
        }
    }

    /// A fair rate of a new interval: x(n+1) = x(n) - tau (x(n) - g).
    fn step(&mut self, link: u16, fair: f64) {
        if link != self.bottleneck {
            let intervals = if self.rival.0 == link { self.rival.1 + 1 } else { 1 };
            self.rival = (link, intervals);
            if intervals < SWITCH_INTERVALS {
                return;
            }
            self.bottleneck = link;
        }
        self.rival = (0, 0);
        self.rate -= self.tau * (self.rate - fair);
        // No fewer than one segment a second, so that its headers go on to ask.
        self.rate = self.rate.max(self.segment.on_wire);
    }
}

impl RouterLaw for JetMax {
    fn header(&mut self, control: &Control, wire_bytes: u32) -> Header {
        self.segment.on_wire = f64::from(wire_bytes);
        // The window binds while a loss is repaired: a flow that says more than it sends counts for less
        // than one, and others would be given its share.
        let of_window = self.rtt_s / cwnd(control);
        let gap_s = if self.rate > 0.0 { of_window.max(self.segment.on_wire / self.rate) } else { of_window };
        let (rate_bytes_per_s, bottleneck) = (f64::INFINITY, self.bottleneck);
        Header::JetMax(JetMaxHeader { gap_s, rate_bytes_per_s, interval: 0, link: 0, bottleneck })
    }

    fn on_header(&mut self, header: Header, control: &mut Control) {
        let Header::JetMax(JetMaxHeader { rate_bytes_per_s: fair, link, interval, bottleneck, .. }) = header
        else {
            return;
        };
        if !fair.is_finite() {
            return;
        }
        if !self.counted {
            self.join(link, interval, bottleneck);
        }
        // The fair rate of a link that does not count this flow yet belongs to other flows.
        if !self.counted || (link, interval) == self.answered {
            return;
        }
        self.answered = (link, interval);
        if self.rate == 0.0 && self.rtt_s > 0.0 {
            self.rate = cwnd(control) * self.segment.on_wire / self.rtt_s;
        }
        self.step(link, fair);
        self.segment.send_at(self.rate, self.rtt_s, &self.episode, control);
    }

    fn on_sample(&mut self, ack: &Ack, control: &mut Control) {
        self.rtt_s = ack.srtt_ns as f64 * 1e-9;
        if self.bottleneck == 0 && ack.flags & ACK_DUP == 0 && !self.episode.recovering {
            grow_unanswered(ack, control);
        }
    }
}

impl Law for JetMax {
    /// Routers know of the load: a loss is repaired, and changes no rate. Without them it halves.
    fn on_loss(&mut self, loss: &Loss, control: &mut Control) {
        self.episode.begin(loss, control);
        if self.rate > 0.0 {
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

    fn probe(&self, _control: &Control, out: &mut [u64; PROBES]) {
        out[0] = u64::from(self.bottleneck);
    }
}
