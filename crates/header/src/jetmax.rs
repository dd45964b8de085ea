//! JetMax's header: a fair rate, and the link that it is of.

use crate::{number, unknown, Fields, Header, CARD_GAP_S};

/// JetMax's header. Links are named by numbers above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JetMax {
    /// Time between two packets of the flow.
    pub gap_s: f64,
    /// The least fair rate of the links passed; infinite at the sender.
    pub rate_bytes_per_s: f64,
    /// The control interval of the link of that rate.
    pub interval: u32,
    /// That link.
    pub link: u16,
    /// The link that the sender takes for its bottleneck; 0 for none yet.
    pub bottleneck: u16,
}

impl Fields for JetMax {
    const WORDS: &'static str = "LINK RATE";

    /// The bottleneck is the link of the previous answer.
    fn of_words(words: &[&str], before: Header) -> Result<JetMax, String> {
        let [link, rate] = words else { return unknown::<JetMax>(words) };
        let wrong = |_| format!("{link:?} is not a number of a link; allowed: 0 to {}", u16::MAX);
        let link = link.parse().map_err(wrong)?;
        let rate_bytes_per_s = number(rate)?;
        let (interval, bottleneck) = if let Header::JetMax(last) = before {
            (last.interval.wrapping_add(1), last.link)
        } else {
            (1, 0)
        };
        Ok(JetMax { gap_s: CARD_GAP_S, rate_bytes_per_s, interval, link, bottleneck })
    }
}
