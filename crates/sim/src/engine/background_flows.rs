//! Background traffic inside the engine: flows that come, take a place, and give it back.

use lfn_units::Time;

use super::Sim;
use crate::background;
use crate::config::{Background, Direction};
use crate::events::Kind;
use crate::flow::{Flow, FlowSetup, Role};
use crate::rng::Stream;

impl Sim {
    /// A background flow that is done and has nothing in the network gives its place back.
    pub(super) fn retire_if_silent(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        if flow.role != Role::Short || flow.finished.is_none() || !flow.is_silent() {
            return;
        }
        flow.role = Role::Free;
        flow.timer_at = Time::NEVER;
        flow.receiver_timer_at = Time::NEVER;
        self.retired.add(flow, now);
        let at = flow.direction as usize;
        self.background.delivered_bytes[at] += flow.sender.una() * u64::from(flow.payload_bytes);
        let stats = flow.sender.stats(now);
        self.background.report.retransmits += stats.retransmits;
        self.background.report.timeouts += stats.timeouts;
        self.free.push(index);
    }

    pub(super) fn set_up_background(&mut self, seed: u64, config: &Background) {
        let mut traffic = background::Background::new(config.traffic, seed, 0);
        self.background.setup = Some(FlowSetup {
            law: config.law,
            sender: config.sender,
            receiver: config.receiver,
            direction: Direction::Forward,
            route: 0,
            ack_route: 0,
            access: Time::ZERO,
            by_event: false,
            size_segments: u64::MAX,
            payload_bytes: 0,
            wire_bytes: 0,
            ack_bytes: config.header_bytes + config.framing_bytes,
            last_wire_bytes: 0,
        });
        self.background.routes = config.routes;
        self.background.header_bytes = config.header_bytes;
        self.background.framing_bytes = config.framing_bytes;
        self.background.gaps = Some(Stream::new(seed, 0, "background.write.gap"));
        for long in traffic.long_flows().to_vec() {
            let setup = self.background_setup(long.direction, long.rtt, long.mss_bytes, None);
            let Some(mut setup) = setup else { continue };
            setup.sender.receive_window_segments = u64::from(background::LONG_FLOW_WINDOW_PACKETS);
            let index = self.flows.len();
            self.flows.push(Flow::new(&setup, Role::Long, long.start));
            self.connect(index);
            self.transit.events.push(long.start, Kind::Begin, index);
        }
        self.background.next = traffic.next_arrival();
        self.background.traffic = Some(traffic);
        if let Some(next) = &self.background.next {
            self.transit.events.push(next.at, Kind::Arrival, 0);
        }
    }

    pub(super) fn background_setup(
        &self,
        direction: Direction,
        rtt: Time,
        mss_bytes: u32,
        bytes: Option<u64>,
    ) -> Option<FlowSetup> {
        let mut setup = self.background.setup.clone()?;
        let overhead = self.background.header_bytes + self.background.framing_bytes;
        let routes = self.background.routes;
        setup.direction = direction;
        setup.route = routes[direction as usize];
        setup.ack_route = routes[1 - direction as usize];
        setup.by_event = self.may_reorder(setup.route);
        // The flow's own links make up what the links of its routes do not take.
        let links = routes.map(|route| &self.routes[usize::from(route)].links);
        let delays = links.into_iter().flatten().map(|&link| self.links[usize::from(link)].delay);
        setup.access = delays.fold(rtt, Time::since);
        setup.receiver.rtt_hint = rtt;
        setup.payload_bytes = mss_bytes;
        setup.wire_bytes = mss_bytes + overhead;
        setup.last_wire_bytes = setup.wire_bytes;
        setup.sender.mss_bytes = mss_bytes;
        setup.sender.receive_window_segments =
            (background::RECEIVE_WINDOW_BYTES / u64::from(mss_bytes)).max(2);
        if let Some(bytes) = bytes {
            setup.size_segments = bytes.div_ceil(u64::from(mss_bytes));
            let rest = (bytes % u64::from(mss_bytes)) as u32;
            setup.last_wire_bytes = overhead + if rest == 0 { mss_bytes } else { rest };
        }
        Some(setup)
    }

    /// The next short flow begins.
    pub(super) fn on_arrival(&mut self) {
        let Some(arrival) = self.background.next.take() else { return };
        if let Some(traffic) = &mut self.background.traffic {
            self.background.next = traffic.next_arrival();
        }
        if let Some(next) = &self.background.next {
            self.transit.events.push(next.at, Kind::Arrival, 0);
        }
        let mss_bytes = arrival.writes.map_or(arrival.mss_bytes, |writes| writes.write_bytes);
        let setup = self.background_setup(arrival.direction, arrival.rtt, mss_bytes, Some(arrival.bytes));
        let Some(mut setup) = setup else { return };
        let segments = setup.size_segments;
        if arrival.writes.is_some() {
            setup.size_segments = 0;
            setup.last_wire_bytes = setup.wire_bytes;
        }
        self.background.report.flows_started += 1;
        self.background.active += 1;
        self.background.report.max_active = self.background.report.max_active.max(self.background.active);
        self.background.offered_bytes[arrival.direction as usize] += arrival.bytes;
        let index = match self.free.pop() {
            Some(index) => {
                self.flows[index].reuse(&setup, Role::Short, self.now);
                index
            }
            None => {
                self.flows.push(Flow::new(&setup, Role::Short, self.now));
                self.flows.len() - 1
            }
        };
        self.connect(index);
        match arrival.writes {
            Some(writes) => {
                self.flows[index].writes_left = segments;
                self.flows[index].write_gap = writes.mean_gap;
                self.on_write(index);
            }
            None => self.transmit(index),
        }
    }

    /// An interactive session writes one segment, and then again after a random gap.
    pub(super) fn on_write(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        flow.sender.offer(1);
        flow.writes_left -= 1;
        if flow.writes_left > 0 {
            if let Some(gaps) = &mut self.background.gaps {
                let gap = Time::from_s_f64(gaps.exp(flow.write_gap.as_s()));
                self.transit.events.push(self.now + gap, Kind::Write, index);
            }
        }
        self.transmit(index);
    }
}
