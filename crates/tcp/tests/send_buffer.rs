//! Segments outstanding with a limited send buffer.

use lfn_law::SlowStartKind;
use lfn_tcp::{AckFlags, Acknowledgement, Range, SendBuffer, Sender, SenderConfig};
use lfn_units::Time;

/// A sender with a window that never binds, and `end` segments to send.
fn sender(law: &str, window: u32, send_buffer: SendBuffer, end: u64) -> Sender {
    connected(law, window, send_buffer, end, true)
}

fn connected(law: &str, window: u32, send_buffer: SendBuffer, end: u64, sack: bool) -> Sender {
    let config = SenderConfig {
        send_buffer,
        sack,
        // Without a handshake no SYN-ACK limits the flight.
        handshake: false,
        initial_window_segments: window,
        ..SenderConfig::linux(1448, SlowStartKind::Classic)
    };
    let mut sender = Sender::new(&config.into(), &law.parse().expect("a law"), 0, Time::ZERO, end, 1514);
    sender.on_established(Time::ZERO, Time::from_ms(1));
    sender
}

/// Segments that leave.
fn sent(sender: &mut Sender, now: Time) -> u64 {
    std::iter::from_fn(|| sender.next_segment(now)).count() as u64
}

fn ack(sender: &mut Sender, now: Time, cumulative: u64, sacked: Option<(u64, u64)>) -> u64 {
    let mut ack = Acknowledgement {
        at: now,
        cumulative,
        flags: AckFlags::ECHOES_ORIGINAL,
        ..Acknowledgement::default()
    };
    if let Some((start, end)) = sacked {
        ack.sack[0] = Range { start, end };
        ack.flags = ack.flags.with_blocks(1);
    }
    sender.on_ack(now, &ack);
    sent(sender, now)
}

const LINUX: SendBuffer = SendBuffer::Autotuned { first_bytes: 16 << 10, max_bytes: 4 << 20 };

#[test]
fn a_fixed_buffer_is_full_of_what_is_not_acknowledged() {
    let mut sender = sender("reno", 1000, SendBuffer::Segments(100), u64::MAX);
    assert_eq!(sent(&mut sender, Time::ZERO), 100);
    // One is acknowledged, one leaves; what is SACKed stays.
    assert_eq!(ack(&mut sender, Time::from_ms(1), 1, None), 1);
    assert_eq!(ack(&mut sender, Time::from_ms(2), 1, Some((2, 50))), 1, "the lost segment is repaired");
    assert_eq!(sender.nxt(), 101);
}

#[test]
fn a_buffer_beyond_the_window_changes_nothing() {
    for send_buffer in [SendBuffer::Segments(102), SendBuffer::Segments(u64::MAX), LINUX] {
        let mut sender = sender("reno", 100, send_buffer, u64::MAX);
        assert_eq!(sent(&mut sender, Time::ZERO), 100);
        assert_eq!(ack(&mut sender, Time::from_ms(1), 2, None), 4, "{send_buffer:?}");
    }
}

/// Measured on Linux 6.12: 4 MiB hold 1,840 segments; the application writes 614 more when 614 are freed.
#[test]
fn the_buffer_of_linux_is_filled_when_a_third_of_it_is_free() {
    let mut sender = sender("reno", 5000, LINUX, u64::MAX);
    let full = sent(&mut sender, Time::ZERO);
    assert!(full == 1840, "{full}");
    let mut written = 0;
    let mut una = 0;
    while written == 0 {
        una += 1;
        written = ack(&mut sender, Time::from_us(una), una, None);
    }
    assert!(una == 614 && written == 614, "{written} written when {una} were acknowledged");
}

#[test]
fn the_buffer_of_linux_holds_twice_the_window_and_more_of_what_is_sacked() {
    let window = 400;
    let mut sender = sender("reno", window, LINUX, u64::MAX);
    let now = Time::ZERO;
    assert_eq!(sent(&mut sender, now), 400);
    // SACKed segments leave the flight, and new ones take their place until 809 fill the buffer.
    let mut nxt = |sacked: u64| {
        ack(&mut sender, Time::from_us(sacked), 0, Some((1, sacked)));
        sender.nxt()
    };
    // Each SACKed segment frees 832 of its 2,280 bytes, except one in 45, until a third of 1,843,200 bytes is
    // free.
    let again = (2..808).find(|&sacked| nxt(sacked) > 809).expect("it is filled again");
    assert!((756..=758).contains(&again), "{again}");
}

/// A duplicate ACK frees nothing. Measured on Linux 6.12: a recovery without SACK stopped at the 279 segments that
/// filled the buffer, and none was written until 91 of them were acknowledged.
#[test]
fn duplicate_acks_free_nothing() {
    let mut sender = connected("reno", 400, LINUX, u64::MAX, false);
    sent(&mut sender, Time::ZERO);
    for duplicate in 1..2000 {
        ack(&mut sender, Time::from_us(duplicate), 0, None);
    }
    assert_eq!(sender.nxt(), 809);
}

#[test]
fn a_transfer_ends_with_its_last_segment_and_not_with_what_is_written() {
    for (law, end) in [("reno", 1), ("reno", 37), ("cubic", 2000), ("bbr", 64), ("bbr", 3000)] {
        let mut sender = sender(law, 10, LINUX, end);
        let (mut una, mut now) = (0, Time::ZERO);
        assert!(!sender.is_done());
        for _ in 0..100_000 {
            let deadline = sender.deadline();
            while sender.next_segment(now).is_some() {}
            if sender.nxt() > una {
                una += 1;
                now = now + Time::from_ms(1);
                ack(&mut sender, now, una, None);
            } else {
                now = deadline;
                sender.on_timer(now);
            }
            assert_eq!(sender.is_done(), una == end, "{law}: {una} of {end}");
            if sender.is_done() {
                break;
            }
        }
        assert_eq!((una, sender.nxt()), (end, end), "{law}");
    }
}

#[test]
fn an_application_that_stops_or_offers_more_is_heard() {
    let mut sender = sender("reno", 1000, LINUX, 10);
    assert_eq!(sent(&mut sender, Time::ZERO), 10);
    sender.offer(5);
    assert_eq!(sent(&mut sender, Time::ZERO), 5);
    sender.offer(u64::MAX);
    assert!(sent(&mut sender, Time::ZERO) > 100);
    let nxt = sender.nxt();
    sender.stop();
    assert_eq!(ack(&mut sender, Time::from_ms(1), nxt, None), 0);
    assert!(sender.is_done());
}

#[test]
fn the_least_buffer_holds_a_segment() {
    for send_buffer in [SendBuffer::Autotuned { first_bytes: 1, max_bytes: 1 }, SendBuffer::Segments(1)] {
        let mut sender = sender("reno", 10, send_buffer, 3);
        assert_eq!(sent(&mut sender, Time::ZERO), 1);
        let after: Vec<u64> = (1..=3).map(|una| ack(&mut sender, Time::from_ms(una), una, None)).collect();
        assert_eq!(after, [1, 1, 0], "{send_buffer:?}");
    }
}
