use super::super::testing::{assert_close, carried};
use super::super::Model;
use super::*;

const PATH: PathConfig = PathConfig::of_rtt(Distribution::Uniform(0.01, 0.2));

fn message(config: Config) -> String {
    Web::new(&config, &Streams::new(1, "web")).expect_err("bad").to_string()
}

/// Objects of `config` up to `until_s`, each of which takes `duration`.
fn objects(config: &Config, seed: u64, until_s: u64, duration: Time) -> Vec<Transfer> {
    carried(&Model::Web(config.clone()), seed, Time::from_s(until_s), |_| duration)
}

/// Users who are all there from the beginning and never go, and whose objects' tail is lighter.
fn users(count: u64) -> Config {
    Config {
        session_gap_s: Distribution::Constant(1e-6),
        more_pages: Distribution::Constant(f64::INFINITY).into(),
        object_bytes: Distribution::pareto_ii_of_mean(12e3, 1e3, 1.5).into(),
        ..Config::webtraf(Direction::Reverse, count, PATH)
    }
}

fn mean_load(config: &Config, from_s: u64, until_s: u64, duration: Time) -> f64 {
    let bytes = |seed| {
        let all = objects(config, seed, until_s, duration);
        all.iter().filter(|object| object.at >= Time::from_s(from_s)).map(|object| object.bytes).sum::<u64>()
    };
    (0..10).map(bytes).sum::<u64>() as f64 * 8.0 / (10 * (until_s - from_s)) as f64
}

#[test]
fn webtraf_is_the_example_of_ns2() {
    let config = Config::webtraf(Direction::Forward, 400, PATH);
    // 400 / 15 x 12 packets of 1000 bytes x 8.
    assert_close(config.offered_bps(Time::ZERO), 2.56e6, 1e-12);
    assert_close(config.page_bytes(), 12e3, 1e-12);
    let sessions: Vec<Transfer> = objects(&config, 1, 100, Time::from_ms(100));
    let begun = sessions.iter().map(|object| object.session).max().expect("some") + 1;
    assert!((70..130).contains(&begun), "{begun} sessions in 100 s");
}

#[test]
fn load_of_a_closed_loop_is_nominal_and_falls_as_pages_take_longer() {
    // 280,000 and 250,000 pages, so 2 % is four standard errors. The first 100 s forget the beginning,
    // when all users fetch at once.
    let config = users(1000);
    for duration in [Time::from_ms(100), Time::from_s(2)] {
        assert_close(mean_load(&config, 100, 520, duration), config.offered_bps(duration), 0.02);
    }
}

#[test]
fn sessions_that_come_and_go_offer_what_they_fetch_in_all() {
    let config = Config {
        sessions: u64::MAX,
        session_gap_s: Distribution::Exponential(0.1),
        more_pages: Distribution::Exponential(4.0).into(),
        think_s: Distribution::Exponential(1.0),
        more_objects: Distribution::Exponential(2.0).into(),
        ..users(1)
    };
    assert_close(config.offered_by_sessions_bps(), 8.0 * 10.0 * 5.0 * 3.0 * 12e3, 1e-12);
    // 300,000 objects.
    assert_close(mean_load(&config, 50, 250, Time::from_ms(100)), config.offered_by_sessions_bps(), 0.02);
    let mut web = Web::new(&config, &Streams::new(1, "web")).expect("valid");
    let mut under_way = std::collections::VecDeque::new();
    let mut most = 0;
    for _ in 0..30_000 {
        let object = web.next_transfer().expect("sessions come without end");
        under_way.push_back(object);
        while under_way.front().is_some_and(|first| first.at + Time::from_ms(100) <= web.next_at()) {
            let first: Transfer = under_way.pop_front().expect("it is there");
            web.on_done(first.session, first.at + Time::from_ms(100));
        }
        most = most.max(web.running());
    }
    // Ten sessions a second, each of about five seconds.
    assert!((30..120).contains(&most), "{most} at once");
}

#[test]
fn webtraf_offers_its_nominal_load() {
    // Its own tail, but all users there at once. Sizes have a coefficient of variation of 12, so 2 % is
    // 2.4 standard errors of 2 million pages.
    let users = users(4000);
    let config = Config { object_bytes: Config::webtraf(Direction::Reverse, 1, PATH).object_bytes, ..users };
    let duration = Time::from_ms(100);
    assert_close(mean_load(&config, 100, 900, duration), config.offered_bps(duration), 0.02);
}

#[test]
fn surge_offers_its_nominal_load() {
    // Sizes have a coefficient of variation of 11, so 2 % is two standard errors of 1.3 million files.
    let config = Config::surge(Direction::Forward, 250, PATH);
    let duration = Time::from_ms(100);
    let page_s = config.more_objects.mean() * config.object_gap_s.mean() + duration.as_s();
    let nominal = config.offered_bps(Time::from_s_f64(page_s));
    assert_close(mean_load(&config, 1000, 1500, duration), nominal, 0.02);
    // 2.43 / 1.43 embedded files; no user reads longer than 1000 s, which takes 3 % off the mean of 3 s.
    assert_close(config.more_objects.mean(), 1.7, 0.001);
    assert_close(config.think_s.mean(), 2.905, 0.001);
}

#[test]
fn the_next_page_waits_for_the_last_object_of_this_one() {
    let config = Config {
        think_s: Distribution::Constant(1.0),
        more_objects: Distribution::Constant(3.0).into(),
        object_gap_s: Distribution::Constant(0.1),
        ..users(1)
    };
    let gaps = |duration: Time| {
        let at: Vec<Time> = objects(&config, 1, 30, duration).iter().map(|object| object.at).collect();
        at.windows(2).map(|pair| (pair[1] - pair[0]).0 / Time::from_ms(1).0).take(8).collect::<Vec<u64>>()
    };
    assert_eq!(gaps(Time::from_ms(50)), [100, 100, 100, 1050, 100, 100, 100, 1050]);
    assert_eq!(gaps(Time::from_ms(700)), [100, 100, 100, 1700, 100, 100, 100, 1700]);
}

#[test]
fn a_user_without_an_answer_asks_nothing() {
    let mut web = Web::new(&users(2), &Streams::new(1, "web")).expect("valid");
    let sessions = [0, 1].map(|_| web.next_transfer().expect("two users").session);
    assert_eq!((sessions, web.next_at(), web.next_transfer()), ([0, 1], Time::NEVER, None));
    web.on_done(1, Time::from_s(5));
    assert!(web.next_at() > Time::from_s(5) && web.next_at() < Time::NEVER);
    assert_eq!(web.next_transfer().map(|object| object.session), Some(1));
}

#[test]
fn what_a_user_fetches_does_not_depend_on_the_network() {
    let config = Config { more_objects: Distribution::Exponential(2.0).into(), ..users(20) };
    let fetched = |session, duration| {
        let all = objects(&config, 1, 300, duration);
        let own = all.into_iter().filter(move |object| object.session == session);
        own.map(|object| (object.bytes, object.rtt)).take(10).collect::<Vec<_>>()
    };
    for session in 0..20 {
        let fast = fetched(session, Time::from_ms(1));
        assert_eq!(fast.len(), 10);
        assert_eq!(fast, fetched(session, Time::from_s(3)));
    }
}

#[test]
fn objects_have_the_tail_of_the_shape() {
    let config = Config::webtraf(Direction::Forward, 1, PATH);
    let mut stream = Streams::new(1, "web").stream("tail");
    let sizes: Vec<u64> = (0..200_000).map(|_| config.object_bytes.draw_bytes(&mut stream).1).collect();
    let Distribution::ParetoII(scale, most, _) = config.object_bytes.0[0].1 else { panic!("not ParetoII") };
    assert!((29e6..30e6).contains(&most), "{most}");
    // P(X > x) = (1 + x/scale)^-1.2, less than 1 % of it beyond the bound.
    for (times, tolerance) in [(9.0, 0.02), (99.0, 0.08)] {
        let above = sizes.iter().filter(|&&size| size as f64 > times * scale).count() as f64;
        assert_close(above / 200_000.0, f64::powf(1.0 + times, -1.2), tolerance);
    }
}

#[test]
fn what_cannot_be_is_named() {
    let zero = Distribution::Constant(0.0);
    assert_eq!(message(Config { think_s: zero, ..users(1) }), "think: 0; above 0 and finite");
    assert_eq!(message(Config { object_bytes: zero.into(), ..users(1) }), "object: 0; above 0 and finite");
    assert_eq!(message(Config { session_gap_s: zero, ..users(1) }), "session_gap: 0; above 0 and finite");
    let many = Distribution::Constant(f64::INFINITY).into();
    assert_eq!(
        message(Config { more_objects: many, ..users(1) }),
        "more_objects: inf; at least 0 and finite"
    );
    let negative = Distribution::Constant(-1.0).into();
    assert_eq!(
        message(Config { more_pages: negative, ..users(1) }),
        "more_pages: -1; at least 0, or infinite"
    );
}
