//! Datagrams for a UDT connection in the middle of a transfer.
#![no_main]

#[path = "../../crates/udt/tests/fuzz/driver.rs"]
mod driver;

use lfn_units::Time;

libfuzzer_sys::fuzz_target!(|input: &[u8]| driver::Target::new(Time::from_s(1)).deliver_all(input));
