//! Queues: their room, and their discipline with its keys as `lfn_path` declares them.

use lfn_path::AqmConfig;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::serialize_keys;
use crate::quantity::{BufferSize, Text};

/// A queue and what it does when it fills.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Its room.
    pub size: Text<BufferSize>,
    /// Its discipline.
    pub discipline: AqmConfig,
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.discipline.kind())?;
        map.serialize_entry("size", &self.size)?;
        serialize_keys(&mut map, self.discipline.keys())?;
        map.end()
    }
}
