//! The keys of flows.

use lfn_header::Protocol;
use lfn_keys::Keys;
use lfn_law::{LawSpec, SlowStartKind};
use lfn_path::RouterConfig;
use lfn_udt::{ControlError, ControlSpec, MIN_MSS_BYTES};
use lfn_units::{Bytes, Time};

use super::path::Places;
use super::{DELAY_MAX, PACKET_MAX, PACKET_MIN};
use crate::config::UDT_WINDOW_MAX;
use crate::error::ScenarioError;
use crate::model::{Change, Compat, Flow, Router, Tcp, Transport};
use crate::network::Network;
use crate::quantity::{Packets, Start, Text, Window};
use crate::reader::{Choice, Item, Table};

/// The keys of a flow, whatever carries it.
const ANY: [&str; 17] = [
    "name",
    "law",
    "transport",
    "count",
    "parallel",
    "rtt",
    "start",
    "stop",
    "size",
    "direction",
    "from",
    "to",
    "via",
    "route",
    "ack_route",
    "packet",
    "receive_window",
];

/// All keys of a flow.
pub(crate) fn keys() -> Vec<&'static str> {
    ANY.into_iter().chain(only_tcp()).collect()
}

/// Those of them that only TCP has.
fn only_tcp() -> impl Iterator<Item = &'static str> {
    Tcp::default().keys().into_iter().map(|key| key.name)
}

/// Which laws can drive UDT.
const LAWS_OVER_UDT: &str = "allowed: \"udt\", and laws that need neither routers nor rate samples";
/// Smallest flow window, as in libudt.
const UDT_WINDOW_MIN: u64 = 32;
/// Most flows of a scenario.
pub(crate) const FLOWS_MAX: u64 = 16_000_000;
/// Most streams of a flow.
const PARALLEL_MAX: u64 = 1000;

impl Choice for Transport {
    const ALL: &'static [(&'static str, Self)] = &[("tcp", Self::Tcp), ("udt", Self::Udt)];
}

/// One group. `duration` is the run's.
pub(crate) fn read(
    table: &Table,
    places: &Places,
    compat: Compat,
    duration: Time,
) -> Result<Flow, ScenarioError> {
    let (transport, law) = transport(table)?;
    let count = table.integer("count", 1..=FLOWS_MAX, 1)? as u32;
    let parallel = table.integer("parallel", 1..=PARALLEL_MAX, 1)? as u32;
    let (direction, path) = places.path(table)?;
    let (ack_route, ack_links) = places.back(table, &path.links)?;
    let rtt = rtt(table, places.network.delay(&path.links).after(places.network.delay(&ack_links)))?;
    let start = table.quantity("start")?.unwrap_or(Start::At(Time::ZERO));
    if let Start::Uniform(low, high) = start {
        if low >= high {
            return Err(table.error(
                "start",
                start.to_string(),
                "allowed: uniform(LOW, HIGH) with LOW below HIGH",
            ));
        }
    }
    if start.latest() >= duration {
        let hint = format!("allowed: before the end of the run, {duration}");
        return Err(table.error("start", format!("{start} is too late"), hint));
    }
    let stop = table.quantity("stop")?;
    if let Some(stop) = stop.filter(|stop| *stop <= start.latest()) {
        let hint = format!("allowed: later than {}", start.latest());
        return Err(table.error("stop", format!("{stop} is not after the start"), hint));
    }
    let size = table.quantity_in("size", Bytes(1)..=Bytes(1_000_000_000_000_000_000))?;
    if let Some(size) = size.filter(|size| size.0 < u64::from(parallel)) {
        let hint = format!("allowed: at least a byte for each of the {parallel} streams");
        return Err(table.error("size", format!("{size} is too little"), hint));
    }
    let least_packet = match transport {
        Transport::Tcp => PACKET_MIN,
        Transport::Udt => Bytes(MIN_MSS_BYTES.into()),
    };
    let packet = table.quantity_in("packet", least_packet..=PACKET_MAX)?.unwrap_or(Bytes(1500));
    let flow = Flow {
        name: table.name("name")?,
        transport,
        count,
        parallel,
        rtt: Text(rtt),
        start: Text(start),
        stop: stop.map(Text),
        size: size.map(Text),
        direction,
        path,
        ack_route,
        ack_links,
        packet: Text(packet),
        receive_window: table.quantity("receive_window")?.map(Text::<Window>),
        tcp: match &law {
            ControlSpec::Law(law) if transport == Transport::Tcp => Some(tcp(table, packet, compat, law)?),
            _ => None,
        },
        law: Text(law),
    };
    check_window(table, &flow, compat)?;
    Ok(flow)
}

/// What carries the flow, and what drives it: each says what the other is by default.
fn transport(table: &Table) -> Result<(Transport, ControlSpec), ScenarioError> {
    let law = table.get("law");
    let is_udts = |item: &Item| {
        let name = item.text("write a law").unwrap_or_default();
        name == "udt" || name.starts_with("udt:")
    };
    let own = law.as_ref().is_some_and(is_udts);
    let transport = table.choice("transport", if own { Transport::Udt } else { Transport::Tcp })?;
    let law = match (transport, law) {
        (Transport::Udt, None) => ControlSpec::default(),
        (Transport::Udt, Some(item)) if own => item.quantity()?,
        (Transport::Udt, Some(item)) => item
            .law()?
            .try_into()
            .map_err(|error: ControlError| item.error(error.to_string(), LAWS_OVER_UDT))?,
        (Transport::Tcp, _) if own => {
            let hint = "write transport = \"udt\", or the name of another law";
            return Err(table.error("law", "UDT's own law drives UDT alone", hint));
        }
        (Transport::Tcp, _) => ControlSpec::Law(table.need("law", "law = \"cubic\"")?.law()?),
    };
    if let Some(key) = only_tcp().find(|key| transport == Transport::Udt && table.get(key).is_some()) {
        let found = "UDT has nothing of that kind";
        return Err(table.error(key, found, "allowed: with transport = \"tcp\""));
    }
    Ok((transport, law))
}

fn check_window(table: &Table, flow: &Flow, compat: Compat) -> Result<(), ScenarioError> {
    let Some(window) = flow.receive_window else { return Ok(()) };
    let payload = flow.payload_bytes(compat);
    let (least, most) = match flow.transport {
        Transport::Tcp => (1, u64::MAX),
        Transport::Udt => (UDT_WINDOW_MIN, UDT_WINDOW_MAX),
    };
    let packets = window.0.packets(payload);
    let bound = |packets: u64| format!("{}, {}B of payload", Packets(packets), packets * u64::from(payload));
    let (found, hint) = if packets < least {
        let found = if least == 1 { "found less than a packet".into() } else { window.0.to_string() };
        (found, format!("allowed: at least {}", bound(least)))
    } else if packets > most {
        (window.0.to_string(), format!("allowed: up to {}", bound(most)))
    } else {
        return Ok(());
    };
    Err(table.error("receive_window", found, hint))
}

/// How the ends of a TCP connection work.
fn tcp(table: &Table, packet: Bytes, compat: Compat, law: &LawSpec) -> Result<Tcp, ScenarioError> {
    // The ends of such protocols begin small, answer every packet, and send no bursts.
    let for_routers = law.header().is_some();
    let own_start = law.slow_start() == SlowStartKind::None;
    let (initial_window, slow_start, delayed_ack) = match compat {
        Compat::Linux if !for_routers => (Packets(10), law.slow_start(), true),
        _ if own_start => (Packets(2), SlowStartKind::None, false),
        _ => (Packets(2), SlowStartKind::Classic, false),
    };
    let mut tcp = Tcp {
        initial_window,
        slow_start: Text(slow_start),
        delayed_ack,
        ecn: law.family() == Some("ecn"),
        pacing: for_routers,
        ..Tcp::default()
    };
    table.read(&mut tcp)?;
    let slow_start = tcp.slow_start.0;
    if (slow_start == SlowStartKind::None) != own_start {
        let allowed = if own_start {
            "\"none\", since the law has a start-up of its own".into()
        } else {
            SlowStartKind::ALL.map(SlowStartKind::name).join(", ")
        };
        let found = format!("{slow_start} with law {law}");
        return Err(table.error("slow_start", found, format!("allowed: {allowed}")));
    }
    if own_start && tcp.initial_ssthresh.is_some() {
        let found = format!("law {law} has a start-up of its own");
        return Err(table.error("initial_ssthresh", found, "allowed: with a law that has a slow start"));
    }
    let payload = compat.payload_bytes(packet);
    if tcp.send_buffer.is_some_and(|buffer| buffer.0.packets(payload) == 0) {
        let hint = format!("allowed: at least 1 packet, {payload}B of payload, or \"linux\"");
        return Err(table.error("send_buffer", "found less than a packet", hint));
    }
    Ok(tcp)
}

/// Refuses ECN on links, and under laws, that use its bits for VCP.
pub(crate) fn check_ecn(
    tables: &[Table],
    flows: &[Flow],
    network: &Network,
    schedule: &[Change],
) -> Result<(), ScenarioError> {
    for (group, (table, flow)) in tables.iter().zip(flows).enumerate() {
        if !flow.tcp.is_some_and(|tcp| tcp.ecn) {
            continue;
        }
        let later = schedule.iter().filter_map(|change| match change {
            Change::Route(change) if change.group == group => Some(&change.links[0]),
            _ => None,
        });
        let mut links = [&flow.path.links].into_iter().chain(later).flatten();
        let speaks_vcp =
            |&&link: &&u16| matches!(network.hop(link).way.router, Some(Router(Some(RouterConfig::Vcp(_)))));
        let found = if flow.law.0.law().and_then(LawSpec::header) == Some(Protocol::Vcp) {
            "ECN under a law of VCP".to_string()
        } else if let Some(&link) = links.find(speaks_vcp) {
            format!("ECN on the link {:?}, which speaks VCP", network.hop(link).name)
        } else {
            continue;
        };
        return Err(table.error(
            "ecn",
            found,
            "allowed: one of both, for they use the same bits of the IP header",
        ));
    }
    Ok(())
}

/// The base RTT; `links` is the delay of the links of both routes.
fn rtt(table: &Table, links: Time) -> Result<Time, ScenarioError> {
    let Some(rtt) = table.quantity_in("rtt", Time::from_ns(1)..=DELAY_MAX)? else {
        return match links {
            Time::ZERO => Err(table.missing("rtt", "rtt = \"100ms\"")),
            links if links > DELAY_MAX => Err(table.error(
                "rtt",
                format!("the links take {links}"),
                format!("allowed: up to {DELAY_MAX}"),
            )),
            links => Ok(links),
        };
    };
    if rtt < links {
        let hint = format!("allowed: at least {links}, the delays of the links of both routes");
        return Err(table.error("rtt", format!("{rtt} is too short"), hint));
    }
    Ok(rtt)
}
