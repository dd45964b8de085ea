//! TCP flows of packet captures (pcap, pcapng), in one pass and bounded memory: RTT, bytes in flight, segments sent
//! again and reordered ones, the receiver's window. Payload is never read.
//!
//! A capture shows a part of the round trip to each side: from the capture to the receiver and back (*ahead*), and
//! from the capture to the sender and back (*behind*), by the echo of timestamps. At the sender the first is all of it.

mod file;
mod packet;
mod ranges;
mod way;

use std::collections::BTreeMap;
use std::io::Read;

use packet::{End, Frame, Segment};
pub use way::Rtt;
use way::Way;

/// Connections that are followed at once; beyond it those with the least payload are given up.
const MOST_CONNECTIONS: usize = 20_000;
/// Rows of all flows; beyond it the step doubles.
const MOST_ROWS: usize = 150_000;
/// Records of packets in flight of all connections.
const MOST_KEPT: usize = 400_000;
/// Time in which a second SYN is a copy of the first.
const COPY_NS: u64 = 1_000_000;
/// Bytes between two calls of a progress function.
const PROGRESS_BYTES: u64 = 8 << 20;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It has no byte.
    #[error("it is empty; allowed: a capture of tcpdump or tshark")]
    Empty,
    /// It is something else.
    #[error("no pcap or pcapng file, or cut in its first block; allowed: a capture of tcpdump or tshark, also packed by gzip")]
    Foreign,
    /// Reading failed.
    #[error("it cannot be read to its end")]
    Unreadable,
    /// No packet is of a known link type.
    #[error(
        "link type {0}; allowed: Ethernet (1), raw IP (101, 228, 229), cooked (113, 276), loopback (0, 108)"
    )]
    Link(i32),
    /// No TCP data.
    #[error("{0} packets, and no TCP data among them")]
    NoData(u64),
    /// A part of it; what comes before is used.
    #[error("{0}")]
    Damaged(&'static str),
    /// The caller gave up.
    #[error("given up")]
    Stopped,
}

/// Where a capture was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// At the host that sends the data.
    Sender,
    /// At the host that receives them.
    Receiver,
    /// On the way.
    Between,
}

/// A sample of a flow.
#[derive(Clone, Debug)]
pub struct Row {
    /// Time since the first packet of the file.
    pub t_ns: u64,
    /// Bytes acknowledged.
    pub delivered: Option<u64>,
    /// As `delivered`, with what SACK blocks tell.
    pub arrived: Option<u64>,
    /// Bytes in flight from the capture on (RFC 6675).
    pub flight: Option<u64>,
    /// Bytes in flight when the sender sent what came last, by the echo of timestamps.
    pub echo_flight: Option<u64>,
    /// Window that the receiver offers; not scaled where the scale is not known.
    pub window: Option<u64>,
    /// Round trip from the capture to the receiver.
    pub ahead: Rtt,
    /// Round trip from the capture to the sender.
    pub behind: Rtt,
    /// Segments sent again.
    pub retransmits: u64,
    /// Segments that came out of order and were not sent again.
    pub reordered: u64,
    /// Packets that acknowledge the data.
    pub acks: u64,
    /// When the latest of them came, and the receiver's timestamp in it.
    pub ack_stamp: Option<(u64, u32)>,
    /// When the latest data came, and the sender's timestamp in it.
    pub data_stamp: Option<(u64, u32)>,
}

/// The data of one end of a connection.
#[derive(Debug)]
pub struct Flow {
    /// Address and port of the sender of the data.
    pub sender: String,
    /// And of the receiver.
    pub receiver: String,
    /// Whether the sender of the data opened the connection, or sent first where that is not seen.
    pub is_forward: bool,
    /// Where the capture seems to be.
    pub at: Option<At>,
    /// Whether SYN and SYN-ACK are in the file.
    pub has_handshake: bool,
    /// Whether the scale of the receiver's window is known.
    pub has_scale: bool,
    /// Bytes of a full segment.
    pub segment: Option<u32>,
    /// Payload seen, copies left out.
    pub payload: u64,
    /// Bytes that were acknowledged, and are not in the file.
    pub unseen: u64,
    /// Packets that are in the file twice.
    pub copies: u64,
    /// Time of the first data, and of the last packet.
    pub first_ns: u64,
    /// Time of its last packet.
    pub last_ns: u64,
    /// Its samples.
    pub rows: Vec<Row>,
}

/// The TCP flows of a capture.
#[derive(Debug, Default)]
pub struct Capture {
    /// The flows, the first to send first.
    pub flows: Vec<Flow>,
    /// Packets in the file.
    pub packets: u64,
    /// Those that are not TCP over IP, or fragments.
    pub others: u64,
    /// TCP with less than a header captured.
    pub short: u64,
    /// Packets without a time.
    pub untimed: u64,
    /// Packets before the one that precedes them.
    pub backwards: u64,
    /// Connections that were not followed, since there are so many.
    pub given_up: u64,
    /// Packets that the capture dropped, where the file tells.
    pub dropped: Option<u64>,
    /// Bytes read.
    pub bytes: u64,
    /// Why the rest of the file is not read.
    pub stopped: Option<&'static str>,
    /// Time between two samples.
    pub step_ns: u64,
}

#[derive(Debug, Default)]
struct Connection {
    /// The end that opened it, or that sent first, and the other.
    ends: Option<[End; 2]>,
    ways: [Way; 2],
    /// Window scales of SYN and SYN-ACK, and when they came.
    scales: [Option<Option<u8>>; 2],
    mss: [Option<u16>; 2],
    has_stamps: bool,
    syn_ns: Option<u64>,
    syn_ack_ns: Option<u64>,
    is_shaken: bool,
}

/// Reads a capture.
///
/// # Arguments
/// * `file`: its bytes.
/// * `step_ns`: time between two samples of a flow; more where there would be very many.
/// * `progress`: called with the bytes read now and then; false ends it.
///
/// # Errors
/// The file is no capture, or has no TCP data.
pub fn read(
    file: impl Read + Send,
    step_ns: u64,
    mut progress: impl FnMut(u64) -> bool,
) -> Result<Capture, Error> {
    let mut tracker =
        Tracker { found: Capture { step_ns: step_ns.max(1), ..Capture::default() }, ..Tracker::default() };
    let mut next = PROGRESS_BYTES;
    let about = file::frames(file, |frame, bytes| {
        if bytes >= next {
            next = bytes + PROGRESS_BYTES;
            if !progress(bytes) {
                return Err(Error::Stopped);
            }
        }
        tracker.take(&frame);
        Ok(())
    })?;
    let mut found = tracker.finish()?;
    (found.dropped, found.bytes, found.stopped) = (about.dropped, about.bytes, about.stopped);
    Ok(found)
}

#[derive(Default)]
struct Tracker {
    found: Capture,
    connections: Vec<Connection>,
    /// By both ends, the smaller first.
    places: BTreeMap<[End; 2], usize>,
    /// The one of the last packet.
    last: Option<([End; 2], usize)>,
    begin_ns: Option<u64>,
    now_ns: u64,
    rows: usize,
    kept: usize,
    unknown_link: Option<i32>,
    known: bool,
}

impl Tracker {
    fn take(&mut self, frame: &file::Captured<'_>) {
        self.found.packets += 1;
        if !packet::is_known(frame.link) {
            self.unknown_link = Some(frame.link);
            self.found.others += 1;
            return;
        }
        self.known = true;
        let Some(t_ns) = frame.t_ns else {
            self.found.untimed += 1;
            return;
        };
        let since_ns = t_ns.saturating_sub(*self.begin_ns.get_or_insert(t_ns));
        if since_ns < self.now_ns {
            self.found.backwards += 1;
        }
        self.now_ns = self.now_ns.max(since_ns);
        match packet::read(self.now_ns, frame.link, frame.data, frame.length) {
            Frame::Tcp(segment) => self.segment(&segment),
            Frame::Other => self.found.others += 1,
            Frame::Short => self.found.short += 1,
        }
    }

    fn segment(&mut self, segment: &Segment) {
        let key =
            if segment.from < segment.to { [segment.from, segment.to] } else { [segment.to, segment.from] };
        let place = match self.last {
            Some((last, place)) if last == key => place,
            _ => self.place(key),
        };
        let place = if self.is_reused(place, segment) { self.renew(key) } else { place };
        self.last = Some((key, place));
        let connection = &mut self.connections[place];
        let step_ns = self.found.step_ns;
        for way in &mut connection.ways {
            if way.payload > 0 {
                self.rows += way.sample(segment.t_ns, step_ns);
            }
        }
        connection.take(segment);
        self.kept += 2;
        if self.rows > MOST_ROWS {
            self.thin();
        }
        if self.kept > MOST_KEPT {
            self.trim();
        }
    }

    fn place(&mut self, key: [End; 2]) -> usize {
        match self.places.get(&key) {
            Some(place) => *place,
            None => self.renew(key),
        }
    }

    /// A new connection of these ends.
    fn renew(&mut self, key: [End; 2]) -> usize {
        if self.connections.len() >= MOST_CONNECTIONS {
            self.give_up();
        }
        self.connections.push(Connection::default());
        self.places.insert(key, self.connections.len() - 1);
        self.connections.len() - 1
    }

    /// A SYN with a new number begins another connection.
    fn is_reused(&self, place: usize, segment: &Segment) -> bool {
        let connection = &self.connections[place];
        let Some(ends) = connection.ends else { return false };
        segment.syn && segment.ack.is_none() && {
            let way = &connection.ways[usize::from(ends[0] != segment.from)];
            way.is_other(segment.seq) || (way.payload > 0 && !connection.has_handshake())
        }
    }

    /// Gives up the half of the connections that has the least payload.
    fn give_up(&mut self) {
        let mut sizes: Vec<u64> = self.connections.iter().map(Connection::payload).collect();
        sizes.sort_unstable();
        let (least, before) = (sizes[sizes.len() / 2], self.connections.len());
        let mut left = before / 2;
        self.connections.retain(|connection| {
            let goes = left > 0 && connection.payload() <= least;
            left -= usize::from(goes);
            !goes
        });
        self.found.given_up += (before - self.connections.len()) as u64;
        self.rows = self.connections.iter().flat_map(|one| &one.ways).map(|way| way.rows.len()).sum();
        self.places.clear();
        self.last = None;
        for (place, connection) in self.connections.iter().enumerate() {
            if let Some([one, other]) = connection.ends {
                let key = if one < other { [one, other] } else { [other, one] };
                self.places.insert(key, place);
            }
        }
    }

    /// Doubles the step.
    fn thin(&mut self) {
        let step_ns = self.found.step_ns;
        for way in self.connections.iter_mut().flat_map(|one| &mut one.ways) {
            way.thin(step_ns);
        }
        self.found.step_ns = 2 * step_ns;
        self.rows = self.connections.iter().flat_map(|one| &one.ways).map(|way| way.rows.len()).sum();
    }

    /// Bounds what is kept of packets in flight.
    fn trim(&mut self) {
        let count = |connections: &[Connection]| -> usize {
            connections.iter().flat_map(|one| &one.ways).map(Way::kept).sum()
        };
        self.kept = count(&self.connections);
        if self.kept > MOST_KEPT / 2 {
            self.connections.iter_mut().flat_map(|one| &mut one.ways).for_each(Way::trim);
            self.kept = count(&self.connections);
        }
    }

    fn finish(mut self) -> Result<Capture, Error> {
        if let (false, Some(link)) = (self.known, self.unknown_link) {
            return Err(Error::Link(link));
        }
        for connection in std::mem::take(&mut self.connections) {
            connection.flows(&mut self.found.flows);
        }
        if self.found.flows.is_empty() {
            return Err(Error::NoData(self.found.packets));
        }
        self.found.flows.sort_by_key(|flow| flow.first_ns);
        Ok(self.found)
    }
}

impl Connection {
    fn payload(&self) -> u64 {
        self.ways[0].payload + self.ways[1].payload
    }

    fn has_handshake(&self) -> bool {
        self.scales.iter().all(Option::is_some)
    }

    fn take(&mut self, segment: &Segment) {
        // A SYN-ACK comes from the end that was asked.
        let opens = !(segment.syn && segment.ack.is_some());
        let ends = if opens { [segment.from, segment.to] } else { [segment.to, segment.from] };
        let ends = *self.ends.get_or_insert(ends);
        let from = usize::from(ends[0] != segment.from);
        if segment.syn {
            self.shake(segment, from);
        } else if let (Some(syn_ack_ns), 0, false) = (self.syn_ack_ns, from, self.is_shaken) {
            self.is_shaken = true;
            let behind_ns = Some(segment.t_ns - syn_ack_ns);
            let ahead_ns = self.syn_ns.and_then(|syn_ns| syn_ack_ns.checked_sub(syn_ns));
            self.ways[0].shaken(ahead_ns, behind_ns);
            self.ways[1].shaken(behind_ns, ahead_ns);
        }
        let [first, second] = &mut self.ways;
        let (own, other) = if from == 0 { (first, second) } else { (second, first) };
        let rtt_ns = own.ahead.least.zip(own.behind.least).map(|(ahead, behind)| ahead + behind);
        own.send(segment, rtt_ns);
        other.acknowledge(segment);
    }

    fn shake(&mut self, segment: &Segment, from: usize) {
        self.ways[from].begin(segment.seq);
        let sent_ns = if segment.ack.is_none() { &mut self.syn_ns } else { &mut self.syn_ack_ns };
        *sent_ns = match *sent_ns {
            _ if self.scales[from].is_none() => Some(segment.t_ns),
            Some(first_ns) if segment.t_ns - first_ns < COPY_NS => Some(first_ns),
            // It is sent again, and which one is answered is not known.
            _ => None,
        };
        self.scales[from] = Some(segment.scale);
        self.mss[from] = segment.mss;
        self.has_stamps |= segment.stamps.is_some();
        match self.scales {
            [Some(one), Some(other)] => {
                // Scales hold if both ends sent one.
                let both = one.is_some() && other.is_some();
                self.ways[0].scale = Some(if both { other.unwrap_or(0) } else { 0 });
                self.ways[1].scale = Some(if both { one.unwrap_or(0) } else { 0 });
            }
            // A SYN-ACK has one only if the SYN had.
            [None, Some(other)] => self.ways[0].scale = Some(other.unwrap_or(0)),
            _ => {}
        }
        if let [Some(one), Some(other)] = self.mss {
            let least = u32::from(one.min(other)).saturating_sub(if self.has_stamps { 12 } else { 0 });
            self.ways.iter_mut().for_each(|way| way.mss = (least > 0).then_some(least));
        }
    }

    /// The end that sends most of the payload is a flow, and the other if it sends a tenth of that.
    fn flows(self, found: &mut Vec<Flow>) {
        let Some(ends) = self.ends else { return };
        let has_handshake = self.has_handshake();
        let most = self.ways.iter().map(|way| way.payload).max().unwrap_or(0);
        for (from, mut way) in self.ways.into_iter().enumerate() {
            let Some(first_ns) = way.first_ns.filter(|_| way.payload * 10 >= most) else { continue };
            way.end();
            let named = |(ip, port): End| match ip {
                std::net::IpAddr::V4(ip) => format!("{ip}:{port}"),
                std::net::IpAddr::V6(ip) => format!("[{ip}]:{port}"),
            };
            found.push(Flow {
                sender: named(ends[from]),
                receiver: named(ends[1 - from]),
                is_forward: from == 0,
                at: way.seems(),
                has_handshake,
                has_scale: way.scale.is_some(),
                segment: way.segment(),
                payload: way.payload,
                unseen: way.unseen,
                copies: way.copies,
                first_ns,
                last_ns: way.last_ns,
                rows: way.rows,
            });
        }
    }
}
