//! Phantom's header: the rate that links allow.

use crate::{number, unknown, Fields, Header};

/// Phantom's header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phantom {
    /// The least allowed rate of the links passed; infinite at the sender.
    pub rate_bytes_per_s: f64,
}

impl Fields for Phantom {
    const WORDS: &'static str = "RATE";

    fn of_words(words: &[&str], _: Header) -> Result<Phantom, String> {
        let [rate] = words else { return unknown::<Phantom>(words) };
        Ok(Phantom { rate_bytes_per_s: number(rate)? })
    }
}
