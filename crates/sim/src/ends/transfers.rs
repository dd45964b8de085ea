//! Flows as the report counts them: the streams of one transfer are one flow.

use lfn_units::Time;

use super::streams::Streams;
use crate::config::{Config, Connection};
use crate::ends::Ends;

/// Sums over bins of one second, for the coefficient of variation.
#[derive(Clone, Copy, Default)]
struct Bins {
    last: u64,
    count: u64,
    sum: f64,
    squares: f64,
}

impl Bins {
    fn add(&mut self, total: u64) {
        let bin = (total - self.last) as f64;
        self.last = total;
        self.count += 1;
        self.sum += bin;
        self.squares += bin * bin;
    }

    /// Population standard deviation over mean.
    fn cov(&self) -> Option<f64> {
        let n = self.count as f64;
        let mean = self.sum / n;
        (self.count >= 2 && mean > 0.0).then(|| (self.squares / n - mean * mean).max(0.0).sqrt() / mean)
    }
}

/// A flow of the report: the places of its streams, over one transport.
pub(crate) struct Transfer {
    pub streams: Streams,
    bins: Bins,
}

impl Transfer {
    fn delivered(&self, ends: &Ends) -> u64 {
        match &self.streams {
            Streams::Tcp(streams) => ends.tcp.delivered(streams.clone()),
            Streams::Udt(streams) => ends.udt.delivered(streams.clone()),
            Streams::Stack(streams) => ends.stacks.delivered(streams.clone()),
        }
    }

    /// Statistics begin.
    pub fn restart(&mut self, ends: &Ends) {
        self.bins.last = self.delivered(ends);
    }

    /// One second is over. It counts if the transfer was under way in all of it.
    pub fn on_second(&mut self, ends: &Ends, now: Time) {
        let began = now.since(Time::from_s(1));
        let under_way = match &self.streams {
            Streams::Tcp(streams) => ends.tcp.are_under_way(streams.clone(), began),
            Streams::Udt(streams) => ends.udt.are_under_way(streams.clone(), began),
            Streams::Stack(streams) => ends.stacks.are_under_way(streams.clone(), began),
        };
        let total = self.delivered(ends);
        if under_way {
            self.bins.add(total);
        }
        self.bins.last = total;
    }

    /// Coefficient of variation of what was delivered in each second.
    pub fn cov(&self) -> Option<f64> {
        self.bins.cov()
    }
}

/// The transfers, by number. The first stream of each has number 0 in it.
pub(crate) fn transfers(config: &Config, connections: &[Connection]) -> Vec<Transfer> {
    let mut transfers: Vec<Transfer> = Vec::new();
    for &connection in connections {
        let (stream, streams) = match connection {
            Connection::Tcp(at) => (config.flows[at].stream, Streams::Tcp(at..at + 1)),
            Connection::Udt(at) => (config.udt[at].stream, Streams::Udt(at..at + 1)),
            Connection::Stack(at) => (config.stacks[at].stream, Streams::Stack(at..at + 1)),
        };
        match transfers.last_mut().filter(|_| stream > 0) {
            Some(Transfer { streams, .. }) => match streams {
                Streams::Tcp(range) | Streams::Udt(range) | Streams::Stack(range) => range.end += 1,
            },
            None => transfers.push(Transfer { streams, bins: Bins::default() }),
        }
    }
    transfers
}
