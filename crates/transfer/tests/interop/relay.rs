//! A UDP relay on loopback that loses, delays and reorders, by a seeded generator.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Impairments in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub delay: Duration,
    /// Packets lost, of 10,000.
    pub loss: u64,
    /// Packets held up by another millisecond or two, of 10,000.
    pub late: u64,
}

/// Between one client and a server, until dropped.
pub struct Relay {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    pub fn new(server: SocketAddr, way: Way, seed: u64) -> Relay {
        let front = UdpSocket::bind("127.0.0.1:0").unwrap();
        let back = UdpSocket::bind("127.0.0.1:0").unwrap();
        back.connect(server).unwrap();
        for socket in [&front, &back] {
            socket.set_nonblocking(true).unwrap();
        }
        let (address, stop) = (front.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let end = stop.clone();
        let thread = std::thread::spawn(move || relay(&front, &back, way, seed, &end));
        Relay { address, stop, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn relay(front: &UdpSocket, back: &UdpSocket, way: Way, seed: u64, stop: &AtomicBool) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut client = None;
    // Datagrams in flight: arrival time, number, and whether the destination is the server.
    let mut under_way: BTreeMap<(Instant, u64), (bool, Vec<u8>)> = BTreeMap::new();
    let mut count = 0;
    let mut buffer = [0; 65_536];
    while !stop.load(Ordering::Relaxed) {
        let mut idle = true;
        for forward in [true, false] {
            loop {
                let bytes = if forward {
                    front.recv_from(&mut buffer).map(|(bytes, from)| {
                        client = Some(from);
                        bytes
                    })
                } else {
                    back.recv(&mut buffer)
                };
                let bytes = match bytes {
                    Ok(bytes) => bytes,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // The server's port is closed.
                    Err(_) => break,
                };
                idle = false;
                let draw = random.next_u64() % 10_000;
                if draw < way.loss {
                    continue;
                }
                let late = if draw >= 10_000 - way.late { 1 + draw % 2 } else { 0 };
                count += 1;
                let at = Instant::now() + way.delay + Duration::from_millis(late);
                under_way.insert((at, count), (forward, buffer[..bytes].to_vec()));
            }
        }
        while under_way.first_key_value().is_some_and(|((at, _), _)| *at <= Instant::now()) {
            idle = false;
            let (_, (forward, bytes)) = under_way.pop_first().unwrap();
            // A full buffer loses, as on any path.
            let _ = match (forward, client) {
                (true, _) => back.send(&bytes),
                (false, Some(client)) => front.send_to(&bytes, client),
                (false, None) => Ok(0),
            };
        }
        if idle {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}
