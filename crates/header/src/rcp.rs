//! RCP's header: one rate for all flows of a link.

use crate::{number, unknown, Fields, Header, CARD_RTT_S};

/// RCP's header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rcp {
    /// The least rate of the links passed; infinite at the sender.
    pub rate_bytes_per_s: f64,
    /// The sender's smoothed RTT; 0 while it knows none.
    pub rtt_s: f64,
}

impl Fields for Rcp {
    const WORDS: &'static str = "RATE";

    fn of_words(words: &[&str], _: Header) -> Result<Rcp, String> {
        let [rate] = words else { return unknown::<Rcp>(words) };
        Ok(Rcp { rate_bytes_per_s: number(rate)?, rtt_s: CARD_RTT_S })
    }
}
