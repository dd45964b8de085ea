//! SACK blocks, headers and fates of packets in queues, where departures are not known at arrival.

use std::collections::BTreeSet;

use crate::clock::packet::{Class, Extras, Hop, Packet, Routed};
use crate::memory::tree_bytes;

/// SACK blocks or a header, which few packets have, and the fate of such a packet.
#[derive(Default)]
struct Kept {
    extras: Extras,
    lost: bool,
}

/// The second word of a packet in a queue: its hop, and the number of its extras in `kept`, or a serial number if it may be
/// lost and has no extras, or nothing.
const KEPT_SHIFT: u32 = Hop::BITS;
const NOTHING: u64 = u64::MAX >> KEPT_SHIFT;
/// Serial numbers begin here.
const SERIAL: u64 = NOTHING / 2 + 1;

/// All packets that wait.
#[derive(Default)]
pub(crate) struct Waiting {
    kept: Vec<Kept>,
    /// Numbers in `kept` that are not in use.
    free: Vec<u32>,
    /// The next serial number, and those of packets that are lost behind their queue.
    serial: u64,
    lost: BTreeSet<u64>,
    /// Packets that a queue dropped during one call.
    pub dropped: Vec<lfn_path::Packet>,
    /// Data packets, and others.
    pub data: u64,
    pub acks: u64,
}

/// A packet that waited.
pub(crate) struct Waited {
    pub routed: Routed,
    /// It is lost behind the queue. Nothing waits for it, so that a flow is done at the same time
    /// whatever the server.
    pub lost: bool,
}

impl Waiting {
    /// The words of a packet that waits from now on. If `may_be_lost`, [`Waiting::lose`] may follow.
    #[inline]
    pub fn put(&mut self, routed: Routed, extras: &Extras, may_be_lost: bool) -> [u64; 2] {
        let Routed { hop, packet } = routed;
        *self.count(hop.class()) += 1;
        let kept = if packet.blocks() > 0 || !extras.header.is_none() {
            self.keep(extras)
        } else if may_be_lost {
            self.serial = (self.serial + 1) % (NOTHING - SERIAL);
            SERIAL + self.serial
        } else {
            NOTHING
        };
        [packet.word(), hop.word() | (kept << KEPT_SHIFT)]
    }

    fn keep(&mut self, extras: &Extras) -> u64 {
        let kept = Kept { extras: *extras, lost: false };
        let number = match self.free.pop() {
            Some(number) => {
                self.kept[number as usize] = kept;
                u64::from(number)
            }
            None => {
                self.kept.push(kept);
                self.kept.len() as u64 - 1
            }
        };
        // 20 GB of them would come before.
        assert!(number < SERIAL, "too many packets with SACK blocks or headers in queues");
        number
    }

    /// A packet that waits, by its words, will be lost behind the queue.
    pub fn lose(&mut self, [_, more]: [u64; 2]) {
        let number = more >> KEPT_SHIFT;
        if number >= SERIAL {
            self.lost.insert(number);
        } else if let Some(kept) = self.kept.get_mut(number as usize) {
            kept.lost = true;
        }
    }

    /// The packet of these words, which no longer waits. `extras`, the default before, become those of the packet.
    #[inline]
    pub fn take(&mut self, [word, more]: [u64; 2], extras: &mut Extras) -> Waited {
        let hop = Hop::of_word(more);
        *self.count(hop.class()) -= 1;
        let routed = Routed { hop, packet: Packet::of_word(word) };
        let number = more >> KEPT_SHIFT;
        if number >= SERIAL {
            let lost = number != NOTHING && self.lost.remove(&number);
            return Waited { routed, lost };
        }
        self.free.push(number as u32);
        let kept = &self.kept[number as usize];
        *extras = kept.extras;
        Waited { routed, lost: kept.lost }
    }

    #[inline]
    fn count(&mut self, class: Class) -> &mut u64 {
        if class.is_data() {
            &mut self.data
        } else {
            &mut self.acks
        }
    }

    pub fn memory_bytes(&self) -> usize {
        let lists = self.kept.capacity() * size_of::<Kept>() + self.free.capacity() * size_of::<u32>();
        let dropped = self.dropped.capacity() * size_of::<lfn_path::Packet>();
        lists + dropped + tree_bytes::<u64>(self.lost.len())
    }
}

#[cfg(test)]
mod tests {
    use lfn_header::xcp::Xcp;
    use lfn_header::Header;

    use super::*;
    use crate::clock::ids::{FlowId, RouteId};

    #[test]
    fn packets_come_back_with_what_is_theirs_and_their_places_are_used_again() {
        let mut waiting = Waiting::default();
        let xcp = Xcp { gap_s: 1e-3, rtt_s: 0.1, delta_bytes_per_s: 0.0 };
        let headed = Extras { header: Header::Xcp(xcp), ..Extras::default() };
        let bare = Extras::default();
        for class in Class::ALL {
            let hop = Hop::new(class, RouteId(u16::MAX), 3);
            let routed = |flow| Routed { hop, packet: Packet::of_udp(FlowId::new(flow), 0) };
            let words: Vec<[u64; 2]> = (0..100)
                .map(|n| waiting.put(routed(n), if n % 3 == 0 { &headed } else { &bare }, n == 7 || n == 9))
                .collect();
            assert_eq!(waiting.data + waiting.acks, 100);
            waiting.lose(words[7]);
            waiting.lose(words[9]);
            for (n, words) in (0..).zip(words) {
                let mut extras = Extras::default();
                let waited = waiting.take(words, &mut extras);
                let lost = n == 7 || n == 9;
                assert_eq!((waited.routed.packet.flow(), waited.lost), (FlowId::new(n), lost), "{class:?}");
                assert_eq!(waited.routed.hop, hop);
                assert_eq!(extras.header.is_none(), n % 3 != 0, "{class:?}: {n}");
            }
        }
        assert_eq!((waiting.data, waiting.acks, waiting.kept.len(), waiting.lost.len()), (0, 0, 34, 0));
    }
}
