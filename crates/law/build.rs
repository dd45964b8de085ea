//! Turns laws/REGISTRY into C objects and a Rust table, and laws/law.h into Rust structs and constants.
//!
//! A law is a header, a line and a card; this is the only program that reads the line. Every
//! mistake in it is an error here, with file and line, so that nothing later has to check again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use kind::SlowStartKind;
use lfn_header::Protocol;

#[path = "src/slow_start/kind.rs"]
mod kind;

const KEYS: [&str; 14] = [
    "variants",
    "aliases",
    "targets",
    "slow_start",
    "family",
    "signal",
    "probes",
    "ssthresh",
    "ecn",
    "window",
    "source",
    "code",
    "header",
    "parameters",
];
const TARGETS: [&str; 2] = ["sim", "kernel"];
/// Signals of laws; the family of a law is the signal that ends its growth.
const SIGNALS: [&str; 5] = ["loss", "delay", "rate", "ecn", "router"];
/// Values that `probe` may write (LAW_PROBES).
const PROBES: usize = 8;
/// Parameters that a law may have.
const PARAMETERS: usize = 8;
/// The largest value of one in C, where a value is a `u64` in units of 2^-20.
const MOST_IN_C: f64 = (1u64 << 43) as f64;

struct Line {
    name: String,
    values: Vec<(String, String)>,
}

impl Line {
    fn get(&self, key: &str) -> Option<&str> {
        self.values.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Where the law is written: `c` in its header, `rust` in src/end_host, `udt` in crates/udt.
    fn code(&self) -> Result<&str, String> {
        let code = self.get("code").unwrap_or("c");
        one_of("code", code, &["c", "rust", "udt"])?;
        Ok(code)
    }
}

/// Splits `name key=value key="a value"` into its parts.
fn parse_line(text: &str) -> Result<Line, String> {
    let (name, mut rest) = text.split_once(' ').ok_or("a line is a name and key=value pairs")?;
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_name) {
        return Err(format!("{name:?} is no name: a lower-case letter, then letters, digits, hyphens"));
    }
    let mut values: Vec<(String, String)> = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Ok(Line { name: name.into(), values });
        }
        let (key, tail) = rest.split_once('=').ok_or_else(|| format!("{rest:?} is no key=value"))?;
        if !KEYS.contains(&key) {
            return Err(format!("unknown key {key:?}; allowed: {}", KEYS.join(", ")));
        }
        if values.iter().any(|(k, _)| k == key) {
            return Err(format!("{key} is given twice"));
        }
        let (value, tail) = match tail.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or_else(|| format!("{key} has no closing quote"))?,
            None => tail.split_once(' ').unwrap_or((tail, "")),
        };
        values.push((key.into(), value.into()));
        rest = tail;
    }
}

fn one_of(key: &str, value: &str, allowed: &[&str]) -> Result<(), String> {
    if allowed.contains(&value) {
        return Ok(());
    }
    Err(format!("{key}={value:?}; allowed: {}", allowed.join(", ")))
}

/// A number that a law takes.
struct Parameter<'a> {
    name: &'a str,
    default: f64,
    low: f64,
    high: f64,
    whole: bool,
}

impl Parameter<'_> {
    /// `name/default/low/high`, and `/whole` where only whole numbers make sense.
    fn parse(text: &str) -> Option<Parameter<'_>> {
        let parts: Vec<&str> = text.split('/').collect();
        let (&[name, default, low, high], whole) = (parts.get(..4)?, &parts[4..]) else { return None };
        let whole = match whole {
            [] => false,
            ["whole"] => true,
            _ => return None,
        };
        let [default, low, high] = [default, low, high].map(|x| x.parse::<f64>().unwrap_or(f64::NAN));
        let found = Parameter { name, default, low, high, whole };
        (found.allows(default) && high.is_finite() && is_word(name)).then_some(found)
    }

    fn allows(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value) && (!self.whole || value % 1.0 == 0.0)
    }
}

/// Whether a text may stand between colons in the name of a law.
fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains([':', '=', '/'])
}

/// The Rust texts of a law's parameters and aliases.
fn parameters(line: &Line) -> Result<(String, String), String> {
    let texts: Vec<&str> = line.get("parameters").map(|list| list.split(',').collect()).unwrap_or_default();
    if texts.len() > PARAMETERS {
        return Err(format!("{} parameters; at most {PARAMETERS}", texts.len()));
    }
    let (mut known, mut parameters): (Vec<Parameter>, _) = (Vec::new(), String::new());
    for text in texts {
        let found = Parameter::parse(text).ok_or_else(|| {
            format!("parameter {text:?} is no name/default/low/high, low <= default <= high")
        })?;
        if known.iter().any(|other| other.name == found.name) {
            return Err(format!("two parameters are called {:?}", found.name));
        }
        if line.code()? == "c" && (found.low < 0.0 || found.high > MOST_IN_C) {
            return Err(format!("parameter {text:?}: in C values are from 0 to {MOST_IN_C}"));
        }
        let Parameter { name, default, low, high, whole } = found;
        let _ = write!(
            parameters,
            "Parameter {{ name: {name:?}, default: {default:?}, low: {low:?}, high: {high:?}, whole: {whole} }}, "
        );
        known.push(found);
    }
    let (mut aliases, mut names): (_, Vec<&str>) =
        (String::new(), line.get("variants").unwrap_or_default().split(',').collect());
    for text in line.get("aliases").into_iter().flat_map(|list| list.split(',')) {
        let (name, index, value) = alias(text, &known).ok_or_else(|| {
            format!("alias {text:?} is no name/parameter=value with a parameter of this line and a value of its range")
        })?;
        if names.contains(&name) {
            return Err(format!("two variants or aliases are called {name:?}"));
        }
        let _ = write!(aliases, "Alias {{ name: {name:?}, parameter: {index}, value: {value:?} }}, ");
        names.push(name);
    }
    Ok((parameters, aliases))
}

/// Name, index of the parameter and value of an alias, `name/parameter=value`.
fn alias<'a>(text: &'a str, known: &[Parameter]) -> Option<(&'a str, usize, f64)> {
    let (name, set) = text.split_once('/').filter(|(name, _)| is_word(name))?;
    let (parameter, value) = set.split_once('=')?;
    let index = known.iter().position(|known| known.name == parameter)?;
    let value = value.parse().ok().filter(|&value| known[index].allows(value))?;
    Some((name, index, value))
}

/// The Rust text of where a law is written. Only the simulator has laws in Rust, UDT's own, and parameters.
fn code(line: &Line, targets: &[String]) -> Result<String, String> {
    let simulated = targets.iter().all(|target| target == "sim");
    let has = |key: &str| line.get(key).is_some();
    let code = line.code()?;
    match code {
        "rust" | "udt" if !simulated => {
            Err(format!("code={code} runs in the simulator only; write targets=sim"))
        }
        "c" | "udt" if has("header") => Err("header needs code=rust".into()),
        "udt" if line.name != "udt" => Err("code=udt is the control of the law udt alone".into()),
        "udt" if has("parameters") => Err("parameters need code=c or code=rust".into()),
        _ if has("parameters") && !simulated => Err("the kernel loads a law without values of parameters; \
                                                     write targets=sim"
            .into()),
        "rust" => Ok(format!("Code::Rust(crate::end_host::{}::new)", line.name.replace('-', "_"))),
        "udt" => Ok("Code::Udt".into()),
        _ => Ok(format!("Code::C({})", symbol(&line.name))),
    }
}

/// The Rust text of the protocol of a law's headers.
fn header(line: &Line) -> Result<String, String> {
    let Some(name) = line.get("header") else { return Ok("None".into()) };
    let names: Vec<&str> = Protocol::ALL.iter().map(|(known, ..)| *known).collect();
    one_of("header", name, &names)?;
    let (_, protocol, _) = Protocol::ALL.iter().find(|(known, ..)| *known == name).unwrap();
    Ok(format!("Some(Protocol::{protocol:?})"))
}

/// The Rust text of the probes of a law.
fn probes(texts: &[String]) -> Result<String, String> {
    let mut probes = String::new();
    if texts.len() > PROBES {
        return Err(format!("{} probes; at most {PROBES}", texts.len()));
    }
    for text in texts {
        let (name, scale) = text
            .split_once('/')
            .and_then(|(name, scale)| Some((name, scale.parse::<u32>().ok().filter(|&s| s < 64)?)))
            .ok_or_else(|| format!("probe {text:?} is no name/scale with a scale below 64"))?;
        let _ = write!(probes, "Probe {{ name: Cow::Borrowed({name:?}), scale: {scale} }}, ");
    }
    Ok(probes)
}

/// The Rust text of one `LawInfo`.
fn table_entry(line: &Line, index: usize, card: &Path) -> Result<String, String> {
    let need = |key: &str| line.get(key).ok_or_else(|| format!("{key} is missing"));
    let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let (variants, targets) = (list(need("variants")?), list(need("targets")?));
    if let Some(bad) = variants.iter().find(|v| v.is_empty()) {
        return Err(format!("variants holds {bad:?}"));
    }
    for target in &targets {
        one_of("targets", target, &TARGETS)?;
    }
    let slow_start = need("slow_start")?;
    one_of("slow_start", slow_start, SlowStartKind::NAMES)?;
    let slow_start = SlowStartKind::named(slow_start).unwrap();
    one_of("family", need("family")?, &SIGNALS)?;
    let signals = list(need("signal")?);
    for signal in &signals {
        one_of("signal", signal, &SIGNALS)?;
    }
    let ssthresh = line.get("ssthresh").unwrap_or("below");
    one_of("ssthresh", ssthresh, &["below", "estimate"])?;
    let window = line.get("window").unwrap_or("kept");
    one_of("window", window, &["kept", "none"])?;
    let ecn = line.get("ecn").unwrap_or("ect0");
    one_of("ecn", ecn, &["ect0", "ect1"])?;
    let probes = probes(&line.get("probes").map(list).unwrap_or_default())?;
    let (parameters, aliases) = parameters(line)?;
    let (header, code) = (header(line)?, code(line, &targets)?);
    // A law in C that uses the seed of its configuration draws, as UDT's does; one in Rust is given none.
    let draws = match line.code()? {
        "c" => fs::read_to_string(card.with_file_name(format!("../{}.h", line.name)))
            .is_ok_and(|text| text.contains("->seed")),
        code => code == "udt",
    };
    let prose =
        fs::read_to_string(card).map_err(|e| format!("{}: {e}; a law needs a card", card.display()))?;
    let title = prose
        .lines()
        .next()
        .and_then(|l| l.strip_prefix("# "))
        .ok_or_else(|| format!("{} does not begin with a heading \"# Title\"", card.display()))?;
    // A web page shows no cards: its build of the simulator is smaller without them.
    let is_wasm = env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm");
    let shown = if is_wasm { "\"\"".into() } else { format!("include_str!({card:?})") };
    Ok(format!(
        "LawInfo {{ name: {:?}, title: {title:?}, variants: &{variants:?}, aliases: &[{aliases}], targets: &{targets:?}, \
         slow_start: SlowStartKind::{slow_start:?}, family: {:?}, signals: &{signals:?}, probes: &[{probes}], \
         parameters: &[{parameters}], header: {header}, \
         ssthresh_is_estimate: {}, keeps_window: {}, is_l4s: {}, draws: {draws}, source: {:?}, card: {shown}, \
         index: {index}, code: {code} }},\n",
        line.name,
        need("family")?,
        ssthresh == "estimate",
        window == "kept",
        ecn == "ect1",
        need("source")?,
    ))
}

/// C names have underscores where law names have hyphens.
fn symbol(name: &str) -> String {
    format!("law_{}", name.replace('-', "_"))
}

/// Structs of law.h that Rust has too.
const STRUCTS: [(&str, &str); 5] = [
    ("law_ack", "Ack"),
    ("law_rate", "Rate"),
    ("law_loss", "Loss"),
    ("law_control", "Control"),
    ("law_config", "Config"),
];

/// Lines of a C header, each with the whole comment that it begins.
fn with_comments(header: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in header.lines() {
        match lines.last_mut().filter(|last| last.contains("/*") && !last.contains("*/")) {
            Some(last) => *last += &format!(" {}", line.trim().trim_start_matches("* ")),
            None => lines.push(line.trim().to_owned()),
        }
    }
    lines
}

/// The structs and constants of law.h in Rust, documented by its comments.
fn interface(header: &str) -> String {
    let (mut code, mut losses, mut before, mut inside) = (String::new(), String::new(), String::new(), false);
    for line in with_comments(header) {
        let (c, comment) = line.split_once("/*").unwrap_or((&line, ""));
        let comment = comment.trim_end_matches("*/").trim().replace("LAW_", "");
        let doc = format!("#[doc = {comment:?}]\n");
        let words: Vec<&str> = c.split_whitespace().collect();
        match words[..] {
            ["struct", name, "{"] => {
                let known = STRUCTS.iter().find(|(known, _)| *known == name);
                inside = known.is_some();
                if let Some((_, rust)) = known {
                    let default = if *rust == "Control" { "" } else { "Default, " };
                    let doc = if comment.is_empty() { &before } else { &doc };
                    let _ = write!(
                        code,
                        "{doc}#[repr(C)]\n#[derive(Clone, Copy, Debug, {default}PartialEq, Eq)]\npub struct {rust} {{\n"
                    );
                }
            }
            ["};"] if std::mem::take(&mut inside) => code.push_str("}\n"),
            [width, field] if inside => {
                let (field, kind) = match field.trim_end_matches(';') {
                    "cwnd" => ("cwnd", "Window"),
                    "ssthresh" => ("ssthresh", "Window"),
                    "kind" => ("kind", "LossKind"),
                    "parameters[LAW_PARAMETERS]" => ("parameters", "[u64; PARAMETERS]"),
                    field => (field, width),
                };
                let _ = writeln!(code, "{doc}pub {field}: {kind},");
            }
            ["#define", name, ..] => {
                let name = name.trim_start_matches("LAW_");
                let value = words[2..].join(" ").replace(['u', '(', ')'], "");
                if value.is_empty() || value.contains(|c: char| !" <0123456789".contains(c)) {
                    continue;
                }
                if let Some(kind) = name.strip_prefix("LOSS_") {
                    let _ = writeln!(losses, "{doc}{}{} = {value},", &kind[..1], kind[1..].to_lowercase());
                    continue;
                }
                let kind = match name {
                    "PARAMETER_ONE" => "u64",
                    _ if c.trim_end().ends_with('u') => "u32",
                    _ => "usize",
                };
                let _ = writeln!(code, "{doc}pub const {name}: {kind} = {value};");
            }
            _ => {}
        }
        before = doc;
    }
    format!(
        "{code}/// How a loss showed.\n#[repr(u32)]\n#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\n\
         pub enum LossKind {{\n#[default]\n{losses}}}\n"
    )
}

fn main() {
    // Cargo packs the folder through the link crates/law/laws, which a source package of Python lacks.
    let crate_folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap());
    let laws = ["laws", "../../laws"].map(|laws| crate_folder.join(laws).canonicalize());
    let laws = laws.into_iter().flatten().next().expect("the folder laws");
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    // The whole folder: a new header or card must rebuild as a changed one does.
    println!("cargo::rerun-if-changed={}", laws.display());

    let registry = laws.join("REGISTRY");
    let text = fs::read_to_string(&registry).expect("laws/REGISTRY");
    let mut objects = cc::Build::new();
    objects.include(&laws).std("c11").opt_level(3).extra_warnings(true).flag_if_supported("-Wconversion");
    objects.file("src/layout.c").file("src/slow_start.c");
    println!("cargo::rerun-if-changed=src");
    let (mut externs, mut table, mut names) = (String::new(), String::new(), Vec::new());
    for (number, text) in text.lines().enumerate() {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let entry = parse_line(text).and_then(|line| {
            if names.contains(&line.name) {
                return Err(format!("{} has two lines", line.name));
            }
            let header = laws.join(format!("{}.h", line.name));
            if line.code()? == "c" && !header.is_file() {
                return Err(format!("{}: no such file; a law needs a header", header.display()));
            }
            let card = laws.join("cards").join(format!("{}.md", line.name));
            let entry = table_entry(&line, names.len(), &card)?;
            let is_c = line.code()? == "c";
            names.push(line.name);
            Ok((entry, is_c))
        });
        match entry {
            Ok((entry, is_c)) => {
                table.push_str(&entry);
                if !is_c {
                    continue;
                }
            }
            Err(error) => {
                println!("cargo::error=laws/REGISTRY, line {}: {error}", number + 1);
                process::exit(1);
            }
        }
        let name = names.last().unwrap();
        let symbol = symbol(name);
        let source = out.join(format!("{symbol}.c"));
        let code = format!(
            "#include \"{name}.h\"\nconst struct law_ops *{symbol}(void);\n\
             const struct law_ops *{symbol}(void) {{ return &law_ops_{}; }}\n",
            name.replace('-', "_")
        );
        fs::write(&source, code).unwrap();
        objects.file(source);
        let _ = writeln!(externs, "    fn {symbol}() -> &'static LawOps;");
    }
    objects.compile("lfn_laws");
    let code = format!("extern \"C\" {{\n{externs}}}\nstatic REGISTRY: &[LawInfo] = &[\n{table}];\n");
    fs::write(out.join("registry.rs"), code).unwrap();
    let header = fs::read_to_string(laws.join("law.h")).expect("laws/law.h");
    fs::write(out.join("interface.rs"), interface(&header)).unwrap();
}
