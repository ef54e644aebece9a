//! `postern kernel` where no module is loaded: what is said of it, and of wrong arguments. What it
//! does at the device is tested in machines (`kernel/tests`).

use crate::program::{file, postern};

#[test]
fn without_the_module_it_says_what_to_do() {
    let device = "/dev/no-such-device";
    let image = file("none.pst", b"no image");
    let image = image.to_str().expect("a path");
    for arguments in [
        &["kernel", "list"][..],
        &["kernel", "load", image],
        &["kernel", "call", "1", "f", "-3"],
        &["kernel", "attach", "1", "f", "--timer", "5ms"],
        &["kernel", "map", "get", "1", "0", "=key"],
        &["kernel", "events", "1", "-c", "1"],
    ] {
        let told = postern(&[arguments, &["--device", device]].concat()).bad(2);
        assert!(
            told.contains("/dev/no-such-device: there is no such device")
                && told.contains("modprobe postern"),
            "{told}"
        );
    }
    // A device that is another's does not know the requests.
    let told = postern(&["kernel", "stats", "1", "--device", "/dev/zero"]).bad(2);
    assert!(told.contains("another version"), "{told}");
    let told = postern(&["kernel", "list", "--device", image]).bad(2);
    assert!(
        told.contains("another version") || told.contains("not permitted"),
        "{told}"
    );
}

#[test]
fn wrong_arguments_are_told_before_anything_is_asked() {
    for arguments in [
        &["attach", "1", "f"][..],
        &["attach", "1", "f", "--timer", "5ms", "--tracepoint", "x"],
        &["attach", "1", "f", "--timer", "5ms", "--priority", "3"],
        &[
            "attach",
            "1",
            "f",
            "--netfilter",
            "input",
            "--capture",
            "5000",
        ],
        &[
            "map",
            "make",
            "1",
            "0",
            "--key",
            "65",
            "--value",
            "8",
            "--entries",
            "1",
        ],
        &["map", "make", "1", "0", "--key", "4", "--value", "8"],
        &["load", "x.pst", "--allow", "everything"],
        &["load", "x.pst", "--limit", "5"],
        &["call", "1"],
    ] {
        let told = postern(&[&["kernel"], arguments].concat()).bad(2);
        assert!(!told.contains("no such device"), "{arguments:?}: {told}");
    }
    let help = postern(&["kernel", "load", "--help"]).good();
    assert!(
        help.contains("--on-fault") && help.contains("see-packets"),
        "{help}"
    );
}
