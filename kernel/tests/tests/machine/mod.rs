//! A machine in an emulator, with one of Debian's kernels, the module, and one program.
#![allow(dead_code)] // Each test program uses a part.

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs one of the scripts of `kernel/linux`; they say what is wrong.
pub fn script(name: &str, words: &[&Path]) {
    let output = Command::new(workspace().join("kernel/linux").join(name))
        .args(words)
        .output()
        .expect("bash is there");
    assert!(
        output.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The folder of a kernel (`6.1`), if `make setup-kernel` could fetch it.
pub fn kernel(version: &str) -> Option<PathBuf> {
    let folder = workspace().join("target/linux").join(version);
    let there = folder.join("vmlinuz").exists() && folder.join("headers/Makefile").exists();
    there.then_some(folder)
}

/// A file system in the form in which kernels take their first one: the `newc` form of cpio.
#[derive(Default)]
pub struct FirstFiles {
    bytes: Vec<u8>,
    count: u32,
}

impl FirstFiles {
    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.count += 1;
        let size = content.len() as u32;
        let fields = [self.count, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1];
        let mut head = String::from("070701");
        for field in fields.into_iter().chain([name.len() as u32 + 1, 0]) {
            write!(head, "{field:08x}").expect("strings take everything");
        }
        self.bytes
            .extend(head.bytes().chain(name.bytes()).chain([0]));
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// A folder, and those that it lies in.
    pub fn folder(&mut self, name: &str) {
        if let Some((parent, _)) = name.rsplit_once('/') {
            self.folder(parent);
        }
        self.entry(name, 0o040755, (0, 0), &[]);
    }

    pub fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, 0o100755, (0, 0), content);
    }

    /// A program, with the libraries that it is linked with.
    pub fn program(&mut self, name: &str, program: &Path) {
        self.file(name, &std::fs::read(program).expect("the program"));
        let output = Command::new("ldd").arg(program).output().expect("ldd");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for path in text.split_whitespace().filter(|word| word.starts_with('/')) {
            let name = path.trim_start_matches('/');
            self.folder(name.rsplit_once('/').expect("a folder").0);
            self.file(name, &std::fs::read(path).expect("a library"));
        }
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.entry("dev/console", 0o020600, (5, 1), &[]);
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }
}

/// Whether the emulator ended the machine. The kernel patches its own instructions while other
/// processors run: it writes int3 first, and takes it away when all have been told. A processor of
/// the emulator's may still execute it then (seen in `sched_clock_cpu` at boot, with no module
/// loaded), and nobody knows that trap any more. Traps of extensions lie in the module.
fn is_a_stale_trap(shown: &str) -> bool {
    let mut lines = shown.lines();
    lines.any(|line| line.contains("int3: 0000 [#1]"))
        && lines
            .find(|line| line.contains("RIP: 0010:"))
            .is_some_and(|line| !line.contains("[postern]"))
}

/// Boots, and returns what the console showed until the machine ended itself. A machine that hangs
/// is ended after some minutes, and one that the emulator has ended is booted again.
pub fn boot(kernel: &Path, files: &Path, processors: u32, options: &str) -> String {
    let mut shown = boot_once(kernel, files, processors, options);
    for _ in 0..2 {
        if !is_a_stale_trap(&shown) {
            break;
        }
        println!(
            "The emulator executed an instruction that was no longer there; once more:\n{shown}"
        );
        shown = boot_once(kernel, files, processors, options);
    }
    shown
}

fn boot_once(kernel: &Path, files: &Path, processors: u32, options: &str) -> String {
    let line = format!("console=ttyS0 quiet loglevel=5 panic=-1 oops=panic reboot=t {options}");
    let mut child = Command::new("timeout")
        .args([
            "-k",
            "5",
            "900",
            "qemu-system-x86_64",
            "-accel",
            "tcg,thread=multi",
        ])
        .args(["-cpu", "max", "-m", "512", "-nodefaults", "-no-user-config"])
        .args(["-display", "none", "-no-reboot", "-serial", "stdio"])
        .args(["-smp", &processors.to_string(), "-append", &line])
        .arg("-kernel")
        .arg(kernel.join("vmlinuz"))
        .arg("-initrd")
        .arg(files)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("timeout is there");
    let mut shown = Vec::new();
    let console = child.stdout.as_mut().expect("it is piped");
    console.read_to_end(&mut shown).expect("a console");
    child.wait().expect("it has ended");
    String::from_utf8_lossy(&shown).into_owned()
}
