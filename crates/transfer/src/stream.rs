//! A stream of bytes over one connection: blocking reads and writes, which also keep its timers.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use lfn_udt::{Body, Connection, Event, Packet, Reason, Seq, State};
use lfn_units::Time;
use rustix::event::{poll, PollFd, PollFlags, Timespec};

use crate::activity::{Activity, Steps};
use crate::address::resolve;
use crate::ring::{ReceiveRing, SendRing};
use crate::secure::{Secure, NO_KEY, OTHER_KEY};
use crate::socket::Socket;
use crate::{Plan, TransferError};

mod path;
mod transmit;

use path::PathWatch;

/// Sleep between two steps of the socket, since a wake-up costs as much as many packets. Packets due
/// meanwhile are sent as one burst; arriving packets wait in the kernel, which records their times.
const QUANTUM: Time = Time::from_us(200);
const RECEIVE_QUANTUM: Time = Time::from_us(400);
/// Largest time between two calls of `interrupted` in a blocked stream.
const MAX_WAIT: Time = Time::from_ms(200);
/// Number of "port unreachable" errors, and silence, after which the peer's program has ended. A keep-alive
/// probes in between.
const REFUSALS: u32 = 3;
const REFUSED_AFTER: Time = Time::from_s(5);
const PROBE_EVERY: Time = Time::from_s(1);
/// A connection ends after this silence, whatever RTT its peer claims.
const SILENCE: Time = Time::from_s(60);
/// Interval between `BUSY` messages to a peer that waits.
const BUSY_EVERY: Time = Time::from_s(5);
/// Bytes of a file read at a time.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;
/// The socket is served after this many bytes, even if no call waits: 1 ms at 1 Gbit/s.
const ATTEND_BYTES: usize = 128 * 1024;
/// Bytes that wait in packets to be sent, at most: 3 ms at 10 Gbit/s. Packets keep their size, though the path's MTU may
/// fall before they leave.
const READY_BYTES: u64 = 4 << 20;

/// The wall clock of one connection.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[allow(clippy::disallowed_methods, reason = "sockets live in real time")]
    pub(crate) fn start() -> Clock {
        Clock(Instant::now())
    }

    pub(crate) fn now(self) -> Time {
        Time::from_ns(self.0.elapsed().as_nanos() as u64)
    }

    /// For tests: as if it had started earlier.
    #[cfg(test)]
    pub(crate) fn grow_older(&mut self, by: Time) {
        self.0 -= std::time::Duration::from_nanos(by.as_ns());
    }
}

/// Unpredictable numbers from the operating system.
pub(crate) fn random() -> Result<[u32; 4], TransferError> {
    let mut bytes = [0; 16];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(16) => {}
        Ok(_) => return Err(TransferError::io("random numbers")(io::ErrorKind::UnexpectedEof.into())),
        Err(error) => return Err(TransferError::io("random numbers")(error.into())),
    }
    Ok([0, 4, 8, 12].map(|at| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])))
}

/// A connection of UDT as a stream of bytes in both directions.
pub struct Stream {
    socket: Socket,
    connection: Connection,
    clock: Clock,
    outgoing: SendRing,
    incoming: ReceiveRing,
    /// Packet that is being filled, and whether it has any bytes.
    filling: u64,
    partial: bool,
    control: Vec<u8>,
    /// Bytes written or read since the last step of the socket.
    unattended: usize,
    /// Time of the next step, if the last one received or sent data.
    busy: Option<Time>,
    /// Time of the connection's last step.
    latest: Time,
    /// Called before each wait; true ends the stream.
    interrupted: Box<dyn FnMut() -> bool + Send>,
    peer: String,
    activity: Arc<Activity>,
    steps: Steps,
    /// Payload read by the application, in bytes.
    taken_bytes: u64,
    /// Time of the last packet, and number of "port unreachable" errors since then.
    heard: Time,
    refusals: u32,
    next_probe: Time,
    /// Reason for which this end gave up on the peer.
    gone: Option<Reason>,
    busy_word: Option<u8>,
    secure: Option<Box<Secure>>,
    sealed: Vec<u8>,
    next_busy: Time,
    path: PathWatch,
}

impl Stream {
    /// Connects to `peer`, for example `127.0.0.1:9000`. `interrupted` is called before each wait, as long as the
    /// stream lives; true ends it with an error.
    ///
    /// # Errors
    /// If the peer refuses, or does not answer within 3 s.
    pub fn connect(
        peer: &str,
        plan: &Plan,
        interrupted: impl FnMut() -> bool + Send + 'static,
    ) -> Result<Stream, TransferError> {
        let failed = || TransferError::io(format!("connecting to {peer}"));
        let address = resolve(peer, "connecting to")?;
        if address.port() == 0 {
            return Err(TransferError::Usage(format!("connecting to {peer}: a receiver has a port from 1")));
        }
        let local = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let udp = UdpSocket::bind(local).map_err(failed())?;
        udp.connect(address).map_err(failed())?;
        let [socket, initial, seed, _] = random()?;
        let (clock, id) = (Clock::start(), (socket >> 2).max(1));
        let mut socket = Socket::new(udp, plan.socket_bytes()).map_err(failed())?;
        let (plan, ip) = (plan.within(socket.look_at_path()), address.ip());
        let control = plan.control.build(plan.packet_bytes(ip), Time::ZERO, seed.into());
        let (config, initial) = (plan.config(ip), Seq::new(initial));
        let connection = Connection::connect(config, Time::ZERO, address, id, initial, control);
        let mut stream = Stream::new(socket, connection, clock, &plan, address);
        stream.interrupted = Box::new(interrupted);
        if let Some(key) = &plan.key {
            stream.secure = Some(Box::new(Secure::client(key)));
        }
        while stream.connection.state() == State::Connecting {
            stream.pump(true)?;
        }
        stream.check()?;
        Ok(stream)
    }

    pub(crate) fn new(
        socket: Socket,
        connection: Connection,
        clock: Clock,
        plan: &Plan,
        peer: SocketAddr,
    ) -> Stream {
        let sizes = plan.sizes(peer.ip());
        // The smaller MSS of both ends holds; a client does not know it yet.
        let payload_bytes =
            if connection.state() == State::Connecting { 0 } else { connection.payload_bytes() };
        Stream {
            socket,
            connection,
            clock,
            outgoing: SendRing::new(sizes.window_packets, payload_bytes),
            incoming: ReceiveRing::new(sizes.window_packets, payload_bytes),
            filling: 0,
            partial: false,
            control: Vec::new(),
            unattended: 0,
            busy: None,
            latest: Time::ZERO,
            interrupted: Box::new(|| false),
            peer: peer.to_string(),
            activity: Arc::default(),
            steps: Steps::default(),
            taken_bytes: 0,
            heard: Time::ZERO,
            refusals: 0,
            next_probe: Time::ZERO,
            gone: None,
            busy_word: None,
            secure: None,
            sealed: Vec::new(),
            next_busy: Time::ZERO,
            path: PathWatch::default(),
        }
    }

    /// For tests: as if it had begun earlier.
    #[cfg(test)]
    pub(crate) fn grow_older(&mut self, by: Time) {
        self.clock.grow_older(by);
    }

    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// Serves the connection while this end works for its peer; the slot does not count as idle.
    ///
    /// # Errors
    /// If the connection has ended.
    pub(crate) fn working(&mut self) -> Result<(), TransferError> {
        let now = self.clock.now();
        self.steps.on_work(now, &self.activity);
        if let Some(word) = self.busy_word.filter(|_| now >= self.next_busy) {
            self.busy_word(Some(word));
            self.write(&[word])?;
            self.flush()?;
        }
        self.pump(false)?;
        self.check()
    }

    /// Sets the word that is sent at intervals while this end works and the peer waits.
    pub(crate) fn busy_word(&mut self, word: Option<u8>) {
        self.busy_word = word;
        self.next_busy = self.clock.now() + BUSY_EVERY;
    }

    /// The other end's address.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// The connection, to look at.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Bytes that the peer has acknowledged.
    pub(crate) fn acknowledged_bytes(&self) -> u64 {
        self.outgoing.bytes_before(self.connection.acknowledged(), self.filling)
    }

    /// Time since the stream began.
    pub fn age(&self) -> Time {
        self.clock.now()
    }

    /// Receive buffer of the kernel, in bytes.
    ///
    /// # Errors
    /// If the kernel returns an error.
    pub fn socket_bytes(&self) -> Result<usize, TransferError> {
        self.socket.receive_buffer_bytes().map_err(TransferError::io("socket buffer"))
    }

    /// `interrupted` is called before each wait; true ends the stream with an error.
    pub fn interrupt_when(&mut self, interrupted: impl FnMut() -> bool + Send + 'static) {
        self.interrupted = Box::new(interrupted);
    }

    fn reason(&self) -> Option<Reason> {
        match self.connection.state() {
            State::Closed(reason) => Some(self.gone.unwrap_or(reason)),
            _ => None,
        }
    }

    fn check(&self) -> Result<(), TransferError> {
        match self.reason() {
            Some(reason) => Err(self.ended(reason)),
            None => Ok(()),
        }
    }

    fn ended(&self, reason: Reason) -> TransferError {
        let peer = self.peer.clone();
        let (hint, refused) = self.secure.as_ref().map_or((None, 0), |secure| (secure.hint, secure.refused));
        let why = match (reason, hint) {
            (Reason::NoAnswer, Some(OTHER_KEY)) => "it has another key".to_owned(),
            (Reason::NoAnswer, Some(NO_KEY)) => "it has no key: both ends need --key, or neither".to_owned(),
            (Reason::NoAnswer | Reason::Silence, _) if refused > 0 => {
                format!("{reason}; {refused} packets were changed on the way, or not the peer's")
            }
            _ => return TransferError::Connection { peer, reason },
        };
        TransferError::Key { peer, why }
    }

    /// The server's end of a connection under a key.
    pub(crate) fn secure(&mut self, secure: Secure) {
        self.secure = Some(Box::new(secure));
    }

    /// Sends `bytes`, waiting while [`Stream::is_full`]. [`Stream::flush`] sends what does not fill a packet.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), TransferError> {
        let written = bytes.len();
        while !bytes.is_empty() {
            if self.is_full() {
                self.offer();
                self.pump(true)?;
                self.check()?;
                continue;
            }
            if !self.partial {
                self.outgoing.begin(self.filling);
            }
            let (taken, full) = self.outgoing.fill(self.filling, bytes);
            bytes = &bytes[taken..];
            self.partial = !full;
            self.filling += u64::from(full);
        }
        self.offer();
        self.attend(written)?;
        self.check()
    }

    /// Whether the window is full, or enough is ready to leave.
    fn is_full(&self) -> bool {
        let left = self.connection.acknowledged() + self.connection.in_flight();
        let ready = (self.filling - left).saturating_mul(self.connection.path_payload_bytes() as u64);
        self.filling - self.connection.released() >= self.outgoing.capacity() || ready >= READY_BYTES
    }

    /// Serves the socket after every [`ATTEND_BYTES`], though no call waits.
    fn attend(&mut self, bytes: usize) -> Result<(), TransferError> {
        self.unattended += bytes;
        if self.unattended < ATTEND_BYTES {
            return Ok(());
        }
        self.pump(false)
    }

    /// The connection may send all packets that are full.
    fn offer(&mut self) {
        self.connection.offer(self.filling - self.connection.offered(), true, Time::NEVER);
    }

    /// Sends a packet that is not full.
    ///
    /// # Errors
    /// When the connection is over.
    pub fn flush(&mut self) -> Result<(), TransferError> {
        self.filling += u64::from(std::mem::take(&mut self.partial));
        self.offer();
        self.pump(false)
    }

    /// Received bytes, at least one unless the peer closed; call [`Stream::consume`] next.
    ///
    /// # Errors
    /// If the connection ended otherwise.
    pub fn read(&mut self) -> Result<&[u8], TransferError> {
        loop {
            let end = self.connection.in_order();
            if !self.incoming.readable(end).is_empty() {
                return Ok(self.incoming.readable(end));
            }
            match self.reason() {
                Some(Reason::Peer | Reason::Closed) => return Ok(&[]),
                Some(_) => self.check()?,
                None => self.pump(true)?,
            }
        }
    }

    /// Takes `bytes` of what [`Stream::read`] gave.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn consume(&mut self, bytes: usize) -> Result<(), TransferError> {
        self.incoming.consume(bytes);
        self.taken_bytes += bytes as u64;
        self.connection.on_read(self.incoming.read_until());
        self.attend(bytes)
    }

    /// Fills `bytes`.
    ///
    /// # Errors
    /// When the peer closes before.
    pub fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), TransferError> {
        let mut done = 0;
        while done < bytes.len() {
            let got = self.read()?;
            let take = got.len().min(bytes.len() - done);
            if take == 0 {
                return Err(self.ended(Reason::Peer));
            }
            bytes[done..done + take].copy_from_slice(&got[..take]);
            done += take;
            self.consume(take)?;
        }
        Ok(())
    }

    /// Waits until the peer has acknowledged everything, and closes.
    ///
    /// # Errors
    /// When the peer did not acknowledge everything.
    pub fn close(&mut self) -> Result<(), TransferError> {
        self.flush()?;
        self.connection.close(self.clock.now());
        while self.reason().is_none() {
            self.pump(true)?;
        }
        self.pump(false)?;
        // A peer that has everything may be the first to close.
        let all = self.connection.released() == self.connection.offered();
        match self.reason() {
            Some(Reason::Closed) => Ok(()),
            Some(Reason::Peer) if all => Ok(()),
            _ => self.check(),
        }
    }

    /// Closes after a complete transfer. That the connection ends otherwise is no error: the last acknowledgement and
    /// the peer's shutdown may both be lost.
    ///
    /// # Errors
    /// When the application interrupts, or the socket fails.
    pub(crate) fn close_complete(&mut self) -> Result<(), TransferError> {
        match self.close() {
            Err(TransferError::Connection { .. } | TransferError::Key { .. }) => Ok(()),
            result => result,
        }
    }

    /// Timers, what leaves, what has come; `wait`: until something happens.
    pub(crate) fn pump(&mut self, wait: bool) -> Result<(), TransferError> {
        self.unattended = 0;
        if (self.interrupted)() {
            return Err(TransferError::Interrupted);
        }
        if self.activity.is_taken() {
            return Err(TransferError::Taken);
        }
        self.drive()?;
        let sent = self.connection.released().saturating_mul(self.connection.payload_bytes() as u64);
        let bytes = self.taken_bytes.saturating_add(sent);
        if self.steps.on_bytes(self.clock.now(), bytes, &self.activity) {
            return Err(TransferError::Idle);
        }
        if !wait || self.reason().is_some() {
            return Ok(());
        }
        let now = self.clock.now();
        // While data flow, a look every quantum takes what many wake-ups would; else the first packet wakes.
        let sockets = if self.busy.is_some() {
            &mut [][..]
        } else {
            &mut [PollFd::new(&self.socket, PollFlags::IN)][..]
        };
        let wake = match self.busy {
            Some(quantum) => now + quantum,
            None => self.connection.deadline().clamp(now + QUANTUM, now + MAX_WAIT),
        };
        let ns = (wake - now).as_ns();
        let timeout = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
        match poll(sockets, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => self.drive(),
            Err(error) => Err(TransferError::io("waiting")(error.into())),
        }
    }

    fn drive(&mut self) -> Result<(), TransferError> {
        self.busy = None;
        self.receive().map_err(TransferError::io("receiving"))?;
        let now = self.clock.now();
        self.latest = now;
        if now >= self.connection.deadline() {
            self.connection.on_deadline(now);
        }
        self.look_for_peer(now);
        self.look_at_path(now);
        self.transmit(now).map_err(TransferError::io("sending"))
    }

    /// Ends the connection if the peer is gone: at once after several "port unreachable" errors, else after a
    /// silence longer than any of a live peer.
    fn look_for_peer(&mut self, now: Time) {
        self.refusals += self.socket.take_refusals();
        let connecting = self.connection.state() == State::Connecting;
        if self.refusals == 0 && now < self.heard + SILENCE || connecting || self.reason().is_some() {
            return;
        }
        let silent = now - self.heard.min(now);
        if self.refusals >= REFUSALS && silent >= REFUSED_AFTER || silent >= SILENCE {
            let reason = if self.refusals >= REFUSALS { Reason::Gone } else { Reason::Silence };
            self.gone = Some(reason);
            self.connection.abort();
        } else if now >= self.next_probe {
            self.next_probe = now + PROBE_EVERY;
            self.connection.keep_alive();
        }
    }

    fn receive(&mut self) -> io::Result<()> {
        let Stream { socket, connection, incoming, outgoing, clock, busy, .. } = self;
        let Stream { latest, heard, refusals, secure, .. } = self;
        loop {
            let now = clock.now();
            let more = socket.receive(|datagram, age| {
                // Arrival time, which may be before the connection's last step.
                *latest = (now - age.min(now)).max(*latest);
                let datagram = match secure {
                    None => &*datagram,
                    Some(secure) => match secure.open(datagram) {
                        Some(packet) => packet,
                        None => return,
                    },
                };
                let Ok(packet) = Packet::decode(datagram) else { return };
                // A server's socket also gets the repeated confirmation, which is for socket 0.
                let handshake = matches!(packet.body, Body::Handshake(_)) && packet.destination == 0;
                if packet.destination != connection.socket() && !handshake {
                    return;
                }
                (*heard, *refusals) = (*latest, 0);
                match connection.on_packet(*latest, &packet) {
                    Event::Data { index, payload } => {
                        *busy = Some(RECEIVE_QUANTUM);
                        incoming.put(index, payload);
                    }
                    Event::Connected => {
                        let bytes = connection.payload_bytes();
                        *outgoing = SendRing::new(outgoing.capacity() as u32, bytes);
                        *incoming = ReceiveRing::new(outgoing.capacity() as u32, bytes);
                    }
                    _ => {}
                }
            })?;
            if !more {
                return Ok(());
            }
        }
    }
}

impl Drop for Stream {
    /// Tells the peer at once that the transfer is given up.
    fn drop(&mut self) {
        self.connection.abort();
        let _ = self.transmit(self.clock.now());
    }
}
