//! Accepts connections: cookies on a shared port, then a socket and one of a few slots for each client.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use lfn_udt::{full, refusal, Answer, Body, Connection, Handshake, Kind, Listener as Cookies, Packet};
use lfn_units::Time;

use crate::activity::Activity;
use crate::address::resolve;
use crate::secure::{hint, is_keyed, Proven, Secure, NO_KEY, OTHER_KEY};
use crate::socket::{bind_shared, Socket};
use crate::stream::{random, Clock};
use crate::{ControlSpec, Plan, Stream, TransferError};

/// Largest numbers of connections: of a listener, and of one address.
const MAX_CONNECTIONS: usize = 16;
const MAX_PER_ADDRESS: usize = 8;
/// Interval of reports on peers without the key.
const WARNINGS_EVERY: Time = Time::from_s(10);

/// One of a listener's few slots for connections.
struct Slot {
    address: IpAddr,
    began: Time,
    activity: Arc<Activity>,
}

/// Accepts connections: cookies on a shared port, then a socket for each.
pub struct Listener {
    socket: UdpSocket,
    local: SocketAddr,
    cookies: Cookies,
    slots: BTreeMap<u32, Slot>,
    clock: Clock,
    plan: Plan,
    next: u32,
    failed: Vec<TransferError>,
    next_warning: Time,
}

impl Listener {
    /// Listens at `local`, for example `127.0.0.1:9000`; port 0: any.
    ///
    /// # Errors
    /// If the address is invalid or in use.
    pub fn bind(local: &str, plan: Plan) -> Result<Listener, TransferError> {
        let failed = || TransferError::io(format!("listening at {local}"));
        let address = resolve(local, "listening at")?;
        if !address.ip().is_loopback() && !plan.insecure && plan.key.is_none() {
            return Err(TransferError::Usage(format!(
                "listening at {local}: whoever reaches the port could connect, and beyond loopback that is anybody; \
                 --key FILE lets those in who have the key, --insecure anybody"
            )));
        }
        // A plain bind fails if another process has the port. With SO_REUSEPORT it would succeed for this
        // user.
        if address.port() != 0 {
            drop(UdpSocket::bind(address).map_err(failed())?);
        }
        let socket = bind_shared(address).map_err(failed())?;
        let local = socket.local_addr().map_err(failed())?;
        let wait = std::time::Duration::from_millis(200);
        socket.set_read_timeout(Some(wait)).map_err(failed())?;
        let [a, b, c, next] = random()?;
        let secret = [u64::from(a) << 32 | u64::from(b), c.into()];
        let cookies = Cookies::new(secret, Kind::Stream, MAX_CONNECTIONS);
        let (slots, failed) = (BTreeMap::new(), Vec::new());
        let (clock, next_warning) = (Clock::start(), Time::ZERO);
        Ok(Listener { socket, local, cookies, slots, clock, plan, next: next >> 2, failed, next_warning })
    }

    /// The address, with its port.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Congestion control of the sending side of its connections.
    pub fn control(&self) -> ControlSpec {
        self.plan.control.clone()
    }

    /// A connection is over.
    pub fn forget(&mut self, socket: u32) {
        self.cookies.forget(socket);
        self.slots.remove(&socket);
    }

    /// Takes the reasons for failed connections since the last call.
    pub fn failures(&mut self) -> Vec<TransferError> {
        std::mem::take(&mut self.failed)
    }

    /// Waits a while for the next client with a valid cookie; `None`: no client connected.
    /// [`Listener::failures`] has the errors of single clients.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn accept(&mut self) -> Result<Option<Stream>, TransferError> {
        let mut buffer = [0; 2048];
        let (bytes, from) = match self.socket.recv_from(&mut buffer) {
            Ok(got) => got,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::TimedOut
                        | io::ErrorKind::Interrupted
                        | io::ErrorKind::ConnectionRefused
                ) =>
            {
                return Ok(None)
            }
            Err(error) => return Err(TransferError::io(format!("listening at {}", self.local))(error)),
        };
        let Some((handshake, proven)) = self.proven(&buffer[..bytes], from) else { return Ok(None) };
        let answer = match self.cookies.on_handshake(self.clock.now(), from, &handshake) {
            Some(Answer::Accept | Answer::Full) if !self.make_room(from.ip()) => full(&handshake),
            Some(Answer::Accept | Answer::Full) => return Ok(self.connect(from, &handshake, proven)),
            Some(Answer::Reply(reply)) => reply,
            // Its own socket answers.
            Some(Answer::Existing(_)) | None => return Ok(None),
        };
        self.answer(from, &answer, proven.as_ref());
        Ok(None)
    }

    /// Decodes a handshake for socket 0, which proves the key if there is one. A client without the key gets an error
    /// reply that is not longer than its request.
    fn proven(&mut self, datagram: &[u8], from: SocketAddr) -> Option<(Handshake, Option<Proven>)> {
        let plain = |datagram| match Packet::decode(datagram) {
            Ok(Packet { destination: 0, body: Body::Handshake(handshake), .. }) => Some(handshake),
            _ => None,
        };
        let Some(key) = &self.plan.key else {
            if is_keyed(datagram) {
                self.answer(from, &hint(NO_KEY), None);
            }
            return plain(datagram).map(|handshake| (handshake, None));
        };
        if let Some(proven) = Proven::new(key, datagram) {
            return plain(proven.packet()).map(|handshake| (handshake, Some(proven)));
        }
        let answer = match plain(datagram) {
            Some(handshake) => refusal(&handshake),
            None if is_keyed(datagram) => hint(OTHER_KEY),
            None => return None,
        };
        self.answer(from, &answer, None);
        if self.clock.now() >= self.next_warning {
            self.next_warning = self.clock.now() + WARNINGS_EVERY;
            let why = "it has another key, or none".to_owned();
            self.failed.push(TransferError::Key { peer: from.to_string(), why });
        }
        None
    }

    fn answer(&self, from: SocketAddr, answer: &Handshake, proven: Option<&Proven>) {
        let mut out = Vec::new();
        let body = Body::Handshake(*answer);
        Packet { timestamp_us: 0, destination: answer.socket, body }.encode(&mut out);
        if let Some(proven) = proven {
            // Without random numbers there is no answer.
            out = proven.reply(&out).unwrap_or_default();
        }
        // An address that cannot be reached is the peer's affair.
        let _ = self.socket.send_to(&out, from);
    }

    /// Whether there is a slot for this address. If there is none, it takes the slot that has been idle longest,
    /// and long enough.
    fn make_room(&mut self, address: IpAddr) -> bool {
        let own = self.slots.values().filter(|slot| slot.address == address).count() >= MAX_PER_ADDRESS;
        if !own && self.slots.len() < MAX_CONNECTIONS {
            return true;
        }
        let now = self.clock.now();
        let idle = |slot: &Slot| slot.activity.idle(Time(now.0.saturating_sub(slot.began.0)));
        let longest = self
            .slots
            .iter()
            .filter(|(_, slot)| !own || slot.address == address)
            .filter(|(_, slot)| idle(slot) > slot.activity.allowance())
            .max_by_key(|(_, slot)| idle(slot))
            .map(|(&socket, _)| socket);
        let Some(socket) = longest else { return false };
        if let Some(slot) = self.slots.get(&socket) {
            slot.activity.take();
        }
        self.forget(socket);
        true
    }

    /// A new connection; a client that cannot have one is refused.
    fn connect(&mut self, from: SocketAddr, handshake: &Handshake, proven: Option<Proven>) -> Option<Stream> {
        match self.open(from, handshake) {
            Ok(mut stream) => {
                if let Some(proven) = proven {
                    stream.secure(Secure::server(proven));
                }
                Some(stream)
            }
            Err(error) => {
                self.failed.push(error);
                self.answer(from, &refusal(handshake), proven.as_ref());
                None
            }
        }
    }

    fn open(&mut self, from: SocketAddr, handshake: &Handshake) -> Result<Stream, TransferError> {
        let failed = || TransferError::io(format!("accepting {from}"));
        let udp = bind_shared(self.local).map_err(failed())?;
        udp.connect(from).map_err(failed())?;
        let mut socket = Socket::new(udp, self.plan.socket_bytes()).map_err(failed())?;
        let plan = self.plan.within(socket.look_at_path());
        self.next = self.next % 0x3fff_ffff + 1;
        let [_, _, seed, _] = random()?;
        let control = plan.control.build(plan.packet_bytes(from.ip()), Time::ZERO, seed.into());
        let (clock, config) = (Clock::start(), plan.config(from.ip()));
        let connection = Connection::accept(config, Time::ZERO, from, self.next, handshake, control);
        self.cookies.accepted(from, handshake, self.next);
        let stream = Stream::new(socket, connection, clock, &plan, from);
        let slot = Slot { address: from.ip(), began: self.clock.now(), activity: stream.activity().clone() };
        self.slots.insert(self.next, slot);
        Ok(stream)
    }
}

#[cfg(test)]
mod tests {
    use std::thread::{sleep, spawn};
    use std::time::Duration;

    use super::*;

    /// A client of this machine, and the server's end; or why it has none.
    fn connected(listener: &mut Listener) -> Result<(Stream, Stream), TransferError> {
        let to = listener.local().to_string();
        let client = spawn(move || Stream::connect(&to, &Plan::default(), || false));
        let mut server = None;
        while !client.is_finished() {
            server = listener.accept().unwrap().or(server);
            if let Some(server) = &mut server {
                server.pump(false).unwrap();
            }
        }
        Ok((client.join().unwrap()?, server.expect("the client has a server")))
    }

    /// Both ends age, and the client sends keep-alives; how the server's end gets on.
    fn age((client, server): &mut (Stream, Stream), by: Time) -> Result<(), TransferError> {
        client.grow_older(by);
        server.grow_older(by);
        let _ = client.pump(false);
        sleep(Duration::from_millis(5));
        server.pump(false)
    }

    /// Packets beyond the room of a peer that does not read are not lost on the way.
    #[test]
    fn a_peer_that_does_not_read_is_no_black_hole() {
        let plan = Plan { window_packets: Some(16), ..Plan::default() };
        let mut listener = Listener::bind("127.0.0.1:0", plan).unwrap();
        let mut ends = connected(&mut listener).unwrap();
        ends.1.activity().known();
        ends.0.write(&[1; 100_000]).and_then(|()| ends.0.flush()).unwrap();
        for _ in 0..100 {
            age(&mut ends, Time::from_ms(500)).unwrap();
            ends.0.pump(false).unwrap();
        }
        let sender = ends.0.connection();
        assert!(sender.peer_is_full() && sender.in_flight() > 0, "{} in flight", sender.in_flight());
        assert_eq!(sender.state(), lfn_udt::State::Connected);
        let mut came = vec![0; 100_000];
        let reader = spawn(move || ends.1.read_exact(&mut came).map(|()| (came, ends.1)));
        while !reader.is_finished() {
            ends.0.pump(true).unwrap();
            assert!(ends.0.age() < Time::from_s(120), "it does not arrive");
        }
        assert!(reader.join().unwrap().unwrap().0 == [1; 100_000]);
    }

    #[test]
    fn an_idle_slot_is_kept_until_another_peer_wants_it() {
        let mut listener = Listener::bind("127.0.0.1:0", Plan::default()).unwrap();
        let mut ends: Vec<_> = (0..MAX_PER_ADDRESS).map(|_| connected(&mut listener).unwrap()).collect();
        ends.iter().for_each(|(_, server)| server.activity().known());
        let mut older = |listener: &mut Listener, by: Time| {
            listener.clock.grow_older(by);
            ends.iter_mut().map(|ends| age(ends, by)).collect::<Vec<_>>()
        };
        // An outage of 20 s survives, though another peer asks, and this machine may be slow for as long.
        assert!(older(&mut listener, Time::from_s(20)).iter().all(Result::is_ok));
        let to = listener.local().to_string();
        let waiting = spawn(move || {
            let begun = Clock::start();
            Stream::connect(&to, &Plan::default(), move || begun.now() > Time::from_s(2))
        });
        while !waiting.is_finished() {
            assert!(listener.accept().unwrap().is_none());
        }
        assert!(matches!(waiting.join().unwrap(), Err(TransferError::Interrupted)), "it waits");
        // It is kept as long as no client asks for a slot.
        for _ in 0..10 {
            assert!(older(&mut listener, Time::from_s(50)).iter().all(Result::is_ok));
        }
        // A client that asks gets the slot of one of them, and only one.
        let new = connected(&mut listener).unwrap();
        let taken = older(&mut listener, Time::from_s(1));
        assert_eq!(taken.iter().filter(|end| matches!(end, Err(TransferError::Taken))).count(), 1);
        assert_eq!(taken.iter().filter(|end| end.is_ok()).count(), MAX_PER_ADDRESS - 1);
        // After ten minutes all are over.
        let over = older(&mut listener, Time::from_s(80));
        assert_eq!(
            over.iter().filter(|end| matches!(end, Err(TransferError::Idle))).count(),
            MAX_PER_ADDRESS - 1
        );
        drop(new);
    }
}
