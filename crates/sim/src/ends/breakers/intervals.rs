//! Intervals of circuit breakers: packets and losses in each, and the end of a flow beyond its breaker's bound.

use lfn_units::Time;

use super::{Breakers, Of};
use crate::breaker::Tally;
use crate::clock::events::Kind;
use crate::clock::ids::FlowId;
use crate::ends::context::Context;
use crate::ends::streams::Streams;
use crate::ends::Ends;

impl Breakers {
    /// Schedules the end of each breaker's first interval.
    pub fn begin(&self, cx: &mut Context, ends: &Ends) {
        for (number, watch) in self.watches.iter().enumerate() {
            let start = match &watch.of {
                Of::Flow(streams) => ends.start(streams),
                Of::Udp(source) => ends.udp.next_at(*source),
            };
            schedule(cx, start.after(watch.count.interval()), number);
        }
    }

    fn tally(&self, ends: &Ends, of: &Of) -> Tally {
        match of {
            Of::Flow(Streams::Tcp(streams)) => Tally {
                arrived: ends.tcp.arrived(streams.clone()),
                gone: self.tcp_gone[streams.clone()].iter().sum(),
            },
            Of::Flow(Streams::Udt(streams)) => Tally {
                arrived: ends.udt.arrived(streams.clone()),
                gone: self.udt_gone[streams.clone()].iter().sum(),
            },
            Of::Flow(Streams::Stack(streams)) => ends.stacks.tally(streams.clone()),
            Of::Udp(source) => ends.udp.tally(*source),
        }
    }
}

fn schedule(cx: &mut Context, at: Time, number: usize) {
    if at < cx.duration {
        cx.scheduler.schedule(at, Kind::Breaker, number);
    }
}

impl Ends {
    /// An interval of a breaker is over.
    pub fn on_breaker(&mut self, cx: &mut Context, number: usize) {
        let of = self.breakers.watches[number].of.clone();
        if self.has_ended(&of) {
            return;
        }
        let tally = self.breakers.tally(self, &of);
        let count = &mut self.breakers.watches[number].count;
        if !count.on_interval(tally) {
            let next = cx.scheduler.now.after(count.interval());
            return schedule(cx, next, number);
        }
        match of {
            Of::Flow(Streams::Tcp(streams)) => {
                streams.for_each(|at| self.tcp.on_tripped(cx.scheduler.now, FlowId::new(at)));
            }
            Of::Flow(Streams::Udt(streams)) => {
                streams.for_each(|at| self.udt.on_tripped(&mut cx.scheduler, FlowId::new(at)));
            }
            Of::Flow(Streams::Stack(streams)) => {
                streams.for_each(|at| self.stacks.on_tripped(&mut cx.scheduler, at));
            }
            Of::Udp(source) => self.udp.on_tripped(cx.scheduler.now, source),
        }
    }

    /// Whether a flow or a source sends nothing new.
    fn has_ended(&self, of: &Of) -> bool {
        match of {
            Of::Flow(Streams::Tcp(streams)) => self.tcp.have_ended(streams.clone()),
            Of::Flow(Streams::Udt(streams)) => self.udt.have_ended(streams.clone()),
            Of::Flow(Streams::Stack(streams)) => self.stacks.have_ended(streams.clone()),
            Of::Udp(source) => self.udp.next_at(*source) == Time::NEVER,
        }
    }

    /// When a flow that is reported begins.
    fn start(&self, streams: &Streams) -> Time {
        match streams {
            Streams::Tcp(streams) => self.tcp.start(FlowId::new(streams.start)),
            Streams::Udt(streams) => self.udt.start(FlowId::new(streams.start)),
            Streams::Stack(streams) => self.stacks.start(streams.start),
        }
    }
}
