#!/bin/sh
# The first flight of smoltcp's TCP is 2048 bytes at any MTU, with CUBIC and with Reno.
#
# The window starts with twice a default MSS of 1024 bytes and is not set again when the peers have told each other theirs. At
# MTU 1500 that is 1.4 segments, at MTU 9000 a quarter of one, so a transfer begins with one short packet. The window then
# grows by one segment for each ACK. Two of its stacks in one process, in virtual time, Nagle off, 200 kB to send. Seen with smoltcp
# 0.14.0.
# Expected: 10 segments, at most 14,600 bytes or two segments (RFC 6928); RFC 5681 has at least two.
set -eu
. "$(dirname "$0")/debian"
command -v cargo >/dev/null || {
	echo "cargo is missing" >&2
	exit 2
}
mkdir -p "$work/flight/src"
cat >"$work/flight/Cargo.toml" <<'TOML'
[package]
name = "first-flight"
version = "0.1.0"
edition = "2024"
[dependencies]
smoltcp = { version = "=0.14.0", default-features = false, features = ["std", "medium-ip", "proto-ipv4", "socket-tcp", "socket-tcp-cubic", "socket-tcp-reno"] }
TOML
cat >"$work/flight/src/main.rs" <<'RUST'
//! Bytes in the first flight of smoltcp's TCP over a link of this MTU, in virtual time.

use std::collections::VecDeque;

use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

struct Link {
    mtu: usize,
    out: VecDeque<Vec<u8>>,
    into: VecDeque<Vec<u8>>,
}
struct Received(Vec<u8>);
struct Sending<'a>(&'a mut VecDeque<Vec<u8>>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}
impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        self.0.push_back(packet);
        result
    }
}
impl Device for Link {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending<'a>;
    fn receive(&mut self, _: Instant) -> Option<(Received, Sending<'_>)> {
        let packet = self.into.pop_front()?;
        Some((Received(packet), Sending(&mut self.out)))
    }
    fn transmit(&mut self, _: Instant) -> Option<Sending<'_>> {
        Some(Sending(&mut self.out))
    }
    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }
}

fn host(mtu: usize, last: u8, control: CongestionControl) -> (Link, Interface, SocketSet<'static>, Socket<'static>) {
    let mut link = Link { mtu, out: VecDeque::new(), into: VecDeque::new() };
    let mut face = Interface::new(Config::new(HardwareAddress::Ip), &mut link, Instant::ZERO);
    face.update_ip_addrs(|list| list.push(IpCidr::new(IpAddress::v4(10, 0, 0, last), 24)).expect("room"));
    let buffer = || SocketBuffer::new(vec![0; 1 << 20]);
    let mut socket = Socket::new(buffer(), buffer());
    socket.set_congestion_control(control);
    socket.set_nagle_enabled(false);
    (link, face, SocketSet::new(vec![]), socket)
}

fn main() {
    for mtu in [1500, 9000] {
        for control in [CongestionControl::Cubic, CongestionControl::Reno] {
            let (mut a, mut face_a, mut set_a, mut client) = host(mtu, 1, control);
            let (mut b, mut face_b, mut set_b, mut server) = host(mtu, 2, control);
            server.listen(80).expect("a port");
            client.connect(face_a.context(), (IpAddress::v4(10, 0, 0, 2), 80), 50000).expect("a route");
            let (client, server) = (set_a.add(client), set_b.add(server));
            let mut now = Instant::ZERO;
            // 50 ms each way; the handshake takes three of them.
            for _ in 0..3 {
                face_a.poll(now, &mut a, &mut set_a);
                face_b.poll(now, &mut b, &mut set_b);
                now += smoltcp::time::Duration::from_millis(50);
                std::mem::swap(&mut a.out, &mut b.into);
                std::mem::swap(&mut b.out, &mut a.into);
            }
            let _ = server;
            let socket = set_a.get_mut::<Socket>(client);
            assert!(socket.may_send(), "the handshake is over");
            socket.send_slice(&vec![0; 200_000]).expect("room in the buffer");
            a.out.clear();
            face_a.poll(now, &mut a, &mut set_a);
            let bytes: usize = a.out.iter().map(|packet| packet.len() - 40).sum();
            println!("MTU {mtu} {control:?} {bytes}");
        }
    }
}
RUST
seen=$(cargo run --quiet --release --manifest-path "$work/flight/Cargo.toml") || {
	echo "cannot build smoltcp 0.14.0 from crates.io" >&2
	exit 2
}
expect "MTU, controller, bytes in the first flight" "MTU 1500 Cubic 2048
MTU 1500 Reno 2048
MTU 9000 Cubic 2048
MTU 9000 Reno 2048" "$seen"
exit "${changed:-0}"
