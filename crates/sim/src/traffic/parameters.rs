//! The models that a scenario may name, each by its keys.

use lfn_keys::one_of;

use super::keys::Keys;
use super::model::Model;
use super::{evaluation_suite, open, packmime, requests, vectors, web};
use super::{Direction, PathConfig};

macro_rules! models {
    ($($(#[doc = $about:literal])+ $name:ident = $key:literal: $keys:ty;)+) => {
        one_of! {
            /// A traffic model, by its keys. Segments hold 1460 bytes, in 10 % of the connections 536.
            pub enum Parameters, like "short_flows = { load = \"100Mbit/s\" }" {
                $($(#[doc = $about])+ $name = $key: $keys;)+
            }
        }

        impl Parameters {
            /// The model. Its larger part goes in `direction`, its connections have this path.
            pub fn model(&self, direction: Direction, path: PathConfig) -> Model {
                match self { $(Parameters::$name(keys) => Keys::config(keys, direction, path).into(),)+ }
            }
        }
    };
}

models! {
    /// Poisson arrivals of flows with Pareto sizes (Dukkipati and others 2005).
    ShortFlows = "short_flows": open::ShortFlows;
    /// Clients that ask servers and wait for their answers.
    Requests = "requests": requests::Clients;
    /// Web traffic as a link sees it (Cao and others 2004).
    Packmime = "packmime": packmime::Packmime;
    /// Web sessions as in ns-2.
    Webtraf = "webtraf": web::Webtraf;
    /// Web users (Barford and Crovella 1998).
    Surge = "surge": web::Surge;
    /// Connections as a file lists them, as tmix replays them (Weigle and others 2006).
    Vectors = "vectors": vectors::Vectors;
    /// The nine pairs of the common TCP evaluation suite.
    Suite = "suite": evaluation_suite::Pairs;
}
