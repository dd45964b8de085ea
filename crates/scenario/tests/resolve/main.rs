//! Resolved scenarios: defaults, sizes, and the simulation's configuration.

mod flows;
mod links;
mod network;
mod traffic;

use std::path::Path;

use lfn_law::{Build, LawSpec, Prototype, SlowStartKind};
use lfn_path::{
    AqmConfig, CodelConfig, FqCodelConfig, GilbertElliottConfig, JitterConfig, PieConfig, RedConfig,
    RedRules, Reorder, Service, Thresholds, Weight,
};
use lfn_scenario::{Outside, Scenario};
use lfn_sim::config::{Changed, Config, Direction, LinkConfig, LinkId, Loss, RouteId};
use lfn_sim::rng::Distribution;
use lfn_sim::traffic::udp::{Burst, OnOff, Pattern};
use lfn_sim::traffic::{evaluation_suite, open, packmime, requests, web, Model, PathConfig};
use lfn_tcp::{ReceiverConfig, SendBuffer, SenderConfig};
use lfn_units::{Bytes, Rate, Time};

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml", None).unwrap_or_else(|error| panic!("{error}"))
}

/// The rate of a link that follows no trace.
fn rate(link: &LinkConfig) -> Rate {
    match link.service {
        Service::Rate(rate) => rate,
        Service::Trace(..) | Service::Shaped(..) => panic!("{} has no rate of its own", link.name),
    }
}

/// A dumbbell of 10 Gbit/s and one flow of CUBIC over 100 ms, with more lines here and there.
fn config(top: &str, queue: &str, flow: &str) -> Config {
    let text = format!(
        "schema = 1\nduration = \"60s\"\n{top}\n[link]\nrate = \"10Gbit/s\"\n[link.queue]\n{queue}\n\
         [[flow]]\nlaw = \"cubic\"\nrtt = \"100ms\"\n{flow}\n"
    );
    parse(&text).config(1)
}
