//! Flows, their hosts and their laws.

use super::*;

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
    let seeds = |count: u32| {
        let drawing = format!("[[flow]]\nlaw = \"bbr\"\nrtt = \"10ms\"\ncount = {count}");
        let config = config("", "", &drawing);
        config.flows.iter().map(|flow| flow.law_seed).collect::<Vec<_>>()
    };
    let three = seeds(3);
    assert_eq!(three[0], 0, "a law that draws nothing");
    assert!(three[1] != three[2] && three[2] != three[3] && three[1] != three[3]);
    assert_eq!(seeds(2), three[..3]);
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
fn a_receiver_compresses_sacks_if_it_delays_acks() {
    let of = |more| config("", "", more).flows[0].receiver.sack_compression;
    assert_eq!(of(""), Some(Time::from_ms(1)));
    assert_eq!(of("delayed_ack = false"), None);
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
fn a_law_that_the_registry_does_not_have_is_the_callers() {
    let text =
        "schema = 1\nduration = \"1s\"\nlink.rate = \"10Mbit/s\"\n[[flow]]\nlaw = \"own\"\nrtt = \"9ms\"\n\
                [[traffic]]\nlaw = \"own\"\nsurge.users = 3\n[[flow]]\nlaw = \"cubic\"\nrtt = \"9ms\"\n";
    struct Own<'a>(&'a dyn Fn() -> Result<LawSpec, String>);
    impl Outside for Own<'_> {
        fn find_law(&self, name: &str, folder: &Path) -> Option<Result<LawSpec, String>> {
            assert_eq!(folder, Path::new("some/where"));
            (name == "own").then(self.0)
        }
    }
    let parse = |find: &dyn Fn() -> Result<LawSpec, String>| {
        Scenario::parse_with(text, "some/where/x.toml", None, &Own(find))
    };
    let own = || {
        let build =
            |config: &_, control: &mut _| "scalable".parse::<LawSpec>().unwrap().build(config, control);
        let build = Some(Build::Law(Box::new(build)));
        let slow_start = SlowStartKind::Limited;
        let (name, source) = ("Own".into(), "0123456789ab".into());
        Prototype { name, source, slow_start, probes: Vec::new(), build, is_stack: false }
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

/// A quantity of a flow of each kind: one, a distribution, a list.
fn of_kind(kind: u8, unit: &str, low: u32, high: u32) -> String {
    match kind % 4 {
        0 => format!("\"{high}{unit}\""),
        1 => format!("\"uniform({low}{unit}, {high}{unit})\""),
        2 => format!("\"log-uniform({low}{unit}, {high}{unit})\""),
        _ => format!("[\"{high}{unit}\", \"{low}{unit}\", \"{}{unit}\"]", (low + high) / 2),
    }
}

proptest::proptest! {
    /// More flows, other flows behind them and more streams change nothing of the first; every value is within its bounds.
    #[test]
    fn quantities_of_a_flow_depend_on_its_number_alone(
        kinds in proptest::array::uniform5(0u8..4), seed in 1u64..1000, count in 1u32..30, more in 1u32..30,
        low in 1u32..50, width in 2u32..900,
    ) {
        let high = low + width;
        let of = |i: usize, unit: &str, above: u32| of_kind(kinds[i], unit, above + low, above + high);
        let text = |count: u32, streams: u32, behind: &str| {
            format!(
                "schema = 1\nduration = \"60s\"\n[link]\nrate = \"1Gbit/s\"\n[[flow]]\nlaw = \"reno\"\ncount = {count}\n\
                 parallel = {streams}\nrtt = {}\nstart = {}\nstop = {}\nsize = {}\napplication = {{ rate = {} }}\n{behind}",
                of(0, "ms", 0), of(1, "ms", 0), of(2, "ms", 1000), of(3, "kB", 0), of(4, "Mbit/s", 0)
            )
        };
        let scenario = parse(&text(count, 1, ""));
        let flows = scenario.config(seed).flows;
        let own = |flow: &lfn_sim::config::FlowConfig| {
            (flow.rtt, flow.start, flow.stop, flow.application.map(|it| it.rate))
        };
        let all: Vec<_> = flows.iter().map(|flow| (own(flow), flow.size_segments)).collect();
        for (i, flow) in flows.iter().enumerate() {
            let within = |value: u64, unit: u64, above: u64| {
                let (least, most) = (above + u64::from(low), above + u64::from(high));
                (least * unit..=most * unit).contains(&value)
            };
            let ms = Time::from_ms(1).0;
            assert!(within(flow.rtt.0, ms, 0) && within(flow.start.0, ms, 0) && within(flow.stop.0, ms, 1000));
            assert!(within(flow.application.unwrap().rate.0, 1_000_000, 0));
            let kilobytes = u64::from(low) * 1000..=u64::from(high) * 1000 + 1447;
            assert!(kilobytes.contains(&(flow.size_segments * 1448)) || flow.size_segments == 1);
            if kinds[0] == 3 {
                assert_eq!(flow.rtt, Time::from_ms([high, low, (low + high) / 2][i % 3].into()));
            }
        }
        let others = "[[flow]]\nlaw = \"cubic\"\nrtt = \"uniform(1ms, 5ms)\"\ncount = 3\n";
        let longer = parse(&text(count + more, 1, others)).config(seed).flows;
        let first: Vec<_> = longer[..count as usize].iter().map(|flow| (own(flow), flow.size_segments)).collect();
        assert_eq!(first, all);
        let streams = parse(&text(count, 2, "")).config(seed).flows;
        assert!(streams.iter().zip(all.iter().flat_map(|one| [one, one])).all(|(flow, one)| own(flow) == one.0));
        // Its canonical TOML is the same scenario, and a buffer in BDPs has one size for all seeds.
        let written = scenario.to_toml().unwrap();
        assert_eq!(parse(&written).to_toml().unwrap(), written);
        assert_eq!(scenario.is_random(), kinds.iter().any(|kind| kind % 4 == 1 || kind % 4 == 2));
        let buffer = |seed| scenario.config(seed).links[0].limit_packets;
        assert_eq!(buffer(seed), buffer(seed + 1));
    }
}

#[test]
fn a_buffer_is_of_the_largest_rtt_that_a_flow_may_have() {
    let packets = |rtt: &str| {
        let text = format!(
            "schema = 1\nduration = \"60s\"\n[link]\nrate = \"1Gbit/s\"\nqueue.size = \"1bdp\"\n[[flow]]\nlaw = \"reno\"\n\
             count = 2\nrtt = {rtt}\n"
        );
        parse(&text).config(1).links[0].limit_packets
    };
    let of_100_ms = packets("\"100ms\"");
    assert_eq!(packets("\"uniform(20ms, 100ms)\""), of_100_ms);
    assert_eq!(packets("[\"100ms\", \"20ms\"]"), of_100_ms);
    // No flow has the third value.
    assert_eq!(packets("[\"100ms\", \"20ms\", \"300ms\"]"), of_100_ms);
}

#[test]
fn values_drawn_are_in_the_summary() {
    let text =
        "schema = 1\nduration = \"2s\"\n[link]\nrate = \"10Mbit/s\"\n[[flow]]\nlaw = \"reno\"\ncount = 3\n\
                rtt = \"uniform(10ms, 30ms)\"\nsize = [\"10kB\", \"20kB\"]\nstop = \"1s\"\n\
                application = { rate = \"log-uniform(1Mbit/s, 3Mbit/s)\" }\n";
    let config = parse(text).config(1);
    let mut sim = lfn_sim::Sim::new(&config).unwrap();
    sim.run_until(config.duration);
    let summary = sim.finish().unwrap().summary;
    for (told, flow) in summary.flows.iter().zip(&config.flows) {
        assert_eq!(told.rtt_s, flow.rtt.in_s());
        assert_eq!(told.size_bytes, Some(flow.size_segments * 1448));
        assert_eq!(told.stop_s, Some(1.0));
        assert_eq!(told.application_bps, flow.application.map(|it| it.rate.as_bps()));
    }
    assert_eq!(summary.flows[0].size_bytes, summary.flows[2].size_bytes);
    assert_ne!(summary.flows[0].rtt_s, summary.flows[2].rtt_s);
}
