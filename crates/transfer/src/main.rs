//! `lfn-udt`: files over UDT, without Python.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use lfn_transfer::{
    compat, send, serve, Key, Listener, Plan, Progress, Sending, Served, Serving, Statistics, TransferError,
};

/// Default address of a receiver.
const LISTEN: &str = "127.0.0.1:9000";

const USAGE: &str = "\
Files over UDT.

lfn-udt recv DIR [--listen HOST:PORT] [--once]  take what lfn-udt send brings, into DIR (127.0.0.1:9000)
lfn-udt send FILE... --to HOST:PORT [--law LAW] send files and folders; again: go on after a cut
lfn-udt serve DIR [--listen HOST:PORT] [--once] serve the files of DIR to libudt's recvfile
lfn-udt fetch HOST:PORT REMOTE LOCAL            fetch a file from libudt's sendfile

--overwrite                  recv, fetch: replace files that are there
--key FILE                   send, recv: encrypt and authenticate every packet with the key in FILE
--insecure                   recv, serve: listen beyond loopback, though nobody is authenticated

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
    overwrite: bool,
    json: bool,
    quiet: bool,
}

/// Why a command ends, and its exit code.
struct Failure(u8, String);

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Failure {
        Failure(error.exit_code(), error.to_string())
    }
}

fn usage(why: impl Into<String>) -> Failure {
    Failure(2, why.into())
}

fn arguments(mut words: impl Iterator<Item = String>) -> Result<(Arguments, Option<String>), String> {
    let (mut arguments, mut key) = (Arguments::default(), None);
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .ok_or_else(|| format!("{word} needs a value; lfn-udt --help has one for each option"))
        };
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
                plan.mss_bytes =
                    text.parse().map_err(|_| format!("--mss: {text} is not from 576 to 65535"))?;
            }
            "--once" => arguments.once = true,
            "--overwrite" => arguments.overwrite = true,
            "--key" => key = Some(value()?),
            "--insecure" => plan.insecure = true,
            "--json" => arguments.json = true,
            "--quiet" => arguments.quiet = true,
            "-" => {
                return Err(
                    "- is no file: standard input cannot be sent, since a transfer begins with sizes; \
                            name files or folders"
                        .into(),
                );
            }
            option if option.starts_with('-') => {
                return Err(format!("no option {option}; lfn-udt --help lists them"));
            }
            _ => arguments.positional.push(word),
        }
    }
    Ok((arguments, key))
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

fn report(arguments: &Arguments, statistics: &Statistics) -> Result<(), Failure> {
    if arguments.json {
        let text = serde_json::to_string(statistics).map_err(|error| Failure(1, error.to_string()))?;
        writeln!(std::io::stdout(), "{text}").map_err(|error| Failure(3, format!("stdout: {error}")))?;
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

/// Shows the arithmetic once the transfer begins, then how it goes on.
fn teller<'a>(arguments: &'a Arguments, peer: &'a str) -> impl FnMut(&Progress) + 'a {
    let live = !arguments.quiet && std::io::stderr().is_terminal();
    let mut first = !arguments.quiet;
    move |progress| {
        if std::mem::take(&mut first) {
            eprintln!("{}", arguments.plan.explain(peer));
        }
        if live {
            show(progress);
        }
    }
}

fn take(command: &str, directory: &Path, arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { plan, address, quiet, once, .. } = arguments;
    let listener = || {
        let listener = Listener::bind(address.as_deref().unwrap_or(LISTEN), plan.clone())?;
        if !quiet {
            eprintln!("{}", plan.explain(&listener.local().to_string()));
        }
        eprintln!("listening at {}", listener.local());
        Ok(listener)
    };
    let mut last = Ok(());
    let live = !quiet && std::io::stderr().is_terminal();
    let mut served = |served: Served| match served {
        Served::Progress(_, progress) if live => show(&progress),
        Served::Progress(..) => {}
        Served::Done(_, Ok(statistics)) => last = report(arguments, &statistics),
        Served::Done(peer, Err(error)) => {
            eprintln!("\rlfn-udt: {peer}: {error}");
            last = Err(error.into());
        }
    };
    if command == "recv" {
        let overwrite = arguments.overwrite;
        let serving = Serving { directory, once: *once, overwrite, stop: stop().clone() };
        serve(listener, &serving, &mut served)?;
    } else {
        compat::serve(listener, directory, *once, stop(), &mut served)?;
    }
    if *once {
        last
    } else {
        Ok(())
    }
}

fn run(command: &str, arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { plan, positional, address, overwrite, .. } = arguments;
    match (command, &positional[..]) {
        ("send", [_, ..]) => {
            let to = address.as_deref().ok_or_else(|| usage("send needs --to HOST:PORT"))?;
            let paths: Vec<PathBuf> = positional.iter().map(PathBuf::from).collect();
            let sending = Sending { paths: &paths, to, plan: plan.clone() };
            let done = send(&sending, || stop().load(Ordering::Relaxed), &mut teller(arguments, to))?;
            report(arguments, &done)
        }
        ("fetch", [peer, remote, local]) => {
            let (local, tell) = (Path::new(local), &mut teller(arguments, peer));
            let stopped = || stop().load(Ordering::Relaxed);
            report(arguments, &compat::fetch(peer, remote, local, *overwrite, plan, stopped, tell)?)
        }
        ("recv" | "serve", [directory]) => take(command, Path::new(directory), arguments),
        ("send", []) => Err(usage("send needs files or folders to send")),
        ("recv" | "serve", _) => Err(usage(format!("{command} needs one directory"))),
        ("fetch", _) => Err(usage("fetch needs HOST:PORT REMOTE LOCAL")),
        _ => Err(usage(format!("what is to be done?\n\n{USAGE}"))),
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
    let arguments = arguments(words).map_err(usage).and_then(|(mut arguments, key)| {
        if key.is_some() && matches!(&*command, "serve" | "fetch") {
            return Err(usage("--key is for send and recv: libudt does not know it"));
        }
        arguments.plan.check()?;
        arguments.plan.key = key.map(|path| Key::read(Path::new(&path))).transpose()?;
        Ok(arguments)
    });
    match arguments.and_then(|arguments| run(&command, &arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(code, why)) => {
            eprintln!("\rlfn-udt: {why}");
            ExitCode::from(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_option_is_refused_in_one_line() {
        for word in ["-", "--nonsense", "-x"] {
            let why = arguments([word, "--to", "127.0.0.1:9"].into_iter().map(String::from)).err();
            let why = why.expect(word);
            assert!(why.contains(word) && why.lines().count() == 1, "{word}: {why}");
        }
    }
}
