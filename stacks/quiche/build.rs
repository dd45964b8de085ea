//! Copies the files of quiche's controllers; src/recovery.rs stands for the one that ties them to the whole of quiche.

#[path = "../adapter/fetched.rs"]
mod fetched;

use std::fs;
use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=src/recovery.rs");
    let source = fetched::folder("quiche-0.30.0").join("src");
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let copy = out.join("congestion");
    fs::create_dir_all(&copy).expect("OUT_DIR can be written");
    let theirs = source.join("recovery/congestion");
    for part in ["cubic.rs", "delivery_rate.rs", "hystart.rs", "mod.rs", "prr.rs", "reno.rs"] {
        fs::copy(theirs.join(part), copy.join(part)).expect("quiche has this file");
    }
    fs::copy("src/recovery.rs", copy.join("recovery.rs")).expect("OUT_DIR can be written");
    let module = |text: &mut String, name: &str, path: PathBuf| {
        *text += &format!("#[allow(warnings)]\n#[path = {path:?}]\npub mod {name};\n");
    };
    let (mut root, mut recovery) = (String::new(), String::new());
    module(&mut root, "minmax", source.join("minmax.rs"));
    module(&mut recovery, "bandwidth", source.join("recovery/bandwidth.rs"));
    module(&mut recovery, "rtt", source.join("recovery/rtt.rs"));
    module(&mut recovery, "congestion", copy.join("mod.rs"));
    fs::write(out.join("root.rs"), root).expect("OUT_DIR can be written");
    fs::write(out.join("parts.rs"), recovery).expect("OUT_DIR can be written");
}
