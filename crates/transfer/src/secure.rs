//! Connections with a shared key. Without the key an attacker cannot read, change or forge packets.
//!
//! A handshake has a fresh random number of its sender, and an HMAC-SHA256 over all of it with a key that
//! HKDF derives from the shared key. The server's HMAC also covers the client's number, so an old answer is
//! not valid. Both numbers are the salt of the HKDF that derives each direction's secret. Every other packet
//! is sealed with AES-256-GCM: a number of 64 bits in the clear, the encrypted packet, 16 bytes of tag. The
//! number is authenticated; XORed with a secret of the direction it is the nonce, as in TLS 1.3 (RFC 8446,
//! 5.3). After 2^23 packets, the bound of RFC 9001 (6.6), HKDF derives the next key from the last; the number
//! tells which key applies. Each number is accepted once.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use lfn_udt::{Body, Handshake, Packet, Request};
use ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey, AES_256_GCM, NONCE_LEN};
use ring::hkdf::{KeyType, Prk, Salt, HKDF_SHA256};
use ring::hmac;

use crate::place::open_without_waiting;
use crate::TransferError;

const NUMBER_BYTES: usize = 8;
const TAG_BYTES: usize = 16;
/// Overhead of a sealed packet, in bytes.
pub(crate) const SEAL_BYTES: usize = NUMBER_BYTES + TAG_BYTES;
/// Overhead of a handshake (64 bytes), in bytes: the sender's number and the code.
const HANDSHAKE_BYTES: usize = 64;
const PROOF_BYTES: usize = 64;
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
pub struct Key(Arc<[u8]>);

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
        (text.len() == KEY_LETTERS && letters.iter().all(good)).then(|| Key(text.into()))
    }

    fn handshakes(&self) -> hmac::Key {
        let secret = Salt::new(HKDF_SHA256, b"lfn-udt 1").extract(&self.0);
        let okm = secret.expand(&[b"handshake"], hmac::HMAC_SHA256).expect("the length of a hash");
        hmac::Key::from(okm)
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

/// Sender of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Client = 1,
    Server = 2,
}

/// Appends number and code to a handshake.
pub(crate) fn prove(key: &Key, role: Role, own: &[u8; 32], client: &[u8; 32], handshake: &mut Vec<u8>) {
    let code = code(key, role, handshake, own, client);
    handshake.extend(own);
    handshake.extend(code.as_ref());
}

fn code(key: &Key, role: Role, packet: &[u8], own: &[u8; 32], client: &[u8; 32]) -> hmac::Tag {
    hmac::sign(&key.handshakes(), &[&[role as u8], packet, own, client].concat())
}

/// Handshake and number of a peer that has the key; a server's reply must repeat the number `client`.
pub(crate) fn proven<'a>(
    key: &Key,
    role: Role,
    datagram: &'a [u8],
    client: Option<&[u8; 32]>,
) -> Option<(&'a [u8], [u8; 32])> {
    if datagram.len() != HANDSHAKE_BYTES + PROOF_BYTES {
        return None;
    }
    let (packet, proof) = datagram.split_at(HANDSHAKE_BYTES);
    let own: [u8; 32] = proof[..32].try_into().ok()?;
    let text = [&[role as u8], packet, &own, client.unwrap_or(&own)].concat();
    hmac::verify(&key.handshakes(), &text, &proof[32..]).ok()?;
    Some((packet, own))
}

/// A handshake with a proof, whether good or not.
pub(crate) fn unproven(datagram: &[u8]) -> Option<Handshake> {
    let (packet, rest) = datagram.split_at_checked(HANDSHAKE_BYTES)?;
    match Packet::decode(packet) {
        Ok(Packet { destination: 0, body: Body::Handshake(handshake), .. }) if rest.len() == PROOF_BYTES => {
            Some(handshake)
        }
        _ => None,
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
        Opener { epoch: Epoch::new(0, secret), before: None, end: 0, came: Box::new([0; _]) }
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

/// State of one end.
pub(crate) struct Secure {
    key: Key,
    role: Role,
    own: [u8; 32],
    client: [u8; 32],
    keys: Option<(Sealer, Opener)>,
    /// Packets refused: forged, damaged or repeated.
    pub refused: u64,
    /// Unauthenticated reply about the key, if any.
    pub hint: Option<Request>,
}

impl Secure {
    /// A client's end.
    pub fn client(key: &Key, own: [u8; 32]) -> Secure {
        Secure { key: key.clone(), role: Role::Client, own, client: own, keys: None, refused: 0, hint: None }
    }

    /// A server's end for a client whose handshake was proven.
    pub fn server(key: &Key, own: [u8; 32], client: [u8; 32]) -> Secure {
        let mut secure = Secure { role: Role::Server, client, ..Secure::client(key, own) };
        secure.agree(&own);
        secure
    }

    fn agree(&mut self, server: &[u8; 32]) {
        let salt = [self.client, *server].concat();
        let secret = Salt::new(HKDF_SHA256, &salt).extract(&self.key.0);
        let [client, server] =
            [&b"lfn-udt 1 client"[..], b"lfn-udt 1 server"].map(|label| expand(&secret, label));
        let (own, peer) = match self.role {
            Role::Client => (client, server),
            Role::Server => (server, client),
        };
        self.keys = Some((Sealer { epoch: Epoch::new(0, &own), number: 0 }, Opener::new(&peer)));
    }

    /// Appends a packet in its sent form; nothing if there is no key for it yet.
    pub fn seal(&mut self, packet: &[u8], is_handshake: bool, out: &mut Vec<u8>) {
        if is_handshake {
            out.extend(packet);
            let mut handshake = packet.to_vec();
            prove(&self.key, self.role, &self.own, &self.client, &mut handshake);
            out.extend(&handshake[packet.len()..]);
        } else if let Some((sealer, _)) = &mut self.keys {
            sealer.seal(packet, out);
        }
    }

    /// The packet in a datagram, if it is the peer's and new.
    pub fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Option<&'a [u8]> {
        let is_handshake = datagram.first().is_some_and(|byte| byte & 0x80 != 0);
        let packet = if is_handshake {
            self.open_handshake(datagram)
        } else {
            self.keys.as_mut().and_then(|(_, opener)| opener.open(datagram))
        };
        self.refused += u64::from(packet.is_none());
        packet
    }

    fn open_handshake<'a>(&mut self, datagram: &'a [u8]) -> Option<&'a [u8]> {
        let (from, client) = match self.role {
            Role::Client => (Role::Server, Some(&self.client)),
            Role::Server => (Role::Client, None),
        };
        let Some((packet, number)) = proven(&self.key, from, datagram, client) else {
            if let Ok(Packet { body: Body::Handshake(said), .. }) = Packet::decode(datagram) {
                self.hint =
                    self.hint.or(Some(said.request).filter(|code| [OTHER_KEY, NO_KEY].contains(code)));
            }
            return None;
        };
        let Ok(Packet { body: Body::Handshake(handshake), .. }) = Packet::decode(packet) else { return None };
        match self.role {
            Role::Server if number != self.client => return None,
            Role::Client if handshake.request == Request::RESPONSE && self.keys.is_none() => {
                self.agree(&number)
            }
            _ => {}
        }
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> (Sealer, Opener) {
        let secret = [9; 32];
        (Sealer { epoch: Epoch::new(0, &secret), number: 0 }, Opener::new(&secret))
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

    #[test]
    fn directions_and_connections_have_keys_of_their_own() {
        let key = Key::parse(&[b'a'; 43].iter().chain(b"=").copied().collect::<Vec<_>>()).unwrap();
        let mut server = Secure::server(&key, [1; 32], [2; 32]);
        let mut other = Secure::server(&key, [3; 32], [2; 32]);
        let mut out = Vec::new();
        server.seal(b"packet", false, &mut out);
        assert_eq!(server.open(&mut out.clone()), None);
        assert_eq!(other.open(&mut out.clone()), None);
        let mut client = Secure::client(&key, [2; 32]);
        client.agree(&[1; 32]);
        assert_eq!(client.open(&mut out), Some(&b"packet"[..]));
    }

    #[test]
    fn a_key_is_32_bytes_in_base64() {
        for bad in ["", "secret", &"a".repeat(44), &("a".repeat(44) + "="), &("a b".repeat(14) + "a=")] {
            assert!(Key::parse(bad.as_bytes()).is_none(), "{bad:?}");
        }
    }
}
