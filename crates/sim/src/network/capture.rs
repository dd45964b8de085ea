//! Recording of packets as they arrive at a link, are dropped there, leave it, and reach the host behind the last
//! link of their route. It alters nothing: the hash of a run is the same without it.

use lfn_header::Header;
use lfn_units::Time;

use crate::clock::ids::LinkId;
use crate::clock::packet::{Class, Extras, Packet, PacketView};
use crate::config;
use crate::tables::{PacketClass, PacketRow, PacketTable, Point};
use crate::traffic::Direction;

/// Flag of a packet that arrives at the first link of its route: it leaves its host.
const LEAVES_HOST: u8 = 32;

pub(crate) struct Capture {
    /// Whether a link is recorded, by its place.
    links: Vec<bool>,
    from: Time,
    to: Time,
    max_rows: u64,
    /// Rows that there would have been without a limit.
    pub rows: u64,
    table: PacketTable,
}

/// AccECN's three bits as recorded: 4 ECE, 8 CWR, 128 AE.
fn ace_flags(ace: u8) -> u8 {
    (ace & 0b11) << 2 | (ace & 0b100) << 5
}

impl Capture {
    pub fn new(config: &config::Capture, links: usize) -> Capture {
        let mut wanted = vec![false; links];
        for &link in &config.links {
            wanted[link.index()] = true;
        }
        Capture {
            links: wanted,
            from: config.from,
            to: config.to,
            max_rows: config.max_rows,
            rows: 0,
            table: PacketTable::default(),
        }
    }

    pub fn records(&self, link: LinkId) -> bool {
        self.links[link.index()]
    }

    pub fn memory_bytes(&self) -> usize {
        self.table.memory_bytes()
    }

    /// The recorded packets, in order of time.
    pub fn into_table(mut self) -> PacketTable {
        // A link that is only a delay has told of departures when packets arrived.
        self.table.sort();
        self.table
    }

    /// A packet arrives at a link, the first of its route or a later one.
    pub fn arrives(
        &mut self,
        at: Time,
        link: LinkId,
        is_first: bool,
        view: &PacketView,
        packet: Packet,
        extras: &Extras,
    ) {
        let recorded = self.record(Point::Arrived, at, link, view, packet, extras);
        if let (true, true, Some(flags)) = (recorded, is_first, self.table.flags.last_mut()) {
            *flags |= LEAVES_HOST;
        }
    }

    pub fn dropped(&mut self, at: Time, link: LinkId, view: &PacketView, packet: Packet, extras: &Extras) {
        self.record(Point::Dropped, at, link, view, packet, extras);
    }

    pub fn departs(&mut self, at: Time, link: LinkId, view: &PacketView, packet: Packet, extras: &Extras) {
        self.record(Point::Left, at, link, view, packet, extras);
    }

    /// A packet reaches its host, behind the last link of its route.
    pub fn received(&mut self, at: Time, link: LinkId, view: &PacketView, packet: Packet, extras: &Extras) {
        self.record(Point::Received, at, link, view, packet, extras);
    }

    /// Adds a row, if it is wanted and there is room.
    fn record(
        &mut self,
        point: Point,
        at: Time,
        link: LinkId,
        view: &PacketView,
        packet: Packet,
        extras: &Extras,
    ) -> bool {
        if !self.links[link.index()] || at < self.from || at >= self.to {
            return false;
        }
        self.rows += 1;
        if self.rows > self.max_rows {
            return false;
        }
        let blocks = if view.class == Class::Ack { &extras.blocks[..packet.blocks()] } else { &[] };
        let block = |n: usize| blocks.get(n).copied().unwrap_or_default();
        let [first, second, third] = [block(0), block(1), block(2)];
        self.table.push(PacketRow {
            t_ps: at.0,
            link: link.0,
            point,
            flow: view.number,
            kind: match view.class {
                Class::Data => PacketClass::Data,
                Class::Ack => PacketClass::Ack,
                Class::Udp | Class::Datagram => PacketClass::Udp,
                Class::UdtData => PacketClass::UdtData,
                Class::UdtControl => PacketClass::UdtControl,
                Class::Syn if packet.is_third() => PacketClass::HandshakeAck,
                Class::Syn => PacketClass::Syn,
                Class::SynAck => PacketClass::SynAck,
            },
            direction: if view.reverse { Direction::Reverse } else { Direction::Forward },
            seq: view.seq,
            bytes: view.bytes,
            payload_bytes: view.payload_bytes,
            flags: match (view.class, &extras.header) {
                (Class::Ack | Class::Syn | Class::SynAck, Header::Accurate(told)) => ace_flags(told.ace),
                (Class::Data | Class::UdtData, _) => packet.data_flags() | u8::from(view.l4s) << 6,
                (Class::Ack, _) => packet.ack_flags(),
                (Class::Udp | Class::UdtControl | Class::Syn | Class::SynAck | Class::Datagram, _) => 0,
            },
            sack1_start: first.start,
            sack1_end: first.end,
            sack2_start: second.start,
            sack2_end: second.end,
            sack3_start: third.start,
            sack3_end: third.end,
        });
        true
    }
}
