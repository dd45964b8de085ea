//! Exceptions of the package.

pyo3::import_exception!(lfnlab.errors, LabError);
pyo3::import_exception!(lfnlab.errors, LawError);
pyo3::import_exception!(lfnlab.errors, OverMemory);
pyo3::import_exception!(lfnlab.errors, PrototypeError);
pyo3::import_exception!(lfnlab.errors, ScenarioError);
pyo3::import_exception!(lfnlab.errors, StoreError);
pyo3::import_exception!(lfnlab.errors, Unavailable);
pyo3::import_exception!(lfnlab.errors, UsageError);
