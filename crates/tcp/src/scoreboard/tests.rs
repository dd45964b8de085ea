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
