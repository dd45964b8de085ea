//! Rings of packets: sent ones until acknowledged, received ones until read.

use lfn_udt::HEADER_BYTES;

/// The place is empty.
const EMPTY: u16 = u16::MAX;

/// Packets of a sender, by number modulo the ring's size. Each has room for its header before it, so that
/// a run of neighbours is a train of whole datagrams.
pub(crate) struct SendRing {
    bytes: Vec<u8>,
    /// Payload bytes in each place.
    lengths: Vec<u16>,
    payload_bytes: usize,
}

impl SendRing {
    pub fn new(packets: u32, payload_bytes: usize) -> SendRing {
        let places = packets as usize;
        SendRing {
            bytes: vec![0; places * (HEADER_BYTES + payload_bytes)],
            lengths: vec![0; places],
            payload_bytes,
        }
    }

    fn place(&self, index: u64) -> usize {
        (index % self.lengths.len() as u64) as usize
    }

    pub fn capacity(&self) -> u64 {
        self.lengths.len() as u64
    }

    /// Adds an empty packet.
    pub fn begin(&mut self, index: u64) {
        let place = self.place(index);
        self.lengths[place] = 0;
    }

    /// Copies as much of `bytes` into packet `index` as fits; returns the number of bytes, and whether it is
    /// full.
    pub fn fill(&mut self, index: u64, bytes: &[u8]) -> (usize, bool) {
        let place = self.place(index);
        let length = usize::from(self.lengths[place]);
        let take = bytes.len().min(self.payload_bytes - length);
        let start = place * (HEADER_BYTES + self.payload_bytes) + HEADER_BYTES + length;
        self.bytes[start..start + take].copy_from_slice(&bytes[..take]);
        self.lengths[place] = (length + take) as u16;
        (take, length + take == self.payload_bytes)
    }

    /// Writes the header of packet `index`.
    pub fn set_header(&mut self, index: u64, header: [u8; HEADER_BYTES]) {
        let start = self.place(index) * (HEADER_BYTES + self.payload_bytes);
        self.bytes[start..start + HEADER_BYTES].copy_from_slice(&header);
    }

    /// Whether `next` may follow `index` in one train: a full neighbour.
    pub fn follows(&self, index: u64, next: u64) -> bool {
        let place = self.place(index);
        next == index + 1
            && place + 1 < self.lengths.len()
            && usize::from(self.lengths[place]) == self.payload_bytes
    }

    /// The datagrams of a train, and the size of all but the last.
    pub fn train(&self, first: u64, last: u64) -> (&[u8], usize) {
        let datagram = HEADER_BYTES + self.payload_bytes;
        let (from, to) = (self.place(first), self.place(last));
        let end = to * datagram + HEADER_BYTES + usize::from(self.lengths[to]);
        (&self.bytes[from * datagram..end], datagram)
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
