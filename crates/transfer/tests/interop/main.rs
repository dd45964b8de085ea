//! Our UDT and libudt 4.11, both ways, with loss, delay and reordering between them.
//!
//! `LFN_INTEROP_TRANSFERS=200 cargo test --release -p lfn-transfer --test interop` is the long form.

#![allow(clippy::disallowed_methods, reason = "sockets live in real time")]

mod relay;

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lfn_transfer::{compat, Listener, Plan};
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use relay::{Relay, Way};

/// The program on libudt; `None`, and a word about it, where there is no libudt.
fn peer(folder: &Path) -> Option<PathBuf> {
    if !Path::new("/usr/include/udt/udt.h").exists() {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!ci, "CI=true, and ci/tools.sh installs libudt-dev");
        eprintln!("SKIPPED: interoperation with libudt needs the Debian package libudt-dev");
        return None;
    }
    let program = folder.join("peer");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/peer.cpp");
    let done = Command::new("g++")
        .args(["-O2", "-Wall", "-Werror", "-o"])
        .arg(&program)
        .arg(source)
        .args(["-ludt", "-lpthread"])
        .status();
    assert!(done.expect("g++ builds the peer").success());
    Some(program)
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A port that is free now.
fn free() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Ends with the test, whatever happens.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait(process: &mut Process, seconds: u64) -> bool {
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        if let Some(status) = process.0.try_wait().unwrap() {
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("libudt's end is not done after {seconds} s");
}

struct Case {
    bytes: usize,
    way: Way,
    seed: u64,
}

fn cases(most_bytes: u64) -> Vec<Case> {
    let count: u64 = std::env::var("LFN_INTEROP_TRANSFERS")
        .map_or(12, |count| count.parse().expect("LFN_INTEROP_TRANSFERS is a number of transfers"));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(count);
    // Half of them each way.
    (0..count.div_ceil(2))
        .map(|number| {
            let loss = [0, 10, 100][number as usize % 3];
            let delay = Duration::from_micros(random.next_u64() % 20_000);
            let late = if number % 2 == 0 { 100 } else { 0 };
            let bytes = 1 + random.next_u64() % most_bytes.min(1 << (8 + random.next_u64() % 16));
            Case { bytes: bytes as usize, way: Way { delay, loss, late }, seed: random.next_u64() }
        })
        .collect()
}

fn content(case: &Case) -> Vec<u8> {
    let mut bytes = vec![0; case.bytes];
    Xoshiro256PlusPlus::seed_from_u64(case.seed).fill_bytes(&mut bytes);
    bytes
}

fn describe(case: &Case) -> String {
    format!("{} bytes, {:?}, seed {}", case.bytes, case.way, case.seed)
}

#[test]
fn libudt_sends_and_we_receive() {
    let folder = folder("libudt-sends");
    let Some(peer) = peer(&folder) else { return };
    for case in cases(3_000_000) {
        let (remote, local) = (folder.join("remote"), folder.join("local"));
        std::fs::write(&remote, content(&case)).unwrap();
        let server = free();
        let port = server.port().to_string();
        let mut command = Command::new(&peer);
        let mut process = Process(command.args(["serve", &port]).stdout(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "listening\n");
        let relay = Relay::new(server, case.way, case.seed);
        let (name, address) = (remote.to_str().unwrap(), relay.address.to_string());
        let fetched = compat::fetch(&address, name, &local, true, &Plan::default(), || false, &mut |_| ());
        fetched.unwrap_or_else(|error| panic!("{error}: {}", describe(&case)));
        assert!(std::fs::read(&local).unwrap() == content(&case), "{}", describe(&case));
    }
}

#[test]
fn we_send_and_libudt_receives() {
    let folder = folder("we-send");
    let Some(peer) = peer(&folder) else { return };
    let listener = Listener::bind("127.0.0.1:0", Plan::default()).unwrap();
    let (server, stop) = (listener.local(), Arc::new(AtomicBool::new(false)));
    let (end, served) = (stop.clone(), folder.clone());
    let thread =
        std::thread::spawn(move || compat::serve(|| Ok(listener), &served, false, &end, &mut |_| ()));
    for case in cases(3_000_000) {
        let local = folder.join("local");
        std::fs::write(folder.join("remote"), content(&case)).unwrap();
        let relay = Relay::new(server, case.way, case.seed);
        let mut command = Command::new(&peer);
        let port = relay.address.port().to_string();
        command.args(["fetch", &port, "remote"]).arg(&local).stdout(Stdio::null());
        let mut process = Process(command.spawn().unwrap());
        assert!(wait(&mut process, 120), "{}", describe(&case));
        assert!(std::fs::read(&local).unwrap() == content(&case), "{}", describe(&case));
    }
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap().unwrap();
}
