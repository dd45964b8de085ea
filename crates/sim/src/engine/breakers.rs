//! Circuit breakers under way: what they watch, and what is lost of it.

use lfn_units::Time;

use super::context::Context;
use super::ends::Ends;
use super::transfers::{Streams, Transfer};
use crate::breaker::{Count, Tally};
use crate::config::{Config, Watched};
use crate::events::Kind;
use crate::ids::FlowId;
use crate::packet::Class;

/// All breakers. Without any, nothing here holds anything.
#[derive(Default)]
pub(super) struct Breakers {
    watches: Vec<Watch>,
    /// Data packets of each flow over TCP that were dropped or lost, if any of them is watched.
    tcp_gone: Vec<u64>,
    /// The same over UDT.
    udt_gone: Vec<u64>,
}

/// A breaker, and what it watches.
struct Watch {
    count: Count,
    of: Of,
}

/// A flow with its streams, or a UDP source.
#[derive(Clone)]
enum Of {
    Flow(Streams),
    Udp(FlowId),
}

impl Breakers {
    /// The breakers of a configuration, before the flows begin.
    pub fn new(config: &Config, transfers: &[Transfer]) -> Breakers {
        let mut breakers = Breakers::default();
        for breaker in &config.breakers {
            let of = match breaker.watched {
                Watched::Flow(number) => Of::Flow(transfers[number as usize].streams.clone()),
                Watched::Udp(index) => Of::Udp(FlowId::new(index)),
            };
            match &of {
                Of::Flow(Streams::Tcp(_)) => breakers.tcp_gone.resize(config.flows.len(), 0),
                Of::Flow(Streams::Udt(_)) => breakers.udt_gone.resize(config.udt.len(), 0),
                Of::Udp(_) => {}
            }
            breakers.watches.push(Watch { count: Count::new(breaker.breaker), of });
        }
        breakers
    }

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

    /// A queue dropped a packet of a flow, or a link lost it.
    pub fn on_gone(&mut self, class: Class, flow: FlowId) {
        let counts = match class {
            Class::Data => &mut self.tcp_gone,
            Class::UdtData => &mut self.udt_gone,
            _ => return,
        };
        // Flows of traffic sources come after those that are reported.
        if let Some(count) = counts.get_mut(flow.index()) {
            *count += 1;
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
            Of::Udp(source) => ends.udp.tally(*source),
        }
    }

    /// Bytes that they hold.
    pub fn memory_bytes(&self) -> usize {
        self.watches.capacity() * size_of::<Watch>()
            + (self.tcp_gone.capacity() + self.udt_gone.capacity()) * 8
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
            Of::Udp(source) => self.udp.on_tripped(cx.scheduler.now, source),
        }
    }

    /// Whether a flow or a source sends nothing new.
    fn has_ended(&self, of: &Of) -> bool {
        match of {
            Of::Flow(Streams::Tcp(streams)) => self.tcp.have_ended(streams.clone()),
            Of::Flow(Streams::Udt(streams)) => self.udt.have_ended(streams.clone()),
            Of::Udp(source) => self.udp.next_at(*source) == Time::NEVER,
        }
    }

    /// When a flow that is reported begins.
    fn start(&self, streams: &Streams) -> Time {
        match streams {
            Streams::Tcp(streams) => self.tcp.start(FlowId::new(streams.start)),
            Streams::Udt(streams) => self.udt.start(FlowId::new(streams.start)),
        }
    }
}
