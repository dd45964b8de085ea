//! The streams of a flow.

use std::ops::Range;

/// Places of a flow's streams among the flows of their transport.
#[derive(Clone)]
pub(crate) enum Streams {
    Tcp(Range<usize>),
    Udt(Range<usize>),
    Stack(Range<usize>),
}
