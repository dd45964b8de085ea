//! Files, names and folders that are not as usual: a transfer is right or ends with a clear error.

mod common;

use std::fs::{self, File};
use std::os::unix::fs::{symlink, FileExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{contents, folder, noise, program, send_to, Process, Server};
use lfn_transfer::{compat, send, Plan, Progress, Sending, Statistics, TransferError};
use lfn_units::Rate;

/// At 400 Mbit/s 60 MB take 1.2 s, of which up to 25 MB wait in the window.
const BYTES: usize = 60_000_000;

/// Sends a file slowly, and does something once a part of it is under way.
fn send_and(to: &str, path: &Path, then: impl Fn()) -> Result<Statistics, TransferError> {
    let plan = Plan { max_rate: Some(Rate(400_000_000)), ..Plan::default() };
    let paths = [path.to_owned()];
    let mut is_done = false;
    let mut tell = |progress: &Progress| {
        if progress.done_bytes > 0 && !std::mem::replace(&mut is_done, true) {
            then();
        }
    };
    let sent = send(&Sending { paths: &paths, to, plan }, || false, &mut tell);
    assert!(is_done, "the transfer was too fast");
    sent
}

fn error_of(sent: Result<Statistics, TransferError>) -> String {
    sent.unwrap_err().to_string()
}

#[test]
fn a_file_that_says_it_is_empty_and_has_contents_is_refused() {
    let folder = folder("unusual-proc");
    let server = Server::new(folder.join("to"));
    let error = error_of(send_to(&server, Path::new("/proc/version")));
    assert!(error.contains("/proc/version: its size is 0, but it has contents"), "{error}");
    fs::write(folder.join("from/empty"), b"").unwrap();
    send_to(&server, &folder.join("from/empty")).unwrap();
    assert_eq!(contents(&folder.join("to")), [(PathBuf::from("empty"), Vec::new())]);
}

/// A file that changes meanwhile would arrive as a mixture.
#[test]
fn a_file_that_changes_does_not_appear() {
    let folder = folder("unusual-changing");
    let (from, times) = (folder.join("from/log"), folder.join("times"));
    let change = |bytes: &[u8], at: u64| {
        let file = File::options().write(true).open(&from).unwrap();
        file.write_all_at(bytes, at).unwrap();
    };
    let rewrite = || change(&noise(BYTES, 4), 0);
    // The same size, and the time of the last change set back, as `touch -r` does.
    let quietly = || {
        let modified = fs::metadata(&times).unwrap().modified().unwrap();
        change(b"another byte", BYTES as u64 / 2);
        File::options().write(true).open(&from).unwrap().set_modified(modified).unwrap();
    };
    let replace = || {
        fs::write(folder.join("new"), noise(BYTES, 5)).unwrap();
        fs::rename(folder.join("new"), &from).unwrap();
    };
    let cases: [(&str, &dyn Fn()); 4] = [
        ("it grows", &|| change(&noise(1_000_000, 4), BYTES as u64)),
        ("it is rewritten", &rewrite),
        ("it is changed quietly", &quietly),
        ("another takes its name", &replace),
    ];
    for (what, then) in cases {
        let server = Server::new(folder.join("to"));
        fs::write(&from, noise(BYTES, 3)).unwrap();
        File::create(&times).unwrap().set_modified(fs::metadata(&from).unwrap().modified().unwrap()).unwrap();
        let sent = send_and(&server.address, &from, then);
        assert!(error_of(sent).contains("log: it was changed meanwhile"), "{what}");
        assert!(!folder.join("to/log").exists(), "{what}");
        // A new transfer sends the file as it is now.
        send_to(&server, &from).unwrap();
        assert!(fs::read(folder.join("to/log")).unwrap() == fs::read(&from).unwrap(), "{what}");
        drop(server);
        fs::remove_dir_all(folder.join("to")).unwrap();
        fs::create_dir(folder.join("to")).unwrap();
    }
}

/// The protocol of libudt has no hash: the end is withheld from a client.
#[test]
fn a_served_file_that_changes_does_not_arrive() {
    let folder = folder("unusual-served");
    let from = folder.join("from/file");
    fs::write(&from, noise(20_000_000, 3)).unwrap();
    let options = ["--max-rate", "200Mbit/s"];
    let (_server, address) = program("serve", &folder.join("from"), &folder.join("said"), &options);
    let local = folder.join("to/file");
    let mut is_changed = false;
    let mut change = |progress: &Progress| {
        if progress.done_bytes > 0 && !std::mem::replace(&mut is_changed, true) {
            let file = File::options().write(true).open(&from).unwrap();
            file.write_all_at(&noise(20_000_000, 4), 0).unwrap();
        }
    };
    let fetched = compat::fetch(&address, "file", &local, false, &Plan::default(), || false, &mut change);
    assert!(fetched.is_err() && is_changed, "{fetched:?}");
    assert!(!local.exists());
    let said = || fs::read_to_string(folder.join("said")).unwrap();
    for _ in 0..1000 {
        if said().lines().count() > 1 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(said().contains("it was changed meanwhile"), "{}", said());
    compat::fetch(&address, "file", &local, false, &Plan::default(), || false, &mut |_| ()).unwrap();
    assert!(fs::read(&local).unwrap() == noise(20_000_000, 4));
}

#[test]
fn a_fetch_ends_when_it_is_interrupted() {
    let folder = folder("unusual-interrupted");
    fs::write(folder.join("from/file"), noise(20_000_000, 3)).unwrap();
    let options = ["--max-rate", "4Mbit/s"];
    let (_server, address) = program("serve", &folder.join("from"), &folder.join("said"), &options);
    let fetch = Command::new(env!("CARGO_BIN_EXE_lfn-udt"))
        .args(["fetch", &address, "file"])
        .arg(folder.join("to/file"))
        .stderr(File::create(folder.join("error")).unwrap())
        .spawn();
    let mut fetch = Process(fetch.unwrap());
    while contents(&folder.join("to")).is_empty() {
        assert!(fetch.0.try_wait().unwrap().is_none(), "it goes on");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let id = fetch.0.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(fetch.0.wait().unwrap().code(), Some(1));
    assert!(fs::read_to_string(folder.join("error")).unwrap().ends_with("lfn-udt: interrupted\n"));
}

#[test]
fn a_file_that_shrinks_does_not_appear() {
    let folder = folder("unusual-shrinking");
    let from = folder.join("from/log");
    fs::write(&from, noise(BYTES, 3)).unwrap();
    let server = Server::new(folder.join("to"));
    let shrink = || File::options().write(true).open(&from).unwrap().set_len(1_000_000).unwrap();
    let error = error_of(send_and(&server.address, &from, shrink));
    assert!(error.contains("log: it became shorter meanwhile"), "{error}");
    assert!(!folder.join("to/log").exists());
    // A new transfer sends the file as it is now.
    send_to(&server, &from).unwrap();
    assert_eq!(fs::read(folder.join("to/log")).unwrap(), fs::read(&from).unwrap());
}

/// The hash is of what stands on the disk, not of what arrived.
#[test]
fn a_byte_that_changes_on_the_disk_meanwhile_is_found() {
    let folder = folder("unusual-disk");
    let from = folder.join("from/file");
    fs::write(&from, noise(BYTES, 8)).unwrap();
    let server = Server::new(folder.join("to"));
    let change = || {
        let part = contents(&folder.join("to")).pop().expect("a part").0;
        let file = File::options().read(true).write(true).open(folder.join("to").join(part)).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 1000).unwrap();
        file.write_all_at(&[byte[0] ^ 1], 1000).unwrap();
    };
    let error = error_of(send_and(&server.address, &from, change));
    assert!(error.contains("1 of the files differ from what was sent"), "{error}");
    assert!(matches!(server.done(), Err(TransferError::Differs(1))));
    assert!(contents(&folder.join("to")).is_empty(), "neither the file nor its part");
    send_to(&server, &from).unwrap();
    assert!(contents(&folder.join("to")) == contents(&folder.join("from")));
}

#[test]
fn a_folder_that_is_removed_meanwhile_is_an_error_on_both_ends() {
    let folder = folder("unusual-removed");
    let from = folder.join("from/file");
    fs::write(&from, noise(BYTES, 5)).unwrap();
    let server = Server::new(folder.join("to"));
    let error = error_of(send_and(&server.address, &from, || fs::remove_dir_all(folder.join("to")).unwrap()));
    assert!(error.contains("file"), "{error}");
    assert!(server.done().is_err());
    assert!(!folder.join("to").exists(), "nothing is made in its place");
}

#[test]
fn a_receiver_of_a_link_writes_where_it_leads_and_nowhere_else() {
    let folder = folder("unusual-link");
    fs::write(folder.join("from/file"), b"x").unwrap();
    fs::create_dir(folder.join("elsewhere")).unwrap();
    symlink(folder.join("elsewhere"), folder.join("link")).unwrap();
    // The user named the link; links that a peer could use are below it.
    let server = Server::new(folder.join("link"));
    send_to(&server, &folder.join("from/file")).unwrap();
    assert_eq!(contents(&folder.join("elsewhere")), [(PathBuf::from("file"), b"x".to_vec())]);
    fs::create_dir(folder.join("from/sub")).unwrap();
    fs::write(folder.join("from/sub/file"), b"x").unwrap();
    symlink(folder.join("to"), folder.join("elsewhere/sub")).unwrap();
    let error = error_of(send_to(&server, &folder.join("from/sub")));
    assert!(error.contains("sub"), "{error}");
    assert!(contents(&folder.join("to")).is_empty());
}

#[test]
fn names_that_look_alike_are_different_files() {
    let folder = folder("unusual-alike");
    let names = ["e\u{301}", "\u{e9}", "A", "a", "\u{3b1}"];
    for (number, name) in names.iter().enumerate() {
        fs::write(folder.join("from").join(name), [number as u8]).unwrap();
    }
    let server = Server::new(folder.join("to"));
    send_to(&server, &folder.join("from")).unwrap();
    assert_eq!(contents(&folder.join("to/from")), contents(&folder.join("from")));
}

#[test]
fn a_name_may_be_as_long_as_the_file_system_allows() {
    let folder = folder("unusual-long");
    let name = "n".repeat(255);
    fs::write(folder.join("from").join(&name), noise(100_000, 6)).unwrap();
    let server = Server::new(folder.join("to"));
    send_to(&server, &folder.join("from").join(&name)).unwrap();
    assert_eq!(contents(&folder.join("to")), contents(&folder.join("from")));
}

#[test]
fn a_transfer_over_ipv6() {
    let folder = folder("unusual-ipv6");
    let server = Server::at("[::1]:0", Plan::default(), folder.join("to"), false);
    assert!(server.address.starts_with("[::1]:"), "{}", server.address);
    fs::write(folder.join("from/file"), noise(100_000, 7)).unwrap();
    send_to(&server, &folder.join("from/file")).unwrap();
    assert_eq!(contents(&folder.join("to")), contents(&folder.join("from")));
}

#[test]
fn a_key_file_may_end_as_editors_end_lines() {
    let folder = folder("unusual-key");
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    for (number, (text, is_key)) in [
        (key.to_owned(), true),
        (format!("{key}\n"), true),
        (format!("{key}\r\n"), true),
        (format!("{key}\n\n"), true),
        (String::new(), false),
        (key[..40].to_owned(), false),
        (format!("{key}{key}"), false),
        (format!("{key}\n{key}\n"), false),
    ]
    .iter()
    .enumerate()
    {
        let file = folder.join(format!("{number}.key"));
        fs::write(&file, text).unwrap();
        Command::new("chmod").args(["600"]).arg(&file).status().unwrap();
        let read = lfn_transfer::Key::read(&file);
        assert_eq!(read.is_ok(), *is_key, "{text:?}: {:?}", read.err().map(|error| error.to_string()));
    }
}
