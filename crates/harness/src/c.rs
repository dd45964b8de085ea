//! The scenarios for a controller in C, linked with the static library: `lfn_harness.h`.

use std::ffi::{c_char, c_int, c_void, CStr};

use crate::Harness;

/// Runs all scenarios with a `struct lfn_controller`, prints their text, and returns how many failed; -1 if they cannot be
/// run.
///
/// # Safety
///
/// `controller` is NULL or points to such a table, and `folder` is NULL or a text that ends with a NUL.
#[no_mangle]
pub unsafe extern "C" fn lfn_harness_run(controller: *const c_void, folder: *const c_char) -> c_int {
    // SAFETY: the caller says so.
    let linked = unsafe { Harness::linked(controller) }.map_err(|error| error.to_string());
    let run = linked.and_then(|mut harness| {
        if !folder.is_null() {
            // SAFETY: the caller says so.
            let folder = unsafe { CStr::from_ptr(folder) };
            harness = harness.folder(folder.to_str().map_err(|error| format!("folder: {error}"))?);
        }
        harness.run().map_err(|error| error.to_string())
    });
    match run {
        Ok(report) => {
            print!("{report}");
            report.failed() as c_int
        }
        Err(why) => {
            eprintln!("{why}");
            -1
        }
    }
}
