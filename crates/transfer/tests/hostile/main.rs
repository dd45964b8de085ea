//! Peers that say what they like, over real sockets: nothing panics, and every slot comes back.

#![allow(clippy::disallowed_methods, reason = "sockets live in real time")]

#[path = "../common/mod.rs"]
mod common;
mod raw;

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use common::{contents, folder, noise, send_to, Server};
use lfn_transfer::{send, Plan, Sending, TransferError};
use lfn_udt::Body;
use raw::Raw;

#[test]
fn message_drops_in_a_stream_end_nothing() {
    let folder = folder("drops");
    let server = Server::new(folder.join("to"));
    // More than there are slots.
    for number in 0..20u32 {
        let peer = Raw::connect(&server.address, "127.0.0.1").expect("a slot is free");
        peer.data(0, b"lfn");
        peer.drop_message(1, 2 + number * 100);
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
        for end in [1, 2, 64, 65, 8000] {
            peer.drop_message(0, end);
        }
        peer.data(0, b"?");
        peer.send(Body::Shutdown);
    });
    let paths = [folder.join("from/file")];
    let sending = Sending { paths: &paths, to: &to, plan: Plan::default() };
    let error = send(&sending, || false, &mut |_| ()).unwrap_err();
    assert!(matches!(error, TransferError::Connection { .. } | TransferError::Protocol(_)), "{error}");
    receiver.join().unwrap();
}

/// Keep-alives alone hold a slot only until somebody wants it.
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

/// A killed program's machine says that nobody listens: both ends notice within 15 s.
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
