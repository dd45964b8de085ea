//! Recording of packets as they arrive at a link, are dropped there, and leave it. It alters nothing: the
//! hash of a run is the same without it.

use lfn_units::Time;

use super::Traveller;
use crate::config;
use crate::tables::PacketTable;
use crate::transit::{Blocks, Cargo, Parcel};

const ARRIVES: u8 = 0;
const DROPPED: u8 = 1;
const DEPARTS: u8 = 2;

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

    /// What was recorded, in order of time.
    pub fn into_table(mut self) -> PacketTable {
        // A link that is only a delay has told of departures when packets arrived.
        self.table.sort();
        self.table
    }

    pub fn arrives(&mut self, at: Time, link: usize, who: &Traveller, parcel: Parcel, blocks: &Blocks) {
        self.record(ARRIVES, at, link, who, parcel, blocks);
    }

    pub fn dropped(&mut self, at: Time, link: usize, who: &Traveller, parcel: Parcel, blocks: &Blocks) {
        self.record(DROPPED, at, link, who, parcel, blocks);
    }

    pub fn departs(&mut self, at: Time, link: usize, who: &Traveller, parcel: Parcel, blocks: &Blocks) {
        self.record(DEPARTS, at, link, who, parcel, blocks);
    }

    fn record(&mut self, point: u8, at: Time, link: usize, who: &Traveller, parcel: Parcel, blocks: &Blocks) {
        if !self.links[link] || at < self.from || at >= self.to {
            return;
        }
        self.rows += 1;
        if self.rows > self.max_rows {
            return;
        }
        let table = &mut self.table;
        table.t_ps.push(at.0);
        table.link.push(link as u16);
        table.point.push(point);
        table.flow.push(who.number);
        table.kind.push(match who.cargo {
            Cargo::Data => 0,
            Cargo::Ack => 1,
            Cargo::Udp => 2,
            Cargo::UdtData => 3,
            Cargo::UdtControl => 4,
            Cargo::Syn if parcel.is_third() => 7,
            Cargo::Syn => 5,
            Cargo::SynAck => 6,
        });
        table.direction.push(u8::from(who.reverse));
        table.seq.push(who.seq);
        table.bytes.push(who.bytes);
        table.payload_bytes.push(who.payload_bytes);
        table.flags.push(match who.cargo {
            Cargo::Data | Cargo::UdtData => parcel.data_flags(),
            Cargo::Ack => parcel.ack_flags(),
            Cargo::Udp | Cargo::UdtControl | Cargo::Syn | Cargo::SynAck => 0,
        });
        let count = if who.cargo == Cargo::Ack { parcel.blocks() } else { 0 };
        for (n, columns) in [
            (&mut table.sack1_start, &mut table.sack1_end),
            (&mut table.sack2_start, &mut table.sack2_end),
            (&mut table.sack3_start, &mut table.sack3_end),
        ]
        .into_iter()
        .enumerate()
        {
            let (start, end) = columns;
            let block = if n < count { blocks[n] } else { lfn_tcp::Range::default() };
            start.push(block.start);
            end.push(block.end);
        }
    }
}
