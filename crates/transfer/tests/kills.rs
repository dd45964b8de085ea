//! Senders and receivers are killed at any time; the same commands go on, and the bytes are the sender's.
//!
//! `LFN_KILLS=200 cargo test -p lfn-transfer --test kills` is the long form; `LFN_SEED` draws other moments.

#![allow(clippy::disallowed_methods, reason = "programs live in real time")]

mod common;

use std::process::{Command, Stdio};
use std::time::Duration;

use common::{folder, noise, receiver, Process};
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A file gets its name once its bytes are on the disk and were read from there, and the sender is told once the name is on
/// the disk too: a failure of the machine leaves a whole file or none.
#[test]
fn a_file_is_synced_and_read_before_it_has_its_name() {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!ci, "CI=true, and ci/tools.sh installs strace");
        return eprintln!("SKIPPED: the order of system calls needs the Debian package strace");
    }
    let folder = folder("synced");
    std::fs::write(folder.join("from/file"), noise(300_000, 1)).unwrap();
    let (calls, said) = (folder.join("calls"), folder.join("said"));
    let traced = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=fsync,renameat2,pwrite64,pread64", "-o"])
        .args([&calls, std::path::Path::new(env!("CARGO_BIN_EXE_lfn-udt"))])
        .args(["recv", "--listen", "127.0.0.1:0", "--once", "--quiet"])
        .arg(folder.join("to"))
        .stderr(std::fs::File::create(&said).unwrap())
        .spawn();
    let mut traced = Process(traced.unwrap());
    let address = loop {
        let text = std::fs::read_to_string(&said).unwrap();
        match text.split_once("listening at ").and_then(|(_, rest)| rest.split_once('\n')) {
            Some((address, _)) => break address.to_owned(),
            None if traced.0.try_wait().unwrap().is_some() => {
                return eprintln!("SKIPPED: strace is not allowed here: {text}");
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let sent = Command::new(env!("CARGO_BIN_EXE_lfn-udt"))
        .args(["send", "--quiet", "--to", &address])
        .arg(folder.join("from/file"))
        .status();
    assert!(sent.unwrap().success() && traced.0.wait().unwrap().success());
    let text = std::fs::read_to_string(calls).unwrap();
    let place = |words: [&str; 2], last: bool| {
        let mut lines = text.lines().enumerate();
        let is_asked = |line: &(usize, &str)| words.iter().all(|word| line.1.contains(word));
        let found = if last { lines.filter(is_asked).last() } else { lines.find(is_asked) };
        found.unwrap_or_else(|| panic!("no {words:?} in {text}")).0
    };
    let order = [
        place(["pwrite64(", ".part>"], true),
        place(["fsync(", ".part>"], false),
        place(["pread64(", ".part>"], false),
        place(["renameat2(", "\"file\""], false),
        place(["fsync(", "/to>"], true),
    ];
    assert!(order.is_sorted(), "{order:?}: {text}");
}

/// Enough for several cuts at 200 Mbit/s.
const BYTES: usize = 12_000_000;

fn sender(from: &std::path::Path, to: &str) -> Process {
    let command = Command::new(env!("CARGO_BIN_EXE_lfn-udt"))
        .args(["send", "--quiet", "--max-rate", "200Mbit/s", "--to", to])
        .arg(from)
        .stderr(Stdio::null())
        .spawn();
    Process(command.unwrap())
}

#[test]
fn transfers_go_on_after_kills() {
    let number = |name: &str, default: u64| {
        std::env::var(name)
            .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: {text:?}")))
    };
    let (kills, seed) = (number("LFN_KILLS", 8), number("LFN_SEED", 1));
    println!("LFN_KILLS={kills} LFN_SEED={seed}");
    let folder = folder("kills");
    let (from, to, said) = (folder.join("from/file"), folder.join("to"), folder.join("said"));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut done, mut finished) = (0, 0);
    while done < kills {
        // Some of it is a hole.
        let mut content = noise(BYTES, finished);
        content[5_000_000..6_000_000].fill(0);
        std::fs::write(&from, &content).unwrap();
        let _ = std::fs::remove_file(to.join("file"));
        let (mut server, mut address) = receiver(&to, &said, &[]);
        for round in 0.. {
            let mut client = sender(&from, &address);
            std::thread::sleep(Duration::from_millis(30 + random.next_u64() % 400));
            if done < kills && round < 12 && client.0.try_wait().unwrap().is_none() {
                done += 1;
                let whole = to.join("file");
                if random.next_u64() % 2 == 0 {
                    drop(client);
                    // The receiver that stays holds the name until it notices.
                    if random.next_u64() % 8 == 0 {
                        continue;
                    }
                }
                drop(server);
                assert!(!whole.exists() || std::fs::read(&whole).unwrap() == content, "kill {done}");
                (server, address) = receiver(&to, &said, &[]);
                continue;
            }
            let status = client.0.wait().unwrap();
            assert!(
                status.success(),
                "after {done} kills: {status}: {}",
                std::fs::read_to_string(&said).unwrap()
            );
            break;
        }
        drop(server);
        assert!(std::fs::read(to.join("file")).unwrap() == content, "after {done} kills");
        let there: Vec<_> = std::fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(there, ["file"], "nothing else is left");
        finished += 1;
    }
    eprintln!("{done} kills, {finished} transfers");
}
