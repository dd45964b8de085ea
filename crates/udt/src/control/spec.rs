//! Which control drives a sender: `udt`, `udt:4.10`, or a law of the registry.

use std::fmt;
use std::str::FromStr;

use lfn_law::{registry, LawError, LawInfo, LawSpec, SlowStartKind};
use lfn_units::Time;

use super::{CongestionControl, LawControl, Native, NativeConfig};

const ALLOWED: &str = "allowed: udt, and laws that need neither routers nor rate samples";

/// Why a text names no control. Reads `what was found; what is allowed`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ControlError {
    /// It names no law.
    #[error(transparent)]
    Law(#[from] LawError),
    /// The law needs routers with its protocol.
    #[error(
        "law {0} needs routers with its protocol, but UDT's packets do not carry their header; {ALLOWED}"
    )]
    Routers(String),
    /// The law needs delivery-rate samples.
    #[error(
        "law {0} needs delivery-rate samples, but UDT's ACKs are cumulative and 10 ms apart: after a loss they would \
         show no rate. Where packets are lost at random use htcp-be:hold, or TCP with {0}; {ALLOWED}"
    )]
    Rates(String),
}

/// A congestion control by name.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlSpec {
    /// UDT's own: the index of its variant in the registry.
    Native(usize),
    /// A law.
    Law(LawSpec),
}

impl Default for ControlSpec {
    fn default() -> Self {
        ControlSpec::Native(0)
    }
}

impl ControlSpec {
    /// The variant of UDT's own, if it is that.
    pub fn native(&self) -> Option<NativeConfig> {
        match self {
            ControlSpec::Native(variant) => Some(NativeConfig::of(*variant)),
            ControlSpec::Law(_) => None,
        }
    }

    /// The law, unless it is UDT's own.
    pub fn law(&self) -> Option<&LawSpec> {
        match self {
            ControlSpec::Native(..) => None,
            ControlSpec::Law(law) => Some(law),
        }
    }

    /// Its name in results.
    pub fn label(&self) -> String {
        self.law().map_or_else(|| self.to_string(), |law| format!("udt/{}", law.label()))
    }

    /// A control for a connection that begins at `now`; `seed` is that of its draws.
    pub fn build(&self, mss_bytes: u32, now: Time, seed: u64) -> Box<dyn CongestionControl> {
        match self {
            ControlSpec::Native(variant) => Box::new(Native::new(NativeConfig::of(*variant), seed, now)),
            ControlSpec::Law(law) => Box::new(LawControl::new(law, law.slow_start(), mss_bytes, now)),
        }
    }
}

impl TryFrom<LawSpec> for ControlSpec {
    type Error = ControlError;

    fn try_from(law: LawSpec) -> Result<Self, ControlError> {
        if law.header().is_some() {
            Err(ControlError::Routers(law.label()))
        } else if law.slow_start() == SlowStartKind::None {
            Err(ControlError::Rates(law.label()))
        } else {
            Ok(ControlSpec::Law(law))
        }
    }
}

impl FromStr for ControlSpec {
    type Err = ControlError;

    fn from_str(text: &str) -> Result<Self, ControlError> {
        match LawInfo::named(text)? {
            (law, variant) if law.is_udt() => Ok(ControlSpec::Native(variant)),
            _ => text.parse::<LawSpec>()?.try_into(),
        }
    }
}

/// UDT's own control in the registry.
fn native() -> &'static LawInfo {
    registry().iter().find(|law| law.is_udt()).expect("laws/REGISTRY has UDT's own control")
}

impl fmt::Display for ControlSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlSpec::Native(0) => f.write_str(native().name),
            ControlSpec::Native(variant) => write!(f, "{}:{}", native().name, native().variants[*variant]),
            ControlSpec::Law(law) => law.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_by_name() {
        for variant in native().variants {
            let spec: ControlSpec = format!("udt:{variant}").parse().unwrap();
            assert!(spec.native().is_some() && spec.to_string().parse() == Ok(spec), "{variant}");
        }
        for name in ["udt", "udt:compat", "udt:3.0", "cubic", "hstcp:ns2"] {
            assert_eq!(name.parse::<ControlSpec>().unwrap().to_string(), name);
        }
        let error = |name: &str| name.parse::<ControlSpec>().unwrap_err().to_string();
        assert!(error("udt:4.12").starts_with("law udt has no variant \"4.12\"; did you mean \"4.1"));
        assert!(error("udp").starts_with("no law \"udp\""));
        assert!(error("vcp").contains("needs routers with its protocol, but UDT's packets do not carry their header; allowed: udt, and laws"));
        assert!(error("bbr").contains("delivery-rate samples"));
    }
}
