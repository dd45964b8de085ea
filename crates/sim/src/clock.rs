//! Clock, pending events, and packets under way.

mod calendar;
pub(crate) mod events;
pub(crate) mod ids;
pub(crate) mod packet;
pub(crate) mod scheduler;
