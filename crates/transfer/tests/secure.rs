//! Connections with a key over a path on which an attacker changes, truncates, repeats and forges packets.

#![allow(clippy::disallowed_methods, reason = "sockets live in real time")]

mod common;

use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use common::{contents, folder, noise, Server};
use lfn_transfer::{send, Key, Plan, Sending, Statistics, TransferError};

fn key(folder: &Path, letter: &str) -> Plan {
    let path = folder.join(format!("key-{letter}"));
    std::fs::write(&path, letter.repeat(43) + "=\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    Plan { key: Some(Key::read(&path).unwrap()), ..Plan::default() }
}

fn send_under(plan: Plan, to: &str, path: PathBuf) -> Result<Statistics, TransferError> {
    let paths = [path];
    send(&Sending { paths: &paths, to, plan }, || false, &mut |_| ())
}

/// Treatment of a datagram on the path: the datagrams that replace it.
type Fate = fn(u64, &[u8]) -> Vec<Vec<u8>>;

/// Attacker on the path, who stores every datagram.
struct Middle {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
    changed: Arc<AtomicU64>,
    /// Nothing passes.
    outage: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Middle {
    fn new(server: &str, fate: Fate) -> Middle {
        let front = UdpSocket::bind("127.0.0.1:0").unwrap();
        let back = UdpSocket::bind("127.0.0.1:0").unwrap();
        back.connect(server).unwrap();
        front.set_nonblocking(true).unwrap();
        back.set_nonblocking(true).unwrap();
        let (seen, changed, stop) = (Arc::default(), Arc::default(), Arc::default());
        let outage = Arc::new(AtomicBool::new(false));
        let mut middle =
            Middle { address: front.local_addr().unwrap(), seen, changed, outage, stop, thread: None };
        let (seen, changed, stop) = (middle.seen.clone(), middle.changed.clone(), middle.stop.clone());
        let outage = middle.outage.clone();
        middle.thread = Some(std::thread::spawn(move || {
            let (mut client, mut count, mut buffer) = (None, 0, [0; 65_536]);
            while !stop.load(Relaxed) {
                let mut idle = true;
                while let Ok((bytes, from)) = front.recv_from(&mut buffer) {
                    (client, idle, count) = (Some(from), false, count + 1);
                    seen.lock().unwrap().push(buffer[..bytes].to_vec());
                    if outage.load(Relaxed) {
                        continue;
                    }
                    let leave = fate(count, &buffer[..bytes]);
                    changed.fetch_add(u64::from(leave != [&buffer[..bytes]]), Relaxed);
                    leave.iter().for_each(|datagram| drop(back.send(datagram)));
                }
                while let Ok(bytes) = back.recv(&mut buffer) {
                    (idle, count) = (false, count + 1);
                    if outage.load(Relaxed) {
                        continue;
                    }
                    for datagram in fate(count, &buffer[..bytes]) {
                        client.map(|client| front.send_to(&datagram, client));
                    }
                }
                if idle {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
        }));
        middle
    }
}

impl Drop for Middle {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn through(name: &str, fate: Fate) -> (u64, Vec<Vec<u8>>) {
    let folder = folder(name);
    let content = noise(2_000_000, 7);
    std::fs::write(folder.join("from/file"), &content).unwrap();
    let server = Server::under(key(&folder, "A"), folder.join("to"), false);
    let middle = Middle::new(&server.address, fate);
    send_under(key(&folder, "A"), &middle.address.to_string(), folder.join("from/file")).unwrap();
    server.done().unwrap();
    assert!(contents(&folder.join("to")) == contents(&folder.join("from")));
    let seen = std::mem::take(&mut *middle.seen.lock().unwrap());
    (middle.changed.load(Relaxed), seen)
}

#[test]
fn nothing_of_a_file_is_read_on_the_path() {
    let (_, seen) = through("secure-plain", |_, datagram| vec![datagram.to_vec()]);
    let content = noise(2_000_000, 7);
    let of_the_file = |datagram: &Vec<u8>| {
        datagram
            .windows(16)
            .step_by(16)
            .any(|part| content[..200_000].windows(16).any(|window| window == part))
    };
    assert!(seen.len() > 1000);
    assert!(!seen.iter().skip(20).step_by(200).any(of_the_file));
    assert!(!seen.iter().any(|datagram| datagram.windows(4).any(|name| name == b"file")));
}

#[test]
fn changed_packets_are_not_taken() {
    let (changed, _) = through("secure-changed", |count, datagram| {
        let mut datagram = datagram.to_vec();
        if count > 6 && count % 40 == 0 {
            let at = count as usize * 7 % datagram.len();
            datagram[at] ^= 1 << (count % 8);
        }
        vec![datagram]
    });
    assert!(changed > 5, "{changed}");
}

#[test]
fn cut_and_longer_packets_are_not_taken() {
    let (changed, _) = through("secure-cut", |count, datagram| match count {
        7.. if count % 40 == 0 => vec![datagram[..count as usize * 7 % datagram.len()].to_vec()],
        7.. if count % 40 == 1 => vec![[datagram, &[0; 9]].concat()],
        _ => vec![datagram.to_vec()],
    });
    assert!(changed > 5, "{changed}");
}

#[test]
fn packets_that_come_again_are_not_taken() {
    let (changed, _) = through("secure-again", |_, datagram| vec![datagram.to_vec(); 2]);
    assert!(changed > 1000, "{changed}");
}

/// A whole session, sent again to its receiver, writes nothing and says nothing.
#[test]
fn a_recorded_session_is_worth_nothing() {
    let folder = folder("secure-replay");
    std::fs::write(folder.join("from/file"), noise(100_000, 7)).unwrap();
    let server = Server::under(key(&folder, "A"), folder.join("to"), true);
    let middle = Middle::new(&server.address, |_, datagram| vec![datagram.to_vec()]);
    send_under(key(&folder, "A"), &middle.address.to_string(), folder.join("from/file")).unwrap();
    server.done().unwrap();
    let seen = std::mem::take(&mut *middle.seen.lock().unwrap());
    std::fs::remove_file(folder.join("to/file")).unwrap();
    // By its own path, where even the cookies are good, and from elsewhere.
    for to in [middle.address.to_string(), server.address.clone()] {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        for datagram in &seen {
            let _ = udp.send_to(datagram, &to);
        }
        std::thread::sleep(Duration::from_millis(700));
    }
    assert!(contents(&folder.join("to")).is_empty());
    send_under(key(&folder, "A"), &server.address, folder.join("from/file")).unwrap();
}

#[test]
fn another_key_or_none_is_told_clearly() {
    let folder = folder("secure-keys");
    std::fs::write(folder.join("from/file"), noise(1000, 7)).unwrap();
    let file = || folder.join("from/file");
    let keyed = Server::under(key(&folder, "A"), folder.join("to"), false);
    let plain = Server::new(folder.join("to"));
    for (plan, to, why) in [
        (key(&folder, "B"), &keyed.address, "it has another key"),
        (key(&folder, "B"), &plain.address, "it has no key"),
        (Plan::default(), &keyed.address, "it wants a key"),
    ] {
        let error = send_under(plan, to, file()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    assert!(keyed.done().unwrap_err().to_string().contains("it has another key, or none"));
    assert!(contents(&folder.join("to")).is_empty());
}

/// Datagrams of a handshake's size and header, recorded requests that are changed or sent from elsewhere, and noise: a
/// receiver answers none with more bytes than came, and an honest sender gets through.
#[test]
fn forged_handshakes_hold_no_slot() {
    let folder = folder("secure-forged");
    std::fs::write(folder.join("from/file"), noise(100_000, 7)).unwrap();
    let server = Server::under(key(&folder, "A"), folder.join("to"), true);
    let middle = Middle::new(&server.address, |_, datagram| vec![datagram.to_vec()]);
    send_under(key(&folder, "A"), &middle.address.to_string(), folder.join("from/file")).unwrap();
    let seen = std::mem::take(&mut *middle.seen.lock().unwrap());
    let requests: Vec<_> = seen.iter().filter(|datagram| datagram[0] == 0x80).collect();
    assert!(requests.len() >= 2 && requests.iter().all(|request| request.len() == 112));
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.connect(&server.address).unwrap();
    udp.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let (mut sent_bytes, mut answered_bytes) = (0, 0);
    for number in 0..5000 {
        let bytes = noise(200, number);
        let mut datagram = requests[number as usize % requests.len()].clone();
        match number % 4 {
            0 => datagram[16..].copy_from_slice(&bytes[..96]),
            1 => datagram[16 + number as usize % 96] ^= 1 << (number / 96 % 8),
            2 => datagram = bytes[..number as usize / 4 % 200].to_vec(),
            // Its cookie is of another port; a request without a cookie gets one.
            _ => {}
        }
        sent_bytes += udp.send(&datagram).unwrap_or(0);
        let mut answer = [0; 2048];
        answered_bytes += udp.recv(&mut answer).unwrap_or(0);
    }
    assert!(answered_bytes <= sent_bytes, "{answered_bytes} bytes for {sent_bytes}");
    std::fs::remove_file(folder.join("to/file")).unwrap();
    send_under(key(&folder, "A"), &server.address, folder.join("from/file")).unwrap();
    assert!(contents(&folder.join("to")) == contents(&folder.join("from")));
}

#[test]
fn keys_that_others_may_read_are_refused() {
    let folder = folder("secure-files");
    let path = folder.join("key");
    for (text, mode, why) in [
        ("A".repeat(43) + "=", 0o640, "chmod 600"),
        ("A".repeat(43) + "=", 0o604, "chmod 600"),
        ("secret".to_owned(), 0o600, "holds no key"),
        (String::new(), 0o600, "holds no key"),
        ("A".repeat(2000), 0o600, "holds no key"),
    ] {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let error = Key::read(&path).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    assert!(Key::read(&folder).unwrap_err().to_string().contains("it is not a file; allowed"));
    assert!(Key::read(&folder.join("none")).is_err());
    // A FIFO without a writer is not waited for.
    let fifo = folder.join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert!(Key::read(&fifo).unwrap_err().to_string().contains("it is not a file; allowed"));
}

/// Nothing passes for 40 s, and the transfer goes on.
#[test]
fn an_outage_of_40_s_survives() {
    let folder = folder("outage");
    std::fs::write(folder.join("from/file"), noise(20_000_000, 7)).unwrap();
    let server = Server::new(folder.join("to"));
    let middle = Middle::new(&server.address, |_, datagram| vec![datagram.to_vec()]);
    let outage = middle.outage.clone();
    let path = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        outage.store(true, Relaxed);
        std::thread::sleep(Duration::from_secs(40));
        outage.store(false, Relaxed);
    });
    let plan = Plan { max_rate: Some(lfn_units::Rate(80_000_000)), ..Plan::default() };
    let sent = send_under(plan, &middle.address.to_string(), folder.join("from/file")).unwrap();
    assert!(sent.completion_s > 40.0, "{sent:?}");
    path.join().unwrap();
    assert!(contents(&folder.join("to")) == contents(&folder.join("from")));
}

/// The path fails once the file has its name. The receiver has all of it, and says so.
#[test]
fn a_receiver_that_has_all_has_succeeded() {
    let folder = folder("last-words");
    last_words(&folder, Plan::default(), |_, datagram| vec![datagram.to_vec()]);
}

/// Packets that were changed earlier are no reason to take the silence for a wrong key.
#[test]
fn a_receiver_with_a_key_that_has_all_has_succeeded() {
    let folder = folder("last-words-secure");
    last_words(&folder, key(&folder, "A"), |count, datagram| match count {
        20 => vec![datagram[..datagram.len() / 2].to_vec()],
        _ => vec![datagram.to_vec()],
    });
}

fn last_words(folder: &Path, plan: Plan, fate: Fate) {
    std::fs::write(folder.join("from/file"), noise(1_000_000, 7)).unwrap();
    let server = Server::under(plan.clone(), folder.join("to"), false);
    let middle = Middle::new(&server.address, fate);
    let (outage, name) = (middle.outage.clone(), folder.join("to/file"));
    let sent = Arc::new(AtomicBool::new(false));
    let over = sent.clone();
    let path = std::thread::spawn(move || {
        while !name.exists() && !over.load(Relaxed) {
            std::hint::spin_loop();
        }
        outage.store(true, Relaxed);
    });
    let plan = Plan { max_rate: Some(lfn_units::Rate(80_000_000)), ..plan };
    let _ = send_under(plan, &middle.address.to_string(), folder.join("from/file"));
    sent.store(true, Relaxed);
    path.join().unwrap();
    assert_eq!(server.done().unwrap().total_bytes, 1_000_000);
    assert!(contents(&folder.join("to")) == contents(&folder.join("from")));
}
