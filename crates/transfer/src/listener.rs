//! Who may connect: cookies on a shared port, then a socket and one of a few slots for each.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use lfn_udt::{refusal, Answer, Body, Connection, Handshake, Kind, Listener as Cookies, Packet};
use lfn_units::Time;

use crate::activity::Activity;
use crate::socket::{bind_shared, Socket};
use crate::stream::{random, resolve, Clock};
use crate::{ControlSpec, Plan, Stream, TransferError};

/// Connections of one listener, and of one address.
const MAX_CONNECTIONS: usize = 16;
const MAX_PER_ADDRESS: usize = 8;

/// A connection's place among the few that there are.
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
}

impl Listener {
    /// Listens at `local`, for example `127.0.0.1:9000`; port 0: any.
    ///
    /// # Errors
    /// When the address is no address, or taken.
    pub fn bind(local: &str, plan: Plan) -> Result<Listener, TransferError> {
        let failed = || TransferError::io(format!("listening at {local}"));
        let address = resolve(local, "listening at")?;
        if !address.ip().is_loopback() && !plan.insecure {
            return Err(TransferError::Usage(format!(
                "listening at {local}: whoever reaches the port could connect, and beyond loopback that is anybody; \
                 --insecure allows it"
            )));
        }
        // A port of somebody else's is taken, one of this user's is not: only the listener asks.
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
        Ok(Listener { socket, local, cookies, slots, clock: Clock::start(), plan, next: next >> 2, failed })
    }

    /// The address, with its port.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// What drives the sending side of its connections.
    pub fn control(&self) -> ControlSpec {
        self.plan.control.clone()
    }

    /// A connection is over.
    pub fn forget(&mut self, socket: u32) {
        self.cookies.forget(socket);
        self.slots.remove(&socket);
    }

    /// What kept peers from connecting, since the last call.
    pub fn failures(&mut self) -> Vec<TransferError> {
        std::mem::take(&mut self.failed)
    }

    /// Waits a while for the next client whose cookie is good; `None`: nobody came. What goes wrong with one
    /// client is told by [`Listener::failures`].
    ///
    /// # Errors
    /// When the socket fails.
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
        let Ok(Packet { destination: 0, body: Body::Handshake(handshake), .. }) =
            Packet::decode(&buffer[..bytes])
        else {
            return Ok(None);
        };
        let answer = match self.cookies.on_handshake(self.clock.now(), from, &handshake) {
            Some(Answer::Accept | Answer::Full) if !self.make_room(from.ip()) => refusal(&handshake),
            Some(Answer::Accept | Answer::Full) => match self.connect(from, &handshake) {
                Ok(stream) => return Ok(Some(stream)),
                Err(error) => {
                    self.failed.push(error);
                    refusal(&handshake)
                }
            },
            Some(Answer::Reply(reply)) => reply,
            // Its own socket answers.
            Some(Answer::Existing(_)) | None => return Ok(None),
        };
        let mut out = Vec::new();
        let body = Body::Handshake(answer);
        Packet { timestamp_us: 0, destination: handshake.socket, body }.encode(&mut out);
        // An address that cannot be reached is the peer's affair.
        let _ = self.socket.send_to(&out, from);
        Ok(None)
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

    fn connect(&mut self, from: SocketAddr, handshake: &Handshake) -> Result<Stream, TransferError> {
        let failed = || TransferError::io(format!("accepting {from}"));
        let udp = bind_shared(self.local).map_err(failed())?;
        udp.connect(from).map_err(failed())?;
        let socket = Socket::new(udp, self.plan.sizes().socket_bytes).map_err(failed())?;
        self.next = self.next % 0x3fff_ffff + 1;
        let [_, _, seed, _] = random()?;
        let control = self.plan.control.build(self.plan.mss_bytes, Time::ZERO, seed.into());
        let (clock, config) = (Clock::start(), self.plan.config());
        let connection = Connection::accept(config, Time::ZERO, from, self.next, handshake, control);
        self.cookies.accepted(from, handshake, self.next);
        let stream = Stream::new(socket, connection, clock, &self.plan, from);
        let slot = Slot { address: from.ip(), began: self.clock.now(), activity: stream.activity().clone() };
        self.slots.insert(self.next, slot);
        Ok(stream)
    }
}
