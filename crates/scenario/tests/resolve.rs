//! What a scenario becomes: defaults, sizes, and the simulation's configuration.

use lfn_law::SlowStartKind;
use lfn_path::{RedConfig, Thresholds, Weight};
use lfn_scenario::Scenario;
use lfn_sim::config::{Config, Direction, QueueConfig};
use lfn_tcp::{ReceiverConfig, SenderConfig};
use lfn_units::{Rate, Time};

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml", None).unwrap_or_else(|error| panic!("{error}"))
}

/// A dumbbell of 10 Gbit/s and one flow of CUBIC over 100 ms, with more lines here and there.
fn config(top: &str, queue: &str, flow: &str) -> Config {
    let text = format!(
        "schema = 1\nduration = \"60s\"\n{top}\n[link]\nrate = \"10Gbit/s\"\n[link.queue]\n{queue}\n\
         [[flow]]\nlaw = \"cubic\"\nrtt = \"100ms\"\n{flow}\n"
    );
    parse(&text).config(1)
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
    assert_eq!(flow.sender, SenderConfig::linux(1448, SlowStartKind::HyStart));
    assert_eq!(flow.receiver, ReceiverConfig::linux(Time::from_ms(100)));
    // 125 MB in packets of 1514 bytes.
    for link in &config.links {
        assert_eq!(
            (link.rate, link.limit_packets, link.limit_bytes),
            (Rate(10_000_000_000), 82_562, u64::MAX)
        );
        assert!(matches!(link.queue, QueueConfig::DropTail));
        assert!(!link.event_mode);
    }
}

#[test]
fn ns2_is_the_papers_simulator() {
    let config = config("compat = \"ns2\"", "size = \"100 packets\"", "packet = \"1000B\"");
    let flow = &config.flows[0];
    assert_eq!((flow.payload_bytes, flow.wire_bytes, flow.ack_bytes), (960, 1000, 40));
    assert_eq!(flow.sender, SenderConfig::ns2(960));
    assert_eq!(flow.receiver, ReceiverConfig::ns2(Time::from_ms(100)));
    assert_eq!(config.links[0].limit_packets, 99);
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
fn red_takes_its_preset_and_what_overrides_it() {
    let red = |lines: &str| match config("", &format!("kind = \"red\"\n{lines}"), "").links[0].queue {
        QueueConfig::Red(red) => red,
        QueueConfig::DropTail => panic!("not RED"),
    };
    assert_eq!(red(""), RedConfig::gentle(1514));
    assert_eq!(red("preset = \"classic\""), RedConfig::classic(1514));
    assert_eq!(red("preset = \"adaptive\""), RedConfig::adaptive(1514));
    let own = red("preset = \"adaptive\"\nmin_th = \"20 packets\"\nmax_th = \"60 packets\"\nweight = 0.01\n\
                   max_p = 0.02\nwait = false\necn = false");
    let wanted = RedConfig {
        thresholds: Thresholds::Fixed { min_th: 20.0, max_th: 60.0 },
        weight: Weight::Fixed(0.01),
        max_p: 0.02,
        wait: false,
        ecn: false,
        ..RedConfig::adaptive(1514)
    };
    assert_eq!(own, wanted);
    let delay = red("preset = \"classic\"\ntarget_delay = \"2ms\"").thresholds;
    assert_eq!(delay, Thresholds::Automatic { target_delay: Time::from_ms(2) });
}

#[test]
fn the_opposite_direction_is_the_same_unless_it_says_otherwise() {
    let text = "schema = 1\nduration = \"60s\"\n[link]\nrate = \"1Gbit/s\"\nloss = 0.001\nmode = \"event\"\n\
                [link.queue]\nsize = \"50 packets\"\n[link.reverse]\nrate = \"2Gbit/s\"\n\
                [[flow]]\nlaw = \"reno\"\nrtt = \"10ms\"\n";
    let reverse = &parse(text).config(1).links[1];
    assert_eq!((reverse.rate, reverse.loss, reverse.limit_packets), (Rate(2_000_000_000), 0.001, 50));
    assert!(reverse.event_mode);
    let own = text.replace("\"2Gbit/s\"\n", "\"2Gbit/s\"\nloss = 0\nqueue = { size = \"7 packets\" }\n");
    let reverse = &parse(&own).config(1).links[1];
    assert_eq!((reverse.loss, reverse.limit_packets), (0.0, 7));
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
