//! `lfn-conformance LAW RECORDS`: replays what kernel/record.bpf.h wrote of a law.

use lfn_conformance::{laws, replay, Call, Record};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("lfn-conformance: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, path] = &arguments[..] else { return Err("usage: lfn-conformance LAW RECORDS".into()) };
    let law = laws().iter().find(|law| law.name == name).ok_or_else(|| {
        let names: Vec<&str> = laws().iter().map(|law| law.name).collect();
        format!("no law {name:?} of the kernel; allowed: {}", names.join(", "))
    })?;
    let bytes = std::fs::read(path).map_err(|e| format!("{path}: {e}"))?;
    let records = Record::read_all(&bytes).map_err(|e| format!("{path}: {e}"))?;
    match replay(law, &records).map_err(|e| format!("{name}: {e}"))? {
        Ok(counts) => {
            let named = Call::ALL.iter().zip(counts).filter(|(_, count)| *count > 0);
            let counts: Vec<String> = named.map(|(call, count)| format!("{} {count}", call.name())).collect();
            Ok(format!("{name}: no bit differs in {}", counts.join(", ")))
        }
        Err(difference) => Err(format!("{name}: {difference}")),
    }
}
