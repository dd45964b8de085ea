//! Whole quinn-proto connections, unmodified: recovery, pacer, acknowledgements, flow control and path MTU discovery are
//! quinn's. Handshake and packets are not encrypted.

mod plain;

use std::ffi::CStr;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use lfn_stack_adapter::whole::{Datagram, Payloads, Progress, Setup, Whole};
use lfn_stack_adapter::wholes;
use lfn_stack_quinn::{seed_draws, Kind};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig,
    Event, MtuDiscoveryConfig, ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt,
};

use plain::Plain;

/// Headers of IPv4 and UDP.
const HEADER_BYTES: u32 = 28;
/// Of send and receive buffers, so that they do not limit.
const WINDOW_BYTES: u32 = 1 << 27;
/// The end that sends data, and the client.
const CLIENT: usize = 0;
/// The least UDP payload of QUIC (RFC 9000, section 14).
const LEAST_BYTES: u64 = 1200;

struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    responses: Vec<(Vec<u8>, Option<EcnCodepoint>)>,
}

/// A client that writes and a server that reads. Both have the controller.
pub struct Pair<K> {
    ends: [End; 2],
    /// An `Instant` cannot be written: simulated times are counted from the connection's begin.
    begin: Instant,
    begin_ns: u64,
    payloads: Payloads<Vec<u8>>,
    left_bytes: u64,
    read_bytes: u64,
    /// Window and congestion events when last told, and reductions until then.
    last: (u64, u64, u64),
    kind: std::marker::PhantomData<K>,
}

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + end as u8], 4433))
}

impl<K: Kind> Pair<K> {
    fn at(&self, ns: u64) -> Instant {
        self.begin + Duration::from_nanos(ns - self.begin_ns)
    }

    /// Events of an end, and its application.
    fn drive(&mut self, end: usize) {
        let End { endpoint, connection, stream, .. } = &mut self.ends[end];
        let Some((handle, connection)) = connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected if end == CLIENT => *stream = connection.streams().open(Dir::Uni),
                Event::Stream(StreamEvent::Opened { dir }) => *stream = connection.streams().accept(dir),
                _ => {}
            }
        }
        let Some(id) = *stream else { return };
        if end == CLIENT {
            const ZEROS: [u8; 1 << 16] = [0; 1 << 16];
            while self.left_bytes > 0 {
                let most = self.left_bytes.min(ZEROS.len() as u64) as usize;
                let Ok(written) = connection.send_stream(id).write(&ZEROS[..most]) else { break };
                // Without an end there is always more.
                if self.left_bytes < u64::MAX {
                    self.left_bytes -= written as u64;
                }
            }
            if self.left_bytes == 0 && connection.send_stream(id).finish().is_ok() {
                *stream = None;
            }
        } else {
            let mut stream = connection.recv_stream(id);
            let Ok(mut chunks) = stream.read(true) else { return };
            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                self.read_bytes += chunk.bytes.len() as u64;
            }
            let _ = chunks.finalize();
        }
    }

    fn kept(&mut self, payload: Vec<u8>, ecn: Option<EcnCodepoint>) -> Datagram {
        let bytes = payload.len() as u32 + HEADER_BYTES;
        let id = self.payloads.keep(payload);
        Datagram { id, bytes, ecn: ecn.map_or(0, |ecn| ecn as u32) }
    }
}

impl<K: Kind + 'static> Whole for Pair<K> {
    const NAME: &'static CStr = K::WHOLE;

    fn new(setup: &Setup) -> Option<Self> {
        let most_bytes = setup.packet_bytes.checked_sub(HEADER_BYTES.into()).filter(|&most| most >= LEAST_BYTES)?;
        seed_draws(setup.seed);
        let begin = Instant::now();
        let mut discovery = MtuDiscoveryConfig::default();
        // Ethernet's is the default; smaller packets bound it.
        if most_bytes < 1452 {
            discovery.upper_bound(most_bytes as u16);
        }
        let mut transport = TransportConfig::default();
        transport
            .congestion_controller_factory(K::factory())
            .mtu_discovery_config(Some(discovery))
            .send_window(WINDOW_BYTES.into())
            .receive_window(VarInt::from_u32(WINDOW_BYTES))
            .stream_receive_window(VarInt::from_u32(WINDOW_BYTES));
        let transport = Arc::new(transport);
        let endpoint = Arc::new(EndpointConfig::new(Arc::new(Plain)));
        let mut server = ServerConfig::new(Arc::new(Plain), Arc::new(Plain));
        server.transport_config(Arc::clone(&transport));
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&setup.seed.to_le_bytes());
        let mut end = |server, own| {
            seed[8] = own;
            End {
                endpoint: Endpoint::new(Arc::clone(&endpoint), server, true, Some(seed)),
                connection: None,
                stream: None,
                responses: Vec::new(),
            }
        };
        let mut ends = [end(None, 0), end(Some(Arc::new(server)), 1)];
        let mut client = ClientConfig::new(Arc::new(Plain));
        client.transport_config(transport);
        ends[CLIENT].connection = Some(ends[CLIENT].endpoint.connect(begin, client, address(1), "server").ok()?);
        Some(Pair {
            ends,
            begin,
            begin_ns: setup.now_ns,
            payloads: Payloads::default(),
            left_bytes: setup.size_bytes,
            read_bytes: 0,
            last: (0, 0, 0),
            kind: std::marker::PhantomData,
        })
    }

    fn transmit(&mut self, end: usize, now_ns: u64) -> Option<Datagram> {
        if let Some((payload, ecn)) = self.ends[end].responses.pop() {
            return Some(self.kept(payload, ecn));
        }
        let now = self.at(now_ns);
        let mut payload = Vec::new();
        let (_, connection) = self.ends[end].connection.as_mut()?;
        let transmit = connection.poll_transmit(now, 1, &mut payload)?;
        payload.truncate(transmit.size);
        Some(self.kept(payload, transmit.ecn))
    }

    fn receive(&mut self, end: usize, now_ns: u64, id: u64, ecn: u32) {
        let Some(payload) = self.payloads.get(id) else { return };
        let ecn = EcnCodepoint::from_bits(ecn as u8);
        let data = BytesMut::from(&payload[..]);
        let now = self.at(now_ns);
        let mut answer = Vec::new();
        let End { endpoint, connection, responses, .. } = &mut self.ends[end];
        match endpoint.handle(now, address(1 - end), None, ecn, data, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                *connection = endpoint.accept(incoming, now, &mut answer, None).ok();
            }
            Some(DatagramEvent::Response(transmit)) => {
                answer.truncate(transmit.size);
                responses.push((answer, transmit.ecn));
            }
            None => {}
        }
        self.drive(end);
    }

    fn timeout_ns(&mut self, end: usize) -> u64 {
        let connection = self.ends[end].connection.as_mut();
        let timeout = connection.and_then(|(_, connection)| connection.poll_timeout());
        timeout.map_or(u64::MAX, |at| {
            self.begin_ns + at.saturating_duration_since(self.begin).as_nanos() as u64
        })
    }

    fn timer(&mut self, end: usize, now_ns: u64) {
        let now = self.at(now_ns);
        if let Some((_, connection)) = &mut self.ends[end].connection {
            connection.handle_timeout(now);
        }
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
        let Some((_, connection)) = &self.ends[CLIENT].connection else { return Progress::default() };
        let path = connection.stats().path;
        // Before the first sample quinn has its guess of 333 ms.
        let has_sample = self.ends[CLIENT].stream.is_some() || self.left_bytes == 0;
        // An event is each ACK that finds losses; the window falls at the first of a round trip.
        let (window_bytes, events, mut reductions) = self.last;
        reductions += u64::from(path.cwnd < window_bytes && path.congestion_events > events);
        self.last = (path.cwnd, path.congestion_events, reductions);
        let told_ns = |time: Duration| if has_sample { time.as_nanos() as u64 } else { 0 };
        Progress {
            read_bytes: self.read_bytes,
            window_bytes: path.cwnd,
            ssthresh_bytes: connection.congestion_state().metrics().ssthresh.unwrap_or(0),
            srtt_ns: told_ns(path.rtt),
            min_rtt_ns: told_ns(path.min_rtt),
            lost_packets: path.lost_packets,
            reductions,
            segment_bytes: path.current_mtu.into(),
            ..Progress::default()
        }
    }
}

/// The table of functions of a connection with a controller.
pub fn table<K: Kind + 'static>() -> *const lfn_stack_adapter::whole::Table {
    lfn_stack_adapter::whole::table::<Pair<K>>()
}

wholes! {
    "bbr" => Pair<lfn_stack_quinn::Bbr>,
    "cubic" => Pair<lfn_stack_quinn::Cubic>,
    "new_reno" => Pair<lfn_stack_quinn::NewReno>,
}
