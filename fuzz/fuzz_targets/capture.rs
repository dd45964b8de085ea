//! Bytes that claim to be a packet capture, read as `lfn import capture` reads them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(found) = lfn_capture::read(bytes, 1_000_000, |_| true) {
        assert!(found.bytes <= bytes.len() as u64);
    }
});
