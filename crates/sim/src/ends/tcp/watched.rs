//! Flows over TCP as circuit breakers see them.

use std::ops::Range;

use lfn_units::Time;

use super::TcpFlows;
use crate::clock::ids::FlowId;

impl TcpFlows {
    /// A circuit breaker ends a flow: unless it has ended, it sends nothing more, also not again.
    pub fn on_tripped(&mut self, now: Time, id: FlowId) {
        let flow = &mut self.flows[id.index()];
        if !flow.is_finished() {
            flow.sender.abort();
            self.end(now, id);
            self.reported[id.index()].tripped = Some(now);
        }
    }

    /// Whether all these flows have ended.
    pub fn have_ended(&self, streams: Range<usize>) -> bool {
        self.flows[streams].iter().all(|flow| flow.is_finished())
    }

    /// When a flow that is reported begins.
    pub fn start(&self, id: FlowId) -> Time {
        self.reported[id.index()].config.start
    }

    /// Data packets that reached the receivers of these flows.
    pub fn arrived(&self, streams: Range<usize>) -> u64 {
        self.flows[streams].iter().map(|flow| flow.receiver.received()).sum()
    }
}
