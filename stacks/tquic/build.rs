//! Names the files of tquic, wherever Cargo keeps them.

#[path = "../adapter/fetched.rs"]
mod fetched;

fn main() {
    let source = fetched::folder("tquic-1.6.0").join("src");
    let module = |file: &str, name: &str| {
        format!("#[path = {:?}]\npub mod {name};\n", source.join(file).to_str().expect("a path in UTF-8"))
    };
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let control = module("congestion_control/congestion_control.rs", "congestion_control");
    std::fs::write(out.join("control.rs"), control).expect("OUT_DIR can be written");
    std::fs::write(out.join("rtt.rs"), module("connection/rtt.rs", "rtt")).expect("OUT_DIR can be written");
}
