//! The kernel's own protections, each provoked in a machine that then ends by a panic: its words,
//! its status, and a backtrace with names.

use std::time::Duration;

use postern_aegis_machine::emulator::{self, Machine};
use postern_aegis_machine::status::Status;
use postern_aegis_machine::{build, software};

/// What is provoked, and what the panic says of it: an exception and its code. In the code of a
/// page fault 1 is "present", 2 "written", 16 "executed".
const PROVOKED: &[(&str, &str)] = &[
    ("panic", "provoked"),
    ("execute-user", "exception 14 in the kernel: code 0x11"),
    ("read-user", "exception 14 in the kernel: code 0x1"),
    ("write-text", "exception 14 in the kernel: code 0x3"),
    ("write-constant", "exception 14 in the kernel: code 0x3"),
    ("execute-data", "exception 14 in the kernel: code 0x11"),
    (
        "write-text-elsewhere",
        "exception 14 in the kernel: code 0x3",
    ),
    (
        "execute-text-elsewhere",
        "exception 14 in the kernel: code 0x11",
    ),
    ("overflow", "exception 8 in the kernel"),
];

#[test]
fn what_protections_forbid_is_a_panic_with_a_backtrace() {
    if !emulator::is_there() {
        return println!("SKIPPED: there is no emulator");
    }
    build::all().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut software = software::prepare("hello", &[], folder.path()).unwrap();
    for (name, words) in PROVOKED {
        software.line = format!("provoke={name}");
        let machine = Machine {
            limit: Duration::from_secs(60),
            ..Machine::default()
        };
        let ended = machine.run(&software, |_| ()).unwrap();
        let said = ended.lines.join("\n");
        assert!(said.contains(words), "{name}: {said}");
        assert_eq!(ended.status, Status::Panic, "{name}: {said}");
        let caller = match *name {
            "overflow" => "provoke::overflow+",
            _ => "kernel_first+",
        };
        assert!(said.contains(caller), "{name}: no names: {said}");
    }
}
