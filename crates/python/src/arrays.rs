//! Columns as arrays of numpy.

use lfn_sim::tables::Column;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

/// The numbers of a column.
pub fn array<'py>(py: Python<'py>, column: &Column) -> PyResult<Bound<'py, PyAny>> {
    match column {
        Column::F64(values) => numbers(py, "f8", values, f64::to_ne_bytes),
        Column::U64(values) => numbers(py, "u8", values, u64::to_ne_bytes),
        Column::U32(values) => numbers(py, "u4", values, u32::to_ne_bytes),
        Column::U16(values) => numbers(py, "u2", values, u16::to_ne_bytes),
        Column::U8(values) => numbers(py, "u1", values, u8::to_ne_bytes),
    }
}

/// An array of numpy that owns a copy of these numbers, of the type that numpy calls so.
pub fn numbers<'py, T: Copy, const BYTES: usize>(
    py: Python<'py>,
    kind: &str,
    values: &[T],
    bytes: fn(T) -> [u8; BYTES],
) -> PyResult<Bound<'py, PyAny>> {
    let memory = PyByteArray::new_with(py, values.len() * BYTES, |memory| {
        for (place, value) in memory.chunks_exact_mut(BYTES).zip(values) {
            place.copy_from_slice(&bytes(*value));
        }
        Ok(())
    })?;
    py.import("numpy")?.call_method1("frombuffer", (memory, kind))
}
