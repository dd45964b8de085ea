//! The ends of protocols in which routers speak. Their laws run in the simulator only, so they are
//! written in Rust, with floating point (basic operations and `libm`: the same bits on every machine).

pub(crate) mod evcp;
pub(crate) mod vcp;

use crate::{Control, MAX_CWND, ONE};

/// Sets a window in segments, within the bounds of every law.
fn set_cwnd(control: &mut Control, segments: f64) {
    control.cwnd = ((segments * ONE as f64) as u64).clamp(ONE, MAX_CWND);
}

/// The window in segments.
fn cwnd(control: &Control) -> f64 {
    control.cwnd as f64 / ONE as f64
}
