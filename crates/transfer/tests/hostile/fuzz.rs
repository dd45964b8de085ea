//! Packets of every type, valid handshakes, in and out of order, against a whole receiver and whole senders.
//!
//! `LFN_FUZZ_PACKETS` says how many, half of them for each; `LFN_SEED` repeats a run.

use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use lfn_udt::{AckReport, Body, Boundary, Handshake, LossReport, Request, Seq, Speeds};
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::common::{contents, folder, noise, receiver, send_at, Process};
use crate::raw::{encoded, Raw};

/// Packets of one connection.
const PACKETS: u64 = 500;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

fn seed() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let seed = number("LFN_SEED").unwrap_or(now.tv_nsec as u64 ^ (now.tv_sec as u64) << 30);
    eprintln!("LFN_SEED={seed}");
    seed
}

/// `true`: it stays calm, so that the connection lives: nothing that was never sent is named, and packet 1 never
/// comes.
struct Fuzzer(Xoshiro256PlusPlus, bool);

impl Fuzzer {
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    /// A number near those in use, or anywhere.
    fn seq(&mut self, initial: u32) -> Seq {
        let near = match self.below(8) {
            0 => self.0.next_u64() as u32,
            1 => 0u32.wrapping_sub(self.below(100) as u32),
            2 => 8000 + self.below(400) as u32,
            _ => self.below(80) as u32,
        };
        Seq::new(initial.wrapping_add(near))
    }

    fn word(&mut self) -> u32 {
        match self.below(4) {
            0 => self.0.next_u64() as u32,
            1 => u32::MAX,
            _ => self.below(100) as u32,
        }
    }

    /// The beginning of what a sender or a receiver says, with a few bytes changed.
    fn words(&mut self, receives: bool) -> Vec<u8> {
        let mut words = if receives {
            [
                &b"lfnudt-2\x01\0\0\0\x04\0fuzz"[..],
                &self.below(100_000).to_le_bytes(),
                &[0; 13],
                &[1, 9, 0, 0, 0],
            ]
            .concat()
        } else {
            // Ready; all, a part or nothing of the file is there; an answer; that all is done.
            let there = [&[6, 0, 0, 0, 0][..], &[5, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0], &[]];
            let there = there[self.below(3) as usize];
            let answer = [4, 8 + self.below(2) as u8];
            let answer = if there.is_empty() { &[] } else { &answer[..] };
            [&[1], there, &[0], answer, &[2][..self.below(2) as usize]].concat()
        };
        for _ in 0..self.below(8).saturating_sub(4) {
            let at = self.below(words.len() as u64) as usize;
            words[at] = self.0.next_u64() as u8;
        }
        words
    }

    fn packet(&mut self, peer: &Raw) -> Vec<u8> {
        let initial = peer.initial;
        let (mut seq, mut end, word) = (self.seq(initial), self.seq(initial), self.word());
        let mut kind = self.below(14);
        if self.1 && kind == 5 {
            // Nothing was sent that a NAK could name.
            kind = 13;
        } else if self.1 && kind < 5 {
            let near = if kind <= 2 { 2 + self.below(60) as u32 } else { 0 };
            (seq, end) = (Seq::new(initial.wrapping_add(near)), Seq::new(initial));
        }
        let mut bytes = vec![0; self.below(1500) as usize];
        let mut ranges = Vec::new();
        let body = match kind {
            0..=2 => {
                self.0.fill_bytes(&mut bytes);
                let (boundary, message) = (Boundary::new(word & 1 == 0, word & 2 == 0), word >> 3);
                Body::Data { seq, boundary, in_order: word & 4 == 0, message, payload: &bytes }
            }
            3 | 4 => {
                let speeds = (word & 1 == 0).then_some(Speeds { arrival_pps: word, capacity_pps: word });
                let report = AckReport { rtt_us: word, rtt_var_us: word, buffer_packets: word, speeds };
                Body::Ack { number: word, next: seq, report: (word & 2 == 0).then_some(report) }
            }
            5 => {
                for _ in 0..if self.1 { 0 } else { self.below(20) } {
                    let (first, last) = (self.seq(initial), self.seq(initial));
                    LossReport::push(&mut ranges, first, last);
                }
                Body::Nak(LossReport::push(&mut ranges, seq, end))
            }
            6 => Body::Ack2 { number: word },
            7 | 8 => Body::Drop { message: word, first: seq, end },
            9 => Body::Handshake(Handshake {
                version: word,
                kind: word & 3,
                initial: seq,
                mss_bytes: self.word(),
                window_packets: self.word(),
                request: Request([1, 0, -1, -2, 1002, word as i32][self.below(6) as usize]),
                socket: word,
                cookie: self.word(),
                peer_ip: [0; 4],
            }),
            10 => Body::Warning,
            11 => Body::PeerError { code: word },
            12 => Body::User { extension: word as u16, info: word, body: &bytes },
            _ => Body::KeepAlive,
        };
        let to = if self.below(30) == 0 { self.word() } else { peer.peer };
        let mut packet = encoded(to, body);
        if self.below(8) == 0 && !self.1 {
            let at = self.below(packet.len() as u64) as usize;
            packet[at] ^= 1 << self.below(8);
        }
        if self.below(12) == 0 {
            packet.truncate(self.below(packet.len() as u64 + 1) as usize);
        }
        packet
    }

    /// One connection's packets, without its end.
    fn talk(&mut self, peer: &Raw, receives: bool) {
        self.1 = self.below(3) > 0;
        let words = self.words(receives);
        if self.below(3) > 0 {
            peer.data(0, &words);
        }
        for count in 0..PACKETS {
            let packet = self.packet(peer);
            let _ = peer.udp.send(&packet);
            if count % 50 == 0 {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }
}

/// Of a process: bytes in memory, threads, descriptors, seconds of CPU.
type Counters = (u64, u64, usize, f64);

/// `None`: it has ended.
fn try_counters(process: &Child) -> Option<Counters> {
    let path = format!("/proc/{}", process.id());
    let status = std::fs::read_to_string(format!("{path}/status")).ok()?;
    let field = |name: &str| -> Option<u64> {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let stat = std::fs::read_to_string(format!("{path}/stat")).ok()?;
    let ticks: u64 = stat.split(' ').skip(13).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    let descriptors = std::fs::read_dir(format!("{path}/fd")).ok()?.count();
    Some((field("VmRSS:")? * 1024, field("Threads:")?, descriptors, ticks as f64 / 100.0))
}

pub fn counters(process: &Child) -> Counters {
    try_counters(process).expect("it runs")
}

#[test]
fn fuzz_of_a_whole_receiver() {
    let packets = number("LFN_FUZZ_PACKETS").unwrap_or(40_000) / 2;
    let (seed, folder) = (seed(), folder("fuzz-receiver"));
    let mut fuzzer = Fuzzer(Xoshiro256PlusPlus::seed_from_u64(seed), false);
    let said = folder.join("said");
    let (process, address) = receiver(&folder.join("to"), &said, &["--overwrite"]);
    let connections = packets.div_ceil(PACKETS);
    let before = counters(&process.0);
    let mut early = None;
    for connection in 0..connections {
        let from = format!("127.0.0.{}", 2 + connection % 50);
        match Raw::connect(&address, &from) {
            Ok(peer) => {
                fuzzer.talk(&peer, true);
                peer.send(Body::Shutdown);
            }
            Err("refused") => std::thread::sleep(Duration::from_millis(300)),
            Err(why) => panic!("{why} after {connection} connections, seed {seed}"),
        }
        if connection == connections / 4 {
            early = Some(counters(&process.0));
        }
    }
    // An end that got no shutdown message detects the end.
    std::thread::sleep(Duration::from_secs(16));
    let (bytes, threads, descriptors, cpu_s) = counters(&process.0);
    let text = std::fs::read_to_string(&said).unwrap();
    assert!(!text.contains("panicked") && !text.contains("a defect"), "seed {seed}: {text}");
    assert_eq!((threads, descriptors), (before.1, before.2), "threads and descriptors, seed {seed}");
    let early = early.unwrap();
    assert!(bytes < early.0 + (64 << 20), "{bytes} bytes in memory, {} before, seed {seed}", early.0);
    std::thread::sleep(Duration::from_secs(2));
    let busy_s = counters(&process.0).3 - cpu_s;
    assert!(busy_s < 0.2, "{busy_s} s of CPU in 2 s without a peer, seed {seed}");
    std::fs::write(folder.join("from/file"), noise(100_000, seed)).unwrap();
    send_at(&address, &folder.join("from/file")).unwrap();
    let there = std::fs::read(folder.join("to/file")).unwrap();
    assert!(there == contents(&folder.join("from"))[0].1, "seed {seed}");
    eprintln!("{packets} packets, {connections} connections, {} MB, {cpu_s} s of CPU", bytes >> 20);
}

/// A sender is one process for each connection: it ends by itself, with an error, and takes no more than another.
#[test]
fn fuzz_of_whole_senders() {
    let packets = number("LFN_FUZZ_PACKETS").unwrap_or(40_000) / 2;
    let (seed, folder) = (seed(), folder("fuzz-senders"));
    let said = folder.join("said");
    std::fs::write(folder.join("from/file"), noise(300_000, 1)).unwrap();
    let connections = packets.div_ceil(PACKETS);
    let (mut most_bytes, mut most_cpu_s, mut seen) = (0, 0.0f64, 0);
    for connection in 0..connections {
        let at = format!("seed {seed}, connection {connection}");
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = udp.local_addr().unwrap().to_string();
        let mut sender = sender(&folder.join("from/file"), &to, &said);
        let mut fuzzer = Fuzzer(Xoshiro256PlusPlus::seed_from_u64(seed ^ connection << 20), false);
        let peer = Raw::accept(udp);
        fuzzer.talk(&peer, false);
        if let Some((bytes, threads, descriptors, cpu_s)) = try_counters(&sender.0) {
            assert_eq!(threads, 1, "threads, {at}");
            // Three of its own, its socket, its file, and what it is given.
            assert!(descriptors <= 3 + 2 + 2, "{descriptors} descriptors, {at}");
            (most_bytes, most_cpu_s, seen) = (most_bytes.max(bytes), most_cpu_s.max(cpu_s), seen + 1);
        }
        let code = ended(&mut sender.0, &peer).unwrap_or_else(|| panic!("it goes on, {at}"));
        let text = std::fs::read_to_string(&said).unwrap();
        assert!(code == Some(1) && !text.contains("panicked") && !text.contains("defect"), "{at}: {text}");
        assert!(most_bytes < 64 << 20, "{most_bytes} bytes in memory, {at}");
        assert!(most_cpu_s < 5.0, "{most_cpu_s} s of CPU, {at}");
    }
    assert!(seen > 0 || connections < 4, "no sender lived to be looked at, seed {seed}");
    eprintln!(
        "{packets} packets, {connections} senders, {seen} seen alive, at most {} MB and {most_cpu_s} s of CPU",
        most_bytes >> 20
    );
}

fn sender(file: &Path, to: &str, said: &Path) -> Process {
    let command = Command::new(env!("CARGO_BIN_EXE_lfn-udt"))
        .args(["send", "--quiet", "--to", to])
        .arg(file)
        .stderr(std::fs::File::create(said).unwrap())
        .spawn();
    Process(command.unwrap())
}

/// The exit code of a sender whose receiver says that it is over, again and again: a word may be lost.
fn ended(sender: &mut Child, peer: &Raw) -> Option<Option<i32>> {
    for _ in 0..2000 {
        peer.send(Body::Shutdown);
        if let Some(status) = sender.try_wait().unwrap() {
            return Some(status.code());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}
