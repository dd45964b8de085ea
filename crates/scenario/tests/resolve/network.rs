//! Networks: routes and changes.

use super::*;

#[test]
fn a_parking_lot_is_a_row_of_hops() {
    let text = "schema = 1\nduration = \"60s\"\n[parking-lot]\nhops = 3\nrate = \"100Mbit/s\"\ndelay = \"10ms\"\n\
                reverse = { delay = \"20ms\" }\n[[flow]]\nlaw = \"reno\"\n[[flow]]\nlaw = \"reno\"\nfrom = 2\n\
                to = 3\nrtt = \"200ms\"\n[[flow]]\nlaw = \"reno\"\nfrom = \"4\"\nto = 2\n";
    let scenario = parse(text);
    let config = scenario.config(1);
    let names: Vec<&str> = config.links.iter().map(|link| &*link.name).collect();
    assert_eq!(names, ["hop1", "hop1.reverse", "hop2", "hop2.reverse", "hop3", "hop3.reverse"]);
    let got: Vec<_> = config
        .flows
        .iter()
        .map(|flow| (links(&config, flow.route), links(&config, flow.ack_route), flow.direction, flow.rtt))
        .collect();
    assert_eq!(
        got,
        [
            (vec![0, 2, 4], vec![5, 3, 1], Direction::Forward, Time::from_ms(90)),
            (vec![2], vec![3], Direction::Forward, Time::from_ms(200)),
            (vec![5, 3], vec![2, 4], Direction::Reverse, Time::from_ms(60)),
        ]
    );
    // 1 BDP of the largest RTT that passes: 90 ms on the first hop, 200 ms on the second, 90 on the third.
    let limits: Vec<_> = config.links.iter().map(|link| link.limit_packets).collect();
    assert_eq!(limits, [743, 743, 1651, 1651, 743, 743]);
    let canonical = scenario.to_toml().unwrap();
    assert_eq!(parse(&canonical), scenario);
}

/// Two ways from a to d, over b and over c; the upper one is longer. No link leads to e.
pub(super) const DIAMOND: &str = "schema = 1\nduration = \"60s\"\n[[links]]\nname = \"ab\"\nfrom = \"a\"\nto = \"b\"\n\
    rate = \"1Gbit/s\"\ndelay = \"5ms\"\n[[links]]\nname = \"bd\"\nfrom = \"b\"\nto = \"d\"\nrate = \"1Gbit/s\"\n\
    delay = \"5ms\"\n[[links]]\nname = \"ac\"\nfrom = \"a\"\nto = \"c\"\nrate = \"1Gbit/s\"\ndelay = \"2ms\"\n\
    [[links]]\nname = \"cd\"\nfrom = \"c\"\nto = \"d\"\nrate = \"1Gbit/s\"\ndelay = \"2ms\"\nduplex = false\n\
    [[links]]\nname = \"de\"\nfrom = \"d\"\nto = \"e\"\nrate = \"1Gbit/s\"\nduplex = false\n";

/// The links of a route.
pub(super) fn links(config: &Config, route: RouteId) -> Vec<u16> {
    config.routes[route.index()].iter().map(|link| link.0).collect()
}

/// The links of a flow's data and ACKs in [`DIAMOND`], and its RTT in ms.
fn diamond(lines: &str) -> (Vec<String>, Vec<String>, u64) {
    let scenario = parse(&format!("{DIAMOND}[[flow]]\nlaw = \"reno\"\n{lines}\n"));
    assert_eq!(parse(&scenario.to_toml().unwrap()), scenario);
    let config = scenario.config(1);
    let flow = &config.flows[0];
    let names = |route: RouteId| {
        let links = config.routes[route.index()].iter();
        links.map(|link| config.links[link.index()].name.clone()).collect()
    };
    (names(flow.route), names(flow.ack_route), flow.rtt.as_ns() / 1_000_000)
}

#[test]
fn a_flow_without_a_route_takes_fewest_hops_then_least_delay() {
    let texts = |names: &[&str]| names.iter().map(|&name| name.to_string()).collect::<Vec<_>>();
    let (ab_bd, back) = (texts(&["ab", "bd"]), texts(&["bd.reverse", "ab.reverse"]));
    // cd has no way back, so the ACKs take the other side.
    assert_eq!(diamond("from = \"a\"\nto = \"d\""), (texts(&["ac", "cd"]), back.clone(), 14));
    assert_eq!(diamond("from = \"a\"\nto = \"d\"\nvia = [\"b\"]"), (ab_bd.clone(), back.clone(), 20));
    assert_eq!(diamond("route = [\"ab\", \"bd\"]\nrtt = \"30ms\""), (ab_bd, back, 30));
    let asymmetric =
        "from = \"a\"\nto = \"b\"\nroute = [\"ac\", \"cd\", \"bd.reverse\"]\nack_route = [\"ab.reverse\"]";
    assert_eq!(diamond(asymmetric), (texts(&["ac", "cd", "bd.reverse"]), texts(&["ab.reverse"]), 14));
}

#[test]
fn of_equal_paths_the_first_named_is_taken() {
    let text = DIAMOND.replace("delay = \"2ms\"", "delay = \"5ms\"");
    let scenario = parse(&format!("{text}[[flow]]\nlaw = \"reno\"\nfrom = \"a\"\nto = \"d\"\n"));
    let config = scenario.config(1);
    assert_eq!(links(&config, config.flows[0].route), [0, 2]);
}

#[test]
fn changes_come_in_order_of_time_and_a_link_comes_up_with_its_last_rate() {
    let name = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/scenario.toml");
    let text = format!(
        "{DIAMOND}[[flow]]\nlaw = \"reno\"\nfrom = \"a\"\nto = \"d\"\ncount = 2\nname = \"moved\"\n\
         [[schedule]]\nat = \"10s\"\nlink = \"ab\"\nrate = \"250Mbit/s\"\ndelay = \"1ms\"\nloss = 0.01\n\
         [[schedule]]\nat = \"10s\"\nlink = \"ab\"\ndown = true\n\
         [[schedule]]\nlink = \"ac\"\nfile = \"delays.csv\"\n\
         [[schedule]]\nat = \"20s\"\nlink = \"ab\"\ndown = false\n\
         [[schedule]]\nat = \"20s\"\nflow = \"moved\"\nroute = [\"ab\", \"bd\"]\n"
    );
    let scenario = Scenario::parse(&text, name, None).unwrap_or_else(|error| panic!("{error}"));
    let canonical = scenario.to_toml().unwrap();
    assert_eq!(Scenario::parse(&canonical, name, None).unwrap(), scenario);
    let config = scenario.config(1);
    let changes: Vec<_> = config.changes.iter().map(|change| (change.at.as_s(), change.what)).collect();
    let route = |flow| {
        let Changed::Route { route, ack_route, .. } = changes[changes.len() - 1].1 else { panic!() };
        assert_eq!(links(&config, route), [0, 2]);
        assert_eq!(links(&config, ack_route), [3, 1]);
        Changed::Route { flow, route, ack_route }
    };
    let (fast, slow) = (Rate(250_000_000), Rate(0));
    assert_eq!(
        changes,
        [
            (0.5, Changed::Delay(LinkId(4), Time::from_ms(3))),
            (10.0, Changed::Rate(LinkId(0), fast)),
            (10.0, Changed::Delay(LinkId(0), Time::from_ms(1))),
            (10.0, Changed::Loss(LinkId(0), 0.01)),
            (10.0, Changed::Rate(LinkId(0), slow)),
            (15.0, Changed::Delay(LinkId(4), Time::from_ms(4))),
            (20.0, Changed::Rate(LinkId(0), fast)),
            (20.0, route(0)),
            (20.0, route(1)),
        ]
    );
}

#[test]
fn links_have_sixteen_bits() {
    let text = |links: u32| {
        let flow = "[[flow]]\nlaw = \"reno\"\nfrom = \"n0\"\nto = \"n2\"\n";
        let link = |i: u32| {
            format!("[[links]]\nname = \"l{i}\"\nfrom = \"n{i}\"\nto = \"n{}\"\nrate = \"1Gbit/s\"\ndelay = \"1ms\"\n", i + 1)
        };
        let links: String = (0..links).map(link).collect();
        format!("schema = 1\nduration = \"60s\"\n{flow}{links}")
    };
    assert_eq!(parse(&text(32_767)).config(1).links.len(), 65_534);
    let error = Scenario::parse(&text(32_768), "test.toml", None).unwrap_err();
    assert_eq!((&*error.key, &*error.hint), ("links", "allowed: up to 65535"));
}
