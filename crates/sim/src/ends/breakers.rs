//! Circuit breakers under way: their flows, and the losses of each.

mod intervals;

use super::streams::Streams;
use crate::breaker::Count;
use crate::clock::ids::FlowId;
use crate::clock::packet::Class;
use crate::config::{Config, Watched};

/// All breakers. Without any, nothing here holds anything.
#[derive(Default)]
pub(crate) struct Breakers {
    watches: Vec<Watch>,
    /// Data packets of each flow over TCP that were dropped or lost, if any of them is watched.
    tcp_gone: Vec<u64>,
    /// Data packets of each flow over UDT that were dropped or lost, if any of them is watched.
    udt_gone: Vec<u64>,
}

/// A breaker, and the flow that it watches.
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
    /// The breakers of a configuration, before the flows begin; `streams`: those of a flow by its number.
    pub fn new(config: &Config, streams: impl Fn(u32) -> Streams) -> Breakers {
        let mut breakers = Breakers::default();
        for breaker in &config.breakers {
            let of = match breaker.watched {
                Watched::Flow(number) => Of::Flow(streams(number)),
                Watched::Udp(index) => Of::Udp(FlowId::new(index)),
            };
            match &of {
                Of::Flow(Streams::Tcp(_)) => breakers.tcp_gone.resize(config.flows.len(), 0),
                Of::Flow(Streams::Udt(_)) => breakers.udt_gone.resize(config.udt.len(), 0),
                Of::Flow(Streams::Stack(_)) | Of::Udp(_) => {}
            }
            breakers.watches.push(Watch { count: Count::new(breaker.breaker), of });
        }
        breakers
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

    /// Bytes that they hold.
    pub fn memory_bytes(&self) -> usize {
        self.watches.capacity() * size_of::<Watch>()
            + (self.tcp_gone.capacity() + self.udt_gone.capacity()) * 8
    }
}
