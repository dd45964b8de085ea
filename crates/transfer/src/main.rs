//! `lfn-udt`: files over UDT, without Python.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use lfn_transfer::{compat, send, serve, Listener, Plan, Progress, Sending, Served, Serving, Statistics};

const USAGE: &str = "\
Files over UDT. Nothing is encrypted: on a network that is not yours, use a tunnel.

lfn-udt recv DIR --listen HOST:PORT [--once]    take what lfn-udt send brings, into DIR
lfn-udt send FILE... --to HOST:PORT [--law LAW] send files and folders; again: go on after a cut
lfn-udt serve DIR --listen HOST:PORT [--once]   serve the files of DIR to libudt's recvfile
lfn-udt fetch HOST:PORT REMOTE LOCAL            fetch a file from libudt's sendfile

--rate 1Gbit/s --rtt 100ms   what the path carries: sizes buffers and window (default as shown)
--max-rate 900Mbit/s         the sender stays below (no limit)
--mss BYTES                  largest packet with IP and UDP headers (1500)
--law LAW                    udt, udt:4.10, udt:3.0, udt:2, udt:compat, or a law of `lfn laws`
--json                       statistics as one JSON object a transfer, on stdout
--quiet                      neither the arithmetic nor progress on stderr
";

#[derive(Default)]
struct Arguments {
    plan: Plan,
    positional: Vec<String>,
    address: Option<String>,
    once: bool,
    json: bool,
    quiet: bool,
}

fn arguments(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments::default();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let plan = &mut arguments.plan;
        match &*word {
            "--listen" | "--to" => arguments.address = Some(value()?),
            "--rate" => plan.rate = value()?.parse().map_err(|error| format!("--rate: {error}"))?,
            "--rtt" => plan.rtt = value()?.parse().map_err(|error| format!("--rtt: {error}"))?,
            "--max-rate" => {
                plan.max_rate = Some(value()?.parse().map_err(|error| format!("--max-rate: {error}"))?);
            }
            "--law" => plan.control = value()?.parse().map_err(|error| format!("--law: {error}"))?,
            "--mss" => {
                let text = value()?;
                let bytes = text.parse().ok().filter(|bytes| (576..=65_535).contains(bytes));
                plan.mss_bytes = bytes.ok_or(format!("--mss: {text:?} is no number from 576 to 65535"))?;
            }
            "--once" => arguments.once = true,
            "--json" => arguments.json = true,
            "--quiet" => arguments.quiet = true,
            option if option.starts_with('-') => return Err(format!("no option {option}\n\n{USAGE}")),
            _ => arguments.positional.push(word),
        }
    }
    Ok(arguments)
}

static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

fn stop() -> &'static Arc<AtomicBool> {
    STOP.get_or_init(Arc::default)
}

extern "C" fn on_signal(_: i32) {
    if let Some(stop) = STOP.get() {
        stop.store(true, Ordering::Relaxed);
    }
}

fn show(progress: &Progress) {
    let part = 100 * progress.done_bytes / progress.total_bytes.max(1);
    let rate = progress.done_bytes as f64 * 8e-6 / progress.elapsed_s;
    eprint!(
        "\r{part:3} %  {:.1} of {:.1} MB  {rate:.0} Mbit/s  RTT {:.1} ms  loss {:.3} %  ",
        progress.done_bytes as f64 * 1e-6,
        progress.total_bytes as f64 * 1e-6,
        progress.rtt_s * 1e3,
        100.0 * progress.loss
    );
}

fn report(arguments: &Arguments, statistics: &Statistics) -> Result<(), String> {
    if arguments.json {
        let text = serde_json::to_string(statistics).map_err(|error| error.to_string())?;
        writeln!(std::io::stdout(), "{text}").map_err(|error| format!("stdout: {error}"))?;
    } else if !arguments.quiet {
        eprintln!(
            "\r{} files, {} bytes ({} were there) in {:.2} s: {:.0} Mbit/s, {} of {} packets repeated",
            statistics.files,
            statistics.total_bytes,
            statistics.resumed_bytes,
            statistics.completion_s,
            statistics.goodput_bps * 1e-6,
            statistics.retransmits,
            statistics.sent,
        );
    }
    Ok(())
}

fn run(command: &str, arguments: &Arguments) -> Result<(), String> {
    let Arguments { plan, positional, address, quiet, once, .. } = arguments;
    let live = !quiet && std::io::stderr().is_terminal();
    let mut tell = |progress: &Progress| {
        if live {
            show(progress);
        }
    };
    let failed = |error: lfn_transfer::TransferError| error.to_string();
    let address = |option| address.as_deref().ok_or(format!("{command} needs {option} HOST:PORT"));
    if !quiet {
        eprintln!("{}", plan.explain());
    }
    match (command, &positional[..]) {
        ("send", [_, ..]) => {
            let paths: Vec<PathBuf> = positional.iter().map(PathBuf::from).collect();
            let sending = Sending { paths: &paths, to: address("--to")?, plan: plan.clone() };
            report(arguments, &send(&sending, || stop().load(Ordering::Relaxed), &mut tell).map_err(failed)?)
        }
        ("fetch", [peer, remote, local]) => {
            let done = compat::fetch(peer, remote, Path::new(local), plan, &mut tell).map_err(failed)?;
            report(arguments, &done)
        }
        ("recv" | "serve", [directory]) => {
            let listener = Listener::bind(address("--listen")?, plan.clone()).map_err(failed)?;
            eprintln!("listening at {}", listener.local());
            let mut last = Ok(());
            let mut served = |served: Served| match served {
                Served::Progress(_, progress) => tell(&progress),
                Served::Done(_, Ok(statistics)) => last = report(arguments, &statistics),
                Served::Done(peer, Err(error)) => {
                    eprintln!("\rlfn-udt: {peer}: {error}");
                    last = Err(error.to_string());
                }
            };
            let directory = Path::new(directory);
            match command {
                "recv" => {
                    let serving = Serving { directory, once: *once, stop: stop().clone() };
                    serve(listener, &serving, &mut served)
                }
                _ => compat::serve(listener, directory, *once, stop(), &mut served),
            }
            .map_err(failed)?;
            if *once {
                last
            } else {
                Ok(())
            }
        }
        _ => Err(format!("what is to be done?\n\n{USAGE}")),
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    if matches!(&*command, "-h" | "--help" | "help") {
        print!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    stop();
    // SAFETY: the handler does nothing but an atomic store.
    unsafe {
        let handler = on_signal as extern "C" fn(i32) as libc::sighandler_t;
        libc::signal(libc::SIGINT, handler);
        libc::signal(libc::SIGTERM, handler);
    }
    let arguments = match arguments(words) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("lfn-udt: {error}");
            return ExitCode::from(2);
        }
    };
    match run(&command, &arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\rlfn-udt: {error}");
            ExitCode::FAILURE
        }
    }
}
