//! The same run as the command's, its errors, and curves that a page can draw.

use lfn_browser::{canonical, laws, Run, FILE};
use lfn_scenario::Scenario;
use lfn_sim::Sim;
use serde_json::Value;

fn text(law: &str, more: &str) -> String {
    format!(
        "schema = 1\nduration = \"12s\"\n{more}[link]\nrate = \"20Mbit/s\"\n[[flow]]\nlaw = {law:?}\nrtt = \"40ms\"\n"
    )
}

fn finished(text: &str) -> Value {
    let answer = Run::new(text).and_then(Run::finish).expect("it runs");
    serde_json::from_str(&answer).expect("JSON")
}

fn numbers(value: &Value) -> Vec<Option<f64>> {
    value.as_array().expect("a curve").iter().map(Value::as_f64).collect()
}

#[test]
fn the_hash_does_not_depend_on_the_steps() {
    for law in ["cubic", "htcp-be", "bbr3"] {
        let text = text(law, "");
        let mut sim =
            Sim::new(&Scenario::parse(&text, FILE, None).expect("valid").config(1)).expect("it runs");
        sim.run_until(sim.duration());
        let expected = sim.finish().expect("it adds up").summary.hash;
        let mut run = Run::new(&text).expect("it runs");
        let mut last = 0.0;
        let mut part = 1e-9;
        while last < 1.0 {
            let done = run.advance(part);
            assert!(done > last, "progress grows");
            (last, part) = (done, part * 2.0);
        }
        let answer: Value = serde_json::from_str(&run.finish().expect("it adds up")).expect("JSON");
        assert_eq!(answer["summary"]["hash"], expected, "{law}");
        assert_eq!(finished(&text)["summary"]["hash"], expected, "{law}");
    }
}

#[test]
fn an_error_is_the_commands() {
    let wrong = text("cubik", "");
    let expected = Scenario::parse(&wrong, FILE, None).expect_err("no such law").to_string();
    assert_eq!(Run::new(&wrong).err(), Some(expected.clone()));
    assert_eq!(canonical(&wrong), Err(expected));
}

#[test]
fn a_law_in_a_file_says_why_not() {
    for law in ["./tol.h", "mine.py:Mine", "/laws/mine.py"] {
        let said = Run::new(&text(law, "")).err().expect("refused");
        let expected =
            format!("{FILE}:6: flow[0].law: {law:?} is a file, and a page cannot compile or run it; ");
        assert!(said.starts_with(&expected), "{said}");
        assert_eq!(canonical(&text(law, "")), Err(said));
    }
}

#[test]
fn a_run_for_more_memory_than_a_page_has_is_refused() {
    let huge = "schema = 1\nduration = \"60s\"\n[link]\nrate = \"10Tbit/s\"\n[[flow]]\nlaw = \"cubic\"\nrtt = \"1s\"\n";
    assert!(Run::new(huge).err().expect("refused").contains("memory"));
}

#[test]
fn strange_texts_are_errors() {
    let deep = format!("x = {}", "[".repeat(200_000));
    for text in ["", "\0", "schema", "schema = 2", "[", &deep, "schema = 1\nduration = \"1s\"\n"] {
        assert!(Run::new(text).is_err(), "{:?}", &text[..text.len().min(20)]);
    }
}

#[test]
fn no_advance_goes_back_or_beyond_the_end() {
    for part in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 1e-300] {
        let mut run = Run::new(&text("reno", "")).expect("it runs");
        let done = run.advance(part);
        assert!(done > 0.0 && done <= 1.0, "{part} {done}");
    }
}

#[test]
fn curves_have_one_axis_and_the_values_of_the_tables() {
    let text = text("htcp-be", "sample = \"10ms\"\n");
    let report = finished(&text);
    let t = numbers(&report["t"]);
    let flow = &report["flows"][0];
    for curve in [&flow["cwnd_seg"], &flow["inflight_seg"], &report["queues"][0], &flow["probes"][1]] {
        assert_eq!(numbers(curve).len(), t.len());
    }
    assert!(t.len() <= 1000 && t.is_sorted());
    let most = numbers(&flow["cwnd_seg"]).into_iter().flatten().fold(0.0, f64::max);
    let mut sim = Sim::new(&Scenario::parse(&text, FILE, None).expect("valid").config(1)).expect("it runs");
    sim.run_until(sim.duration());
    let table = sim.finish().expect("it adds up").tables.flows.cwnd_seg;
    let expected = table.into_iter().fold(0.0, f64::max);
    assert!((most / expected - 1.0).abs() < 1e-5, "{most} {expected}");
    assert_eq!(flow["probes"].as_array().map(Vec::len), Some(3), "alpha, bwe, rtt_min");
}

#[test]
fn bins_of_goodput_add_up() {
    let report = finished(&text("reno", ""));
    let bins = numbers(&report["flows"][0]["goodput_bps"]);
    let bin_s = report["goodput_bin_s"].as_f64().expect("a number");
    assert_eq!(bins.len(), numbers(&report["goodput_t"]).len());
    let bytes = bins.into_iter().flatten().sum::<f64>() * bin_s / 8.0;
    let expected = report["summary"]["flows"][0]["delivered_bytes"].as_f64().expect("a number");
    assert!((bytes / expected - 1.0).abs() < 1e-3, "{bytes} {expected}");
}

#[test]
fn without_samples_there_are_no_curves() {
    let report = finished(&text("reno", "sample = \"off\"\n"));
    assert_eq!(numbers(&report["t"]).len(), 0);
    assert_eq!(numbers(&report["flows"][0]["cwnd_seg"]).len(), 0);
}

#[test]
fn of_many_flows_some_are_drawn() {
    let report = finished(&text("reno", "").replace("rtt =", "count = 100\nrtt ="));
    let drawn: Vec<u64> =
        report["flows"].as_array().expect("flows").iter().filter_map(|flow| flow["id"].as_u64()).collect();
    assert_eq!(drawn.len(), 12);
    assert_eq!((drawn[0], drawn[11]), (0, 99));
    assert_eq!(report["summary"]["flows"].as_array().map(Vec::len), Some(100));
}

#[test]
fn every_law_of_tcp_is_listed_with_its_router() {
    let laws: Value = serde_json::from_str(&laws()).expect("JSON");
    let router = |name: &str| {
        let known = laws.as_array().expect("laws").iter().find(|law| law["name"] == name);
        known.map(|law| law["router"].clone())
    };
    assert_eq!(router("evcp"), Some("vcp".into()));
    assert_eq!(router("cubic"), Some(Value::Null));
    assert_eq!(router("udt"), None);
}
