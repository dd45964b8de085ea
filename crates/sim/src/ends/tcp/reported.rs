//! Flows over TCP that are reported one by one: what is kept of each for its summary.

use std::ops::RangeInclusive;

use lfn_tcp::SenderStats;
use lfn_units::Time;

use super::TcpFlows;
use crate::clock::ids::FlowId;
use crate::config::FlowConfig;
use crate::summary::Frames;

/// A flow that is reported.
pub(crate) struct Reported {
    pub config: FlowConfig,
    /// Among all connections that are reported.
    pub number: u32,
    /// Number of the transfer that it is a stream of.
    pub transfer: u32,
    pub started: bool,
    /// Segments that a slow application has written.
    pub written: u64,
    /// Of those, the ones that its receiver has in order, where they have a deadline.
    pub in_order: u64,
    pub frames: Frames,
    /// Deadlines that count.
    pub counted: RangeInclusive<Time>,
    pub at_warmup: AtWarmup,
    /// The window when the flow ended: its integral, the least and the largest.
    pub at_end: Option<SenderStats>,
    /// When a circuit breaker ended it.
    pub tripped: Option<Time>,
}

/// A flow at the end of the warm-up, in segments.
#[derive(Clone, Copy, Default)]
pub(crate) struct AtWarmup {
    /// Those that have been delivered.
    pub delivered: u64,
    /// Those that are acknowledged.
    pub acknowledged: u64,
    /// Those that are sent and not acknowledged.
    pub outstanding: u64,
}

impl TcpFlows {
    /// A flow that is reported ends, unless it has before.
    pub(super) fn end(&mut self, now: Time, id: FlowId) {
        let flow = &mut self.flows[id.index()];
        if !flow.is_finished() {
            flow.finish(now);
            self.reported[id.index()].at_end = Some(*flow.sender.stats(now));
        }
    }

    /// Statistics begin.
    pub fn restart(&mut self, now: Time) {
        for (flow, reported) in self.flows.iter_mut().zip(&mut self.reported) {
            let acknowledged = flow.sender.una();
            reported.at_warmup = AtWarmup {
                delivered: flow.delivered(),
                acknowledged,
                outstanding: flow.sender.nxt() - acknowledged,
            };
            if flow.started <= now {
                flow.sender.restart_window_stats(now);
            }
        }
    }
}
