//! Which laws there are, and how a text such as `hstcp:ns2` names one.

use crate::c::LawOps;
use crate::placed::{BoxedLaw, PlacedLaw};
use crate::prototype::{Build, Prototype, STAMP};
use crate::{Config, Control, RouterLaw, SlowStartKind, Stack, StackSetup, PARAMETERS, PARAMETER_ONE};
use lfn_header::Protocol;
use lfn_keys::nearest;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The contents of a law's registry line, header and card.
#[derive(Debug)]
pub struct LawInfo {
    /// The name.
    pub name: &'static str,
    /// The heading of the card.
    pub title: &'static str,
    /// Variants; the first is the default.
    pub variants: &'static [&'static str],
    /// Other names of the default variant with one parameter set.
    pub aliases: &'static [Alias],
    /// Where it runs: `sim`, `kernel`.
    pub targets: &'static [&'static str],
    /// Its default slow start.
    pub slow_start: SlowStartKind,
    /// The signal that ends its growth: `loss`, `delay`, `rate`, `ecn` or `router`.
    pub family: &'static str,
    /// All that it listens to, from the same names.
    pub signals: &'static [&'static str],
    /// Values that [`crate::Law::probe`] writes.
    pub probes: &'static [Probe],
    /// [`crate::Law::on_loss`] may set `ssthresh` above `cwnd`: it is an estimate of the path.
    pub ssthresh_is_estimate: bool,
    /// The window limits what it has in flight. Else it sends at a rate, and `cwnd` only bounds what a broken path
    /// swallows.
    pub keeps_window: bool,
    /// It answers the extent of marks, and its data are ECT(1) where they are ECN-capable (RFC 9331).
    pub is_l4s: bool,
    /// It draws random numbers, so that runs with other seeds differ.
    pub draws: bool,
    /// The source of the equations.
    pub source: &'static str,
    /// The card, in Markdown.
    pub card: &'static str,
    /// Numbers that a text may set, at most [`PARAMETERS`].
    pub parameters: &'static [Parameter],
    /// The header of its packets, for routers with this protocol.
    pub header: Option<Protocol>,
    index: usize,
    code: Code,
}

/// Begins a connection: the values are those of [`LawInfo::parameters`].
type NewRustLaw = fn(&Config, &[f64; PARAMETERS], &mut Control) -> Box<dyn RouterLaw>;

/// Where the law is written.
#[derive(Debug)]
enum Code {
    C(unsafe extern "C" fn() -> &'static LawOps),
    Rust(NewRustLaw),
    /// UDT's own control, in `lfn_udt`.
    Udt,
}

/// A number that a law takes.
#[derive(Debug)]
pub struct Parameter {
    /// The name.
    pub name: &'static str,
    /// The default.
    pub default: f64,
    /// The least value allowed.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// Only whole numbers make sense.
    pub whole: bool,
}

/// A name of the default variant with a parameter set.
#[derive(Debug)]
pub struct Alias {
    /// The name.
    pub name: &'static str,
    /// The parameter's index in [`LawInfo::parameters`].
    parameter: usize,
    value: f64,
}

/// A variable of a law's own.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The name.
    pub name: Cow<'static, str>,
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
    /// Colour (`#rrggbb`) and marker (a name of matplotlib's) of the law in plots.
    pub fn look(&self) -> (&'static str, &'static str) {
        (COLORS[self.index % COLORS.len()], MARKERS[self.index % MARKERS.len()])
    }

    /// Whether it is a header in C.
    pub fn is_c(&self) -> bool {
        matches!(self.code, Code::C(_))
    }

    /// Whether it drives UDT alone, so that no [`LawSpec`] names it.
    pub fn is_udt(&self) -> bool {
        matches!(self.code, Code::Udt)
    }

    /// The law that a text such as `hstcp:ns2` names, and the index of its variant.
    ///
    /// # Errors
    /// As for a [`LawSpec`], which does not name laws that drive UDT alone.
    pub fn named(text: &str) -> Result<(&'static LawInfo, usize), LawError> {
        text.parse::<Registered>().map(|law| (law.info, law.variant))
    }

    fn spec(&'static self, variant: usize) -> Registered {
        let mut values = [0.0; PARAMETERS];
        for (value, parameter) in values.iter_mut().zip(self.parameters) {
            *value = parameter.default;
        }
        Registered { info: self, variant, values }
    }

    /// Names that may follow the law's: its variants, then their aliases.
    pub fn variant_names(&self) -> impl Iterator<Item = &'static str> {
        self.variants.iter().copied().chain(self.aliases.iter().map(|alias| alias.name))
    }

    /// The law with each of its variants; none if it drives UDT alone.
    pub fn specs(&'static self) -> impl Iterator<Item = LawSpec> {
        let variants = if self.is_udt() { 0 } else { self.variants.len() };
        (0..variants).map(move |variant| LawSpec(Arc::new(Spec::Registered(self.spec(variant)))))
    }
}

/// Why a text names no law.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LawError {
    /// No law has this name.
    #[error("no law {got:?}; {}laws: {allowed}", near(nearest))]
    UnknownLaw {
        /// The name.
        got: String,
        /// The law whose name is near.
        nearest: Option<&'static str>,
        /// All laws.
        allowed: String,
    },
    /// The law has no such variant.
    #[error("law {law} has no variant {got:?}; {}variants: {allowed}", near(nearest))]
    UnknownVariant {
        /// The law.
        law: &'static str,
        /// The variant.
        got: String,
        /// The variant whose name is near.
        nearest: Option<&'static str>,
        /// All its variants.
        allowed: String,
    },
    /// The law cannot drive a TCP sender.
    #[error("law {0} drives UDT alone; allowed: the name of another law")]
    UdtAlone(&'static str),
    /// The law has no such parameter.
    #[error("law {law} has no parameter {got:?}; {}", match allowed.as_str() {
        "" => "it has none".into(),
        allowed => format!("{}parameters: {allowed}", near(nearest)),
    })]
    UnknownParameter {
        /// The law.
        law: &'static str,
        /// The parameter.
        got: String,
        /// The parameter whose name is near.
        nearest: Option<&'static str>,
        /// All its parameters.
        allowed: String,
    },
    /// A parameter that is no number of its range.
    #[error("{law}: {parameter}={got}; allowed: {allowed}")]
    BadParameter {
        /// The law.
        law: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        got: String,
        /// The allowed values.
        allowed: String,
    },
    /// No slow start has this name.
    #[error("no slow start {got:?}; {}slow starts: {allowed}", near(nearest))]
    UnknownSlowStart {
        /// The name.
        got: String,
        /// The slow start whose name is near.
        nearest: Option<&'static str>,
        /// All slow starts.
        allowed: String,
    },
}

/// The beginning of a hint: the nearest name, if one is near.
fn near(name: &Option<&'static str>) -> String {
    name.map_or(String::new(), |name| format!("did you mean {name:?}? "))
}

/// A law, a variant of it, and the values of its parameters: `hstcp`, `hstcp:ns2`, `vcp:weight=2`. Or a
/// prototype.
#[derive(Clone)]
pub struct LawSpec(Arc<Spec>);

enum Spec {
    Registered(Registered),
    Prototype(Prototype),
}

/// A law and variant of the registry, with parameters.
#[derive(Clone, Copy)]
struct Registered {
    info: &'static LawInfo,
    variant: usize,
    values: [f64; PARAMETERS],
}

impl LawSpec {
    /// The law's line of the registry; none for a prototype.
    pub fn info(&self) -> Option<&'static LawInfo> {
        match &*self.0 {
            Spec::Registered(law) => Some(law.info),
            Spec::Prototype(_) => None,
        }
    }

    /// The prototype, if it is one.
    pub fn prototype(&self) -> Option<&Prototype> {
        match &*self.0 {
            Spec::Registered(_) => None,
            Spec::Prototype(prototype) => Some(prototype),
        }
    }

    /// Its name in results, in which a prototype is marked as such.
    pub fn label(&self) -> String {
        self.prototype().map_or_else(|| self.to_string(), |prototype| format!("{}{STAMP}", prototype.name))
    }

    /// The signal that ends its growth, as in [`LawInfo::family`]; unknown for a prototype.
    pub fn family(&self) -> Option<&'static str> {
        self.info().map(|law| law.family)
    }

    /// Whether its data are ECT(1) by default ([`LawInfo::is_l4s`]).
    pub fn is_l4s(&self) -> bool {
        self.info().is_some_and(|law| law.is_l4s)
    }

    /// Whether the window limits what it has in flight ([`LawInfo::keeps_window`]).
    pub fn keeps_window(&self) -> bool {
        self.info().is_none_or(|law| law.keeps_window)
    }

    /// The header of its packets, for routers with this protocol.
    pub fn header(&self) -> Option<Protocol> {
        self.info().and_then(|law| law.header)
    }

    /// Whether it is a whole stack, which stands where a law may.
    pub fn is_stack(&self) -> bool {
        self.prototype().is_some_and(|prototype| prototype.is_stack)
    }

    /// Both ends of a new connection of a whole stack.
    ///
    /// # Panics
    /// For a law, and a stack that cannot be run.
    pub fn stack(&self, setup: &StackSetup) -> Box<dyn Stack> {
        let Some(Build::Stack(build)) = self.prototype().and_then(|stack| stack.build.as_ref()) else {
            panic!("its user has seen that it can be run as a stack");
        };
        build(setup)
    }

    /// Its default slow start.
    pub fn slow_start(&self) -> SlowStartKind {
        match &*self.0 {
            Spec::Registered(law) => law.info.slow_start,
            Spec::Prototype(prototype) => prototype.slow_start,
        }
    }

    /// Values that [`crate::Law::probe`] writes.
    pub fn probes(&self) -> &[Probe] {
        match &*self.0 {
            Spec::Registered(law) => law.info.probes,
            Spec::Prototype(prototype) => &prototype.probes,
        }
    }

    /// Whether the law needs [`crate::ACK_PREDICTED`].
    pub fn asks_for_prediction(&self) -> bool {
        match &*self.0 {
            Spec::Registered(law) => law.asks_for_prediction(),
            Spec::Prototype(_) => false,
        }
    }

    /// A new connection under this law. `config.variant` is set from the spec; `control` holds the
    /// initial window and threshold, which the law may change.
    ///
    /// # Panics
    /// For a prototype that cannot be run.
    pub fn build(&self, config: &Config, control: &mut Control) -> PlacedLaw {
        match &*self.0 {
            Spec::Registered(law) => law.build(config, control),
            Spec::Prototype(prototype) => {
                let Some(Build::Law(build)) = &prototype.build else {
                    panic!("its user has seen that it can be run as a law");
                };
                build(config, control)
            }
        }
    }
}

impl From<Prototype> for LawSpec {
    fn from(prototype: Prototype) -> LawSpec {
        LawSpec(Arc::new(Spec::Prototype(prototype)))
    }
}

impl Registered {
    fn asks_for_prediction(&self) -> bool {
        // SAFETY: see `build`.
        matches!(self.info.code, Code::C(ops) if unsafe { ops() }.predicted >> self.variant & 1 != 0)
    }

    fn build(&self, config: &Config, control: &mut Control) -> PlacedLaw {
        let mut parameters = [0; PARAMETERS];
        for (parameter, value) in parameters.iter_mut().zip(&self.values[..self.info.parameters.len()]) {
            *parameter = (value * PARAMETER_ONE as f64).round() as u64;
        }
        let config = Config { variant: self.variant as u32, parameters, ..*config };
        match self.info.code {
            Code::C(ops) => {
                // SAFETY: the generated function takes nothing and returns a constant.
                let ops = unsafe { ops() };
                PlacedLaw::c(ops, &config, control)
            }
            Code::Rust(new) => BoxedLaw::Router(new(&config, &self.values, control)).into(),
            Code::Udt => unreachable!("no LawSpec names it"),
        }
    }

    /// Sets the variant from its name or an alias.
    fn choose(&mut self, name: &str) -> Result<(), LawError> {
        if let Some(index) = self.info.variants.iter().position(|&known| known == name) {
            self.variant = index;
        } else if let Some(alias) = self.info.aliases.iter().find(|alias| alias.name == name) {
            self.values[alias.parameter] = alias.value;
        } else {
            return Err(LawError::UnknownVariant {
                law: self.info.name,
                got: name.into(),
                nearest: nearest(name, self.info.variant_names()),
                allowed: self.info.variant_names().collect::<Vec<_>>().join(", "),
            });
        }
        Ok(())
    }

    /// The alias that names this variant with these values.
    fn alias(&self) -> Option<&'static Alias> {
        let is_this = |alias: &&Alias| {
            let mut named = self.info.spec(0);
            named.values[alias.parameter] = alias.value;
            (self.variant, self.values) == (0, named.values)
        };
        self.info.aliases.iter().find(is_this)
    }

    /// Sets a parameter from `name=value`; `given` has a bit for each that was set before.
    fn set(&mut self, text: &str, given: &mut u64) -> Result<(), LawError> {
        let law = self.info.name;
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let names = || self.info.parameters.iter().map(|parameter| parameter.name);
        let index = names().position(|known| known == name).ok_or_else(|| LawError::UnknownParameter {
            law,
            got: name.into(),
            nearest: nearest(name, names()),
            allowed: names().collect::<Vec<_>>().join(", "),
        })?;
        let Parameter { name, low, high, whole, .. } = self.info.parameters[index];
        if *given >> index & 1 == 1 {
            let allowed = "each parameter once".into();
            return Err(LawError::BadParameter { law, parameter: name, got: value.into(), allowed });
        }
        *given |= 1 << index;
        let number = value.parse().ok().filter(|x| (low..=high).contains(x));
        self.values[index] = number.filter(|x| !whole || x % 1.0 == 0.0).ok_or_else(|| {
            let kind = if whole { "a whole number" } else { "a number" };
            let allowed = format!("{kind} from {low} to {high}");
            LawError::BadParameter { law, parameter: name, got: value.into(), allowed }
        })?;
        Ok(())
    }
}

impl PartialEq for LawSpec {
    fn eq(&self, other: &Self) -> bool {
        match (&*self.0, &*other.0) {
            (Spec::Registered(a), Spec::Registered(b)) => {
                (a.info.index, a.variant, a.values) == (b.info.index, b.variant, b.values)
            }
            (Spec::Prototype(a), Spec::Prototype(b)) => (&a.name, &a.source) == (&b.name, &b.source),
            _ => false,
        }
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
    /// The shortest text that parses to this spec, for a prototype [`Prototype::named`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let law = match &*self.0 {
            Spec::Registered(law) => law,
            Spec::Prototype(prototype) => return prototype.fmt(f),
        };
        f.write_str(law.info.name)?;
        if let Some(alias) = law.alias() {
            return write!(f, ":{}", alias.name);
        }
        if law.variant > 0 {
            write!(f, ":{}", law.info.variants[law.variant])?;
        }
        for (parameter, value) in law.info.parameters.iter().zip(law.values) {
            if value != parameter.default {
                write!(f, ":{}={value}", parameter.name)?;
            }
        }
        Ok(())
    }
}

impl FromStr for Registered {
    type Err = LawError;

    fn from_str(text: &str) -> Result<Self, LawError> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let names = || REGISTRY.iter().map(|law| law.name);
        let info = REGISTRY.iter().find(|law| law.name == name).ok_or_else(|| LawError::UnknownLaw {
            got: name.into(),
            nearest: nearest(name, names()),
            allowed: names().collect::<Vec<_>>().join(", "),
        })?;
        let mut spec = info.spec(0);
        let mut given = 0;
        for (place, part) in parts.enumerate() {
            if place > 0 || part.contains('=') {
                spec.set(part, &mut given)?;
                continue;
            }
            spec.choose(part)?;
        }
        Ok(spec)
    }
}

impl FromStr for LawSpec {
    type Err = LawError;

    fn from_str(text: &str) -> Result<Self, LawError> {
        let law: Registered = text.parse()?;
        match law.info.code {
            Code::Udt => Err(LawError::UdtAlone(law.info.name)),
            Code::C(_) | Code::Rust(_) => Ok(LawSpec(Arc::new(Spec::Registered(law)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spec_prints_and_parses() {
        for spec in registry().iter().flat_map(LawInfo::specs) {
            assert_eq!(spec.to_string().parse(), Ok(spec));
        }
        for law in registry() {
            let first = LawInfo::named(&format!("{}:{}", law.name, law.variants[0])).unwrap();
            assert_eq!((first.0.name, first.1), (law.name, 0));
        }
        assert_eq!("udt:3.0".parse::<LawSpec>(), Err(LawError::UdtAlone("udt")));
        assert_eq!(LawInfo::named("udt:3.0").map(|(law, variant)| (law.is_udt(), variant)), Ok((true, 3)));
    }

    #[test]
    fn an_alias_is_the_default_variant_with_a_value() {
        let spec = |text: &str| text.parse::<LawSpec>().unwrap();
        for (text, printed) in [
            ("cw-hstcp:c5", "cw-hstcp:c5"),
            ("cw-hstcp:c=5", "cw-hstcp:c5"),
            ("cw-hstcp:paper:c=20.0", "cw-hstcp:c20"),
            ("cw-hstcp:c5:c=8", "cw-hstcp:c=8"),
            ("cw-hstcp:c5:c=10", "cw-hstcp"),
            ("cw-hstcp:paper:c=8", "cw-hstcp:c=8"),
            ("cw-hstcp:floor:c=5", "cw-hstcp:floor:c=5"),
        ] {
            assert_eq!(spec(text).to_string(), printed, "{text}");
            assert_eq!(spec(printed), spec(text), "{text}");
        }
        assert_eq!(spec("cw-hstcp:c=5"), spec("cw-hstcp:c5"));
        let error = |text: &str| text.parse::<LawSpec>().unwrap_err().to_string();
        assert_eq!(error("cw-hstcp:c=0"), "cw-hstcp: c=0; allowed: a number from 0.1 to 1000");
        assert_eq!(
            error("cw-hstcp:floor:c5"),
            "law cw-hstcp has no parameter \"c5\"; did you mean \"c\"? parameters: c"
        );
        assert!(error("cw-hstcp:c6")
            .contains("did you mean \"c5\"? variants: paper, floor, above, literal, unpaced, c5, c20"));
        assert_eq!(error("cubic:c=8"), "law cubic has no parameter \"c\"; it has none");
    }

    #[test]
    fn a_prototype_is_known_by_name_and_source() {
        let named = |text: &str| Prototype::named(text).map(LawSpec::from);
        let spec = named("Mine@0123456789ab").unwrap();
        assert_eq!((spec.label().as_str(), spec.slow_start()), ("Mine (prototype)", SlowStartKind::Classic));
        assert!(spec.info().is_none() && spec.prototype().is_some_and(|known| known.build.is_none()));
        assert_eq!(named(&spec.to_string()).as_ref(), Some(&spec));
        assert_ne!(named("Mine@0123456789ac").unwrap(), spec);
        for text in ["Mine@", "@0123456789ab", "Mine@012345678x", "Mi ne@0123456789ab", "4@0123456789ab"] {
            assert_eq!(named(text), None, "{text}");
        }
        // A law parsed from its name alone can always be run.
        assert!(matches!("Mine@0123456789ab".parse::<LawSpec>(), Err(LawError::UnknownLaw { .. })));
    }

    #[test]
    fn a_law_has_a_slow_start_or_its_own_start_up() {
        for (law, spec) in registry().iter().filter_map(|law| Some((law, law.specs().next()?))) {
            let built = spec.build(&Config::default(), &mut Control::new(10));
            assert_eq!(built.is_controller(), law.slow_start == SlowStartKind::None, "{}", law.name);
        }
    }

    #[test]
    fn parameters_print_and_parse() {
        let spec: LawSpec = "evcp:author:n2=20:n1=3".parse().unwrap();
        assert_eq!(spec.to_string(), "evcp:n1=3:n2=20");
        assert_eq!(spec.to_string().parse(), Ok(spec.clone()));
        assert_ne!(spec, "evcp".parse().unwrap());
        assert_eq!("evcp:n1=2".parse(), "evcp".parse::<LawSpec>());
        let error = |text: &str| text.parse::<LawSpec>().unwrap_err().to_string();
        let allowed = "evcp: n1=2.5; allowed: a whole number from 1 to 1000";
        assert_eq!(error("evcp:n1=2.5"), allowed);
        for bad in ["evcp:n1=0", "evcp:n1=", "evcp:n1=nan", "evcp:n1=inf", "evcp:author:n1"] {
            assert!(error(bad).contains("allowed: a whole number from 1 to 1000"), "{bad}: {}", error(bad));
        }
        assert_eq!(error("evcp:n1=2:n1=3"), "evcp: n1=3; allowed: each parameter once");
        assert!(error("evcp:n3=2").starts_with("law evcp has no parameter \"n3\"; did you mean \"n1\"? "));
        assert!(error("evcp:n1=2:paper").starts_with("law evcp has no parameter \"paper\""));
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
        assert_eq!(
            "reno:rfc:c=4".parse::<LawSpec>().unwrap_err().to_string(),
            "law reno has no parameter \"c\"; it has none"
        );
        assert!(matches!("".parse::<LawSpec>(), Err(LawError::UnknownLaw { .. })));
        assert!(matches!("reno:".parse::<LawSpec>(), Err(LawError::UnknownVariant { .. })));
    }
}
