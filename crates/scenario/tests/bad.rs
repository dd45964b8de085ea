//! Errors in scenarios: each file of `bad/` has its message in `bad/expected.txt`. With LFN_REGENERATE set, the
//! messages are written there instead.

use std::path::Path;

use lfn_keys::Kinds;
use lfn_scenario::{read, Scenario};

/// Memory that the runs of `bad/` may use.
const MEMORY_LIMIT_BYTES: u64 = 2_000_000_000;

#[test]
fn every_fault_has_its_message() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let message = |file: &Path| {
        let parsed = read(file.to_str().unwrap())
            .and_then(|text| Scenario::parse(&text, file.to_str().unwrap(), Some(MEMORY_LIMIT_BYTES)));
        let error = parsed.expect_err(file.to_str().unwrap());
        assert!(error.line.is_some(), "{error}");
        // The lists of laws, of their variants and of queues grow.
        let laws: Vec<_> = lfn_law::registry().iter().map(|law| law.name).collect();
        let hstcp = lfn_law::registry().iter().find(|law| law.name == "hstcp").unwrap();
        let text = error.to_string().replace(&format!("{}/", folder.display()), "");
        let queues: Vec<_> = lfn_path::AqmConfig::kinds().into_iter().map(|(kind, ..)| kind).collect();
        let text = text.replace(&queues.join(", "), "QUEUES");
        text.replace(&laws.join(", "), "LAWS").replace(&hstcp.variants.join(", "), "VARIANTS") + "\n"
    };
    let messages: String = files.iter().map(|file| message(file)).collect();
    let expected = folder.join("expected.txt");
    if std::env::var_os("LFN_REGENERATE").is_some() {
        std::fs::write(&expected, &messages).unwrap();
    }
    let expected = std::fs::read_to_string(expected).unwrap();
    for (got, wanted) in messages.lines().zip(expected.lines()) {
        assert_eq!(got, wanted);
    }
    assert_eq!(messages.lines().count(), expected.lines().count());
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let missing = read("no/such/file.toml").unwrap_err();
    assert_eq!((missing.file.as_str(), missing.line), ("no/such/file.toml", None));
    assert!(missing.found.starts_with("cannot be read: "), "{missing}");
    let folder = read(env!("CARGO_MANIFEST_DIR")).unwrap_err();
    assert!(folder.found.starts_with("cannot be read: "), "{folder}");
    assert_eq!(read("/dev/zero").unwrap_err().found, "longer than 1 MiB");
}
