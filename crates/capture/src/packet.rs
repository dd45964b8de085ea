//! A TCP segment of a captured frame. Payload is never read.

use std::net::IpAddr;

use etherparse::{EtherType, IpNumber, LaxNetSlice, LaxSlicedPacket, TcpHeaderSlice, TcpOptionElement};

/// Bytes of a packet whose header does not tell its length.
const MOST_FRAME: usize = 1 << 20;

/// Address and port.
pub type End = (IpAddr, u16);

/// The header of a segment, as far as it is read.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Time in nanoseconds, of any clock.
    pub t_ns: u64,
    /// The end that sent it.
    pub from: End,
    /// The end that it goes to.
    pub to: End,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledged number.
    pub ack: Option<u32>,
    /// Window as it is in the header.
    pub window: u16,
    /// SYN flag.
    pub syn: bool,
    /// FIN flag.
    pub fin: bool,
    /// Bytes of payload in the packet that was sent, captured or not.
    pub payload: u32,
    /// Identification of IPv4; 0 in IPv6.
    pub id: u16,
    /// Timestamps (RFC 7323): value and echo.
    pub stamps: Option<(u32, u32)>,
    /// Window scale of a SYN.
    pub scale: Option<u8>,
    /// Largest segment of a SYN.
    pub mss: Option<u16>,
    /// SACK blocks.
    pub sacks: [Option<(u32, u32)>; 4],
}

/// A captured frame.
pub enum Frame {
    /// A segment.
    Tcp(Segment),
    /// Something else, or a fragment.
    Other,
    /// TCP with less than a header's first 20 bytes.
    Short,
}

/// The link types that are read, by their numbers in a file.
pub fn is_known(link: i32) -> bool {
    matches!(link, 0 | 1 | 12 | 14 | 101 | 108 | 113 | 228 | 229 | 276)
}

/// Reads a frame.
///
/// # Arguments
/// * `link`: link type.
/// * `data`: the captured bytes.
/// * `length`: bytes that it had on the link.
pub fn read(t_ns: u64, link: i32, data: &[u8], length: u32) -> Frame {
    let sliced = match link {
        1 => LaxSlicedPacket::from_ethernet(data).ok(),
        // Cooked: 16 or 20 bytes, with the type of what follows.
        113 => after(data, 14, 16),
        276 => after(data, 0, 20),
        // A protocol family of 4 bytes.
        0 | 108 => data.get(4..).and_then(|rest| LaxSlicedPacket::from_ip(rest).ok()),
        _ => LaxSlicedPacket::from_ip(data).ok(),
    };
    let Some(net) = sliced.and_then(|sliced| sliced.net) else { return Frame::Other };
    let begin = |part: &[u8]| part.as_ptr() as usize - data.as_ptr() as usize;
    // Lengths of 0 are those of packets of more than 64 kB before they are segmented.
    let (from, to, start, told, id, payload) = match &net {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let told = usize::from(header.total_len());
            let ends = (IpAddr::V4(header.source_addr()), IpAddr::V4(header.destination_addr()));
            (ends.0, ends.1, begin(header.slice()), told, header.identification(), ip.payload())
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let told = usize::from(header.payload_length());
            let told = if told == 0 { 0 } else { told + 40 };
            let ends = (IpAddr::V6(header.source_addr()), IpAddr::V6(header.destination_addr()));
            (ends.0, ends.1, begin(header.slice()), told, 0, ip.payload())
        }
        LaxNetSlice::Arp(_) => return Frame::Other,
    };
    if payload.fragmented || payload.ip_number != IpNumber::TCP {
        return Frame::Other;
    }
    let tcp = payload.payload;
    let end = if told == 0 { (length as usize).min(MOST_FRAME) } else { start + told };
    segment(t_ns, (from, to), id, tcp, end.saturating_sub(begin(tcp)))
}

fn after(data: &[u8], kind: usize, header: usize) -> Option<LaxSlicedPacket<'_>> {
    let kind = u16::from_be_bytes(data.get(kind..kind + 2)?.try_into().ok()?);
    Some(LaxSlicedPacket::from_ether_type(EtherType(kind), data.get(header..)?))
}

fn segment(t_ns: u64, ips: (IpAddr, IpAddr), id: u16, tcp: &[u8], bytes: usize) -> Frame {
    let mut bare = [0; 20];
    let (header, whole) = match TcpHeaderSlice::from_slice(tcp) {
        Ok(header) => {
            let whole = header.slice().len();
            (header, whole)
        }
        Err(_) => {
            // The options were not captured: the first 20 bytes tell their length.
            let Some(first) = tcp.get(..20) else { return Frame::Short };
            let whole = usize::from(first[12] >> 4) * 4;
            bare.copy_from_slice(first);
            bare[12] = 5 << 4 | bare[12] & 0xF;
            let Ok(header) = TcpHeaderSlice::from_slice(&bare) else { return Frame::Short };
            if whole < 20 {
                return Frame::Other;
            }
            (header, whole)
        }
    };
    let mut found = Segment {
        t_ns,
        from: (ips.0, header.source_port()),
        to: (ips.1, header.destination_port()),
        seq: header.sequence_number(),
        ack: header.ack().then(|| header.acknowledgment_number()),
        window: header.window_size(),
        syn: header.syn(),
        fin: header.fin(),
        payload: bytes.saturating_sub(whole) as u32,
        id,
        stamps: None,
        scale: None,
        mss: None,
        sacks: [None; 4],
    };
    for option in header.options_iterator().map_while(Result::ok) {
        match option {
            TcpOptionElement::Timestamp(value, echo) => found.stamps = Some((value, echo)),
            TcpOptionElement::WindowScale(scale) => found.scale = Some(scale.min(14)),
            TcpOptionElement::MaximumSegmentSize(size) => found.mss = Some(size),
            TcpOptionElement::SelectiveAcknowledgement(first, others) => {
                found.sacks = [Some(first), others[0], others[1], others[2]];
            }
            _ => {}
        }
    }
    Frame::Tcp(found)
}
