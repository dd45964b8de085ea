//! A line a second on stderr that shows a path while a program uses it.
//!
//! The emulator writes the path's part of a line into a pipe, and never waits for it. A process of its own, of
//! low priority, asks the kernel for the TCP sockets of both ends and prints. The emulator cannot have a
//! thread for it: its children live in another PID namespace. The process ends with the emulator, also after
//! kill -9.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::net::Ipv4Addr;
use std::os::fd::RawFd;
use std::panic::{catch_unwind, AssertUnwindSafe};

use lfn_units::Time;
use libc::{c_int, pid_t};

use crate::error::EmulatorError;
use crate::network::{Network, Route};
use crate::process;
use crate::sockets::{Sender, Sockets};

const EVERY: Time = Time::from_s(1);
/// In how many lines the flow that sent the most is sought among all. Between, the known one is asked for.
const SEEK_EVERY: usize = 5;
/// Of the process that prints.
const NICE: c_int = 10;
/// Stands in a line for what the sockets tell.
const SOCKET: char = '\t';

/// The process that prints, and what it is told.
pub(crate) struct Live {
    pipe: File,
    process: pid_t,
    /// The last link of each route, whose rate the line shows, and the bytes that it had sent.
    last_links: [Option<usize>; 2],
    sent_bytes: [u64; 2],
    looked_at: Time,
    /// Longest lateness since the last look.
    late_ns: u64,
}

impl Live {
    /// Begins to print on stderr, if that is a terminal. `sockets` are those of both ends, `addresses` of the
    /// path, `routes` those to the far end and back; the process that prints does not keep `device`.
    pub(crate) fn start(
        sockets: Vec<Sockets>,
        addresses: [Ipv4Addr; 2],
        routes: &[Route],
        device: RawFd,
    ) -> Result<Option<Live>, EmulatorError> {
        if !std::io::stderr().is_terminal() {
            return Ok(None);
        }
        let (lines, pipe) = process::pipe()?;
        process::do_not_wait(&pipe)?;
        let process = process::fork()?;
        if process == 0 {
            drop(pipe);
            process::close(device);
            process::be_nice(NICE);
            // A defect here must not become the emulator's.
            drop(catch_unwind(AssertUnwindSafe(|| print(lines.into(), sockets, addresses))));
            process::exit(0);
        }
        let last = |route: usize| routes.get(route)?.links.last().map(|link| link.index());
        Ok(Some(Live {
            pipe: pipe.into(),
            process,
            last_links: [last(0), last(1)],
            sent_bytes: [0; 2],
            looked_at: Time::ZERO,
            late_ns: 0,
        }))
    }

    /// When the emulator is to tell of the path.
    pub(crate) fn next_at(&self) -> Time {
        self.looked_at.after(EVERY)
    }

    /// A segment was so late.
    pub(crate) fn note_lateness(&mut self, ns: u64) {
        self.late_ns = self.late_ns.max(ns);
    }

    /// Tells of a path.
    pub(crate) fn look(&mut self, now: Time, network: &Network) {
        let seconds = now.since(self.looked_at).as_s();
        self.looked_at = now;
        let (mut rates_bps, mut waiting, mut lost) = ([0.0; 2], 0, 0);
        for (number, (_, link, lost_at_random)) in network.links().enumerate() {
            let counters = link.counters();
            waiting += link.packets();
            lost += counters.drops_full + counters.drops_early + lost_at_random;
            if let Some(way) = self.last_links.iter().position(|last| *last == Some(number)) {
                let before = std::mem::replace(&mut self.sent_bytes[way], counters.sent_bytes);
                rates_bps[way] = 8.0 * counters.sent_bytes.saturating_sub(before) as f64 / seconds;
            }
        }
        let (way, rate_bps) =
            if rates_bps[1] > rates_bps[0] { ("in", rates_bps[1]) } else { ("out", rates_bps[0]) };
        let late_ms = std::mem::take(&mut self.late_ns) as f64 * 1e-6;
        // A line that a stopped terminal has no room for is lost.
        drop(writeln!(
            self.pipe,
            "{way} {:.2} Mbit/s{SOCKET}  queue {waiting}  drops {lost}  late {late_ms:.2} ms",
            rate_bps * 1e-6
        ));
    }
}

impl Drop for Live {
    /// No line comes after the end.
    fn drop(&mut self) {
        process::kill(self.process);
        // A process that is gone already is no loss.
        drop(process::wait(self.process));
    }
}

/// Prints each line, until the emulator ends.
fn print(lines: File, mut sockets: Vec<Sockets>, addresses: [Ipv4Addr; 2]) {
    let mut known: Option<(usize, Sender)> = None;
    for (number, line) in BufReader::new(lines).lines().map_while(Result::ok).enumerate() {
        known = if known.is_none() || number % SEEK_EVERY == 0 {
            let ends = sockets.iter_mut().enumerate();
            let senders = ends.filter_map(|(end, there)| Some((end, there.largest_sender(addresses)?)));
            senders.max_by_key(|(_, sender)| sender.acked_bytes)
        } else {
            known.and_then(|(end, sender)| Some((end, sockets[end].again(&sender, addresses)?)))
        };
        let of_socket = known.map_or(String::new(), |(_, sender)| {
            format!("  RTT {:.2} ms  cwnd {}", f64::from(sender.rtt_us) * 1e-3, sender.cwnd)
        });
        eprintln!("{}", line.replace(SOCKET, &of_socket));
    }
}
