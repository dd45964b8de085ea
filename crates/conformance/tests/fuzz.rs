//! Is the committed BPF object the law of the header? Sequences of calls that no Linux would make, on the
//! shim compiled natively and on the object in the virtual machine: all that they leave must agree.

use lfn_conformance::{difference, laws, word, Call, Image, Native, Record, Virtual, EMPTY};
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const SEQUENCES: u64 = 250;
const CALLS: usize = 400;

/// Fields that Linux writes, with the bits of the widest value and the least value that it may write.
const FIELDS: [(&str, u32, u64); 29] = [
    ("tcp_wstamp_ns", 50, 0),
    ("srtt_us", 30, 0),
    ("mss_cache", 16, 1),
    ("snd_una", 32, 0),
    ("snd_nxt", 32, 0),
    ("high_seq", 32, 0),
    ("snd_cwnd", 26, 1),
    ("snd_cwnd_cnt", 32, 0),
    ("snd_cwnd_clamp", 32, 1),
    ("snd_ssthresh", 31, 2),
    ("prior_cwnd", 26, 0),
    ("prior_ssthresh", 31, 0),
    ("packets_out", 26, 0),
    ("sacked_out", 26, 0),
    ("lost_out", 26, 0),
    ("retrans_out", 26, 0),
    ("max_packets_out", 26, 0),
    ("delivered", 32, 0),
    ("delivered_ce", 32, 0),
    ("lost", 32, 0),
    ("app_limited", 32, 0),
    ("rtt_min", 32, 0),
    ("icsk_ca_state", 2, 0),
    ("is_cwnd_limited", 1, 0),
    ("sk_pacing_rate", 40, 0),
    ("ecn_flags", 8, 0),
    ("rcv_nxt", 32, 0),
    ("rcv_wup", 32, 0),
    ("ack_pending", 5, 0),
];

/// 0, or anything up to 2^bits, as many in each octave.
fn wide(random: &mut Xoshiro256PlusPlus, bits: u32) -> u64 {
    let bits = random.next_u32() % (bits + 1);
    random.next_u64().checked_shr(64 - bits).unwrap_or(0)
}

fn one_in(random: &mut Xoshiro256PlusPlus, n: u32) -> bool {
    random.next_u32() < u32::MAX / n
}

/// Arguments of a call: ACKs of up to 64k segments, RTTs up to 67 s, sometimes none (-1).
fn record(random: &mut Xoshiro256PlusPlus, call: Call, before: Image) -> Record {
    let rtt_us = if one_in(random, 8) { u64::MAX } else { wide(random, 26) };
    let (acked, lost) = (wide(random, 16), wide(random, 8));
    let sample = match call {
        Call::PktsAcked => [acked, rtt_us, 0, 0, 0, 0, 0],
        Call::CongControl => {
            let delivered = if one_in(random, 8) { u64::MAX } else { wide(random, 20) };
            [wide(random, 26), delivered, wide(random, 26), rtt_us, lost, acked, wide(random, 1)]
        }
        _ => [0; 7],
    };
    let arguments = match call {
        Call::CwndEvent => [u64::from(random.next_u32() % 6), 0],
        Call::SetState => [u64::from(random.next_u32() % 5), 0],
        _ => [wide(random, 32), wide(random, 16)],
    };
    Record { socket: 0, sequence: 0, call: call as u64, arguments, sample, result: 0, before, after: before }
}

#[test]
fn no_call_tells_the_object_from_the_header() {
    let fields = FIELDS.map(|(name, bits, least)| (word(name).unwrap(), bits, least));
    let clock = word("tcp_mstamp").unwrap();
    for law in laws() {
        let (mut native, mut machine) = (Native::new(law), Virtual::new(law).unwrap());
        let calls: Vec<Call> = Call::ALL.into_iter().filter(|&call| machine.serves(call)).collect();
        assert!(calls.len() >= 5, "{}", law.name);
        for seed in 0..SEQUENCES {
            let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut socket = EMPTY;
            socket[word("sk_max_pacing_rate").unwrap()] = u64::MAX;
            socket[clock] = wide(random, 40);
            for &(word, bits, least) in &fields {
                socket[word] = wide(random, bits).max(least);
            }
            for number in 0..CALLS {
                // A SYN, then the start of the law, then mostly ACKs, and sometimes a new start.
                let call = match random.next_u32() % 8 {
                    _ if number == 1 => Call::Init,
                    0..=2 if machine.serves(Call::CongAvoid) => Call::CongAvoid,
                    3..=5 if machine.serves(Call::PktsAcked) => Call::PktsAcked,
                    0..=5 => Call::CongControl,
                    _ => calls[random.next_u32() as usize % calls.len()],
                };
                let record = record(random, call, socket);
                let ours = native.call(&record, &socket);
                let theirs = machine.call(&record, &socket);
                let theirs =
                    theirs.unwrap_or_else(|e| panic!("{}, seed {seed}, call {number}: {e}", law.name));
                if let Some(what) = difference(&ours, &theirs) {
                    panic!("{}, seed {seed}, call {number}, {}: {what}", law.name, call.name());
                }
                assert_eq!(native.sent(), machine.sent(), "{}, seed {seed}, call {number}", law.name);
                socket = ours.0;
                socket[clock] = socket[clock].wrapping_add(wide(random, 24));
                for &(word, bits, least) in &fields {
                    if one_in(random, 4) {
                        socket[word] = wide(random, bits).max(least);
                    }
                }
            }
        }
    }
}
