//! The packets of UDT version 4 as libudt 4.11 sends them: big-endian words, one packet a datagram.
//!
//! Packets from the network are untrusted: [`Packet::decode`] takes any bytes and reports errors in them.

use crate::{LossReport, Seq};

/// Bytes of the header: four words.
pub const HEADER_BYTES: usize = 16;
/// Bytes of IPv4 and UDP headers, which the MSS option counts (28 for IPv6 as well).
pub const IP_UDP_BYTES: u32 = 28;
/// The version of the handshake.
pub const VERSION: u32 = 4;
/// Bytes of a handshake's body.
const HANDSHAKE_BYTES: usize = 48;
/// The top bit of a packet's first word.
const CONTROL: u32 = 1 << 31;
/// Message numbers have 29 bits.
pub const MAX_MESSAGE: u32 = (1 << 29) - 1;

/// Position of a packet in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// Neither first nor last.
    Middle = 0,
    /// The last of several.
    Last = 1,
    /// The first of several.
    First = 2,
    /// The only one.
    Solo = 3,
}

impl Boundary {
    /// The position of a packet that is the first of its message, the last, or both.
    pub fn new(first: bool, last: bool) -> Boundary {
        match (first, last) {
            (false, false) => Boundary::Middle,
            (false, true) => Boundary::Last,
            (true, false) => Boundary::First,
            (true, true) => Boundary::Solo,
        }
    }
}

/// The request or answer of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request(pub i32);

impl Request {
    /// A client's first word, and the server's answer that carries the cookie.
    pub const REGULAR: Request = Request(1);
    /// Both sides begin.
    pub const RENDEZVOUS: Request = Request(0);
    /// The client returns the cookie; the server confirms.
    pub const RESPONSE: Request = Request(-1);
    /// The second response of a rendezvous.
    pub const RENDEZVOUS_RESPONSE: Request = Request(-2);
    /// The server refuses: other version, other type, or too many connections.
    pub const REFUSED: Request = Request(1002);
}

/// The body of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// 4.
    pub version: u32,
    /// 1: stream; 2: messages.
    pub kind: u32,
    /// The number of the first data packet, in both directions.
    pub initial: Seq,
    /// Bytes of the largest packet, with the headers of IP and UDP.
    pub mss_bytes: u32,
    /// Packets that the sender of this handshake takes in flight.
    pub window_packets: u32,
    /// Its request.
    pub request: Request,
    /// Socket of the sender of this handshake.
    pub socket: u32,
    /// Opaque to all but the server that made it.
    pub cookie: u32,
    /// The receiver's address as the sender sees it; informational.
    pub peer_ip: [u32; 4],
}

/// The contents of a full ACK, without the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckReport {
    /// Smoothed RTT.
    pub rtt_us: u32,
    /// Its deviation.
    pub rtt_var_us: u32,
    /// Packets that the receiver has room for beyond the number.
    pub buffer_packets: u32,
    /// Speed of arrival and capacity of the path, in packets a second; at most every 10 ms.
    pub speeds: Option<Speeds>,
}

/// Rates measured by the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speeds {
    /// Of data packets, by the median filter; 0: unknown.
    pub arrival_pps: u32,
    /// Of the path, by packet pairs; 0: unknown.
    pub capacity_pps: u32,
}

/// A packet with its two common words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Microseconds since the sender's connection began; libudt leaves it 0 in control packets.
    pub timestamp_us: u32,
    /// Socket that it is for; 0: a request for a connection.
    pub destination: u32,
    /// All else.
    pub body: Body<'a>,
}

/// The kinds of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// Data.
    Data {
        /// The packet's number.
        seq: Seq,
        /// Its place in its message.
        boundary: Boundary,
        /// The message waits for those before it.
        in_order: bool,
        /// The message's number, 29 bits.
        message: u32,
        /// The bytes.
        payload: &'a [u8],
    },
    /// Type 0.
    Handshake(Handshake),
    /// Type 1.
    KeepAlive,
    /// Type 2: every packet before `next` was received.
    Ack {
        /// Number of the ACK itself; 0 in a light one.
        number: u32,
        /// The first packet that is missing.
        next: Seq,
        /// `None`: a light ACK.
        report: Option<AckReport>,
    },
    /// Type 3.
    Nak(LossReport<'a>),
    /// Type 4: congestion warning; libudt 4.11 never sends it.
    Warning,
    /// Type 5.
    Shutdown,
    /// Type 6: the ACK of an ACK.
    Ack2 {
        /// Number of that ACK.
        number: u32,
    },
    /// Type 7: packets of a message that will not be sent any more.
    Drop {
        /// The message.
        message: u32,
        /// Its first packet.
        first: Seq,
        /// One past its last packet, as libudt has it.
        end: Seq,
    },
    /// Type 8.
    PeerError {
        /// The peer's error code.
        code: u32,
    },
    /// Type 0x7fff.
    User {
        /// Whose.
        extension: u16,
        /// The second word.
        info: u32,
        /// The rest.
        body: &'a [u8],
    },
}

/// Reason for which bytes are not a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Less than a header.
    #[error("{bytes} bytes are less than a header of 16")]
    Short {
        /// Bytes of the datagram.
        bytes: usize,
    },
    /// No such type.
    #[error("control packets have no type {kind}; known are 0 to 8 and 32767")]
    Type {
        /// The type.
        kind: u16,
    },
    /// The body is not one of this type's.
    #[error("a control packet of type {kind} has no body of {bytes} bytes, or not this one")]
    Body {
        /// The type.
        kind: u16,
        /// Bytes of the body.
        bytes: usize,
    },
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[4 * at], bytes[4 * at + 1], bytes[4 * at + 2], bytes[4 * at + 3]])
}

impl<'a> Packet<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// When it is not a packet of UDT.
    #[inline]
    pub fn decode(datagram: &'a [u8]) -> Result<Packet<'a>, DecodeError> {
        let Some((header, body)) = datagram.split_at_checked(HEADER_BYTES) else {
            return Err(DecodeError::Short { bytes: datagram.len() });
        };
        let (first, info) = (word(header, 0), word(header, 1));
        let body = if first & CONTROL == 0 {
            Body::Data {
                seq: Seq::new(first),
                boundary: Boundary::new(info >> 31 == 1, info >> 30 & 1 == 1),
                in_order: info >> 29 & 1 == 1,
                message: info & MAX_MESSAGE,
                payload: body,
            }
        } else {
            control((first >> 16) as u16 & 0x7fff, first as u16, info, body)?
        };
        Ok(Packet { timestamp_us: word(header, 2), destination: word(header, 3), body })
    }

    /// Appends the packet's bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (kind, info) = match self.body {
            Body::Data { seq, boundary, in_order, message, payload } => {
                out.extend(data_header(
                    seq,
                    boundary,
                    in_order,
                    message,
                    self.timestamp_us,
                    self.destination,
                ));
                out.extend(payload);
                return;
            }
            Body::Handshake(_) => (0, 0),
            Body::KeepAlive => (1, 0),
            Body::Ack { number, .. } => (2, number),
            Body::Nak(_) => (3, 0),
            Body::Warning => (4, 0),
            Body::Shutdown => (5, 0),
            Body::Ack2 { number } => (6, number),
            Body::Drop { message, .. } => (7, message),
            Body::PeerError { code } => (8, code),
            Body::User { extension, info, .. } => (0x7fff << 16 | u32::from(extension), info),
        };
        let kind = if matches!(self.body, Body::User { .. }) { kind } else { kind << 16 };
        for word in [CONTROL | kind, info, self.timestamp_us, self.destination] {
            out.extend(word.to_be_bytes());
        }
        self.encode_body(out);
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        let mut words = |words: &[u32]| words.iter().for_each(|word| out.extend(word.to_be_bytes()));
        match self.body {
            Body::Handshake(h) => {
                words(&[h.version, h.kind, h.initial.get(), h.mss_bytes, h.window_packets]);
                words(&[h.request.0 as u32, h.socket, h.cookie]);
                words(&h.peer_ip);
            }
            Body::Ack { next, report, .. } => {
                words(&[next.get()]);
                if let Some(report) = report {
                    words(&[report.rtt_us, report.rtt_var_us, report.buffer_packets]);
                    if let Some(speeds) = report.speeds {
                        words(&[speeds.arrival_pps, speeds.capacity_pps]);
                    }
                }
            }
            Body::Nak(report) => out.extend(report.as_bytes()),
            Body::Drop { first, end, .. } => words(&[first.get(), end.get()]),
            Body::User { body, .. } => out.extend(body),
            Body::Data { .. } => {}
            // Packets without a body have one word.
            Body::KeepAlive | Body::Warning | Body::Shutdown | Body::Ack2 { .. } | Body::PeerError { .. } => {
                words(&[0]);
            }
        }
    }
}

/// The 16 bytes before a payload.
pub fn data_header(
    seq: Seq,
    boundary: Boundary,
    in_order: bool,
    message: u32,
    timestamp_us: u32,
    destination: u32,
) -> [u8; HEADER_BYTES] {
    let info = (boundary as u32) << 30 | u32::from(in_order) << 29 | message & MAX_MESSAGE;
    let mut header = [0; HEADER_BYTES];
    for (to, word) in header.chunks_exact_mut(4).zip([seq.get(), info, timestamp_us, destination]) {
        to.copy_from_slice(&word.to_be_bytes());
    }
    header
}

fn control(kind: u16, extension: u16, info: u32, body: &[u8]) -> Result<Body<'_>, DecodeError> {
    let wrong = DecodeError::Body { kind, bytes: body.len() };
    Ok(match kind {
        0 if body.len() == HANDSHAKE_BYTES => Body::Handshake(Handshake {
            version: word(body, 0),
            kind: word(body, 1),
            initial: Seq::new(word(body, 2)),
            mss_bytes: word(body, 3),
            window_packets: word(body, 4),
            request: Request(word(body, 5) as i32),
            socket: word(body, 6),
            cookie: word(body, 7),
            peer_ip: [8, 9, 10, 11].map(|at| word(body, at)),
        }),
        1 => Body::KeepAlive,
        2 => {
            let speeds = match body.len() {
                4 | 16 => None,
                24 => Some(Speeds { arrival_pps: word(body, 4), capacity_pps: word(body, 5) }),
                _ => return Err(wrong),
            };
            let report = (body.len() > 4).then(|| AckReport {
                rtt_us: word(body, 1),
                rtt_var_us: word(body, 2),
                buffer_packets: word(body, 3),
                speeds,
            });
            Body::Ack { number: info, next: Seq::new(word(body, 0)), report }
        }
        3 => Body::Nak(LossReport::parse(body).ok_or(wrong)?),
        4 => Body::Warning,
        5 => Body::Shutdown,
        6 => Body::Ack2 { number: info },
        7 if body.len() == 8 => {
            Body::Drop { message: info, first: Seq::new(word(body, 0)), end: Seq::new(word(body, 1)) }
        }
        8 => Body::PeerError { code: info },
        0x7fff => Body::User { extension, info, body },
        0 | 7 => return Err(wrong),
        _ => return Err(DecodeError::Type { kind }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: String = text.split_whitespace().collect();
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
    }

    fn encoded(packet: &Packet<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        packet.encode(&mut bytes);
        bytes
    }

    /// Captured from libudt 4.11: a client returns the cookie.
    #[test]
    fn a_captured_handshake() {
        let datagram =
            hex("80000000 00000000 00000000 00000000 00000004 00000001 3E03DC3F 000005DC 00002000 FFFFFFFF
             0DFA9E6D 029A7AF6 0100007F 00000000 00000000 00000000");
        let packet = Packet::decode(&datagram).unwrap();
        let expected = Handshake {
            version: VERSION,
            kind: 1,
            initial: Seq::new(1_040_440_383),
            mss_bytes: 1500,
            window_packets: 8192,
            request: Request::RESPONSE,
            socket: 234_528_365,
            cookie: 0x029a_7af6,
            peer_ip: [0x0100_007f, 0, 0, 0],
        };
        assert_eq!(packet, Packet { timestamp_us: 0, destination: 0, body: Body::Handshake(expected) });
        assert_eq!(encoded(&packet), datagram);
    }

    #[test]
    fn what_has_no_body_takes_20_bytes_and_is_read_from_16() {
        let empty = [
            Body::KeepAlive,
            Body::Warning,
            Body::Shutdown,
            Body::Ack2 { number: 7 },
            Body::PeerError { code: 4000 },
        ];
        for body in empty {
            let bytes = encoded(&Packet { timestamp_us: 1, destination: 2, body });
            assert_eq!(bytes.len(), 20);
            assert_eq!(Packet::decode(&bytes[..16]).unwrap().body, body);
        }
    }

    #[test]
    fn errors_say_what_was_wrong() {
        let says = |text: &str| Packet::decode(&hex(text)).unwrap_err().to_string();
        assert_eq!(says("80010000"), "4 bytes are less than a header of 16");
        assert_eq!(
            says("80090000 00000000 00000000 00000000"),
            "control packets have no type 9; known are 0 to 8 and 32767"
        );
        for kind in ["80000000", "80020000", "80030000", "80070000"] {
            let text = says(&format!("{kind} 00000000 00000000 00000000 0000"));
            assert!(text.ends_with("has no body of 2 bytes, or not this one"), "{text}");
        }
    }

    fn seq() -> impl Strategy<Value = Seq> {
        any::<u32>().prop_map(Seq::new)
    }

    fn handshake() -> impl Strategy<Value = Handshake> {
        (any::<[u32; 5]>(), any::<i32>(), any::<[u32; 4]>()).prop_map(|(words, request, peer_ip)| Handshake {
            version: words[0],
            kind: words[1],
            initial: Seq::new(words[2]),
            mss_bytes: words[3],
            window_packets: words[4],
            request: Request(request),
            socket: words[0] ^ words[1],
            cookie: words[2] ^ words[3],
            peer_ip,
        })
    }

    fn ack_report() -> impl Strategy<Value = AckReport> {
        (any::<[u32; 3]>(), proptest::option::of(any::<[u32; 2]>())).prop_map(|(words, speeds)| AckReport {
            rtt_us: words[0],
            rtt_var_us: words[1],
            buffer_packets: words[2],
            speeds: speeds.map(|[arrival_pps, capacity_pps]| Speeds { arrival_pps, capacity_pps }),
        })
    }

    /// Any packet; its bytes live as long as the test.
    fn body() -> impl Strategy<Value = Body<'static>> {
        let bytes = proptest::collection::vec(any::<u8>(), 0..100).prop_map(|bytes| &*bytes.leak());
        let losses = proptest::collection::vec((seq(), seq()), 1..20).prop_map(|ranges| {
            let words = Box::leak(Box::default());
            for (first, last) in ranges {
                LossReport::push(words, first, last);
            }
            LossReport::parse(words).unwrap()
        });
        let boundary = (any::<bool>(), any::<bool>()).prop_map(|(first, last)| Boundary::new(first, last));
        prop_oneof![
            (seq(), boundary, any::<bool>(), 0..=MAX_MESSAGE, bytes.clone()).prop_map(
                |(seq, boundary, in_order, message, payload)| Body::Data {
                    seq,
                    boundary,
                    in_order,
                    message,
                    payload
                }
            ),
            handshake().prop_map(Body::Handshake),
            Just(Body::KeepAlive),
            (any::<u32>(), seq(), proptest::option::of(ack_report()))
                .prop_map(|(number, next, report)| Body::Ack { number, next, report }),
            losses.prop_map(Body::Nak),
            Just(Body::Warning),
            Just(Body::Shutdown),
            any::<u32>().prop_map(|number| Body::Ack2 { number }),
            (any::<u32>(), seq(), seq()).prop_map(|(message, first, end)| Body::Drop { message, first, end }),
            any::<u32>().prop_map(|code| Body::PeerError { code }),
            (any::<u16>(), any::<u32>(), bytes).prop_map(|(extension, info, body)| Body::User {
                extension,
                info,
                body
            }),
        ]
    }

    proptest! {
        #[test]
        fn every_packet_survives_the_wire(timestamp_us: u32, destination: u32, body in body()) {
            let packet = Packet { timestamp_us, destination, body };
            let bytes = encoded(&packet);
            prop_assert_eq!(Packet::decode(&bytes), Ok(packet));
        }

        /// A decoded packet is encoded again as the same packet.
        #[test]
        fn any_bytes_are_a_packet_or_an_error(
            kind in prop_oneof![0u16..10, Just(0x7fff), any::<u16>()],
            mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            if bytes.len() >= 2 {
                bytes[..2].copy_from_slice(&(kind | 0x8000).to_be_bytes());
            }
            if let Ok(packet) = Packet::decode(&bytes) {
                let again = encoded(&packet);
                prop_assert_eq!(Packet::decode(&again), Ok(packet));
            }
        }
    }
}
