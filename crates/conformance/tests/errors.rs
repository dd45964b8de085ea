//! Does an error name its place and what is allowed?

use lfn_conformance::Record;

const BYTES: usize = std::mem::size_of::<Record>();

fn refused(bytes: &[u8]) -> String {
    Record::read_all(bytes).unwrap_err().to_string()
}

#[test]
fn records_that_cannot_be_read_are_named() {
    assert_eq!(refused(&[0; 7]), format!("records: 7 bytes; allowed: a multiple of {BYTES}"));
    // Words: socket, sequence, call.
    let mut one = vec![0; BYTES];
    one[16] = 9;
    assert_eq!(refused(&one), "records: number 0 is of call 9; allowed: 0 to 7");
    one[8] = 1;
    assert_eq!(refused(&one), "records: number 0 is missing: the ring buffer was full");
}

#[test]
fn a_law_that_is_not_of_the_kernel_is_answered_with_those_that_are() {
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_lfn-conformance"))
        .args(["copa", "records"])
        .output()
        .unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(
        said.contains("no law \"copa\" of the kernel; allowed: ") && said.contains(", cubic, "),
        "{said}"
    );
}
