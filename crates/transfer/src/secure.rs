//! Connections with a shared key. Without the key an attacker cannot read, change or forge packets; with it, not read
//! what was sent before.
//!
//! The handshake is Noise NNpsk0 (revision 34; the crate snow): both ends make an ephemeral key on Curve25519, and
//! the shared key is mixed in from the first message on. A datagram is UDT's header (16 bytes), in the clear, and a
//! message of Noise whose payload is the handshake's body. The client's requests are first messages. Before a connection
//! exists, the server's replies are first messages as well, bound to the request by the prologue, so that they cost no
//! key agreement. Its answer to the cookie is the second message, and gives each direction a secret.
//!
//! Every other packet is sealed with AES-256-GCM: a number of 64 bits in the clear, the encrypted packet, 16 bytes
//! of tag. The number is authenticated; XORed with a secret of the direction it is the nonce, as in TLS 1.3 (RFC 8446,
//! 5.3). After 2^23 packets, the bound of RFC 9001 (6.6), HKDF derives the next key from the last; the number
//! tells which key applies. Each number is accepted once.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use lfn_udt::{Body, Handshake, Packet, Request, Seq, HEADER_BYTES, VERSION};
use ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey, AES_256_GCM, NONCE_LEN};
use ring::digest::{digest, SHA256};
use ring::hkdf::{KeyType, Prk, HKDF_SHA256};
use snow::{Builder, HandshakeState};

use crate::place::open_without_waiting;
use crate::TransferError;

const NUMBER_BYTES: usize = 8;
const TAG_BYTES: usize = 16;
/// Overhead of a sealed packet, in bytes.
pub(crate) const SEAL_BYTES: usize = NUMBER_BYTES + TAG_BYTES;
const NOISE: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
/// Bytes of a handshake of UDT, without and with its header.
const BODY_BYTES: usize = 48;
const PLAIN_BYTES: usize = HEADER_BYTES + BODY_BYTES;
/// Bytes of a handshake with a key: header, ephemeral key, encrypted body, tag.
const HANDSHAKE_BYTES: usize = HEADER_BYTES + 32 + BODY_BYTES + TAG_BYTES;
/// Prologues of a client's request, and of a server's reply, which the request's message follows.
const REQUEST: &[u8] = b"lfn-udt 2 request";
const REPLY: &[u8] = b"lfn-udt 2 reply";
/// Packets under one key.
const KEY_PACKETS: u64 = 1 << 23;
/// Window of accepted reordering, in packets.
const WINDOW: u64 = 8192;
/// A key is 32 bytes in base64.
const KEY_LETTERS: usize = 44;
/// Unauthenticated replies of a receiver that has another key, or none.
pub(crate) const OTHER_KEY: Request = Request(1102);
pub(crate) const NO_KEY: Request = Request(1103);

/// Key shared by both ends.
#[derive(Clone)]
pub struct Key(Arc<[u8; 32]>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// Reads a key: 32 random bytes in base64, in a file that only its user can read.
    ///
    /// # Errors
    /// When the file cannot be read, others can read it, or it holds something else.
    pub fn read(path: &Path) -> Result<Key, TransferError> {
        let failed = |error| TransferError::file(path, error);
        let file = open_without_waiting(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(TransferError::file(path, "it is not a file; allowed: a file that holds one key"));
        }
        if metadata.mode() & 0o077 != 0 {
            let why = "others may use this key: its mode is {:o}; chmod 600 makes it yours alone";
            return Err(TransferError::file(
                path,
                why.replace("{:o}", &format!("{:o}", metadata.mode() & 0o777)),
            ));
        }
        if ![0, rustix::process::geteuid().as_raw()].contains(&metadata.uid()) {
            return Err(TransferError::file(
                path,
                "the key belongs to another user; allowed: a key of this user or of root",
            ));
        }
        let mut text = Vec::new();
        file.take(1000).read_to_end(&mut text).map_err(failed)?;
        Key::parse(text.trim_ascii()).ok_or_else(|| {
            let why = "it holds no key: 32 random bytes in base64, as `head -c 32 /dev/urandom | base64` makes them";
            TransferError::file(path, why)
        })
    }

    fn parse(text: &[u8]) -> Option<Key> {
        let letters = text.strip_suffix(b"=")?;
        let good = |letter: &u8| letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/');
        let is_key = text.len() == KEY_LETTERS && letters.iter().all(good);
        is_key.then(|| digest(&SHA256, text).as_ref().try_into().ok().map(Arc::new).map(Key))?
    }

    /// The state of a handshake of Noise that has not begun.
    fn begin(&self, prologue: &[u8], is_initiator: bool) -> Option<HandshakeState> {
        let builder = Builder::new(NOISE.parse().ok()?).psk(0, &self.0).ok()?.prologue(prologue).ok()?;
        if is_initiator { builder.build_initiator() } else { builder.build_responder() }.ok()
    }
}

/// HKDF output of `N` bytes.
struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

fn expand<const N: usize>(secret: &Prk, label: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    let label = [label];
    let okm = secret.expand(&label, Bytes(N)).expect("far less than 255 hashes");
    okm.fill(&mut bytes).expect("the length that was asked for");
    bytes
}

/// A handshake in the form that leaves: its header, and a message with its body. `None`: the system has no random
/// numbers.
fn write(state: &mut HandshakeState, packet: &[u8]) -> Option<Vec<u8>> {
    let (header, body) = packet.split_at_checked(HEADER_BYTES)?;
    let mut datagram = [header, &[0; HANDSHAKE_BYTES - HEADER_BYTES]].concat();
    state.write_message(body, &mut datagram[HEADER_BYTES..]).ok()?;
    Some(datagram)
}

/// The handshake in a datagram of a peer that has the key.
fn read(state: &mut HandshakeState, datagram: &[u8]) -> Option<[u8; PLAIN_BYTES]> {
    let mut packet = [0; PLAIN_BYTES];
    let (header, message) = datagram.split_at_checked(HEADER_BYTES)?;
    packet[..HEADER_BYTES].copy_from_slice(header);
    let bytes = state.read_message(message, &mut packet[HEADER_BYTES..]).ok()?;
    (bytes == BODY_BYTES).then_some(packet)
}

fn reply_prologue(request: &[u8]) -> Vec<u8> {
    [REPLY, &request[HEADER_BYTES..]].concat()
}

/// Whether a datagram has the form of a request with a key.
pub(crate) fn is_keyed(datagram: &[u8]) -> bool {
    let packet = [datagram.get(..HEADER_BYTES).unwrap_or_default(), &[0; BODY_BYTES]].concat();
    datagram.len() == HANDSHAKE_BYTES
        && matches!(Packet::decode(&packet), Ok(Packet { destination: 0, body: Body::Handshake(_), .. }))
}

/// A client's request that proved the key.
pub(crate) struct Proven {
    key: Key,
    state: HandshakeState,
    datagram: Vec<u8>,
    packet: [u8; PLAIN_BYTES],
}

impl Proven {
    pub fn new(key: &Key, datagram: &[u8]) -> Option<Proven> {
        if !is_keyed(datagram) {
            return None;
        }
        let mut state = key.begin(REQUEST, false)?;
        let packet = read(&mut state, datagram)?;
        Some(Proven { key: key.clone(), state, datagram: datagram.to_vec(), packet })
    }

    /// UDT's handshake.
    pub fn packet(&self) -> &[u8] {
        &self.packet
    }

    /// A reply that begins no connection, in the form that leaves.
    pub fn reply(&self, packet: &[u8]) -> Option<Vec<u8>> {
        write(&mut self.key.begin(&reply_prologue(&self.datagram), true)?, packet)
    }
}

/// A direction's key for one epoch.
struct Epoch {
    number: u64,
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
    next: [u8; 32],
}

impl Epoch {
    fn new(number: u64, secret: &[u8; 32]) -> Epoch {
        let secret = Prk::new_less_safe(HKDF_SHA256, secret);
        let key = UnboundKey::new(&AES_256_GCM, &expand::<32>(&secret, b"key")).expect("32 bytes");
        let (iv, next) = (expand(&secret, b"iv"), expand(&secret, b"next"));
        Epoch { number, key: LessSafeKey::new(key), iv, next }
    }

    fn next(&self) -> Epoch {
        Epoch::new(self.number + 1, &self.next)
    }

    fn nonce(&self, number: [u8; NUMBER_BYTES]) -> Nonce {
        let mut nonce = self.iv;
        nonce[NONCE_LEN - NUMBER_BYTES..].iter_mut().zip(number).for_each(|(to, byte)| *to ^= byte);
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Encrypts outgoing packets.
struct Sealer {
    epoch: Epoch,
    number: u64,
}

impl Sealer {
    fn new(secret: &[u8; 32]) -> Sealer {
        Sealer { epoch: Epoch::new(0, secret), number: 0 }
    }

    /// Appends a sealed packet.
    fn seal(&mut self, packet: &[u8], out: &mut Vec<u8>) {
        if self.number / KEY_PACKETS > self.epoch.number {
            self.epoch = self.epoch.next();
        }
        let number = self.number.to_be_bytes();
        self.number += 1;
        out.extend(number);
        let start = out.len();
        out.extend(packet);
        let nonce = self.epoch.nonce(number);
        let sealed = self.epoch.key.seal_in_place_separate_tag(nonce, Aad::from(number), &mut out[start..]);
        out.extend(sealed.expect("a datagram is not too long").as_ref());
    }
}

/// Decrypts incoming packets.
struct Opener {
    epoch: Epoch,
    before: Option<Epoch>,
    /// One past the largest number received, and a bitmap of those before it.
    end: u64,
    came: Box<[u64; (WINDOW / 64) as usize]>,
}

impl Opener {
    fn new(secret: &[u8; 32]) -> Opener {
        let came = Box::new([0; (WINDOW / 64) as usize]);
        Opener { epoch: Epoch::new(0, secret), before: None, end: 0, came }
    }

    fn bit(number: u64) -> (usize, u64) {
        ((number % WINDOW / 64) as usize, 1 << (number % 64))
    }

    fn is_new(&self, number: u64) -> bool {
        let (word, bit) = Opener::bit(number);
        number >= self.end || number + WINDOW >= self.end && self.came[word] & bit == 0
    }

    fn note(&mut self, number: u64) {
        for passed in self.end..=number.min(self.end.saturating_add(WINDOW)) {
            let (word, bit) = Opener::bit(passed);
            self.came[word] &= !bit;
        }
        if number >= self.end.saturating_add(WINDOW) {
            self.came.fill(0);
        }
        self.end = self.end.max(number + 1);
        let (word, bit) = Opener::bit(number);
        self.came[word] |= bit;
    }

    /// Decrypts a packet; `None` if it is forged, damaged or repeated.
    fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Option<&'a [u8]> {
        let (number, sealed) = datagram.split_first_chunk_mut::<NUMBER_BYTES>()?;
        let value = u64::from_be_bytes(*number);
        if !self.is_new(value) {
            return None;
        }
        let epoch = value / KEY_PACKETS;
        let aad = Aad::from(*number);
        if epoch == self.epoch.number + 1 {
            let next = self.epoch.next();
            next.key.open_in_place(next.nonce(*number), aad, sealed).ok()?;
            self.before = Some(std::mem::replace(&mut self.epoch, next));
        } else {
            let known = [Some(&self.epoch), self.before.as_ref()];
            let with = known.into_iter().flatten().find(|known| known.number == epoch)?;
            with.key.open_in_place(with.nonce(*number), aad, sealed).ok()?;
        }
        self.note(value);
        let bytes = sealed.len() - TAG_BYTES;
        Some(&sealed[..bytes])
    }
}

/// A client's last request.
struct Asked {
    state: HandshakeState,
    body: Vec<u8>,
    datagram: Vec<u8>,
}

/// The part of a handshake that an end keeps.
enum Stage {
    /// The client's last request, until it is answered.
    Client(Key, Option<Box<Asked>>),
    /// The request that the server accepted; its answer, once it is made.
    Server(Box<Proven>, Option<Vec<u8>>),
}

/// State of one end.
pub(crate) struct Secure {
    stage: Stage,
    keys: Option<(Sealer, Opener)>,
    /// Packets refused: forged, damaged or repeated.
    pub refused: u64,
    /// Unauthenticated reply about the key, if any.
    pub hint: Option<Request>,
}

impl Secure {
    /// A client's end.
    pub fn client(key: &Key) -> Secure {
        Secure { stage: Stage::Client(key.clone(), None), keys: None, refused: 0, hint: None }
    }

    /// A server's end for a request that returned the cookie.
    pub fn server(request: Proven) -> Secure {
        Secure { stage: Stage::Server(Box::new(request), None), keys: None, refused: 0, hint: None }
    }

    /// Appends a packet in its sent form; nothing if there is no key for it yet.
    pub fn seal(&mut self, packet: &[u8], is_handshake: bool, out: &mut Vec<u8>) {
        if is_handshake {
            out.extend(self.seal_handshake(packet).unwrap_or_default());
        } else if let Some((sealer, _)) = &mut self.keys {
            sealer.seal(packet, out);
        }
    }

    /// A handshake that leaves again is the same message: an answer to any of its copies is an answer to it.
    fn seal_handshake(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        match &mut self.stage {
            Stage::Client(key, asked) => {
                let body = &packet[HEADER_BYTES..];
                if asked.as_ref().is_none_or(|asked| asked.body != body) {
                    let mut state = key.begin(REQUEST, true)?;
                    let datagram = write(&mut state, packet)?;
                    *asked = Some(Box::new(Asked { state, body: body.to_vec(), datagram }));
                }
                asked.as_ref().map(|asked| asked.datagram.clone())
            }
            Stage::Server(request, answer) => {
                if answer.is_none() {
                    *answer = Some(write(&mut request.state, packet)?);
                    let (client, server) = request.state.dangerously_get_raw_split();
                    self.keys = Some((Sealer::new(&server), Opener::new(&client)));
                }
                answer.clone()
            }
        }
    }

    /// The packet in a datagram, if it is the peer's and new.
    pub fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Option<&'a [u8]> {
        let is_handshake = datagram.first().is_some_and(|byte| byte & 0x80 != 0);
        let packet = if is_handshake {
            self.open_handshake(datagram).map(|packet| {
                datagram[..PLAIN_BYTES].copy_from_slice(&packet);
                &datagram[..PLAIN_BYTES]
            })
        } else {
            self.keys.as_mut().and_then(|(_, opener)| opener.open(datagram))
        };
        self.refused += u64::from(packet.is_none());
        packet
    }

    fn open_handshake(&mut self, datagram: &[u8]) -> Option<[u8; PLAIN_BYTES]> {
        if datagram.len() != HANDSHAKE_BYTES {
            if let Ok(Packet { body: Body::Handshake(said), .. }) = Packet::decode(datagram) {
                self.hint =
                    self.hint.or(Some(said.request).filter(|code| [OTHER_KEY, NO_KEY].contains(code)));
            }
            return None;
        }
        let (key, asked) = match &mut self.stage {
            // The header may differ in its time.
            Stage::Server(request, _) => {
                let again = request.datagram[HEADER_BYTES..] == datagram[HEADER_BYTES..];
                return again.then_some(request.packet);
            }
            Stage::Client(key, asked) => (key, asked),
        };
        let Asked { state, datagram: request, .. } = &mut **asked.as_mut()?;
        let reply =
            key.begin(&reply_prologue(request), false).and_then(|mut state| read(&mut state, datagram));
        if reply.is_some() {
            return reply;
        }
        let answer = read(state, datagram)?;
        let (client, server) = state.dangerously_get_raw_split();
        self.keys = Some((Sealer::new(&client), Opener::new(&server)));
        *asked = None;
        Some(answer)
    }
}

/// A reply that tells what is wrong with a client's key. It is not authenticated, so it is a hint.
pub(crate) fn hint(request: Request) -> Handshake {
    Handshake {
        version: VERSION,
        kind: 0,
        initial: Seq::new(0),
        mss_bytes: 0,
        window_packets: 0,
        request,
        socket: 0,
        cookie: 0,
        peer_ip: [0; 4],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> (Sealer, Opener) {
        let secret = [9; 32];
        (Sealer::new(&secret), Opener::new(&secret))
    }

    fn sealed(sealer: &mut Sealer, packet: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        sealer.seal(packet, &mut out);
        assert_eq!(out.len(), packet.len() + SEAL_BYTES);
        out
    }

    #[test]
    fn a_packet_is_taken_once_and_whole() {
        let (mut sealer, mut opener) = ends();
        let first = sealed(&mut sealer, b"first");
        for at in 0..first.len() {
            for bit in 0..8 {
                let mut changed = first.clone();
                changed[at] ^= 1 << bit;
                assert_eq!(opener.open(&mut changed), None, "byte {at}");
            }
            assert_eq!(opener.open(&mut first[..at].to_vec()), None, "{at} bytes");
        }
        assert_eq!(opener.open(&mut [&first[..], &[0]].concat()), None);
        assert_eq!(opener.open(&mut first.clone()), Some(&b"first"[..]));
        assert_eq!(opener.open(&mut first.clone()), None);
    }

    #[test]
    fn late_packets_are_taken_within_the_window() {
        let (mut sealer, mut opener) = ends();
        let packets: Vec<_> = (0..3 * WINDOW).map(|_| sealed(&mut sealer, b"x")).collect();
        let mut open = |at: u64| opener.open(&mut packets[at as usize].clone()).is_some();
        assert!(open(5) && open(3) && !open(5) && open(WINDOW + 4));
        assert!(!open(3) && !open(4) && !open(5) && open(6) && !open(6));
        assert!(open(3 * WINDOW - 1));
        assert!(!open(WINDOW + 10) && open(2 * WINDOW) && !open(2 * WINDOW) && !open(3 * WINDOW - 1));
    }

    #[test]
    fn keys_change_and_the_last_one_serves_for_what_is_late() {
        let (mut sealer, mut opener) = ends();
        sealer.number = KEY_PACKETS - 2;
        let packets: Vec<_> = (0..4).map(|_| sealed(&mut sealer, b"x")).collect();
        let mut open = |at: usize| opener.open(&mut packets[at].clone()).is_some();
        assert!(open(0) && open(2) && open(1) && open(3) && !open(1));
        assert_eq!(opener.epoch.number, 1);
        // Not two at once.
        let (mut sealer, mut opener) = ends();
        sealer.epoch = sealer.epoch.next().next();
        sealer.number = 2 * KEY_PACKETS;
        assert_eq!(opener.open(&mut sealed(&mut sealer, b"x")), None);
        assert_eq!(opener.open(&mut [0x7f; 100]), None);
    }

    fn key(letter: u8) -> Key {
        Key::parse(&[&[letter; 43][..], b"="].concat()).unwrap()
    }

    fn handshake(request: Request, cookie: u32) -> Vec<u8> {
        let body = Body::Handshake(Handshake { cookie, ..hint(request) });
        let mut packet = Vec::new();
        Packet { timestamp_us: 7, destination: 0, body }.encode(&mut packet);
        packet
    }

    fn left(secure: &mut Secure, packet: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        secure.seal(packet, true, &mut out);
        assert_eq!(out.len(), HANDSHAKE_BYTES);
        out
    }

    /// Both ends of a connection, through the whole handshake.
    fn connected() -> (Secure, Secure) {
        let mut client = Secure::client(&key(b'a'));
        let request = handshake(Request::REGULAR, 0);
        let proven = Proven::new(&key(b'a'), &left(&mut client, &request)).unwrap();
        assert_eq!(proven.packet(), request);
        let cookie = handshake(Request::REGULAR, 5);
        assert_eq!(client.open(&mut proven.reply(&cookie).unwrap()), Some(&*cookie));
        let response = handshake(Request::RESPONSE, 5);
        let mut server = Secure::server(Proven::new(&key(b'a'), &left(&mut client, &response)).unwrap());
        let answer = handshake(Request::RESPONSE, 6);
        assert_eq!(client.open(&mut left(&mut server, &answer)), Some(&*answer));
        (client, server)
    }

    #[test]
    fn directions_and_connections_have_keys_of_their_own() {
        let ((mut client, mut server), (mut other, _)) = (connected(), connected());
        let mut out = Vec::new();
        server.seal(b"packet", false, &mut out);
        assert_eq!(server.open(&mut out.clone()), None);
        assert_eq!(other.open(&mut out.clone()), None);
        assert_eq!(client.open(&mut out), Some(&b"packet"[..]));
        out.clear();
        client.seal(b"another", false, &mut out);
        assert_eq!(server.open(&mut out), Some(&b"another"[..]));
    }

    /// A message that is changed is refused, and does not disturb the right one.
    #[test]
    fn every_message_of_the_handshake_is_authentic() {
        let each_change = |good: &[u8], refused: &mut dyn FnMut(&mut [u8]) -> bool| {
            for at in HEADER_BYTES..good.len() {
                let mut changed = good.to_vec();
                // The top bit of a number of Curve25519 does not count.
                changed[at] ^= 1 << (at % 7);
                assert!(refused(&mut changed), "byte {at}");
            }
            assert!((0..good.len()).all(|at| refused(&mut good[..at].to_vec())));
            assert!(refused(&mut [good, &[0]].concat()));
        };
        let mut client = Secure::client(&key(b'a'));
        let request = left(&mut client, &handshake(Request::REGULAR, 0));
        each_change(&request, &mut |changed| Proven::new(&key(b'a'), changed).is_none());
        assert!(Proven::new(&key(b'b'), &request).is_none());
        let proven = Proven::new(&key(b'a'), &request).unwrap();
        let reply = proven.reply(&handshake(Request::REGULAR, 5)).unwrap();
        each_change(&reply, &mut |changed| client.open(changed).is_none());
        // Neither a request nor a reply to another request is a reply.
        assert_eq!(client.open(&mut request.clone()), None);
        let other = left(&mut Secure::client(&key(b'a')), &handshake(Request::REGULAR, 0));
        let other = Proven::new(&key(b'a'), &other).unwrap();
        assert_eq!(client.open(&mut other.reply(&handshake(Request::REGULAR, 5)).unwrap()), None);
        assert!(client.open(&mut reply.clone()).is_some());
        let response = left(&mut client, &handshake(Request::RESPONSE, 5));
        assert_eq!(client.open(&mut reply.clone()), None, "a reply to what was asked before");
        let mut server = Secure::server(Proven::new(&key(b'a'), &response).unwrap());
        let answer = left(&mut server, &handshake(Request::RESPONSE, 6));
        each_change(&answer, &mut |changed| client.open(changed).is_none());
        assert!(client.open(&mut answer.clone()).is_some());
    }

    /// A request or an answer that is lost leaves again as it was; a new cookie makes a new request.
    #[test]
    fn a_handshake_that_is_repeated_is_the_same() {
        let mut client = Secure::client(&key(b'a'));
        let [first, again, other] =
            [5, 5, 6].map(|cookie| left(&mut client, &handshake(Request::RESPONSE, cookie)));
        assert!(first == again && first != other);
        let mut server = Secure::server(Proven::new(&key(b'a'), &other).unwrap());
        let answers = [0, 1].map(|_| left(&mut server, &handshake(Request::RESPONSE, 7)));
        assert_eq!(answers[0], answers[1]);
        assert!(server.open(&mut other.clone()).is_some());
        assert_eq!(server.open(&mut first.clone()), None);
        assert!(client.open(&mut answers[1].clone()).is_some());
    }

    #[test]
    fn hints_about_keys_are_read() {
        for code in [OTHER_KEY, NO_KEY] {
            let mut client = Secure::client(&key(b'a'));
            assert_eq!(client.open(&mut handshake(code, 0)), None);
            assert_eq!(client.hint, Some(code));
        }
    }

    #[test]
    fn a_key_is_32_bytes_in_base64() {
        for bad in ["", "secret", &"a".repeat(44), &("a".repeat(44) + "="), &("a b".repeat(14) + "a=")] {
            assert!(Key::parse(bad.as_bytes()).is_none(), "{bad:?}");
        }
    }
}
