//! Recording of packets as they arrive at a link, are dropped there, and leave it. It alters nothing: the
//! hash of a run is the same without it.

use lfn_units::Time;

use super::Traveller;
use crate::config;
use crate::tables::{PacketClass, PacketRow, PacketTable, Point};
use crate::traffic::Direction;
use crate::transit::{Blocks, Cargo, Parcel};

pub(super) struct Capture {
    /// Whether a link is recorded, by its place.
    links: Vec<bool>,
    from: Time,
    to: Time,
    max_rows: u64,
    /// Rows that there would have been without a limit.
    pub rows: u64,
    table: PacketTable,
}

impl Capture {
    pub fn new(config: &config::Capture, links: usize) -> Capture {
        let mut wanted = vec![false; links];
        for &link in &config.links {
            wanted[usize::from(link)] = true;
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

    pub fn records(&self, link: usize) -> bool {
        self.links[link]
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

    pub fn arrives(&mut self, at: Time, link: usize, who: &Traveller, parcel: Parcel, blocks: &Blocks) {
        self.record(Point::Arrived, at, link, who, parcel, blocks);
    }

    pub fn dropped(&mut self, at: Time, link: usize, who: &Traveller, parcel: Parcel, blocks: &Blocks) {
        self.record(Point::Dropped, at, link, who, parcel, blocks);
    }

    pub fn departs(&mut self, at: Time, link: usize, who: &Traveller, parcel: Parcel, blocks: &Blocks) {
        self.record(Point::Left, at, link, who, parcel, blocks);
    }

    fn record(
        &mut self,
        point: Point,
        at: Time,
        link: usize,
        who: &Traveller,
        parcel: Parcel,
        blocks: &Blocks,
    ) {
        if !self.links[link] || at < self.from || at >= self.to {
            return;
        }
        self.rows += 1;
        if self.rows > self.max_rows {
            return;
        }
        let blocks = if who.cargo == Cargo::Ack { &blocks[..parcel.blocks()] } else { &[] };
        let block = |n: usize| blocks.get(n).copied().unwrap_or_default();
        let [first, second, third] = [block(0), block(1), block(2)];
        self.table.push(PacketRow {
            t_ps: at.0,
            link: link as u16,
            point,
            flow: who.number,
            kind: match who.cargo {
                Cargo::Data => PacketClass::Data,
                Cargo::Ack => PacketClass::Ack,
                Cargo::Udp => PacketClass::Udp,
                Cargo::UdtData => PacketClass::UdtData,
                Cargo::UdtControl => PacketClass::UdtControl,
                Cargo::Syn if parcel.is_third() => PacketClass::HandshakeAck,
                Cargo::Syn => PacketClass::Syn,
                Cargo::SynAck => PacketClass::SynAck,
            },
            direction: if who.reverse { Direction::Reverse } else { Direction::Forward },
            seq: who.seq,
            bytes: who.bytes,
            payload_bytes: who.payload_bytes,
            flags: match who.cargo {
                Cargo::Data | Cargo::UdtData => parcel.data_flags(),
                Cargo::Ack => parcel.ack_flags(),
                Cargo::Udp | Cargo::UdtControl | Cargo::Syn | Cargo::SynAck => 0,
            },
            sack1_start: first.start,
            sack1_end: first.end,
            sack2_start: second.start,
            sack2_end: second.end,
            sack3_start: third.start,
            sack3_end: third.end,
        });
    }
}
