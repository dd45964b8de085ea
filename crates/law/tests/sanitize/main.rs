//! Builds every header with the sanitizers for undefined behaviour and memory, warnings as
//! errors, and drives it with random calls (driver.c).

use lfn_law::{registry, PARAMETER_ONE};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

#[test]
fn no_header_has_undefined_behaviour() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sanitize");
    fs::create_dir_all(&out).unwrap();
    let cc = env::var("CC").unwrap_or_else(|_| "cc".into());
    let program = out.join("driver");
    let mut build = Command::new(&cc);
    build.args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Wconversion", "-Werror"]);
    build.args(["-fsanitize=undefined,address", "-fno-sanitize-recover=all"]);
    build.arg("-I").arg(here.join("laws")).arg("-o").arg(&program);
    build.arg(here.join("tests/sanitize/driver.c"));

    // One object a law, as in the crate: laws may use the same names.
    let (mut externs, mut table) = (String::new(), String::new());
    for law in registry().iter().filter(|law| law.is_c()) {
        let name = law.name.replace('-', "_");
        let code = format!(
            "#include \"{}.h\"\nconst struct law_ops *get_{name}(void);\n\
             const struct law_ops *get_{name}(void) {{ return &law_ops_{name}; }}\n",
            law.name
        );
        let source = out.join(format!("{name}.c"));
        fs::write(&source, code).unwrap();
        build.arg(source);
        writeln!(externs, "const struct law_ops *get_{name}(void);").unwrap();
        // The bounds of each parameter, as law_config has its value.
        let bound = |value: f64| format!("{:.0}u", value * PARAMETER_ONE as f64);
        let bounds: Vec<_> =
            law.parameters.iter().map(|p| format!("{{ {}, {} }}", bound(p.low), bound(p.high))).collect();
        let (variants, bounds) = (law.variants.len(), bounds.join(", "));
        writeln!(table, "\t{{ \"{}\", get_{name}, {variants}, {{ {bounds} }} }},", law.name).unwrap();
    }
    let subjects = format!(
        "#include \"law.h\"\n\
         struct subject {{ const char *name; const struct law_ops *(*ops)(void); u32 variants; u64 bounds[LAW_PARAMETERS][2]; }};\n\
         {externs}extern const struct subject subjects[];\n\
         const struct subject subjects[] = {{\n{table}\t{{ 0 }},\n}};\n"
    );
    let source = out.join("subjects.c");
    fs::write(&source, subjects).unwrap();
    build.arg(source);

    let built = build.output().unwrap_or_else(|e| panic!("{cc}: {e}"));
    assert!(
        built.status.success(),
        "{cc} does not build the laws with sanitizers (it needs libubsan and libasan):\n{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let ran = Command::new(&program).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "no undefined behaviour\n");
}
