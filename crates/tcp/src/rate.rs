//! Delivery-rate samples (draft-ietf-ccwg-bbr, section "Delivery Rate Samples"), for laws that steer by
//! them. No other law pays for them.

use lfn_law::{Rate, RATE_APP_LIMITED};
use lfn_units::Time;

/// What is remembered of a segment in flight: the counters when it was last sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    at: Time,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    lost: u64,
    in_flight: u32,
    app_limited: bool,
}

/// The counters of a connection, and what they were when each segment in flight was sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateSampler {
    /// By segment number modulo capacity.
    sent: Vec<Sent>,
    delivered: u64,
    /// When the latest delivery was heard of.
    delivered_at: Time,
    /// When the newest segment that is known to be delivered was sent.
    first_sent: Time,
    lost: u64,
    /// What is sent counts as app-limited until more than this is delivered.
    app_limited_until: Option<u64>,
    /// In flight since the last event.
    in_flight: u32,
}

impl RateSampler {
    /// Segment `seq` leaves; the window is `una..nxt`, and `in_flight` counts the segment. Whether the
    /// connection was idle for want of data.
    pub fn on_sent(&mut self, seq: u64, una: u64, nxt: u64, in_flight: u64, now: Time) -> bool {
        let idle = nxt - una == 1;
        if idle {
            self.first_sent = now;
            self.delivered_at = now;
        }
        if nxt - una > self.sent.len() as u64 {
            self.grow(una, nxt);
        }
        self.in_flight = in_flight as u32;
        let at = self.at(seq);
        self.sent[at] = Sent {
            at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost: self.lost,
            in_flight: self.in_flight,
            app_limited: self.app_limited_until.is_some(),
        };
        idle && self.app_limited_until.is_some()
    }

    fn at(&self, seq: u64) -> usize {
        (seq & (self.sent.len() as u64 - 1)) as usize
    }

    #[cold]
    fn grow(&mut self, una: u64, nxt: u64) {
        let old = std::mem::take(&mut self.sent);
        self.sent = vec![Sent::default(); (nxt - una).next_power_of_two().max(16) as usize];
        for seq in una..nxt.min(una + old.len() as u64) {
            let at = self.at(seq);
            self.sent[at] = old[(seq & (old.len() as u64 - 1)) as usize];
        }
    }

    /// What is sent from now on, until all that is in flight is delivered, says nothing of the path.
    pub fn mark_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = Some(self.delivered + in_flight);
    }

    fn rate_of(&self, p: &Sent) -> Rate {
        Rate {
            delivered: self.delivered,
            prior_delivered: p.delivered,
            lost: self.lost,
            prior_lost: p.lost,
            tx_in_flight: p.in_flight,
            prior_inflight: self.in_flight,
            flags: if p.app_limited { RATE_APP_LIMITED } else { 0 },
            ..Rate::default()
        }
    }

    /// One more segment, `seq`, is lost.
    pub fn on_lost(&mut self, seq: u64) -> Rate {
        self.lost += 1;
        self.rate_of(&self.sent[self.at(seq)])
    }

    /// An ACK delivered segments up to a total of `delivered`; `newest` is the one of them that was sent
    /// last, if there is any. After the ACK, `in_flight` are left.
    pub fn on_ack(
        &mut self,
        delivered: u64,
        newest: Option<u64>,
        in_flight: u64,
        min_rtt: Time,
        now: Time,
    ) -> Rate {
        self.delivered = delivered;
        let mut rate =
            Rate { prior_delivered: delivered, prior_lost: self.lost, ..self.rate_of(&Sent::default()) };
        if let Some(seq) = newest {
            let p = self.sent[self.at(seq)];
            self.first_sent = p.at;
            self.delivered_at = now;
            rate = self.rate_of(&p);
            // The longer of the two: neither a burst of ACKs nor one of segments shows a rate too high.
            let interval = (p.at - p.first_sent).max(now - p.delivered_at);
            // Shorter than any RTT: the ACK is of the original, P is the copy.
            if interval >= min_rtt {
                rate.interval_ns = interval.as_ns();
            }
        }
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        self.in_flight = in_flight as u32;
        rate
    }

    /// Bytes of memory that grow with the window.
    pub fn memory_bytes(&self) -> usize {
        self.sent.capacity() * std::mem::size_of::<Sent>()
    }
}
