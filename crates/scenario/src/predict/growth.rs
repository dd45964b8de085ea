//! How the windows of laws grow, and how they answer losses.

use lfn_header::Protocol;
use lfn_law::{LawInfo, LawSpec, SlowStartKind};

use crate::model::Flow;

/// Slow start may send twice what path and buffer hold before it detects a loss.
pub(crate) const OVERSHOOT: f64 = 2.0;
/// Packets before the first ACK of UDT.
const UDT_INITIAL_WINDOW: f64 = 16.0;
/// Below this round trip Hybla is Reno; above, no loss keeps its window near what the path holds.
const HYBLA_RTT_S: f64 = 0.025;
/// In slow start Hybla's window grows by 2^rho - 1 for each packet, with rho at most this.
const HYBLA_RHO_MAX: f64 = 16.0;
/// Up to this rho losses keep its window near what the path holds.
const HYBLA_RHO_BOUND: f64 = 4.0;
/// VCP and EVCP grow by (1 + xi)^2.5 - 1 for each packet at most, with xi = 0.0625.
const VCP_PER_PACKET: f64 = 0.17;

/// How the window of a flow grows on a path, and what ends that, besides its receiver, its demand and its host.
#[derive(Clone, Copy)]
pub(crate) struct Growth {
    /// The most that it grows by for each packet that arrives. Infinite where a router may ask for any window, and
    /// for prototypes.
    pub(crate) per_packet: f64,
    /// The most that it grows by in a round trip once losses have ended slow start, beyond one packet.
    pub(crate) per_round: f64,
    /// No loss is known to keep it near what the path holds.
    pub(crate) boundless: bool,
    /// It never grows by more than [`per_round`](Growth::per_round) in a round trip: no slow start.
    pub(crate) steady: bool,
}

impl Growth {
    /// Packets over twice a path that may be outstanding when a loss is known, as a share of [`OVERSHOOT`].
    pub(crate) fn beyond_doubling(self) -> f64 {
        if self.boundless || self.per_packet.is_infinite() {
            0.0
        } else {
            (self.per_packet - 1.0).max(0.0) / OVERSHOOT
        }
    }

    /// Of a law, or of UDT's own control. The law of a router protocol that no router speaks grows as Reno does.
    pub(crate) fn of(law: Option<&LawSpec>, first_rtt_s: f64, is_answered: bool) -> Growth {
        let one = Growth { per_packet: 1.0, per_round: 0.0, boundless: false, steady: false };
        let Some(law) = law else { return one };
        let name = law.info().map(|law| law.name);
        if name == Some("hybla") {
            if first_rtt_s <= HYBLA_RTT_S {
                return one;
            }
            let rho = first_rtt_s / HYBLA_RTT_S;
            // rho^2 a round trip, in congestion avoidance with a window of one packet.
            let per_packet = rho.min(HYBLA_RHO_MAX).exp2().max(rho * rho);
            return Growth {
                per_packet,
                per_round: rho * rho,
                boundless: rho > HYBLA_RHO_BOUND,
                steady: false,
            };
        }
        if law.header().is_some() && !is_answered {
            return Growth { per_round: 1.0, steady: true, ..one };
        }
        let per_packet = match law.header() {
            Some(Protocol::Vcp) => VCP_PER_PACKET,
            Some(_) => f64::INFINITY,
            None if name.is_none() => f64::INFINITY,
            None => 1.0,
        };
        Growth { per_packet, boundless: name.is_none(), ..one }
    }
}

/// Whether a law uses delivery-rate samples.
pub(crate) fn samples_rates(law: &LawSpec) -> bool {
    law.slow_start() == SlowStartKind::None
}

/// Packets that a flow may send before the first ACK. Hybla sends rho; where a router sets the window, no router has yet.
pub(crate) fn first_window(flow: &Flow, growth: Growth) -> f64 {
    let initial = flow.tcp.map_or(UDT_INITIAL_WINDOW, |tcp| tcp.initial_window.0 as f64);
    if growth.per_packet.is_finite() {
        initial.max(growth.per_packet)
    } else {
        initial
    }
}

/// Packets to which Careful Resume enlarges the window soon after, and which it sends in a round trip.
pub(crate) fn resumed(flow: &Flow) -> f64 {
    flow.tcp.and_then(|tcp| tcp.saved_window).map_or(0.0, |window| window.0 as f64 / 2.0)
}

/// The window from which growth begins.
pub(crate) fn initial_window(flow: &Flow, growth: Growth) -> f64 {
    first_window(flow, growth).max(resumed(flow))
}

/// Whether no loss of less than a fifth of the packets lowers the rate of a law. That of a router protocol that no router
/// speaks grows by a packet a round trip.
pub(crate) fn bears_losses(law: &LawSpec, growth: Growth) -> bool {
    law.header().is_some() && !growth.steady || law.info().is_some_and(|law| law.name == "bbr")
}

/// Whether a law takes at least a tenth off its window at each loss, or never raises it there.
pub(crate) fn gives_way_to_losses(law: &LawSpec) -> bool {
    if law.info().is_some_and(|info| info.name == "htcp-be") {
        return law.label() != "htcp-be:literal";
    }
    let gives_way = |law: &LawInfo| !law.ssthresh_is_estimate && law.family != "router" && law.name != "copa";
    !samples_rates(law) && law.info().is_some_and(gives_way)
}
