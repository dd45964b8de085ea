//! Whole quinn-proto connections as ends of a simulated path: recovery, pacer, ACKs and flow control are quinn's.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use lfn_sim::{Datagram, Ecn, Stack};
use lfn_units::Time;
use quinn_proto::congestion::ControllerFactory;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig,
    Event, ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt,
};

use crate::plain::Plain;

/// Headers of IPv4 and UDP, and the Ethernet frame's 14 bytes, as the simulator's TCP counts them.
const HEADER_BYTES: u32 = 42;
const WINDOW_BYTES: u32 = 1 << 27;
const CLIENT: usize = 0;

/// State of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Stream data that the server has read.
    pub read_bytes: u64,
    /// The client's congestion window, in bytes.
    pub window_bytes: u64,
    /// Packets that the client found lost.
    pub lost_packets: u64,
    /// The client's smoothed RTT, in seconds.
    pub srtt_s: f64,
}

struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    responses: Vec<(Vec<u8>, Option<EcnCodepoint>)>,
}

/// A client that writes without end and a server that reads.
pub struct Pair {
    ends: [End; 2],
    begin: Instant,
    payloads: Vec<Option<(Vec<u8>, Option<EcnCodepoint>)>>,
    free: Vec<usize>,
    progress: Arc<Mutex<Progress>>,
}

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + end as u8], 4433))
}

impl Pair {
    /// A connection whose client has the controller of this factory. The seed is that of quinn's random decisions.
    pub fn new(
        factory: impl ControllerFactory + Send + Sync + 'static,
        seed: u8,
    ) -> (Pair, Arc<Mutex<Progress>>) {
        let begin = Instant::now();
        let mut transport = TransportConfig::default();
        transport
            .congestion_controller_factory(Arc::new(factory))
            .send_window(WINDOW_BYTES.into())
            .receive_window(VarInt::from_u32(WINDOW_BYTES))
            .stream_receive_window(VarInt::from_u32(WINDOW_BYTES));
        let transport = Arc::new(transport);
        let endpoint = Arc::new(EndpointConfig::new(Arc::new(Plain)));
        let mut server = ServerConfig::new(Arc::new(Plain), Arc::new(Plain));
        server.transport_config(Arc::clone(&transport));
        let end = |server, seed| End {
            endpoint: Endpoint::new(Arc::clone(&endpoint), server, true, Some([seed; 32])),
            connection: None,
            stream: None,
            responses: Vec::new(),
        };
        let mut ends = [end(None, seed), end(Some(Arc::new(server)), !seed)];
        let mut client = ClientConfig::new(Arc::new(Plain));
        client.transport_config(transport);
        let connected = ends[CLIENT].endpoint.connect(begin, client, address(1), "server");
        ends[CLIENT].connection = Some(connected.expect("a valid configuration"));
        let progress = Arc::new(Mutex::new(Progress::default()));
        let told = Arc::clone(&progress);
        (Pair { ends, begin, payloads: Vec::new(), free: Vec::new(), progress }, told)
    }

    fn at(&self, now: Time) -> Instant {
        self.begin + Duration::from_nanos(now.0 / 1000)
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
        let mut progress = self.progress.lock().expect("one thread");
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
            while connection.send_stream(id).write(&ZEROS).is_ok() {}
            let path = connection.stats().path;
            progress.window_bytes = path.cwnd;
            progress.lost_packets = path.lost_packets;
            progress.srtt_s = path.rtt.as_secs_f64();
        } else {
            let mut stream = connection.recv_stream(id);
            let Ok(mut chunks) = stream.read(true) else { return };
            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                progress.read_bytes += chunk.bytes.len() as u64;
            }
            let _ = chunks.finalize();
        }
    }

    fn kept(&mut self, payload: Vec<u8>, ecn: Option<EcnCodepoint>) -> Datagram {
        let bytes = payload.len() as u32 + HEADER_BYTES;
        let place = self.free.pop().unwrap_or(self.payloads.len());
        match self.payloads.get_mut(place) {
            Some(slot) => *slot = Some((payload, ecn)),
            None => self.payloads.push(Some((payload, ecn))),
        }
        Datagram { id: place as u64, bytes, ecn: ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8)) }
    }
}

impl Stack for Pair {
    fn poll_transmit(&mut self, end: usize, now: Time) -> Option<Datagram> {
        if let Some((payload, ecn)) = self.ends[end].responses.pop() {
            return Some(self.kept(payload, ecn));
        }
        let now = self.at(now);
        let mut payload = Vec::new();
        let (_, connection) = self.ends[end].connection.as_mut()?;
        let transmit = connection.poll_transmit(now, 1, &mut payload)?;
        payload.truncate(transmit.size);
        Some(self.kept(payload, transmit.ecn))
    }

    fn handle_datagram(&mut self, end: usize, now: Time, id: u64, ce: bool) {
        let Some(Some((payload, ecn))) = self.payloads.get(id as usize).cloned() else { return };
        let ecn = if ce { Some(EcnCodepoint::Ce) } else { ecn };
        let now = self.at(now);
        let mut answer = Vec::new();
        let End { endpoint, connection, responses, .. } = &mut self.ends[end];
        let data = BytesMut::from(&payload[..]);
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

    fn timeout(&mut self, end: usize) -> Time {
        let timeout =
            self.ends[end].connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        timeout
            .map_or(Time::NEVER, |at| Time(at.saturating_duration_since(self.begin).as_nanos() as u64 * 1000))
    }

    fn handle_timeout(&mut self, end: usize, now: Time) {
        let now = self.at(now);
        if let Some((_, connection)) = &mut self.ends[end].connection {
            connection.handle_timeout(now);
        }
        self.drive(end);
    }

    fn forget(&mut self, id: u64) {
        self.payloads[id as usize] = None;
        self.free.push(id as usize);
    }
}
