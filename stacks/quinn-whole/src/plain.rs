//! A handshake and packet protection without cryptography: messages of RFC 9001's shape, and tags of the length of AES-GCM's.

use std::any::Any;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    self, AeadKey, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair,
    Keys, PacketKey, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

const TAG: [u8; 16] = [0xab; 16];

/// All keys and both configurations.
pub struct Plain;

impl PacketKey for Plain {
    fn encrypt(&self, _packet: u64, buf: &mut [u8], _header_len: usize) {
        let body = buf.len() - TAG.len();
        buf[body..].copy_from_slice(&TAG);
    }

    fn decrypt(&self, _packet: u64, _header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        if !payload.ends_with(&TAG) {
            return Err(CryptoError);
        }
        payload.truncate(payload.len() - TAG.len());
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG.len()
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for Plain {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        16
    }
}

impl HmacKey for Plain {
    fn sign(&self, _data: &[u8], signature_out: &mut [u8]) {
        signature_out.fill(0x5a);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _data: &[u8], _signature: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }
}

impl AeadKey for Plain {
    fn seal(&self, data: &mut Vec<u8>, _additional_data: &[u8]) -> Result<(), CryptoError> {
        data.extend_from_slice(&TAG);
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _additional_data: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let body = data.len().checked_sub(TAG.len()).ok_or(CryptoError)?;
        Ok(&mut data[..body])
    }
}

impl HandshakeTokenKey for Plain {
    fn aead_from_hkdf(&self, _random_bytes: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Plain)
    }
}

fn pair<T: ?Sized>(key: impl Fn() -> Box<T>) -> KeyPair<Box<T>> {
    KeyPair { local: key(), remote: key() }
}

fn keys() -> Keys {
    Keys { header: pair(|| Box::new(Plain) as _), packet: pair(|| Box::new(Plain) as _) }
}

impl crypto::ClientConfig for Plain {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(Handshake::new(Side::Client, params)))
    }
}

impl crypto::ServerConfig for Plain {
    fn initial_keys(&self, _version: u32, _dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _version: u32, _orig_dst_cid: &ConnectionId, _packet: &[u8]) -> [u8; 16] {
        TAG
    }

    fn start_session(self: Arc<Self>, _version: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(Handshake::new(Side::Server, params))
    }
}

/// One end of a handshake: each end sends a hello, the server its parameters and the client a finish.
struct Handshake {
    side: Side,
    own: Vec<u8>,
    heard: Vec<u8>,
    /// Messages read, and steps of writing that are done.
    read: usize,
    written: usize,
    peer: Option<TransportParameters>,
}

impl Handshake {
    fn new(side: Side, params: &TransportParameters) -> Handshake {
        let mut own = Vec::new();
        params.write(&mut own);
        Handshake { side, own, heard: Vec::new(), read: 0, written: 0, peer: None }
    }

    /// Messages that this end reads in all.
    fn all(&self) -> usize {
        2
    }

    fn say(buf: &mut Vec<u8>, message: &[u8]) {
        buf.extend_from_slice(&(message.len() as u16).to_be_bytes());
        buf.extend_from_slice(message);
    }
}

impl Session for Handshake {
    fn initial_keys(&self, _dst_cid: &ConnectionId, _side: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.peer.is_some().then(|| Box::new(()) as _)
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.read < self.all()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.heard.extend_from_slice(buf);
        let mut is_new = false;
        while let [high, low, rest @ ..] = &self.heard[..] {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let Some(message) = rest.get(..length) else { break };
            if !message.is_empty() && self.peer.is_none() {
                let mut message = message;
                self.peer = Some(TransportParameters::read(self.side, &mut message)?);
                is_new = true;
            }
            self.read += 1;
            self.heard.drain(..2 + length);
        }
        Ok(is_new)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        match (self.side, self.written, self.read) {
            // Initial: the client's hello with its parameters.
            (Side::Client, 0, _) => {
                Handshake::say(buf, &self.own.clone());
                self.written = 1;
                None
            }
            // The server's hello was read.
            (Side::Client, 1, 1..) => {
                self.written = 2;
                Some(keys())
            }
            // The server's parameters were read: the finish.
            (Side::Client, 2, 2..) => {
                Handshake::say(buf, &[]);
                self.written = 3;
                Some(keys())
            }
            (Side::Server, 0, 1..) => {
                Handshake::say(buf, &[]);
                self.written = 1;
                Some(keys())
            }
            (Side::Server, 1, 1..) => {
                Handshake::say(buf, &self.own.clone());
                self.written = 2;
                Some(keys())
            }
            _ => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(pair(|| Box::new(Plain) as _))
    }

    fn is_valid_retry(&self, _orig_dst_cid: &ConnectionId, _header: &[u8], _payload: &[u8]) -> bool {
        true
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
