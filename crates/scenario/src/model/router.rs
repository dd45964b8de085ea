//! Routers that speak, and their parameters.

#[cfg(test)]
use schemars::JsonSchema;
use serde::Serialize;

/// What a link tells the senders of the data that pass it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[cfg_attr(test, derive(JsonSchema))]
pub enum Router {
    /// Nothing.
    None(Silent),
    /// Its load in a code, for the laws `vcp` and `evcp`.
    Vcp(Vcp),
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
