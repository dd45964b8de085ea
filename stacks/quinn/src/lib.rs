//! quinn-proto's controllers, unmodified, called as its `Connection` calls them.

use std::cell::Cell;
use std::ffi::CStr;
use std::mem::{size_of, transmute, MaybeUninit};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lfn_stack_adapter::{controllers, Batch, Config, Packet, Rtt, Stack};
use quinn_proto::congestion::{BbrConfig, Controller, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::RttEstimator;

/// Which of them.
pub trait Kind: Send {
    const NAME: &'static CStr;
    /// Of the whole connection with it.
    const WHOLE: &'static CStr;
    fn factory() -> Arc<dyn ControllerFactory + Send + Sync>;
}

macro_rules! kinds {
    ($($kind:ident, $name:literal, $whole:literal, $config:ty;)+) => {
        $(
            pub struct $kind;
            impl Kind for $kind {
                const NAME: &'static CStr = $name;
                const WHOLE: &'static CStr = $whole;
                fn factory() -> Arc<dyn ControllerFactory + Send + Sync> {
                    Arc::new(<$config>::default())
                }
            }
        )+
    };
}

kinds! {
    Bbr, c"quinn:bbr", c"quinn-whole:bbr", BbrConfig;
    Cubic, c"quinn:cubic", c"quinn-whole:cubic", CubicConfig;
    NewReno, c"quinn:new_reno", c"quinn-whole:new_reno", NewRenoConfig;
}

/// A connection's controller.
pub struct Quinn<K> {
    controller: Box<dyn Controller>,
    /// An `Instant` cannot be written: simulated times are counted from the connection's begin.
    begin: Instant,
    begin_ns: u64,
    kind: std::marker::PhantomData<K>,
}

impl<K> Quinn<K> {
    fn at(&self, ns: u64) -> Instant {
        self.begin + Duration::from_nanos(ns - self.begin_ns)
    }
}

/// An estimator with these times. It has no public constructor; its four fields are durations, whose order its public functions
/// tell.
fn estimator(rtt: Rtt) -> RttEstimator {
    const { assert!(size_of::<RttEstimator>() == size_of::<[Duration; 4]>()) };
    // SAFETY: three durations and an Option of one, which has a duration's size, so that Some has a duration's bits.
    let of = |four: [Duration; 4]| unsafe { transmute::<[Duration; 4], RttEstimator>(four) };
    let probe = of([1, 2, 3, 4].map(Duration::from_secs));
    let mut four = [Duration::from_nanos(rtt.latest_ns.max(rtt.min_ns)); 4];
    four[probe.get().as_secs() as usize - 1] = Duration::from_nanos(rtt.smoothed_ns);
    four[probe.min().as_secs() as usize - 1] = Duration::from_nanos(rtt.min_ns);
    of(four)
}

impl<K: Kind> Stack for Quinn<K> {
    type Own = ();
    const NAME: &'static CStr = K::NAME;

    fn new(config: &Config, _rtt: Rtt) -> Self {
        seed_draws(config.seed.into());
        let begin = Instant::now();
        let mtu = u16::try_from(config.packet_bytes).unwrap_or(u16::MAX);
        let controller = K::factory().build(begin, mtu);
        Quinn { controller, begin, begin_ns: config.now_ns, kind: std::marker::PhantomData }
    }

    fn sent(&mut self, now_ns: u64, packet: &Packet, _in_flight_bytes: u64, _app_limited: bool) {
        self.controller.on_sent(self.at(now_ns), packet.bytes.into(), packet.number);
    }

    fn told(&mut self, batch: &Batch<()>) {
        let now = self.at(batch.now_ns);
        let rtt = estimator(batch.rtt);
        for packet in batch.acked {
            let sent = self.at(packet.sent_ns);
            self.controller.on_ack(now, sent, packet.bytes, batch.app_limited, &rtt);
        }
        if let Some(newest) = batch.acked.iter().max_by_key(|packet| packet.number) {
            let number = Some(newest.number);
            self.controller.on_end_acks(now, batch.in_flight_bytes, batch.app_limited, number);
            if batch.ce_packets > 0 {
                self.controller.on_congestion_event(now, self.at(newest.sent_ns), false, 0);
            }
        }
        if let Some(newest) = batch.lost.iter().max_by_key(|packet| packet.number) {
            let bytes = batch.lost.iter().map(|packet| packet.bytes).sum();
            let sent = self.at(newest.sent_ns);
            self.controller.on_congestion_event(now, sent, batch.persistent_congestion, bytes);
        }
    }

    fn window_bytes(&self) -> u64 {
        self.controller.window()
    }
}

/// The next draws of a controller begin from this seed.
pub fn seed_draws(seed: u64) {
    DRAWS.set(seed);
}

thread_local! {
    static DRAWS: Cell<u64> = const { Cell::new(0) };
}

/// Bytes in place of the operating system's, for the generator from which each BBR takes its own: a thread draws here once,
/// by the seed of its first connection.
#[no_mangle]
unsafe extern "Rust" fn __getrandom_v03_custom(target: *mut u8, len: usize) -> Result<(), getrandom::Error> {
    // SAFETY: getrandom hands over a buffer of this length.
    for byte in unsafe { std::slice::from_raw_parts_mut(target.cast::<MaybeUninit<u8>>(), len) } {
        // Knuth's linear congruential generator for MMIX.
        let next =
            DRAWS.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        DRAWS.set(next);
        byte.write((next >> 56) as u8);
    }
    Ok(())
}

/// The table of functions of a controller.
pub fn table<K: Kind + 'static>() -> *const lfn_stack_adapter::lfn::Table {
    lfn_stack_adapter::table(std::marker::PhantomData::<Quinn<K>>)
}

controllers! {
    "bbr" => Quinn<Bbr>,
    "cubic" => Quinn<Cubic>,
    "new_reno" => Quinn<NewReno>,
}
