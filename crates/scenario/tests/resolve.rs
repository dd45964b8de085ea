//! Resolved scenarios: defaults, sizes, and the simulation's configuration.

use std::path::Path;

use lfn_law::{LawSpec, Prototype, SlowStartKind};
use lfn_path::{
    AqmConfig, CodelConfig, FqCodelConfig, GilbertElliottConfig, JitterConfig, PieConfig, RedConfig,
    RedRules, Reorder, Service, Thresholds, Weight,
};
use lfn_scenario::Scenario;
use lfn_sim::config::{Changed, Config, Direction, LinkConfig, LinkId, Loss, RouteId};
use lfn_sim::rng::Distribution;
use lfn_sim::traffic::udp::{Burst, OnOff, Pattern};
use lfn_sim::traffic::{evaluation_suite, open, packmime, requests, web, Model, PathConfig};
use lfn_tcp::{ReceiverConfig, SendBuffer, SenderConfig};
use lfn_units::{Bytes, Rate, Time};

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml", None).unwrap_or_else(|error| panic!("{error}"))
}

/// The rate of a link that follows no trace.
fn rate(link: &LinkConfig) -> Rate {
    match link.service {
        Service::Rate(rate) => rate,
        Service::Trace(_) | Service::Shaped(..) => panic!("{} has no rate of its own", link.name),
    }
}

/// A dumbbell of 10 Gbit/s and one flow of CUBIC over 100 ms, with more lines here and there.
fn config(top: &str, queue: &str, flow: &str) -> Config {
    let text = format!(
        "schema = 1\nduration = \"60s\"\n{top}\n[link]\nrate = \"10Gbit/s\"\n[link.queue]\n{queue}\n\
         [[flow]]\nlaw = \"cubic\"\nrtt = \"100ms\"\n{flow}\n"
    );
    parse(&text).config(1)
}

/// A sample of a flow of CUBIC is six rows, with its probes; a run of 60 s has 6,001 samples at most.
#[test]
fn runs_of_many_flows_sample_less_often() {
    let sampled = |top: &str, flow: &str| config(top, "", flow).sample;
    for (count, ms) in [(1, 10), (110, 10), (111, 20), (500, 50), (10_000, 1000), (1_000_000, 1000)] {
        let flow = format!("count = {count}\nparallel = 1");
        assert_eq!(sampled("", &flow), Some(Time::from_ms(ms)), "{count} flows");
        assert_eq!(sampled("sample = \"10ms\"", &flow), Some(Time::from_ms(10)), "{count} flows");
    }
    assert_eq!(sampled("", "count = 10000\nstart = \"uniform(0s, 59s)\""), Some(Time::from_ms(500)));
    assert_eq!(sampled("sample = \"off\"", "count = 10000"), None);
    // Two links have a row in each sample, too.
    for (rows, ms) in [(48_008, 10), (48_007, 20), (24_008, 20), (24_007, 50), (488, 1000)] {
        assert_eq!(sampled(&format!("sample_rows = {rows}"), ""), Some(Time::from_ms(ms)), "{rows} rows");
    }
    // A run that is shorter than an interval has a sample at its end.
    let text = "schema = 1\nduration = \"5ms\"\n[link]\nrate = \"10Gbit/s\"\n[[flow]]\nlaw = \"reno\"\n\
                rtt = \"1ms\"\ncount = 2000000\n";
    assert_eq!(parse(text).config(1).sample, Some(Time::from_ms(5)));
}

#[test]
fn defaults_are_those_of_linux() {
    let config = config("", "", "");
    assert_eq!((config.seed, config.duration, config.warmup), (1, Time::from_s(60), Time::ZERO));
    assert_eq!(config.sample, Some(Time::from_ms(10)));
    assert!(config.background.is_none());
    let flow = &config.flows[0];
    assert_eq!((flow.payload_bytes, flow.wire_bytes, flow.ack_bytes), (1448, 1514, 66));
    assert_eq!((flow.direction, flow.rtt), (Direction::Forward, Time::from_ms(100)));
    assert_eq!((flow.start, flow.stop, flow.size_segments), (Time::ZERO, Time::NEVER, u64::MAX));
    // Four times 125 MB and the buffer below, in payloads of 1448 bytes.
    let send_buffer = SendBuffer::Segments(690_605);
    let linux = SenderConfig::linux(1448, SlowStartKind::HyStart);
    assert_eq!(flow.sender, SenderConfig { send_buffer, ..linux });
    assert_eq!(flow.receiver, ReceiverConfig::linux(Time::from_ms(100), 1448));
    // 125 MB in packets of 1514 bytes.
    for link in &config.links {
        assert_eq!(
            (rate(link), link.limit_packets, link.limit_bytes),
            (Rate(10_000_000_000), 82_562, u64::MAX)
        );
        assert_eq!((link.delay, link.impair.loss), (Time::ZERO, Loss::Bernoulli(0.0)));
        assert!(!link.impair.moves());
        assert!(matches!(link.queue, AqmConfig::DropTail(_)));
        assert!(!link.event_mode);
    }
}

#[test]
fn ns2_is_the_papers_simulator() {
    let config = config("compat = \"ns2\"", "size = \"100 packets\"", "packet = \"1000B\"");
    let flow = &config.flows[0];
    assert_eq!((flow.payload_bytes, flow.wire_bytes, flow.ack_bytes), (960, 1000, 40));
    // Four times 125 MB and 100 kB.
    let send_buffer = SendBuffer::Segments(521_250);
    assert_eq!(flow.sender, SenderConfig { send_buffer, ..SenderConfig::ns2(960) });
    assert_eq!(flow.receiver, ReceiverConfig::ns2(Time::from_ms(100)));
    assert_eq!(config.links[0].limit_packets, 99);
}

#[test]
fn a_tuned_host_holds_four_times_what_its_path_ever_holds_and_64_mb_at_least() {
    let segments = |text: &str| {
        let text = format!("schema = 1\nduration = \"60s\"\n{text}");
        let flows = parse(&text).config(1).flows;
        flows.iter().map(|flow| flow.sender.send_buffer).collect::<Vec<_>>()
    };
    let dumbbell = "[link]\nrate = \"1Gbit/s\"\nqueue = { size = \"1MB\" }\n";
    let long = "[[flow]]\nlaw = \"reno\"\nrtt = \"400ms\"\n";
    let of = |bytes: f64| SendBuffer::Segments((bytes / 1448.0).ceil() as u64);
    assert_eq!(segments(&format!("{dumbbell}{long}")), [of(4.0 * 51e6)]);
    // A path that holds little; and one on which the link becomes faster and longer.
    assert_eq!(segments(&format!("{dumbbell}[[flow]]\nlaw = \"reno\"\nrtt = \"1ms\"\n")), [of(64e6)]);
    let change = "[[schedule]]\nat = \"5s\"\nlink = \"forward\"\nrate = \"2Gbit/s\"\ndelay = \"100ms\"\n";
    assert_eq!(segments(&format!("{dumbbell}{long}{change}")), [of(4.0 * 126e6)]);
    // Two hops, two buffers; another flow has what it says.
    let lot = "[parking-lot]\nhops = 2\nrate = \"1Gbit/s\"\nqueue = { size = \"10MB\" }\n";
    let own = |buffer: &str| format!("{long}send_buffer = \"{buffer}\"\n");
    assert_eq!(
        segments(&format!(
            "{lot}{long}{}{}{}{}{}{}",
            own("1MB"),
            own("7 packets"),
            own("linux"),
            own("linux 64MB"),
            own("linux 1 MB 64MB"),
            own("linux 64MB  1 MB")
        )),
        [
            of(4.0 * 70e6),
            SendBuffer::Segments(690),
            SendBuffer::Segments(7),
            SendBuffer::Autotuned { first_bytes: 16_384, max_bytes: 4_194_304 },
            SendBuffer::Autotuned { first_bytes: 16_384, max_bytes: 64_000_000 },
            SendBuffer::Autotuned { first_bytes: 1_000_000, max_bytes: 64_000_000 },
            SendBuffer::Autotuned { first_bytes: 64_000_000, max_bytes: 1_000_000 }
        ]
    );
}

#[test]
fn every_flow_has_a_draw_of_its_own() {
    let seeds = |more: &str| {
        let config = config("", "", more);
        config.flows.iter().map(|flow| flow.law_seed).collect::<Vec<_>>()
    };
    let three = seeds("count = 3");
    assert!(three[0] != three[1] && three[1] != three[2] && three[0] != three[2]);
    assert_eq!(seeds("count = 2"), three[..2]);
}

#[test]
fn sizes_count_packets_bytes_or_products_of_rate_and_largest_rtt() {
    let limits = |size: &str| {
        let link =
            &config("", &format!("size = \"{size}\""), "[[flow]]\nlaw = \"reno\"\nrtt = \"10ms\"").links[0];
        (link.limit_packets, link.limit_bytes)
    };
    assert_eq!(limits("250 packets"), (250, u64::MAX));
    assert_eq!(limits("1 packet"), (1, u64::MAX));
    assert_eq!(limits("12.5MB"), (u64::MAX, 12_500_000));
    assert_eq!(limits("0.5bdp"), (41_281, u64::MAX));
    // The packets of the largest size: 125 MB / 9014 B.
    let jumbo = config("", "", "packet = \"9000B\"\n[[flow]]\nlaw = \"reno\"\nrtt = \"10ms\"");
    assert_eq!(jumbo.links[0].limit_packets, 13_867);
}

#[test]
fn what_a_flow_says_is_what_it_gets() {
    let config = config(
        "",
        "",
        "start = \"1s\"\nstop = \"20s\"\nsize = \"1448001B\"\ndirection = \"reverse\"\nreceive_window = \"64KiB\"\n\
         initial_window = \"4 packets\"\ninitial_ssthresh = \"100 packets\"\nslow_start = \"limited\"\n\
         delayed_ack = false\nsack = false\necn = true\npacing = true",
    );
    let flow = &config.flows[0];
    assert_eq!((flow.start, flow.stop), (Time::from_s(1), Time::from_s(20)));
    assert_eq!((flow.size_segments, flow.direction), (1001, Direction::Reverse));
    let linux = SenderConfig::linux(1448, SlowStartKind::Limited);
    let wanted = SenderConfig {
        receive_window_segments: 45,
        initial_window_segments: 4,
        initial_ssthresh_segments: Some(100),
        sack: false,
        ecn: true,
        pacing: true,
        send_buffer: flow.sender.send_buffer,
        ..linux
    };
    assert_eq!(flow.sender, wanted);
    let receiver = &flow.receiver;
    assert_eq!((receiver.delayed_ack, receiver.sack, receiver.ecn), (false, false, true));
    assert_eq!(receiver.sack_compression, None);
}

#[test]
fn random_starts_differ_by_flow_and_seed_and_do_not_shift_each_other() {
    let text = |count| {
        format!(
            "schema = 1\nduration = \"60s\"\n[link]\nrate = \"1Gbit/s\"\n[[flow]]\nlaw = \"reno\"\n\
             rtt = \"10ms\"\ncount = {count}\nstart = \"uniform(5s, 20s)\"\n"
        )
    };
    let starts = |count, seed| -> Vec<Time> {
        parse(&text(count)).config(seed).flows.iter().map(|flow| flow.start).collect()
    };
    let many = starts(100, 1);
    assert!(many.iter().all(|&start| Time::from_s(5) <= start && start < Time::from_s(20)));
    assert!(many.windows(2).all(|pair| pair[0] != pair[1]));
    assert_eq!(starts(10, 1), many[..10]);
    assert_ne!(starts(10, 2), many[..10]);
}

#[test]
fn streams_of_a_flow_start_together_and_share_its_size() {
    let text =
        "schema = 1\nduration = \"30s\"\nlink.rate = \"1Gbit/s\"\n[[flow]]\nlaw = \"reno\"\nrtt = \"10ms\"\n\
        count = 2\nparallel = 3\nsize = \"10MB\"\nstart = \"uniform(5s, 20s)\"\n";
    let flows = parse(text).config(1).flows;
    let streams: Vec<u32> = flows.iter().map(|flow| flow.stream).collect();
    assert_eq!(streams, [0, 1, 2, 0, 1, 2]);
    for transfer in flows.chunks(3) {
        assert!(transfer.iter().all(|flow| flow.start == transfer[0].start));
        // 3,333,334 and twice 3,333,333 bytes in segments of 1448.
        assert!(transfer.iter().all(|flow| flow.size_segments == 2303));
    }
    assert_ne!(flows[0].start, flows[3].start);
    // Those of single flows.
    let alone = parse(&text.replace("parallel = 3\n", "")).config(1).flows;
    assert_eq!([alone[0].start, alone[1].start], [flows[0].start, flows[3].start]);
}

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
fn background_follows_level_and_rate() {
    let text =
        "schema = 1\nduration = \"60s\"\n[link]\nrate = \"10Gbit/s\"\n[link.queue]\nsize = \"100 packets\"\n\
                [background]\nlevel = 2\n";
    let background = parse(text).config(1).background.unwrap();
    let traffic = background.traffic;
    assert_eq!((traffic.forward, traffic.reverse), (Rate(2_500_000_000), Rate(1_250_000_000)));
    assert_eq!(traffic.long_flows, 10);
    assert_eq!(background.sender.initial_window_segments, 2);
    assert!(background.receiver.delayed_ack);
    let only_long = parse(&text.replace("level = 2", "long_flows = 3")).config(1).background.unwrap().traffic;
    assert_eq!((only_long.forward, only_long.long_flows), (Rate(0), 3));
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
    let own =
        CodelConfig { target: Time::from_ms(2), interval: Time::from_ms(300), mtu_bytes: 1514, ecn: true };
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
    let Service::Trace(trace) = &links[0].service else { panic!("no trace") };
    // 4 packets of 1500 bytes a second: 60 kB in 10 s.
    assert_eq!((trace.mean_rate(), links[0].limit_packets), (Rate(48_000), 60_000 / 1514));
    assert_eq!(rate(&links[1]), Rate(1_000_000_000));
    let canonical = scenario.to_toml().unwrap();
    assert_eq!(Scenario::parse(&canonical, name, None).unwrap(), scenario);
    let changed = canonical.replace("hash = \"", "hash = \"0");
    let error = Scenario::parse(&changed, name, None).unwrap_err();
    assert_eq!(error.key, "link.trace.hash");
}

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
const DIAMOND: &str = "schema = 1\nduration = \"60s\"\n[[links]]\nname = \"ab\"\nfrom = \"a\"\nto = \"b\"\n\
    rate = \"1Gbit/s\"\ndelay = \"5ms\"\n[[links]]\nname = \"bd\"\nfrom = \"b\"\nto = \"d\"\nrate = \"1Gbit/s\"\n\
    delay = \"5ms\"\n[[links]]\nname = \"ac\"\nfrom = \"a\"\nto = \"c\"\nrate = \"1Gbit/s\"\ndelay = \"2ms\"\n\
    [[links]]\nname = \"cd\"\nfrom = \"c\"\nto = \"d\"\nrate = \"1Gbit/s\"\ndelay = \"2ms\"\nduplex = false\n\
    [[links]]\nname = \"de\"\nfrom = \"d\"\nto = \"e\"\nrate = \"1Gbit/s\"\nduplex = false\n";

/// The links of a route.
fn links(config: &Config, route: RouteId) -> Vec<u16> {
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
fn udp_sends_in_bursts_in_steps_or_at_random() {
    let text =
        "schema = 1\nduration = \"60s\"\n[link]\nrate = \"1Gbit/s\"\nqueue = { size = \"100 packets\" }\n\
                [[udp]]\nbursts = [{ stop = \"1s\", rate = \"5Mbit/s\" }, { rate = \"7Mbit/s\" }]\n\
                [[udp]]\nname = \"steps\"\npacket = \"1000B\"\nsteps = { start = \"58s\", each = \"1s\", \
                rates = [\"2Mbit/s\", \"0bit/s\", \"3Mbit/s\"] }\n\
                [[udp]]\ndirection = \"reverse\"\non_off = { sources = 100 }\n";
    let scenario = parse(text);
    assert_eq!(parse(&scenario.to_toml().unwrap()), scenario);
    let config = scenario.config(1);
    let burst = |start, stop, mbit: u64| Burst {
        start: Time::from_s(start),
        stop: Time::from_s(stop),
        rate: Rate(mbit * 1_000_000),
    };
    let sources: Vec<_> =
        config.udp.iter().map(|udp| (&*udp.name, udp.traffic.packet_bytes, udp.route)).collect();
    assert_eq!(
        sources,
        [("udp0", 1514, RouteId(0)), ("steps", 1014, RouteId(0)), ("udp2", 1514, RouteId(1))]
    );
    let patterns: Vec<_> = config.udp.iter().map(|udp| udp.traffic.pattern.clone()).collect();
    // The third step would begin when the run ends.
    assert_eq!(
        patterns,
        [
            Pattern::Bursts(vec![burst(0, 1, 5), burst(1, 60, 7)]),
            Pattern::Bursts(vec![burst(58, 59, 2), burst(59, 60, 0)]),
            Pattern::OnOff(OnOff::gigabit(100)),
        ]
    );
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

#[test]
fn background_on_a_route_follows_its_slowest_link() {
    let text = DIAMOND.replacen("\"1Gbit/s\"", "\"100Mbit/s\"", 1);
    let scenario = parse(&format!(
        "{text}[[flow]]\nlaw = \"reno\"\nfrom = \"a\"\nto = \"d\"\n[background]\nlevel = 1\nroute = [\"ab\", \"bd\"]\n"
    ));
    let config = scenario.config(1);
    let background = config.background.as_ref().unwrap();
    assert_eq!(background.traffic.forward, Rate(10_000_000));
    let routes = background.routes.map(|route| links(&config, route));
    assert_eq!(routes, [[0, 2], [3, 1]]);
}

/// The models of a dumbbell with these tables.
fn models(text: &str) -> Vec<lfn_sim::config::TrafficConfig> {
    let name = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/scenario.toml");
    let text = format!(
        "schema = 1\nduration = \"60s\"\n[link]\nrate = \"1Gbit/s\"\nqueue = {{ size = \"100 packets\" }}\n{text}"
    );
    let scenario = Scenario::parse(&text, name, None).unwrap_or_else(|error| panic!("{error}"));
    let canonical = scenario.to_toml().unwrap();
    assert_eq!(Scenario::parse(&canonical, name, None).unwrap(), scenario, "{canonical}");
    scenario.config(1).traffic
}

#[test]
fn every_traffic_model_is_the_simulators() {
    let usual =
        PathConfig::of_rtt(Distribution::Uniform(Time::from_ms(10).as_s(), Time::from_ms(200).as_s()));
    let of = |table: &str| {
        models(&format!("[[traffic]]\nrtt = \"uniform(10ms, 200ms)\"\n{table}")).remove(0).model
    };
    let forward = Direction::Forward;
    let short = open::Config::poisson(forward, Rate(100_000_000), open::short_flow_bytes(), usual);
    assert_eq!(of("short_flows = { load = \"100Mbit/s\" }"), Model::Open(short));
    let clients = requests::Config {
        direction: forward,
        gap_s: Distribution::Exponential(8.0 * 36_500.0 / 1e6),
        more_exchanges: Distribution::Exponential(0.0).into(),
        request_bytes: Distribution::Constant(500.0).into(),
        server_delay_s: Distribution::Constant(0.0),
        response_bytes: open::short_flow_bytes().into(),
        think_s: Distribution::Exponential(1.0),
        persistent: true,
        path: usual,
    };
    assert_eq!(of("requests = { load = \"1Mbit/s\" }"), Model::Requests(clients.clone()));
    let own = requests::Config {
        gap_s: Distribution::Exponential(8.0 * 4.0 * 1e5 / 1e6),
        more_exchanges: Distribution::Exponential(3.0).into(),
        request_bytes: Distribution::Lognormal(400.0, 0.5).into(),
        server_delay_s: Distribution::Constant(0.002),
        response_bytes: Distribution::Constant(1e5).into(),
        think_s: Distribution::Exponential(0.0),
        persistent: false,
        ..clients
    };
    let table = "requests = { load = \"1Mbit/s\", request = { median = \"400B\", sigma = 0.5 }, response = \"100kB\", \
                 exchanges = 4, server_delay = \"2ms\", think = \"0s\", persistent = false }";
    assert_eq!(of(table), Model::Requests(own));
    let packmime = packmime::requests(forward, 50.0, usual);
    assert_eq!(of("packmime = { connections = 50 }"), Model::Requests(packmime));
    let answers = packmime::flows(forward, 50.0, usual);
    assert_eq!(of("packmime = { connections = 50, requests = false }"), Model::Open(answers));
    let webtraf = web::Config::webtraf(Direction::Reverse, 400, usual);
    assert_eq!(of("direction = \"reverse\"\nwebtraf = { sessions = 400 }"), Model::Web(webtraf));
    let surge = web::Config::surge(forward, 30, usual);
    assert_eq!(of("surge = { users = 30 }"), Model::Web(surge));
    let suite = evaluation_suite::Config {
        load: [Rate(1_000_000), Rate(2_000_000)],
        rtts: vec![Time::from_ms(4), Time::from_ms(74)],
    };
    let table = "direction = \"reverse\"\nsuite = { load = \"2Mbit/s\", reverse_load = \"1Mbit/s\", rtts = [\"4ms\", \"74ms\"] }";
    assert_eq!(of(table), Model::EvaluationSuite(suite));
    let table = "vectors = { file = \"connections.txt\", scale = 2, shuffle = \"1s\" }";
    let Model::Replay(replay) = of(table) else { panic!() };
    assert_eq!((replay.trace.vectors.len(), replay.scale, replay.shuffle), (2, 2.0, Some(Time::from_s(1))));
}

#[test]
fn a_law_that_the_registry_does_not_have_is_the_callers() {
    let text =
        "schema = 1\nduration = \"1s\"\nlink.rate = \"10Mbit/s\"\n[[flow]]\nlaw = \"own\"\nrtt = \"9ms\"\n\
                [[traffic]]\nlaw = \"own\"\nsurge.users = 3\n[[flow]]\nlaw = \"cubic\"\nrtt = \"9ms\"\n";
    let parse = |find: &dyn Fn() -> Result<LawSpec, String>| {
        Scenario::parse_with(text, "some/where/x.toml", None, &|name, folder| {
            assert_eq!(folder, Path::new("some/where"));
            (name == "own").then(find)
        })
    };
    let own = || {
        let build =
            |config: &_, control: &mut _| "scalable".parse::<LawSpec>().unwrap().build(config, control);
        let build: Option<lfn_law::Build> = Some(Box::new(build));
        let slow_start = SlowStartKind::Limited;
        Prototype { name: "Own".into(), source: "0123456789ab".into(), slow_start, probes: Vec::new(), build }
    };
    let scenario = parse(&|| Ok(own().into())).unwrap();
    let names: Vec<_> = scenario.laws().map(LawSpec::to_string).collect();
    assert_eq!(names, ["Own@0123456789ab", "cubic", "Own@0123456789ab"]);
    let config = scenario.config(1);
    assert_eq!(config.flows[0].sender.slow_start, SlowStartKind::Limited);
    // The written form can be read where the law is not known, and is the same.
    assert_eq!(
        Scenario::parse(&scenario.to_toml().unwrap(), "", None).unwrap().to_toml(),
        scenario.to_toml()
    );
    let mut sim = lfn_sim::Sim::new(&config).unwrap();
    sim.run_until(config.duration);
    let summary = sim.finish().unwrap().summary;
    assert_eq!(summary.flows[0].law, "Own (prototype)");
    assert!(summary.flows[0].delivered_bytes > 0);
    let error = parse(&|| Err("no file; write one".into())).unwrap_err().to_string();
    assert_eq!(error, "some/where/x.toml:5: flow[0].law: no file; write one");
}

#[test]
fn a_traffic_model_has_the_defaults_of_the_background() {
    let traffic = &models("[[traffic]]\nsurge = { users = 3 }\n[[traffic]]\nname = \"w\"\nlaw = \"cubic\"\n\
                           direction = \"reverse\"\nrtt = \"40ms\"\nreceive_window = \"20 packets\"\nsurge = { users = 3 }\n")[..];
    let [usual, own] = traffic else { panic!() };
    assert_eq!(
        (&*usual.name, usual.routes, usual.receive_window_bytes),
        ("traffic0", [RouteId(0), RouteId(1)], 65_536)
    );
    assert_eq!(usual.law.label(), "reno");
    assert_eq!((&*own.name, own.routes, own.receive_window_bytes), ("w", [RouteId(0), RouteId(1)], 29_200));
    assert_eq!(own.law.label(), "cubic");
    let Model::Web(web) = &own.model else { panic!() };
    assert_eq!((web.direction, web.path.rtt_s), (Direction::Reverse, Distribution::Constant(0.04)));
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
