//! Delivery-rate samples (draft-ietf-ccwg-bbr, section "Delivery Rate Samples"), for laws that use them.
//! Other laws have no cost.

use lfn_law::{Packet, Rate, RATE_APP_LIMITED};
use lfn_units::Time;

/// Counters at the time when a segment in flight was last sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    at: Time,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    lost: u64,
    in_flight: u32,
    /// Transmissions before it, modulo 2^31, times 2; plus 1 if it is app-limited. So a segment takes 48 bytes.
    number_and_limit: u32,
}

impl Sent {
    fn is_app_limited(&self) -> bool {
        self.number_and_limit & 1 != 0
    }
}

/// The counters of a connection, now and at the departure of each segment in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct RateSampler {
    /// By segment number modulo capacity.
    sent: Vec<Sent>,
    delivered: u64,
    /// Time of the latest ACK that delivered a segment.
    delivered_at: Time,
    /// When the newest segment that is known to be delivered was sent.
    first_sent: Time,
    lost: u64,
    /// Samples are app-limited until more than this many segments are delivered; `None`: not app-limited.
    app_limited_until: Option<u64>,
    /// Segments in flight since the last event.
    in_flight: u32,
    /// Transmissions so far.
    transmissions: u64,
    /// Whether the law looks at each packet.
    pub watched: bool,
    /// It has seen the deliveries of plain ACKs below this segment.
    pub shown: u64,
}

/// The window as a segment that is sent leaves it.
pub(crate) struct Outstanding {
    /// The first segment that is not acknowledged.
    pub una: u64,
    /// The next new segment.
    pub nxt: u64,
    /// Segments in flight, with the one that is sent.
    pub in_flight: u64,
}

/// The segments that an ACK delivered, and the window after it.
pub(crate) struct Delivery {
    /// Segments delivered so far.
    pub total: u64,
    /// The segment delivered by this ACK that was sent last, if it delivered any.
    pub newest: Option<u64>,
    /// Segments in flight after it.
    pub in_flight: u64,
    pub min_rtt: Time,
}

impl RateSampler {
    /// `watched` if the law looks at each packet.
    pub fn new(watched: bool) -> RateSampler {
        RateSampler { watched, ..RateSampler::default() }
    }

    /// Segment `seq` is sent. Returns whether the connection was idle for lack of data.
    pub fn on_sent(&mut self, now: Time, seq: u64, window: &Outstanding) -> bool {
        let &Outstanding { una, nxt, in_flight } = window;
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
            number_and_limit: (self.transmissions as u32) << 1 | u32::from(self.app_limited_until.is_some()),
        };
        self.transmissions += 1;
        idle && self.app_limited_until.is_some()
    }

    fn at(&self, seq: u64) -> usize {
        (seq % self.sent.len() as u64) as usize
    }

    #[cold]
    fn grow(&mut self, una: u64, nxt: u64) {
        let old = std::mem::take(&mut self.sent);
        // Room for a quarter more: windows of laws with delivery rates are among the largest.
        let capacity = ((nxt - una) * 5 / 4).max(16);
        let first = una % capacity;
        // Each place is written once.
        let place = |at: u64| {
            let ahead = if at >= first { at - first } else { at + capacity - first };
            if ahead < old.len() as u64 {
                old[((una + ahead) % old.len() as u64) as usize]
            } else {
                Sent::default()
            }
        };
        self.sent = (0..capacity).map(place).collect();
    }

    /// Marks samples as app-limited until all segments in flight are delivered: their rate is not the path's.
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
            flags: if p.is_app_limited() { RATE_APP_LIMITED } else { 0 },
            ..Rate::default()
        }
    }

    /// One more segment, `seq`, is lost.
    pub fn on_lost(&mut self, seq: u64) -> Rate {
        self.lost += 1;
        self.rate_of(&self.sent[self.at(seq)])
    }

    /// The last transmission of segment `seq`, outstanding or just delivered.
    pub fn packet(&self, seq: u64) -> Packet {
        let sent = &self.sent[self.at(seq)];
        // At most 2^31 transmissions are in flight.
        let before = self.transmissions.wrapping_sub(u64::from(sent.number_and_limit >> 1)) & 0x7fff_ffff;
        Packet {
            number: self.transmissions - if before == 0 { 1 << 31 } else { before },
            sent_ns: sent.at.as_ns(),
            app_limited: sent.is_app_limited(),
        }
    }

    /// An ACK arrives.
    pub fn on_ack(&mut self, now: Time, delivery: &Delivery) -> Rate {
        let &Delivery { total: delivered, newest, in_flight, min_rtt } = delivery;
        if delivered > self.delivered {
            self.delivered_at = now;
        }
        self.delivered = delivered;
        let mut rate =
            Rate { prior_delivered: delivered, prior_lost: self.lost, ..self.rate_of(&Sent::default()) };
        if let Some(seq) = newest {
            let p = self.sent[self.at(seq)];
            self.first_sent = p.at;
            rate = self.rate_of(&p);
            // The longer interval: bursts of ACKs or of segments do not inflate the rate.
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

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Time = Time::from_ms(100);

    /// `count` segments from `seq` on, `gap` apart.
    fn send(sampler: &mut RateSampler, una: u64, seq: u64, count: u64, from: Time, gap: Time) -> bool {
        let mut idle = false;
        for i in 0..count {
            let nxt = seq + i + 1;
            let window = Outstanding { una, nxt, in_flight: nxt - una };
            idle |= sampler.on_sent(Time(from.0 + i * gap.0), seq + i, &window);
        }
        idle
    }

    /// The ACK of segment `newest`, the last of those delivered.
    fn ack(sampler: &mut RateSampler, now: Time, newest: u64, in_flight: u64, min_rtt: Time) -> Rate {
        sampler.on_ack(now, &Delivery { total: newest + 1, newest: Some(newest), in_flight, min_rtt })
    }

    #[test]
    fn a_rate_is_what_was_delivered_over_the_longer_interval() {
        let mut sampler = RateSampler::default();
        // Ten at once; their ACKs come 1 ms apart, from 100 ms on.
        send(&mut sampler, 0, 0, 10, Time::ZERO, Time::ZERO);
        let first = ack(&mut sampler, RTT, 0, 9, RTT);
        assert_eq!((first.delivered, first.prior_delivered, first.interval_ns), (1, 0, 100_000_000));
        assert_eq!((first.tx_in_flight, first.prior_inflight), (1, 10));
        for seq in 1..10 {
            ack(&mut sampler, Time::from_ms(100 + seq), seq, 9 - seq, RTT);
        }
        // Ten more, 20 ms apart, of which the ACKs come all at once: the sending takes longer.
        send(&mut sampler, 10, 10, 10, Time::from_ms(110), Time::from_ms(20));
        let burst = ack(&mut sampler, Time::from_ms(400), 19, 0, RTT);
        assert_eq!((burst.delivered, burst.prior_delivered), (20, 10));
        assert_eq!(burst.interval_ns, 290_000_000);
    }

    #[test]
    fn a_sample_shorter_than_any_rtt_is_none() {
        let mut sampler = RateSampler::default();
        send(&mut sampler, 0, 0, 1, Time::ZERO, Time::ZERO);
        // Sent again at 90 ms; the original's ACK comes at 100 ms.
        sampler.on_sent(Time::from_ms(90), 0, &Outstanding { una: 0, nxt: 2, in_flight: 1 });
        let rate = ack(&mut sampler, RTT, 0, 0, Time::from_ms(101));
        assert_eq!((rate.interval_ns, rate.delivered - rate.prior_delivered), (0, 1));
    }

    #[test]
    fn what_is_sent_for_want_of_data_is_marked_until_it_is_delivered() {
        let mut sampler = RateSampler::default();
        assert!(!send(&mut sampler, 0, 0, 2, Time::ZERO, Time::ZERO), "never idle before");
        sampler.mark_app_limited(2);
        send(&mut sampler, 0, 2, 1, Time::from_ms(1), Time::ZERO);
        let flags = |sampler: &mut RateSampler, seq: u64, ms: u64| {
            ack(sampler, Time::from_ms(ms), seq, 0, Time::ZERO).flags
        };
        assert_eq!(flags(&mut sampler, 1, 100), 0);
        assert_eq!(flags(&mut sampler, 2, 101), RATE_APP_LIMITED);
        sampler.mark_app_limited(0);
        assert!(send(&mut sampler, 3, 3, 1, Time::from_s(9), Time::ZERO), "idle for want of data");
    }

    #[test]
    fn losses_count_since_the_segment_left_and_growth_keeps_what_is_known() {
        let mut sampler = RateSampler::default();
        send(&mut sampler, 0, 0, 100, Time::ZERO, Time::from_ms(1));
        let lost = sampler.on_lost(40);
        assert_eq!((lost.lost, lost.prior_lost, lost.tx_in_flight), (1, 0, 41));
        send(&mut sampler, 0, 100, 1, Time::from_ms(100), Time::ZERO);
        let lost = sampler.on_lost(100);
        assert_eq!((lost.lost, lost.prior_lost, lost.tx_in_flight), (2, 1, 101));
    }
}
