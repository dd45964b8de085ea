//! Whole TCP connections of smoltcp, unmodified: two interfaces with a socket each, over a device that keeps packets.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::marker::PhantomData;

use lfn_stack_adapter::whole::{Datagram, Payloads, Progress, Setup, Whole};
use lfn_stack_adapter::wholes;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, Ipv4Packet, TcpPacket};

/// Of the send and of the receive buffer, so that they do not limit.
const BUFFER_BYTES: usize = 1 << 24;
const PORT: u16 = 4433;
/// The end that sends data.
const CLIENT: usize = 0;
/// IPv4's and TCP's headers without options.
const HEADER_BYTES: u64 = 40;
/// The least packet that every host takes (RFC 791).
const LEAST_BYTES: u64 = 576;

/// Which controller.
pub trait Kind: Send {
    const NAME: &'static CStr;
    const CONTROL: CongestionControl;
}

pub struct Cubic;
impl Kind for Cubic {
    const NAME: &'static CStr = c"smoltcp-whole:cubic";
    const CONTROL: CongestionControl = CongestionControl::Cubic;
}

pub struct Reno;
impl Kind for Reno {
    const NAME: &'static CStr = c"smoltcp-whole:reno";
    const CONTROL: CongestionControl = CongestionControl::Reno;
}

/// A device of one end.
struct Wire {
    incoming: Option<Vec<u8>>,
    outgoing: VecDeque<Vec<u8>>,
    packet_bytes: usize,
}

struct Received(Vec<u8>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

struct Sending<'a>(&'a mut VecDeque<Vec<u8>>);

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut packet = vec![0; length];
        let written = write(&mut packet);
        self.0.push_back(packet);
        written
    }
}

impl Device for Wire {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Received, Sending<'_>)> {
        Some((Received(self.incoming.take()?), Sending(&mut self.outgoing)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Sending<'_>> {
        Some(Sending(&mut self.outgoing))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.max_transmission_unit = self.packet_bytes;
        capabilities.medium = Medium::Ip;
        capabilities
    }
}

struct End {
    wire: Wire,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    now: Instant,
}

impl End {
    fn new(setup: &Setup, number: usize, control: CongestionControl) -> End {
        let mut wire =
            Wire { incoming: None, outgoing: VecDeque::new(), packet_bytes: setup.packet_bytes as usize };
        let now = instant(setup.now_ns);
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = setup.seed.wrapping_add(number as u64);
        let mut interface = Interface::new(config, &mut wire, now);
        interface.update_ip_addrs(|addresses| {
            let _ = addresses.push(IpCidr::new(address(number), 24));
        });
        let buffer = || SocketBuffer::new(vec![0; BUFFER_BYTES]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_congestion_control(control);
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        End { wire, interface, sockets, socket, now }
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    fn poll(&mut self) {
        self.interface.poll(self.now, &mut self.wire, &mut self.sockets);
    }
}

/// smoltcp counts microseconds.
fn instant(ns: u64) -> Instant {
    Instant::from_micros((ns / 1000) as i64)
}

fn address(end: usize) -> IpAddress {
    IpAddress::v4(10, 0, 0, 1 + end as u8)
}

/// Sequence number, number of bytes and acknowledgement of a segment.
fn segment(packet: &[u8]) -> Option<(u32, u32, u32)> {
    let packet = Ipv4Packet::new_checked(packet).ok()?;
    let segment = TcpPacket::new_checked(packet.payload()).ok()?;
    let bytes = segment.payload().len() as u32;
    Some((segment.seq_number().0 as u32, bytes, segment.ack_number().0 as u32))
}

/// A client that writes and a server that reads.
pub struct Pair<K> {
    ends: [End; 2],
    payloads: Payloads<Vec<u8>>,
    left_bytes: u64,
    read_bytes: u64,
    /// One after the last byte that the client sent, and the last that it was acknowledged.
    sent_to: u32,
    acked_to: u32,
    sent_again: u64,
    segment_bytes: u64,
    kind: PhantomData<K>,
}

impl<K> Pair<K> {
    /// The application of an end, and the stack after it.
    fn drive(&mut self, end: usize) {
        let at = &mut self.ends[end];
        at.poll();
        if end == CLIENT {
            const ZEROS: [u8; 1 << 16] = [0; 1 << 16];
            let mut wrote = false;
            while self.left_bytes > 0 && at.socket().can_send() {
                let most = self.left_bytes.min(ZEROS.len() as u64) as usize;
                let Ok(written) = at.socket().send_slice(&ZEROS[..most]) else { break };
                // Without an end there is always more.
                if self.left_bytes < u64::MAX {
                    self.left_bytes -= written as u64;
                }
                wrote = true;
            }
            if self.left_bytes == 0 && at.socket().may_send() {
                at.socket().close();
                wrote = true;
            }
            if wrote {
                at.poll();
            }
        } else {
            let mut has_read = false;
            while at.socket().can_recv() {
                let Ok(read) = at.socket().recv(|data| (data.len(), data.len())) else { break };
                self.read_bytes += read as u64;
                has_read = true;
            }
            if has_read {
                at.poll();
            }
        }
    }
}

impl<K: Kind> Whole for Pair<K> {
    const NAME: &'static CStr = K::NAME;

    fn new(setup: &Setup) -> Option<Self> {
        if setup.packet_bytes < LEAST_BYTES {
            return None;
        }
        let mut ends = [0, 1].map(|end| End::new(setup, end, K::CONTROL));
        let [client, server] = &mut ends;
        server.socket().listen(PORT).ok()?;
        let socket: &mut Socket = client.sockets.get_mut(client.socket);
        socket.connect(client.interface.context(), (address(1), PORT), 49152).ok()?;
        Some(Pair {
            ends,
            payloads: Payloads::default(),
            left_bytes: setup.size_bytes,
            read_bytes: 0,
            sent_to: 0,
            acked_to: 0,
            sent_again: 0,
            segment_bytes: setup.packet_bytes - HEADER_BYTES,
            kind: PhantomData,
        })
    }

    fn transmit(&mut self, end: usize, now_ns: u64) -> Option<Datagram> {
        self.ends[end].now = instant(now_ns);
        if self.ends[end].wire.outgoing.is_empty() {
            self.drive(end);
        }
        let packet = self.ends[end].wire.outgoing.pop_front()?;
        if let Some((number, bytes @ 1.., _)) = segment(&packet).filter(|_| end == CLIENT) {
            let is_new = self.sent_to == 0 || number.wrapping_sub(self.sent_to) as i32 >= 0;
            self.sent_again += u64::from(!is_new);
            if is_new {
                self.sent_to = number.wrapping_add(bytes);
            }
        }
        let bytes = packet.len() as u32;
        Some(Datagram { id: self.payloads.keep(packet), bytes, ecn: 0 })
    }

    fn receive(&mut self, end: usize, now_ns: u64, id: u64, _ecn: u32) {
        let Some(packet) = self.payloads.get(id).cloned() else { return };
        if let Some((.., acked)) = segment(&packet).filter(|_| end == CLIENT) {
            self.acked_to = acked;
        }
        self.ends[end].now = instant(now_ns);
        self.ends[end].wire.incoming = Some(packet);
        self.drive(end);
    }

    fn timeout_ns(&mut self, end: usize) -> u64 {
        let End { interface, sockets, now, .. } = &mut self.ends[end];
        interface.poll_at(*now, sockets).map_or(u64::MAX, |at| at.total_micros().max(0) as u64 * 1000)
    }

    fn timer(&mut self, end: usize, now_ns: u64) {
        self.ends[end].now = instant(now_ns);
        self.drive(end);
    }

    fn stop(&mut self, _now_ns: u64) {
        self.left_bytes = 0;
        self.drive(CLIENT);
    }

    fn forget(&mut self, id: u64) {
        self.payloads.forget(id);
    }

    fn progress(&mut self) -> Progress {
        let in_flight = self.sent_to.wrapping_sub(self.acked_to) as i32;
        Progress {
            read_bytes: self.read_bytes,
            in_flight_bytes: if self.sent_to == 0 { 0 } else { in_flight.max(0) as u64 },
            lost_packets: self.sent_again,
            segment_bytes: self.segment_bytes,
            ..Progress::default()
        }
    }
}

wholes! {
    "cubic" => Pair<Cubic>,
    "reno" => Pair<Reno>,
}
