//! Packets of UDP that have a deadline: which of them come in time.

use std::collections::VecDeque;

use lfn_units::Time;

use super::delays::stamp;
use crate::summary::Frames;

/// Packets of a source that may still come in time, by their stamps.
#[derive(Clone, Debug)]
pub(crate) struct InTime {
    within: Time,
    /// Deadlines from then on count, to then.
    from: Time,
    to: Time,
    /// Oldest first: a stamp, and how many packets of it have not come.
    awaited: VecDeque<(u32, u32)>,
    frames: Frames,
}

impl InTime {
    /// Of packets that are to come `within` this time after they are sent.
    pub fn new(within: Time, from: Time, to: Time) -> InTime {
        InTime { within, from, to, awaited: VecDeque::new(), frames: Frames::default() }
    }

    /// A packet is sent.
    pub fn on_send(&mut self, now: Time) {
        let due = now.after(self.within);
        if due < self.from || due > self.to {
            return;
        }
        self.frames.due += 1;
        let (sent, most) = (stamp(now), self.within_us());
        while self.awaited.front().is_some_and(|&(first, _)| sent.wrapping_sub(first) > most) {
            self.awaited.pop_front();
        }
        match self.awaited.back_mut() {
            Some((last, count)) if *last == sent => *count += 1,
            _ => self.awaited.push_back((sent, 1)),
        }
    }

    /// A packet of this stamp arrives; a copy of one that came before does not count.
    pub fn on_arrival(&mut self, now: Time, sent: u32) {
        let now = stamp(now);
        let age = now.wrapping_sub(sent);
        if age > self.within_us() {
            return;
        }
        let at = self.awaited.partition_point(|&(other, _)| now.wrapping_sub(other) > age);
        if let Some((found, count)) = self.awaited.get_mut(at) {
            if *found == sent && *count > 0 {
                *count -= 1;
                self.frames.in_time += 1;
            }
        }
    }

    pub fn frames(&self) -> Frames {
        self.frames
    }

    fn within_us(&self) -> u32 {
        u32::try_from(self.within.as_ns() / 1000).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_packets_copies_and_what_is_due_outside_do_not_count() {
        // Stamps wrap at 4295 s.
        let zero = Time::from_s(4294);
        let ms = |n: u64| zero + Time::from_ms(n);
        let mut in_time = InTime::new(Time::from_ms(80), ms(100), ms(2000));
        // When each is sent, and when it comes and comes again. Due at 80, 100, 101, 1080, 1580, 2000 and 2001 ms.
        let packets: [(u64, &[u64]); 7] = [
            (0, &[40]),
            (20, &[100, 100]),
            (21, &[102]),
            (1000, &[1081]),
            (1500, &[1580, 1600]),
            (1920, &[1960]),
            (1921, &[1960]),
        ];
        let mut events: Vec<(u64, Option<u64>)> = packets.iter().map(|&(sent, _)| (sent, None)).collect();
        events.extend(packets.iter().flat_map(|&(sent, at)| at.iter().map(move |&at| (at, Some(sent)))));
        events.sort_unstable();
        for (at, sent) in events {
            match sent {
                None => in_time.on_send(ms(at)),
                Some(sent) => in_time.on_arrival(ms(at), stamp(ms(sent))),
            }
        }
        // In time: those of 20, 1500 and 1920 ms.
        assert_eq!(in_time.frames(), Frames { due: 5, in_time: 3 });
    }

    #[test]
    fn packets_of_one_microsecond_count_each() {
        let mut in_time = InTime::new(Time::from_ms(1), Time::ZERO, Time::from_s(1));
        let at = Time::from_ms(3);
        for ns in [0, 400, 800] {
            in_time.on_send(at + Time::from_ns(ns));
        }
        for _ in 0..3 {
            in_time.on_arrival(at + Time::from_ms(1), stamp(at));
        }
        in_time.on_arrival(at + Time::from_ms(1), stamp(at));
        assert_eq!(in_time.frames(), Frames { due: 3, in_time: 3 });
    }
}
