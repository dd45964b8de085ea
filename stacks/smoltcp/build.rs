//! Copies the files of smoltcp's controllers: a module of another file's path would look for its parts beside itself.

#[path = "../adapter/fetched.rs"]
mod fetched;

use std::fs;
use std::path::PathBuf;

fn main() {
    let source = fetched::folder("smoltcp-0.14.0").join("src");
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let module = |name: &str, text: String| {
        fs::write(out.join(format!("{name}.rs")), text).expect("OUT_DIR can be written");
    };
    let tcp = source.join("socket/tcp");
    let copy = out.join("congestion");
    fs::create_dir_all(&copy).expect("OUT_DIR can be written");
    fs::copy(tcp.join("congestion.rs"), copy.join("mod.rs")).expect("smoltcp has this file");
    for part in ["cubic.rs", "no_control.rs", "reno.rs"] {
        fs::copy(tcp.join("congestion").join(part), copy.join(part)).expect("smoltcp has this file");
    }
    let named =
        |name: &str, path: PathBuf| format!("#[allow(warnings)]\n#[path = {path:?}]\npub mod {name};\n");
    module("control", named("congestion", copy.join("mod.rs")));
    module("time", named("time", source.join("time.rs")));
}
