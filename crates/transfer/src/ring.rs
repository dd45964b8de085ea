//! Packets that wait: to be acknowledged, or to be read.

use lfn_udt::HEADER_BYTES;

/// No packet lies in this place.
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

    /// A new packet, which holds nothing.
    pub fn begin(&mut self, index: u64) {
        let place = self.place(index);
        self.lengths[place] = 0;
    }

    /// Puts as much of `bytes` into packet `index` as fits; returns how much, and whether it is full.
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

/// Packets of a receiver, by number modulo the ring's size; full ones lie side by side.
pub(crate) struct ReceiveRing {
    bytes: Vec<u8>,
    lengths: Vec<u16>,
    payload_bytes: usize,
    /// The packet that is read next, and what of it is read.
    next: u64,
    offset: usize,
}

impl ReceiveRing {
    pub fn new(packets: u32, payload_bytes: usize) -> ReceiveRing {
        let places = packets as usize;
        ReceiveRing {
            bytes: vec![0; places * payload_bytes],
            lengths: vec![EMPTY; places],
            payload_bytes,
            next: 0,
            offset: 0,
        }
    }

    fn place(&self, index: u64) -> usize {
        (index % self.lengths.len() as u64) as usize
    }

    /// A new packet within the window, no longer than a full one.
    pub fn put(&mut self, index: u64, payload: &[u8]) {
        let place = self.place(index);
        let start = place * self.payload_bytes;
        self.bytes[start..start + payload.len()].copy_from_slice(payload);
        self.lengths[place] = payload.len() as u16;
    }

    /// Every packet before this one is read.
    pub fn read_until(&self) -> u64 {
        self.next
    }

    /// Bytes that can be read, up to about `most`, from packets before `end`.
    pub fn readable(&mut self, end: u64, most: usize) -> &[u8] {
        // A packet may be empty.
        while self.next < end && self.offset == usize::from(self.lengths[self.place(self.next)]) {
            self.step();
        }
        if self.next >= end {
            return &[];
        }
        let first = self.place(self.next);
        let start = first * self.payload_bytes + self.offset;
        let (mut last, mut index) = (first, self.next);
        while usize::from(self.lengths[last]) == self.payload_bytes
            && index + 1 < end
            && last + 1 < self.lengths.len()
            && (last - first) * self.payload_bytes < most
        {
            last += 1;
            index += 1;
        }
        &self.bytes[start..last * self.payload_bytes + usize::from(self.lengths[last])]
    }

    fn step(&mut self) {
        let place = self.place(self.next);
        self.lengths[place] = EMPTY;
        self.next += 1;
        self.offset = 0;
    }

    /// The reader took `bytes` of what was readable.
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
