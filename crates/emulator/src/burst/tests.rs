//! Bursts taken apart, against checksums and sequence numbers computed afresh.

use proptest::prelude::*;

use super::*;

const SEQUENCE: u32 = u32::MAX - 3000;
const ID: u16 = 0xfffe;

/// A burst of TCP as the kernel passes it: the checksum field holds the sum of the pseudo header.
fn burst(v6: bool, payload: usize, segment: u16, flags: u8, ecn: u8) -> Vec<u8> {
    let ip_bytes = if v6 { 40 } else { 20 };
    let tcp_bytes = 32;
    let mut bytes = vec![0; VIRTIO_BYTES + ip_bytes + tcp_bytes];
    bytes[0] = 1;
    if payload > usize::from(segment) {
        bytes[1] = if v6 { GSO_TCPV6 } else { GSO_TCPV4 };
        bytes[4..6].copy_from_slice(&segment.to_le_bytes());
    }
    bytes[6..8].copy_from_slice(&((VIRTIO_BYTES + ip_bytes) as u16 - VIRTIO_BYTES as u16).to_le_bytes());
    bytes[8..10].copy_from_slice(&16u16.to_le_bytes());
    let ip = VIRTIO_BYTES;
    if v6 {
        bytes[ip] = 0x60;
        bytes[ip + 1] = ecn << 4;
        put_u16(&mut bytes, ip + 4, (tcp_bytes + payload) as u16);
        bytes[ip + 6] = TCP;
        (8..40).for_each(|i| bytes[ip + i] = i as u8);
    } else {
        bytes[ip] = 0x45;
        bytes[ip + 1] = ecn;
        put_u16(&mut bytes, ip + 2, (ip_bytes + tcp_bytes + payload) as u16);
        put_u16(&mut bytes, ip + 4, ID);
        bytes[ip + 9] = TCP;
        (12..20).for_each(|i| bytes[ip + i] = i as u8);
        sum_header(&mut bytes);
    }
    let tcp = ip + ip_bytes;
    put_u16(&mut bytes, tcp, 5001);
    bytes[tcp + 4..tcp + 8].copy_from_slice(&SEQUENCE.to_be_bytes());
    bytes[tcp + 12] = (tcp_bytes as u8 / 4) << 4;
    bytes[tcp + 13] = flags;
    let sum = pseudo_sum(&bytes, v6, tcp_bytes + payload);
    put_u16(&mut bytes, tcp + 16, sum);
    bytes.extend((0..payload).map(|i| (i * 7 / 3) as u8));
    bytes
}

/// RFC 9293 section 3.1, RFC 8200 section 8.1.
fn pseudo_sum(bytes: &[u8], v6: bool, tcp_bytes: usize) -> u16 {
    let addresses = if v6 { 8..40 } else { 12..20 };
    let addresses = addresses.step_by(2).map(|at| u16_at(bytes, VIRTIO_BYTES + at));
    ones_sum(addresses.chain([u16::from(TCP), tcp_bytes as u16]))
}

fn whole(burst: &Burst, first: usize, count: usize, ecn: u8) -> Vec<u8> {
    let (headers, payload) = burst.part(first, count, ecn);
    [headers.as_slice(), payload].concat()
}

#[test]
fn a_whole_burst_is_what_it_was() {
    for bytes in
        [burst(false, 6000, 1448, 0x10, 0), burst(true, 100, 1448, 0x18, 2), burst(false, 0, 1, 0x10, 1)]
    {
        let parsed = Burst::parse(bytes.clone()).unwrap();
        assert_eq!(whole(&parsed, 0, parsed.segments(), parsed.ecn()), bytes);
    }
    // Ping, a fragment, and what is no IP.
    let mut ping = vec![0; VIRTIO_BYTES + 84];
    ping[VIRTIO_BYTES] = 0x45;
    ping[VIRTIO_BYTES + 9] = 1;
    let mut fragment = ping.clone();
    (fragment[VIRTIO_BYTES + 9], fragment[VIRTIO_BYTES + 7]) = (TCP, 8);
    for bytes in [ping, fragment, vec![0xff; 40]] {
        let mut bytes = bytes;
        bytes[1] = 0;
        let parsed = Burst::parse(bytes.clone()).unwrap();
        assert_eq!((parsed.segments(), parsed.kind), (1, Kind::Data));
        assert_eq!(parsed.ip_bytes(0), bytes.len() - VIRTIO_BYTES);
        assert_eq!(whole(&parsed, 0, 1, parsed.ecn()), bytes);
    }
}

#[test]
fn an_ack_is_one_only_without_data_and_flags_that_count() {
    let kind = |payload, flags| Burst::parse(burst(false, payload, 1448, flags, 0)).unwrap().kind;
    assert_eq!(kind(0, 0x10), Kind::Ack);
    assert_eq!([kind(0, 0x02), kind(0, 0x12), kind(0, 0x11)], [Kind::Handshake; 3]);
    assert_eq!([kind(1, 0x10), kind(1, 0x12)], [Kind::Data; 2]);
}

#[test]
fn flows_are_told_apart_by_their_ends() {
    let mut other = burst(false, 10, 1448, 0x10, 0);
    let first = Burst::parse(other.clone()).unwrap();
    let again = Burst::parse(burst(false, 5000, 1448, 0x18, 1)).unwrap();
    other[VIRTIO_BYTES + 20] ^= 1;
    assert_eq!(first.flow, again.flow);
    assert_ne!(first.flow, Burst::parse(other).unwrap().flow);
}

proptest! {
    #[test]
    fn parts_are_what_the_sender_would_have_sent_one_by_one(
        v6: bool,
        payload in 1449usize..60_000,
        segment in 536u16..9000,
        flags in prop::bits::u8::masked(FIN | PSH | CWR),
        cuts in prop::collection::vec(1usize..20, 1..10),
        ecn in 0u8..4,
    ) {
        let flags = flags | 0x10;
        let parsed = Burst::parse(burst(v6, payload.max(usize::from(segment) + 1), segment, flags, 1)).unwrap();
        let (ip_bytes, segments) = (if v6 { 40 } else { 20 }, parsed.segments());
        let tcp = VIRTIO_BYTES + ip_bytes;
        let mut carried = Vec::new();
        let mut first = 0;
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let count = cut.min(segments - first);
            if count == 0 { break }
            let part = whole(&parsed, first, count, ecn);
            let data = &part[tcp + 32..];
            let on_wire: usize = (first..first + count).map(|at| parsed.ip_bytes(at) - ip_bytes - 32).sum();
            prop_assert_eq!(data.len(), on_wire);
            let sequence = u32::from_be_bytes(part[tcp + 4..tcp + 8].try_into().unwrap());
            prop_assert_eq!(sequence, SEQUENCE.wrapping_add(carried.len() as u32));
            carried.extend_from_slice(data);
            // The burst fields are set exactly if there is more than one segment.
            prop_assert_eq!(part[1] != GSO_NONE, count > 1);
            prop_assert_eq!(u16::from_le_bytes([part[4], part[5]]), if count > 1 { segment } else { 0 });
            prop_assert_eq!(u16_at(&part, tcp + 16), pseudo_sum(&part, v6, 32 + data.len()));
            let last = first + count == segments;
            let kept = (if last { FIN | PSH } else { 0 }) | (if first == 0 { CWR } else { 0 }) | 0x10;
            prop_assert_eq!(part[tcp + 13], flags & kept);
            if v6 {
                prop_assert_eq!(u16_at(&part, VIRTIO_BYTES + 4) as usize, 32 + data.len());
                prop_assert_eq!(part[VIRTIO_BYTES + 1], ecn << 4);
            } else {
                prop_assert_eq!(u16_at(&part, VIRTIO_BYTES + 2) as usize, 52 + data.len());
                prop_assert_eq!(u16_at(&part, VIRTIO_BYTES + 4), ID.wrapping_add(first as u16));
                prop_assert_eq!(part[VIRTIO_BYTES + 1], ecn);
                let header = (0..20).step_by(2).map(|at| u16_at(&part, VIRTIO_BYTES + at));
                prop_assert_eq!(ones_sum(header), 0xffff);
            }
            first += count;
        }
        prop_assert_eq!(carried, parsed.into_bytes()[tcp + 32..].to_vec());
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), gso in 0u8..6, at in 0u8..90) {
        let mut bytes = bytes;
        if bytes.len() > VIRTIO_BYTES {
            bytes[1] = gso;
            bytes[6..8].copy_from_slice(&u16::from(at).to_le_bytes());
        }
        if let Some(parsed) = Burst::parse(bytes) {
            let total: usize = (0..parsed.segments()).map(|i| parsed.part(i, 1, 3).1.len()).sum();
            prop_assert!(total <= 200);
        }
    }
}
