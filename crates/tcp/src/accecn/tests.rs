//! The tables of RFC 9768, and both ends' counters against each other on a lossy path.

use proptest::prelude::*;

use super::counters::safest;
use super::*;

const MSS: u32 = 1460;

fn ace(bits: u8) -> Ace {
    Ace::from_bits(bits)
}

/// Tables 2 and 3: how the SYN-ACK and the third ACK tell an ECN field.
#[test]
fn a_field_has_a_code() {
    for (field, bits) in [(Ecn::NotEct, 0b010), (Ecn::Ect1, 0b011), (Ecn::Ect0, 0b100), (Ecn::Ce, 0b110)] {
        assert_eq!(Ace::of_field(field), ace(bits));
        assert_eq!(ace(bits).field(), Some(field));
    }
    for bits in [0b000, 0b001, 0b101, 0b111] {
        assert_eq!(ace(bits).field(), None);
    }
}

/// The server's side of the negotiation: every SYN to every server.
#[test]
fn a_server_answers_each_syn_as_the_table_says() {
    for bits in 0..8 {
        for field in Ecn::ALL {
            for able in [Mode::Not, Mode::Classic, Mode::Accurate] {
                let (mode, answer) = match (able, bits) {
                    (_, 0b000) | (Mode::Not, _) => (Mode::Not, Ace::NONE),
                    (_, 0b011) | (Mode::Classic, 0b111) => (Mode::Classic, ace(0b001)),
                    (Mode::Classic, _) => (Mode::Not, Ace::NONE),
                    (Mode::Accurate, _) => (Mode::Accurate, Ace::of_field(field)),
                };
                let mut server = Server::new(able, Ecn::NotEct);
                assert_eq!(server.on_syn(ace(bits), field), Ok(mode), "{bits:03b} {able:?}");
                assert_eq!(server.may_send_option(), mode == Mode::Accurate);
                assert_eq!(server.syn_ack(), answer, "{bits:03b} {able:?}");
                assert!(answer != ace(0b101));
            }
        }
    }
}

/// The client's side: every SYN-ACK to every client, with a SYN that left as Not-ECT.
#[test]
fn a_client_takes_each_syn_ack_as_the_table_says() {
    let accurate = |bits| match bits {
        0b000 | 0b111 => (Mode::Not, false),
        0b001 => (Mode::Classic, true),
        // Arrived unchanged, and the reserved code.
        0b010 | 0b101 => (Mode::Accurate, true),
        // Arrived as something that it was not sent as.
        _ => (Mode::Accurate, false),
    };
    for bits in 0..8 {
        let mut client = Client::new(Mode::Accurate, Ecn::NotEct);
        assert_eq!(client.syn(), Ace::ACCURATE);
        let verdict = client.on_syn_ack(ace(bits)).expect("no mix");
        assert_eq!((verdict.mode, verdict.sends_ect), accurate(bits), "{bits:03b}");
        assert_eq!(verdict.responds, verdict.mode != Mode::Not);
        assert_eq!(verdict.mangled, matches!(bits, 0b011 | 0b100 | 0b110), "{bits:03b}");

        let mut client = Client::new(Mode::Classic, Ecn::NotEct);
        assert_eq!(client.syn(), Ace::CLASSIC);
        let mode = client.on_syn_ack(ace(bits)).expect("no mix").mode;
        assert_eq!(mode, if bits == 0b001 { Mode::Classic } else { Mode::Not });

        let mut client = Client::new(Mode::Not, Ecn::NotEct);
        assert_eq!(client.syn(), Ace::NONE);
        assert_eq!(client.on_syn_ack(ace(bits)).expect("no mix").mode, Mode::Not);
    }
}

/// Every pair of ends agrees on the mode, whatever the SYN's field.
#[test]
fn both_ends_enter_the_same_mode() {
    let modes = [Mode::Not, Mode::Classic, Mode::Accurate];
    for asks in modes {
        for able in modes {
            for field in Ecn::ALL {
                let (mut client, mut server) = (Client::new(asks, field), Server::new(able, Ecn::NotEct));
                let mode = server.on_syn(client.syn(), field).expect("no mix");
                let verdict = client.on_syn_ack(server.syn_ack()).expect("no mix");
                assert_eq!(verdict.mode, mode);
                assert!(!verdict.mangled);
                assert_eq!(mode, asks.min(able), "{asks:?} {able:?}");
            }
        }
    }
}

#[test]
fn a_syn_that_arrives_marked_is_congestion() {
    let mut client = Client::new(Mode::Accurate, Ecn::Ect1);
    client.syn();
    let verdict = client.on_syn_ack(ace(0b110)).expect("no mix");
    assert!(verdict.congested && verdict.sends_ect && !verdict.mangled);
}

/// The changes that RFC 9768 section 3.2.2.3 calls invalid; the two kinds of ECT may become each other.
#[test]
fn mangled_fields() {
    for (sent, bad) in [
        (Ecn::NotEct, vec![Ecn::Ect1, Ecn::Ect0, Ecn::Ce]),
        (Ecn::Ect1, vec![Ecn::NotEct]),
        (Ecn::Ect0, vec![Ecn::NotEct]),
        (Ecn::Ce, vec![Ecn::NotEct, Ecn::Ect1, Ecn::Ect0]),
    ] {
        let found: Vec<Ecn> = Ecn::ALL.into_iter().filter(|&seen| is_mangled(sent, seen)).collect();
        assert_eq!(found, bad, "{sent:?}");
    }
}

/// Section 3.2.2.1: the pure ACK that ends the handshake, after a SYN-ACK that left as ECT(0).
#[test]
fn a_server_takes_each_third_ack_as_the_table_says() {
    for (bits, sends_ect, responds, mangled, congested) in [
        (0b000, false, false, false, false),
        (0b001, true, true, false, false),
        (0b010, false, true, true, false),
        (0b011, true, true, false, false),
        (0b100, true, true, false, false),
        (0b101, true, true, false, false),
        (0b110, true, true, false, true),
        (0b111, true, true, false, false),
    ] {
        let mut server = Server::new(Mode::Accurate, Ecn::Ect0);
        server.on_syn(Ace::ACCURATE, Ecn::NotEct).expect("no mix");
        server.syn_ack();
        let verdict = server.on_third(ace(bits));
        let found = (verdict.sends_ect, verdict.responds, verdict.mangled, verdict.congested);
        assert_eq!(found, (sends_ect, responds, mangled, congested), "{bits:03b}");
    }
    assert!(!Server::cookie_tells(ace(0)) && !Server::cookie_tells(ace(1)));
    assert!((2..8).all(|bits| Server::cookie_tells(ace(bits))));
}

/// Repeated SYNs and SYN-ACKs ask for less in the end, and the mode stays.
#[test]
fn repetitions_give_up_what_the_path_may_drop() {
    let mut client = Client::new(Mode::Accurate, Ecn::NotEct);
    let syns = [0; 4].map(|_| client.syn());
    assert_eq!(syns, [Ace::ACCURATE, Ace::ACCURATE, Ace::NONE, Ace::NONE]);
    let mut server = Server::new(Mode::Accurate, Ecn::NotEct);
    server.on_syn(Ace::ACCURATE, Ecn::NotEct).expect("no mix");
    let answers = [0; 3].map(|_| server.syn_ack());
    assert_eq!(answers, [ace(0b010), ace(0b010), Ace::NONE]);
    assert!(!server.may_send_option());
    assert_eq!(server.mode(), Some(Mode::Accurate));
    // A server that sent or got no flags on the way may not send ECT; it goes on answering marks.
    let verdict = server.on_third(ace(0b010));
    assert!(!verdict.sends_ect && verdict.responds);
    // A server agrees to Classic ECN as often as it answers.
    let mut server = Server::new(Mode::Classic, Ecn::NotEct);
    server.on_syn(Ace::ACCURATE, Ecn::NotEct).expect("no mix");
    assert_eq!([0; 3].map(|_| server.syn_ack()), [Ace::CLASSIC_AGREED; 3]);
    // The latest SYN is the one that is told.
    let mut server = Server::new(Mode::Accurate, Ecn::NotEct);
    server.on_syn(Ace::ACCURATE, Ecn::NotEct).expect("no mix");
    server.on_syn(Ace::ACCURATE, Ecn::Ce).expect("no mix");
    assert_eq!(server.syn_ack(), ace(0b110));
    // A SYN without flags changes no mode.
    assert_eq!(server.on_syn(Ace::NONE, Ecn::NotEct), Ok(Mode::Accurate));
    assert!(!server.on_third(ace(0b010)).sends_ect);
}

#[test]
fn a_mix_of_both_kinds_of_ecn_is_reset() {
    for [first, second] in [[Ace::CLASSIC, Ace::ACCURATE], [Ace::ACCURATE, Ace::CLASSIC]] {
        let mut server = Server::new(Mode::Accurate, Ecn::NotEct);
        server.on_syn(first, Ecn::NotEct).expect("the first");
        assert_eq!(server.on_syn(second, Ecn::NotEct), Err(Reset));
    }
    // RFC 3168 knows of no mix.
    let mut server = Server::new(Mode::Classic, Ecn::NotEct);
    for flags in [Ace::CLASSIC, Ace::ACCURATE] {
        assert_eq!(server.on_syn(flags, Ecn::NotEct), Ok(Mode::Classic));
    }
    for [first, second] in [[0b001, 0b010], [0b100, 0b001]] {
        let mut client = Client::new(Mode::Accurate, Ecn::NotEct);
        client.on_syn_ack(ace(first)).expect("the first");
        assert_eq!(client.on_syn_ack(ace(second)), Err(Reset));
    }
}

/// Worked by hand from section 3.2.2.5 and appendix A.2.
#[test]
fn the_safest_guess() {
    for (packets, least, wanted) in
        [(9, 2, 2), (10, 2, 10), (8, 0, 8), (7, 0, 0), (16, 0, 16), (15, 7, 15), (20, 3, 19), (1, 3, 3)]
    {
        assert_eq!(safest(packets, least), wanted, "{packets} {least}");
    }
    for (least, packets, ceb, wanted) in [(0, 8, 1460, 8), (2, 10, 1460, 2), (7, 15, 10_200, 7)] {
        let mut decoder = Decoder::new(false);
        let heard = Heard {
            ace: ace((5 + least) % 8),
            fields: Some(Fields { e0b: Some(1), ceb: Some(ceb), e1b: Some(1) }),
            acked_bytes: packets * u64::from(MSS),
            is_newer: true,
            ..Heard::default()
        };
        assert_eq!(decoder.on_ack(&heard, MSS), wanted);
    }
}

#[test]
fn three_bits_wrap() {
    for (cep, bits, wanted) in [(5, 1, 4), (15, 7, 0), (7, 0, 1)] {
        let mut decoder = Decoder::new(false);
        decoder.cep = cep;
        let heard = Heard { ace: ace(bits), is_newer: true, ..Heard::default() };
        assert_eq!(decoder.on_ack(&heard, MSS), wanted);
    }
    // One that was overtaken tells nothing.
    let mut decoder = Decoder::new(false);
    assert_eq!(decoder.on_ack(&Heard { ace: ace(1), ..Heard::default() }, MSS), 0);
    assert_eq!(decoder, Decoder::new(false));
}

/// Within one tick of the timestamps' clock only the option tells which ACK is older.
#[test]
fn an_option_from_before_counts_nothing() {
    let mut decoder = Decoder::new(false);
    let told = |ace_bits, e1b| Heard {
        ace: ace(ace_bits),
        fields: Some(Fields { e0b: Some(1), ceb: Some(0), e1b: Some(e1b) }),
        acked_bytes: 1460,
        ..Heard::default()
    };
    assert_eq!(decoder.on_ack(&told(5, 2921), MSS), 0);
    let after = decoder;
    assert_eq!(decoder.on_ack(&told(4, 1461), MSS), 0);
    assert_eq!(decoder, after);
}

/// Appendix A.1.
#[test]
fn twenty_four_bits_wrap() {
    let mut decoder = Decoder::new(false);
    decoder.ceb_bytes = 33_554_433;
    let fields = Some(Fields { ceb: Some(1461), ..Fields::default() });
    decoder
        .on_ack(&Heard { ace: ace(6), fields, acked_bytes: 1460, is_newer: true, ..Heard::default() }, MSS);
    assert_eq!(decoder.ceb_bytes, 33_555_893);
}

#[test]
fn the_option_has_the_counters_that_moved() {
    let mut received = Received::default();
    let all = received.fields().encode([true; 3], LONGEST_BYTES).expect("it fits");
    assert_eq!(all, [0xAC, 0x0B, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
    received.on_packet(Ecn::Ect1, 1448);
    let one = received.fields().encode(received.moved(), 40).expect("it fits");
    assert_eq!(one, [0xAE, 0x05, 0, 0x05, 0xA9]);
    received.on_packet(Ecn::Ce, 1448);
    let two = received.fields().encode(received.moved(), 8).expect("it fits");
    assert_eq!(two, [0xAE, 0x08, 0, 0x05, 0xA9, 0, 0x05, 0xA8]);
    // Beside timestamps and three SACK blocks there is no room.
    assert_eq!(received.fields().encode(received.moved(), 7), None);
    let read = Fields::decode(&two).expect("an option");
    assert_eq!(read, Fields { e0b: None, ceb: Some(1448), e1b: Some(1449) });
    assert_eq!(Fields::decode(&all).expect("an option"), Received::default().fields());
    // Other lengths: what is whole counts.
    assert_eq!(
        Fields::decode(&[0xAC, 7, 0, 0, 9, 1, 2]).expect("an option"),
        Fields { e0b: Some(9), ..Fields::default() }
    );
    for bad in [&[][..], &[0xAC], &[0xAC, 5, 0, 0], &[8, 5, 0, 0, 0], &[0xAC, 0]] {
        assert_eq!(Fields::decode(bad), Err(OptionError));
    }
}

/// Section 3.2.2.5.1, with ACKs held back for nothing else.
#[test]
fn when_an_ack_must_leave() {
    let (n, c) = (Ecn::Ect1, Ecn::Ce);
    let mut received = Received::default();
    let mut sent = Vec::new();
    for (at, field) in (1..).zip([n, n, c, c, c, n, c]) {
        if received.on_packet(field, 1448) {
            received.acknowledge();
            sent.push(at);
        }
    }
    assert_eq!(sent, [3, 5, 7]);
    // Of marked pure ACKs the third asks for one.
    let mut received = Received::default();
    assert_eq!([0; 3].map(|_| received.on_packet(c, 0)), [false, false, true]);
    // A marked SYN-ACK counts at the client.
    assert_eq!((Received::after_syn_ack(c).cep, Received::after_syn_ack(n).cep), (6, 5));
}

/// Packets that arrive, and what becomes of the ACK of each second one.
fn arrivals() -> impl Strategy<Value = Vec<(u8, bool, u8)>> {
    let marked = prop_oneof![1 => Just(3u8), 1 => Just(1u8)];
    // ACKs: 30 % are lost, some come after later ones.
    let delay = prop_oneof![4 => Just(0u8), 1 => 1u8..6];
    prop::collection::vec((marked, prop::bool::weighted(0.3), delay), 1..600)
}

/// Both ends on a path that loses and reorders ACKs. The last ACK arrives.
fn play(arrivals: &[(u8, bool, u8)], with_option: bool) -> (Received, Decoder) {
    let (mut received, mut decoder) = (Received::default(), Decoder::new(false));
    let mut acks: Vec<(usize, u64, Ace, Option<Fields>)> = Vec::new();
    for (at, &(field, lost, late)) in arrivals.iter().enumerate() {
        let urgent = received.on_packet(Ecn::from_bits(field), MSS);
        let last = at + 1 == arrivals.len();
        if urgent || at % 2 == 1 || last {
            let ace = received.acknowledge();
            let fields = with_option.then(|| {
                let bytes = received.fields().encode(received.moved(), LONGEST_BYTES).expect("it fits");
                Fields::decode(&bytes).expect("an option")
            });
            if !lost || last {
                acks.push((at + if last { 10 } else { usize::from(late) }, at as u64 + 1, ace, fields));
            }
        }
    }
    // In the order of their arrival.
    acks.sort_by_key(|&(arrives, covers, ..)| (arrives, covers));
    let mut covered = 0;
    for (_, covers, ace, fields) in acks {
        let new = covers.saturating_sub(covered);
        covered += new;
        let acked_bytes = new * u64::from(MSS);
        decoder.on_ack(&Heard { ace, fields, acked_bytes, is_newer: new > 0, ..Heard::default() }, MSS);
    }
    (received, decoder)
}

proptest! {
    /// With the option packets and bytes agree, through wraps of the three bits and lost ACKs in a row.
    #[test]
    fn both_ends_count_the_same_with_the_option(arrivals in arrivals()) {
        let (received, decoder) = play(&arrivals, true);
        prop_assert_eq!(decoder.cep, received.cep);
        prop_assert_eq!(decoder.ceb_bytes, received.ceb_bytes);
        prop_assert_eq!(decoder.e1b_bytes, received.e1b_bytes);
    }

    /// Without it the sender never counts less, and the three bits agree.
    #[test]
    fn the_sender_never_counts_less_without_the_option(arrivals in arrivals()) {
        let (received, decoder) = play(&arrivals, false);
        prop_assert!(decoder.cep >= received.cep);
        prop_assert_eq!(decoder.cep % 8, received.cep % 8);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..44)) {
        let _ = Fields::decode(&bytes);
    }
}
