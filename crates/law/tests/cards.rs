//! Runs the vectors of laws/cards: is a law what its source says?

use lfn_law::card::{slow_start_cards, Block};
use lfn_law::registry;
use std::fs;
use std::path::{Path, PathBuf};

fn cards() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("laws/cards")
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
    // UDT's own control takes other calls; crates/udt tests its values.
    let names = registry().iter().filter(|law| !law.is_udt()).map(|law| (law.name, law.card.to_owned()));
    let slow_starts = slow_start_cards().into_iter();
    let slow_starts =
        slow_starts.map(|name| (name, fs::read_to_string(cards().join(format!("{name}.md"))).unwrap()));
    let mut failures = Vec::new();
    for (name, card) in names.chain(slow_starts) {
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
        let known = name == "README"
            || slow_start_cards().contains(&name)
            || registry().iter().any(|law| law.name == name);
        assert!(known, "laws/cards/{name}.md belongs to no line of laws/REGISTRY");
    }
}

const JUMP: &str =
    "laws/cards/reno.md, line 5: no statement \"jump\"; allowed: ack, sample, rounds N, wait TIME, \
                    loss KIND [hold], window W, header PROTOCOL VALUE, open, undo, restart, expect FIELD VALUE [+-TOL]";

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
    assert_eq!(fails(&block("jump")), JUMP);
    assert!(fails(&block("expect alpha 1")).contains("no field \"alpha\""));
    for (statement, said) in [
        ("ack m=1", "no key \"m\"; allowed: n, x, every, rtt"),
        ("ack n", "\"n\" is not a KEY=VALUE; allowed keys: n, x, every, rtt"),
        ("ack n=-1", "n: \"-1\"; allowed: whole numbers of at least 0"),
        ("ack rtt=100", "rtt: \"100\"; write a number with ns, us, ms or s, for example 100ms"),
        ("start cwnd=0", "cwnd: \"0\"; allowed: segments of at least 1, or inf"),
        ("rounds many", "\"many\" is not a number of rounds; allowed: 0 to 4294967295"),
        ("wait long", "\"long\" is not a time; write a number with ns, us, ms or s"),
        ("loss rare", "no loss \"rare\"; allowed: fast, rto, ecn"),
        ("loss fast held", "found \"held\" after the loss; allowed: hold, or nothing"),
        ("header rcp fast", "\"fast\" is not a number; write for example 0.5"),
        ("header jetmax a 1", "\"a\" is not a number of a link; allowed: 0 to 65535"),
        ("expect cwnd", "expect cwnd; write expect FIELD VALUE [+-TOL]"),
        ("expect cwnd ten", "\"ten\" is not a number; write for example 0.5"),
        ("expect cwnd 10 5%", "\"5%\" is not a tolerance; write for example +-0.5 or +-2%"),
    ] {
        let found = fails(&block(statement));
        assert!(found.starts_with("laws/cards/reno.md, line 5: ") && found.contains(said), "{found}");
    }
    let bare = fails("```law\nack\n```\n");
    assert_eq!(bare, "laws/cards/reno.md, line 2: found \"ack\"; a block begins with law NAME");
    assert!(fails(&block("law hstcp")).contains("the card of reno tests hstcp"));
}
