//! The periodic course of one flow, in numbers alone, to screen many paths.

use super::{course, repeat, Detail, Epoch, FluidError, Path};
use crate::LawSpec;

/// Epochs of a course that does not repeat.
const MOST_EPOCHS: usize = 40;
/// Round trips after which a law that may stop losing is asked whether its load is steady.
const QUIET_ROUNDS: f64 = 128.0;
/// ACKs in a round trip times the window. Reno needs half as many for an epoch.
const ACKS_TIMES_WINDOW: f64 = 8_000.0;
/// ACKs of an epoch before they become fewer.
const FINE_ACKS: u64 = 8_000;

/// One flow alone over a link that it fills; means over its last epochs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sawtooth {
    /// From loss to loss; infinite without losses.
    pub period_s: f64,
    /// Window before a loss, in segments.
    pub window_before: f64,
    /// Window after it.
    pub window_after: f64,
    /// Mean over time.
    pub mean_window: f64,
    /// Mean over packets.
    pub mean_rtt_s: f64,
    /// Share of the link.
    pub utilization: f64,
    /// Losses over packets.
    pub loss_events_per_packet: f64,
    /// Segments a round trip at the loss.
    pub growth: f64,
}

impl Sawtooth {
    fn of(epochs: &[Epoch], rate_per_s: f64) -> Sawtooth {
        let n = epochs.len() as f64;
        let mean = |of: fn(&Epoch) -> f64| epochs.iter().map(of).sum::<f64>() / n;
        let losses = epochs.iter().filter(|epoch| epoch.lost).count() as f64;
        let (seconds, packets) = (mean(|epoch| epoch.end_s - epoch.start_s), mean(|epoch| epoch.packets[0]));
        let window_s = mean(|epoch| epoch.window_s[0]);
        Sawtooth {
            period_s: n * seconds / losses,
            window_before: mean(|epoch| epoch.before[0]),
            window_after: mean(|epoch| epoch.after[0]),
            mean_window: window_s / seconds,
            mean_rtt_s: window_s / packets,
            utilization: packets / seconds / rate_per_s,
            loss_events_per_packet: losses / (n * packets),
            growth: mean(|epoch| epoch.growth[0]),
        }
    }
}

/// The sawtooth of one flow of `law` on a link of `rate_per_s` segments a second, a base RTT of `rtt_s` and a buffer of
/// `buffer` segments. ACKs come 16 times in a round trip, under a law with a loss signal twice where the window is large;
/// the course ends once its epochs repeat to a part in 200.
///
/// # Errors
/// As [`course`].
///
/// # Panics
/// Unless rate and RTT are above 0.
pub fn sawtooth(
    law: &LawSpec,
    rate_per_s: f64,
    rtt_s: f64,
    buffer: f64,
    alive: impl FnMut() -> bool,
) -> Result<Sawtooth, FluidError> {
    let is_loss_based = !matches!(law.family(), None | Some("delay" | "rate"));
    let acks_per_round = ACKS_TIMES_WINDOW / (rate_per_s * rtt_s + buffer);
    let acks_per_round = acks_per_round.clamp(2.0, Detail::FINE.acks_per_round);
    let path = Path {
        rate_per_s,
        buffer,
        base_rtts_s: vec![rtt_s],
        least_rtt: 1.0,
        segments_to_loss: f64::INFINITY,
        window_at_loss: f64::INFINITY,
        detail: Detail {
            acks_per_round: if is_loss_based { acks_per_round } else { Detail::FINE.acks_per_round },
            fine_acks: if is_loss_based { FINE_ACKS } else { u64::MAX },
            quiet_rounds: if is_loss_based { f64::INFINITY } else { QUIET_ROUNDS },
            is_brief: true,
        },
    };
    // A law with a delay signal takes the RTT that it sees first for that of an empty path.
    let full = rate_per_s * rtt_s + if is_loss_based { buffer } else { 0.0 };
    let found =
        course(std::slice::from_ref(law), &path, &[(0.999 * full).max(1.0)], MOST_EPOCHS, alive)?.epochs;
    let quiet = found.iter().rev().take_while(|epoch| !epoch.lost).count();
    let last = match quiet {
        // The first epoch without a loss is all the time until that was known.
        1.. => (quiet - 1).max(1),
        0 if repeat(&found) => 2,
        0 => (found.len() / 2).max(1),
    };
    Ok(Sawtooth::of(&found[found.len() - last..], rate_per_s))
}
