//! The path between two TUN devices, in real time.

use std::io;
use std::mem::zeroed;
use std::os::fd::RawFd;

use lfn_header::vcp::Load;
use lfn_header::Header;
use lfn_path::Ecn;
use lfn_sim::tables::QueueRow;
use lfn_sim::ClassesSummary;
use lfn_units::Time;
use serde::{Deserialize, Serialize};

use crate::burst::Burst;
use crate::lateness::{Histogram, Quantiles};
use crate::live::Live;
use crate::network::{Delivery, Departure, Events, Network};
use crate::process;
use crate::tun::Tun;

/// Buffers of this size and more are kept to be used again.
const LARGE_BYTES: usize = 16_384;
const POOL: usize = 64;
/// Busy-wait time before sleeping. A sleep costs as much CPU time in a virtual machine, and ends late.
/// Ordinary processes do not busy-wait, since others need the processor. A longer time is worse: an emulator
/// that never sleeps exhausts its SCHED_DEADLINE budget, and Linux, which checks once a tick, throttles it
/// for up to 0.9 ms.
const SPIN_NS: u64 = 10_000;

/// The report of an emulated path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// How long it ran.
    pub wall_s: f64,
    /// CPU time of the emulator, without that in which it had nothing to do.
    pub cpu_s: f64,
    /// CPU time of busy-waiting.
    pub spun_s: f64,
    /// Steal time of all processors of this machine during the run.
    pub stolen_s: f64,
    /// Whether the scheduler served it before all others (SCHED_DEADLINE or SCHED_FIFO).
    pub real_time: bool,
    /// Lateness: time from a segment's due time to its delivery.
    pub lateness: Quantiles,
    /// Largest time that a burst may have waited until it was read: since the emulator last slept.
    pub reading: Quantiles,
    /// Losses by the emulator itself. A run is valid only if these are 0.
    pub own_drops: OwnDrops,
    /// Links in the order of the scenario.
    pub links: Vec<LinkReport>,
    /// Links at their samples, if there were any.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub samples: Vec<QueueRow>,
}

/// Drops by the emulator itself, not by its path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnDrops {
    /// Bursts that the kernel dropped because we read too late, or did not take.
    pub device: u64,
    /// Bursts of a form that we do not know.
    pub unknown: u64,
}

/// Counters of a link, since the warm-up if there is one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LinkReport {
    /// Its name.
    pub link: String,
    /// Packets with payload that left its queue, over the whole run.
    pub data_packets: u64,
    /// Packets that arrived.
    pub arrivals: u64,
    /// Packets that left its queue.
    pub sent_packets: u64,
    /// Bytes of those.
    pub sent_bytes: u64,
    /// Dropped because they did not fit.
    pub drops_full: u64,
    /// Dropped by the AQM.
    pub drops_early: u64,
    /// Marked.
    pub marks: u64,
    /// Lost after the queue, over the whole run.
    pub lost: u64,
    /// Largest queue, in packets.
    pub max_waiting: u64,
    /// Mean queueing delay.
    pub mean_queue_s: f64,
    /// 99th percentile of the queueing delay.
    pub p99_queue_s: f64,
    /// L4S and Classic packets apart; none where the queue does not tell them apart.
    pub classes: Option<ClassesSummary>,
}

/// Both ends, and the network between them. Route 0 leads from the first end to the second, route 1 back.
pub(crate) struct Emulator {
    ends: [Tun; 2],
    network: Network,
    framing_bytes: u32,
    /// The ECN field is VCP's load code (Xia et al. 2005 section 3.1).
    vcp: bool,
    /// Bursts by token: the upper part of a token is an index here, the lower 16 bits a segment.
    held: Vec<Option<Held>>,
    free: Vec<usize>,
    pool: Vec<Vec<u8>>,
    buffer: Vec<u8>,
    events: Events,
    began_ns: u64,
    /// Time of the last poll of the devices, or of the last wake-up.
    seen_ns: u64,
    lateness: Histogram,
    reading: Histogram,
    unknown: u64,
    real_time: bool,
    spun_ns: u64,
    /// Until the path began.
    stolen_s: f64,
    samples: Samples,
    /// When the links' counters restart.
    warm_at: Time,
    live: Option<Live>,
}

/// Samples of the links.
struct Samples {
    every: Time,
    next_at: Time,
    rows: Vec<QueueRow>,
}

struct Held {
    burst: Burst,
    /// Segments under way.
    left: usize,
}

/// Nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn now_ns() -> u64 {
    // SAFETY: the time lives.
    let time = unsafe {
        let mut time = zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of this thread.
fn cpu_s() -> f64 {
    // SAFETY: the usage lives.
    let usage = unsafe {
        let mut usage: libc::rusage = zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn load(ecn: u8) -> Header {
    match ecn {
        1 => Header::Vcp(Load::Low),
        2 => Header::Vcp(Load::High),
        3 => Header::Vcp(Load::Overload),
        _ => Header::None,
    }
}

impl Emulator {
    /// Time began at `began_ns` of the machine's clock. Links are sampled every `sample_every`, not at all
    /// with [`Time::NEVER`]; their counters restart at `warm_at`.
    pub(crate) fn new(
        network: Network,
        framing_bytes: u32,
        ends: [Tun; 2],
        began_ns: u64,
        (sample_every, warm_at): (Time, Time),
        live: Option<Live>,
    ) -> Emulator {
        let vcp = network.meters_load();
        let real_time = process::prefer();
        Emulator {
            ends,
            network,
            framing_bytes,
            vcp,
            held: Vec::new(),
            free: Vec::new(),
            pool: Vec::new(),
            buffer: Vec::new(),
            events: Events::default(),
            began_ns,
            seen_ns: began_ns,
            lateness: Histogram::default(),
            reading: Histogram::default(),
            unknown: 0,
            real_time,
            spun_ns: 0,
            stolen_s: process::stolen_s(),
            samples: Samples { every: sample_every, next_at: sample_every, rows: Vec::new() },
            warm_at,
            live,
        }
    }

    fn now(&self) -> Time {
        Time::from_ns(now_ns() - self.began_ns)
    }

    /// Serves the path until one of `others` can be read.
    pub(crate) fn run(&mut self, others: &[RawFd]) -> io::Result<()> {
        let descriptors = self.ends.iter().map(Tun::descriptor).chain(others.iter().copied());
        let mut polled: Vec<libc::pollfd> =
            descriptors.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
        loop {
            self.deliver();
            let next_line = self.live.as_ref().map_or(Time::NEVER, Live::next_at);
            let next = self.network.next_at().min(self.next_look()).min(next_line).as_ns();
            // An extra poll is harmless.
            let looked_ns = now_ns();
            let due_ns = next.saturating_sub(looked_ns - self.began_ns).min(999_999_999);
            let spins = self.real_time && due_ns <= SPIN_NS;
            let wait_ns = if spins { 0 } else { due_ns };
            let wait = libc::timespec { tv_sec: 0, tv_nsec: wait_ns as _ };
            // SAFETY: the descriptors and the time live.
            let ready =
                unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as _, &wait, std::ptr::null()) };
            if ready < 0 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
                continue;
            }
            if due_ns > 0 {
                self.seen_ns = now_ns();
            }
            if spins && ready == 0 {
                self.spun_ns += self.seen_ns.saturating_sub(looked_ns);
            }
            for (end, device) in polled[..2].iter().enumerate() {
                if device.revents != 0 {
                    self.take(end)?;
                }
            }
            if polled[2..].iter().any(|other| other.revents != 0) {
                return Ok(());
            }
        }
    }

    /// Delivers segments that are due.
    fn deliver(&mut self) {
        let now = self.now();
        while self.next_look() <= now {
            self.network.advance(self.next_look(), &mut self.events);
            // As in the simulator, a sample at the warm-up's end counts from there.
            if self.warm_at <= self.samples.next_at {
                self.network.restart_counters();
                self.warm_at = Time::NEVER;
            } else {
                self.sample();
            }
        }
        self.network.advance(now, &mut self.events);
        if let Some(live) = self.live.as_mut().filter(|live| live.next_at() <= now) {
            live.look(now, &self.network);
        }
        let mut events = std::mem::take(&mut self.events);
        for token in events.doubled.drain(..) {
            if let Some(held) = &mut self.held[(token >> 16) as usize] {
                held.left += 1;
            }
        }
        let mut rest = &events.delivered[..];
        while let Some(first) = rest.first() {
            let together = |pair: &[Delivery]| {
                pair[0].token + 1 == pair[1].token
                    && pair[0].ecn == pair[1].ecn
                    && pair[0].header == pair[1].header
            };
            let count = 1 + rest.windows(2).take_while(|pair| together(pair)).count();
            self.hand_over(first, &rest[..count]);
            rest = &rest[count..];
        }
        events.delivered.clear();
        for token in events.gone.drain(..) {
            self.release((token >> 16) as usize, 1);
        }
        self.events = events;
    }

    /// When the links are sampled, or their counters restart.
    fn next_look(&self) -> Time {
        self.samples.next_at.min(self.warm_at)
    }

    fn sample(&mut self) {
        let at = self.samples.next_at;
        self.samples.next_at = at.after(self.samples.every);
        for (number, (_, link, _)) in self.network.links().enumerate() {
            self.samples.rows.push(QueueRow::new(at, number as u16, link.snapshot(at), link.counters()));
        }
    }

    /// Segments that follow each other in one burst.
    fn hand_over(&mut self, first: &Delivery, segments: &[Delivery]) {
        let (place, segment) = ((first.token >> 16) as usize, (first.token & 0xffff) as usize);
        let now = self.now();
        if let Some(held) = &self.held[place] {
            let ecn = match first.header {
                Header::Vcp(load) if self.vcp => load as u8,
                _ if self.vcp => held.burst.ecn(),
                _ => first.ecn as u8,
            };
            let (headers, payload) = held.burst.part(segment, segments.len(), ecn);
            // A refusal (a stack that goes down) is in the kernel's count of the device.
            drop(self.ends[usize::from(first.route & 1 == 0)].write(headers.as_slice(), payload));
        }
        for segment in segments {
            let late_ns = now.since(segment.at).as_ns();
            self.lateness.add(late_ns);
            if let Some(live) = &mut self.live {
                live.note_lateness(late_ns);
            }
        }
        self.release(place, segments.len());
    }

    fn release(&mut self, place: usize, segments: usize) {
        let Some(held) = &mut self.held[place] else { return };
        held.left -= segments;
        if held.left > 0 {
            return;
        }
        self.free.push(place);
        if let Some(held) = self.held[place].take() {
            let bytes = held.burst.into_bytes();
            if bytes.capacity() >= LARGE_BYTES && self.pool.len() < POOL {
                self.pool.push(bytes);
            }
        }
    }

    /// Reads packets at one end, until a delivery is due.
    fn take(&mut self, end: usize) -> io::Result<()> {
        while self.ends[end].read(&mut self.buffer)? {
            let now_ns = now_ns();
            self.reading.add(now_ns - self.seen_ns);
            let now = Time::from_ns(now_ns - self.began_ns);
            // A small packet does not keep a large buffer.
            let bytes = if self.buffer.len() < LARGE_BYTES {
                self.buffer.clone()
            } else {
                std::mem::replace(&mut self.buffer, self.pool.pop().unwrap_or_default())
            };
            match Burst::parse(bytes) {
                Some(burst) => self.offer(now, end as u16, burst),
                None => self.unknown += 1,
            }
            if !self.events.delivered.is_empty() || self.next_look() <= now {
                break;
            }
        }
        Ok(())
    }

    fn offer(&mut self, now: Time, route: u16, burst: Burst) {
        let place = self.free.pop().unwrap_or(self.held.len());
        let ecn = burst.ecn();
        let segments = burst.segments();
        let common = Departure {
            token: 0,
            route,
            flow: burst.flow,
            bytes: 0,
            kind: burst.kind,
            ecn: if self.vcp { Ecn::NotEct } else { Ecn::from_bits(ecn) },
            header: if self.vcp { load(ecn) } else { Header::None },
        };
        let bytes: Vec<u32> =
            (0..segments).map(|at| burst.ip_bytes(at) as u32 + self.framing_bytes).collect();
        let held = Some(Held { burst, left: segments });
        if place == self.held.len() {
            self.held.push(held);
        } else {
            self.held[place] = held;
        }
        for (at, bytes) in bytes.into_iter().enumerate() {
            let token = (place as u64) << 16 | at as u64;
            self.network.offer(now, Departure { token, bytes, ..common }, &mut self.events);
        }
    }

    pub(crate) fn report(&mut self) -> io::Result<Report> {
        let [near, far] = &mut self.ends;
        let device = near.lost()? + far.lost()?;
        let now = self.now();
        let links = self.network.links().map(|(name, link, lost)| {
            let counters = link.counters();
            LinkReport {
                link: name.into(),
                data_packets: link.data_totals().sent,
                arrivals: counters.arrivals,
                sent_packets: counters.sent_packets,
                sent_bytes: counters.sent_bytes,
                drops_full: counters.drops_full,
                drops_early: counters.drops_early,
                marks: counters.marks,
                lost,
                max_waiting: counters.max_waiting,
                mean_queue_s: counters.mean_wait().as_s(),
                p99_queue_s: counters.wait_quantile(0.99).as_s(),
                classes: link.classes(now).as_ref().map(ClassesSummary::of),
            }
        });
        Ok(Report {
            links: links.collect(),
            samples: std::mem::take(&mut self.samples.rows),
            wall_s: self.now().as_s(),
            cpu_s: cpu_s() - self.spun_ns as f64 * 1e-9,
            spun_s: self.spun_ns as f64 * 1e-9,
            stolen_s: process::stolen_s() - self.stolen_s,
            real_time: self.real_time,
            lateness: self.lateness.quantiles(),
            reading: self.reading.quantiles(),
            own_drops: OwnDrops { device, unknown: self.unknown },
        })
    }
}
