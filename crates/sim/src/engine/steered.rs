//! A flow over TCP whose window and rate someone sets from outside, between two parts of the run.

use lfn_law::Window;
use lfn_units::Time;

use super::sim::Sim;
use crate::clock::ids::FlowId;
use crate::config::Connection;

/// Estimates and counters of a flow's sender. Counters are of the whole connection; times are 0 before the first sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Newest RTT sample, in ns.
    pub rtt_ns: u64,
    /// Smoothed RTT (RFC 6298), in ns.
    pub srtt_ns: u64,
    /// Smallest RTT sample, in ns.
    pub min_rtt_ns: u64,
    /// Segments delivered, each once.
    pub delivered: u64,
    /// Segments sent, retransmissions included.
    pub sent: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Congestion events: at most one in a window of data.
    pub loss_events: u64,
    /// Segments that arrived with CE, as AccECN told; 0 without AccECN.
    pub marks: u64,
    /// Segments in flight.
    pub in_flight: u64,
    /// Payload of a full segment, in bytes.
    pub mss_bytes: u32,
}

impl Sim {
    /// Sets window (at least a segment) and pacing rate (bytes of payload a second; 0: the ACK clock alone) of a flow
    /// over TCP, which then sends what it may. A law of the flow may change them again.
    ///
    /// Returns whether there is such a flow over TCP.
    pub fn steer(&mut self, number: usize, cwnd: Window, pacing_bytes_per_s: u64) -> bool {
        let Some(id) = self.tcp_flow(number) else { return false };
        self.ends.tcp.steer(&mut self.context, id, cwnd.max(Window::ONE), pacing_bytes_per_s);
        if self.context.scheduler.has_departing() {
            self.send_departing();
        }
        true
    }

    /// Estimates and counters of a flow's sender; `None` if it is not over TCP.
    pub fn seen(&self, number: usize) -> Option<Seen> {
        Some(self.ends.tcp.seen(self.tcp_flow(number)?))
    }

    /// Processes events until a flow has `segments` delivered in sum, and those of the same instant; at the latest
    /// until a time.
    pub fn run_until_delivered(&mut self, number: usize, segments: u64, latest: Time) {
        let latest = latest.min(self.duration());
        let Some(id) = self.tcp_flow(number) else { return self.run_until(latest) };
        // Instant by instant: a second copy of the loop would keep the compiler from inlining into the first.
        while self.ends.tcp.sender(id).delivered() < segments {
            match self.context.scheduler.peek() {
                Some((at, ..)) if at <= latest => self.run_until(at),
                _ => return self.run_until(latest),
            }
        }
    }

    fn tcp_flow(&self, number: usize) -> Option<FlowId> {
        match self.connections.get(number)? {
            Connection::Tcp(index) => Some(FlowId::new(*index)),
            Connection::Udt(_) | Connection::Stack(_) => None,
        }
    }
}
