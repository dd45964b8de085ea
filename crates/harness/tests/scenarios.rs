//! The scenarios hold for sound controllers and fail for others, in words.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::Command;

use lfn_harness::{Ack, Config, Control, Controller, Event, Harness, Measure, Report};

/// Reno (RFC 5681) in bytes.
struct Reno {
    packet_bytes: f64,
    window_bytes: f64,
    ssthresh_bytes: f64,
    /// The window after a loss, in parts of the one before.
    keeps: f64,
    /// Bytes added in a round trip, in packets.
    adds: f64,
}

impl Reno {
    fn new(config: &Config, keeps: f64, adds: f64) -> Reno {
        Reno {
            packet_bytes: config.packet_bytes.into(),
            window_bytes: config.initial_window_bytes as f64,
            ssthresh_bytes: f64::INFINITY,
            keeps,
            adds,
        }
    }
}

impl Controller for Reno {
    fn ack(&mut self, ack: &Ack, control: &mut Control) {
        let stays = lfn_harness::ACK_RECOVERY | lfn_harness::ACK_DUPLICATE;
        if ack.flags & stays != 0 || ack.flags & lfn_harness::ACK_WINDOW_LIMITED == 0 {
            return;
        }
        let acked = f64::from(ack.acked_bytes);
        self.window_bytes += match self.window_bytes < self.ssthresh_bytes {
            true => acked,
            false => self.adds * self.packet_bytes * acked / self.window_bytes,
        };
        control.window_bytes = self.window_bytes as u64;
    }

    fn event(&mut self, _now_ns: u64, event: Event, _in_flight_bytes: u64, control: &mut Control) {
        match event {
            Event::Loss | Event::Ce | Event::Timeout => {
                self.ssthresh_bytes = (self.window_bytes * self.keeps).max(2.0 * self.packet_bytes);
                self.window_bytes =
                    if event == Event::Timeout { self.packet_bytes } else { self.ssthresh_bytes };
            }
            Event::TimeoutAgain => self.window_bytes = self.packet_bytes,
            _ => {}
        }
        control.window_bytes = self.window_bytes as u64;
    }
}

/// A window that never changes.
struct Fixed(u64);

impl Controller for Fixed {
    fn ack(&mut self, _ack: &Ack, control: &mut Control) {
        control.window_bytes = self.0;
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Names of the scenarios that fail.
fn failed(report: &Report) -> Vec<&str> {
    report.results.iter().filter(|one| !one.failures.is_empty()).map(|one| one.name).collect()
}

#[test]
fn sound_controllers_pass() {
    for law in ["reno:linux", "cubic", "cubic:linux", "bbr", "bbr3"] {
        Harness::of_law(law).unwrap().run().unwrap().assert();
    }
    let report = Harness::new("reno", |config, _| Reno::new(config, 0.5, 1.0)).unwrap().run().unwrap();
    report.assert();
    assert_eq!(report.results.len(), 20);
}

#[test]
fn a_wrong_controller_fails_where_it_is_wrong() {
    let of = |keeps, adds| {
        Harness::new("wrong", move |config, _| Reno::new(config, keeps, adds)).unwrap().run().unwrap()
    };
    // A window that is not reduced, one that does not grow, and two constant ones.
    let stays = of(1.0, 1.0);
    assert!(failed(&stays).contains(&"beside-cubic"), "{stays}");
    let stuck = of(0.5, 0.0);
    assert!(failed(&stuck).contains(&"outage"), "{stuck}");
    let small = Harness::new("small", |_, _| Fixed(14_480)).unwrap().run().unwrap();
    assert!(failed(&small).contains(&"long-path"), "{small}");
    let large = Harness::new("large", |_, _| Fixed(1_000_000)).unwrap().run().unwrap();
    assert!(failed(&large).contains(&"marks"), "{large}");
}

#[test]
fn a_failure_says_what_was_found_and_shows_it() {
    let folder = folder("failure");
    let harness = Harness::new("small", |_, _| Fixed(14_480)).unwrap();
    let report = harness.only(&["long-path"]).unwrap().folder(&folder).run().unwrap();
    let text = report.to_string();
    assert!(text.contains("small: 0 of 1 scenarios hold, 1 fail\nFAIL long-path"), "{text}");
    assert!(text.contains("goodput 1.1"), "{text}");
    assert!(text.contains(" %; allowed: at least 60.0 %"), "{text}");
    let svg = std::fs::read_to_string(folder.join("long-path.svg")).unwrap();
    assert_eq!(svg.matches("<polyline").count(), 3);
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    let qlog = std::fs::read_to_string(folder.join("long-path.qlog")).unwrap();
    assert!(qlog.lines().count() > 1000 && qlog.lines().all(|line| line.starts_with('\u{1e}')));
    assert!(std::fs::read_to_string(folder.join("long-path.toml")).unwrap().contains("50Mbit/s"));
}

#[test]
fn what_ends_a_run_is_a_failure_in_one_line() {
    struct Panics;
    impl Controller for Panics {
        fn ack(&mut self, _ack: &Ack, _control: &mut Control) {
            panic!("window below zero");
        }
    }
    struct Counts;
    impl Controller for Counts {
        fn ack(&mut self, _ack: &Ack, control: &mut Control) {
            use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
            static CALLS: AtomicU64 = AtomicU64::new(0);
            control.window_bytes = 20_000 + CALLS.fetch_add(1, Relaxed) % 7919;
        }
    }
    let one = |harness: Harness| harness.only(&["one-bdp"]).unwrap().run().unwrap().to_string();
    let text = one(Harness::new("panics", |_, _| Panics).unwrap());
    assert!(text.contains("the controller panicked: window below zero"), "{text}");
    let text = one(Harness::new("tiny", |_, _| Fixed(10)).unwrap());
    assert!(text.contains("tiny.ack at") && text.contains("window_bytes 10; allowed: 1448 to"), "{text}");
    let text = one(Harness::new("counts", |_, _| Counts).unwrap());
    assert!(text.contains("two runs differ"), "{text}");
}

#[test]
fn wrong_names_are_refused() {
    let new = || Harness::new("mine", |_, _| Fixed(14_480)).unwrap();
    let said = |error: lfn_harness::Error| error.to_string();
    assert!(said(new().without("none").err().unwrap()).contains("no scenario \"none\"; allowed: one-bdp, "));
    let wrong = new().bound("one-bdp", Measure::Recovery, 0.0..=1.0).err().unwrap();
    assert_eq!(said(wrong), "one-bdp: no assertion on recovery; allowed: goodput, loss, queue");
    assert!(said(Harness::new("1", |_, _| Fixed(1)).err().unwrap()).contains("name \"1\"; allowed: a letter"));
    let holds = new().only(&["long-path"]).unwrap().bound("long-path", Measure::Goodput, 0.001..=1.0);
    assert_eq!(holds.unwrap().run().unwrap().failed(), 0);
}

/// The C interface runs the skeleton in C, and refuses what is none.
#[test]
fn a_controller_in_c_runs() {
    let folder = folder("c");
    std::fs::create_dir_all(&folder).unwrap();
    let skeletons = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/lfnlab/control_laws/skeletons");
    let built = folder.join("mine.so");
    let header = folder.join("header.c");
    std::fs::write(&header, "#include \"lfn_harness.h\"\n").unwrap();
    let cc = |arguments: &[&Path]| {
        let mut command = Command::new("cc");
        command.args(["-O2", "-Wall", "-Werror", "-shared", "-fPIC"]).arg("-I").arg(&skeletons);
        command.arg("-I").arg(env!("CARGO_MANIFEST_DIR"));
        assert!(command.args(arguments).status().unwrap().success());
    };
    cc(&[Path::new("-o"), &built, &skeletons.join("c/mine.c"), &header]);
    // SAFETY: the skeleton of controller.h.
    unsafe {
        let library = libloading::Library::new(&built).unwrap();
        let table = library.get::<unsafe extern "C" fn() -> *const std::ffi::c_void>(b"lfn_controller\0");
        let text = CString::new(folder.to_str().unwrap()).unwrap();
        assert_eq!(lfn_harness::lfn_harness_run(table.unwrap()(), text.as_ptr()), 0);
        assert_eq!(lfn_harness::lfn_harness_run(std::ptr::null(), std::ptr::null()), -1);
    }
}
