//! A line at the bottom of the terminal that shows a path while a program uses it.
//!
//! The emulator writes counters to shared memory a few times a second, and does nothing else for it. A
//! process of its own, of low priority, reads them, asks the kernel for the TCP sockets of both ends, and
//! draws. The last row of the terminal is taken out of the region that scrolls, so that a program can write
//! lines as if there were none. The process ends with the emulator, also after kill -9, and gives the row
//! back. It has nothing to restore on the disk, and no name.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::mem::{size_of, zeroed};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

use lfn_units::Time;
use libc::{c_int, pid_t};

use crate::error::EmulatorError;
use crate::network::{Network, Route};
use crate::process;
use crate::sockets::{Sender, Sockets};

/// How often the emulator writes its counters, and the line is drawn.
const EVERY: Time = Time::from_ns(500_000_000);
/// How often the flow that sent the most is sought among all, and for how many looks it is each time if none
/// is known. Between, the known one is asked for.
const SEEK_EVERY: u32 = 10;
const SEEK_FIRST: u32 = 20;
/// The least terminal that has a row to spare.
const LEAST: Size = Size { rows: 3, columns: 20 };
/// Of the process that draws.
const NICE: c_int = 10;
/// How often, and how long, the terminal is asked to take the last words; it may be stopped (Ctrl-S).
const PATIENCE: (u32, Duration) = (20, Duration::from_millis(10));

/// Counters of a path in memory that two processes share.
#[repr(C)]
#[derive(Default)]
struct Board {
    /// Time since the path began.
    at_ns: AtomicU64,
    /// Bytes sent by the last link of each route.
    bytes: [AtomicU64; 2],
    /// Packets waiting in all queues.
    waiting: AtomicU64,
    /// Packets lost: dropped by queues, or at random.
    lost: AtomicU64,
    /// Longest lateness since the last look.
    late_ns: AtomicU64,
}

/// Values of a [`Board`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Look {
    at_ns: u64,
    bytes: [u64; 2],
    waiting: u64,
    lost: u64,
    late_ns: u64,
}

/// Shared memory with a board; a page, which ends with the processes that have it.
struct SharedBoard(*const Board);

impl SharedBoard {
    fn new() -> Result<SharedBoard, EmulatorError> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: new memory, which the kernel fills with zeros: a valid board.
        let place = unsafe { libc::mmap(null_mut(), size_of::<Board>(), access, kind, -1, 0) };
        if place == libc::MAP_FAILED {
            return Err(EmulatorError::last("shared memory", ""));
        }
        Ok(SharedBoard(place.cast()))
    }

    fn board(&self) -> &Board {
        // SAFETY: the memory stays mapped until the process ends.
        unsafe { &*self.0 }
    }

    fn write(&self, look: &Look) {
        let board = self.board();
        board.at_ns.store(look.at_ns, Relaxed);
        board.waiting.store(look.waiting, Relaxed);
        board.lost.store(look.lost, Relaxed);
        board.late_ns.store(look.late_ns, Relaxed);
        for (place, bytes) in board.bytes.iter().zip(look.bytes) {
            place.store(bytes, Relaxed);
        }
    }

    fn read(&self) -> Look {
        let board = self.board();
        Look {
            at_ns: board.at_ns.load(Relaxed),
            bytes: [board.bytes[0].load(Relaxed), board.bytes[1].load(Relaxed)],
            waiting: board.waiting.load(Relaxed),
            lost: board.lost.load(Relaxed),
            late_ns: board.late_ns.load(Relaxed),
        }
    }
}

/// The process that draws, and what it draws from.
pub(crate) struct Live {
    board: SharedBoard,
    /// The process ends when this is closed.
    alive: Option<OwnedFd>,
    process: pid_t,
    /// The last link of each route, whose rate the line shows.
    last_links: [Option<usize>; 2],
    next_at: Time,
    /// Longest lateness since the last look.
    late_ns: u64,
}

impl Live {
    /// Takes the last row of the terminal at stderr and begins to draw there. `sockets` are those of both
    /// ends, `addresses` of the path, `routes` those to the far end and back; the process that draws does not keep `device`. `None` where there is no
    /// terminal, or none of a known size.
    pub(crate) fn start(
        sockets: Vec<Sockets>,
        addresses: [Ipv4Addr; 2],
        routes: &[Route],
        device: RawFd,
    ) -> Result<Option<Live>, EmulatorError> {
        let Some(mut screen) = Screen::open() else { return Ok(None) };
        let board = SharedBoard::new()?;
        let (ended, alive) = process::pipe()?;
        if !process::is_in_background(screen.terminal.as_raw_fd()) {
            screen.take_row();
        }
        let process = process::fork().inspect_err(|_| screen.give_row_back())?;
        if process == 0 {
            drop(alive);
            process::close(device);
            // A defect here must not become the emulator's.
            drop(catch_unwind(AssertUnwindSafe(|| draw(screen, &board, sockets, addresses, &ended))));
            process::exit(0);
        }
        let last = |route: usize| routes.get(route)?.links.last().map(|link| link.index());
        let last_links = [last(0), last(1)];
        Ok(Some(Live { board, alive: Some(alive), process, last_links, next_at: EVERY, late_ns: 0 }))
    }

    /// When the emulator is to write its counters.
    pub(crate) fn next_at(&self) -> Time {
        self.next_at
    }

    /// A segment was so late.
    pub(crate) fn note_lateness(&mut self, ns: u64) {
        self.late_ns = self.late_ns.max(ns);
    }

    /// Writes the counters of a path.
    pub(crate) fn look(&mut self, now: Time, network: &Network) {
        self.next_at = now.after(EVERY);
        let mut look =
            Look { at_ns: now.as_ns(), late_ns: std::mem::take(&mut self.late_ns), ..Look::default() };
        for (number, (_, link, lost)) in network.links().enumerate() {
            let counters = link.counters();
            look.waiting += link.packets();
            look.lost += counters.drops_full + counters.drops_early + lost;
            for (bytes, last) in look.bytes.iter_mut().zip(self.last_links) {
                if last == Some(number) {
                    *bytes = counters.sent_bytes;
                }
            }
        }
        self.board.write(&look);
    }
}

impl Drop for Live {
    /// Waits until the terminal is as before.
    fn drop(&mut self) {
        self.alive = None;
        // A process that is gone already is no loss.
        drop(process::wait(self.process));
    }
}

/// Draws until the emulator ends.
fn draw(
    mut screen: Screen,
    board: &SharedBoard,
    mut sockets: Vec<Sockets>,
    addresses: [Ipv4Addr; 2],
    ended: &OwnedFd,
) {
    process::ignore_terminal(NICE);
    let mut before = Look::default();
    let mut rates_bps = [0.0; 2];
    let (mut looks, mut known) = (0, None::<(usize, Sender)>);
    while !process::closes_within(ended, EVERY) {
        let now = board.read();
        if now.at_ns > before.at_ns {
            let seconds = (now.at_ns - before.at_ns) as f64 * 1e-9;
            rates_bps =
                [0, 1].map(|way| now.bytes[way].saturating_sub(before.bytes[way]) as f64 * 8.0 / seconds);
            before = now;
        }
        let seeks = looks % SEEK_EVERY == 0 || (known.is_none() && looks < SEEK_FIRST);
        known = if seeks {
            let ends = sockets.iter_mut().enumerate();
            let senders = ends.filter_map(|(end, there)| Some((end, there.largest_sender(addresses)?)));
            senders.max_by_key(|(_, sender)| sender.acked_bytes)
        } else {
            known.and_then(|(end, sender)| Some((end, sockets[end].again(&sender, addresses)?)))
        };
        looks += 1;
        screen.show(|columns| line(&now, rates_bps, known.map(|(_, sender)| sender), columns));
    }
    screen.give_row_back();
}

/// A number with three digits and a prefix.
fn short(value: f64) -> String {
    let scales = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
    // 999.6 is 1000 in three digits.
    let (scale, prefix) = scales.into_iter().find(|(scale, _)| value >= scale * 0.9995).unwrap_or((1.0, ""));
    let scaled = value / scale;
    match scaled {
        _ if prefix.is_empty() => format!("{scaled:.0}"),
        _ if scaled < 9.995 => format!("{scaled:.2}{prefix}"),
        _ if scaled < 99.95 => format!("{scaled:.1}{prefix}"),
        _ => format!("{scaled:.0}{prefix}"),
    }
}

/// A count, exact below 100,000.
fn count(value: u64) -> String {
    if value < 100_000 {
        value.to_string()
    } else {
        short(value as f64)
    }
}

fn ms(value: f64) -> String {
    if value < 9.95 {
        format!("{value:.2}")
    } else {
        format!("{value:.0}")
    }
}

/// The line in at most `columns` columns: in words, in letters if there is no room for words, and without
/// its last fields if there is none for letters.
fn line(look: &Look, rates_bps: [f64; 2], sender: Option<Sender>, columns: usize) -> String {
    let (way, rate_bps) =
        if rates_bps[1] > rates_bps[0] { ("in", rates_bps[1]) } else { ("out", rates_bps[0]) };
    let rate = short(rate_bps);
    let digits = rate.trim_end_matches(['k', 'M', 'G']);
    let (late, waiting, lost) = (ms(look.late_ns as f64 * 1e-6), count(look.waiting), count(look.lost));
    let (mut words, mut letters) =
        (vec![format!("{way} {digits} {}bit/s", &rate[digits.len()..])], vec![format!("{way} {rate}")]);
    if let Some(sender) = sender {
        let (rtt, window) = (ms(f64::from(sender.rtt_us) * 1e-3), count(sender.cwnd.into()));
        words.extend([format!("RTT {rtt} ms"), format!("cwnd {window}")]);
        letters.extend([format!("{rtt}ms"), format!("w{window}")]);
    }
    words.extend([format!("queue {waiting}"), format!("drops {lost}"), format!("late {late} ms")]);
    letters.extend([format!("q{waiting}"), format!("d{lost}"), format!("l{late}ms")]);
    let text = words.join("  ");
    if text.len() <= columns {
        return text;
    }
    while letters.len() > 1 && letters.join(" ").len() > columns {
        letters.pop();
    }
    let mut text = letters.join(" ");
    text.truncate(columns);
    text
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    rows: u16,
    columns: u16,
}

/// A terminal whose last row is ours at times.
struct Screen {
    terminal: File,
    /// While the row is ours.
    taken: Option<Size>,
}

impl Screen {
    /// The terminal at stderr, in an open file of our own: that one must not wait where another program
    /// would.
    fn open() -> Option<Screen> {
        // SAFETY: takes an integer.
        if unsafe { libc::isatty(libc::STDERR_FILENO) } == 0 {
            return None;
        }
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
        let terminal = OpenOptions::new().write(true).custom_flags(flags).open("/proc/self/fd/2").ok()?;
        let screen = Screen { terminal, taken: None };
        screen.size().map(|_| screen)
    }

    /// None where the terminal is too small, or does not know.
    fn size(&self) -> Option<Size> {
        // SAFETY: the record lives, and is what the operation fills.
        let (result, found) = unsafe {
            let mut found: libc::winsize = zeroed();
            (libc::ioctl(self.terminal.as_raw_fd(), libc::TIOCGWINSZ, &mut found), found)
        };
        let size = Size { rows: found.ws_row, columns: found.ws_col };
        (result == 0 && size.rows >= LEAST.rows && size.columns >= LEAST.columns).then_some(size)
    }

    fn write(&mut self, text: &str) -> bool {
        self.terminal.write_all(text.as_bytes()).is_ok()
    }

    /// A row is made free below the cursor (ESC D, which keeps the column); the region that scrolls ends above
    /// it (DECSTBM). ESC 7 and 8 keep the cursor, which DECSTBM moves.
    fn take_row(&mut self) {
        let Some(size) = self.size() else { return };
        if self.write(&format!("\x1bD\x1b7\x1b[1;{}r\x1b8\x1b[A", size.rows - 1)) {
            self.taken = Some(size);
        }
    }

    /// All rows scroll again, and ours is empty.
    fn give_row_back(&mut self) {
        let Some(size) = self.taken.take() else { return };
        let row = self.size().unwrap_or(size).rows.min(size.rows);
        for _ in 0..PATIENCE.0 {
            if self.write(&format!("\x1b7\x1b[r\x1b[{row};1H\x1b[2K\x1b8")) {
                return;
            }
            sleep(PATIENCE.1);
        }
    }

    /// Draws a line of the columns that there are, unless the shell that started us has the terminal.
    fn show(&mut self, line: impl FnOnce(usize) -> String) {
        let size = self.size().filter(|_| !process::is_in_background(self.terminal.as_raw_fd()));
        if self.taken != size {
            self.give_row_back();
            if size.is_some() {
                self.take_row();
            }
        }
        let Some(size) = self.taken else { return };
        // The last column stays free: after a letter there some terminals begin a new row.
        let text = line(usize::from(size.columns) - 1);
        self.write(&format!("\x1b7\x1b[{};1H\x1b[2K{text}\x1b8", size.rows));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Look = Look { at_ns: 0, bytes: [0; 2], waiting: 312, lost: 1023, late_ns: 120_000 };
    const SENDER: Option<Sender> = Some(Sender { acked_bytes: 1, rtt_us: 102_400, cwnd: 8123, id: [0; 48] });

    #[test]
    fn a_line_has_words_letters_or_fewer_fields() {
        let at = |columns| line(&LOOK, [941.2e6, 2e6], SENDER, columns);
        assert_eq!(at(79), "out 941 Mbit/s  RTT 102 ms  cwnd 8123  queue 312  drops 1023  late 0.12 ms");
        assert_eq!(at(39), "out 941M 102ms w8123 q312 d1023 l0.12ms");
        assert_eq!(at(38), "out 941M 102ms w8123 q312 d1023");
        assert_eq!(at(19), "out 941M 102ms");
        for columns in 0..120 {
            assert!(at(columns).len() <= columns);
        }
    }

    #[test]
    fn a_line_without_a_flow_of_tcp_names_neither_rtt_nor_window() {
        assert_eq!(
            line(&LOOK, [0.0, 2.5e9], None, 79),
            "in 2.50 Gbit/s  queue 312  drops 1023  late 0.12 ms"
        );
    }

    #[test]
    fn numbers_have_three_digits() {
        let rates = [0.0, 0.4, 1.0, 999.4, 999.6, 1234.0, 99_949.0, 99_951.0, 999_600.0, 941.2e6, 1e10, 1e12];
        let found = rates.map(short);
        let wanted =
            ["0", "0", "1", "999", "1.00k", "1.23k", "99.9k", "100k", "1.00M", "941M", "10.0G", "1000G"];
        assert_eq!(found, wanted);
        assert_eq!([0, 99_999, 100_000, u64::MAX].map(count), ["0", "99999", "100k", "18446744074G"]);
        assert_eq!([0.0, 9.94, 9.96, 1234.5].map(ms), ["0.00", "9.94", "10", "1234"]);
    }

    #[test]
    fn a_board_holds_a_look() {
        let board = SharedBoard::new().unwrap();
        assert_eq!(board.read(), Look::default());
        let look = Look { at_ns: 1, bytes: [2, 3], waiting: 4, lost: 5, late_ns: 6 };
        board.write(&look);
        assert_eq!(board.read(), look);
    }
}
