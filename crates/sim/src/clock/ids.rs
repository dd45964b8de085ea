//! Numbers of things of one kind, which cannot stand for those of another.

/// A link, by its place in [`Config::links`](crate::config::Config::links).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub u16);

/// A route, by its place in [`Config::routes`](crate::config::Config::routes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouteId(pub u16);

/// A flow over TCP, a flow over UDT or a UDP source, by its place among its like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowId(u32);

impl FlowId {
    #[inline(always)]
    pub fn new(index: usize) -> FlowId {
        FlowId(index as u32)
    }

    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// Its place in the list.
    #[inline(always)]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl RouteId {
    /// Its place in the list.
    #[inline(always)]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
