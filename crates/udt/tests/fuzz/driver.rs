//! Hostile datagrams for a connection in the middle of a transfer.

use std::net::SocketAddr;

use lfn_udt::{
    AckReport, Answer, Body, Boundary, Config, Connection, Handshake, Kind, Listener, Native, NativeConfig,
    Packet, Request, Seq, State,
};
use lfn_units::Time;

/// The first packet that is not acknowledged, in both directions.
pub const NEXT: u32 = 1_040_440_383;
/// Packets acknowledged by then: slow start's first three windows.
const BEFORE: u32 = 16 + 33 + 67;

fn control() -> Box<Native> {
    Box::new(Native::new(NativeConfig::default(), 1, Time::ZERO))
}

fn peer() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 9000))
}

/// A listener, and a connection that both sends and receives.
pub struct Target {
    pub now: Time,
    listener: Listener,
    pub connection: Connection,
    bytes: Vec<u8>,
}

impl Target {
    pub fn new(now: Time) -> Target {
        let handshake = Handshake {
            version: 4,
            kind: 1,
            initial: Seq::new(NEXT - BEFORE),
            mss_bytes: 1500,
            window_packets: 8192,
            request: Request::RESPONSE,
            socket: 234_528_365,
            cookie: 0,
            peer_ip: [0; 4],
        };
        let mut connection = Connection::accept(Config::default(), now, peer(), 7, &handshake, control());
        connection.offer(10_000, true, Time::NEVER);
        let mut target =
            Target { now, listener: Listener::new([1, 2], Kind::Stream, 8), connection, bytes: Vec::new() };
        let mut acked = NEXT - BEFORE;
        for window in [16, 33, 67] {
            target.leave();
            acked += window;
            for seq in acked - window..acked {
                let boundary = Boundary::Solo;
                let body =
                    Body::Data { seq: Seq::new(seq), boundary, in_order: true, message: 1, payload: &[] };
                target.connection.on_packet(target.now, &Packet { timestamp_us: 0, destination: 7, body });
            }
            let report = AckReport { rtt_us: 20_000, rtt_var_us: 1_000, buffer_packets: 8_000, speeds: None };
            let body = Body::Ack { number: 1, next: Seq::new(acked), report: Some(report) };
            target.connection.on_packet(target.now, &Packet { timestamp_us: 0, destination: 7, body });
        }
        target.leave();
        assert!(target.connection.in_flight() > 100);
        target
    }

    /// A window leaves.
    fn leave(&mut self) {
        for _ in 0..200 {
            self.wait(Time::from_us(100));
        }
    }

    /// Time passes, and what is due leaves. One call answers with little, whatever came.
    pub fn wait(&mut self, time: Time) {
        self.now = self.now + time;
        if self.connection.deadline() <= self.now {
            self.connection.on_deadline(self.now);
        }
        let mut sent = 0;
        while let Some(packet) = self.connection.poll_transmit(self.now) {
            self.bytes.clear();
            match packet {
                lfn_udt::Transmit::Control(packet) | lfn_udt::Transmit::Data(_, packet) => {
                    packet.encode(&mut self.bytes)
                }
            }
            assert!(self.bytes.len() <= 1472, "{} bytes", self.bytes.len());
            assert!(Packet::decode(&self.bytes).is_ok());
            sent += 1;
            assert!(sent < 300, "answers without end");
        }
    }

    /// A datagram comes; a connection that it ends is replaced.
    pub fn deliver(&mut self, datagram: &[u8]) {
        if let Ok(packet) = Packet::decode(datagram) {
            if let Body::Handshake(handshake) = packet.body {
                if let Some(Answer::Reply(reply)) = self.listener.on_handshake(self.now, peer(), &handshake) {
                    let reply = Packet {
                        timestamp_us: 0,
                        destination: handshake.socket,
                        body: Body::Handshake(reply),
                    };
                    self.bytes.clear();
                    reply.encode(&mut self.bytes);
                    assert!(self.bytes.len() <= datagram.len(), "more bytes than came");
                }
            }
            self.connection.on_packet(self.now, &packet);
            let until = self.connection.in_order();
            self.connection.on_read(until);
        }
        self.wait(Time::from_us(20));
        if matches!(self.connection.state(), State::Closed(_)) {
            *self = Target::new(self.now);
        }
    }

    /// An input of the fuzzer: datagrams, each after a byte of time and two of length.
    pub fn deliver_all(&mut self, mut input: &[u8]) {
        while let [time, high, low, rest @ ..] = input {
            let bytes = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
            self.wait(Time(1 << (time % 40)));
            self.deliver(&rest[..bytes]);
            input = &rest[bytes..];
        }
    }
}
