//! The sent packets are those of the simulator's generators, over the loopback.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use lfn_emulator::{send_background, send_udp, take_tcp, BackgroundEnd, Span};
use lfn_sim::background::{Background, Config, Direction};
use lfn_sim::rng::Streams;
use lfn_sim::traffic::udp::{self, Burst, Pattern, Udp};
use lfn_units::{Rate, Time};

fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time lives.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn span(ms: u64) -> Span {
    Span { zero_ns: now_ns(), duration: Time::from_ms(ms) }
}

#[test]
fn a_udp_source_sends_its_packets_and_no_others() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let SocketAddr::V4(to) = receiver.local_addr().unwrap() else { panic!("not IPv4") };
    let burst = Burst { start: Time::from_ms(10), stop: Time::from_ms(60), rate: Rate(2_000_000) };
    let config = udp::Config { packet_bytes: 242, pattern: Pattern::Bursts(vec![burst]) };
    let streams = Streams::new(1, "udp.test");
    let expected = Udp::new(&config, &streams).unwrap().count() as u64;
    let sent = send_udp(&config, &streams, 42, to, span(100)).unwrap();
    assert_eq!((sent.sent, sent.refused), (expected, 0));
    let mut room = [0; 2048];
    for _ in 0..expected {
        assert_eq!(receiver.recv(&mut room).unwrap(), 200);
    }
}

#[test]
fn the_background_of_a_direction_is_the_generators() {
    const PORTS: [u16; 2] = [46_101, 46_102];
    for port in PORTS {
        thread::spawn(move || take_tcp(port, Some(65_536)));
    }
    thread::sleep(Duration::from_millis(100));
    let config = Config { long_flows: 1, ..Config::load(Rate(20_000_000)) };
    let span = span(400);
    let expected = Background::new(config, &Streams::of_run(7))
        .take_while(|arrival| arrival.at < span.duration)
        .filter(|arrival| arrival.direction == Direction::Reverse)
        .count() as u64;
    let end = BackgroundEnd {
        to: Ipv4Addr::LOCALHOST,
        short_port: PORTS[0],
        long_port: PORTS[1],
        law: "reno".into(),
    };
    let sent = send_background(config, 7, Direction::Reverse, &end, span).unwrap();
    assert_eq!(sent.flows_started, expected);
    assert!(0 < sent.flows_completed && sent.flows_completed <= expected, "{sent:?}");
    let unknown = BackgroundEnd { law: "no_such_law".into(), ..end };
    assert!(send_background(config, 7, Direction::Reverse, &unknown, span).is_err());
}
