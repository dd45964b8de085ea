//! The path's MTU: what the kernel learns of it, and paths that lose large packets without a word.

use lfn_udt::Reason;
use lfn_units::Time;

use super::Stream;

/// Interval between two looks at the path's MTU, which the kernel also forgets.
const LOOK_EVERY: Time = Time::from_s(1);
/// Time without an acknowledgement before the peer's packets count; with them, until the path counts as a black hole
/// for large packets, and until the connection ends.
const STALL: Time = Time::from_s(1);
const HOLE: Time = Time::from_s(3);
const LOST: Time = Time::from_s(40);

/// A stream's knowledge of its path.
#[derive(Default)]
pub(super) struct PathWatch {
    next_look: Time,
    /// Packets acknowledged, and when that was last more, or nothing was to be acknowledged.
    acknowledged: u64,
    advanced: Time,
    /// Since when the peer is heard, although it acknowledges nothing.
    heard: Option<Time>,
    is_hole: bool,
}

impl Stream {
    /// New packets are no larger than the path's MTU.
    pub(super) fn look_at_path(&mut self, now: Time) {
        let unanswered = self.unanswered(now);
        if unanswered >= LOST {
            self.gone = Some(Reason::Lost);
            self.connection.abort();
        }
        if unanswered >= HOLE && !std::mem::replace(&mut self.path.is_hole, true) {
            self.path.next_look = now;
            self.socket.avoid_large_packets();
        }
        if now < self.path.next_look && !self.socket.is_mtu_stale() {
            return;
        }
        self.path.next_look = now + LOOK_EVERY;
        self.connection.on_path_mtu(self.socket.look_at_path());
        self.outgoing.set_limit(self.connection.path_payload_bytes());
    }

    /// Time for which the peer, which is heard, has got nothing of what is sent.
    fn unanswered(&mut self, now: Time) -> Time {
        let (path, acknowledged) = (&mut self.path, self.connection.acknowledged());
        let idle = self.connection.in_flight() == 0 || self.connection.peer_is_full();
        if acknowledged != path.acknowledged || idle {
            *path = PathWatch { acknowledged, advanced: now, heard: None, ..*path };
        } else if self.heard > path.advanced + STALL {
            path.heard = path.heard.or(Some(now));
        }
        path.heard.map_or(Time::ZERO, |since| now - since)
    }
}
