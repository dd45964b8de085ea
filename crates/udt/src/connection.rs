//! A connection: handshake, timers, and the two halves.

mod transmit;

use std::net::SocketAddr;
use std::ops::Range;

use lfn_units::Time;

use crate::config::{Config, Event, Kind, Reason, State, MIN_MSS_BYTES};
use crate::control::Allowed;
use crate::estimate::{Rtt, SYN};
use crate::packet::{Body, Handshake, Packet, Request, HEADER_BYTES, IP_UDP_BYTES};
use crate::receiver::{Arrival, Receiver, ReceiverStats, LEAST_ROOM};
use crate::sender::{Acked, Sender, SenderStats};
use crate::{CongestionControl, LossReport, Numbering, Path, Seq};

/// Smallest timeout.
const MIN_EXP: Time = Time::from_ms(300);
/// Between two requests to a full server.
const FULL_RETRY: Time = Time::from_s(1);
/// Timeouts in a row, and silence, after which a connection is broken.
const MAX_EXPS: u64 = 16;
const BROKEN_AFTER: Time = Time::from_s(5);

/// The parts of a handshake under way.
#[derive(Clone, Copy, Debug)]
struct Connecting {
    request: Request,
    cookie: u32,
    next_request: Time,
    /// Without another answer the client gives up, for this reason.
    give_up: (Time, Reason),
}

/// One end of a connection.
pub struct Connection {
    config: Config,
    state: State,
    connecting: Option<Connecting>,
    is_server: bool,
    socket: u32,
    peer_socket: u32,
    peer: SocketAddr,
    numbering: Numbering,
    began: Time,
    /// Largest packet by the handshake.
    mss_bytes: u32,
    /// MTU of the path to the peer, and the largest packet that this end sends on it.
    path_mtu_bytes: u32,
    packet_bytes: u32,
    max_window: u32,
    sender: Sender,
    receiver: Receiver,
    control: Box<dyn CongestionControl>,
    /// By `control` since its last call.
    allowed: Allowed,
    rtt: Rtt,
    next_send: Time,
    /// The timer's last start, and how often it ran out since a packet came.
    exp_began: Time,
    exps: u64,
    last_ack2: Option<(u32, Time)>,
    linger_until: Time,
    /// Packets that wait to be sent.
    answer_handshake: bool,
    ack2: Option<u32>,
    keep_alive: bool,
    shutdown: bool,
    error: Option<u32>,
    words: Vec<u8>,
}

impl Connection {
    /// A client that begins at `now`, called `socket` (over 0), numbering packets from `initial`.
    ///
    /// # Panics
    /// When the MSS is below [`MIN_MSS_BYTES`].
    pub fn connect(
        config: Config,
        now: Time,
        peer: SocketAddr,
        socket: u32,
        initial: Seq,
        control: Box<dyn CongestionControl>,
    ) -> Connection {
        let mut connection = Connection::new(config, now, peer, socket, initial, control);
        connection.connecting = Some(Connecting {
            request: Request::REGULAR,
            cookie: 0,
            next_request: now,
            give_up: (now + config.connect_timeout, Reason::NoAnswer),
        });
        connection
    }

    /// A server's end for a client whose cookie was good ([`crate::Answer::Accept`]).
    ///
    /// # Panics
    /// When the MSS is below [`MIN_MSS_BYTES`].
    pub fn accept(
        config: Config,
        now: Time,
        peer: SocketAddr,
        socket: u32,
        handshake: &Handshake,
        control: Box<dyn CongestionControl>,
    ) -> Connection {
        let mut connection = Connection::new(config, now, peer, socket, handshake.initial, control);
        connection.establish(now, handshake);
        connection.is_server = true;
        connection.answer_handshake = true;
        connection
    }

    fn new(
        config: Config,
        now: Time,
        peer: SocketAddr,
        socket: u32,
        initial: Seq,
        control: Box<dyn CongestionControl>,
    ) -> Connection {
        assert!(config.mss_bytes >= MIN_MSS_BYTES, "an MSS of {} bytes", config.mss_bytes);
        Connection {
            config,
            state: State::Connecting,
            connecting: None,
            is_server: false,
            socket,
            peer_socket: 0,
            peer,
            numbering: Numbering::new(initial),
            began: now,
            mss_bytes: config.mss_bytes,
            path_mtu_bytes: u32::MAX,
            packet_bytes: config.mss_bytes,
            max_window: 0,
            sender: Sender::new(0),
            receiver: Receiver::new(now, &config, payload_bytes(config.mss_bytes)),
            allowed: control.allowed(),
            control,
            rtt: Rtt::default(),
            next_send: now,
            exp_began: now,
            exps: 0,
            last_ack2: None,
            linger_until: Time::NEVER,
            answer_handshake: false,
            ack2: None,
            keep_alive: false,
            shutdown: false,
            error: None,
            words: Vec::new(),
        }
    }

    fn establish(&mut self, now: Time, peer: &Handshake) {
        self.state = State::Connected;
        self.connecting = None;
        self.peer_socket = peer.socket;
        self.mss_bytes = self.mss_bytes.min(peer.mss_bytes);
        self.on_path_mtu(self.path_mtu_bytes);
        self.max_window = peer.window_packets;
        self.sender.set_flow_window(peer.window_packets);
        self.receiver.set_payload_bytes(self.payload_bytes());
        self.exp_began = now;
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// Bytes that it holds beside its own size.
    pub fn memory_bytes(&self) -> usize {
        self.sender.memory_bytes()
            + self.receiver.memory_bytes()
            + self.words.capacity()
            + self.control.memory_bytes()
    }

    /// Its own socket.
    pub fn socket(&self) -> u32 {
        self.socket
    }

    /// The other end. Packets from elsewhere are not for this connection.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Bytes of payload in a full packet of the handshake's size.
    pub fn payload_bytes(&self) -> usize {
        payload_bytes(self.mss_bytes)
    }

    /// The path to the peer carries packets of up to `bytes`, all headers included: packets that are made from now
    /// on are no larger. Packets keep their contents, so older ones may be.
    pub fn on_path_mtu(&mut self, bytes: u32) {
        self.path_mtu_bytes = bytes;
        let fits = bytes.saturating_sub(self.config.extra_bytes).max(MIN_MSS_BYTES);
        self.packet_bytes = self.mss_bytes.min(fits);
    }

    /// Bytes of payload in a full packet of the path's size.
    pub fn path_payload_bytes(&self) -> usize {
        payload_bytes(self.packet_bytes)
    }

    /// How packets are numbered on the wire.
    pub fn numbering(&self) -> Numbering {
        self.numbering
    }

    /// The smoothed RTT.
    pub fn rtt(&self) -> Rtt {
        self.rtt
    }

    /// The control's period between packets, or what the greatest rate allows.
    pub fn period(&self) -> Time {
        let bits = 8 * (u64::from(self.packet_bytes) + u64::from(self.config.extra_bytes));
        let least =
            self.config.max_bits_per_s.map_or(0, |rate| bits.saturating_mul(1_000_000_000_000) / rate.max(1));
        self.allowed.period.max(Time(least))
    }

    /// Packets that may be in flight by the control's will.
    pub fn window_packets(&self) -> u64 {
        self.allowed.window_packets
    }

    /// Counters of the sending half.
    pub fn sender_stats(&self) -> SenderStats {
        self.sender.stats
    }

    /// Counters of the receiving half.
    pub fn receiver_stats(&self) -> ReceiverStats {
        self.receiver.stats
    }

    /// Speed of arrival and capacity of the path, as the peer measured them, packets a second.
    pub fn peer_speeds(&self) -> (u32, u32) {
        (self.sender.arrival_pps, self.sender.capacity_pps)
    }

    /// Packets offered so far: the number that the next one offered will have.
    pub fn offered(&self) -> u64 {
        self.sender.end()
    }

    /// The sending side may forget every packet before this one.
    pub fn released(&self) -> u64 {
        self.sender.released()
    }

    /// Packets in flight: sent, and not acknowledged.
    pub fn in_flight(&self) -> u64 {
        self.sender.next() - self.sender.acked()
    }

    /// Every packet before this one has come to the peer, by any ACK.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acked()
    }

    /// Whether the peer, by its last word, has no room for more: it does not read, and refuses what comes.
    pub fn peer_is_full(&self) -> bool {
        self.sender.flow_window() <= LEAST_ROOM
    }

    /// Packets known to be lost that have not left again.
    pub fn repairing(&self) -> u64 {
        self.sender.repairing()
    }

    /// Every packet before this one has come.
    pub fn in_order(&self) -> u64 {
        self.receiver.in_order()
    }

    /// The application offers a message of `packets` packets, the last of which may be short. It waits for
    /// those before it if `in_order`, and is given up at `expires`; in a stream nothing is.
    pub fn offer(&mut self, packets: u64, in_order: bool, expires: Time) {
        if packets > 0 {
            self.sender.offer(packets, in_order, expires);
        }
    }

    /// Takes back what was offered and has not left yet. A message of which a part has left ends there.
    pub fn withdraw(&mut self) {
        self.sender.withdraw();
    }

    /// The application took every packet before `until`: there is room for more.
    pub fn on_read(&mut self, until: u64) {
        self.receiver.on_read(until);
    }

    /// A keep-alive leaves, to learn whether the peer is still there.
    pub fn keep_alive(&mut self) {
        self.keep_alive = true;
    }

    /// Tells the peer of an error (packet type 8).
    pub fn report_error(&mut self, code: u32) {
        self.error = Some(code);
    }

    /// Nothing more is offered. The connection ends when all is acknowledged, or after the linger time.
    pub fn close(&mut self, now: Time) {
        match self.state {
            State::Connecting => self.state = State::Closed(Reason::Closed),
            State::Connected => {
                self.state = State::Closing;
                self.linger_until = now + self.config.linger;
                self.check_linger(now);
            }
            State::Closing | State::Closed(_) => {}
        }
    }

    /// Ends the connection at once; the peer is told.
    pub fn abort(&mut self) {
        if !matches!(self.state, State::Closed(_)) {
            self.break_off(Reason::Closed);
        }
    }

    fn check_linger(&mut self, now: Time) {
        if self.state == State::Closing {
            let all = self.sender.released() == self.sender.end();
            if all || now >= self.linger_until {
                self.state = State::Closed(if all { Reason::Closed } else { Reason::Lingered });
                self.shutdown = true;
            }
        }
    }

    /// Ends a connection that the peer cannot go on with.
    fn break_off(&mut self, reason: Reason) -> Event<'static> {
        self.state = State::Closed(reason);
        self.shutdown = reason != Reason::Peer;
        Event::Closed(reason)
    }

    fn path(&self, now: Time) -> Path {
        Path {
            now,
            mss_bytes: self.packet_bytes,
            max_window_packets: self.max_window.into(),
            rtt: self.rtt.smoothed,
            arrival_pps: self.sender.arrival_pps,
            capacity_pps: self.sender.capacity_pps,
            next: self.sender.next(),
            acked: self.sender.acked(),
        }
    }

    /// Tells the control of something that may change what it allows.
    fn tell(&mut self, now: Time, what: impl FnOnce(&mut dyn CongestionControl, &Path)) {
        let path = self.path(now);
        what(&mut *self.control, &path);
        self.allowed = self.control.allowed();
    }

    /// A packet comes from [`Connection::peer`] for [`Connection::socket`].
    #[inline]
    pub fn on_packet<'a>(&mut self, now: Time, packet: &Packet<'a>) -> Event<'a> {
        match (self.state, packet.body) {
            (State::Closed(_), _) => return Event::None,
            (State::Connecting, Body::Handshake(handshake)) => return self.on_answer(now, &handshake),
            (State::Connecting, _) => return Event::None,
            _ => {}
        }
        self.exps = 0;
        self.exp_began = now;
        match packet.body {
            Body::Data { seq, payload, .. } => {
                let index = self.numbering.index(seq, self.receiver.near());
                match (self.receiver.on_data(now, index, seq, payload.len(), &self.rtt), index) {
                    (Arrival::New, Some(index)) => Event::Data { index, payload },
                    _ => Event::None,
                }
            }
            Body::Ack { number, next, report } => self.on_ack(now, number, next, report.as_ref()),
            Body::Nak(report) => self.on_nak(now, report),
            Body::Ack2 { number } => {
                if let Some(sample) = self.receiver.on_ack2(now, number) {
                    self.rtt.sample(sample);
                }
                Event::None
            }
            // A stream has no message that could expire: a hole in it would never be read.
            Body::Drop { first, end, .. } if self.config.kind == Kind::Message => self.on_drop(first, end),
            Body::Handshake(handshake) => {
                // Only a server answers an answer; two clients would do so for ever.
                let again = self.is_server && handshake.request == Request::RESPONSE;
                self.answer_handshake |= again || handshake.request.0 > 0;
                Event::None
            }
            Body::Warning => {
                self.tell(now, |control, path| control.on_warning(path));
                Event::None
            }
            Body::Shutdown => self.break_off(Reason::Peer),
            Body::PeerError { code } => Event::PeerError(code),
            Body::Drop { .. } | Body::KeepAlive | Body::User { .. } => Event::None,
        }
    }

    fn on_answer(&mut self, now: Time, answer: &Handshake) -> Event<'static> {
        let Some(connecting) = &mut self.connecting else { return Event::None };
        match answer.request {
            Request::REGULAR => {
                // The cookie goes back at once.
                if connecting.request == Request::REGULAR {
                    connecting.request = Request::RESPONSE;
                    connecting.next_request = now;
                }
                connecting.cookie = answer.cookie;
                Event::None
            }
            Request::REFUSED if answer.window_packets == 0 => {
                // A cookie may be too old by then: it asks for a new one.
                connecting.request = Request::REGULAR;
                connecting.next_request = now + FULL_RETRY;
                let (silence, end) =
                    (now + self.config.connect_timeout, self.began + self.config.full_timeout);
                connecting.give_up =
                    if silence < end { (silence, Reason::NoAnswer) } else { (end, Reason::Full) };
                Event::None
            }
            Request::REFUSED => {
                self.state = State::Closed(Reason::Refused);
                Event::Closed(Reason::Refused)
            }
            _ if answer.initial != self.numbering.initial() || answer.mss_bytes < MIN_MSS_BYTES => {
                Event::None
            }
            _ => {
                self.establish(now, answer);
                Event::Connected
            }
        }
    }

    fn on_ack(
        &mut self,
        now: Time,
        number: u32,
        next: Seq,
        report: Option<&crate::AckReport>,
    ) -> Event<'static> {
        if report.is_some() {
            let recent = self.last_ack2.is_some_and(|(last, at)| last != number && now < at + SYN);
            if !recent {
                self.ack2 = Some(number);
            }
        }
        let Some(index) = self.numbering.index(next, self.sender.acked()) else { return Event::None };
        match self.sender.on_ack(index, report) {
            Acked::Beyond => return self.break_off(Reason::Attack),
            Acked::Nothing => return Event::None,
            Acked::Advanced => {}
        }
        if let Some(report) = report {
            self.rtt.sample(Time::from_us(report.rtt_us.into()));
        }
        self.tell(now, |control, path| control.on_ack(report.is_none(), path));
        self.check_linger(now);
        match self.state {
            State::Closed(reason) => Event::Closed(reason),
            _ => Event::None,
        }
    }

    fn on_nak(&mut self, now: Time, report: LossReport<'_>) -> Event<'static> {
        // Checked whole before any of it counts.
        let (mut first, mut packets) = (None, 0);
        let (numbering, acked) = (self.numbering, self.sender.acked());
        for range in ranges(numbering, acked, report) {
            let Some(range) = range.filter(|range| !range.is_empty() && range.end <= self.sender.next())
            else {
                return self.break_off(Reason::Attack);
            };
            first.get_or_insert(range.start);
            packets += range.end - range.start;
        }
        let Some(first) = first else { return Event::None };
        self.sender.stats.naks += 1;
        self.tell(now, |control, path| control.on_loss(first, packets, path));
        for range in ranges(numbering, acked, report).flatten() {
            self.sender.on_nak(range);
        }
        Event::None
    }

    fn on_drop(&mut self, first: Seq, end: Seq) -> Event<'static> {
        let near = self.receiver.near();
        let (Some(first), Some(end)) = (self.numbering.index(first, near), self.numbering.index(end, near))
        else {
            return Event::None;
        };
        match self.receiver.on_drop(first..end) {
            gone if gone.is_empty() => Event::None,
            gone => Event::Dropped(gone),
        }
    }

    fn exp_interval(&self) -> Time {
        let n = self.exps + 1;
        match self.allowed.retransmission_timeout {
            Some(timeout) => Time(timeout.0.saturating_mul(n)),
            None => (Time(n * self.rtt.upper().0) + SYN).max(Time(n * MIN_EXP.0)),
        }
    }

    /// When [`Connection::on_deadline`], or [`Connection::poll_transmit`], is wanted next.
    pub fn deadline(&self) -> Time {
        match self.state {
            State::Closed(_) => return Time::NEVER,
            State::Connecting => {
                return self.connecting.map_or(Time::NEVER, |c| c.next_request.min(c.give_up.0));
            }
            State::Connected | State::Closing => {}
        }
        let timers = self.receiver.deadline(&self.rtt).min(self.exp_began + self.exp_interval());
        let timers = timers.min(self.allowed.deadline).min(self.linger_until);
        if self.sender.may_send(self.allowed.window_packets) {
            timers.min(self.next_send.max(self.allowed.silent_until))
        } else {
            timers
        }
    }

    /// [`Connection::deadline`] has come.
    pub fn on_deadline(&mut self, now: Time) {
        match self.state {
            State::Closed(_) => return,
            State::Connecting => {
                if let Some(Connecting { give_up: (at, reason), .. }) = self.connecting {
                    if now >= at {
                        self.state = State::Closed(reason);
                    }
                }
                return;
            }
            State::Connected | State::Closing => {}
        }
        self.receiver.on_tick(now, &self.rtt);
        if now >= self.allowed.deadline {
            self.tell(now, |control, path| control.on_tick(path));
        }
        if now >= self.exp_began + self.exp_interval() {
            self.on_exp(now);
        }
        self.check_linger(now);
    }

    fn on_exp(&mut self, now: Time) {
        if self.exps >= MAX_EXPS && now > self.exp_began + BROKEN_AFTER {
            self.break_off(Reason::Silence);
            return;
        }
        if self.sender.on_timeout() {
            self.tell(now, |control, path| control.on_timeout(path));
            self.next_send = self.next_send.min(now);
        } else if self.sender.released() == self.sender.end() {
            self.keep_alive = true;
        }
        self.exps += 1;
        self.exp_began = now;
    }
}

/// The ranges of a report as packets; `None`: before packet 0.
fn ranges(
    numbering: Numbering,
    near: u64,
    report: LossReport<'_>,
) -> impl Iterator<Item = Option<Range<u64>>> + '_ {
    report
        .ranges()
        .map(move |(first, last)| Some(numbering.index(first, near)?..numbering.index(last, near)? + 1))
}

fn payload_bytes(mss_bytes: u32) -> usize {
    mss_bytes as usize - IP_UDP_BYTES as usize - HEADER_BYTES
}
