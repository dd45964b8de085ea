//! Flows.

use lfn_header::Protocol;
use lfn_keys::{names, PerFlow, Spread, PACKET_MAX};
use lfn_law::{LawSpec, SlowStartKind};
use lfn_path::RouterConfig;
use lfn_sim::accurate::{AccEcn, ReceiverEcn};
use lfn_sim::config::LinkId;
use lfn_sim::misbehaving::Misbehaviour;
use lfn_udt::{ControlError, ControlSpec, MIN_MSS_BYTES};
use lfn_units::{Bytes, Time};

use super::path::Places;
use super::DELAY_MAX;
use crate::config::UDT_WINDOW_MAX;
use crate::error::ScenarioError;
use crate::model::{Change, Compat, Flow, Router, Tcp, Transport};
use crate::network::Network;
use crate::quantity::{LawName, Packets, Text};
use crate::reader::Table;

/// Smallest flow window, as in libudt.
const UDT_WINDOW_MIN: u64 = 32;

/// One group. `duration` is the run's.
pub(crate) fn resolve(
    flow: &mut Flow,
    table: &Table,
    places: &Places,
    compat: Compat,
    duration: Time,
) -> Result<(), ScenarioError> {
    resolve_transport(flow, table)?;
    (flow.direction, flow.path) = places.path(table)?;
    (flow.ack_route, flow.ack_links) = places.back(table, &flow.path.links)?;
    let links = places.network.delay(&flow.path.links).after(places.network.delay(&flow.ack_links));
    resolve_rtt(flow, table, links)?;
    check_times(flow, table, duration)?;
    let too_little = |size: &&PerFlow<Bytes>| size.least(flow.count).0 < u64::from(flow.parallel);
    if let Some(size) = flow.size.as_ref().filter(too_little) {
        let hint = format!("allowed: at least a byte for each of the {} streams", flow.parallel);
        return Err(table.error("size", format!("{size} is too little"), hint));
    }
    flow.tcp = match &flow.control {
        ControlSpec::Law(law) if flow.transport() == Transport::Tcp => {
            Some(tcp(table, flow.packet, compat, law)?)
        }
        _ => {
            table.value_in::<Bytes>("packet", &(Bytes(MIN_MSS_BYTES.into())..=PACKET_MAX))?;
            None
        }
    };
    check_window(table, flow, compat)
}

fn check_times(flow: &Flow, table: &Table, duration: Time) -> Result<(), ScenarioError> {
    let start = &flow.start;
    if start.most(flow.count) >= duration {
        let hint = format!("allowed: before the end of the run, {duration}");
        return Err(table.error("start", format!("{start} is too late"), hint));
    }
    let Some(stop) = &flow.stop else { return Ok(()) };
    // Two lists meet in as many ways as this, at most.
    for i in 0..start.period().saturating_mul(stop.period()).min(flow.count as usize) {
        let (latest, stop) = (start.at(i).most(), stop.at(i));
        if stop.least() <= latest {
            let hint = format!("allowed: later than {latest}");
            return Err(table.error("stop", format!("{stop} is not after the start"), hint));
        }
    }
    Ok(())
}

/// Sets transport and law of a flow; each decides the default of the other.
fn resolve_transport(flow: &mut Flow, table: &Table) -> Result<(), ScenarioError> {
    let law = table.get("law");
    let name = &flow.law.0;
    let own = name == "udt" || name.starts_with("udt:");
    let spec = law.as_ref().filter(|_| !own).map(|item| item.law()).transpose()?;
    let is_stack = spec.as_ref().is_some_and(LawSpec::is_stack);
    let transport = flow.transport.unwrap_or(match (own, is_stack) {
        (true, _) => Transport::Udt,
        (_, true) => Transport::Stack,
        _ => Transport::Tcp,
    });
    // A result has the stack's name alone.
    let may_be_stack = |spec: &LawSpec| spec.prototype().is_some_and(|known| known.build.is_none());
    flow.control = match (transport, law, spec) {
        (Transport::Stack, _, Some(spec)) if is_stack || may_be_stack(&spec) => ControlSpec::Law(spec),
        (Transport::Stack, Some(item), _) => {
            return Err(
                item.error(format!("{name} is no whole stack"), "allowed: such as \"quinn-whole:cubic\"")
            );
        }
        (Transport::Stack, None, _) => return Err(table.missing("law", "law = \"quinn-whole:cubic\"")),
        (_, Some(item), _) if is_stack => {
            let found = format!("{name} is a whole stack");
            return Err(item.error(found, "allowed: a law, or transport = \"stack\""));
        }
        (Transport::Udt, None, _) => ControlSpec::default(),
        (Transport::Udt, Some(item), None) => item.spec()?,
        (Transport::Udt, Some(item), Some(spec)) => spec.try_into().map_err(|error: ControlError| {
            let text = error.to_string();
            let (found, allowed) = text.split_once("; ").unwrap_or((&text, ""));
            item.error(found, allowed)
        })?,
        (Transport::Tcp, _, _) if own => {
            let hint = "write transport = \"udt\", or the name of another law";
            return Err(table.error("law", "UDT's own law drives UDT alone", hint));
        }
        (Transport::Tcp, _, Some(spec)) => ControlSpec::Law(spec),
        (Transport::Tcp, _, None) => return Err(table.missing("law", "law = \"cubic\"")),
    };
    flow.law = LawName(flow.control.to_string());
    flow.transport = Some(transport).filter(|transport| *transport != Transport::Tcp);
    let whose = match transport {
        Transport::Tcp => return Ok(()),
        Transport::Udt => "UDT has",
        Transport::Stack => "a whole stack has",
    };
    let only_tcp = names(&Tcp::default());
    if let Some(key) = only_tcp.into_iter().find(|key| table.get(key).is_some()) {
        let found = format!("{whose} nothing of that kind");
        return Err(table.error(key, found, "allowed: with transport = \"tcp\""));
    }
    Ok(())
}

fn check_window(table: &Table, flow: &Flow, compat: Compat) -> Result<(), ScenarioError> {
    let Some(window) = flow.receive_window else { return Ok(()) };
    let payload = flow.payload_bytes(compat);
    let (least, most) = match flow.transport() {
        Transport::Tcp => (1, u64::MAX),
        Transport::Udt => (UDT_WINDOW_MIN, UDT_WINDOW_MAX),
        Transport::Stack => {
            let found = "a whole stack has its own";
            return Err(table.error("receive_window", found, "allowed: over TCP and UDT"));
        }
    };
    let packets = window.packets(payload);
    let bound = |packets: u64| format!("{}, {}B of payload", Packets(packets), packets * u64::from(payload));
    let (found, hint) = if packets < least {
        let found = if least == 1 { "found less than a packet".into() } else { window.to_string() };
        (found, format!("allowed: at least {}", bound(least)))
    } else if packets > most {
        (window.to_string(), format!("allowed: up to {}", bound(most)))
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
        l4s: law.is_l4s(),
        accecn: if law.is_l4s() && compat == Compat::Linux { AccEcn::Option } else { AccEcn::Off },
        pacing: for_routers,
        ..Tcp::default()
    };
    table.set(&mut tcp)?;
    if tcp.l4s && !tcp.ecn && table.get("l4s").is_none() {
        tcp.l4s = false;
    }
    if tcp.l4s && !tcp.ecn {
        return Err(table.error("l4s", "ECT(1) of a flow without ECN", "allowed: with ecn = true"));
    }
    check_accecn(table, &mut tcp, law)?;
    check_receiver_ecn(table, &tcp, law)?;
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
    check_saved(table, &tcp)?;
    check_misbehaviour(table, &tcp, law)?;
    tcp.pacing |= slow_start == SlowStartKind::CarefulResume && table.get("pacing").is_none();
    if own_start && tcp.initial_ssthresh.is_some() {
        let found = format!("law {law} has a start-up of its own");
        return Err(table.error("initial_ssthresh", found, "allowed: with a law that has a slow start"));
    }
    let payload = compat.payload_bytes(packet);
    check_burst(table, &tcp, payload, own_start)?;
    if tcp.send_buffer.is_some_and(|buffer| buffer.packets(payload) == 0) {
        let hint = format!("allowed: at least 1 packet, {payload}B of payload, or \"linux\"");
        return Err(table.error("send_buffer", "found less than a packet", hint));
    }
    Ok(tcp)
}

/// Bursts are of several segments, and nothing paces them.
fn check_burst(table: &Table, tcp: &Tcp, payload: u32, law_paces: bool) -> Result<(), ScenarioError> {
    let Some(burst) = tcp.burst else { return Ok(()) };
    let least = 2 * u64::from(payload);
    let (found, hint) = if tcp.pacing || law_paces {
        let whose = if tcp.pacing { "pacing" } else { "a law that paces" };
        (format!("found with {whose}"), "allowed: without pacing".into())
    } else if burst.0 < least {
        (format!("{burst} is less than two segments"), format!("allowed: at least {least}B"))
    } else {
        return Ok(());
    };
    Err(table.error("burst", found, hint))
}

/// AccECN is for flows with ECN whose ends keep the rules. A default gives way.
fn check_accecn(table: &Table, tcp: &mut Tcp, law: &LawSpec) -> Result<(), ScenarioError> {
    if !tcp.accecn.is_on() {
        return Ok(());
    }
    let (found, hint) = if !tcp.ecn {
        ("AccECN of a flow without ECN".to_string(), "allowed: with ecn = true")
    } else if law.header().is_some() {
        (format!("found with law {law}"), "allowed: with a law that is not for routers")
    } else if tcp.misbehaves.is_some() {
        ("found beside misbehaves".into(), "allowed: with a receiver that keeps the rules")
    } else {
        return Ok(());
    };
    if table.get("accecn").is_some() {
        return Err(table.error("accecn", found, hint));
    }
    tcp.accecn = AccEcn::Off;
    Ok(())
}

/// The receiver's ECN matters to a sender that asks for ECN.
fn check_receiver_ecn(table: &Table, tcp: &Tcp, law: &LawSpec) -> Result<(), ScenarioError> {
    let (found, hint) = match tcp.receiver_ecn {
        None => return Ok(()),
        _ if law.header().is_some() => {
            (format!("found with law {law}"), "allowed: with a law that is not for routers")
        }
        _ if !tcp.ecn => ("found without ecn, for which no SYN asks".into(), "allowed: with ecn = true"),
        _ => return Ok(()),
    };
    Err(table.error("receiver_ecn", found, hint))
}

/// A receiver misbehaves where that means something.
fn check_misbehaviour(table: &Table, tcp: &Tcp, law: &LawSpec) -> Result<(), ScenarioError> {
    let Some(how) = tcp.misbehaves else { return Ok(()) };
    let (found, hint) = match how {
        _ if law.header().is_some() => {
            (format!("found with law {law}"), "allowed: with a law that is not for routers")
        }
        Misbehaviour::SplitsAcks | Misbehaviour::Optimistic if !tcp.sack => {
            ("found beside sack = false".into(), "allowed: with SACK, without which ACKs are counted")
        }
        Misbehaviour::Optimistic if tcp.application.as_ref().is_some_and(|it| it.deadline.is_some()) => (
            "found beside a deadline".into(),
            "allowed: without one, since its ACKs tell of data that are not there",
        ),
        Misbehaviour::HidesMarks if !tcp.ecn => {
            ("no mark to hide without ecn".into(), "allowed: with ecn = true")
        }
        Misbehaviour::HidesMarks if tcp.receiver_ecn == Some(ReceiverEcn::Off) => {
            ("no mark to hide with receiver_ecn = \"off\"".into(), "allowed: with a receiver that has ECN")
        }
        _ => return Ok(()),
    };
    Err(table.error("misbehaves", found, hint))
}

/// Careful Resume needs what it resumes from; nothing else may have it.
fn check_saved(table: &Table, tcp: &Tcp) -> Result<(), ScenarioError> {
    let resumes = tcp.slow_start.0 == SlowStartKind::CarefulResume;
    let keys = [
        ("saved_window", tcp.saved_window.is_some(), "saved_window = \"1000 packets\""),
        ("saved_rtt", tcp.saved_rtt.is_some(), "saved_rtt = \"100ms\""),
    ];
    for (key, given, example) in keys {
        if resumes && !given {
            return Err(table.missing(key, example));
        }
        if given && !resumes {
            let found = format!("slow start {} resumes from nothing", tcp.slow_start.0);
            return Err(table.error(key, found, "allowed: with slow_start = \"careful-resume\""));
        }
    }
    Ok(())
}

/// Refuses links that erase the bits by which VCP tells its load.
pub(crate) fn check_bleach(tables: &[Table], flows: &[Flow], network: &Network) -> Result<(), ScenarioError> {
    for (table, flow) in tables.iter().zip(flows) {
        let mut links = flow.path.links.iter().chain(&flow.ack_links);
        let bleaches = |&&link: &&LinkId| network.hop(link).way.bleaches();
        if flow.control.law().and_then(LawSpec::header) != Some(Protocol::Vcp) {
            continue;
        }
        if let Some(&link) = links.find(bleaches) {
            let found = format!("a law of VCP on the link {:?}, which bleaches", network.hop(link).name);
            return Err(table.error(
                "law",
                found,
                "allowed: other laws, for VCP has its load in the bits of ECN",
            ));
        }
    }
    Ok(())
}

/// Refuses ECN on links, and under laws, that use its bits for VCP.
pub(crate) fn check_ecn(
    tables: &[Table],
    flows: &[Flow],
    network: &Network,
    schedule: &[Change],
) -> Result<(), ScenarioError> {
    for (group, (table, flow)) in tables.iter().zip(flows).enumerate() {
        if !flow.tcp.as_ref().is_some_and(|tcp| tcp.ecn) {
            continue;
        }
        let later = schedule.iter().filter_map(|change| match change {
            Change::Route(change) if change.group == group => Some(&change.links[0]),
            _ => None,
        });
        let mut links = [&flow.path.links].into_iter().chain(later).flatten();
        let speaks_vcp = |&&link: &&LinkId| {
            matches!(network.hop(link).way.router, Some(Router(Some(RouterConfig::Vcp(_)))))
        };
        let found = if flow.control.law().and_then(LawSpec::header) == Some(Protocol::Vcp) {
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

/// The base RTT, 0 if it is not given; `links` is the delay of the links of both routes.
fn resolve_rtt(flow: &mut Flow, table: &Table, links: Time) -> Result<(), ScenarioError> {
    let least = flow.rtt.least(flow.count);
    match least {
        Time::ZERO if links == Time::ZERO => Err(table.missing("rtt", "rtt = \"100ms\"")),
        Time::ZERO if links > DELAY_MAX => {
            Err(table.error("rtt", format!("the links take {links}"), format!("allowed: up to {DELAY_MAX}")))
        }
        Time::ZERO => {
            flow.rtt = PerFlow::One(Spread::At(links));
            Ok(())
        }
        _ if least < links => {
            let hint = format!("allowed: at least {links}, the delays of the links of both routes");
            Err(table.error("rtt", format!("{least} is too short"), hint))
        }
        _ => Ok(()),
    }
}
