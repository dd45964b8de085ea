//! The prediction bounds what runs then take, and not by far.

use lfn_scenario::Scenario;
use lfn_sim::tables::{FlowTable, ProbeTable, QueueTable, TransferTable};
use lfn_sim::Sim;

fn check(text: &str) {
    check_on(&format!("[link]\nrate = \"100Mbit/s\"\n{text}"));
}

fn check_on(text: &str) {
    let text = format!("schema = 1\nduration = \"4s\"\n{text}");
    let scenario = Scenario::parse(&text, "test.toml", None).unwrap_or_else(|error| panic!("{error}"));
    let need = scenario.predict();
    let config = scenario.config(1);
    let mut sim = Sim::new(&config).unwrap();
    sim.run_until(config.duration);
    let outcome = sim.finish().unwrap();
    let summary = &outcome.summary;
    let packets = summary.data_packets_delivered;
    assert!(packets <= need.packets && need.packets <= 2 * packets, "{packets} packets, {need:?}");
    let active = summary.background.as_ref().map_or(0, |background| background.max_active as usize);
    let flow_bytes = (config.flows.len() + active) * summary.memory.bytes_per_flow;
    assert!(flow_bytes as u64 <= need.flow_bytes, "{flow_bytes} bytes of flows, {need:?}");
    let packet_bytes = summary.memory.packet_bytes as u64;
    assert!(packet_bytes <= need.packet_bytes, "{packet_bytes} bytes of packets, {need:?}");
    let tables = &outcome.tables;
    let table_bytes = (FlowTable::ROW_BYTES * tables.flows.t_s.len()
        + ProbeTable::ROW_BYTES * tables.probes.t_s.len()
        + QueueTable::ROW_BYTES * tables.queues.t_s.len()) as u64;
    assert!(
        9 * table_bytes / 4 <= need.table_bytes,
        "{table_bytes} bytes of tables, with room to grow, {need:?}"
    );
    // An idle link and a flow that has ended have no rows.
    assert!(need.table_bytes <= 2 * 3 * table_bytes, "{table_bytes} bytes of tables, {need:?}");
}

/// A model of traffic on 20 Mbit/s: memory of connections and packets, and of the table of transfers, is
/// bounded, and not by more than ten times: how many messages wait for timeouts at once is not known better.
fn check_model(model: &str) {
    let text = format!(
        "schema = 1\nduration = \"60s\"\nsample = \"off\"\n[link]\nrate = \"20Mbit/s\"\n\
         queue = {{ size = \"250 packets\" }}\n[[traffic]]\nrtt = \"50ms\"\nreceive_window = \"64MB\"\n{model}\n"
    );
    let scenario = Scenario::parse(&text, "test.toml", None).unwrap_or_else(|error| panic!("{error}"));
    let need = scenario.predict();
    let config = scenario.config(1);
    let mut sim = Sim::new(&config).unwrap();
    sim.run_until(config.duration);
    let outcome = sim.finish().unwrap();
    let summary = &outcome.summary;
    let connections = summary.traffic[0].max_active as usize * summary.memory.bytes_per_flow;
    let bytes = (connections + summary.memory.packet_bytes) as u64;
    let predicted = need.flow_bytes + need.packet_bytes;
    assert!(bytes <= predicted && predicted <= 10 * bytes + 10_000_000, "{bytes} bytes, {need:?}");
    let table_bytes = (2 * TransferTable::ROW_BYTES * outcome.tables.transfers.t_s.len()) as u64;
    assert!(
        table_bytes * 9 / 10 <= need.table_bytes && need.table_bytes <= 6 * table_bytes,
        "{table_bytes}, {need:?}"
    );
    // In 60 s a heavy tail may bring more than its mean, and people who wait ask for less.
    let packets = summary.data_packets_delivered;
    assert!(packets * 8 / 10 <= need.packets && need.packets <= 4 * packets, "{packets} packets, {need:?}");
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
