//! The streams of a flow.

use std::ops::Range;

/// Places of flows among those of their transport.
#[derive(Clone)]
pub(crate) enum Streams {
    Tcp(Range<usize>),
    Udt(Range<usize>),
}
