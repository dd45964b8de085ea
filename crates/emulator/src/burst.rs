//! Packets of a TUN device: IP packets after a virtio header (virtio 1.2 section 5.1.6), many
//! TCP segments in one where the kernel left their separation to us.
//!
//! The path decides about segments; those of one burst that it delivers together go back as one burst,
//! with the same payload in place and a header of their own.

use std::ops::Range;

use crate::network::Kind;

/// Bytes of the virtio header.
pub(crate) const VIRTIO_BYTES: usize = 10;
/// The largest packet of IP, behind it.
pub(crate) const BURST_MAX_BYTES: usize = VIRTIO_BYTES + 65_535;
/// Room for the headers of a segment: virtio, IPv6 and TCP with all options, and to spare.
const HEADERS_MAX_BYTES: usize = 160;

const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;

const TCP: u8 = 6;
const FIN: u8 = 1;
const SYN: u8 = 2;
const PSH: u8 = 8;
const CWR: u8 = 128;

/// A packet of IP, or several TCP segments in one.
#[derive(Debug)]
pub(crate) struct Burst {
    /// With the virtio header.
    bytes: Vec<u8>,
    /// Where the payload begins: behind the headers that every segment has.
    payload_at: usize,
    /// Payload of a segment, of which the last may be shorter.
    segment_bytes: usize,
    segments: usize,
    ip: Ip,
    /// Where TCP or UDP begins.
    transport_at: usize,
    pub(crate) flow: u32,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ip {
    V4,
    V6,
    Other,
}

/// The headers of segments that leave as one.
pub(crate) struct Headers {
    bytes: [u8; HEADERS_MAX_BYTES],
    length: usize,
}

impl Headers {
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Sum of 16-bit words in ones' complement (RFC 1071).
fn ones_sum(words: impl Iterator<Item = u16>) -> u16 {
    let sum = words.fold(0u64, |sum, word| sum + u64::from(word));
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

/// FNV-1a in 32 bits (RFC 9923).
fn hash<'a>(parts: impl Iterator<Item = &'a [u8]>) -> u32 {
    parts.flatten().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

impl Burst {
    /// Parses bytes read from a TUN device; `None` if they are shorter than the headers say.
    pub(crate) fn parse(bytes: Vec<u8>) -> Option<Burst> {
        let packet = bytes.get(VIRTIO_BYTES..).filter(|packet| !packet.is_empty())?;
        let at = VIRTIO_BYTES;
        let (ip, transport_at, protocol) = match packet[0] >> 4 {
            4 if packet.len() >= 20 => (Ip::V4, at + usize::from(packet[0] & 15) * 4, packet[9]),
            6 if packet.len() >= 40 => (Ip::V6, at + 40, packet[6]),
            _ => (Ip::Other, bytes.len(), 0),
        };
        let gso = bytes[1] & 0x7f;
        let is_burst = gso == GSO_TCPV4 || gso == GSO_TCPV6;
        if !is_burst && gso != GSO_NONE {
            return None;
        }
        // Behind extension headers of IPv6 only the virtio header knows where TCP begins.
        let transport_at =
            if is_burst { at + usize::from(u16::from_le_bytes([bytes[6], bytes[7]])) } else { transport_at };
        let fragment = ip == Ip::V4 && u16_at(packet, 6) & 0x1fff != 0;
        let is_tcp = is_burst || (protocol == TCP && !fragment);
        let tcp_bytes = match bytes.get(transport_at + 12) {
            Some(&offset) if is_tcp => usize::from(offset >> 4) * 4,
            _ if is_tcp => return None,
            _ => 0,
        };
        let payload_at = if is_tcp { transport_at + tcp_bytes } else { bytes.len() };
        if is_tcp && (tcp_bytes < 20 || payload_at > bytes.len()) {
            return None;
        }
        let payload = bytes.len() - payload_at;
        let size = usize::from(u16::from_le_bytes([bytes[4], bytes[5]]));
        let (segment_bytes, segments) = if is_burst {
            let headers = match ip {
                Ip::V4 => at + 20..HEADERS_MAX_BYTES,
                Ip::V6 => at + 40..HEADERS_MAX_BYTES,
                Ip::Other => return None,
            };
            if size == 0 || payload == 0 || !headers.contains(&transport_at) || payload_at > headers.end {
                return None;
            }
            (size, payload.div_ceil(size))
        } else {
            (payload, 1)
        };
        let ports = if is_tcp || protocol == 17 && !fragment { 4 } else { 0 };
        let ports = bytes.get(transport_at..transport_at + ports).unwrap_or_default();
        let addresses = match ip {
            Ip::V4 => &bytes[at + 12..at + 20],
            Ip::V6 => &bytes[at + 8..at + 40],
            Ip::Other => &[],
        };
        let flow = hash([addresses, &[protocol], ports].into_iter());
        let kind = match bytes.get(transport_at + 13) {
            Some(&flags) if is_tcp && payload == 0 => {
                if flags & (SYN | FIN) == 0 {
                    Kind::Ack
                } else {
                    Kind::Handshake
                }
            }
            _ => Kind::Data,
        };
        Some(Burst { bytes, payload_at, segment_bytes, segments, ip, transport_at, flow, kind })
    }

    /// The ECN field (RFC 3168).
    pub(crate) fn ecn(&self) -> u8 {
        match self.ip {
            Ip::V4 => self.bytes[VIRTIO_BYTES + 1] & 3,
            Ip::V6 => self.bytes[VIRTIO_BYTES + 1] >> 4 & 3,
            Ip::Other => 0,
        }
    }

    pub(crate) fn segments(&self) -> usize {
        self.segments
    }

    fn payload(&self, first: usize, count: usize) -> Range<usize> {
        let begin = self.payload_at + first * self.segment_bytes;
        begin..(begin + count * self.segment_bytes).min(self.bytes.len())
    }

    /// Size of a segment as an IP packet.
    pub(crate) fn ip_bytes(&self, segment: usize) -> usize {
        self.payload_at - VIRTIO_BYTES + self.payload(segment, 1).len()
    }

    /// Segments `first` to `first + count` as one packet, with this ECN field: its headers, and the bytes
    /// that follow them.
    pub(crate) fn part(&self, first: usize, count: usize, ecn: u8) -> (Headers, &[u8]) {
        let payload = self.payload(first, count);
        // Headers too long to be copied whole are not changed: the bytes after the first ones stay in
        // place.
        let length = self.payload_at.min(HEADERS_MAX_BYTES);
        let mut bytes = [0; HEADERS_MAX_BYTES];
        bytes[..length].copy_from_slice(&self.bytes[..length]);
        let mut headers = Headers { bytes, length };
        if self.segments > 1 {
            self.rewrite(&mut headers.bytes, first, count, payload.len());
        }
        if self.ecn() != ecn {
            set_ecn(&mut headers.bytes, self.ip, ecn);
        }
        if self.ip == Ip::V4 && (self.segments > 1 || self.ecn() != ecn) {
            sum_header(&mut headers.bytes);
        }
        let rest = if length < self.payload_at { length..payload.end } else { payload };
        (headers, &self.bytes[rest])
    }

    /// Makes the headers of the burst those of a part of it.
    fn rewrite(&self, headers: &mut [u8], first: usize, count: usize, payload_bytes: usize) {
        if count == 1 {
            headers[1] = GSO_NONE;
            headers[4..6].fill(0);
        }
        // RFC 9293 section 3.1: the sequence number of the first byte; what ends a burst stands in its
        // last segment, what answers ECN in its first (RFC 3168 section 6.1.2).
        let tcp = self.transport_at;
        let sequence = u32::from_be_bytes([
            self.bytes[tcp + 4],
            self.bytes[tcp + 5],
            self.bytes[tcp + 6],
            self.bytes[tcp + 7],
        ]);
        let sequence = sequence.wrapping_add((first * self.segment_bytes) as u32);
        headers[tcp + 4..tcp + 8].copy_from_slice(&sequence.to_be_bytes());
        if first + count < self.segments {
            headers[tcp + 13] &= !(FIN | PSH);
        }
        if first > 0 {
            headers[tcp + 13] &= !CWR;
        }
        // The kernel left the checksum to us: what stands there is the sum of the pseudo header, with the
        // length of TCP in it.
        let bytes_of_tcp = |payload: usize| (self.payload_at - tcp + payload) as u16;
        let before = bytes_of_tcp(self.bytes.len() - self.payload_at);
        let sum = [u16_at(headers, tcp + 16), !before, bytes_of_tcp(payload_bytes)];
        put_u16(headers, tcp + 16, ones_sum(sum.into_iter()));

        let ip = VIRTIO_BYTES;
        match self.ip {
            Ip::V4 => {
                put_u16(headers, ip + 2, (self.payload_at - ip + payload_bytes) as u16);
                let id = u16_at(headers, ip + 4).wrapping_add(first as u16);
                put_u16(headers, ip + 4, id);
            }
            Ip::V6 => put_u16(headers, ip + 4, (self.payload_at - ip - 40 + payload_bytes) as u16),
            Ip::Other => {}
        }
    }

    /// The memory, to be used again.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

fn set_ecn(headers: &mut [u8], ip: Ip, ecn: u8) {
    let field = &mut headers[VIRTIO_BYTES + 1];
    match ip {
        Ip::V4 => *field = *field & !3 | ecn,
        Ip::V6 => *field = *field & !0x30 | ecn << 4,
        Ip::Other => {}
    }
}

/// The checksum of an IPv4 header (RFC 791 section 3.1).
fn sum_header(headers: &mut [u8]) {
    let ip = VIRTIO_BYTES;
    let length = usize::from(headers[ip] & 15) * 4;
    put_u16(headers, ip + 10, 0);
    let sum = ones_sum((ip..ip + length).step_by(2).map(|at| u16_at(headers, at)));
    put_u16(headers, ip + 10, !sum);
}

#[cfg(test)]
mod tests;
