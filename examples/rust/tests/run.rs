//! Every program of src/bin prints what `expected/NAME.txt` has. `LFN_REGENERATE=1` writes the files.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn names(folder: &str, ending: &str) -> BTreeSet<String> {
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).expect("a folder");
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.map(|name| name.strip_suffix(ending).expect("one kind of file").into()).collect()
}

fn prints_as_expected(name: &str, program: &str) {
    let done = Command::new(program).output().expect("a program of this package");
    let said = String::from_utf8(done.stdout).expect("text");
    assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("expected/{name}.txt"));
    if env::var_os("LFN_REGENERATE").is_some() {
        fs::write(&file, &said).expect("a writable folder");
    }
    assert_eq!(said, fs::read_to_string(&file).expect("LFN_REGENERATE=1 writes it"), "{name}");
}

macro_rules! programs {
    ($($name:ident)+) => {
        $(#[test] fn $name() {
            prints_as_expected(stringify!($name), env!(concat!("CARGO_BIN_EXE_", stringify!($name))));
        })+

        #[test]
        fn every_program_is_run() {
            let known = [$(stringify!($name).to_owned()),+].into();
            assert_eq!(names("src/bin", ".rs"), known);
        }
    };
}

programs! {
    codel
    delivery_trace
    embed
    law_by_hand
    own_controller
    own_network
    results_table
    router_headers
    sweep
    udt_sockets
}
