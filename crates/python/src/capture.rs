//! Packet captures of other tools.

use std::fs::File;
use std::path::PathBuf;

use lfn_capture::{At, Capture, Error, Row};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::arrays::numbers;
use crate::errors;

type Value = fn(&Row) -> Option<f64>;

fn ns(value: Option<u64>) -> Option<f64> {
    value.map(|ns| ns as f64 * 1e-9)
}

fn bytes(value: Option<u64>) -> Option<f64> {
    value.map(|bytes| bytes as f64)
}

const COLUMNS: [(&str, Value); 19] = [
    ("t_s", |row| ns(Some(row.t_ns))),
    ("delivered_bytes", |row| bytes(row.delivered)),
    ("arrived_bytes", |row| bytes(row.arrived)),
    ("inflight_bytes", |row| bytes(row.flight)),
    ("echo_inflight_bytes", |row| bytes(row.echo_flight)),
    ("offered_window_bytes", |row| bytes(row.window)),
    ("retransmits", |row| bytes(Some(row.retransmits))),
    ("reordered", |row| bytes(Some(row.reordered))),
    ("acks", |row| bytes(Some(row.acks))),
    ("ack_came_s", |row| ns(row.ack_stamp.map(|(t_ns, _)| t_ns))),
    ("ack_stamp", |row| row.ack_stamp.map(|(_, value)| f64::from(value))),
    ("data_came_s", |row| ns(row.data_stamp.map(|(t_ns, _)| t_ns))),
    ("data_stamp", |row| row.data_stamp.map(|(_, value)| f64::from(value))),
    ("ahead_s", |row| ns(row.ahead.last)),
    ("ahead_smoothed_s", |row| ns(row.ahead.smoothed)),
    ("ahead_least_s", |row| ns(row.ahead.least)),
    ("behind_s", |row| ns(row.behind.last)),
    ("behind_smoothed_s", |row| ns(row.behind.smoothed)),
    ("behind_least_s", |row| ns(row.behind.least)),
];

/// The TCP flows of a capture: what is known of it and of each flow as JSON, and the samples of each flow as columns.
#[pyfunction]
pub fn read_capture<'py>(
    py: Python<'py>,
    file: PathBuf,
    step_s: f64,
) -> PyResult<(String, Vec<Bound<'py, PyDict>>)> {
    let named = file.display().to_string();
    let unreadable =
        |why: &dyn std::fmt::Display| errors::StoreError::new_err(format!("cannot read {named}: {why}"));
    let is_regular = file.metadata().map_err(|error| unreadable(&error))?.is_file();
    if !is_regular {
        return Err(unreadable(&"it is no regular file"));
    }
    let opened = File::open(&file).map_err(|error| unreadable(&error))?;
    let mut signal = None;
    let step_ns = (step_s * 1e9).round() as u64;
    let look = |_| match Python::attach(|py| py.check_signals()) {
        Ok(()) => true,
        Err(error) => {
            signal = Some(error);
            false
        }
    };
    let found = py.detach(|| lfn_capture::read(opened, step_ns, look)).map_err(|error| match error {
        Error::Stopped => signal.expect("a signal ends it"),
        Error::Unreadable => unreadable(&error),
        other => errors::UsageError::new_err(format!("{named}: {other}")),
    })?;
    let flows = found.flows.iter().map(|flow| columns(py, &flow.rows)).collect::<PyResult<_>>()?;
    Ok((about(&found), flows))
}

fn columns<'py>(py: Python<'py>, rows: &[Row]) -> PyResult<Bound<'py, PyDict>> {
    let table = PyDict::new(py);
    for (name, value) in COLUMNS {
        let values: Vec<f64> = rows.iter().map(|row| value(row).unwrap_or(f64::NAN)).collect();
        table.set_item(name, numbers(py, "f8", &values, f64::to_ne_bytes)?)?;
    }
    Ok(table)
}

fn about(found: &Capture) -> String {
    let place = |at: Option<At>| {
        at.map(|at| match at {
            At::Sender => "sender",
            At::Receiver => "receiver",
            At::Between => "between",
        })
    };
    let flows: Vec<_> = found
        .flows
        .iter()
        .map(|flow| {
            json!({
                "sender": flow.sender, "receiver": flow.receiver, "is_forward": flow.is_forward,
                "at": place(flow.at), "has_handshake": flow.has_handshake, "has_scale": flow.has_scale,
                "segment_bytes": flow.segment, "payload_bytes": flow.payload, "unseen_bytes": flow.unseen,
                "copies": flow.copies, "first_s": ns(Some(flow.first_ns)), "last_s": ns(Some(flow.last_ns)),
            })
        })
        .collect();
    json!({
        "flows": flows, "packets": found.packets, "others": found.others, "short": found.short,
        "untimed": found.untimed, "backwards": found.backwards, "given_up": found.given_up,
        "dropped": found.dropped, "bytes": found.bytes, "stopped": found.stopped,
        "step_s": ns(Some(found.step_ns)),
    })
    .to_string()
}
