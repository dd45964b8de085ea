use proptest::prelude::*;

use super::*;

#[test]
fn memory_comes_back_after_a_large_window_and_what_is_outstanding_stays() {
    let mut board = Scoreboard::default();
    for seq in 0..10_000 {
        assert_eq!(board.on_sent(Time::from_ms(seq)), seq);
    }
    board.on_retransmitted(9_990, Time::from_s(20));
    let most = board.memory_bytes();
    board.shrink();
    assert_eq!(board.memory_bytes(), most, "all of it is in use");
    let (now, blocks, min_rtt) = (Time::from_s(30), &[], Time::ZERO);
    board.acknowledge(&Arrival { now, cumulative: 9_980, blocks, echo: Echo::None, min_rtt });
    board.shrink();
    assert!(board.memory_bytes() < most / 50, "{} of {most} bytes", board.memory_bytes());
    assert_eq!((board.first_sent(), board.last_sent()), (Time::from_ms(9_980), Time::from_ms(9_999)));
    assert_eq!(board.transmission(9_990, Some(0)), Some(Time::from_s(20)));
    assert_eq!(board.transmission(9_990, None), Some(Time::from_ms(9_990)));
    for seq in 10_000..20_000 {
        board.on_sent(Time::from_ms(seq));
    }
    assert_eq!(board.first_sent(), Time::from_ms(9_980));
}

#[test]
fn of_copies_with_the_same_number_the_last_is_meant() {
    let mut board = Scoreboard::default();
    board.on_sent(Time::ZERO);
    for s in 1..=7 {
        board.on_retransmitted(0, Time::from_s(s));
    }
    let sent = [None, Some(3), Some(0), Some(1), Some(2)].map(|copy| board.transmission(0, copy));
    assert_eq!(sent, [0, 4, 5, 6, 7].map(|s| Some(Time::from_s(s))));
}

proptest! {
    /// Against a walk over the whole window, of which any segments were retransmitted later.
    #[test]
    fn originals_sent_before_a_time_are_found(
        gaps_us in proptest::collection::vec(0u64..3, 1..60),
        again in proptest::collection::vec(0usize..60, 0..40),
        (delivered_us, delivered_seq, examined) in (0u64..200, 0u64..60, 0u64..60),
    ) {
        let (mut board, mut at_us) = (Scoreboard::default(), 0);
        for gap_us in &gaps_us {
            at_us += gap_us;
            board.on_sent(Time::from_us(at_us));
        }
        for seq in again.iter().filter(|&&seq| seq < gaps_us.len()) {
            at_us += 1;
            board.on_retransmitted(*seq as u64, Time::from_us(at_us));
        }
        let delivered = (Time::from_us(delivered_us), delivered_seq);
        board.repair.examined = examined.min(board.nxt);
        let sent_before = |&seq: &u64| {
            board.flags(seq) & EVER == 0 && (whole_us(board.sent[board.at(seq)]), seq) < delivered
        };
        let walked = (board.repair.examined..board.nxt).rev().find(sent_before);
        let found = board.originals_before(delivered);
        prop_assert_eq!((board.repair.examined..found).rev().find(sent_before), walked);
        prop_assert!(walked.is_none_or(|seq| seq < found));
    }
}
