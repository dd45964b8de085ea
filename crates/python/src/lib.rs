//! The Python module `lfnlab._core`: scenarios in, columns out. No panic leaves it, and the
//! interpreter's lock is free while simulations run. The signatures are in python/lfnlab/_core.pyi.

mod arrays;
mod batch;
mod capture;
mod controller;
#[cfg(target_os = "linux")]
mod emulator;
mod environment;
mod errors;
#[cfg(target_os = "linux")]
mod huge_pages;
mod interrupts;
mod memory;
mod named;
mod outside;
mod prototype;
mod scenario;
mod table_file;
mod theory;
#[cfg(target_os = "linux")]
mod transfer;
mod vectors;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use arrays::array;
use batch::Finished;
use lfn_law::{registry, LawInfo};
use lfn_sim::tables::{ColumnSchema, TABLES};
use lfn_units::{Bytes, UnitError};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use interrupts::waited;
use outside::scenario_error;
use scenario::Scenario;

/// A finished run.
#[pyclass(frozen, module = "lfnlab._core")]
struct Run {
    summary: String,
    tables: Vec<(&'static str, Vec<table_file::Named>)>,
    /// Their memory counts until Python drops them.
    _share: memory::Share,
    #[pyo3(get)]
    wall_s: f64,
    #[pyo3(get)]
    cpu_s: f64,
}

#[pymethods]
impl Run {
    fn summary(&self) -> &str {
        &self.summary
    }

    fn table<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        let table = PyDict::new(py);
        for (name, column) in self.columns(name)? {
            table.set_item(name, array(py, column)?)?;
        }
        Ok(table)
    }

    fn rows(&self, name: &str) -> PyResult<usize> {
        Ok(table_file::rows(self.columns(name)?))
    }

    fn parquet<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        about: Vec<(String, String)>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let columns = self.columns(name)?;
        let written = py.detach(|| table_file::written(columns, about));
        let bytes = written.map_err(|error| errors::LabError::new_err(format!("table {name}: {error}")))?;
        Ok(PyBytes::new(py, &bytes))
    }
}

impl Run {
    fn new(finished: Finished) -> Run {
        let Finished { summary, tables, share, wall_s, cpu_s } = finished;
        Run { summary, tables: tables.into_columns(), _share: share, wall_s, cpu_s }
    }

    fn columns(&self, name: &str) -> PyResult<&[table_file::Named]> {
        let found = self.tables.iter().find(|(table, _)| *table == name);
        found.map(|(_, columns)| &**columns).ok_or_else(|| {
            let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
            PyKeyError::new_err(format!("no table {name:?}; tables: {}", names.join(", ")))
        })
    }
}

/// Every table of a run: (name, meaning of a row, columns), of each column (name, type, unit, meaning, codes).
#[pyfunction]
fn tables() -> Vec<(&'static str, &'static str, Vec<ColumnRow>)> {
    let column = |c: &ColumnSchema| (c.name, c.kind, c.unit, c.meaning, c.codes.to_vec());
    TABLES
        .iter()
        .map(|table| (table.name, table.meaning, table.columns.iter().map(column).collect()))
        .collect()
}

type ColumnRow = (&'static str, &'static str, &'static str, &'static str, Vec<&'static str>);

#[pyfunction]
fn read(py: Python<'_>, file: &str) -> PyResult<String> {
    let path = file.to_string();
    waited(py, move || lfn_scenario::read(&path))?.map_err(scenario_error)
}

#[pyfunction]
#[pyo3(signature = (toml_text, file, beside=None))]
fn document(
    toml_text: &str,
    file: &str,
    beside: Option<&str>,
) -> PyResult<(String, BTreeMap<String, usize>)> {
    let said = outside::document(toml_text, file, beside)?;
    Ok((said.json, said.lines))
}

#[pyfunction]
fn table_memory_bytes(file: PathBuf) -> PyResult<u64> {
    table_file::memory_bytes(&file).map_err(|error| errors::UsageError::new_err(error.to_string()))
}

#[pyfunction]
fn memory_limit_bytes() -> u64 {
    memory::limit_bytes()
}

#[pyfunction]
fn limit_memory(size: Option<&str>) -> PyResult<()> {
    let parse = |text: &str| {
        let wrong = |found: String| errors::UsageError::new_err(format!("--memory: {found}"));
        let bytes: Bytes = text.parse().map_err(|error: UnitError| wrong(error.to_string()))?;
        if bytes.0 == 0 {
            return Err(wrong(format!("\"{text}\" is no memory; allowed: at least 1B")));
        }
        Ok(bytes.0)
    };
    memory::allow(size.map(parse).transpose()?);
    Ok(())
}

#[pyfunction]
#[pyo3(signature = (scenarios, threads, progress, *, sampled=true))]
fn run_many(
    py: Python<'_>,
    scenarios: Vec<Py<Scenario>>,
    threads: usize,
    progress: Option<Py<PyAny>>,
    sampled: bool,
) -> PyResult<Vec<Option<Run>>> {
    let jobs: Vec<&Scenario> = scenarios.iter().map(Py::get).collect();
    let limit_bytes = memory::limit_bytes();
    for job in &jobs {
        job.check_memory(limit_bytes)?;
        job.check_laws()?;
    }
    let threads = batch::threads_in_memory(&jobs, threads, limit_bytes);
    let tell = |index: usize, fraction: f64| match &progress {
        Some(progress) => progress.call1(py, (index, fraction))?.extract(py),
        None => Ok(true),
    };
    batch::run(py, &jobs, threads, sampled, tell)?
        .into_iter()
        .map(|done| match done {
            None => Ok(None),
            Some(Ok(finished)) => Ok(Some(Run::new(finished))),
            Some(Err(failure)) => Err(failure.raise(py)),
        })
        .collect()
}

#[pyfunction]
fn drive(py: Python<'_>, law: &str, statements: Vec<String>, fields: Vec<String>) -> PyResult<Vec<Vec<f64>>> {
    let wrong = |message: String| errors::LawError::new_err(message);
    let law = match named::find(law, Path::new("")) {
        Some(found) => found.map_err(wrong)?,
        None => law.parse().map_err(|error: lfn_law::LawError| wrong(error.to_string()))?,
    };
    vectors::drive(law, &statements, &fields).map_err(|failure| failure.raise(py))
}

#[pyfunction]
fn laws(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    registry().iter().map(|law| describe(py, law)).collect()
}

fn describe<'py>(py: Python<'py>, law: &LawInfo) -> PyResult<Bound<'py, PyDict>> {
    let entry = PyDict::new(py);
    for (key, value) in [
        ("name", law.name),
        ("title", law.title),
        ("slow_start", law.slow_start.name()),
        ("family", law.family),
        ("source", law.source),
        ("color", law.look().0),
        ("marker", law.look().1),
    ] {
        entry.set_item(key, value)?;
    }
    entry.set_item("variants", law.variant_names().collect::<Vec<_>>())?;
    entry.set_item("targets", law.targets)?;
    entry.set_item("signals", law.signals)?;
    entry.set_item("probes", law.probes.iter().map(|probe| probe.name.as_ref()).collect::<Vec<_>>())?;
    Ok(entry)
}

#[pyfunction]
fn card(name: &str) -> PyResult<&'static str> {
    match LawInfo::named(name) {
        Ok((law, _)) => Ok(law.card),
        Err(error) => Err(errors::LawError::new_err(error.to_string())),
    }
}

/// Lets the allocator of glibc give back memory that runs free; by default it keeps up to 64 MB for each thread.
fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: both calls set a number of the allocator.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 256 << 10);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 1 << 20);
    }
}

#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::{
        capture::read_capture,
        card,
        controller::{
            describe_controller, ControllerState, PyControllerAck, PyControllerConfig, PyControllerPacket,
        },
        document, drive,
        environment::Environments,
        laws, limit_memory, memory_limit_bytes,
        prototype::{LawState, PyAck, PyLoss},
        read, run_many,
        scenario::Scenario,
        table_memory_bytes, tables,
        theory::{fluid, period_s, sawteeth},
        Run,
    };
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::{
        emulator::{plan_testbed, run_shell, TestbedEnd},
        transfer::{udt_receive, udt_send, UdtPlan},
    };
    use pyo3::prelude::*;

    use crate::errors;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        crate::give_back();
        crate::batch::record_panics();
        module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
        module.add("PROTOTYPE_STAMP", lfn_law::STAMP)?;
        module.add("LabError", py.get_type::<errors::LabError>())?;
        module.add("LawError", py.get_type::<errors::LawError>())?;
        module.add("PrototypeError", py.get_type::<errors::PrototypeError>())?;
        module.add("ScenarioError", py.get_type::<errors::ScenarioError>())?;
        module.add("Unavailable", py.get_type::<errors::Unavailable>())
    }
}
