//! XCP's header: a change of rate for each packet.

use crate::{number, unknown, Fields, Header, CARD_GAP_S, CARD_RTT_S};

/// XCP's header (draft-falk-xcp-spec-03 section 2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Xcp {
    /// Time between two packets of the flow.
    pub gap_s: f64,
    /// The sender's smoothed RTT; 0 while it knows none, and routers then grant nothing.
    pub rtt_s: f64,
    /// Change of rate that the sender asks for and routers cut down; in an ACK, that to make.
    pub delta_bytes_per_s: f64,
}

impl Fields for Xcp {
    const WORDS: &'static str = "DELTA";

    fn of_words(words: &[&str], _: Header) -> Result<Xcp, String> {
        let [delta] = words else { return unknown::<Xcp>(words) };
        Ok(Xcp { gap_s: CARD_GAP_S, rtt_s: CARD_RTT_S, delta_bytes_per_s: number(delta)? })
    }

    /// The sum of the changes.
    fn merge(self, next: Xcp) -> Xcp {
        Xcp { delta_bytes_per_s: self.delta_bytes_per_s + next.delta_bytes_per_s, ..next }
    }
}
