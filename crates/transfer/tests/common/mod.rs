//! A receiver in a thread, folders and contents, for the tests over real sockets.

#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::disallowed_methods, reason = "sockets live in real time")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use lfn_transfer::{send, serve, Listener, Plan, Sending, Served, Serving, Statistics, TransferError};
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("from")).unwrap();
    fs::create_dir_all(folder.join("to")).unwrap();
    folder
}

pub fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut noise);
    noise
}

/// A receiver for as many transfers as come, until dropped.
pub struct Server {
    pub address: String,
    pub stop: Arc<AtomicBool>,
    done: Receiver<Result<Statistics, TransferError>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn new(directory: PathBuf) -> Server {
        Server::start(directory, false)
    }

    pub fn start(directory: PathBuf, overwrite: bool) -> Server {
        Server::under(Plan::default(), directory, overwrite)
    }

    pub fn under(plan: Plan, directory: PathBuf, overwrite: bool) -> Server {
        Server::at("127.0.0.1:0", plan, directory, overwrite)
    }

    pub fn at(listen: &str, plan: Plan, directory: PathBuf, overwrite: bool) -> Server {
        let listener = Listener::bind(listen, plan).unwrap();
        let (address, stop) = (listener.local().to_string(), Arc::new(AtomicBool::new(false)));
        let (say, done) = channel();
        let end = stop.clone();
        let thread = std::thread::spawn(move || {
            let serving = Serving { directory: &directory, once: false, overwrite, stop: end };
            let mut tell = |served| {
                if let Served::Done(_, result) = served {
                    let _ = say.send(result);
                }
            };
            serve(|| Ok(listener), &serving, &mut tell).unwrap();
        });
        Server { address, stop, done, thread: Some(thread) }
    }

    /// The end of the next transfer. A receiver of a silent sender waits for up to a minute.
    pub fn done(&self) -> Result<Statistics, TransferError> {
        self.done.recv_timeout(Duration::from_secs(70)).expect("the transfer ends")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

pub fn send_to(server: &Server, path: &Path) -> Result<Statistics, TransferError> {
    send_at(&server.address, path)
}

pub fn send_at(to: &str, path: &Path) -> Result<Statistics, TransferError> {
    let paths = [path.to_owned()];
    let sending = Sending { paths: &paths, to, plan: Plan::default() };
    send(&sending, || false, &mut |_| ())
}

/// Names below `folder`, and what is in them.
pub fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            found.push((path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

/// A program that ends with the test, whatever happens.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A receiver in its own process, and its address; its later output is written to the file `said`.
pub fn receiver(directory: &Path, said: &Path, options: &[&str]) -> (Process, String) {
    program("recv", directory, said, options)
}

/// `lfn-udt recv` or `serve`, and its address.
pub fn program(verb: &str, directory: &Path, said: &Path, options: &[&str]) -> (Process, String) {
    let command = Command::new(env!("CARGO_BIN_EXE_lfn-udt"))
        .args([verb, "--listen", "127.0.0.1:0", "--quiet"])
        .args(options)
        .arg(directory)
        .stderr(fs::File::create(said).unwrap())
        .spawn();
    let process = Process(command.unwrap());
    for _ in 0..500 {
        let text = fs::read_to_string(said).unwrap();
        if let Some((_, rest)) = text.split_once("listening at ") {
            if let Some((address, _)) = rest.split_once('\n') {
                return (process, address.to_owned());
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no receiver: {}", fs::read_to_string(said).unwrap());
}
