//! Packets that are predicted bound what runs then deliver, and not by far.

use lfn_scenario::Scenario;
use lfn_sim::Sim;

/// Packets that a run delivers, and that were predicted.
fn packets(text: &str) -> (u64, u64) {
    let scenario = Scenario::parse(text, "test.toml", None).unwrap_or_else(|error| panic!("{error}"));
    let config = scenario.config(1);
    let mut sim = Sim::new(&config).unwrap();
    sim.run_until(config.duration);
    (sim.finish().unwrap().summary.data_packets_delivered, scenario.predict().packets)
}

fn check(text: &str) {
    check_on(&format!("[link]\nrate = \"100Mbit/s\"\n{text}"));
}

fn check_on(text: &str) {
    let (delivered, predicted) = packets(&format!("schema = 1\nduration = \"4s\"\n{text}"));
    assert!(delivered <= predicted && predicted <= 2 * delivered, "{delivered}, {predicted} predicted");
}

/// A model of traffic on 20 Mbit/s. In 60 s a heavy tail may bring more than its mean, and people who wait ask for less.
fn check_model(model: &str) {
    let (delivered, predicted) = packets(&format!(
        "schema = 1\nduration = \"60s\"\nsample = \"off\"\n[link]\nrate = \"20Mbit/s\"\n\
         queue = {{ size = \"250 packets\" }}\n[[traffic]]\nrtt = \"50ms\"\nreceive_window = \"64MB\"\n{model}\n"
    ));
    let holds = delivered * 8 / 10 <= predicted && predicted <= 4 * delivered;
    assert!(holds, "{delivered}, {predicted} predicted: {model}");
}

fn models(load: u64) -> [String; 3] {
    let suite = format!("load = \"{load}Mbit/s\", reverse_load = \"{}Mbit/s\", rtts = [\"50ms\"]", load / 2);
    [
        format!("short_flows = {{ load = \"{load}Mbit/s\" }}"),
        format!("requests = {{ load = \"{load}Mbit/s\", response = \"8kB\" }}"),
        format!("suite = {{ {suite} }}"),
    ]
}

#[test]
fn connections_of_models_of_traffic() {
    [10, 18].into_iter().flat_map(models).for_each(|model| check_model(&model));
    check_model("surge = { users = 100 }");
}

#[test]
fn connections_that_pile_up_on_an_overloaded_link() {
    [22, 25].into_iter().flat_map(models).for_each(|model| check_model(&model));
}

#[test]
fn one_flow() {
    check("[[flow]]\nlaw = \"cubic\"\nrtt = \"100ms\"\n");
}

#[test]
fn a_flow_whose_sender_samples_rates() {
    check("[[flow]]\nlaw = \"bbr\"\nrtt = \"100ms\"\n");
}

#[test]
fn many_flows() {
    check("[[flow]]\nlaw = \"reno\"\nrtt = \"100ms\"\ncount = 50\n");
}

#[test]
fn a_capped_window() {
    check("[[flow]]\nlaw = \"reno\"\nrtt = \"20ms\"\nreceive_window = \"160 packets\"\n");
}

#[test]
fn a_sized_flow() {
    check("[[flow]]\nlaw = \"reno\"\nrtt = \"20ms\"\nsize = \"30MB\"\n");
}

#[test]
fn flows_and_background() {
    check("[[flow]]\nlaw = \"hstcp\"\nrtt = \"100ms\"\n[background]\nlevel = 3\n");
}

#[test]
fn udp_beside_a_flow() {
    check("[[flow]]\nlaw = \"reno\"\nrtt = \"20ms\"\n[[udp]]\nbursts = [{ rate = \"40Mbit/s\" }]\n");
}

#[test]
fn a_link_that_becomes_faster_and_longer() {
    check(
        "[[flow]]\nlaw = \"cubic\"\nrtt = \"20ms\"\n[[schedule]]\nat = \"0.2s\"\nlink = \"forward\"\nrate = \"200Mbit/s\"\n\
         delay = \"5ms\"\n",
    );
}

#[test]
fn a_parking_lot() {
    check_on(
        "[parking-lot]\nhops = 3\nrate = \"100Mbit/s\"\ndelay = \"5ms\"\nqueue = { kind = \"fq-codel\" }\n[[flow]]\n\
         law = \"reno\"\n[[flow]]\nlaw = \"reno\"\nfrom = 1\nto = 2\n[[flow]]\nlaw = \"reno\"\nfrom = 3\nto = 2\n",
    );
}

#[test]
fn flows_over_udt() {
    for flow in ["law = \"udt\"", "law = \"cubic\"\ntransport = \"udt\""] {
        check(&format!("[[flow]]\n{flow}\nrtt = \"40ms\"\n[[flow]]\n{flow}\nrtt = \"40ms\"\ncount = 2"));
    }
}
