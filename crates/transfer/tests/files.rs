//! Files arrive whole, transfers go on after a cut, and a hostile sender gets nothing out of a receiver.

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use common::{contents, folder, noise, send_to, Server};
use lfn_transfer::{send, Plan, Progress, Sending, Stream, TransferError};
use lfn_units::Rate;

/// Slow enough to be cut: 60 MB take 1.2 s, of which up to 25 MB wait in the window.
fn slow() -> Plan {
    Plan { max_rate: Some(Rate(400_000_000)), ..Plan::default() }
}

#[test]
fn a_tree_of_large_small_empty_and_sparse_files() {
    let folder = folder("tree");
    let from = folder.join("from/tree");
    fs::create_dir_all(from.join("a/b c/ä")).unwrap();
    for number in 0..1_500u64 {
        fs::write(from.join(format!("a/{number}")), noise((number * 7 % 4_000) as usize, number)).unwrap();
    }
    fs::write(from.join("a/b c/ä/large"), noise(20_000_000, 1)).unwrap();
    fs::write(from.join("empty"), []).unwrap();
    let sparse = fs::File::create(from.join("sparse")).unwrap();
    sparse.set_len(40_000_000).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"in the middle", 20_000_000).unwrap();

    let server = Server::new(folder.join("to"));
    let sent = send_to(&server, &from).unwrap();
    let received = server.done().unwrap();
    assert!(contents(&folder.join("to/tree")) == contents(&from));
    let blocks = |path: PathBuf| fs::metadata(path).unwrap().blocks();
    assert!(blocks(folder.join("to/tree/sparse")) <= blocks(from.join("sparse")) + 8);
    let total_bytes: u64 = contents(&from).iter().map(|(_, bytes)| bytes.len() as u64).sum();
    for statistics in [&sent, &received] {
        assert_eq!((statistics.files, statistics.total_bytes), (1_503, total_bytes));
        assert_eq!((statistics.delivered_bytes, statistics.resumed_bytes), (total_bytes, 0));
    }
    // Most of it is a hole, which costs no packets.
    assert!(sent.sent < 30_000, "{} packets", sent.sent);

    // Once more: all is there.
    let again = send_to(&server, &from).unwrap();
    assert_eq!((again.delivered_bytes, again.resumed_bytes), (0, total_bytes));
    assert_eq!(server.done().unwrap().resumed_bytes, total_bytes);
}

#[test]
fn a_transfer_goes_on_after_a_cut_of_the_sender() {
    let folder = folder("cut-sender");
    let file = folder.join("from/file");
    fs::write(&file, noise(60_000_000, 2)).unwrap();
    let server = Server::new(folder.join("to"));
    let cut = Arc::new(AtomicBool::new(false));
    let paths = [file.clone()];
    let sending = Sending { paths: &paths, to: &server.address, plan: slow() };
    let seen = cut.clone();
    let mut tell = |progress: &Progress| cut.store(progress.done_bytes > 40_000_000, Ordering::Relaxed);
    let result = send(&sending, move || seen.load(Ordering::Relaxed), &mut tell);
    assert!(matches!(result, Err(TransferError::Interrupted)), "{result:?}");
    assert!(matches!(server.done(), Err(TransferError::Connection { .. } | TransferError::Protocol(_))));
    assert!(!folder.join("to/file").exists());

    let sent = send_to(&server, &file).unwrap();
    assert!(sent.resumed_bytes > 1_000_000, "{} bytes were there", sent.resumed_bytes);
    assert_eq!(sent.resumed_bytes + sent.delivered_bytes, 60_000_000);
    assert_eq!(server.done().unwrap().resumed_bytes, sent.resumed_bytes);
    assert!(contents(&folder.join("to")) == contents(&folder.join("from")));
}

#[test]
fn a_transfer_goes_on_after_a_cut_of_the_receiver() {
    let folder = folder("cut-receiver");
    let file = folder.join("from/file");
    fs::write(&file, noise(60_000_000, 3)).unwrap();
    let server = Server::new(folder.join("to"));
    let stop = server.stop.clone();
    let paths = [file.clone()];
    let sending = Sending { paths: &paths, to: &server.address, plan: slow() };
    let mut tell = |progress: &Progress| stop.store(progress.done_bytes > 40_000_000, Ordering::Relaxed);
    let result = send(&sending, || false, &mut tell);
    assert!(matches!(result, Err(TransferError::Connection { .. })), "{result:?}");
    drop(server);
    // The partial file stays under another name.
    assert_eq!(contents(&folder.join("to")).len(), 1);
    assert!(!folder.join("to/file").exists());
    // Meanwhile a byte of it changes on the sender's side, near the end.
    let mut bytes = fs::read(&file).unwrap();
    bytes[59_999_999] ^= 1;
    fs::write(&file, bytes).unwrap();

    let server = Server::new(folder.join("to"));
    let sent = send_to(&server, &file).unwrap();
    assert!(sent.resumed_bytes > 1_000_000, "{} bytes were there", sent.resumed_bytes);
    assert!(contents(&folder.join("to")) == contents(&folder.join("from")));
}

#[test]
fn a_beginning_that_differs_is_sent_again() {
    let folder = folder("differs");
    let file = folder.join("from/file");
    fs::write(&file, noise(1_000_000, 4)).unwrap();
    // The same length, other bytes.
    fs::write(folder.join("to/file"), noise(1_000_000, 5)).unwrap();
    let server = Server::new(folder.join("to"));
    let why = send_to(&server, &file).unwrap_err().to_string();
    assert!(why.contains("a file of this name is there, with other contents; lfn recv --overwrite"), "{why}");
    drop(server);
    let server = Server::start(folder.join("to"), true);
    let sent = send_to(&server, &file).unwrap();
    assert_eq!((sent.resumed_bytes, sent.delivered_bytes), (0, 1_000_000));
    assert!(contents(&folder.join("to")) == contents(&folder.join("from")));
}

/// A sender that says what it likes: one file of this name and size, then `rest`.
fn hostile(server: &Server, name: &str, bytes: u64, rest: &[u8]) -> Stream {
    let mut stream = Stream::connect(&server.address, &Plan::default(), || false).unwrap();
    stream.write(b"lfnudt-2").unwrap();
    stream.write(&1u32.to_le_bytes()).unwrap();
    stream.write(&(name.len() as u16).to_le_bytes()).unwrap();
    stream.write(name.as_bytes()).unwrap();
    stream.write(&bytes.to_le_bytes()).unwrap();
    stream.write(rest).unwrap();
    stream.flush().unwrap();
    stream
}

/// The reason of the receiver's refusal, its last message.
fn refusal(mut stream: Stream) -> String {
    let mut said = Vec::new();
    loop {
        let got = stream.read().unwrap().to_vec();
        if got.is_empty() {
            break;
        }
        stream.consume(got.len()).unwrap();
        said.extend(got);
    }
    let at = said.iter().position(|&byte| byte == 3).expect("a refusal");
    String::from_utf8(said[at + 3..].to_vec()).unwrap()
}

#[test]
fn no_name_leads_out_of_the_directory() {
    let folder = folder("names");
    fs::create_dir_all(folder.join("outside")).unwrap();
    fs::write(folder.join("outside/file"), b"before").unwrap();
    std::os::unix::fs::symlink(folder.join("outside"), folder.join("to/link")).unwrap();
    std::os::unix::fs::symlink(folder.join("outside/file"), folder.join("to/file")).unwrap();
    let server = Server::new(folder.join("to"));
    let absolute = folder.join("outside/new").to_str().unwrap().to_owned();
    for name in [
        "../outside/new",
        &absolute,
        "a/../../outside/new",
        "link/new",
        "",
        ".",
        ".lfn-0.part",
        "a\nb",
        "\u{1b}]0;x\u{7}",
        "a\\b",
        "nul",
    ] {
        let why = refusal(hostile(&server, name, 3, &[]));
        assert!(why.contains(&format!("{name:?}")) || why.contains(name), "{name:?}: {why}");
        assert!(matches!(server.done(), Err(TransferError::Refused(_))));
    }
    // A link where the file is to stand is not followed, nor replaced.
    fs::write(folder.join("from/file"), b"after").unwrap();
    let why = send_to(&server, &folder.join("from/file")).unwrap_err().to_string();
    assert!(why.contains("and is no file"), "{why}");
    let outside = contents(&folder.join("outside"));
    assert_eq!(outside, [(PathBuf::from("file"), b"before".to_vec())]);
}

#[test]
fn a_file_is_not_longer_than_promised_and_not_other_than_its_hash() {
    let folder = folder("lies");
    let server = Server::new(folder.join("to"));
    // No claims; then the first file from its beginning.
    let begin = [&[0][..], &0u32.to_le_bytes(), &0u64.to_le_bytes()].concat();
    let data = |bytes: u32| [&[1][..], &bytes.to_le_bytes()].concat();
    let hole = [&[2][..], &u64::MAX.to_le_bytes()].concat();
    for (lie, word) in [
        ([&[7u8][..], &[0; 44]].concat(), "word 7 in place of the end of claims"),
        ([&begin[..], &data(4), b"four"].concat(), "more of file"),
        ([&begin[..], &hole].concat(), "more of file"),
        ([&begin[..], &[0]].concat(), "0 of the 3 bytes"),
        ([&begin[..], &[9]].concat(), "extent 9"),
        ([&[0][..], &7u32.to_le_bytes(), &[0; 8]].concat(), "file 0"),
        ([&[0][..], &0u32.to_le_bytes(), &9u64.to_le_bytes()].concat(), "from byte 9"),
        ([&[0][..], &u32::MAX.to_le_bytes()].concat(), "the end before file 0"),
    ] {
        let why = refusal(hostile(&server, "file", 3, &lie));
        assert!(why.contains(word), "{why}");
        assert!(server.done().is_err());
    }
    let other = [&begin[..], &data(3), b"abc", &[0], &[7; 32], &u32::MAX.to_le_bytes()].concat();
    let mut stream = hostile(&server, "file", 3, &other);
    let mut said = [0; 7];
    stream.read_exact(&mut said).unwrap();
    // Ready, nothing there, done, one differs.
    assert_eq!(said, [1, 0, 2, 1, 0, 0, 0]);
    stream.close().unwrap();
    assert!(matches!(server.done(), Err(TransferError::Differs(1))));
    assert!(contents(&folder.join("to")).is_empty());
}

#[test]
fn more_files_than_a_receiver_remembers_are_refused() {
    let folder = folder("many");
    let server = Server::new(folder.join("to"));
    let mut stream = Stream::connect(&server.address, &Plan::default(), || false).unwrap();
    stream.write(b"lfnudt-2").unwrap();
    stream.write(&(1u32 << 20).to_le_bytes()).unwrap();
    stream.flush().unwrap();
    assert!(refusal(stream).contains("at most 1048575"));
    assert!(matches!(server.done(), Err(TransferError::Refused(_))));
}

#[test]
fn nobody_there() {
    let folder = folder("nobody");
    fs::write(folder.join("from/file"), b"x").unwrap();
    let paths = [folder.join("from/file")];
    let sending = Sending { paths: &paths, to: "127.0.0.1:9", plan: Plan::default() };
    let error = send(&sending, || false, &mut |_| ()).unwrap_err().to_string();
    assert_eq!(error, "connection to 127.0.0.1:9: no answer to the handshake");
    let sending = Sending { paths: &paths, to: "127.0.0.1:0", plan: Plan::default() };
    let error = send(&sending, || false, &mut |_| ()).unwrap_err();
    assert!(matches!(error, TransferError::Usage(_)), "{error}");
}
