//! Runs the vectors of laws/cards: is a law what its source says?

use lfn_law::card::{Block, SLOW_START};
use lfn_law::registry;
use std::fs;
use std::path::{Path, PathBuf};

fn cards() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../laws/cards")
}

/// Runs the vectors of a card; returns how many expectations held, or every failure.
fn run(name: &str, text: &str) -> Result<usize, Vec<String>> {
    let (mut block, mut in_block) = (Block::default(), false);
    let (mut held, mut failures) = (0, Vec::new());
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            in_block = !in_block && line.trim_end() == "```law";
            block = Block::default();
            continue;
        }
        let words: Vec<_> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        if !in_block || words.is_empty() {
            continue;
        }
        let mut result = block.execute(&words);
        if let Some(other) = block.card().filter(|card| *card != name) {
            result = Err(format!("the card of {name} tests {other}"));
        }
        match result {
            Ok(()) => held += usize::from(words[0] == "expect"),
            Err(error) => failures.push(format!("laws/cards/{name}.md, line {}: {error}", number + 1)),
        }
    }
    if held == 0 && failures.is_empty() {
        failures.push(format!("laws/cards/{name}.md has no vector"));
    }
    if failures.is_empty() {
        Ok(held)
    } else {
        Err(failures)
    }
}

#[test]
fn every_vector_of_every_card_holds() {
    let names = registry().iter().map(|law| (law.name, law.card.to_owned()));
    let slow_start = fs::read_to_string(cards().join(format!("{SLOW_START}.md"))).unwrap();
    let mut failures = Vec::new();
    for (name, card) in names.chain([(SLOW_START, slow_start)]) {
        match run(name, &card) {
            Ok(held) => println!("{name}: {held} expectations hold"),
            Err(errors) => failures.extend(errors),
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn every_variant_has_a_vector() {
    for (law, spec) in registry().iter().flat_map(|law| law.specs().map(move |spec| (law, spec))) {
        let tested = law.card.lines().any(|line| {
            let name = line.split('#').next().unwrap_or("").trim().strip_prefix("law ");
            name.and_then(|name| name.trim().parse().ok()).as_ref() == Some(&spec)
        });
        assert!(tested, "laws/cards/{}.md has no block \"law {spec}\"", law.name);
    }
}

#[test]
fn every_card_has_one_reference() {
    for law in registry() {
        assert_eq!(law.card.matches("```bibtex\n@").count(), 1, "laws/cards/{}.md", law.name);
    }
}

#[test]
fn every_card_has_a_registry_line() {
    for entry in fs::read_dir(cards()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let known = ["README", SLOW_START].contains(&name) || registry().iter().any(|law| law.name == name);
        assert!(known, "laws/cards/{name}.md belongs to no line of laws/REGISTRY");
    }
}

#[test]
fn a_wrong_card_is_answered_with_card_and_line() {
    let fails = |text: &str| run("reno", text).unwrap_err().join("; ");
    let block = |text: &str| format!("# Reno\n```law\nlaw reno\nstart cwnd=10\n{text}\n```\n");
    assert_eq!(run("reno", &block("expect cwnd 10")), Ok(1));
    assert_eq!(fails("# Reno\n"), "laws/cards/reno.md has no vector");
    assert_eq!(
        fails(&block("ack\nexpect cwnd 10.2")),
        "laws/cards/reno.md, line 6: cwnd: expected 10.2, found 10.099999999860302"
    );
    assert_eq!(
        fails(&block("expect cwnd 11 +-5%")),
        "laws/cards/reno.md, line 5: cwnd: expected 11 +-5%, found 10"
    );
    assert_eq!(fails(&block("jump")), "laws/cards/reno.md, line 5: unknown statement \"jump\"");
    assert!(fails(&block("expect alpha 1")).contains("no field \"alpha\""));
    assert!(fails(&block("ack m=1")).contains("unknown key \"m\"; allowed: n, x, every, rtt"));
    assert!(fails(&block("law hstcp")).contains("the card of reno tests hstcp"));
}
