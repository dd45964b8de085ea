//! Numbers of things of one kind, which cannot stand for those of another.

/// A link, by its place among the links of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkId(u16);

/// A route, by its place among the routes of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RouteId(u16);

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
    pub fn new(number: u16) -> LinkId {
        LinkId(number)
    }

    /// As tables have it.
    pub fn number(self) -> u16 {
        self.0
    }

    #[inline(always)]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl RouteId {
    pub fn new(number: u16) -> RouteId {
        RouteId(number)
    }

    #[inline(always)]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
