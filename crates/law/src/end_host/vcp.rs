//! VCP's end host (Xia, Subramanian, Stoica, Kalyanaraman, SIGCOMM 2005; where the paper is silent, the
//! first author's ns-2 code of 2006). laws/cards/vcp.md has the equations.

use lfn_header::vcp::Load;
use lfn_header::Header;

use super::convergence::{Convergence, BETA};
use super::{cwnd, set_cwnd, Episode};
use crate::{Ack, Config, Control, Law, Loss, RouterLaw, ACK_CWND_LIMITED, ACK_DUP, PARAMETERS, PROBES};

/// The routers' interval, t_rho.
const T_RHO_S: f64 = 0.2;
const T_RHO_NS: u64 = 200_000_000;
/// The interval at which a window grows by [`ALPHA`] a round trip, t_d (code).
const T_D_S: f64 = 0.1;
/// Multiplicative increase per t_rho: k (1 - 0.8)/0.8, k = 0.25.
const XI: f64 = 0.0625;
/// Most intervals t_rho for which one round trip makes up (code).
const MOST_INTERVALS: f64 = 2.5;
/// Additive increase in segments.
const ALPHA: f64 = 1.0;
/// RTT before the first sample (code).
const FIRST_RTT_S: f64 = 0.1;
/// The second timer is rounded up to this (code), the first is a multiple of it.
const TICK_NS: u64 = 10_000_000;
/// Limits of xi, the multiplicative increase, at windows of 1, 10, 100, ... segments (code).
const MI_LIMIT: [f64; 8] = [1.0, 0.5, 0.2, 0.1, 0.064, 0.044, 0.032, 0.024];
/// Limits of the additive increase per ACK at these windows (code).
const AI_LIMIT: [f64; 8] = [0.1, 0.06, 0.04, 0.02, 0.01, 0.006, 0.004, 0.002];

/// Where in the aftermath of a decrease the flow is, and until when.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Aftermath {
    None,
    /// One t_rho: the routers have not measured the smaller window yet.
    Freeze {
        until_ns: u64,
    },
    /// One RTT: their answer is under way.
    Increase {
        until_ns: u64,
    },
}

/// The action at an ACK.
enum Action {
    MultiplicativeIncrease,
    AdditiveIncrease,
    MultiplicativeDecrease,
    Freeze,
}

/// How additive increase depends on the RTT.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reference {
    /// (RTT/100 ms)^2, linear below 20 ms and above 500 ms (code).
    Td,
    /// (RTT/200 ms)^2 (paper, eq. 7 of EVCP's).
    TRho,
}

impl Reference {
    /// That of the variant.
    fn of(config: &Config) -> Reference {
        if config.variant == 0 {
            Reference::Td
        } else {
            Reference::TRho
        }
    }
}

#[derive(Debug)]
struct Vcp {
    reference: Reference,
    weight: f64,
    strict_freeze: bool,
    rtt_scaling: bool,
    convergence: Option<Convergence>,
    /// The code of the current ACK.
    told: Option<Load>,
    /// The code of the last ACK.
    load: Option<Load>,
    aftermath: Aftermath,
    episode: Episode,
    /// An RTT and a xi, and the multiplicative increase that they give. Without a queue the RTT stays, and
    /// the power costs more than the rest of an ACK.
    known: [f64; 3],
}

/// The law `vcp`; parameters: weight, strict_freeze, rtt_scaling.
pub(crate) fn new(config: &Config, values: &[f64; PARAMETERS], control: &mut Control) -> Box<dyn RouterLaw> {
    let [weight, strict_freeze, rtt_scaling, ..] = *values;
    Box::new(Vcp::new(Reference::of(config), [weight, strict_freeze, rtt_scaling], None, control))
}

/// The same with EVCP's convergence controller.
pub(super) fn with(
    config: &Config,
    convergence: Convergence,
    options: [f64; 3],
    control: &mut Control,
) -> Box<dyn RouterLaw> {
    Box::new(Vcp::new(Reference::of(config), options, Some(convergence), control))
}

impl Vcp {
    fn new(
        reference: Reference,
        [weight, strict_freeze, rtt_scaling]: [f64; 3],
        convergence: Option<Convergence>,
        control: &mut Control,
    ) -> Vcp {
        Vcp {
            reference,
            weight,
            strict_freeze: strict_freeze != 0.0,
            rtt_scaling: rtt_scaling != 0.0,
            convergence,
            told: None,
            load: None,
            aftermath: Aftermath::None,
            episode: Episode::none(control),
            known: [f64::NAN; 3],
        }
    }

    /// Multiplicative increase for each segment: (1 + xi)^(RTT/t_rho) a round trip.
    fn mi(&mut self, rtt_s: f64, cwnd: f64) -> f64 {
        // Only large windows meet the limit.
        let xi = if cwnd > 1e4 { XI.min(mi_limit(cwnd)) } else { XI };
        let intervals = if self.rtt_scaling { (rtt_s / T_RHO_S).min(MOST_INTERVALS) } else { 1.0 };
        if self.known[..2] != [rtt_s, xi] {
            self.known = [rtt_s, xi, libm::pow(1.0 + xi, intervals) - 1.0];
        }
        self.known[2]
    }

    /// Additive increase for each segment.
    fn ai(&self, rtt_s: f64, cwnd: f64) -> f64 {
        let a_round = if self.rtt_scaling { self.alpha(rtt_s) } else { ALPHA };
        let increase = a_round * self.weight / cwnd;
        // Only small windows meet the limit.
        if increase > AI_LIMIT[7] {
            increase.min(ai_limit(cwnd))
        } else {
            increase
        }
    }

    fn alpha(&self, rtt_s: f64) -> f64 {
        let square = |x: f64| x * x;
        ALPHA
            * match (self.reference, rtt_s / T_D_S) {
                (Reference::TRho, _) => square(rtt_s / T_RHO_S),
                (Reference::Td, d) if d <= 0.2 => 0.2 * d,
                (Reference::Td, d) if d <= 5.0 => square(d),
                (Reference::Td, d) => (d - 5.0) + 25.0,
            }
    }

    fn action(&self, load: Load) -> Action {
        let locked = self.convergence.as_ref().is_some_and(Convergence::is_locked);
        match (self.aftermath, load) {
            (Aftermath::Freeze { .. }, _) if self.strict_freeze => Action::Freeze,
            (Aftermath::Increase { .. }, _) if self.strict_freeze => Action::AdditiveIncrease,
            (_, Load::Low) if !locked => Action::MultiplicativeIncrease,
            (_, Load::Low | Load::High) | (Aftermath::Increase { .. }, Load::Overload) => {
                Action::AdditiveIncrease
            }
            (Aftermath::Freeze { .. }, Load::Overload) => Action::Freeze,
            (Aftermath::None, Load::Overload) => Action::MultiplicativeDecrease,
        }
    }

    fn decrease(&mut self, now_ns: u64, control: &mut Control) {
        let window = cwnd(control);
        let left = self.convergence.as_mut().map_or(BETA, |convergence| convergence.decrease(window));
        set_cwnd(control, left * window);
        self.aftermath = Aftermath::Freeze { until_ns: now_ns + T_RHO_NS };
    }

    /// Timers: a freeze is followed by one RTT of increase.
    fn pass(&mut self, now_ns: u64, rtt_s: f64) {
        if let Aftermath::Freeze { until_ns } = self.aftermath {
            if until_ns <= now_ns {
                let rtt_ns = ((rtt_s * 1e9) as u64).next_multiple_of(TICK_NS);
                self.aftermath = Aftermath::Increase { until_ns: until_ns + rtt_ns };
            }
        }
        if let Aftermath::Increase { until_ns } = self.aftermath {
            if until_ns <= now_ns {
                self.aftermath = Aftermath::None;
            }
        }
    }
}

/// The cap of the multiplicative increase: between decades linear in the logarithm.
fn mi_limit(cwnd: f64) -> f64 {
    let (low, high, x) = decade(&MI_LIMIT, cwnd);
    low + (high - low) * x
}

/// The cap of the additive increase per ACK: between decades a power.
fn ai_limit(cwnd: f64) -> f64 {
    let (low, high, x) = decade(&AI_LIMIT, cwnd);
    low * libm::pow(high / low, x)
}

/// The values at both ends of the decade of a window, and how far it is from the first, 0 to 1.
fn decade(table: &[f64; 8], cwnd: f64) -> (f64, f64, f64) {
    let log = libm::log10(cwnd).clamp(0.0, 7.0);
    let low = (log as usize).min(6);
    (table[low], table[low + 1], log - low as f64)
}

impl RouterLaw for Vcp {
    fn header(&mut self, _control: &Control, _wire_bytes: u32) -> Header {
        Header::Vcp(Load::Low)
    }

    fn on_header(&mut self, header: Header, _control: &mut Control) {
        if let Header::Vcp(load) = header {
            self.told = Some(load);
        }
    }

    /// Acts on ACKs that advance and bring a code.
    fn on_sample(&mut self, ack: &Ack, control: &mut Control) {
        let Some(load) = self.told.take() else { return };
        self.load = Some(load);
        if ack.flags & ACK_DUP != 0 || self.episode.recovering {
            return;
        }
        let rtt_s = if ack.srtt_ns > 0 { ack.srtt_ns as f64 * 1e-9 } else { FIRST_RTT_S };
        self.pass(ack.now_ns, rtt_s);
        let window = cwnd(control);
        let increase = match self.action(load) {
            Action::MultiplicativeDecrease => return self.decrease(ack.now_ns, control),
            Action::Freeze => return,
            Action::MultiplicativeIncrease => self.mi(rtt_s, window),
            Action::AdditiveIncrease => self.ai(rtt_s, window),
        };
        // A window that is not in use shows nothing of what it would do.
        if ack.flags & ACK_CWND_LIMITED != 0 {
            set_cwnd(control, window + increase * f64::from(ack.acked));
        }
    }
}

impl Law for Vcp {
    fn on_loss(&mut self, loss: &Loss, control: &mut Control) {
        if let Some(convergence) = &mut self.convergence {
            convergence.reset();
        }
        self.episode.begin(loss, control);
    }

    fn on_open(&mut self, _ack: &Ack, control: &mut Control) {
        self.episode.end(control);
    }

    fn on_undo(&mut self, control: &mut Control) {
        self.episode.end(control);
    }

    fn probe(&self, _control: &Control, out: &mut [u64; PROBES]) {
        out[0] = self.load.map_or(0, |load| load as u64);
        if let Some(convergence) = &self.convergence {
            convergence.probe(&mut out[1..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vcp(reference: Reference) -> Vcp {
        Vcp::new(reference, [1.0, 0.0, 1.0], None, &mut Control::new(2))
    }

    fn close(got: f64, want: f64, digits: i32) {
        assert!((got - want).abs() <= 0.5 * 10f64.powi(-digits) * 1.0001, "{got} for {want}");
    }

    #[test]
    fn increase_by_rtt() {
        let xi = [0.00608, 0.01527, 0.02455, 0.03078, 0.0625, 0.12891, 0.16365, 0.16365];
        for (rtt_s, xi) in [0.02, 0.05, 0.08, 0.1, 0.2, 0.4, 0.5, 1.0].into_iter().zip(xi) {
            close(vcp(Reference::Td).mi(rtt_s, 100.0), xi, 5);
        }
        let alpha = [0.02, 0.04, 0.16, 0.25, 0.64, 1.0, 4.0, 25.0, 30.0];
        for (rtt_s, alpha) in [0.01, 0.02, 0.04, 0.05, 0.08, 0.1, 0.2, 0.5, 1.0].into_iter().zip(alpha) {
            close(vcp(Reference::Td).alpha(rtt_s), alpha, 9);
        }
        for (rtt_s, alpha) in [(0.1, 0.25), (0.2, 1.0), (1.0, 25.0)] {
            close(vcp(Reference::TRho).alpha(rtt_s), alpha, 9);
        }
    }

    #[test]
    fn limits_by_window() {
        for (cwnd, limit) in [(5.0, 0.6505), (8333.0, 0.0669), (2e4, 0.0580), (83333.0, 0.0456), (1e9, 0.024)]
        {
            close(mi_limit(cwnd), limit, 4);
        }
        for (cwnd, limit) in [(5.0, 0.06997), (8333.0, 0.01056), (1.0, 0.1), (1e9, 0.002)] {
            close(ai_limit(cwnd), limit, 5);
        }
    }

    #[test]
    fn start_up_takes_29_seconds_at_any_rtt() {
        for rtt_s in [0.02, 0.1, 0.2, 0.5] {
            let rounds = 6533f64.ln() / (1.0 + vcp(Reference::Td).mi(rtt_s, 100.0)).ln();
            close(rounds * rtt_s, 28.98, 2);
        }
    }

    #[test]
    fn a_cycle_takes_104_seconds() {
        // From 7/8 of the window of 1 Gbit/s and 100 ms to all of it.
        let seconds = |reference| 0.125 * 8333.0 / vcp(reference).alpha(0.1) * 0.1;
        close(seconds(Reference::Td), 104.16, 1);
        close(seconds(Reference::TRho), 416.65, 1);
    }
}
