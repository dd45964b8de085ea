//! Turns laws/REGISTRY into C objects and a Rust table.
//!
//! A law is a header, a line and a card; this is the only program that reads the line. Every
//! mistake in it is an error here, with file and line, so that nothing later has to check again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

const KEYS: [&str; 8] =
    ["variants", "targets", "slow_start", "family", "signal", "probes", "ssthresh", "source"];
const TARGETS: [&str; 2] = ["sim", "kernel"];
/// Names of `SlowStartKind`.
const SLOW_STARTS: [(&str, &str); 4] = [
    ("classic", "Classic"),
    ("limited", "Limited"),
    ("hystart", "HyStart"),
    ("hystart++", "HyStartPlusPlus"),
];
/// What a law can hear; its family is the one of them that ends its growth.
const SIGNALS: [&str; 4] = ["loss", "delay", "rate", "ecn"];
/// Values that `probe` may write (LAW_PROBES).
const PROBES: usize = 8;

struct Line {
    name: String,
    values: Vec<(String, String)>,
}

impl Line {
    fn get(&self, key: &str) -> Option<&str> {
        self.values.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
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
    one_of("slow_start", slow_start, &SLOW_STARTS.map(|(name, _)| name))?;
    let (_, slow_start) = SLOW_STARTS.iter().find(|(name, _)| *name == slow_start).unwrap();
    one_of("family", need("family")?, &SIGNALS)?;
    let signals = list(need("signal")?);
    for signal in &signals {
        one_of("signal", signal, &SIGNALS)?;
    }
    let ssthresh = line.get("ssthresh").unwrap_or("below");
    one_of("ssthresh", ssthresh, &["below", "estimate"])?;
    let mut probes = String::new();
    let texts = line.get("probes").map(list).unwrap_or_default();
    if texts.len() > PROBES {
        return Err(format!("{} probes; at most {PROBES}", texts.len()));
    }
    for text in &texts {
        let (name, scale) = text
            .split_once('/')
            .and_then(|(name, scale)| Some((name, scale.parse::<u32>().ok().filter(|&s| s < 64)?)))
            .ok_or_else(|| format!("probe {text:?} is no name/scale with a scale below 64"))?;
        let _ = write!(probes, "Probe {{ name: {name:?}, scale: {scale} }}, ");
    }
    let prose =
        fs::read_to_string(card).map_err(|e| format!("{}: {e}; a law needs a card", card.display()))?;
    let title = prose
        .lines()
        .next()
        .and_then(|l| l.strip_prefix("# "))
        .ok_or_else(|| format!("{} does not begin with a heading \"# Title\"", card.display()))?;
    Ok(format!(
        "LawInfo {{ name: {:?}, title: {title:?}, variants: &{variants:?}, targets: &{targets:?}, \
         slow_start: SlowStartKind::{slow_start}, family: {:?}, signals: &{signals:?}, probes: &[{probes}], \
         ssthresh_is_estimate: {}, source: {:?}, card: include_str!({:?}), \
         index: {index}, ops: {} }},\n",
        line.name,
        need("family")?,
        ssthresh == "estimate",
        need("source")?,
        card,
        symbol(&line.name),
    ))
}

/// C names have underscores where law names have hyphens.
fn symbol(name: &str) -> String {
    format!("law_{}", name.replace('-', "_"))
}

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("../..").canonicalize().unwrap();
    let laws = root.join("laws");
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
            if !header.is_file() {
                return Err(format!("{}: no such file; a law needs a header", header.display()));
            }
            let card = laws.join("cards").join(format!("{}.md", line.name));
            let entry = table_entry(&line, names.len(), &card)?;
            names.push(line.name);
            Ok(entry)
        });
        match entry {
            Ok(entry) => table.push_str(&entry),
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
}
