//! The server's side of the handshake. Before a valid cookie it keeps no state, and an answer is not longer
//! than its request.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use lfn_units::Time;

use crate::packet::{Handshake, Request, VERSION};
use crate::{Kind, MIN_MSS_BYTES};

/// A cookie is valid for the rest of its minute and the next one.
const COOKIE_LIFE: Time = Time::from_s(60);

/// The answer to a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Send this to where it came from, to socket [`Handshake::socket`] of what came.
    Reply(Handshake),
    /// Its cookie is valid: a new connection may begin (`Connection::accept`), then [`Listener::accepted`].
    Accept,
    /// Its cookie is valid, but all slots are in use: [`Listener::forget`] one and continue as
    /// for [`Answer::Accept`], or send [`full`].
    Full,
    /// This connection has answered it already, and does so again (`Connection::on_packet`).
    Existing(u32),
}

/// The answer to a refused handshake.
pub fn refusal(handshake: &Handshake) -> Handshake {
    Handshake { request: Request::REFUSED, ..*handshake }
}

/// The answer to a handshake that has no free slot: a refusal with a window of 0, which a client of this crate repeats
/// later. libudt takes it as a refusal.
pub fn full(handshake: &Handshake) -> Handshake {
    Handshake { window_packets: 0, ..refusal(handshake) }
}

/// Peers that may connect.
#[derive(Debug)]
pub struct Listener {
    secret: [u64; 2],
    kind: Kind,
    most: usize,
    /// Socket of each connection, by address, peer's socket and initial number.
    accepted: BTreeMap<(SocketAddr, u32, u32), u32>,
}

impl Listener {
    /// At most `most` connections at a time; `secret` makes cookies unforgeable.
    pub fn new(secret: [u64; 2], kind: Kind, most: usize) -> Listener {
        Listener { secret, kind, most, accepted: BTreeMap::new() }
    }

    /// A handshake comes to socket 0.
    pub fn on_handshake(&self, now: Time, from: SocketAddr, handshake: &Handshake) -> Option<Answer> {
        let minute = now.0 / COOKIE_LIFE.0;
        match handshake.request {
            Request::REGULAR => {
                let cookie = self.cookie(from, minute);
                Some(Answer::Reply(Handshake { cookie, ..*handshake }))
            }
            Request::RESPONSE => {
                let good = [Some(minute), minute.checked_sub(1)]
                    .into_iter()
                    .flatten()
                    .any(|minute| self.cookie(from, minute) == handshake.cookie);
                if !good {
                    return None;
                }
                if let Some(&socket) = self.accepted.get(&key(from, handshake)) {
                    return Some(Answer::Existing(socket));
                }
                let refused = handshake.version != VERSION
                    || handshake.kind != self.kind as u32
                    || handshake.mss_bytes < MIN_MSS_BYTES;
                Some(if refused {
                    Answer::Reply(refusal(handshake))
                } else if self.accepted.len() >= self.most {
                    Answer::Full
                } else {
                    Answer::Accept
                })
            }
            _ => None,
        }
    }

    /// A connection began with this handshake; it is called `socket` here.
    pub fn accepted(&mut self, from: SocketAddr, handshake: &Handshake, socket: u32) {
        self.accepted.insert(key(from, handshake), socket);
    }

    /// The connection is over.
    pub fn forget(&mut self, socket: u32) {
        self.accepted.retain(|_, &mut other| other != socket);
    }

    fn cookie(&self, from: SocketAddr, minute: u64) -> u32 {
        let mut text = [0; 26];
        match from.ip() {
            IpAddr::V4(ip) => text[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => text[..16].copy_from_slice(&ip.octets()),
        }
        text[16..18].copy_from_slice(&from.port().to_be_bytes());
        text[18..].copy_from_slice(&minute.to_be_bytes());
        siphash24(self.secret, &text) as u32
    }
}

fn key(from: SocketAddr, handshake: &Handshake) -> (SocketAddr, u32, u32) {
    (from, handshake.socket, handshake.initial.get())
}

/// SipHash-2-4 (Aumasson & Bernstein, 2012): a keyed hash that the standard library has, but not with a key.
fn siphash24(key: [u64; 2], text: &[u8]) -> u64 {
    let mut v = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let round = |v: &mut [u64; 4]| {
        v[0] = v[0].wrapping_add(v[1]);
        v[2] = v[2].wrapping_add(v[3]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[1]);
        v[0] = v[0].wrapping_add(v[3]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].rotate_left(32);
    };
    let mut absorb = |word: u64| {
        v[3] ^= word;
        round(&mut v);
        round(&mut v);
        v[0] ^= word;
    };
    let words = text.chunks_exact(8);
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    last[7] = text.len() as u8;
    for word in words {
        absorb(u64::from_le_bytes(word.try_into().unwrap_or_default()));
    }
    absorb(u64::from_le_bytes(last));
    v[2] ^= 0xff;
    for _ in 0..4 {
        round(&mut v);
    }
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seq;

    /// The vectors of the paper's appendix and of its reference implementation.
    #[test]
    fn siphash_is_that_of_the_paper() {
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let text: Vec<u8> = (0..15).collect();
        assert_eq!(siphash24(key, &text), 0xa129_ca61_49be_45e5);
        assert_eq!(siphash24(key, &[]), 0x726f_db47_dd0e_0e31);
    }

    fn request(request: Request, cookie: u32) -> Handshake {
        Handshake {
            version: VERSION,
            kind: Kind::Stream as u32,
            initial: Seq::new(5),
            mss_bytes: 1500,
            window_packets: 8192,
            request,
            socket: 77,
            cookie,
            peer_ip: [0; 4],
        }
    }

    fn from(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    fn cookie(listener: &Listener, now: Time) -> u32 {
        let Some(Answer::Reply(reply)) = listener.on_handshake(now, from(9), &request(Request::REGULAR, 0))
        else {
            panic!("no cookie")
        };
        reply.cookie
    }

    #[test]
    fn only_a_cookie_of_this_address_and_of_the_last_two_minutes_is_good() {
        let listener = Listener::new([1, 2], Kind::Stream, 10);
        let now = Time::from_s(90);
        let cookie = cookie(&listener, now);
        let confirm = request(Request::RESPONSE, cookie);
        let at = |seconds| listener.on_handshake(Time::from_s(seconds), from(9), &confirm);
        assert_eq!(at(90), Some(Answer::Accept));
        assert_eq!(at(179), Some(Answer::Accept));
        assert_eq!(at(180), None);
        assert_eq!(listener.on_handshake(now, from(10), &confirm), None);
        assert_eq!(listener.on_handshake(now, from(9), &request(Request::RESPONSE, cookie ^ 1)), None);
        let other = Listener::new([1, 3], Kind::Stream, 10);
        assert_eq!(other.on_handshake(now, from(9), &confirm), None);
    }

    #[test]
    fn a_confirmation_that_comes_again_finds_its_connection() {
        let mut listener = Listener::new([1, 2], Kind::Stream, 1);
        let confirm = request(Request::RESPONSE, cookie(&listener, Time::ZERO));
        listener.accepted(from(9), &confirm, 42);
        let answer = listener.on_handshake(Time::ZERO, from(9), &confirm);
        assert_eq!(answer, Some(Answer::Existing(42)));
        let second = Handshake { socket: 78, ..confirm };
        assert_eq!(listener.on_handshake(Time::ZERO, from(9), &second), Some(Answer::Full));
        listener.forget(42);
        assert_eq!(listener.on_handshake(Time::ZERO, from(9), &second), Some(Answer::Accept));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_as_many_bytes() {
        let listener = Listener::new([1, 2], Kind::Stream, 1);
        let good = request(Request::RESPONSE, cookie(&listener, Time::ZERO));
        let messages = Kind::Message as u32;
        for bad in [
            Handshake { version: 5, ..good },
            Handshake { kind: messages, ..good },
            Handshake { mss_bytes: 75, ..good },
        ] {
            let refused = Answer::Reply(Handshake { request: Request::REFUSED, ..bad });
            assert_eq!(listener.on_handshake(Time::ZERO, from(9), &bad), Some(refused));
        }
        let rendezvous = request(Request::RENDEZVOUS, 0);
        assert_eq!(listener.on_handshake(Time::ZERO, from(9), &rendezvous), None);
    }
}
