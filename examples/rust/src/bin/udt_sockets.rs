//! UDT over real UDP sockets on loopback: a client sends a megabyte to a server. lfn-udt has the protocol; this program
//! has sockets, clock and bytes. Both ends are in one thread.
#![allow(clippy::disallowed_methods, reason = "real sockets have real time")]

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use lfn_udt::{
    Answer, Body, Config, CongestionControl, Connection, Event, Kind, Listener, Native, NativeConfig, Packet,
    Seq, State, Transmit,
};
use lfn_units::Time;

/// This loop looks at its clock about once a millisecond, so packets may leave late together.
const CATCH_UP: Time = Time::from_ms(20);

fn control() -> Box<dyn CongestionControl> {
    Box::new(Native::new(NativeConfig::default(), 1, Time::ZERO))
}

fn encoded(packet: &Packet) -> Vec<u8> {
    let mut datagram = Vec::new();
    packet.encode(&mut datagram);
    datagram
}

/// Sends all that a connection may send now; data packets get their part of the file.
fn transmit(end: &mut Connection, socket: &UdpSocket, now: Time, file: &[u8]) -> std::io::Result<()> {
    let (peer, full) = (end.peer(), end.payload_bytes());
    while let Some(transmit) = end.poll_transmit(now) {
        let (Transmit::Control(mut packet) | Transmit::Data(_, mut packet)) = transmit;
        if let (Transmit::Data(outgoing, _), Body::Data { payload, .. }) = (transmit, &mut packet.body) {
            *payload = file.chunks(full).nth(outgoing.index as usize).expect("an offered packet");
        }
        socket.send_to(&encoded(&packet), peer)?;
    }
    if end.deadline() <= now {
        end.on_deadline(now);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    let (ours, theirs) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    ours.set_nonblocking(true)?;
    theirs.set_read_timeout(Some(Duration::from_millis(1)))?; // the pace of the loop
    let connect_timeout = Time::from_s(60); // a busy machine is no fault
    let config = Config { catch_up: CATCH_UP, connect_timeout, ..Config::default() };
    let began = Instant::now();
    let now = || Time::from_ns(began.elapsed().as_nanos() as u64);
    let peer = theirs.local_addr()?;
    let mut client = Connection::connect(config, now(), peer, 11, Seq::new(0), control());
    let listener = Listener::new([1, 2], Kind::Stream, 1); // the secret of its cookies: draw yours
    let mut server: Option<Connection> = None;
    let (mut arrived, mut buffer) = (vec![0; file.len()], [0; 2000]);
    while !matches!(client.state(), State::Closed(_)) {
        transmit(&mut client, &ours, now(), &file)?;
        while let Ok(bytes) = ours.recv(&mut buffer) {
            if client.on_packet(now(), &Packet::decode(&buffer[..bytes])?) == Event::Connected {
                client.offer(file.len().div_ceil(client.payload_bytes()) as u64, true, Time::NEVER);
                client.close(now()); // once all is acknowledged
            }
        }
        while let Ok((bytes, from)) = theirs.recv_from(&mut buffer) {
            let packet = Packet::decode(&buffer[..bytes])?;
            match (&packet.body, &mut server) {
                (Body::Handshake(asked), None) => match listener.on_handshake(now(), from, asked) {
                    Some(Answer::Reply(reply)) => {
                        let body = Body::Handshake(reply);
                        let packet = Packet { timestamp_us: 0, destination: asked.socket, body };
                        theirs.send_to(&encoded(&packet), from)?;
                    }
                    _ => server = Some(Connection::accept(config, now(), from, 22, asked, control())),
                },
                (_, Some(server)) => {
                    if let Event::Data { index, payload } = server.on_packet(now(), &packet) {
                        let at = index as usize * server.payload_bytes();
                        arrived[at..at + payload.len()].copy_from_slice(payload);
                        server.on_read(server.in_order());
                    }
                }
                (_, None) => {}
            }
        }
        if let Some(server) = &mut server {
            transmit(server, &theirs, now(), &[])?;
        }
    }
    println!("{} bytes arrived, {}", arrived.len(), if arrived == file { "all as sent" } else { "damaged" });
    Ok(())
}
