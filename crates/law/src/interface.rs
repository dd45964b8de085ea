//! The interface of a law, as laws/law.h has it, with its names: made from that header by build.rs.

#![allow(non_snake_case, reason = "the suffixes B and Bps of law.h")]

use crate::Window;

include!(concat!(env!("OUT_DIR"), "/interface.rs"));
