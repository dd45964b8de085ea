//! Exports to WebAssembly. A caller writes a text into [`lfn_text`], calls, and reads the answer, a text too, from
//! [`lfn_answer`]. A function that returns 1 has answered with an error. There is one run at a time.

use std::cell::{Cell, RefCell};

use crate::{canonical, laws, Run};

thread_local! {
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
    static RUN: Cell<Option<Run>> = const { Cell::new(None) };
}

/// Keeps the answer, and tells whether it is an error.
fn answer(result: Result<String, String>) -> u32 {
    let is_error = result.is_err();
    ANSWER.set(result.unwrap_or_else(|error| error));
    u32::from(is_error)
}

/// The text that the caller wrote.
fn text() -> Result<String, String> {
    String::from_utf8(TEXT.take()).map_err(|error| error.to_string())
}

/// A panic ends an instance of WebAssembly. Its message is the last answer.
fn keep_panics() {
    std::panic::set_hook(Box::new(|info| {
        ANSWER.set(format!("a defect in the simulator: {info}"));
    }));
}

/// Memory for a text of this many bytes, which the next call reads.
#[no_mangle]
pub extern "C" fn lfn_text(bytes: usize) -> *mut u8 {
    TEXT.with_borrow_mut(|text| {
        *text = vec![0; bytes];
        text.as_mut_ptr()
    })
}

/// Where the last answer is.
#[no_mangle]
pub extern "C" fn lfn_answer() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

/// How many bytes the last answer has.
#[no_mangle]
pub extern "C" fn lfn_answer_bytes() -> usize {
    ANSWER.with_borrow(String::len)
}

/// Begins a run of the scenario that the text holds.
#[no_mangle]
pub extern "C" fn lfn_begin() -> u32 {
    keep_panics();
    answer(text().and_then(|text| Run::new(&text)).map(|run| {
        RUN.set(Some(run));
        String::new()
    }))
}

/// [`Run::advance`]; 1 without a run.
#[no_mangle]
pub extern "C" fn lfn_advance(part: f64) -> f64 {
    let Some(mut run) = RUN.take() else { return 1.0 };
    let done = run.advance(part);
    RUN.set(Some(run));
    done
}

/// Ends the run; the answer is its result.
#[no_mangle]
pub extern "C" fn lfn_finish() -> u32 {
    answer(RUN.take().ok_or_else(|| "no run has begun".to_string()).and_then(Run::finish))
}

/// Answers the scenario that the text holds with every key and its value, in TOML.
#[no_mangle]
pub extern "C" fn lfn_canonical() -> u32 {
    keep_panics();
    answer(text().and_then(|text| canonical(&text)))
}

/// Answers all laws of TCP.
#[no_mangle]
pub extern "C" fn lfn_laws() -> u32 {
    answer(Ok(laws()))
}
