//! Senders and receivers are killed at any time; the same commands go on, and the bytes are the sender's.
//!
//! `LFN_KILLS=200 cargo test -p lfn-transfer --test kills` is the long form.

#![allow(clippy::disallowed_methods, reason = "programs live in real time")]

mod common;

use std::process::{Command, Stdio};
use std::time::Duration;

use common::{folder, noise, receiver, Process};
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

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
    let kills: u64 =
        std::env::var("LFN_KILLS").map_or(8, |count| count.parse().expect("LFN_KILLS is a number"));
    let folder = folder("kills");
    let (from, to, said) = (folder.join("from/file"), folder.join("to"), folder.join("said"));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(kills);
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
