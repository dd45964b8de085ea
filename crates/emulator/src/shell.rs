//! A command behind an emulated path, and what cleans up after it.
//!
//! Nothing that is made here has a name, so nothing can stay: the network namespaces live in processes,
//! the TUN devices in descriptors of one of them. Four processes form a chain, and each is killed with its
//! parent (PR_SET_PDEATHSIG):
//!
//! - the caller, which waits and passes signals on;
//! - the emulator, which made the namespaces;
//! - the first process of a PID namespace, whose end is the end of every process in it (pid_namespaces(7));
//! - the command.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Duration;

use lfn_sim::config::{Config, LinkId};
use lfn_units::Time;
use libc::pid_t;
use serde::{Deserialize, Serialize};

use crate::emulator::{now_ns, Emulator, Report};
use crate::error::EmulatorError;
use crate::live::Live;
use crate::network::{Network, NetworkConfig, Route};
use crate::process::{self, Signals};
use crate::sockets::Sockets;
use crate::tun::{raise_loopback, Tun};

/// RFC 2544 appendix C.2.2: addresses for tests, 198.18.0.0/15.
const NETWORK: u32 = 0xc612_0000;
const PREFIX: u8 = 15;
/// The deepest path in a path that has two addresses left.
const DEEPEST: u8 = 14;
/// Memory of a socket for each byte outstanding: the kernel counts its own overhead, and gives to the
/// window what it takes for the payload's part.
const OVERHEAD: u64 = 4;
/// How long a server has to listen until the command begins.
const LISTEN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The programs at the two ends of a path.
#[derive(Clone, Debug)]
pub struct Ends {
    /// Program and arguments.
    pub command: Vec<CString>,
    /// A shell's command line that runs at the far end, as long as the command.
    pub serve: Option<CString>,
    /// The far end is the caller's network namespace, not a new one.
    pub here: bool,
}

/// A command and its path.
#[derive(Clone, Debug)]
pub struct Shell {
    /// Route 0 leads from the command to the far end, route 1 back.
    pub network: NetworkConfig,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// Bytes on the wire beyond an IP packet.
    pub framing_bytes: u32,
    /// Most bytes that a socket of TCP may buffer, in both namespaces.
    pub socket_bytes: u64,
    /// The programs at both ends.
    pub ends: Ends,
    /// How often links are sampled; [`Time::NEVER`] for not at all.
    pub sample: Time,
    /// When the links' counters restart; [`Time::NEVER`] for never.
    pub warm_at: Time,
    /// TCP may send several segments in one; otherwise each leaves by itself.
    pub offload: bool,
    /// A line on the terminal shows the path, if stderr is a terminal.
    pub live: bool,
}

impl Shell {
    /// A command behind the path of the first flow of a simulation: its data would go from the command to
    /// the far end. Segments of a burst that are due within `together` are handed over together. `None`
    /// without flows.
    pub fn behind(config: Config, framing_bytes: u32, ends: Ends, together: Time) -> Option<Shell> {
        let first_udt = config.udt.iter().find(|flow| flow.number == 0);
        let first_stack = config.stacks.iter().find(|flow| flow.number == 0);
        let (routes, rtt, wire_bytes) = match (first_udt, first_stack) {
            (Some(flow), _) => ([flow.route, flow.ack_route], flow.rtt, flow.wire_bytes()),
            (_, Some(flow)) => ([flow.route, flow.ack_route], flow.rtt, flow.wire_bytes()),
            _ => {
                let flow = config.flows.first()?;
                ([flow.route, flow.ack_route], flow.rtt, flow.wire_bytes)
            }
        };
        let [data, acks] = routes.map(|route| config.routes[route.index()].clone());
        let link = |id: &LinkId| &config.links[id.index()];
        let delays = data.iter().chain(&acks).map(|id| link(id).delay);
        let access = rtt.since(delays.fold(Time::ZERO, Time::after));
        let forward = Time(access.0 / 2);
        let outstanding = data.iter().map(link).map(|link| {
            let queue = link.limit_packets.saturating_mul(wire_bytes.into()).min(link.limit_bytes);
            link.service.mean_rate().bdp(rtt).0.saturating_add(queue)
        });
        Some(Shell {
            mtu_bytes: wire_bytes - framing_bytes,
            framing_bytes,
            socket_bytes: outstanding.max().unwrap_or(0).saturating_mul(OVERHEAD),
            ends,
            sample: Time::NEVER,
            warm_at: Time::NEVER,
            offload: true,
            live: false,
            network: NetworkConfig {
                seed: config.seed,
                largest_packet_bytes: wire_bytes,
                together,
                routes: vec![
                    Route { links: data, access: forward },
                    Route { links: acks, access: access - forward },
                ],
                links: config.links,
                changes: config.changes,
            },
        })
    }
}

/// The result of a command.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ended {
    /// Exit code of the command, 128 and the signal's number if a signal ended it, 127 if there is no such
    /// program, 126 if it could not be run.
    pub code: i32,
    /// The report of the path.
    pub report: Report,
}

/// Two addresses of a path, and the prefix of the networks that lie beyond its far end. A path in a path
/// has the upper half of what the outer one has, so that every packet finds its way.
struct Addresses {
    far: Ipv4Addr,
    near: Ipv4Addr,
    prefix: u8,
}

impl Addresses {
    fn of(depth: u8) -> Addresses {
        let size = 1u32 << (32 - PREFIX - depth);
        let base = NETWORK + (1 << (32 - PREFIX)) - size;
        Addresses { far: Ipv4Addr::from(base + 1), near: Ipv4Addr::from(base + 2), prefix: PREFIX + depth }
    }

    /// The first that this namespace does not use yet.
    fn next(depths: impl Iterator<Item = Ipv4Addr>) -> Result<Addresses, EmulatorError> {
        let used: Vec<Ipv4Addr> = depths.collect();
        let depth = (0..=DEEPEST).rev().find(|&depth| {
            let Addresses { far, near, .. } = Addresses::of(depth);
            used.contains(&far) || used.contains(&near)
        });
        match depth.map_or(0, |depth| depth + 1) {
            depth if depth <= DEEPEST => Ok(Addresses::of(depth)),
            _ => Err(EmulatorError::Depth { most: usize::from(DEEPEST) + 1 }),
        }
    }
}

/// Runs a command behind a path, and waits for its end.
///
/// # Errors
/// [`EmulatorError`] says what is missing; nothing is left behind.
pub fn shell(shell: &Shell) -> Result<Ended, EmulatorError> {
    let network = Network::new(&shell.network)?;
    let signals = Signals::block()?;
    let (from_emulator, to_caller) = process::pipe()?;
    let caller = process::id();
    let emulator = process::fork()?;
    if emulator == 0 {
        drop(from_emulator);
        let outcome = catch_unwind(AssertUnwindSafe(|| emulate(shell, network, &signals, caller)));
        let outcome = outcome.unwrap_or(Err(EmulatorError::Ended("a defect".into())));
        let outcome = outcome.map_err(|error| error.to_string());
        // Without a caller the result is dropped.
        let text = serde_json::to_vec(&outcome).unwrap_or_default();
        drop(File::from(to_caller).write_all(&text));
        process::exit(0);
    }
    drop(to_caller);
    let text = signals.pass_to(emulator, from_emulator)?;
    let status = process::wait(emulator)?;
    match serde_json::from_slice::<Result<Ended, String>>(&text) {
        Ok(outcome) => outcome.map_err(EmulatorError::Ended),
        Err(_) => Err(EmulatorError::Ended(format!("the emulator ended with {status}"))),
    }
}

/// The second process: namespaces and devices, then the path.
fn emulate(
    shell: &Shell,
    network: Network,
    signals: &Signals,
    caller: pid_t,
) -> Result<Ended, EmulatorError> {
    if !process::is_administrator()? {
        if shell.ends.here {
            return Err(EmulatorError::Missing("CAP_SYS_ADMIN and CAP_NET_ADMIN in this namespace"));
        }
        process::become_administrator()?;
    }
    process::die_with_parent()?;
    if process::parent() != caller {
        return Err(EmulatorError::Ended("its caller is gone".into()));
    }
    let addresses = if shell.ends.here {
        Addresses::next(process::local_addresses()?.into_iter())?
    } else {
        process::unshare(libc::CLONE_NEWNET)?;
        prepare(shell.socket_bytes)?;
        Addresses::of(0)
    };
    let far = Tun::new(addresses.far, addresses.prefix, shell.mtu_bytes, shell.offload)?;
    let far_namespace = File::open("/proc/thread-self/ns/net").map_err(EmulatorError::os("ns/net", ""))?;
    // The kernel may lack sock_diag, and then the line has less to show.
    let mut listed: Vec<Sockets> = shell.live.then(Sockets::new).and_then(Result::ok).into_iter().collect();
    // The kernel may lack IPv6.
    let sockets = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"].map(File::open);
    let sockets = sockets.into_iter().filter_map(Result::ok).collect();
    process::unshare(libc::CLONE_NEWNET)?;
    prepare(shell.socket_bytes)?;
    let live = if shell.live {
        listed.extend(Sockets::new());
        Live::start(listed, [addresses.near, addresses.far], &shell.network.routes, far.descriptor())?
    } else {
        None
    };
    let near = Tun::new(addresses.near, PREFIX, shell.mtu_bytes, shell.offload)?;
    process::unshare(libc::CLONE_NEWPID | libc::CLONE_NEWNS)?;

    let began_ns = now_ns();
    let (alive, emulator_lives) = process::pipe()?;
    let init = process::fork()?;
    if init == 0 {
        drop((near, far, emulator_lives));
        let far = FarEnd { namespace: far_namespace, sockets };
        std::env::set_var("LFN_BEGAN_NS", began_ns.to_string());
        let run = || run_command(shell, &addresses, far, signals, &alive);
        let code = catch_unwind(AssertUnwindSafe(run)).unwrap_or(Ok(125)).unwrap_or_else(|error| {
            eprintln!("lfn: {error}");
            125
        });
        process::exit(code);
    }
    drop((far_namespace, sockets, alive));
    let child = process::watch(init)?;
    let looks = (shell.sample, shell.warm_at);
    let mut emulator = Emulator::new(network, shell.framing_bytes, [near, far], began_ns, looks, live);
    loop {
        emulator.run(&[child.as_raw_fd(), signals.descriptor()]).map_err(EmulatorError::os("poll", ""))?;
        signals.pass_on(init);
        if let Some(status) = process::ended(init)? {
            let report = emulator.report().map_err(EmulatorError::os("/proc/net/dev", ""))?;
            return Ok(Ended { code: process::code(status), report });
        }
    }
}

/// A new network namespace: loopback, room for windows, no memory of former connections. It forwards, for
/// a path may begin here that leads into another.
fn prepare(socket_bytes: u64) -> Result<(), EmulatorError> {
    raise_loopback()?;
    let write = |name: &str, value: &str| {
        let file = format!("/proc/sys/net/ipv4/{name}");
        fs::write(&file, value).map_err(EmulatorError::os(file, ""))
    };
    for name in ["tcp_rmem", "tcp_wmem"] {
        let file = format!("/proc/sys/net/ipv4/{name}");
        let text = fs::read_to_string(&file).map_err(EmulatorError::os(file, ""))?;
        let mut sizes: Vec<u64> = text.split_whitespace().filter_map(|size| size.parse().ok()).collect();
        if let [_, _, most] = &mut sizes[..] {
            *most = socket_bytes.clamp(*most, i32::MAX as u64);
        }
        let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
        write(name, &sizes.join(" "))?;
    }
    write("tcp_no_metrics_save", "1")?;
    write("ip_forward", "1")
}

struct FarEnd {
    namespace: File,
    /// /proc/net/tcp and tcp6.
    sockets: Vec<File>,
}

/// The first process of the PID namespace: runs the command, and what serves it.
fn run_command(
    shell: &Shell,
    addresses: &Addresses,
    far: FarEnd,
    signals: &Signals,
    alive: &OwnedFd,
) -> Result<i32, EmulatorError> {
    process::die_with_parent()?;
    if process::is_closed(alive) {
        return Ok(125);
    }
    process::mount_proc();
    std::env::set_var("LFN_NEAR", addresses.near.to_string());
    std::env::set_var("LFN_FAR", addresses.far.to_string());
    if let Some(serve) = &shell.ends.serve {
        let server = process::fork()?;
        if server == 0 {
            process::enter_network(&far.namespace)?;
            let command = [c"/bin/sh".into(), c"-c".into(), serve.clone()];
            signals.restore();
            process::exit(process::execute(&command));
        }
        wait_for_listener(far.sockets)?;
    }
    drop(far.namespace);
    let command = process::fork()?;
    if command == 0 {
        signals.restore();
        process::exit(process::execute(&shell.ends.command));
    }
    signals.attend(command)
}

/// Waits until a socket of TCP listens at the far end, for [`LISTEN`] at most: what serves may use another
/// protocol.
fn wait_for_listener(mut sockets: Vec<File>) -> Result<(), EmulatorError> {
    let looks = LISTEN.as_millis() / LOOK_EVERY.as_millis();
    for _ in 0..looks {
        let mut text = String::new();
        for table in &mut sockets {
            let read = table.rewind().and_then(|()| table.read_to_string(&mut text));
            read.map_err(EmulatorError::os("/proc/net/tcp", ""))?;
        }
        // The fourth column is the state, 0A is LISTEN (proc_net_tcp in the kernel's documentation).
        if text.lines().any(|line| line.split_whitespace().nth(3) == Some("0A")) {
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_a_path_lies_in_what_the_outer_one_leads_to() {
        let block = |depth| {
            let Addresses { far, near, prefix } = Addresses::of(depth);
            let mask = u32::MAX << (32 - prefix);
            assert_eq!(u32::from(far) & mask, u32::from(near) & mask);
            (u32::from(far) & mask, mask)
        };
        for depth in 1..=DEEPEST {
            let ((outer, outer_mask), (inner, _)) = (block(depth - 1), block(depth));
            assert_eq!(inner & outer_mask, outer);
            let Addresses { far, near, .. } = Addresses::of(depth - 1);
            for own in [far, near] {
                assert_ne!(u32::from(own) & block(depth).1, inner, "{own} at depth {depth}");
            }
        }
        let first = Addresses::next(std::iter::empty()).unwrap();
        assert_eq!((first.far, first.prefix), (Ipv4Addr::new(198, 18, 0, 1), 15));
        let second = Addresses::next([first.near].into_iter()).unwrap();
        assert_eq!((second.far, second.prefix), (Ipv4Addr::new(198, 19, 0, 1), 16));
        assert!(Addresses::next([Addresses::of(DEEPEST).near].into_iter()).is_err());
    }
}
