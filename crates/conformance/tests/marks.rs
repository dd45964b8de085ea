//! The receiver of a law that needs ECN (RFC 8257 section 3.2), in the shim as it runs natively.

use lfn_conformance::{laws, word, Call, Native, Record, EMPTY};

const CA_EVENT_ECN_NO_CE: u64 = 4;
const DEMAND_CWR: u64 = 4;
const ACK_NOW: u64 = 16;

/// ACKs (segments that they cover in all, ECE) of a Linux that acknowledges every second segment, with the shim of
/// dctcp in it; of each segment: whether it is marked, and whether it has CWR.
fn echoes(segments: &[(bool, bool)]) -> Vec<(u64, bool)> {
    let law = laws().iter().find(|law| law.name == "dctcp").unwrap();
    let mut native = Native::new(law);
    let [rcv_nxt, rcv_wup, flags, pending, mss] =
        ["rcv_nxt", "rcv_wup", "ecn_flags", "ack_pending", "mss_cache"].map(|name| word(name).unwrap());
    let mut socket = EMPTY;
    (socket[mss], socket[word("snd_cwnd").unwrap()]) = (1448, 10);
    (socket[word("snd_cwnd_clamp").unwrap()], socket[flags]) = (1000, 1);
    let mut call = |socket: &mut _, call: Call, event| {
        let (before, after) = (*socket, *socket);
        let arguments = [event, 0];
        let record = Record {
            socket: 0,
            sequence: 0,
            call: call as u64,
            arguments,
            sample: [0; 7],
            result: 0,
            before,
            after,
        };
        *socket = native.call(&record, &before).0;
        native.sent()
    };
    call(&mut socket, Call::Init, 0);
    let mut acks = Vec::new();
    for &(ce, cwr) in segments {
        if cwr {
            socket[flags] &= !DEMAND_CWR;
        }
        socket[rcv_nxt] += 1;
        if let Some(ack) = call(&mut socket, Call::CwndEvent, CA_EVENT_ECN_NO_CE + u64::from(ce)) {
            acks.push((ack.rcv_nxt.into(), ack.ece));
        }
        if ce {
            socket[flags] |= DEMAND_CWR;
        }
        if socket[pending] & ACK_NOW != 0 || socket[rcv_nxt] - socket[rcv_wup] >= 2 {
            acks.push((socket[rcv_nxt], socket[flags] & DEMAND_CWR != 0));
            (socket[rcv_wup], socket[pending]) = (socket[rcv_nxt], 0);
        }
    }
    // No other bit of Linux's is lost.
    assert_eq!(socket[flags] & !DEMAND_CWR, 1);
    acks
}

#[test]
fn an_ack_echoes_the_marks_of_its_own_segments() {
    // RFC 8257, figure 1. States: 0 0 0 | 1 1 1 1 | 0 | 1. The simulator's receiver has the same ACKs.
    let marks = [false, false, false, true, true, true, true, false, true];
    let wanted = [(2, false), (3, false), (4, true), (6, true), (7, true), (8, false), (9, true)];
    assert_eq!(echoes(&marks.map(|ce| (ce, false))), wanted);
}

#[test]
fn cwr_does_not_end_the_echo() {
    // Linux clears the flag before it tells of the segment's own mark.
    let segments = [(true, false), (true, false), (true, true), (true, false), (true, true), (false, true)];
    assert_eq!(echoes(&segments), [(1, true), (3, true), (5, true), (6, false)]);
}
