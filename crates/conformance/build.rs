//! Compiles the kernel's shim of every law that has the target `kernel`, as ordinary C.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("../..").canonicalize().unwrap();
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    let objects = root.join("python/lfnlab/kernel/objects");
    for path in [&root.join("laws"), &root.join("kernel"), &objects] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rerun-if-changed=src");
    let mut build = cc::Build::new();
    build.include(root.join("laws")).include(root.join("kernel")).std("gnu11").opt_level(2);
    build.extra_warnings(false).file("src/image.c");
    let (mut externs, mut table) = (String::new(), String::new());
    for law in lfn_law::registry().iter().filter(|law| law.targets.contains(&"kernel")) {
        let (name, symbol) = (law.name, law.name.replace('-', "_"));
        // As kernel/laws has it.
        let flags = if law.family == "ecn" { "TCP_CONG_NEEDS_ECN" } else { "0" };
        let shim = match law.slow_start {
            lfn_law::SlowStartKind::None => format!("LFN_TCP_CONTROL_LAW({symbol}, {flags})"),
            kind => format!("LFN_TCP_LAW({symbol}, {}, {flags})", kind as u32),
        };
        let code = format!(
            "#include \"law.bpf.h\"\n#include \"{name}.h\"\n{shim};\n\
             const struct tcp_congestion_ops *shim_{symbol}(void);\n\
             const struct tcp_congestion_ops *shim_{symbol}(void) {{ return &lfn_{symbol}; }}\n"
        );
        let source = out.join(format!("shim_{symbol}.c"));
        fs::write(&source, code).unwrap();
        build.file(source);
        let object = objects.join(format!("{name}.bpf.o"));
        let _ = writeln!(externs, "    fn shim_{symbol}() -> *const Operations;");
        let _ = writeln!(
            table,
            "    Law {{ name: {name:?}, operations: shim_{symbol}, object: include_bytes!({object:?}) }},"
        );
    }
    build.compile("lfn_shims");
    let code = format!("extern \"C\" {{\n{externs}}}\nstatic LAWS: &[Law] = &[\n{table}];\n");
    fs::write(out.join("laws.rs"), code).unwrap();
}
