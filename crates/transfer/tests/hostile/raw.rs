//! Ends of connections that say what they like: valid handshakes, then any packet.

#![allow(dead_code, reason = "each test uses a part")]

use std::net::UdpSocket;
use std::time::Duration;

use lfn_udt::{Body, Boundary, Handshake, Packet, Request, Seq};

/// The number of a raw client's first packet, and its own socket.
const INITIAL: u32 = 1000;
const SOCKET: u32 = 77;

/// An end whose handshake is done.
pub struct Raw {
    pub udp: UdpSocket,
    /// The other end's socket.
    pub peer: u32,
    pub initial: u32,
}

fn handshake(request: Request, cookie: u32) -> Handshake {
    Handshake {
        version: 4,
        kind: 1,
        initial: Seq::new(INITIAL),
        mss_bytes: 1500,
        window_packets: 8192,
        request,
        socket: SOCKET,
        cookie,
        peer_ip: [0; 4],
    }
}

pub fn encoded(destination: u32, body: Body<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Packet { timestamp_us: 0, destination, body }.encode(&mut bytes);
    bytes
}

/// The handshake that comes next, and from where; `None`: nothing for a second.
fn hear(udp: &UdpSocket) -> Option<(Handshake, std::net::SocketAddr)> {
    let mut buffer = [0; 2048];
    for _ in 0..1000 {
        let (bytes, from) = udp.recv_from(&mut buffer).ok()?;
        if let Ok(Packet { body: Body::Handshake(handshake), .. }) = Packet::decode(&buffer[..bytes]) {
            return Some((handshake, from));
        }
    }
    None
}

impl Raw {
    /// A client at `from` of a server; why not: nothing was heard, or it was refused.
    pub fn connect(server: &str, from: &str) -> Result<Raw, &'static str> {
        let udp = UdpSocket::bind((from, 0)).unwrap();
        udp.connect(server).unwrap();
        udp.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let (mut request, mut cookie) = (Request::REGULAR, 0);
        for _ in 0..10 {
            let _ = udp.send(&encoded(0, Body::Handshake(handshake(request, cookie))));
            match hear(&udp) {
                Some((answer, _)) if answer.request == Request::REGULAR => {
                    (request, cookie) = (Request::RESPONSE, answer.cookie);
                }
                Some((answer, _)) if answer.request == Request::RESPONSE => {
                    return Ok(Raw { udp, peer: answer.socket, initial: INITIAL });
                }
                Some(_) => return Err("refused"),
                None => {}
            }
        }
        Err("no answer")
    }

    /// A server that one client connects to.
    pub fn accept(udp: UdpSocket) -> Raw {
        udp.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        loop {
            let (asked, from) = hear(&udp).expect("a client");
            let answer = Handshake { cookie: 5, ..asked };
            if asked.request == Request::RESPONSE {
                let answer = Handshake { socket: SOCKET, ..answer };
                udp.send_to(&encoded(asked.socket, Body::Handshake(answer)), from).unwrap();
                udp.connect(from).unwrap();
                return Raw { udp, peer: asked.socket, initial: asked.initial.get() };
            }
            udp.send_to(&encoded(asked.socket, Body::Handshake(answer)), from).unwrap();
        }
    }

    /// The peer may be gone.
    pub fn send(&self, body: Body<'_>) {
        let _ = self.udp.send(&encoded(self.peer, body));
    }

    pub fn data(&self, index: u32, payload: &[u8]) {
        let (seq, boundary) = (Seq::new(self.initial.wrapping_add(index)), Boundary::Solo);
        self.send(Body::Data { seq, boundary, in_order: true, message: 1, payload });
    }

    pub fn drop_message(&self, first: u32, end: u32) {
        let at = |index: u32| Seq::new(self.initial.wrapping_add(index));
        self.send(Body::Drop { message: 1, first: at(first), end: at(end) });
    }
}
