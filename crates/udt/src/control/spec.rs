//! Which control drives a sender: `udt`, `udt:4.10`, or a law of the registry.

use std::fmt;
use std::str::FromStr;

use lfn_keys::nearest;
use lfn_law::{LawError, LawSpec, SlowStartKind};
use lfn_units::Time;

use super::{CongestionControl, LawControl, Native, NativeConfig, VARIANTS};

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
    #[error("law {0} needs delivery-rate samples, but UDT's ACKs give none; {ALLOWED}")]
    Rates(String),
}

/// A congestion control by name.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlSpec {
    /// UDT's own, a variant of [`VARIANTS`].
    Native(&'static str, NativeConfig),
    /// A law.
    Law(LawSpec),
}

impl Default for ControlSpec {
    fn default() -> Self {
        ControlSpec::Native(VARIANTS[0].0, VARIANTS[0].1)
    }
}

impl ControlSpec {
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
            ControlSpec::Native(_, config) => Box::new(Native::new(*config, seed, now)),
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

fn law(text: &str) -> Result<ControlSpec, ControlError> {
    text.parse::<LawSpec>()?.try_into()
}

impl FromStr for ControlSpec {
    type Err = ControlError;

    fn from_str(text: &str) -> Result<Self, ControlError> {
        let Some(variant) = text.strip_prefix("udt") else { return law(text) };
        let names = || VARIANTS.iter().map(|(name, _)| *name);
        match variant.strip_prefix(':') {
            None if variant.is_empty() => Ok(ControlSpec::default()),
            None => law(text),
            Some(variant) => {
                let found = VARIANTS.iter().find(|(name, _)| *name == variant);
                found.map(|&(name, config)| ControlSpec::Native(name, config)).ok_or_else(|| {
                    let allowed = names().collect::<Vec<_>>().join(", ");
                    let nearest = nearest(variant, names());
                    LawError::UnknownVariant { law: "udt", got: variant.into(), nearest, allowed }.into()
                })
            }
        }
    }
}

impl fmt::Display for ControlSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlSpec::Native(variant, _) if *variant == VARIANTS[0].0 => f.write_str("udt"),
            ControlSpec::Native(variant, _) => write!(f, "udt:{variant}"),
            ControlSpec::Law(law) => law.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_by_name() {
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
