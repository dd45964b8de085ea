//! The scenarios. Their bounds hold for Reno, CUBIC and BBR of this repository; a test compares.

use std::ops::RangeInclusive;

use crate::measure::Measure::{self, Fairness, Goodput, Loss, Queue, Recovery, Share};
use crate::TESTED;

/// An assertion: a figure and the values that it may have.
pub(crate) type Bound = (Measure, RangeInclusive<f64>);

/// A scenario and its assertions.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// A sentence about it.
    pub(crate) about: &'static str,
    duration_s: u32,
    /// Keys of the link.
    link: &'static str,
    /// Keys of each flow of the controller.
    flow: &'static str,
    /// Number of them.
    pub(crate) own: usize,
    /// Law and keys of a flow beside them.
    beside: &'static str,
    /// Changes of the path.
    schedule: &'static str,
    /// The rate that goodput is compared with; after the changes, if there are some.
    pub(crate) rate_bps: f64,
    /// Time of the change after which it recovers.
    pub(crate) changes_s: f64,
    pub(crate) bounds: &'static [Bound],
}

impl Case {
    pub(crate) fn toml(&self) -> String {
        let (duration, link, schedule) = (self.duration_s, self.link, self.schedule);
        let head =
            format!("schema = 1\nname = {:?}\nduration = \"{duration}s\"\nsample = \"20ms\"", self.name);
        let flow = |law: &str, keys: &str| format!("[[flow]]\nlaw = {law}\n{keys}\n");
        let own = flow(&format!("{TESTED:?}\ncount = {}", self.own), self.flow);
        let beside = match self.beside.split_once('\n') {
            Some((law, keys)) => flow(law, keys),
            None => String::new(),
        };
        format!("{head}\nschedule = [{schedule}]\n\n[link]\n{link}\n\n{own}{beside}")
    }
}

const NONE: Case = Case {
    name: "",
    about: "",
    duration_s: 20,
    link: "",
    flow: "rtt = \"40ms\"",
    own: 1,
    beside: "",
    schedule: "",
    rate_bps: 20e6,
    changes_s: 0.0,
    bounds: &[],
};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "one-bdp",
        about: "One flow, 20 Mbit/s, 40 ms, a buffer of one BDP.",
        link: "rate = \"20Mbit/s\"\nqueue = { size = \"1bdp\" }",
        bounds: &[(Goodput, 0.85..=1.0), (Loss, 0.0..=0.02), (Queue, 0.0..=0.04)],
        ..NONE
    },
    Case {
        name: "shallow-buffer",
        about: "A buffer of a tenth of a BDP: 7 packets.",
        link: "rate = \"20Mbit/s\"\nqueue = { size = \"0.1bdp\" }",
        bounds: &[(Goodput, 0.5..=1.0), (Loss, 0.0..=0.05)],
        ..NONE
    },
    Case {
        name: "deep-buffer",
        about: "A buffer of four BDP.",
        link: "rate = \"20Mbit/s\"\nqueue = { size = \"4bdp\" }",
        bounds: &[(Goodput, 0.85..=1.0), (Loss, 0.0..=0.02), (Queue, 0.0..=0.16)],
        ..NONE
    },
    Case {
        name: "long-path",
        about: "50 Mbit/s over 200 ms: a BDP of 826 packets.",
        duration_s: 30,
        link: "rate = \"50Mbit/s\"\nqueue = { size = \"1bdp\" }",
        flow: "rtt = \"200ms\"",
        rate_bps: 50e6,
        bounds: &[(Goodput, 0.6..=1.0), (Loss, 0.0..=0.05)],
        ..NONE
    },
    Case {
        name: "short-path",
        about: "50 Mbit/s over 2 ms: a BDP of 8 packets.",
        duration_s: 10,
        link: "rate = \"50Mbit/s\"\nqueue = { size = \"30 packets\" }",
        flow: "rtt = \"2ms\"",
        rate_bps: 50e6,
        bounds: &[(Goodput, 0.85..=1.0), (Loss, 0.0..=0.02)],
        ..NONE
    },
    Case {
        name: "thin-path",
        about: "500 kbit/s over 100 ms: a BDP of 4 packets.",
        duration_s: 60,
        link: "rate = \"500kbit/s\"\nqueue = { size = \"20 packets\" }",
        flow: "rtt = \"100ms\"",
        rate_bps: 500e3,
        bounds: &[(Goodput, 0.8..=1.0), (Loss, 0.0..=0.05)],
        ..NONE
    },
    Case {
        name: "satellite",
        about: "5 Mbit/s over 600 ms.",
        duration_s: 60,
        link: "rate = \"5Mbit/s\"\nqueue = { size = \"1bdp\" }",
        flow: "rtt = \"600ms\"",
        rate_bps: 5e6,
        bounds: &[(Goodput, 0.6..=1.0), (Loss, 0.0..=0.05)],
        ..NONE
    },
    Case {
        name: "few-losses",
        about: "One packet of 10,000 is lost at random.",
        link: "rate = \"20Mbit/s\"\nloss = 1e-4\nqueue = { size = \"1bdp\" }",
        bounds: &[(Goodput, 0.7..=1.0), (Loss, 0.0..=0.02)],
        ..NONE
    },
    Case {
        name: "many-losses",
        about: "One packet of 100 is lost at random: Reno has 1.22 MSS/RTT/sqrt(p), 3.5 Mbit/s.",
        link: "rate = \"20Mbit/s\"\nloss = 0.01\nqueue = { size = \"1bdp\" }",
        bounds: &[(Goodput, 0.1..=1.0), (Loss, 0.005..=0.03)],
        ..NONE
    },
    Case {
        name: "bursts-of-losses",
        about: "Losses in bursts of 10 packets, 0.1 % in the mean (Gilbert-Elliott).",
        link: "rate = \"20Mbit/s\"\nloss = { kind = \"gilbert-elliott\", p = 1e-4, r = 0.1 }\nqueue = { size = \"1bdp\" }",
        bounds: &[(Goodput, 0.4..=1.0), (Loss, 0.0..=0.03)],
        ..NONE
    },
    Case {
        name: "lost-acks",
        about: "One ACK of ten is lost.",
        link: "rate = \"20Mbit/s\"\nacks = { loss = 0.1 }\nqueue = { size = \"1bdp\" }",
        bounds: &[(Goodput, 0.8..=1.0), (Loss, 0.0..=0.02)],
        ..NONE
    },
    Case {
        name: "batched-acks",
        about: "ACKs come in batches each 10 ms, as over a radio link.",
        link: "rate = \"20Mbit/s\"\nacks = { aggregate = \"10ms\" }\nqueue = { size = \"1bdp\" }",
        bounds: &[(Goodput, 0.8..=1.0), (Loss, 0.0..=0.03)],
        ..NONE
    },
    Case {
        name: "reordering",
        about: "One packet of 100 is held up by 2 ms, and three or four overtake it.",
        link: "rate = \"20Mbit/s\"\nreorder = { p = 0.01, delay = \"2ms\" }\nqueue = { size = \"1bdp\" }",
        bounds: &[(Goodput, 0.4..=1.0), (Loss, 0.0..=0.05)],
        ..NONE
    },
    Case {
        name: "codel",
        about: "CoDel keeps the queue at 5 ms, by drops.",
        link: "rate = \"20Mbit/s\"\nqueue = { kind = \"codel\", size = \"4bdp\" }",
        bounds: &[(Goodput, 0.7..=1.0), (Loss, 0.0..=0.03), (Queue, 0.0..=0.025)],
        ..NONE
    },
    Case {
        name: "marks",
        about: "CoDel marks packets instead of dropping them.",
        link: "rate = \"20Mbit/s\"\nqueue = { kind = \"codel\", size = \"4bdp\", ecn = true }",
        flow: "rtt = \"40ms\"\necn = true",
        bounds: &[(Goodput, 0.7..=1.0), (Loss, 0.0..=0.01), (Queue, 0.0..=0.04)],
        ..NONE
    },
    Case {
        name: "faster-link",
        about: "The link goes from 5 to 20 Mbit/s at 10 s.",
        duration_s: 40,
        link: "rate = \"5Mbit/s\"\nqueue = { size = \"40 packets\" }",
        schedule: "{ at = \"10s\", link = \"forward\", rate = \"20Mbit/s\" }",
        changes_s: 10.0,
        bounds: &[(Recovery, 0.0..=15.0), (Loss, 0.0..=0.03)],
        ..NONE
    },
    Case {
        name: "slower-link",
        about: "The link goes from 20 to 5 Mbit/s at 10 s; its buffer is one BDP of before.",
        duration_s: 30,
        link: "rate = \"20Mbit/s\"\nqueue = { size = \"1bdp\" }",
        schedule: "{ at = \"10s\", link = \"forward\", rate = \"5Mbit/s\" }",
        rate_bps: 5e6,
        changes_s: 10.0,
        bounds: &[(Recovery, 0.0..=3.0), (Loss, 0.0..=0.05), (Queue, 0.0..=0.16)],
        ..NONE
    },
    Case {
        name: "outage",
        about: "The link is down from 5 to 6 s.",
        link: "rate = \"20Mbit/s\"\nqueue = { size = \"1bdp\" }",
        schedule: "{ at = \"5s\", link = \"forward\", down = true }, { at = \"6s\", link = \"forward\", down = false }",
        changes_s: 6.0,
        bounds: &[(Recovery, 0.0..=8.0), (Loss, 0.0..=0.05)],
        ..NONE
    },
    Case {
        name: "two-flows",
        about: "Two of its flows, one 5 s after the other.",
        duration_s: 60,
        link: "rate = \"20Mbit/s\"\nqueue = { size = \"1bdp\" }",
        flow: "rtt = \"40ms\"\nstart = [\"0s\", \"5s\"]",
        own: 2,
        bounds: &[(Fairness, 0.8..=1.0), (Goodput, 0.8..=1.0), (Loss, 0.0..=0.08)],
        ..NONE
    },
    Case {
        name: "beside-cubic",
        about: "Beside a flow of CUBIC.",
        duration_s: 60,
        link: "rate = \"20Mbit/s\"\nqueue = { size = \"1bdp\" }",
        beside: "\"cubic\"\nrtt = \"40ms\"",
        bounds: &[(Share, 0.1..=0.9), (Loss, 0.0..=0.05)],
        ..NONE
    },
];
