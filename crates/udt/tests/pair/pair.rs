//! Two ends and a path between them, in virtual time: every packet is encoded, may be lost or held up, and
//! is decoded again.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use lfn_udt::{
    Answer, Body, Config, CongestionControl, Connection, Event, Listener, Native, NativeConfig, Packet, Seq,
    State, Transmit,
};
use lfn_units::Time;

pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

/// The fate of a packet on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Arrives,
    Lost,
    /// The packet arrives later by this time.
    Late(Time),
}

/// One packet as the path sees it.
pub struct Crossing<'a> {
    pub now: Time,
    pub from: usize,
    pub packet: &'a Packet<'a>,
    /// Data packet of the connection, from 0, and whether it left before.
    pub data: Option<(u64, bool)>,
}

pub type Fates = Box<dyn FnMut(&Crossing<'_>) -> Fate>;

/// Client, server, and what is under way.
pub struct Pair {
    pub now: Time,
    pub ends: [Option<Connection>; 2],
    pub listener: Listener,
    /// Data packets that came to each end, in the order of their coming.
    pub arrived: [Vec<u64>; 2],
    pub dropped: [Vec<u64>; 2],
    pub closed: [Option<Time>; 2],
    /// Of each packet sent: when, by whom, its bytes.
    pub log: Vec<(Time, usize, Vec<u8>)>,
    pub read: bool,
    delay: Time,
    /// Time that each end's link takes for a data packet; zero: none.
    serialisation: Time,
    link_free: [Time; 2],
    server_config: Config,
    fates: Fates,
    under_way: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    count: u64,
}

pub fn native() -> Box<dyn CongestionControl> {
    Box::new(Native::new(NativeConfig::default(), 1, Time::ZERO))
}

pub fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 9000 + end as u16))
}

impl Pair {
    pub fn new(client: Config, server: Config, initial: u32, delay: Time, fates: Fates) -> Pair {
        Pair::with_control(client, server, initial, delay, fates, native())
    }

    pub fn with_control(
        client: Config,
        server: Config,
        initial: u32,
        delay: Time,
        fates: Fates,
        control: Box<dyn CongestionControl>,
    ) -> Pair {
        let connection =
            Connection::connect(client, Time::ZERO, address(SERVER), 11, Seq::new(initial), control);
        Pair {
            now: Time::ZERO,
            ends: [Some(connection), None],
            listener: Listener::new([3, 4], server.kind, 4),
            arrived: Default::default(),
            dropped: Default::default(),
            closed: [None; 2],
            log: Vec::new(),
            read: true,
            delay,
            serialisation: Time::ZERO,
            link_free: [Time::ZERO; 2],
            server_config: server,
            fates,
            under_way: BTreeMap::new(),
            count: 0,
        }
    }

    /// Each data packet holds its sender's link for `time`; the queue before it has no end.
    pub fn with_serialisation(mut self, time: Time) -> Pair {
        self.serialisation = time;
        self
    }

    pub fn client(&mut self) -> &mut Connection {
        self.ends[CLIENT].as_mut().unwrap()
    }

    pub fn server(&mut self) -> &mut Connection {
        self.ends[SERVER].as_mut().unwrap()
    }

    /// Both ends know each other.
    pub fn connected(mut self) -> Pair {
        let connected = |pair: &mut Pair| pair.client().state() == State::Connected;
        assert!(self.run_until(connected, Time::from_s(1)));
        self
    }

    /// Runs until `done`, or until `end`; says whether `done` came.
    pub fn run_until(&mut self, mut done: impl FnMut(&mut Pair) -> bool, end: Time) -> bool {
        loop {
            self.transmit(CLIENT);
            self.transmit(SERVER);
            if done(self) {
                return true;
            }
            let timers = self.ends.iter().flatten().map(Connection::deadline).min();
            let arrival = self.under_way.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
            let next = arrival.min(timers.unwrap_or(Time::NEVER));
            if next > end {
                self.now = end;
                return false;
            }
            self.now = self.now.max(next);
            if arrival <= self.now {
                let (_, (from, bytes)) = self.under_way.pop_first().unwrap();
                self.deliver(1 - from, &bytes);
            }
            for end in self.ends.iter_mut().flatten() {
                if end.deadline() <= self.now {
                    end.on_deadline(self.now);
                }
            }
        }
    }

    pub fn deliver(&mut self, to: usize, bytes: &[u8]) {
        let packet = Packet::decode(bytes).unwrap();
        if packet.destination == 0 {
            let Body::Handshake(handshake) = packet.body else { return };
            match self.listener.on_handshake(self.now, address(CLIENT), &handshake) {
                Some(Answer::Reply(reply)) => {
                    let body = Body::Handshake(reply);
                    let packet = Packet { timestamp_us: 0, destination: handshake.socket, body };
                    self.send(SERVER, &packet, None);
                }
                Some(Answer::Accept) => {
                    self.listener.accepted(address(CLIENT), &handshake, 22);
                    let (config, peer) = (self.server_config, address(CLIENT));
                    self.ends[SERVER] =
                        Some(Connection::accept(config, self.now, peer, 22, &handshake, native()));
                }
                Some(Answer::Existing(_)) => {
                    let now = self.now;
                    self.server().on_packet(now, &packet);
                }
                Some(Answer::Full) | None => {}
            }
            return;
        }
        let Some(end) = self.ends[to].as_mut() else { return };
        match end.on_packet(self.now, &packet) {
            Event::Data { index, payload } => {
                assert_eq!(payload, payload_of(index, payload.len()), "packet {index}");
                self.arrived[to].push(index);
                if self.read {
                    let until = end.in_order();
                    end.on_read(until);
                }
            }
            Event::Dropped(ranges) => self.dropped[to].extend(ranges.into_iter().flatten()),
            Event::Closed(_) => self.closed[to] = Some(self.now),
            Event::None | Event::Connected | Event::PeerError(_) => {}
        }
    }

    fn transmit(&mut self, from: usize) {
        while let Some(mut end) = self.ends[from].take() {
            let full = end.path_payload_bytes();
            let (bytes, data) = match end.poll_transmit(self.now) {
                None => {
                    self.ends[from] = Some(end);
                    return;
                }
                Some(Transmit::Control(packet)) => {
                    let mut bytes = Vec::new();
                    packet.encode(&mut bytes);
                    (bytes, None)
                }
                Some(Transmit::Data(outgoing, mut packet)) => {
                    let payload = payload_of(outgoing.index, full);
                    if let Body::Data { payload: empty, .. } = &mut packet.body {
                        *empty = &payload;
                    }
                    let mut bytes = Vec::new();
                    packet.encode(&mut bytes);
                    (bytes, Some((outgoing.index, outgoing.retransmission)))
                }
            };
            self.ends[from] = Some(end);
            let packet = Packet::decode(&bytes).unwrap();
            self.send(from, &packet, data);
        }
    }

    fn send(&mut self, from: usize, packet: &Packet<'_>, data: Option<(u64, bool)>) {
        let mut bytes = Vec::new();
        packet.encode(&mut bytes);
        self.log.push((self.now, from, bytes.clone()));
        let mut leaves = self.now;
        if data.is_some() {
            leaves = self.link_free[from].max(self.now) + self.serialisation;
            self.link_free[from] = leaves;
        }
        let at = match (self.fates)(&Crossing { now: self.now, from, packet, data }) {
            Fate::Arrives => leaves + self.delay,
            Fate::Late(more) => leaves + self.delay + more,
            Fate::Lost => return,
        };
        self.count += 1;
        self.under_way.insert((at, self.count), (from, bytes));
    }
}

/// The bytes that packet `index` carries.
fn payload_of(index: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| (index.wrapping_mul(31).wrapping_add(at)) as u8).collect()
}
