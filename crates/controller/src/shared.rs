//! Controllers in shared objects: the table of functions of `controller.h`.

use std::ffi::{c_char, c_void, CStr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lfn_law::{Prototype, PROBES};
use libloading::Library;

use crate::interface as c;
use crate::stack;
use crate::{fail, law, Ack, Config, Control, Controller, Event, Packet, VALUES};

/// Why a shared object is no controller.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The loader refuses it.
    #[error("{}: {reason}", path.display())]
    Load {
        /// The shared object.
        path: PathBuf,
        /// The loader's reason.
        reason: String,
    },
    /// It does not have the interface.
    #[error("{}: {wrong}; controller.h, version {}, or stack.h, version {}", path.display(), c::VERSION, c::STACK_VERSION)]
    Interface {
        /// The shared object.
        path: PathBuf,
        /// The part that it lacks.
        wrong: String,
    },
}

type Create = unsafe extern "C" fn(*const c::Config, *mut c::Control) -> *mut c_void;
type Destroy = unsafe extern "C" fn(*mut c_void);
type OnAck = unsafe extern "C" fn(*mut c_void, *const c::Ack, *mut c::Control);

/// A loaded shared object. Its functions live as long as the library does.
struct Loaded {
    functions: &'static c::Table,
    create: Create,
    destroy: Destroy,
    ack: OnAck,
    _library: Option<Library>,
}

// SAFETY: the table of functions is constant, and controller.h asks that connections run at the same time.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

/// Loads a shared object as a law, or a whole stack. `source` is the hash of its content, in hexadecimal digits.
///
/// # Errors
///
/// If the loader refuses the file, or it has neither the interface of `controller.h` nor that of `stack.h`.
pub fn load(path: &Path, source: String) -> Result<Prototype, Error> {
    let failed = |reason: libloading::Error| Error::Load { path: path.into(), reason: reason.to_string() };
    let refused = |wrong: String| Error::Interface { path: path.into(), wrong };
    // SAFETY: the caller asks to run the file's code; it runs in a process of its own where that matters.
    let library = unsafe { Library::new(path) }.map_err(failed)?;
    // SAFETY: the symbol has the type of stack.h, as far as its name says.
    let found = unsafe { library.get::<unsafe extern "C" fn() -> *const c::StackTable>(b"lfn_stack\0") };
    if let Ok(found) = found {
        // SAFETY: stack.h says that the function may be called and returns a constant table.
        return unsafe { stack::of_table(found(), source, Some(library)) }.map_err(refused);
    }
    // SAFETY: the symbol has the type of controller.h, as far as its name says.
    let table = unsafe { library.get::<unsafe extern "C" fn() -> *const c::Table>(b"lfn_controller\0") }
        .map_err(|_| refused("no function lfn_controller or lfn_stack".into()))?;
    // SAFETY: controller.h says that the function may be called and returns a constant table.
    unsafe { of_table(table(), source, Some(library)) }.map_err(refused)
}

/// The law of a linked controller, whose table `table` is: a `struct lfn_controller` of `controller.h`.
///
/// # Errors
///
/// If it does not have the interface of `controller.h`: the part that it lacks.
///
/// # Safety
///
/// `table` is NULL or points to such a table, which is constant and lives as long as the process.
pub unsafe fn linked(table: *const c_void, source: String) -> Result<Prototype, String> {
    // SAFETY: the caller says so.
    unsafe { of_table(table.cast(), source, None) }
}

/// A linked whole stack, whose table `table` is: a `struct lfn_stack` of `stack.h`.
///
/// # Errors
///
/// If it does not have the interface of `stack.h`: the part that it lacks.
///
/// # Safety
///
/// As of [`linked`].
pub unsafe fn linked_stack(table: *const c_void, source: String) -> Result<Prototype, String> {
    // SAFETY: the caller says so.
    unsafe { stack::of_table(table.cast(), source, None) }
}

unsafe fn of_table(
    table: *const c::Table,
    source: String,
    library: Option<Library>,
) -> Result<Prototype, String> {
    // SAFETY: the caller says so.
    let functions = unsafe { table.as_ref::<'static>() }.ok_or("lfn_controller() is NULL")?;
    if functions.version != c::VERSION {
        return Err(format!("version {}", functions.version));
    }
    // SAFETY: controller.h says that names end with a NUL.
    let text = |text: *const c_char| unsafe { CStr::from_ptr(text) }.to_str().map(String::from);
    let count = functions.value_count as usize;
    if functions.name.is_null() {
        return Err("it has no name".into());
    }
    if count > PROBES || count > 0 && (functions.values.is_null() || functions.probe.is_none()) {
        return Err(format!("value_count {count}; allowed: at most {PROBES}, with values and probe"));
    }
    let name = text(functions.name).map_err(|_| "its name is not UTF-8")?;
    let mut values = Vec::new();
    for place in 0..count {
        // SAFETY: `values` has value_count entries.
        let one = unsafe { *functions.values.add(place) };
        let one = (!one.is_null()).then(|| text(one)).and_then(Result::ok);
        values.push(one.ok_or_else(|| format!("values[{place}] is no text"))?);
    }
    let (Some(create), Some(destroy), Some(ack)) = (functions.create, functions.destroy, functions.ack)
    else {
        return Err("create, destroy or ack is NULL".into());
    };
    let loaded = Arc::new(Loaded { functions, create, destroy, ack, _library: library });
    let own_name = name.clone();
    let build = move |config: &Config, control: &mut Control| {
        // SAFETY: the arguments live through the call and have the layout of controller.h, which a test compares; so
        // for every call below.
        let state = unsafe { (loaded.create)(config, control) };
        if state.is_null() {
            fail(&own_name, "create", config.now_ns, "returned NULL");
        }
        Shared { loaded: Arc::clone(&loaded), state }
    };
    law(name, source, values, build)
}

/// A connection's controller.
struct Shared {
    loaded: Arc<Loaded>,
    state: *mut c_void,
}

// SAFETY: controller.h says that calls come from any thread.
unsafe impl Send for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: `state` came from `create`, and is not used again.
        unsafe { (self.loaded.destroy)(self.state) }
    }
}

impl Controller for Shared {
    fn sent(&mut self, now_ns: u64, packet: &Packet, in_flight_bytes: u64, control: &mut Control) {
        if let Some(call) = self.loaded.functions.sent {
            // SAFETY: see `load`.
            unsafe { call(self.state, now_ns, packet, in_flight_bytes, control) }
        }
    }

    fn acked(&mut self, now_ns: u64, packet: &Packet, control: &mut Control) {
        if let Some(call) = self.loaded.functions.acked {
            // SAFETY: see `load`.
            unsafe { call(self.state, now_ns, packet, control) }
        }
    }

    fn lost(&mut self, now_ns: u64, packet: &Packet, control: &mut Control) {
        if let Some(call) = self.loaded.functions.lost {
            // SAFETY: see `load`.
            unsafe { call(self.state, now_ns, packet, control) }
        }
    }

    fn ack(&mut self, ack: &Ack, control: &mut Control) {
        // SAFETY: see `load`.
        unsafe { (self.loaded.ack)(self.state, ack, control) }
    }

    fn event(&mut self, now_ns: u64, event: Event, in_flight_bytes: u64, control: &mut Control) {
        if let Some(call) = self.loaded.functions.event {
            // SAFETY: see `load`.
            unsafe { call(self.state, now_ns, event as u32, in_flight_bytes, control) }
        }
    }

    fn tick(&mut self, now_ns: u64, control: &mut Control) {
        if let Some(call) = self.loaded.functions.tick {
            // SAFETY: see `load`.
            unsafe { call(self.state, now_ns, control) }
        }
    }

    fn watches_packets(&self) -> bool {
        let c::Table { sent, acked, lost, .. } = self.loaded.functions;
        sent.is_some() || acked.is_some() || lost.is_some()
    }

    fn values(&self, out: &mut [f64; VALUES]) {
        if let Some(call) = self.loaded.functions.probe {
            // SAFETY: see `load`; `out` holds LFN_CONTROLLER_VALUES numbers.
            unsafe { call(self.state, out.as_mut_ptr()) }
        }
    }
}
