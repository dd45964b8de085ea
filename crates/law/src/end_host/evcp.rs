//! EVCP (Lu, Wang, Zhu): VCP with a convergence controller. laws/cards/evcp.md says what the paper leaves open.

use super::convergence::Convergence;
use super::vcp;
use crate::{Config, Control, RouterLaw, PARAMETERS};

/// The law `evcp`; parameters: n1, n2, s, w_low, beta_c, and those of `vcp`.
pub(crate) fn new(config: &Config, values: &[f64; PARAMETERS], control: &mut Control) -> Box<dyn RouterLaw> {
    let [n1, n2, s, w_low, beta_c, weight, strict_freeze, rtt_scaling] = *values;
    vcp::with(
        config,
        Convergence::new([n1, n2, s, w_low, beta_c]),
        [weight, strict_freeze, rtt_scaling],
        control,
    )
}
