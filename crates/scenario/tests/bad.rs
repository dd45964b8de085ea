//! Errors in scenarios. `bad/cases.txt` has each fault under its message, as changes to the scenario of its section: a
//! line that begins with `-` goes, one with `+` comes, one with a space is the place for the next. A case that begins with
//! `+` adds to the end. With LFN_REGENERATE set, the messages are written there instead.

use std::path::{Path, PathBuf};

use lfn_keys::Kinds;
use lfn_scenario::{read, Scenario};

/// Memory that the runs of `bad/` may use.
const MEMORY_LIMIT_BYTES: u64 = 2_000_000_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad")
}

/// `base` with these changes.
fn changed(base: &[&str], changes: &[&str]) -> String {
    let mut lines = base.to_vec();
    let appends = changes.first().is_some_and(|change| change.starts_with('+'));
    let mut at = if appends { lines.len() } else { 0 };
    for change in changes {
        let (sign, line) = change.split_at(1);
        if sign == "+" {
            lines.insert(at, line);
            at += 1;
            continue;
        }
        let found = lines[at..].iter().position(|other| *other == line);
        at += found.unwrap_or_else(|| panic!("no line {line:?} in {lines:?}"));
        match sign {
            "-" => drop(lines.remove(at)),
            _ => at += 1,
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The message of a scenario that is in the file `name` of the folder.
fn message(name: &str, text: &str) -> String {
    let file = folder().join(name);
    let error = Scenario::parse(text, file.to_str().unwrap(), Some(MEMORY_LIMIT_BYTES)).expect_err(name);
    assert!(error.line.is_some(), "{error}");
    // The lists of laws, of their variants and of queues grow.
    let laws: Vec<_> = lfn_law::registry().iter().map(|law| law.name).collect();
    let hstcp = lfn_law::registry().iter().find(|law| law.name == "hstcp").unwrap();
    let text = error.to_string().replace(&format!("{}/", folder().display()), "");
    let queues: Vec<_> = lfn_path::AqmConfig::kinds().into_iter().map(|(kind, ..)| kind).collect();
    let text = text.replace(&queues.join(", "), "QUEUES");
    text.replace(&laws.join(", "), "LAWS").replace(&hstcp.variants.join(", "), "VARIANTS")
}

#[test]
fn every_fault_has_its_message() {
    let file = folder().join("cases.txt");
    let given = std::fs::read_to_string(&file).unwrap();
    let is_change = |line: &&str| line.starts_with(['-', '+', ' ']);
    let (mut lines, mut base, mut found) = (given.lines().peekable(), Vec::new(), Vec::new());
    while let Some(line) = lines.next() {
        if line.starts_with("== ") {
            base.clear();
            found.push(line.to_owned());
            while let Some(line) = lines.next_if(|line| !line.contains(".toml:") && !line.starts_with("== "))
            {
                base.push(line);
                found.push(line.to_owned());
            }
            continue;
        }
        let (name, _) = line.split_once(':').unwrap();
        let changes: Vec<_> = std::iter::from_fn(|| lines.next_if(is_change)).collect();
        found.push(message(name, &changed(&base, &changes)));
        found.extend(changes.into_iter().map(str::to_owned));
    }
    if std::env::var_os("LFN_REGENERATE").is_some() {
        std::fs::write(&file, found.join("\n") + "\n").unwrap();
    }
    let expected = std::fs::read_to_string(file).unwrap();
    for (got, wanted) in found.iter().zip(expected.lines()) {
        assert_eq!(got, wanted);
    }
    assert_eq!(found.len(), expected.lines().count());
    assert!(found.iter().filter(|line| line.contains(".toml:")).count() > 250);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let missing = read("no/such/file.toml").unwrap_err();
    assert_eq!((missing.file.as_str(), missing.line), ("no/such/file.toml", None));
    assert!(missing.found.starts_with("cannot be read: "), "{missing}");
    let directory = read(env!("CARGO_MANIFEST_DIR")).unwrap_err();
    assert!(directory.found.starts_with("cannot be read: "), "{directory}");
    let bytes = read(folder().join("not-utf8.toml").to_str().unwrap()).unwrap_err();
    assert_eq!((bytes.line, &*bytes.found), (Some(2), "not UTF-8 text"));
    assert_eq!(read("/dev/zero").unwrap_err().found, "longer than 1 MiB");
}
