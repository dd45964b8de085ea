//! Which laws there are, and how a text such as `hstcp:ns2` names one.

use crate::c::{CLaw, LawOps};
use crate::{Config, Control, Law, SlowStartKind};
use std::fmt;
use std::str::FromStr;

/// What the registry line, the header and the card of a law say.
#[derive(Debug)]
pub struct LawInfo {
    /// The name.
    pub name: &'static str,
    /// The heading of the card.
    pub title: &'static str,
    /// Variants; the first is the default.
    pub variants: &'static [&'static str],
    /// Where it runs: `sim`, `kernel`.
    pub targets: &'static [&'static str],
    /// What precedes it by default.
    pub slow_start: SlowStartKind,
    /// What ends its growth: `loss`, `delay`, `rate` or `ecn`.
    pub family: &'static str,
    /// All that it listens to, from the same names.
    pub signals: &'static [&'static str],
    /// What [`Law::probe`] writes.
    pub probes: &'static [Probe],
    /// [`Law::on_loss`] may set `ssthresh` above `cwnd`: it is an estimate of the path.
    pub ssthresh_is_estimate: bool,
    /// What the equations come from.
    pub source: &'static str,
    /// The card, in Markdown.
    pub card: &'static str,
    index: usize,
    ops: unsafe extern "C" fn() -> &'static LawOps,
}

/// A variable of a law's own.
#[derive(Debug)]
pub struct Probe {
    /// The name.
    pub name: &'static str,
    /// The value is what `probe` writes, divided by 2^scale.
    pub scale: u32,
}

include!(concat!(env!("OUT_DIR"), "/registry.rs"));

/// All laws, in the order of laws/REGISTRY.
pub fn registry() -> &'static [LawInfo] {
    REGISTRY
}

/// Okabe and Ito's colours without yellow and black, then four of like weight: on white and on dark pages.
const COLORS: [&str; 11] = [
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#AA4499", "#117733",
    "#6A5ACD", "#999933",
];
/// Matplotlib's names. Seven and eleven share no factor: 77 laws differ in colour or marker.
const MARKERS: [&str; 7] = ["o", "s", "^", "D", "v", "P", "X"];

impl LawInfo {
    /// The law's colour in plots, `#rrggbb`.
    pub fn color(&self) -> &'static str {
        COLORS[self.index % COLORS.len()]
    }

    /// The law's marker in plots, a name of matplotlib's.
    pub fn marker(&self) -> &'static str {
        MARKERS[self.index % MARKERS.len()]
    }

    /// The law with its default variant.
    pub fn default_spec(&'static self) -> LawSpec {
        LawSpec { info: self, variant: 0 }
    }

    /// The law with each of its variants.
    pub fn specs(&'static self) -> impl Iterator<Item = LawSpec> {
        (0..self.variants.len()).map(move |variant| LawSpec { info: self, variant })
    }
}

/// Why a text names no law.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LawError {
    /// No law has this name.
    #[error("no law {got:?}; did you mean {nearest:?}? laws: {allowed}")]
    UnknownLaw {
        /// The name.
        got: String,
        /// The law whose name is nearest.
        nearest: &'static str,
        /// All laws.
        allowed: String,
    },
    /// The law has no such variant.
    #[error("law {law} has no variant {got:?}; did you mean {nearest:?}? variants: {allowed}")]
    UnknownVariant {
        /// The law.
        law: &'static str,
        /// The variant.
        got: String,
        /// The variant whose name is nearest.
        nearest: &'static str,
        /// All its variants.
        allowed: String,
    },
    /// No slow start has this name.
    #[error("no slow start {got:?}; did you mean {nearest:?}? slow starts: {allowed}")]
    UnknownSlowStart {
        /// The name.
        got: String,
        /// The slow start whose name is nearest.
        nearest: &'static str,
        /// All slow starts.
        allowed: String,
    },
}

/// Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let replace = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The name nearest to `got` by edit distance; the first of equals.
///
/// # Panics
/// When there are no names.
pub fn nearest<'a>(got: &str, names: impl Iterator<Item = &'a str>) -> &'a str {
    names.min_by_key(|name| distance(got, name)).expect("there is at least one name")
}

/// A law and a variant of it: `hstcp`, `hstcp:ns2`.
#[derive(Clone, Copy)]
pub struct LawSpec {
    info: &'static LawInfo,
    variant: usize,
}

impl LawSpec {
    /// The law.
    pub fn info(&self) -> &'static LawInfo {
        self.info
    }

    /// The name of the variant.
    pub fn variant(&self) -> &'static str {
        self.info.variants[self.variant]
    }

    /// A new connection under this law. `config.variant` is set from the spec; `control` holds the
    /// initial window and threshold, which the law may change.
    pub fn build(&self, config: &Config, control: &mut Control) -> Box<dyn Law> {
        let config = Config { variant: self.variant as u32, ..*config };
        // SAFETY: the generated function takes nothing and returns a constant.
        let ops = unsafe { (self.info.ops)() };
        Box::new(CLaw::new(ops, &config, control))
    }
}

impl PartialEq for LawSpec {
    fn eq(&self, other: &Self) -> bool {
        (self.info.index, self.variant) == (other.info.index, other.variant)
    }
}

impl Eq for LawSpec {}

impl fmt::Debug for LawSpec {
    /// As the scenario names it: the registry's entry, card and all, would bury the rest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for LawSpec {
    /// The shortest text that parses to this spec.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info.name)?;
        if self.variant > 0 {
            write!(f, ":{}", self.variant())?;
        }
        Ok(())
    }
}

impl FromStr for LawSpec {
    type Err = LawError;

    fn from_str(text: &str) -> Result<Self, LawError> {
        let (name, variant) = text.split_once(':').map_or((text, None), |(n, v)| (n, Some(v)));
        let names = || REGISTRY.iter().map(|law| law.name);
        let info = REGISTRY.iter().find(|law| law.name == name).ok_or_else(|| LawError::UnknownLaw {
            got: name.into(),
            nearest: nearest(name, names()),
            allowed: names().collect::<Vec<_>>().join(", "),
        })?;
        let Some(variant) = variant else { return Ok(info.default_spec()) };
        let index = info.variants.iter().position(|&v| v == variant);
        let variant = index.ok_or_else(|| LawError::UnknownVariant {
            law: info.name,
            got: variant.into(),
            nearest: nearest(variant, info.variants.iter().copied()),
            allowed: info.variants.join(", "),
        })?;
        Ok(LawSpec { info, variant })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spec_prints_and_parses() {
        for spec in registry().iter().flat_map(LawInfo::specs) {
            assert_eq!(spec.to_string().parse(), Ok(spec));
            let full = format!("{}:{}", spec.info().name, spec.variant());
            assert_eq!(full.parse(), Ok(spec));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let error = "hstpc".parse::<LawSpec>().unwrap_err().to_string();
        assert!(
            error.starts_with("no law \"hstpc\"; did you mean \"hstcp\"? laws: reno, hstcp, "),
            "{error}"
        );
        assert_eq!(
            "hstcp:ns".parse::<LawSpec>().unwrap_err().to_string(),
            "law hstcp has no variant \"ns\"; did you mean \"ns2\"? variants: loglog, rfc, linux, ns2, converge"
        );
        assert!(matches!("".parse::<LawSpec>(), Err(LawError::UnknownLaw { .. })));
        assert!(matches!("reno:".parse::<LawSpec>(), Err(LawError::UnknownVariant { .. })));
    }
}
