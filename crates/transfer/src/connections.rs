//! Connections of a server. Each has a thread and a slot, which are freed however the connection ends.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Sender};
use std::sync::Arc;
use std::thread::Builder;

use crate::{Listener, Progress, Statistics, Stream, TransferError};

/// Report of a server.
#[derive(Debug)]
pub enum Served {
    /// Progress of a transfer; the peer's address.
    Progress(String, Progress),
    /// End of a transfer; the peer's address, if there was a peer.
    Done(String, Result<Statistics, TransferError>),
}

/// Reports the end of a connection, also if its thread panics or does not start.
struct Ending {
    socket: u32,
    peer: String,
    done: Option<Result<Statistics, TransferError>>,
    say: Sender<(u32, Served)>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let none = || Err(TransferError::Defect("its thread did not run to its end".into()));
        let done = self.done.take().unwrap_or_else(none);
        // The channel may be closed: the server was told to stop.
        let _ = self.say.send((self.socket, Served::Done(std::mem::take(&mut self.peer), done)));
    }
}

/// Message of a panic.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}

/// Serves each connection in its own thread until told to stop; `tell` gets the threads' reports.
pub(crate) fn each_connection(
    listener: &mut Listener,
    once: bool,
    stop: &Arc<AtomicBool>,
    tell: &mut dyn FnMut(Served),
    work: impl Fn(&mut Stream, &mut dyn FnMut(&Progress)) -> Result<Statistics, TransferError>
        + Send
        + Clone
        + 'static,
) -> Result<(), TransferError> {
    let (say, hear) = mpsc::channel();
    let mut threads = Vec::new();
    while !stop.load(Relaxed) {
        if let Some(mut stream) = listener.accept()? {
            let (work, stop, peer) = (work.clone(), stop.clone(), stream.peer().to_owned());
            let socket = stream.connection().socket();
            let ending = Ending { socket, peer: peer.clone(), done: None, say: say.clone() };
            stream.interrupt_when(move || stop.load(Relaxed));
            let spawned = Builder::new().spawn(move || {
                let mut ending = ending;
                let mut report = |progress: &Progress| {
                    let _ = ending.say.send((socket, Served::Progress(peer.clone(), *progress)));
                };
                let done = catch_unwind(AssertUnwindSafe(|| work(&mut stream, &mut report)));
                ending.done = Some(done.unwrap_or_else(|panic| Err(TransferError::Defect(words(&*panic)))));
                // Close the connection before the slot becomes free.
                drop(stream);
                drop(ending);
            });
            threads.extend(spawned.ok());
        }
        for error in listener.failures() {
            tell(Served::Done(String::new(), Err(error)));
        }
        for (socket, served) in hear.try_iter() {
            let over = matches!(served, Served::Done(..));
            tell(served);
            if over {
                listener.forget(socket);
                threads.retain(|thread| !thread.is_finished());
                if once {
                    stop.store(true, Relaxed);
                }
            }
        }
    }
    // Each closes its connection.
    for thread in threads {
        let _ = thread.join();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::Plan;

    /// More connections than slots, and every thread panics: all are served and reported.
    #[test]
    fn a_thread_that_panics_gives_its_slot_back() {
        let mut listener = Listener::bind("127.0.0.1:0", Plan::default()).unwrap();
        let (address, stop) = (listener.local().to_string(), Arc::new(AtomicBool::new(false)));
        let (say, hear) = channel();
        let end = stop.clone();
        let server = std::thread::spawn(move || {
            let mut tell = |served| drop(say.send(served));
            let work = |stream: &mut Stream, _: &mut dyn FnMut(&Progress)| {
                stream.read_array::<1>()?;
                panic!("on purpose")
            };
            each_connection(&mut listener, false, &end, &mut tell, work).unwrap();
        });
        for number in 0..40 {
            let stream = Stream::connect(&address, &Plan::default(), || false);
            let mut stream = stream.unwrap_or_else(|error| panic!("connection {number}: {error}"));
            stream.write(&[1]).and_then(|()| stream.flush()).unwrap();
            match hear.recv_timeout(Duration::from_secs(10)).unwrap() {
                Served::Done(_, Err(TransferError::Defect(what))) => assert_eq!(what, "on purpose"),
                other => panic!("{other:?}"),
            }
        }
        stop.store(true, Relaxed);
        server.join().unwrap();
    }
}
