//! Rings of packets: sent ones until acknowledged, received ones until read.

use std::ops::Range;

use lfn_udt::HEADER_BYTES;

use crate::secure::SEAL_BYTES;
use crate::socket::MAX_TRAIN_BYTES;

/// The place is empty.
const EMPTY: u16 = u16::MAX;

/// Packets of a sender, by number modulo the ring's size. Each has room for its header before it, so that
/// a run of neighbours is a train of whole datagrams.
pub(crate) struct SendRing {
    bytes: Vec<u8>,
    /// Payload bytes in each place.
    lengths: Vec<u16>,
    /// Bytes of all packets before the one in each place.
    offsets: Vec<u64>,
    /// Bytes of all packets.
    written: u64,
    payload_bytes: usize,
    /// Payload that new packets hold: less than `payload_bytes` on a path with a smaller MTU.
    limit: usize,
    /// A train of packets that do not fill their places.
    gathered: Vec<u8>,
}

impl SendRing {
    pub fn new(packets: u32, payload_bytes: usize) -> SendRing {
        let places = packets as usize;
        SendRing {
            bytes: vec![0; places * (HEADER_BYTES + payload_bytes)],
            lengths: vec![0; places],
            offsets: vec![0; places],
            written: 0,
            payload_bytes,
            limit: payload_bytes,
            gathered: Vec::new(),
        }
    }

    fn place(&self, index: u64) -> usize {
        (index % self.lengths.len() as u64) as usize
    }

    fn length(&self, index: u64) -> usize {
        usize::from(self.lengths[self.place(index)])
    }

    /// Where a packet lies, header included.
    fn datagram(&self, index: u64) -> Range<usize> {
        let start = self.place(index) * (HEADER_BYTES + self.payload_bytes);
        start..start + HEADER_BYTES + self.length(index)
    }

    /// Packets hold at most `payload_bytes` from now on, and at most what the ring was made for.
    pub fn set_limit(&mut self, payload_bytes: usize) {
        self.limit = payload_bytes.min(self.payload_bytes);
    }

    /// Bytes of all packets before `index`, which is in the ring, or the next one.
    pub fn bytes_before(&self, index: u64, next: u64) -> u64 {
        if index == next {
            self.written
        } else {
            self.offsets[self.place(index)]
        }
    }

    pub fn capacity(&self) -> u64 {
        self.lengths.len() as u64
    }

    /// Adds an empty packet.
    pub fn begin(&mut self, index: u64) {
        let place = self.place(index);
        self.lengths[place] = 0;
        self.offsets[place] = self.written;
    }

    /// Copies as much of `bytes` into packet `index` as fits; returns the number of bytes, and whether it is
    /// full.
    pub fn fill(&mut self, index: u64, bytes: &[u8]) -> (usize, bool) {
        let (place, length) = (self.place(index), self.length(index));
        // The limit may have become smaller since the packet was begun.
        let take = bytes.len().min(self.limit.saturating_sub(length));
        let start = self.datagram(index).end;
        self.bytes[start..start + take].copy_from_slice(&bytes[..take]);
        self.lengths[place] = (length + take) as u16;
        self.written += take as u64;
        (take, length + take >= self.limit)
    }

    /// Writes the header of packet `index`.
    pub fn set_header(&mut self, index: u64, header: [u8; HEADER_BYTES]) {
        let start = self.datagram(index).start;
        self.bytes[start..start + HEADER_BYTES].copy_from_slice(&header);
    }

    /// Whether `next` may join the train from `first` to `last`: all but its last packet have one size, and that
    /// is no larger.
    pub fn follows(&self, (first, last): (u64, u64), next: u64) -> bool {
        let size = self.length(first);
        let train_bytes = (next - first + 1) as usize * (HEADER_BYTES + size + SEAL_BYTES);
        next == last + 1
            && self.place(last) + 1 < self.lengths.len()
            && self.length(last) == size
            && self.length(next) <= size
            && train_bytes <= MAX_TRAIN_BYTES
    }

    /// The datagrams of a train, and the size of all but the last.
    pub fn train(&mut self, first: u64, last: u64) -> (&[u8], usize) {
        let Range { start, end } = self.datagram(first);
        if first == last || end - start == HEADER_BYTES + self.payload_bytes {
            return (&self.bytes[start..self.datagram(last).end], end - start);
        }
        self.gathered.clear();
        for index in first..=last {
            self.gathered.extend(&self.bytes[self.datagram(index)]);
        }
        (&self.gathered, end - start)
    }
}

/// Packets side by side in one page of a receiver.
const PAGE: u64 = 64;

/// Packets of a receiver, by number, in pages. The page read last is filled next, so a reader that keeps up
/// uses few pages, which stay in the cache even with a large window.
pub(crate) struct ReceiveRing {
    /// By number modulo their count, one more than a window touches.
    pages: Vec<Option<Box<[u8]>>>,
    free: Vec<Box<[u8]>>,
    lengths: Vec<u16>,
    payload_bytes: usize,
    /// The next packet to read, and the number of its bytes already read.
    next: u64,
    offset: usize,
}

impl ReceiveRing {
    pub fn new(packets: u32, payload_bytes: usize) -> ReceiveRing {
        let pages = u64::from(packets).div_ceil(PAGE) as usize + 1;
        ReceiveRing {
            pages: vec![None; pages],
            free: Vec::new(),
            lengths: vec![EMPTY; pages * PAGE as usize],
            payload_bytes,
            next: 0,
            offset: 0,
        }
    }

    fn place(&self, index: u64) -> usize {
        (index % self.lengths.len() as u64) as usize
    }

    fn page(&self, index: u64) -> usize {
        (index / PAGE % self.pages.len() as u64) as usize
    }

    /// Where the packet begins in its page.
    fn start(&self, index: u64) -> usize {
        (index % PAGE) as usize * self.payload_bytes
    }

    /// A new packet within the window, no longer than a full one.
    pub fn put(&mut self, index: u64, payload: &[u8]) {
        let (place, page, start) = (self.place(index), self.page(index), self.start(index));
        let (free, page_bytes) = (&mut self.free, PAGE as usize * self.payload_bytes);
        let page = self.pages[page]
            .get_or_insert_with(|| free.pop().unwrap_or_else(|| vec![0; page_bytes].into_boxed_slice()));
        page[start..start + payload.len()].copy_from_slice(payload);
        self.lengths[place] = payload.len() as u16;
    }

    /// Every packet before this one is read.
    pub fn read_until(&self) -> u64 {
        self.next
    }

    /// Readable bytes of one page, from packets before `end`.
    pub fn readable(&mut self, end: u64) -> &[u8] {
        // A packet may be empty.
        while self.next < end && self.offset == usize::from(self.lengths[self.place(self.next)]) {
            self.step();
        }
        let mut last = self.next;
        // A packet that never arrived cannot be read, even if the peer's messages say otherwise.
        if last >= end || self.lengths[self.place(last)] == EMPTY {
            return &[];
        }
        while usize::from(self.lengths[self.place(last)]) == self.payload_bytes
            && last + 1 < end
            && !(last + 1).is_multiple_of(PAGE)
        {
            last += 1;
        }
        let stop = self.start(last) + usize::from(self.lengths[self.place(last)]);
        let page = self.pages[self.page(last)].as_deref().unwrap_or_default();
        &page[self.start(self.next) + self.offset..stop]
    }

    fn step(&mut self) {
        let (place, page) = (self.place(self.next), self.page(self.next));
        self.lengths[place] = EMPTY;
        self.next += 1;
        self.offset = 0;
        if self.next.is_multiple_of(PAGE) {
            self.free.extend(self.pages[page].take());
        }
    }

    /// Marks `bytes` of the readable ones as read.
    pub fn consume(&mut self, mut bytes: usize) {
        while bytes > 0 {
            let left = usize::from(self.lengths[self.place(self.next)]) - self.offset;
            if bytes < left {
                self.offset += bytes;
                return;
            }
            bytes -= left;
            self.step();
        }
    }
}
