//! Router protocols, with their keys as `lfn_path` declares them.

use lfn_path::RouterConfig;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::serialize_keys;

/// What a link tells the senders of the data that pass it; `None`: nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Router(pub Option<RouterConfig>);

impl Serialize for Router {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.0.as_ref().map_or("none", RouterConfig::kind))?;
        if let Some(router) = &self.0 {
            serialize_keys(&mut map, router.keys())?;
        }
        map.end()
    }
}
