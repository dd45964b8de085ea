//! Links: queues, impairments, traces, captures.

use super::network::DIAMOND;
use super::*;

#[test]
fn red_takes_its_preset_and_what_overrides_it() {
    let red = |lines: &str| match config("", &format!("kind = \"red\"\n{lines}"), "").links[0].queue {
        AqmConfig::Red(red) => red,
        _ => panic!("not RED"),
    };
    assert_eq!(red(""), RedConfig::gentle(1514));
    assert_eq!(red("preset = \"classic\""), RedConfig::classic(1514));
    assert_eq!(red("preset = \"adaptive\""), RedConfig::adaptive(1514));
    let own = red("preset = \"adaptive\"\nmin_th = \"20 packets\"\nmax_th = \"60 packets\"\nweight = 0.01\n\
                   max_p = 0.02\ngentle = false\nadaptive = false\nwait = false\nbyte_mode = true\necn = false\n\
                   rules = \"linux\"\nmark_p = 1");
    let wanted = RedConfig {
        weight: Weight::Fixed(0.01),
        max_p: 0.02,
        gentle: false,
        adaptive: false,
        wait: false,
        rules: RedRules::Linux,
        byte_mode: true,
        ecn: false,
        mark_p: 1.0,
        ..RedConfig::adaptive(1514).between(Thresholds::Fixed { min_th: 20.0, max_th: 60.0 })
    };
    assert_eq!(own, wanted);
    let delay = red("preset = \"classic\"\ntarget_delay = \"2ms\"").thresholds();
    assert_eq!(delay, Thresholds::Automatic { target_delay: Time::from_ms(2) });
}

#[test]
fn the_opposite_direction_is_the_same_unless_it_says_otherwise() {
    let text = "schema = 1\nduration = \"60s\"\n[link]\nrate = \"1Gbit/s\"\nloss = 0.001\nmode = \"event\"\n\
                [link.queue]\nsize = \"50 packets\"\n[link.reverse]\nrate = \"2Gbit/s\"\n\
                [[flow]]\nlaw = \"reno\"\nrtt = \"10ms\"\n";
    let reverse = &parse(text).config(1).links[1];
    assert_eq!((rate(reverse), reverse.limit_packets), (Rate(2_000_000_000), 50));
    assert_eq!(reverse.impair.loss, Loss::Bernoulli(0.001));
    assert!(reverse.event_mode);
    let own = text.replace("\"2Gbit/s\"\n", "\"2Gbit/s\"\nloss = 0\nqueue = { size = \"7 packets\" }\n");
    let reverse = &parse(&own).config(1).links[1];
    assert_eq!((reverse.impair.loss, reverse.limit_packets), (Loss::Bernoulli(0.0), 7));
}

#[test]
fn every_queue_has_the_defaults_of_its_source() {
    let queue = |lines: &str| config("", lines, "").links[0].queue;
    let wire_bytes = 1514;
    assert!(matches!(queue("kind = \"drop-head\""), AqmConfig::DropHead(_)));
    let AqmConfig::Codel(codel) = queue("kind = \"codel\"") else { panic!() };
    assert_eq!(codel, CodelConfig { mtu_bytes: wire_bytes, ..CodelConfig::default() });
    let AqmConfig::FqCodel(fair) = queue("kind = \"fq-codel\"") else { panic!() };
    assert_eq!(fair, FqCodelConfig::new(wire_bytes));
    let AqmConfig::Pie(pie) = queue("kind = \"pie\"") else { panic!() };
    assert_eq!(pie, PieConfig { mean_packet_bytes: wire_bytes, ..PieConfig::default() });
}

#[test]
fn every_parameter_of_a_queue_can_be_said() {
    let queue = |lines: &str| config("", lines, "").links[0].queue;
    let own = CodelConfig {
        target: Time::from_ms(2),
        interval: Time::from_ms(300),
        mtu_bytes: 1514,
        ecn: true,
        ..CodelConfig::default()
    };
    let codel = "target = \"2ms\"\ninterval = \"300ms\"\necn = true";
    assert!(matches!(queue(&format!("kind = \"codel\"\n{codel}")), AqmConfig::Codel(codel) if codel == own));
    let fair = queue(&format!("kind = \"fq-codel\"\nqueues = 7\nquantum = \"300B\"\n{codel}"));
    let wanted = FqCodelConfig {
        queues: 7,
        quantum: Some(Bytes(300)),
        target: own.target,
        interval: own.interval,
        ecn: true,
        mtu_bytes: 1514,
        ..FqCodelConfig::default()
    };
    assert!(matches!(fair, AqmConfig::FqCodel(fair) if fair == wanted));
    let pie = queue(
        "kind = \"pie\"\ntarget = \"20ms\"\nupdate = \"30ms\"\nalpha = 0.5\nbeta = 2\nburst = \"0s\"\n\
         byte_mode = true\necn = true",
    );
    let wanted = PieConfig {
        target: Time::from_ms(20),
        update: Time::from_ms(30),
        alpha: 0.5,
        beta: 2.0,
        burst: Time::ZERO,
        byte_mode: true,
        ecn: true,
        mean_packet_bytes: 1514,
    };
    assert!(matches!(pie, AqmConfig::Pie(pie) if pie == wanted));
}

/// A dumbbell of 1 Gbit/s over 100 ms with these lines in its link.
fn impaired(lines: &str) -> Vec<LinkConfig> {
    let text = format!(
        "schema = 1\nduration = \"60s\"\n[link]\nrate = \"1Gbit/s\"\n{lines}\n[[flow]]\nlaw = \"reno\"\n\
         rtt = \"100ms\"\n"
    );
    parse(&text).config(1).links
}

#[test]
fn impairments_are_those_of_the_link_in_both_directions() {
    let links = impaired(
        "delay = \"10ms\"\nduplicate = 0.001\nreorder = { p = 0.01, delay = \"3ms\" }\n\
         jitter = { high = \"2ms\", keep_order = false }\n\
         loss = { kind = \"gilbert-elliott\", p = 0.0001, r = 0.1, bad = 0.5 }\n\
         reverse = { delay = \"20ms\", loss = 0, jitter = { kind = \"normal\", mean = \"2ms\", deviation = \"1ms\" } }",
    );
    let [forward, reverse] = &links[..] else { panic!() };
    assert_eq!((forward.delay, reverse.delay), (Time::from_ms(10), Time::from_ms(20)));
    let bursts = GilbertElliottConfig { p: 1e-4, r: 0.1, good: 0.0, bad: 0.5 };
    assert_eq!(forward.impair.loss, bursts.into());
    assert_eq!(reverse.impair.loss, Loss::Bernoulli(0.0));
    for link in &links {
        assert_eq!(link.impair.duplicate, 0.001);
        assert_eq!(link.impair.reorder, Some(Reorder { p: 0.01, delay: Time::from_ms(3) }));
    }
    let uniform = JitterConfig::uniform(Time::ZERO, Time::from_ms(2), false);
    assert_eq!(forward.impair.jitter, Some(uniform));
    let normal = JitterConfig::normal(Time::from_ms(2), Time::from_ms(1), true);
    assert_eq!(reverse.impair.jitter, Some(normal));
}

#[test]
fn acks_have_a_table_of_their_own() {
    let links = impaired(
        "acks = { loss = 0.1, aggregate = \"5ms\" }\nloss = 0.01\n\
         reverse = { acks = { reorder = { p = 0.01, delay = \"3ms\" } } }",
    );
    let [forward, reverse] = &links[..] else { panic!() };
    let acks = forward.acks.unwrap();
    assert_eq!((acks.loss, acks.aggregate), (Loss::Bernoulli(0.1), Some(Time::from_ms(5))));
    let acks = reverse.acks.unwrap();
    assert_eq!((acks.loss, acks.aggregate), (Loss::Bernoulli(0.0), None));
    assert_eq!(acks.reorder, Some(Reorder { p: 0.01, delay: Time::from_ms(3) }));
    assert_eq!(reverse.impair.loss, Loss::Bernoulli(0.01));
}

#[test]
fn a_trace_stands_in_place_of_a_rate_and_its_mean_sizes_the_buffer() {
    let name = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/scenario.toml");
    let text = "schema = 1\nduration = \"60s\"\n[link]\ntrace = \"four-a-second.mahi\"\n\
                [link.reverse]\nrate = \"1Gbit/s\"\n[[flow]]\nlaw = \"reno\"\nrtt = \"10s\"\n";
    let scenario = Scenario::parse(text, name, None).unwrap();
    let links = scenario.config(1).links;
    let Service::Trace(trace, framing_bytes) = &links[0].service else { panic!("no trace") };
    // 4 packets of 1500 bytes a second: 60 kB in 10 s.
    assert_eq!((trace.mean_rate(), links[0].limit_packets), (Rate(48_000), 60_000 / 1514));
    assert_eq!(*framing_bytes, 14);
    assert_eq!(rate(&links[1]), Rate(1_000_000_000));
    let canonical = scenario.to_toml().unwrap();
    assert_eq!(Scenario::parse(&canonical, name, None).unwrap(), scenario);
    let changed = canonical.replace("hash = \"", "hash = \"0");
    let error = Scenario::parse(&changed, name, None).unwrap_err();
    assert_eq!(error.key, "link.trace.hash");
}

#[test]
fn a_capture_is_of_all_links_and_times_unless_it_says_otherwise() {
    let capture = |lines: &str| {
        let text = format!("{DIAMOND}[[flow]]\nlaw = \"reno\"\nfrom = \"a\"\nto = \"d\"\n[capture]\n{lines}");
        let scenario = parse(&text);
        assert_eq!(parse(&scenario.to_toml().unwrap()), scenario);
        let capture = scenario.config(1).capture.unwrap();
        (capture.links, capture.from.as_s(), capture.to.as_s(), capture.max_rows)
    };
    assert_eq!(capture(""), ((0..8).map(LinkId).collect(), 0.0, 60.0, 1_000_000));
    let own = "links = [\"cd\", \"ab\"]\nfrom = \"1s\"\nto = \"2s\"\nmax_rows = 10\n";
    assert_eq!(capture(own), (vec![LinkId(6), LinkId(0)], 1.0, 2.0, 10));
}
