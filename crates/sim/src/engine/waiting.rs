//! Packets in queues whose departures are events.

use lfn_path::frugal;

use crate::packet::{Extras, Hop, Packet, Routed};

/// A packet that waits. Its SACK blocks and its header stand elsewhere: few packets have them.
struct Place {
    hop: Hop,
    packet: Packet,
    /// Where they stand, or [`NO_EXTRAS`].
    extras: u32,
    lost: bool,
}

const NO_EXTRAS: u32 = u32::MAX;

// Queues may hold millions.
const _: () = assert!(size_of::<Option<Place>>() == 24);

/// Values by numbers that are used again.
struct Slots<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots { values: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    fn put(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.values[number as usize] = Some(value);
                number
            }
            None => {
                frugal::push(&mut self.values, Some(value));
                self.values.len() as u32 - 1
            }
        }
    }

    fn take(&mut self, number: u32) -> Option<T> {
        let value = self.values.get_mut(number as usize)?.take()?;
        frugal::push(&mut self.free, number);
        Some(value)
    }

    fn memory_bytes(&self) -> usize {
        self.values.capacity() * size_of::<Option<T>>() + self.free.capacity() * size_of::<u32>()
    }
}

/// A packet that waited.
pub(super) struct Waited {
    pub routed: Routed,
    pub extras: Extras,
    /// It is lost behind the queue. Nothing waits for it, so that a flow is done at the same time
    /// whatever the server.
    pub lost: bool,
}

/// All packets that wait, by the words of their `lfn_path::Packet`s.
#[derive(Default)]
pub(super) struct Waiting {
    places: Slots<Place>,
    extras: Slots<Extras>,
}

impl Waiting {
    /// Keeps a packet; returns its word.
    pub fn put(&mut self, routed: Routed, extras: &Extras) -> u64 {
        let Routed { hop, packet } = routed;
        let has_extras = packet.blocks() > 0 || !extras.header.is_none();
        let extras = if has_extras { self.extras.put(*extras) } else { NO_EXTRAS };
        u64::from(self.places.put(Place { hop, packet, extras, lost: false }))
    }

    /// A packet that waits will be lost behind the queue.
    pub fn lose(&mut self, word: u64) {
        if let Some(Some(place)) = self.places.values.get_mut(word as usize) {
            place.lost = true;
        }
    }

    /// The packet of this word, which no longer waits.
    pub fn take(&mut self, word: u64) -> Option<Waited> {
        let Place { hop, packet, extras, lost } = self.places.take(word as u32)?;
        let extras = self.extras.take(extras).unwrap_or_default();
        Some(Waited { routed: Routed { hop, packet }, extras, lost })
    }

    /// Of all packets that wait.
    pub fn hops(&self) -> impl Iterator<Item = Hop> + '_ {
        self.places.values.iter().flatten().map(|place| place.hop)
    }

    pub fn memory_bytes(&self) -> usize {
        self.places.memory_bytes() + self.extras.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use lfn_header::xcp::Xcp;
    use lfn_header::Header;

    use super::*;
    use crate::ids::{FlowId, RouteId};
    use crate::packet::Class;

    #[test]
    fn packets_come_back_with_what_is_theirs_and_their_places_are_used_again() {
        let mut waiting = Waiting::default();
        let hop = Hop { class: Class::Data, route: RouteId(0), number: 3 };
        let routed = |flow| Routed { hop, packet: Packet::of_udp(FlowId::new(flow)) };
        let xcp = Xcp { gap_s: 1e-3, rtt_s: 0.1, delta_bytes_per_s: 0.0 };
        let headed = Extras { header: Header::Xcp(xcp), ..Extras::default() };
        let bare = Extras::default();
        for round in 0..3 {
            let words: Vec<u64> =
                (0..100).map(|n| waiting.put(routed(n), if n % 3 == 0 { &headed } else { &bare })).collect();
            waiting.lose(words[7]);
            for (n, word) in (0..).zip(words) {
                let waited = waiting.take(word).unwrap();
                assert_eq!((waited.routed.packet.flow(), waited.lost), (FlowId::new(n), n == 7), "{round}");
                assert_eq!(waited.extras.header.is_none(), n % 3 != 0, "{round}: {n}");
                assert!(waiting.take(word).is_none(), "it waits no longer");
            }
        }
        assert_eq!((waiting.places.values.len(), waiting.extras.values.len()), (100, 34));
    }
}
