//! A simulation under way: the loop over its events.

use lfn_header::Header;
use lfn_units::Time;

use super::sampling;
use crate::clock::events::{Kind, LineId};
use crate::clock::ids::{FlowId, LinkId};
use crate::clock::packet::Extras;
use crate::clock::scheduler::Departing;
use crate::config::{Changed, Connection};
use crate::ends::context::Context;
use crate::ends::stack::StackCounts;
use crate::ends::transfers::Transfer;
use crate::ends::Ends;

/// A simulation under way.
pub struct Sim {
    pub(super) context: Context,
    pub(super) ends: Ends,
    /// By number.
    pub(super) connections: Vec<Connection>,
    pub(super) transfers: Vec<Transfer>,
    pub(super) seed: u64,
    pub(super) draws: bool,
    /// Time from one sample to the next.
    pub(super) sample: Option<Time>,
    /// Whether samples become rows of the tables.
    pub(super) is_sampled: bool,
}

impl Sim {
    /// Simulated time reached.
    pub fn now(&self) -> Time {
        self.context.scheduler.now
    }

    /// Whether anything in it may draw random numbers, beside what its configuration was drawn with.
    pub fn draws(&self) -> bool {
        self.draws
    }

    /// The same run without the rows of its sampled tables, for who reads its summary alone.
    #[must_use]
    pub fn without_samples(self) -> Sim {
        Sim { is_sampled: false, ..self }
    }

    /// Datagrams of both ends of the connection at this place of [`crate::config::Config::stacks`]; `None` if there is none. A queue may know of later losses.
    pub fn stack_counts(&self, number: usize) -> Option<[StackCounts; 2]> {
        self.ends.stacks.counts(number)
    }

    /// When the run ends.
    pub fn duration(&self) -> Time {
        self.context.duration
    }

    /// Processes every event up to and including `until` (at most the duration).
    pub fn run_until(&mut self, until: Time) {
        let until = until.min(self.context.duration);
        while let Some((at, kind, index, line)) = self.context.scheduler.peek() {
            if at > until {
                break;
            }
            self.context.scheduler.now = at;
            self.context.record.events += 1;
            if line.is_late() {
                self.ends.tcp.prefetch_packets(&self.context.scheduler);
            }
            match kind {
                Kind::AckAtSender => self.ends.on_ack(&mut self.context, FlowId::new(index), line),
                Kind::AtLink => self.on_at_link(line),
                Kind::AtReceiver => {
                    self.settle_places();
                    self.ends.on_packet(&mut self.context, line);
                }
                _ => {
                    self.context.scheduler.pop();
                    self.on_rare(kind, index);
                }
            }
            if self.context.scheduler.has_departing() {
                self.send_departing();
            }
        }
        self.context.scheduler.now = until;
    }

    /// Passes to the network the packets that the ends handed over.
    #[inline(never)]
    pub(super) fn send_departing(&mut self) {
        let Context { network, scheduler, .. } = &mut self.context;
        let mut extras = Extras::default();
        while let Some(Departing { routed, header }) = scheduler.take_departing() {
            extras.header = header;
            network.offer(scheduler, &mut self.ends, routed, &extras);
        }
        let burst = scheduler.take_burst();
        extras.header = Header::None;
        while let Some(routed) = self.ends.next_packet(scheduler, burst, &mut extras.header) {
            network.offer(scheduler, &mut self.ends, routed, &extras);
        }
    }

    /// Brings all links up to `until`.
    pub(super) fn settle(&mut self, until: Time) {
        let Context { network, scheduler, .. } = &mut self.context;
        network.settle(scheduler, &mut self.ends, until);
    }

    /// Before an event that a flow may begin with.
    fn settle_places(&mut self) {
        let Context { network, scheduler, .. } = &mut self.context;
        network.settle_places(scheduler, &mut self.ends);
    }

    fn on_rare(&mut self, kind: Kind, index: usize) {
        let cx = &mut self.context;
        match kind {
            Kind::Change => self.on_change(index),
            Kind::Depart => {
                let link = LinkId(index as u16);
                cx.network.on_depart(&mut cx.scheduler, &mut self.ends, link);
            }
            Kind::Warmup => self.on_warmup(),
            Kind::Second => self.on_second(),
            Kind::Sample => self.on_sample(),
            Kind::Breaker => {
                let now = self.now();
                self.settle(now);
                self.ends.on_breaker(&mut self.context, index);
            }
            kind => {
                if let Kind::Arrival | Kind::Message = kind {
                    self.settle_places();
                }
                self.ends.on_timer(&mut self.context, kind, index);
            }
        }
    }

    /// A packet or an ACK reaches the next link of its route.
    fn on_at_link(&mut self, line: LineId) {
        let Context { network, scheduler, .. } = &mut self.context;
        let mut extras = Extras::default();
        if let Some(routed) = scheduler.pop_packet(line, &mut extras) {
            network.offer(scheduler, &mut self.ends, routed, &extras);
        }
    }

    fn on_change(&mut self, number: usize) {
        // A packet that leaves at the instant of a change leaves after it.
        self.settle(self.now().since(Time(1)));
        let cx = &mut self.context;
        let what = cx.network.change(number);
        match what {
            Changed::Route { flow, route, ack_route } => match self.connections[flow as usize] {
                Connection::Tcp(index) => self.ends.tcp.reroute(cx, FlowId::new(index), route, ack_route),
                Connection::Udt(index) => self.ends.udt.reroute(cx, FlowId::new(index), route, ack_route),
                Connection::Stack(index) => self.ends.stacks.reroute(cx, index, route, ack_route),
            },
            Changed::Rate(..) | Changed::Delay(..) | Changed::Loss(..) => {}
        }
        cx.network.on_change(&mut cx.scheduler, &what);
    }

    /// Statistics begin.
    fn on_warmup(&mut self) {
        let now = self.now();
        self.settle(now);
        self.context.network.restart(now);
        self.ends.restart(now);
        for transfer in &mut self.transfers {
            transfer.restart(&self.ends);
        }
    }

    fn on_second(&mut self) {
        let now = self.now();
        for transfer in &mut self.transfers {
            transfer.on_second(&self.ends, now);
        }
        self.context.scheduler.schedule(now + Time::from_s(1), Kind::Second, 0);
    }

    /// The rows of the sampled tables.
    fn on_sample(&mut self) {
        let now = self.now();
        let Some(interval) = self.sample else { return };
        self.settle(now);
        self.context.scheduler.schedule(now + interval, Kind::Sample, 0);
        if self.is_sampled {
            sampling::sample(&mut self.context, &mut self.ends, &self.transfers);
        } else {
            sampling::pass(&mut self.context);
        }
    }
}
