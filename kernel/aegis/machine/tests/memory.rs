//! What environments have for the compiler's `memcpy` and its kin does what C says, for all small
//! sizes, overlaps and differences: the assembly runs here, under names of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn memory_is_moved_filled_and_compared() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a folder");
    let source = here.join("../environment/src/start/memory.s");
    let source = fs::read_to_string(source).expect("the assembly");
    let own = ["memcpy", "memmove", "memset", "memcmp", "bcmp"];
    let source = own.iter().fold(source, |text, name| {
        text.replace(name, &format!("own_{name}"))
    });
    // Of `.text.own_...` nothing else is called so.
    let assembly = folder.path().join("memory.s");
    fs::write(&assembly, source).expect("written");
    let program = folder.path().join("memory");
    let compiled = Command::new("gcc")
        .args(["-O1", "-Wall", "-fno-builtin", "-o"])
        .arg(&program)
        .arg(here.join("tests/memory.c"))
        .arg(&assembly)
        .output()
        .expect("gcc");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let ran = Command::new(&program).output().expect("it runs");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}");
}
