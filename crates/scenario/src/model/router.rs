//! Routers that speak, and their parameters.

use lfn_units::Time;
#[cfg(test)]
use schemars::JsonSchema;
use serde::Serialize;

use crate::quantity::Text;

/// What a link tells the senders of the data that pass it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Router {
    /// Nothing.
    None(Silent),
    /// Its load in a code, for the laws `vcp` and `evcp`.
    Vcp(Vcp),
    /// By how much each flow should change its rate, for the law `xcp`.
    Xcp(Xcp),
    /// One rate for all flows, for the law `rcp`.
    Rcp(Rcp),
    /// The fair rate of the flows for which it is the bottleneck, for the law `jetmax`.
    #[serde(rename = "jetmax")]
    JetMax(JetMax),
}

/// No router.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields))]
pub struct Silent {}

/// The variable-structure congestion control protocol: load measured over 200ms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct Vcp {
    /// Share of the rate that counts as capacity, above 0, at most 1. Default 0.98.
    #[cfg_attr(test, schemars(range(max = 1), extend("exclusiveMinimum" = 0)))]
    pub gamma: f64,
    /// Whose details. Default "paper".
    pub compat: VcpCompat,
}

/// The explicit control protocol.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct Xcp {
    /// Gain of the spare rate, at least 0. Default 0.4.
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub alpha: f64,
    /// Gain of the queue that persists, at least 0. Default 0.226.
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub beta: f64,
    /// Share of the traffic that changes hands in an interval, at least 0, at most 1. Default 0.1.
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    pub gamma: f64,
}

/// The rate control protocol.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct Rcp {
    /// Gain of the spare rate, at least 0. Default 0.4.
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub alpha: f64,
    /// Gain of the queue, at least 0. Default 0.4.
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub beta: f64,
    /// Share of the rate to use, above 0, at most 1. Default 1.
    #[cfg_attr(test, schemars(range(max = 1), extend("exclusiveMinimum" = 0)))]
    pub gamma: f64,
}

/// JetMax, recovered from memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[cfg_attr(test, schemars(deny_unknown_fields, extend("required" = [])))]
pub struct JetMax {
    /// Share of the rate to use, above 0, at most 1. Default 0.95.
    #[cfg_attr(test, schemars(range(max = 1), extend("exclusiveMinimum" = 0)))]
    pub gamma: f64,
    /// From one fair rate to the next, 1ms to 1000s. Default "100ms".
    pub interval: Text<Time>,
}

/// Whose details of VCP's load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum VcpCompat {
    /// As the paper means it.
    Paper,
    /// As its author's code of 2006 has it: no memory of the queue, `gamma` steered towards a utilisation
    /// that depends on the rate, load in whole per cent.
    Author,
}
