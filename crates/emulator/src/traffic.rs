//! Other traffic of a scenario between real stacks: UDP and the background, as their generators have them.

use std::io::{self, Read, Write};
use std::mem::size_of;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lfn_sim::background::{Background as Arrivals, Config, Direction};
use lfn_sim::rng::{Stream, Streams};
use lfn_sim::traffic::udp::{self, Udp};
use lfn_units::Time;
use libc::c_int;
use serde::Serialize;

use crate::emulator::now_ns;

const STACK_BYTES: usize = 64 * 1024;
const CHUNK_BYTES: usize = 64 * 1024;
static ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];

/// When a scenario begins and ends, by the machine's clock.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Its time 0, in nanoseconds of CLOCK_MONOTONIC.
    pub zero_ns: u64,
    /// How long it runs.
    pub duration: Time,
}

impl Span {
    fn sleep_until(self, at: Time) {
        let wait_ns = (self.zero_ns + at.as_ns()).saturating_sub(now_ns());
        thread::sleep(Duration::from_nanos(wait_ns));
    }
}

/// Counters of a UDP source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UdpSent {
    /// Packets that the kernel took.
    pub sent: u64,
    /// Packets that it refused: its queues were full.
    pub refused: u64,
}

/// Sends the packets of a source when they are due, whatever the path does. `overhead_bytes` of each are
/// headers and framing.
///
/// # Errors
/// When there is no socket; or the parameters are out of range.
pub fn send_udp(
    config: &udp::Config,
    streams: &Streams,
    overhead_bytes: u32,
    to: SocketAddrV4,
    span: Span,
) -> io::Result<UdpSent> {
    let packets = Udp::new(config, streams).map_err(io::Error::other)?;
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(to)?;
    socket.set_nonblocking(true)?;
    let payload = vec![0; config.packet_bytes.saturating_sub(overhead_bytes) as usize];
    let mut done = UdpSent::default();
    for packet in packets.take_while(|packet| packet.at < span.duration) {
        span.sleep_until(packet.at);
        match socket.send(&payload) {
            Ok(_) => done.sent += 1,
            Err(_) => done.refused += 1,
        }
    }
    Ok(done)
}

fn set(socket: c_int, level: c_int, option: c_int, value: &[u8]) -> io::Result<()> {
    // SAFETY: the option's value lives.
    let done = unsafe { libc::setsockopt(socket, level, option, value.as_ptr().cast(), value.len() as _) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Takes connections at a port and throws away what comes on them, until the process ends. `window_bytes`
/// bounds the window that it gives to senders.
///
/// # Errors
/// When the port is taken.
pub fn take_tcp(port: u16, window_bytes: Option<u32>) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
    if let Some(bytes) = window_bytes {
        // Connections take it over from the listener.
        set(listener.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, &bytes.to_ne_bytes())?;
    }
    for connection in listener.incoming() {
        let connection = connection?;
        // Of an end without threads the machine has more to say than we.
        drop(thread::Builder::new().stack_size(STACK_BYTES).spawn(move || drain(&connection)));
    }
    Ok(())
}

fn drain(connection: &TcpStream) {
    let mut room = vec![0u8; CHUNK_BYTES];
    loop {
        // With MSG_TRUNC the kernel throws away what it would copy (tcp(7)).
        // SAFETY: the buffer is valid and has the given size.
        let taken = unsafe {
            libc::recv(connection.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), libc::MSG_TRUNC)
        };
        if taken <= 0 {
            return;
        }
    }
}

/// Counters of the background traffic of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BackgroundSent {
    /// Short flows that began.
    pub flows_started: u64,
    /// Those that were done before the end.
    pub flows_completed: u64,
}

/// Where the background goes, and how.
#[derive(Clone, Debug)]
pub struct BackgroundEnd {
    /// The other end.
    pub to: Ipv4Addr,
    /// Where it takes short flows.
    pub short_port: u16,
    /// Where it takes long flows.
    pub long_port: u16,
    /// The kernel's name of the law.
    pub law: String,
}

/// Sends the background of one direction: the flows of the simulator's generator, each when it is due, on a
/// connection and in a thread of its own.
///
/// # Errors
/// When the kernel lacks the law.
pub fn send_background(
    config: Config,
    seed: u64,
    direction: Direction,
    end: &BackgroundEnd,
    span: Span,
) -> io::Result<BackgroundSent> {
    let traffic = Arrivals::new(config, &Streams::of_run(seed));
    let completed = Arc::new(AtomicU64::new(0));
    drop(open(&end.law, 1460)?);
    for long in traffic.long_flows().iter().filter(|long| long.direction == direction) {
        let (start, mss_bytes, end) = (long.start, long.mss_bytes, end.clone());
        begin(move || {
            span.sleep_until(start);
            let mut connection = connect(&end, end.long_port, mss_bytes)?;
            loop {
                connection.write_all(&ZEROS)?;
            }
        });
    }
    let mut done = BackgroundSent::default();
    let mut seeds = 0;
    let arrivals = traffic.take_while(|arrival| arrival.at < span.duration);
    for arrival in arrivals.filter(|arrival| arrival.direction == direction) {
        span.sleep_until(arrival.at);
        let (end, completed) = (end.clone(), completed.clone());
        seeds += 1;
        let mut gaps = Stream::new(seed, &format!("background.write.gap[{seeds}]"));
        begin(move || {
            let mut connection = connect(&end, end.short_port, arrival.mss_bytes)?;
            let chunk = arrival.writes.map_or(CHUNK_BYTES, |writes| writes.write_bytes as usize);
            let mut left = arrival.bytes;
            while left > 0 {
                let bytes = left.min(chunk as u64) as usize;
                connection.write_all(&ZEROS[..bytes])?;
                left -= bytes as u64;
                if let Some(writes) = arrival.writes.filter(|_| left > 0) {
                    thread::sleep(Duration::from_secs_f64(gaps.exp(writes.mean_gap.as_s())));
                }
            }
            connection.shutdown(std::net::Shutdown::Write)?;
            // The other end closes when it has everything.
            connection.read_to_end(&mut Vec::new())?;
            completed.fetch_add(1, Relaxed);
            Ok(())
        });
        done.flows_started += 1;
    }
    span.sleep_until(span.duration);
    done.flows_completed = completed.load(Relaxed);
    Ok(done)
}

/// A flow that breaks is a flow that is not completed.
fn begin(flow: impl FnOnce() -> io::Result<()> + Send + 'static) {
    drop(thread::Builder::new().stack_size(4 * STACK_BYTES).spawn(flow));
}

/// A socket under a law, whose segments are no larger.
fn open(law: &str, mss_bytes: u32) -> io::Result<TcpStream> {
    // SAFETY: makes a descriptor, which the stream then owns.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    let stream = unsafe { TcpStream::from_raw_fd(socket) };
    set(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, law.as_bytes())?;
    set(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, &mss_bytes.to_ne_bytes())?;
    Ok(stream)
}

fn connect(end: &BackgroundEnd, port: u16, mss_bytes: u32) -> io::Result<TcpStream> {
    let stream = open(&end.law, mss_bytes)?;
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(end.to).to_be() },
        sin_zero: [0; 8],
    };
    // SAFETY: an address of IPv4 that lives, with its size.
    let done = unsafe {
        let address = (&raw const address).cast();
        libc::connect(stream.as_raw_fd(), address, size_of::<libc::sockaddr_in>() as _)
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(stream)
}
