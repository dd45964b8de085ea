//! Files of any bytes are read or refused, in bounded time and memory, and no number is impossible.

use std::io::Write;

use flate2::write::GzEncoder;
use flate2::Compression;
use lfn_capture::{read, Error};
use proptest::prelude::*;

const STEP_NS: u64 = 1_000_000;

/// A segment of a file that is made here.
#[derive(Clone, Debug)]
struct Packet {
    t_us: u32,
    forth: bool,
    port: u16,
    seq: u32,
    ack: u32,
    flags: u8,
    payload: u16,
    stamps: Option<(u32, u32)>,
    sack: Option<(u32, u32)>,
}

impl Packet {
    fn frame(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if let Some((value, echo)) = self.stamps {
            options.extend([1, 1, 8, 10]);
            options.extend(value.to_be_bytes());
            options.extend(echo.to_be_bytes());
        }
        if let Some((low, high)) = self.sack {
            options.extend([1, 1, 5, 10]);
            options.extend(low.to_be_bytes());
            options.extend(high.to_be_bytes());
        }
        let total = 40 + options.len() as u16 + self.payload;
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend(total.to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        let (from, to) = if self.forth { (1, 2) } else { (2, 1) };
        frame.extend([10, 0, 0, from, 10, 0, 0, to]);
        let ports = if self.forth { (self.port, 80) } else { (80, self.port) };
        frame.extend(ports.0.to_be_bytes());
        frame.extend(ports.1.to_be_bytes());
        frame.extend(self.seq.to_be_bytes());
        frame.extend(self.ack.to_be_bytes());
        frame.extend([((20 + options.len()) as u8 / 4) << 4, self.flags, 1, 0, 0, 0, 0, 0]);
        frame.extend(options);
        frame
    }
}

fn pcap(packets: &[Packet]) -> Vec<u8> {
    let mut file: Vec<u8> =
        [0xA1B2_C3D4u32, 0x0004_0002, 0, 0, 65535, 1].iter().flat_map(|word| word.to_le_bytes()).collect();
    for packet in packets {
        let frame = packet.frame();
        let length = frame.len() as u32 + u32::from(packet.payload);
        for word in [packet.t_us / 1_000_000, packet.t_us % 1_000_000, frame.len() as u32, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

fn near(base: u32) -> impl Strategy<Value = u32> {
    prop_oneof![8 => (0u32..60_000).prop_map(move |more| base.wrapping_add(more)), 1 => any::<u32>()]
}

fn packet() -> impl Strategy<Value = Packet> {
    let base = u32::MAX - 20_000;
    let flags =
        prop_oneof![10 => Just(0x10u8), 1 => Just(0x02), 1 => Just(0x12), 1 => Just(0x11), 1 => any::<u8>()];
    let sack = proptest::option::of((near(base), near(base)));
    let stamps = proptest::option::of((0u32..200, 0u32..200));
    let payload = prop_oneof![4 => Just(1448u16), 4 => Just(0), 2 => 0u16..60_000];
    (0u32..3_000_000, any::<bool>(), 1u16..4, near(base), near(base), flags, payload, stamps, sack).prop_map(
        |(t_us, forth, port, seq, ack, flags, payload, stamps, sack)| Packet {
            t_us,
            forth,
            port,
            seq,
            ack,
            flags,
            payload,
            stamps,
            sack,
        },
    )
}

proptest! {
    #[test]
    fn a_packed_file_is_read_up_to_a_cut_or_damage(
        packets in prop::collection::vec(packet(), 1..100),
        part in 0.0..1.0,
        flipped: Option<u8>,
    ) {
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(&pcap(&packets)).unwrap();
        let packed = packed.finish().unwrap();
        let at = (packed.len() as f64 * part) as usize;
        let file = match flipped {
            None => packed[..at].to_vec(),
            Some(bits) => packed.iter().enumerate().map(|(n, x)| if n == at { x ^ bits } else { *x }).collect(),
        };
        let is_whole = file == packed;
        match read(&file[..], STEP_NS, |_| true) {
            Ok(found) => {
                prop_assert!(found.packets <= packets.len() as u64 || found.stopped.is_some());
                prop_assert!(!is_whole || found.stopped.is_none());
            }
            Err(error) => prop_assert!(
                matches!(error, Error::NoData(_) | Error::Foreign | Error::Empty | Error::Link(_)), "{}", error
            ),
        }
    }

    #[test]
    fn any_segments_give_possible_numbers(packets in prop::collection::vec(packet(), 0..300)) {
        let file = pcap(&packets);
        match read(&file[..], STEP_NS, |_| true) {
            Ok(found) => {
                prop_assert_eq!(found.packets, packets.len() as u64);
                prop_assert_eq!(found.stopped, None);
                for flow in &found.flows {
                    prop_assert!(flow.first_ns <= flow.last_ns);
                    prop_assert!(flow.rows.windows(2).all(|pair| pair[0].t_ns < pair[1].t_ns));
                    for pair in flow.rows.windows(2) {
                        prop_assert!(pair[0].retransmits <= pair[1].retransmits);
                        prop_assert!(pair[0].reordered <= pair[1].reordered);
                        prop_assert!(pair[0].delivered.unwrap_or(0) <= pair[1].delivered.unwrap_or(u64::MAX));
                    }
                    for row in &flow.rows {
                        prop_assert!(row.delivered <= row.arrived);
                        prop_assert!(row.ahead.least <= row.ahead.last || row.ahead.last.is_none());
                    }
                }
            }
            Err(error) => prop_assert!(matches!(error, Error::NoData(_)), "{}", error),
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(read(&bytes[..], STEP_NS, |_| true).is_err());
    }

    #[test]
    fn a_damaged_file_is_read_up_to_the_damage(
        packets in prop::collection::vec(packet(), 1..60),
        faults in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        keep in any::<prop::sample::Index>(),
    ) {
        let mut file = pcap(&packets);
        for (place, byte) in faults {
            let place = place.index(file.len());
            file[place] = byte;
        }
        file.truncate(keep.index(file.len()) + 1);
        if let Ok(found) = read(&file[..], STEP_NS, |_| true) {
            prop_assert!(found.bytes <= file.len() as u64);
            prop_assert!(found.stopped.is_some() || found.bytes == file.len() as u64);
        }
    }
}

/// A file of very many connections, most of them without data, and one that transfers.
#[test]
fn very_many_connections_are_given_up_before_a_transfer() {
    let mut packets = Vec::new();
    for number in 0..60_000u32 {
        let scan = Packet {
            t_us: number * 10,
            forth: true,
            port: number as u16,
            seq: number,
            ack: 0,
            flags: 2,
            payload: 0,
            stamps: None,
            sack: None,
        };
        packets.push(Packet { port: (number % 65_000) as u16, ..scan.clone() });
        let seq = 1 + number * 1000;
        packets.push(Packet { port: 65_001, seq, ack: 1, flags: 16, payload: 1000, ..scan.clone() });
        packets.push(Packet { port: 65_001, forth: false, seq: 1, ack: seq, flags: 16, ..scan });
    }
    let found = read(&pcap(&packets)[..], STEP_NS, |_| true).expect("it has data");
    assert!(found.given_up > 30_000, "{}", found.given_up);
    let [flow] = &found.flows[..] else { panic!("{:?}", found.flows.len()) };
    assert_eq!(flow.payload, 60_000_000);
    assert_eq!(flow.rows.last().and_then(|row| row.delivered), Some(59_999_000));
}

/// Rows are thinned, so a small step takes no more memory than a large one.
#[test]
fn a_small_step_is_doubled() {
    let packet = |number: u32| Packet {
        t_us: number * 10,
        forth: true,
        port: 1,
        seq: 1 + number * 1000,
        ack: 1,
        flags: 16,
        payload: 1000,
        stamps: None,
        sack: None,
    };
    let packets: Vec<_> = (0..400_000).map(packet).collect();
    let found = read(&pcap(&packets)[..], 1_000, |_| true).expect("it has data");
    assert!(found.flows[0].rows.len() <= 150_001);
    assert_eq!(found.step_ns % 1_000, 0);
    assert!(found.step_ns > 1_000);
    assert!(found.flows[0].rows.iter().rev().skip(1).all(|row| row.t_ns % found.step_ns == 0));
}

#[test]
fn the_caller_can_end_it() {
    let mut file = pcap(&[]);
    file.resize(64 << 20, 0);
    // Zeros are packets of no bytes.
    assert!(matches!(read(&file[..], STEP_NS, |_| false), Err(Error::Stopped)));
}
