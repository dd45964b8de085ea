//! A scenario that was read once, as Python holds it.

use std::collections::BTreeMap;

use lfn_law::LawSpec;
use lfn_sim::config::Config;
use pyo3::prelude::*;

use crate::errors::{LabError, LawError};
use crate::outside;

/// The text of a scenario, and all that follows from it.
#[pyclass(frozen, module = "lfnlab._core")]
pub(crate) struct Scenario {
    #[pyo3(get)]
    text: String,
    #[pyo3(get)]
    pub(crate) file: String,
    pub(crate) parsed: lfn_scenario::Scenario,
}

#[pymethods]
impl Scenario {
    #[new]
    #[pyo3(signature = (text, file="scenario", *, prototypes=true))]
    fn new(text: String, file: &str, prototypes: bool) -> PyResult<Scenario> {
        let parsed = outside::parse(&text, file, None, prototypes)?;
        Ok(Scenario { text, file: file.into(), parsed })
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.parsed.seed
    }

    #[getter]
    fn resolved(&self) -> PyResult<String> {
        serde_json::to_string(&self.parsed).map_err(|error| LabError::new_err(error.to_string()))
    }

    #[getter]
    fn needs(&self) -> BTreeMap<&'static str, u64> {
        let need = self.parsed.predict();
        BTreeMap::from([
            ("memory_bytes", need.memory_bytes),
            ("flow_bytes", need.flow_bytes),
            ("packet_bytes", need.packet_bytes),
            ("link_bytes", need.link_bytes),
            ("table_bytes", need.table_bytes),
            ("capture_bytes", need.capture_bytes),
            ("packets", need.packets),
            ("events", need.events),
        ])
    }

    #[getter]
    fn is_random(&self) -> bool {
        self.parsed.is_random()
    }

    pub(crate) fn check_memory(&self, limit_bytes: u64) -> PyResult<()> {
        if self.parsed.predict().memory_bytes > limit_bytes {
            // Only the text has the place of the key that needs it.
            outside::parse(&self.text, &self.file, Some(limit_bytes), true)?;
        }
        Ok(())
    }
}

impl Scenario {
    /// As the simulator takes it, with its own seed.
    pub(crate) fn config(&self) -> Config {
        self.parsed.config(self.parsed.seed)
    }

    /// Refuses a law in Python whose class is not here.
    pub(crate) fn check_laws(&self) -> PyResult<()> {
        let missing = |law: &&LawSpec| law.prototype().is_some_and(|known| known.build.is_none());
        match self.parsed.laws().find(missing) {
            None => Ok(()),
            Some(law) => Err(LawError::new_err(format!(
                "{law} is known from results alone; its class in Python is not here"
            ))),
        }
    }
}
