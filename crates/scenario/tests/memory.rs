//! The estimate of memory is within a factor of three of what random runs need, in nine of ten, and a run counts what it
//! holds.
//!
//! `LFN_MEMORY_RUNS` is their number, `LFN_SEED` the seed, `LFN_MEMORY_PRINT` lists them; `make soak` draws 500 with a new
//! seed.

mod drawn;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lfn_scenario::Scenario;
use lfn_sim::Sim;
use lfn_units::Time;

/// Counts what is allocated, and the most of it at once.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grow(bytes: usize) {
    PEAK.fetch_max(LIVE.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

#[allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "each call is the system's, with what it was given"
)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(place, layout) };
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new exist together while one is copied to the other.
        grow(size);
        let new = unsafe { System.realloc(place, layout, size) };
        LIVE.fetch_sub(layout.size(), Relaxed);
        new
    }
}

/// Tests run in threads of one process, and the counts are the process's: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: {text:?}")))
}

/// Peak memory of a run of the scenario in bytes, with tables and summary as they are stored. On the way it compares
/// the memory that the run reports.
fn measured(scenario: &Scenario) -> (usize, u64) {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let config = scenario.config(scenario.seed);
    let configured = LIVE.load(Relaxed);
    let mut sim = Sim::new(&config).unwrap_or_else(|error| panic!("{error}"));
    for eighth in 1..=8 {
        sim.run_until(Time(config.duration.0 / 8 * eighth));
        is_counted(&sim, LIVE.load(Relaxed) - configured, scenario);
    }
    sim.run_until(config.duration);
    let outcome = sim.finish().unwrap_or_else(|error| panic!("{error}"));
    let packets = outcome.summary.data_packets_delivered;
    let stored = (serde_json::to_string(&outcome.summary).unwrap(), outcome.tables.clone());
    drop((stored, outcome));
    (PEAK.load(Relaxed) - before, packets)
}

/// The memory that a run reports, which `--memory` limits, is the memory that it holds, except for a part that does
/// not grow and for nodes of an allocator that are over half full.
fn is_counted(sim: &Sim, held: usize, scenario: &Scenario) {
    let counted = sim.memory_bytes() as f64;
    let within = held as f64 <= 1.2 * counted + 1e6 && counted <= 1.2 * held as f64 + 1e6;
    assert!(within, "{counted} bytes counted, {held} held: {}", scenario.to_toml().unwrap());
}

/// Memory that a run holds in the course of it, and that it reports.
fn held_and_counted(text: &str) -> Vec<(usize, usize)> {
    let scenario = Scenario::parse(text, "counted.toml", None).unwrap_or_else(|error| panic!("{error}"));
    let before = LIVE.load(Relaxed);
    let config = scenario.config(scenario.seed);
    let mut sim = Sim::new(&config).unwrap_or_else(|error| panic!("{error}"));
    let mut after = |eighth| {
        sim.run_until(Time(config.duration.0 / 8 * eighth));
        is_counted(&sim, LIVE.load(Relaxed) - before, &scenario);
        (LIVE.load(Relaxed) - before, sim.memory_bytes())
    };
    (1..=8).map(&mut after).collect()
}

#[test]
fn flows_over_udt_are_counted() {
    let _alone = alone();
    for (count, loss) in [(3000, 0.0), (1, 0.02)] {
        held_and_counted(&format!(
            "schema = 1\nduration = \"3s\"\nsample = \"off\"\n[link]\nrate = \"10Gbit/s\"\nloss = {loss}\n\
             [[flow]]\nlaw = \"const-rate\"\ntransport = \"udt\"\nrtt = \"200ms\"\ncount = {count}\n"
        ));
    }
}

/// The messages that they have still to exchange are 17 % of what connections hold that pile up.
#[test]
fn connections_of_a_model_are_counted() {
    let _alone = alone();
    let text =
        "schema = 1\nduration = \"20s\"\nsample = \"off\"\n[link]\nrate = \"300Mbit/s\"\n[link.reverse]\n\
                rate = \"2Mbit/s\"\n[[flow]]\nlaw = \"reno\"\nrtt = \"200ms\"\n[[traffic]]\nrtt = \"160ms\"\n\
                receive_window = \"65536B\"\n[traffic.requests]\nload = \"300Mbit/s\"\nrequest = \"500B\"\n";
    let (held, counted) = held_and_counted(text).pop().unwrap();
    assert!(held > 30_000_000, "{held} bytes");
    assert!((held as f64 / counted as f64 - 1.0).abs() < 0.03, "{counted} bytes counted, {held} held");
}

/// The sender's timer moves to and fro at each duplicate, and an event was left behind each time.
#[test]
fn timers_that_move_leave_no_events_behind() {
    let _alone = alone();
    let text = "schema = 1\nduration = \"1000001us\"\nseed = 6\nsample = \"5083us\"\n[link]\nrate = \"4711219412bit/s\"\n\
        queue = { kind = \"pie\", size = \"0.979bdp\" }\nrouter = { kind = \"xcp\" }\nduplicate = 0.0871\n\
        [[flow]]\nlaw = \"jetmax:memory\"\nrtt = \"668us\"\nparallel = 4\ndelayed_ack = false\n\
        send_buffer = \"linux\"\n";
    let scenario = Scenario::parse(text, "timers.toml", None).unwrap_or_else(|error| panic!("{error}"));
    let (bytes, _) = measured(&scenario);
    assert!(bytes < 1_000_000, "{bytes}");
}

/// The estimate over the measured peak of a drawn run; `None` for keys that do not go together, and runs that are too
/// long or fill this machine.
fn ratio(text: &str, most_packets: f64) -> Option<f64> {
    let scenario = Scenario::parse(text, "drawn.toml", None).ok()?;
    let need = scenario.predict();
    if need.packets as f64 > most_packets || need.memory_bytes > 4_000_000_000 {
        return None;
    }
    let (measured, delivered) = measured(&scenario);
    let measured = measured as f64;
    if std::env::var_os("LFN_MEMORY_PRINT").is_some() {
        println!("{measured} bytes measured: {need:?} del: {delivered}\n{text}");
    }
    Some(need.memory_bytes as f64 / measured)
}

#[test]
fn an_estimate_is_within_a_factor_of_three() {
    let _alone = alone();
    let (count, seed) = (number("LFN_MEMORY_RUNS", 60), number("LFN_SEED", 1));
    let most_packets = number("LFN_MEMORY_PACKETS", 2_000_000) as f64;
    let ratios = (0..2 * count).filter_map(|i| ratio(&drawn::scenario(seed, i, most_packets), most_packets));
    let ratios: Vec<f64> = ratios.take(count as usize).collect();
    let share = |holds: &dyn Fn(f64) -> bool| {
        ratios.iter().filter(|&&ratio| holds(ratio)).count() as f64 / ratios.len() as f64
    };
    let (low, high) = (share(&|ratio| ratio < 1.0 / 3.0), share(&|ratio| ratio > 3.0));
    println!("LFN_MEMORY_RUNS={count} LFN_SEED={seed}: {low:.3} below a third, {high:.3} above three times");
    assert!(ratios.len() as u64 == count, "only {} of {count} runs", ratios.len());
    // One in ten, and two standard deviations of such a share.
    assert!(low + high <= 0.1 + 0.6 / (count as f64).sqrt(), "{low} below a third, {high} above three times");
}
