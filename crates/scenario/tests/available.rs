//! How much memory control groups leave: the tests stand beside the code in `crates/python`, which no test can
//! link without an interpreter.

#[allow(dead_code, reason = "the tests of this file alone are wanted here")]
#[path = "../../python/src/memory.rs"]
mod memory;
