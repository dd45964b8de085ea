//! The fuzzer's corpus, mutated by a seeded generator: no panic, no growth, no answer larger than what came.
//!
//! `LFN_FUZZ_PACKETS` says how many packets.

mod driver;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;

use driver::{Target, NEXT};
use lfn_units::Time;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Counts the bytes that each thread holds.
struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
}

fn count(change: impl Fn(usize) -> usize) {
    // At the end of a thread there is nothing to count in.
    let _ = HELD.try_with(|held| held.set(change(held.get())));
}

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(|held| held.wrapping_add(layout.size()));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(|held| held.wrapping_sub(layout.size()));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

struct Mutator {
    random: Xoshiro256PlusPlus,
    corpus: Vec<Vec<u8>>,
}

impl Mutator {
    fn below(&mut self, n: usize) -> usize {
        (self.random.next_u64() % n as u64) as usize
    }

    /// A datagram of the corpus, changed in up to three places.
    fn next(&mut self) -> Vec<u8> {
        let at = self.below(self.corpus.len());
        let mut datagram = self.corpus[at][3..].to_vec();
        for _ in 0..self.below(4) {
            self.change(&mut datagram);
        }
        datagram
    }

    fn change(&mut self, datagram: &mut Vec<u8>) {
        if datagram.is_empty() {
            datagram.push(self.random.next_u64() as u8);
            return;
        }
        let at = self.below(datagram.len());
        match self.below(7) {
            0 => datagram[at] ^= 1 << self.below(8),
            1 => datagram[at] = self.random.next_u64() as u8,
            2 => datagram.truncate(at),
            3 => {
                let other = self.below(self.corpus.len());
                let tail = &self.corpus[other][3..];
                datagram.truncate(at);
                datagram.extend(&tail[at.min(tail.len())..]);
            }
            // A word near the numbers in use, or at the ends of its range.
            4 | 5 => {
                let ahead = self.below(400) as u32;
                let words = [
                    NEXT + ahead,
                    NEXT.wrapping_sub(ahead),
                    (NEXT + ahead) | 1 << 31,
                    NEXT + 8_100 + ahead,
                    0,
                    u32::MAX,
                    1 << 30,
                ];
                let word = words[self.below(words.len())].to_be_bytes();
                let start = at / 4 * 4;
                let end = (start + 4).min(datagram.len());
                datagram[start..end].copy_from_slice(&word[..end - start]);
            }
            _ => {
                let more = self.below(32);
                let tail = datagram[datagram.len().saturating_sub(more)..].to_vec();
                datagram.extend(tail);
            }
        }
        datagram.truncate(1472);
    }
}

#[test]
fn mutated_packets_neither_panic_nor_grow() {
    let packets: u64 = std::env::var("LFN_FUZZ_PACKETS")
        .map_or(100_000, |count| count.parse().expect("LFN_FUZZ_PACKETS is a number of packets"));
    let seed: u64 =
        std::env::var("LFN_SEED").map_or(2026, |seed| seed.parse().expect("LFN_SEED is a number"));
    println!("LFN_SEED={seed}");
    let mut mutator = Mutator { random: Xoshiro256PlusPlus::seed_from_u64(seed), corpus: corpus() };
    let mut target = Target::new(Time::from_s(1));
    let mut most_held = 0;
    for packet in 0..packets {
        if packet == packets / 10 {
            most_held = HELD.get();
        }
        let datagram = mutator.next();
        target.deliver(&datagram);
        if packet % 64 == 0 {
            target.wait(Time::from_ms(mutator.below(400) as u64));
        }
        if packet > packets / 10 {
            let held = HELD.get();
            assert!(held < most_held + (1 << 20), "{held} bytes after {packet} packets, {most_held} before");
        }
    }
}

#[test]
fn the_corpus_itself() {
    for input in corpus() {
        Target::new(Time::from_s(1)).deliver_all(&input);
    }
}

/// A flood of NAKs that name everything, and of the packets that they ask for.
#[test]
fn a_flood_of_naks_repeats_no_more_than_the_pace_allows() {
    let mut target = Target::new(Time::from_s(1));
    let before = target.connection.sender_stats();
    let mut nak = Vec::new();
    for word in [0x8003_0000, 0, 0, 7, NEXT | 1 << 31, NEXT + 99] {
        nak.extend(u32::to_be_bytes(word));
    }
    let begin = target.now;
    for _ in 0..10_000 {
        target.deliver(&nak);
    }
    let after = target.connection.sender_stats();
    assert_eq!(after.naks - before.naks, 10_000);
    // Slow start ends at the speed that nothing has measured yet: 16 packets a second, with pairs.
    let seconds = (target.now - begin).as_s();
    assert!((after.retransmits - before.retransmits) as f64 <= 17.1 * seconds + 2.0);
}
