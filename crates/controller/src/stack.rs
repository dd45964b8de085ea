//! Whole stacks in shared objects: the table of functions of `stack.h`.

use std::ffi::{c_int, c_void, CStr};
use std::sync::Arc;

use lfn_header::Ecn;
use lfn_law::{Build, Datagram, Progress, Prototype, SlowStartKind, Stack, StackSetup};
use libloading::Library;

use crate::interface::{StackDatagram, StackTable, STACK_VERSION};
use crate::{check_name, fail};

/// The functions of a table, none of which is missing. They live as long as the library does.
struct Functions {
    name: String,
    create: unsafe extern "C" fn(*const StackSetup) -> *mut c_void,
    destroy: unsafe extern "C" fn(*mut c_void),
    transmit: unsafe extern "C" fn(*mut c_void, u32, u64, *mut StackDatagram) -> c_int,
    receive: unsafe extern "C" fn(*mut c_void, u32, u64, u64, u32),
    timeout: unsafe extern "C" fn(*mut c_void, u32) -> u64,
    timer: unsafe extern "C" fn(*mut c_void, u32, u64),
    stop: unsafe extern "C" fn(*mut c_void, u64),
    forget: unsafe extern "C" fn(*mut c_void, u64),
    progress: unsafe extern "C" fn(*mut c_void, *mut Progress),
    _library: Option<Library>,
}

/// The whole stack of a table of `stack.h`.
///
/// # Safety
///
/// `table` is NULL or points to such a table, which is constant and lives as long as the library, or the process.
pub(crate) unsafe fn of_table(
    table: *const StackTable,
    source: String,
    library: Option<Library>,
) -> Result<Prototype, String> {
    // SAFETY: the caller says so.
    let table = unsafe { table.as_ref() }.ok_or("lfn_stack() is NULL")?;
    if table.version != STACK_VERSION {
        return Err(format!("version {}", table.version));
    }
    if table.name.is_null() {
        return Err("it has no name".into());
    }
    // SAFETY: stack.h says that names end with a NUL.
    let name = unsafe { CStr::from_ptr(table.name) }.to_str().map_err(|_| "its name is not UTF-8")?;
    check_name(name)?;
    let missing = || "a function is NULL".to_string();
    let functions = Arc::new(Functions {
        name: name.into(),
        create: table.create.ok_or_else(missing)?,
        destroy: table.destroy.ok_or_else(missing)?,
        transmit: table.transmit.ok_or_else(missing)?,
        receive: table.receive.ok_or_else(missing)?,
        timeout: table.timeout.ok_or_else(missing)?,
        timer: table.timer.ok_or_else(missing)?,
        stop: table.stop.ok_or_else(missing)?,
        forget: table.forget.ok_or_else(missing)?,
        progress: table.progress.ok_or_else(missing)?,
        _library: library,
    });
    let name = functions.name.clone();
    let build = move |setup: &StackSetup| -> Box<dyn Stack> {
        // SAFETY: the argument lives through the call and has the layout of stack.h, which a test compares; so for every
        // call below.
        let state = unsafe { (functions.create)(setup) };
        if state.is_null() {
            let wrong = format!("packets of {} bytes; the stack cannot have them", setup.packet_bytes);
            fail(&functions.name, "create", setup.now_ns, &wrong);
        }
        Box::new(Shared { functions: Arc::clone(&functions), state, packet_bytes: setup.packet_bytes })
    };
    let (slow_start, build) = (SlowStartKind::None, Some(Build::Stack(Box::new(build))));
    Ok(Prototype { name, source, slow_start, probes: Vec::new(), build, is_stack: true })
}

/// Both ends of a connection.
struct Shared {
    functions: Arc<Functions>,
    state: *mut c_void,
    packet_bytes: u64,
}

// SAFETY: stack.h says that calls come from any thread.
unsafe impl Send for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: `state` came from `create`, and is not used again.
        unsafe { (self.functions.destroy)(self.state) }
    }
}

impl Stack for Shared {
    fn transmit(&mut self, end: usize, now_ns: u64) -> Option<Datagram> {
        let mut told = StackDatagram { id: 0, bytes: 0, ecn: 0 };
        // SAFETY: see `of_table`.
        if unsafe { (self.functions.transmit)(self.state, end as u32, now_ns, &mut told) } == 0 {
            return None;
        }
        let StackDatagram { id, bytes, ecn } = told;
        if !(1..=self.packet_bytes).contains(&bytes.into()) || ecn > 3 {
            let wrong = format!(
                "a datagram of {bytes} bytes, ECN {ecn}; allowed: 1 to {} bytes, ECN 0 to 3",
                self.packet_bytes
            );
            fail(&self.functions.name, "transmit", now_ns, &wrong);
        }
        Some(Datagram { id, bytes, ecn: Ecn::from_bits(ecn as u8) })
    }

    fn receive(&mut self, end: usize, now_ns: u64, id: u64, ecn: Ecn) {
        // SAFETY: see `of_table`.
        unsafe { (self.functions.receive)(self.state, end as u32, now_ns, id, ecn as u32) }
    }

    fn timeout_ns(&mut self, end: usize) -> u64 {
        // SAFETY: see `of_table`.
        unsafe { (self.functions.timeout)(self.state, end as u32) }
    }

    fn timer(&mut self, end: usize, now_ns: u64) {
        // SAFETY: see `of_table`.
        unsafe { (self.functions.timer)(self.state, end as u32, now_ns) }
    }

    fn stop(&mut self, now_ns: u64) {
        // SAFETY: see `of_table`.
        unsafe { (self.functions.stop)(self.state, now_ns) }
    }

    fn forget(&mut self, id: u64) {
        // SAFETY: see `of_table`.
        unsafe { (self.functions.forget)(self.state, id) }
    }

    fn progress(&self) -> Progress {
        let mut progress = Progress::default();
        // SAFETY: see `of_table`.
        unsafe { (self.functions.progress)(self.state, &mut progress) }
        progress
    }
}
