//! quiche's CUBIC and Reno, unmodified, called as its recovery calls them. The modules are private, so their files are compiled
//! here, beside the few types of quiche that they use. quiche paces its BBR alone, so these have no pacing rate.

use std::time::Duration;

include!(concat!(env!("OUT_DIR"), "/root.rs"));

mod recovery {
    use std::time::{Duration, Instant};

    include!(concat!(env!("OUT_DIR"), "/parts.rs"));

    pub const GRANULARITY: Duration = Duration::from_millis(1);
    pub const MINIMUM_WINDOW_PACKETS: usize = 2;
    pub const LOSS_REDUCTION_FACTOR: f64 = 0.5;

    #[derive(Clone, Copy)]
    pub enum CongestionControlAlgorithm {
        Reno,
        CUBIC,
        // Their files match on it, and no build here makes it.
        #[allow(dead_code)]
        Bbr2Gcongestion,
    }

    pub struct RecoveryConfig {
        pub max_send_udp_payload_size: usize,
        pub cc_algorithm: CongestionControlAlgorithm,
        pub hystart: bool,
        pub initial_congestion_window_packets: usize,
        pub enable_cubic_idle_restart_fix: bool,
    }

    /// The fields of a packet that the controllers use.
    #[derive(Clone)]
    pub struct Sent {
        pub pkt_num: u64,
        pub time_sent: Instant,
        pub size: usize,
        pub delivered: usize,
        pub delivered_time: Instant,
        pub first_sent_time: Instant,
        pub is_app_limited: bool,
        pub tx_in_flight: usize,
        pub lost: u64,
    }
}

/// How slow start ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartupExit {
    pub cwnd: usize,
    pub bandwidth: Option<u64>,
    pub reason: StartupExitReason,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StartupExitReason {
    Loss,
    ConservativeSlowStartRounds,
}

impl StartupExit {
    fn new(
        cwnd: usize,
        _bandwidth: Option<recovery::bandwidth::Bandwidth>,
        reason: StartupExitReason,
    ) -> Self {
        StartupExit { cwnd, bandwidth: None, reason }
    }
}

use recovery::congestion::recovery::Quiche;

/// quiche's initial RTT without a handshake.
const INITIAL_RTT: Duration = Duration::from_millis(333);

lfn_stack_adapter::controllers! {
    "cubic" => Quiche<true>,
    "reno" => Quiche<false>,
}
