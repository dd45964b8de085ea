//! The rows of the sampled tables.

use lfn_tcp::State;
use lfn_udt::Connection;
use lfn_units::Time;

use crate::ends::context::Context;
use crate::ends::flow::Flow;
use crate::ends::streams::Streams;
use crate::ends::tcp::TcpFlows;
use crate::ends::transfers::Transfer;
use crate::ends::udt::UdtFlow;
use crate::ends::Ends;
use crate::tables::{FlowRow, ProbeRow, QueueRow, Tables};

/// How many transfers ahead a flow is fetched: the state of thousands is not in the cache.
const AHEAD: usize = 4;

/// Adds a row for each transfer that is under way, and one for each queue.
pub(super) fn sample(cx: &mut Context, ends: &mut Ends, transfers: &[Transfer]) {
    let now = cx.scheduler.now;
    let tables = &mut cx.record.tables;
    for (number, transfer) in (0..).zip(transfers) {
        if let Some(Transfer { streams: Streams::Tcp(streams), .. }) = transfers.get(number as usize + AHEAD)
        {
            ends.tcp.prefetch_sample(streams.start);
        }
        let row = match &transfer.streams {
            Streams::Tcp(streams) => of_tcp(&mut ends.tcp, streams.clone(), now, number, tables),
            Streams::Udt(streams) => of_udt(ends.udt.streams(streams.clone()), now, number),
            Streams::Stack(streams) => ends.stacks.row(streams.clone(), now, number),
        };
        if let Some(row) = row {
            tables.flows.push(row);
        }
    }
    for (at, link) in cx.network.links_mut().iter_mut().enumerate().filter(|(_, link)| link.modelled) {
        link.advance(now);
        tables.queues.push(QueueRow::new(now, at as u16, link.snapshot(now), link.counters()));
    }
}

/// Brings the queues to the time, as [`sample`] does.
pub(super) fn pass(cx: &mut Context) {
    let now = cx.scheduler.now;
    for link in cx.network.links_mut().iter_mut().filter(|link| link.modelled) {
        link.advance(now);
    }
}

/// The row of the streams over TCP of transfer `number`, whose probes get rows too; `None` while none is
/// under way.
fn of_tcp(
    tcp: &mut TcpFlows,
    streams: std::ops::Range<usize>,
    now: Time,
    number: u32,
    tables: &mut Tables,
) -> Option<FlowRow> {
    let (reported, flows) = tcp.streams(streams);
    let config = &reported.config;
    let under_way = |flow: &Flow| flow.finished >= now;
    let first = flows.iter().find(|flow| under_way(flow)).filter(|_| reported.started)?;
    let t_s = now.in_s();
    let values = first.sender.probe();
    for (probe, (info, value)) in config.law.probes().iter().zip(values).enumerate() {
        let value = value as f64 / (1_u64 << info.scale) as f64;
        tables.probes.push(ProbeRow { t_s, flow: number, probe: probe as u8, value });
    }
    let (rtt, state) = (first.sender.rtt(), first.sender.state());
    let sum = |of: fn(&Flow) -> f64| flows.iter().filter(|flow| under_way(flow)).map(of).sum();
    let delivered: u64 = flows.iter().map(Flow::delivered).sum();
    let arrived: u64 = flows.iter().map(Flow::arrived).sum();
    Some(FlowRow {
        t_s,
        flow: number,
        cwnd_seg: sum(|flow| flow.sender.control().cwnd.segments()),
        ssthresh_seg: sum(|flow| flow.sender.control().ssthresh.segments()),
        srtt_s: rtt.srtt_ns() as f64 / 1e9,
        rtt_s: rtt.latest_ns() as f64 / 1e9,
        inflight_seg: sum(|flow| flow.sender.in_flight() as f64) as u32,
        delivered_bytes: delivered * u64::from(config.payload_bytes),
        arrived_bytes: arrived * u64::from(config.payload_bytes),
        state,
        pacing_bps: sum(|flow| flow.sender.control().pacing_Bps as f64 * 8.0),
        retransmits: flows.iter().map(|flow| flow.sender.retransmits()).sum(),
    })
}

/// The row of the streams over UDT of transfer `number`; `None` while none is under way.
fn of_udt(flows: &[UdtFlow], now: Time, number: u32) -> Option<FlowRow> {
    let under_way: Vec<&Connection> = flows
        .iter()
        .filter(|flow| flow.finished.is_none_or(|at| at >= now))
        .filter_map(UdtFlow::sender)
        .collect();
    let first = under_way.first()?;
    let config = &flows[0].config;
    let bits = f64::from(config.mss_bytes) * 8.0;
    let repairing = under_way.iter().any(|sender| sender.repairing() > 0);
    let latest = flows[0].latest_rtt();
    let acknowledged: u64 = flows.iter().map(UdtFlow::acknowledged).sum();
    let senders = flows.iter().filter_map(UdtFlow::sender);
    Some(FlowRow {
        t_s: now.in_s(),
        flow: number,
        cwnd_seg: under_way.iter().map(|sender| sender.window_packets() as f64).sum(),
        ssthresh_seg: f64::INFINITY,
        srtt_s: first.rtt().smoothed.in_s(),
        rtt_s: latest.unwrap_or_default().in_s(),
        inflight_seg: under_way.iter().map(|sender| sender.in_flight()).sum::<u64>() as u32,
        delivered_bytes: acknowledged * u64::from(config.payload_bytes()),
        arrived_bytes: flows.iter().map(UdtFlow::received).sum::<u64>() * u64::from(config.payload_bytes()),
        retransmits: senders.map(|sender| sender.sender_stats().retransmits).sum(),
        state: if repairing { State::Recovery } else { State::Open },
        // A TCP law without a rate of its own sends by the window alone.
        pacing_bps: under_way
            .iter()
            .filter(|sender| sender.period() > Time::ZERO)
            .map(|sender| bits / sender.period().as_s())
            .sum(),
    })
}
