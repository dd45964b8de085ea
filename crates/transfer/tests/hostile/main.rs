//! Peers that say what they like, over real sockets: nothing panics, and every slot comes back.

#![allow(clippy::disallowed_methods, reason = "sockets live in real time")]

#[path = "../common/mod.rs"]
mod common;
mod fuzz;
mod raw;

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use common::{contents, folder, noise, program, send_at, send_to, Server};
use lfn_transfer::{compat, send, Plan, Sending, Stream, TransferError};
use lfn_udt::{Body, Reason};
use lfn_units::Rate;
use raw::Raw;

#[test]
fn message_drops_in_a_stream_end_nothing() {
    let folder = folder("drops");
    let server = Server::new(folder.join("to"));
    // More than there are slots.
    for number in 0..20u32 {
        let peer = Raw::connect(&server.address, "127.0.0.1").expect("a slot is free");
        // In a page that is not there, and beyond the end of one that is.
        let there = number % 2 * 40;
        (0..there).for_each(|index| {
            peer.data(index, if index < 8 { &b"lfnudt-2"[index as usize..][..1] } else { b"" })
        });
        peer.drop_message(there, there + 2 + number * 100);
        peer.drop_message(0, 1);
        peer.data(3, &[1; 1456]);
        peer.send(Body::Shutdown);
        let error = server.done().unwrap_err();
        assert!(matches!(error, TransferError::Connection { .. } | TransferError::Protocol(_)), "{error}");
    }
    std::fs::write(folder.join("from/file"), noise(100_000, 1)).unwrap();
    send_to(&server, &folder.join("from/file")).unwrap();
    assert!(contents(&folder.join("to")) == contents(&folder.join("from")));
}

#[test]
fn a_hostile_receiver_does_not_panic_the_sender() {
    let folder = folder("hostile-receiver");
    std::fs::write(folder.join("from/file"), noise(100_000, 1)).unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = udp.local_addr().unwrap().to_string();
    let receiver = std::thread::spawn(move || {
        let peer = Raw::accept(udp);
        // Its list leaves: from here on it reads.
        peer.udp.recv(&mut [0; 2048]).unwrap();
        // "Ready", and empty packets, so that their page exists.
        (0..40).for_each(|index| peer.data(index, if index == 0 { &[1] } else { b"" }));
        // A packet that never arrived would have the largest length, and end beyond its page.
        for end in [41, 42, 64, 65, 8000] {
            peer.drop_message(40, end);
        }
        peer.data(3, b"?");
        peer.send(Body::Shutdown);
    });
    let paths = [folder.join("from/file")];
    let sending = Sending { paths: &paths, to: &to, plan: Plan::default() };
    let error = send(&sending, || false, &mut |_| ()).unwrap_err();
    assert!(matches!(error, TransferError::Connection { .. } | TransferError::Protocol(_)), "{error}");
    receiver.join().unwrap();
}

/// A request for a missing file creates nothing.
#[test]
fn a_read_request_makes_no_folder() {
    let folder = folder("read-request");
    std::fs::write(folder.join("from/file"), noise(1000, 1)).unwrap();
    let (server, address) = program("serve", &folder.join("from"), &folder.join("said"), &[]);
    for name in ["a/b/c", "a/", "file/x", "../a/b", "deep/".repeat(30).as_str()] {
        let target = folder.join("to/fetched");
        let fetched = compat::fetch(&address, name, &target, false, &Plan::default(), || false, &mut |_| ());
        assert!(matches!(fetched, Err(TransferError::Refused(_))), "{name}: {fetched:?}");
    }
    let target = folder.join("to/file");
    compat::fetch(&address, "file", &target, false, &Plan::default(), || false, &mut |_| ()).unwrap();
    drop(server);
    assert_eq!(contents(&folder.join("to")), contents(&folder.join("from")));
    assert_eq!(std::fs::read_dir(folder.join("from")).unwrap().count(), 1);
    // from, to, and what it said.
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3);
}

/// A connection with only keep-alives loses its slot when another client needs it.
#[test]
fn peers_with_keep_alives_alone_do_not_hold_every_slot() {
    let folder = folder("keep-alives");
    let server = Server::new(folder.join("to"));
    let idle: Vec<Raw> = (0..16)
        .map(|number| Raw::connect(&server.address, &format!("127.0.0.{}", 2 + number / 8)).unwrap())
        .collect();
    assert_eq!(Raw::connect(&server.address, "127.0.0.9").err(), Some("refused"));
    let end = Instant::now() + Duration::from_secs(4);
    while Instant::now() < end {
        idle.iter().for_each(|peer| peer.send(Body::KeepAlive));
        std::thread::sleep(Duration::from_millis(100));
    }
    std::fs::write(folder.join("from/file"), noise(100_000, 1)).unwrap();
    send_to(&server, &folder.join("from/file")).unwrap();
    assert!(matches!(server.done().err(), Some(TransferError::Taken) | None));
    assert!(contents(&folder.join("to")) == contents(&folder.join("from")));
}

/// One address holds eight slots at most, idle or not.
#[test]
fn one_address_does_not_hold_every_slot() {
    let folder = folder("one-address");
    let server = Server::new(folder.join("to"));
    let idle: Vec<_> = (0..9).map(|_| Raw::connect(&server.address, "127.0.0.2")).collect();
    assert_eq!(idle.iter().filter(|peer| peer.is_ok()).count(), 8);
    std::fs::write(folder.join("from/file"), noise(1000, 1)).unwrap();
    send_to(&server, &folder.join("from/file")).unwrap();
}

/// More honest senders of one host than it may have slots: each waits for one.
#[test]
fn twenty_senders_of_one_host_all_arrive() {
    let folder = folder("twenty");
    let server = Server::new(folder.join("to"));
    let paths: Vec<_> = (0..20).map(|number| folder.join(format!("from/{number}"))).collect();
    paths.iter().zip(0..).for_each(|(path, seed)| std::fs::write(path, noise(1_000_000, seed)).unwrap());
    std::thread::scope(|scope| {
        for path in &paths {
            let (path, to) = (std::slice::from_ref(path), &server.address);
            let plan = Plan { max_rate: Some(Rate(8_000_000)), ..Plan::default() };
            scope.spawn(move || send(&Sending { paths: path, to, plan }, || false, &mut |_| ()).unwrap());
        }
    });
    assert!(contents(&folder.join("to")) == contents(&folder.join("from")));
}

/// The host of a killed program answers "port unreachable": both ends detect it within 15 s.
#[test]
fn a_killed_peer_is_noticed() {
    let folder = folder("killed");
    let server = Server::new(folder.join("to"));
    let peer = Raw::connect(&server.address, "127.0.0.1").unwrap();
    peer.data(0, b"lfnu");
    let killed = Instant::now();
    drop(peer);
    let error = server.done().unwrap_err().to_string();
    assert!(error.contains("nobody listens at its address any more"), "{error}");
    assert!(killed.elapsed() < Duration::from_secs(15), "{:?}", killed.elapsed());

    std::fs::write(folder.join("from/file"), noise(100_000, 1)).unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = udp.local_addr().unwrap().to_string();
    let receiver = std::thread::spawn(move || drop(Raw::accept(udp)));
    let paths = [folder.join("from/file")];
    let sending = Sending { paths: &paths, to: &to, plan: Plan::default() };
    let begun = Instant::now();
    let error = send(&sending, || false, &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("nobody listens at its address any more"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    receiver.join().unwrap();
}

/// A list as `lfn send` announces it. The receiver may refuse it, and close, before it has all.
fn announce(address: &str, files: &[(String, u64)]) -> Stream {
    let mut stream = Stream::connect(address, &Plan::default(), || false).unwrap();
    let mut list = b"lfnudt-2".to_vec();
    list.extend((files.len() as u32).to_le_bytes());
    for (name, bytes) in files {
        list.extend((name.len() as u16).to_le_bytes());
        list.extend(name.as_bytes());
        list.extend(bytes.to_le_bytes());
    }
    match stream.write(&list).and_then(|()| stream.flush()) {
        Ok(()) | Err(TransferError::Connection { reason: Reason::Peer, .. }) => stream,
        Err(error) => panic!("{error}"),
    }
}

/// All messages of the receiver until it closes.
fn all_words(stream: &mut Stream) -> Vec<u8> {
    let mut said = Vec::new();
    while let Ok(got @ [_, ..]) = stream.read() {
        let bytes = got.len();
        said.extend(got);
        stream.consume(bytes).unwrap();
    }
    said
}

fn cpu_s() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 * 1e-9
}

/// 48 bytes ask for a hole of 15 TiB; then the peer goes away, or stays.
#[test]
fn a_hole_without_end_costs_nothing() {
    let folder = folder("hole");
    let server = Server::new(folder.join("to"));
    let bytes = 15u64 << 40;
    let begun = cpu_s();
    for stays in [false, true] {
        let mut stream = announce(&server.address, &[("sparse".into(), bytes)]);
        let mut rest = vec![0];
        rest.extend(0u32.to_le_bytes());
        rest.extend(0u64.to_le_bytes());
        rest.push(2);
        rest.extend(bytes.to_le_bytes());
        rest.push(0);
        rest.extend([7; 32]);
        stream.write(&rest).unwrap();
        if stays {
            stream.write(&u32::MAX.to_le_bytes()).unwrap();
            stream.flush().unwrap();
            all_words(&mut stream);
        }
        drop(stream);
        let error = server.done().unwrap_err();
        assert!(!matches!(error, TransferError::Defect(_)), "{error}");
    }
    std::thread::sleep(Duration::from_secs(1));
    assert!(cpu_s() - begun < 5.0, "{} s of CPU", cpu_s() - begun);
}

#[test]
fn a_list_makes_nothing_before_it_is_agreed() {
    let folder = folder("list");
    let server = Server::new(folder.join("to"));
    let deep = |number: u32| (0..20).map(|part| format!("{number}-{part}/")).collect::<String>() + "file";
    let many: Vec<_> = (0..20_000).map(|number| (deep(number), 0)).collect();
    let said = all_words(&mut announce(&server.address, &many));
    assert!(String::from_utf8_lossy(&said).contains("folders for 20000 files"), "{said:?}");
    assert!(server.done().is_err());
    // A list that is agreed makes nothing either until a file comes.
    let few: Vec<_> = (0..10).map(|number| (deep(number), 0)).collect();
    let mut stream = announce(&server.address, &few);
    stream.read_exact(&mut [0; 2]).unwrap();
    assert_eq!(std::fs::read_dir(folder.join("to")).unwrap().count(), 0);
    drop(stream);
    assert!(server.done().is_err());
    // The same name twice is no list: no file is hashed twice.
    std::fs::write(folder.join("to/file"), noise(100_000, 1)).unwrap();
    let twice: Vec<_> = (0..2000).map(|_| ("file".to_owned(), 100_000)).collect();
    let said = all_words(&mut announce(&server.address, &twice));
    assert!(String::from_utf8_lossy(&said).contains("in the list twice"), "{said:?}");
}

/// A client with a name and a size learns whether they are right, and nothing about the contents.
#[test]
fn no_hash_of_what_is_there_is_told() {
    let folder = folder("oracle");
    let secret = noise(100_000, 1);
    std::fs::write(folder.join("to/file"), &secret).unwrap();
    let server = Server::new(folder.join("to"));
    let mut stream = announce(&server.address, &[("file".into(), 100_000)]);
    stream.write(&[7]).unwrap();
    stream.write(&0u32.to_le_bytes()).unwrap();
    stream.write(&100_000u64.to_le_bytes()).unwrap();
    stream.write(&[0; 33]).unwrap();
    stream.flush().unwrap();
    let said = all_words(&mut stream);
    // Ready, whole, index, the end of what is there, refused.
    assert_eq!(said[..8], [1, 6, 0, 0, 0, 0, 0, 3]);
    assert!(String::from_utf8_lossy(&said[10..]).starts_with("file: a file of this name is there"));
}

/// Exactly one of two senders of one name wins, and its bytes stand there.
#[test]
fn two_senders_of_one_name() {
    for round in 0..5 {
        let folder = folder(&format!("two-senders-{round}"));
        let server = Server::new(folder.join("to"));
        let contents = [noise(5_000_000, 2 * round), noise(5_000_000, 2 * round + 1)];
        let barrier = std::sync::Barrier::new(2);
        let ends: Vec<_> = std::thread::scope(|scope| {
            let senders: Vec<_> = (0..2)
                .map(|number| {
                    let (folder, contents) = (folder.join(format!("from/{number}")), &contents);
                    let (to, barrier) = (&server.address, &barrier);
                    scope.spawn(move || {
                        std::fs::create_dir_all(&folder).unwrap();
                        std::fs::write(folder.join("file"), &contents[number]).unwrap();
                        barrier.wait();
                        send_at(to, &folder.join("file"))
                    })
                })
                .collect();
            senders.into_iter().map(|sender| sender.join().unwrap()).collect()
        });
        let winners: Vec<usize> = (0..2).filter(|&number| ends[number].is_ok()).collect();
        assert_eq!(winners.len(), 1, "{ends:?}");
        assert!(std::fs::read(folder.join("to/file")).unwrap() == contents[winners[0]]);
        let why = ends[1 - winners[0]].as_ref().unwrap_err().to_string();
        assert!(why.contains("of this name is"), "{why}");
    }
}

/// A name is the first sender's for as long as it sends: the second is refused after 15 s.
#[test]
fn a_second_sender_is_refused_while_the_first_goes_on() {
    let folder = folder("second-sender");
    let server = Server::new(folder.join("to"));
    let paths = [0, 1].map(|number| {
        let path = folder.join(format!("from/{number}/file"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, noise(10_000_000, number)).unwrap();
        path
    });
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let plan = Plan { max_rate: Some(Rate(4_000_000)), ..Plan::default() };
            send(&Sending { paths: &paths[..1], to: &server.address, plan }, || false, &mut |_| ())
        });
        std::thread::sleep(Duration::from_secs(1));
        let begun = Instant::now();
        let why = send_to(&server, &paths[1]).unwrap_err().to_string();
        assert!(why.contains("file: another transfer of this name is under way"), "{why}");
        assert!(begun.elapsed() > Duration::from_secs(14), "{:?}", begun.elapsed());
        assert!(!first.is_finished() && !folder.join("to/file").exists());
        first.join().unwrap().unwrap();
    });
    assert!(std::fs::read(folder.join("to/file")).unwrap() == noise(10_000_000, 0));
}

/// One thread at a time hashes existing files, for any number of peers.
#[test]
fn all_peers_together_are_hashed_for_on_one_core() {
    const PEERS: usize = 6;
    const BYTES: u64 = 256 << 20;
    let folder = folder("one-core");
    let content = noise(BYTES as usize, 1);
    std::fs::write(folder.join("to/0"), &content).unwrap();
    for name in 1..PEERS {
        std::fs::hard_link(folder.join("to/0"), folder.join(format!("to/{name}"))).unwrap();
    }
    let (process, address) = program("recv", &folder.join("to"), &folder.join("said"), &[]);
    let mut streams: Vec<Stream> = (0..PEERS)
        .map(|name| {
            let mut stream = announce(&address, &[(name.to_string(), BYTES)]);
            stream.read_exact(&mut [0; 7]).unwrap();
            stream
        })
        .collect();
    for stream in &mut streams {
        let claim = [&[7][..], &0u32.to_le_bytes(), &BYTES.to_le_bytes(), &[0; 32]].concat();
        stream.write(&claim).unwrap();
        stream.flush().unwrap();
    }
    // Cores that the process keeps busy: one that hashes, and a little for the connections. A busy machine gives it
    // less, never more.
    let mut busy = Vec::new();
    let begun = Instant::now();
    while busy.len() < 10 && begun.elapsed() < Duration::from_secs(60) {
        let (before, since) = (run_ns(process.0.id()), Instant::now());
        std::thread::sleep(Duration::from_millis(20));
        let ran = run_ns(process.0.id()).saturating_sub(before);
        let cores = ran as f64 / since.elapsed().as_nanos() as f64;
        // Else nothing is hashed yet, or no longer.
        busy.extend((cores > 0.2).then_some(cores));
    }
    drop(streams);
    busy.sort_unstable_by(f64::total_cmp);
    assert!(busy.len() == 10 && busy[5] < 1.3, "cores: {busy:?}");
}

/// CPU time of the living threads of a process, in ns.
fn run_ns(process: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let said =
        threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok());
    said.map(|said| said.split(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// Lists of all peers together: so much is held at most, whatever is announced, and it comes back.
#[test]
fn the_lists_of_all_peers_have_a_budget() {
    let folder = folder("budget");
    let (process, address) = program("recv", &folder.join("to"), &folder.join("said"), &[]);
    let held = || fuzz::counters(&process.0).0;
    let before = held();
    let mut streams = Vec::new();
    let mut refused = 0;
    for peer in 0..4 {
        // As many folders as a list may have, or none.
        let name = |number: u32| {
            if peer % 2 == 0 {
                format!("{peer}{number}/a/b")
            } else {
                format!("{peer}/{number:060}")
            }
        };
        let files: Vec<_> = (0..500_000).map(|number| (name(number), 0)).collect();
        let mut stream = announce(&address, &files);
        let mut word = [0];
        stream.read_exact(&mut word).unwrap();
        if word == [3] {
            let said = all_words(&mut stream);
            assert!(String::from_utf8_lossy(&said).contains("too long together"), "{said:?}");
            refused += 1;
        }
        streams.push(stream);
    }
    let most = held() - before;
    assert!(refused > 0 && refused < 4, "{refused} lists of 4 refused");
    // Each connection has buffers of some MB beside its list.
    assert!(most < (256 + 4 * 8) << 20, "{} MB for lists", most >> 20);
    drop(streams);
    // A list comes back with its connection: as long a list fits again.
    let files: Vec<_> = (0..500_000).map(|number| (format!("5/{number:060}"), 0)).collect();
    let begun = Instant::now();
    loop {
        let mut stream = announce(&address, &files);
        let mut word = [0];
        stream.read_exact(&mut word).unwrap();
        if word == [1] {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "the budget does not come back");
    }
}

/// Two receivers of one folder share nothing but the disk; each lets files be replaced.
#[test]
fn two_receivers_of_one_folder() {
    let folder = folder("two-receivers");
    let servers = [Server::start(folder.join("to"), true), Server::start(folder.join("to"), true)];
    let contents = [noise(3_000_000, 1), noise(3_000_000, 2)];
    for round in 0..4 {
        let ends: Vec<_> = std::thread::scope(|scope| {
            let senders: Vec<_> = (0..2)
                .map(|number| {
                    let path = folder.join(format!("from/{number}/file"));
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(&path, &contents[number]).unwrap();
                    let to = &servers[number].address;
                    scope.spawn(move || send_at(to, &path))
                })
                .collect();
            senders.into_iter().map(|sender| sender.join().unwrap()).collect()
        });
        let there = std::fs::read(folder.join("to/file")).unwrap();
        let won = (0..2).filter(|&number| ends[number].is_ok() && there == contents[number]).count();
        assert_eq!(won, 1, "round {round}: {ends:?}");
    }
}

/// A full disk and one that cannot be written: a tmpfs in a mount namespace of its own.
#[test]
fn a_full_disk_and_a_read_only_one_end_clearly() {
    let folder = folder("full");
    std::fs::write(folder.join("from/file"), noise(3_000_000, 1)).unwrap();
    let script = r#"
        mount -t tmpfs -o size=1m none "$1/to" || exit 77
        "$2" recv "$1/to" --listen 127.0.0.1:0 --once --quiet 2> "$1/full" & 
        for i in $(seq 100); do grep -q listening "$1/full" && break; sleep 0.1; done
        "$2" send "$1/from/file" --to "$(sed -n 's/listening at //p' "$1/full")" --quiet; echo "send $?"
        wait $!; echo "recv $?"
        mount -o remount,ro "$1/to"
        "$2" recv "$1/to" --listen 127.0.0.1:0 --once; echo "read-only $?"
    "#;
    let done = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(&folder)
        .arg(env!("CARGO_BIN_EXE_lfn-udt"))
        .output();
    let Ok(done) = done else { return eprintln!("SKIPPED: a full disk needs unshare") };
    if !done.status.success() {
        return eprintln!("SKIPPED: a full disk needs mounts: {}", String::from_utf8_lossy(&done.stderr));
    }
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert_eq!(out, "send 1\nrecv 1\nread-only 3\n", "{err}");
    assert!(err.contains("the peer refuses: file: No space left on device"), "{err}");
    assert!(err.contains("Read-only file system"), "{err}");
    assert!(!err.contains("window:") || err.contains("listening"), "{err}");
    assert!(std::fs::read_to_string(folder.join("full")).unwrap().contains("No space left on device"));
}
