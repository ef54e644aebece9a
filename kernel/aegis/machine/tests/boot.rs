//! Aegis in an emulator: its own tests, calls at random, exact figures, what its page tables allow,
//! and what the machine's end says.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use postern_aegis_abi::address;
use postern_aegis_machine::archive::Archive;
use postern_aegis_machine::emulator::{self, Ended, Machine, Software};
use postern_aegis_machine::status::Status;
use postern_aegis_machine::{aegis, budgets, build, package, place, said, software};

/// How long calls are made at random.
const SECONDS: u64 = 15;

/// Builds once; false, and a word, if there is no emulator.
fn ready() -> bool {
    static READY: OnceLock<bool> = OnceLock::new();
    *READY.get_or_init(|| {
        if !emulator::is_there() {
            println!("SKIPPED: no qemu-system-x86_64; `make setup-aegis` installs it");
            return false;
        }
        build::all().expect("kernel and programs build");
        true
    })
}

/// Runs a root program with parameters.
fn run(machine: &Machine, root: &str, parameters: &[(&str, &str)]) -> Ended {
    let folder = tempfile::tempdir().expect("a folder");
    let parameters = parameters.iter();
    let parameters: Vec<_> = parameters
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    let software = software::prepare(root, &parameters, folder.path()).expect("a package");
    machine.run(&software, |_| ()).expect("an emulator")
}

fn processors(processors: u32) -> Machine {
    Machine {
        processors,
        limit: Duration::from_secs(240),
        ..Machine::default()
    }
}

/// With all devices.
fn whole(number: u32) -> Machine {
    Machine {
        network: true,
        disk: true,
        ..processors(number)
    }
}

#[track_caller]
fn assert_well(ended: &Ended) {
    assert!(
        ended.status.is_well(),
        "{}\n{}",
        ended.status,
        ended.lines.join("\n")
    );
}

/// What a machine with these devices says of all scenarios, or of those whose names have a word.
fn scenarios_pass(machine: &Machine, devices: &str, only: &str) -> usize {
    let ended = run(machine, "tests", &[("only", only)]);
    assert_well(&ended);
    let tests = said::tests(ended.lines.iter().map(String::as_str));
    let failed: Vec<_> = tests.iter().filter(|test| !test.passed).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    let has_devices = ended.lines.iter().any(|line| line == devices);
    assert!(has_devices, "{devices}\n{}", ended.lines.join("\n"));
    tests.len()
}

fn tests_pass(number: u32) {
    if ready() {
        let tests = scenarios_pass(&whole(number), "a network, a disk", "");
        assert!(tests > 150, "{tests} tests");
    }
}

#[test]
fn tests_pass_on_one_processor() {
    tests_pass(1);
}

#[test]
fn tests_pass_on_two_processors() {
    tests_pass(2);
}

#[test]
fn without_devices_there_are_errors() {
    if ready() {
        let machine = processors(1);
        let nothing = "no network, no disk";
        assert!(scenarios_pass(&machine, nothing, "disk.") > 10);
        assert!(scenarios_pass(&machine, nothing, "network.") > 5);
    }
}

/// A disk whose first block begins with eight bytes that a scenario looks for.
fn image(folder: &Path, first: &[u8; 8]) -> (PathBuf, Vec<u8>) {
    let mut contents = vec![0; emulator::DISK as usize];
    for (at, byte) in contents.iter_mut().enumerate() {
        *byte = (at / 4096 * 7 + at % 251) as u8;
    }
    contents[..8].copy_from_slice(first);
    let path = folder.join("disk");
    std::fs::write(&path, &contents).expect("a disk");
    (path, contents)
}

/// Bytes that the host wrote are those that are read inside, and the other way.
#[test]
fn the_host_sees_the_same_disk() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (path, contents) = image(folder.path(), b"rom host");
    let machine = Machine {
        image: Some(path.clone().into()),
        ..whole(1)
    };
    scenarios_pass(&machine, "a network, a disk", "disk.host");
    let after = std::fs::read(&path).expect("the disk");
    let last = after.len() - 4096;
    assert!(after[..last] == contents[..last], "a block changed");
    let inverted: Vec<u8> = contents[5 * 4096..6 * 4096].iter().map(|b| !b).collect();
    assert!(
        after[last..] == inverted,
        "the last block is not the sixth, inverted"
    );
}

/// Errors of the device itself.
#[test]
fn a_disk_that_fails() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (path, _) = image(folder.path(), b"is fails");
    let rules = folder.path().join("rules");
    let rule = |event: &str| {
        format!("[inject-error]\nevent = \"{event}\"\nerrno = \"5\"\nsector = \"72\"\n")
    };
    let both = [rule("read_aio"), rule("write_aio")].concat();
    std::fs::write(&rules, both).expect("rules");
    let machine = Machine {
        image: Some(format!("blkdebug:{}:{}", rules.display(), path.display()).into()),
        ..whole(1)
    };
    scenarios_pass(&machine, "a network, a disk", "disk.fails");
}

/// A seed that differs from day to day would be a test that fails on some days: `make soak` has it.
fn survives_calls_at_random(number: u32) {
    if !ready() {
        return;
    }
    let (seed, seconds) = (number.to_string(), SECONDS.to_string());
    let parameters = [("seed", &*seed), ("seconds", &*seconds)];
    assert_well(&run(&whole(number), "fuzz", &parameters));
}

#[test]
fn calls_at_random_on_one_processor() {
    survives_calls_at_random(1);
}

#[test]
fn calls_at_random_on_two_processors() {
    survives_calls_at_random(2);
}

#[test]
fn figures_are_the_budgets() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let measured = aegis::operations(folder.path());
    let mut figures = measured.expect("figures of operations");
    let measured = aegis::messages(folder.path());
    figures.extend(measured.expect("figures of messages"));
    let held = |name: &str| !budgets::NOT_HELD.contains(&name);
    let wrong: Vec<String> = figures
        .iter()
        .filter(|(name, _)| held(name))
        .filter_map(|(name, figure)| {
            let (found, budget) = (figure.instructions, budgets::of(name));
            let told = format!("{name}: {found} instructions, the budget is {budget:?}");
            (!keeps(name, found, budget)).then_some(told)
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "a change of a figure is a change of src/budgets.rs:\n{}",
        wrong.join("\n")
    );
    for (name, _) in budgets::all() {
        assert!(figures.contains_key(*name), "{name} was not measured");
    }
    // Of what the paper's tables have, nothing
    // returns by iret or writes a model-specific register, and only who changes spaces loads CR3.
    for (name, figure) in figures {
        let Some(heavy) = figure.heavy else { continue };
        let of_transfer = ["synchronous", "asynchronous", "yield"].contains(&&*name);
        if of_transfer || budgets::ASSEMBLY.iter().any(|(row, _)| *row == name) {
            let cr3 = if of_transfer {
                figure.repeats
            } else {
                u64::from(name == "flush-all")
            };
            assert_eq!((heavy.iret, heavy.wrmsr, heavy.cr3), (0, 0, cr3), "{name}");
        }
    }
}

/// Exactly, or within a twentieth where somebody outside has a part in it, or within a tenth of
/// what another compiler's code takes.
fn keeps(name: &str, found: u64, budget: Option<u64>) -> bool {
    let Some(budget) = budget else { return false };
    let version = std::process::Command::new("rustc")
        .arg("--version")
        .output();
    let same = version.is_ok_and(|version| {
        String::from_utf8_lossy(&version.stdout).starts_with(budgets::COMPILER)
    });
    let among = |table: &[(&str, u64)]| table.iter().any(|(row, _)| *row == name);
    let beside = if among(budgets::WAITING) {
        budget / 20
    } else {
        0
    };
    let compiled = !same && !among(budgets::ASSEMBLY);
    let other = if compiled { budget / 10 } else { 0 };
    found.abs_diff(budget) <= beside.max(other)
}

/// A package of a root program in machine code.
fn flat(folder: &Path, code: &[u8], archive: Archive) -> Software {
    let kernel = build::elf("aegis").expect("the kernel");
    let bytes = package::pack_flat(code, archive, &kernel).expect("a package");
    let initial = emulator::write(folder, "package", &bytes).expect("a file");
    Software {
        kernel: place::program("aegis"),
        initial,
        line: String::new(),
    }
}

/// `jmp .`: a root program that does nothing, and no end of a slice ends it.
const LOOP: [u8; 2] = [0xeb, 0xfe];

/// What QEMU's monitor answers to some commands once the kernel has started its root.
fn asked(number: u32, commands: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("monitor");
    let option = format!("unix:{},server,nowait", socket.display());
    let machine = Machine {
        more: vec!["-monitor".into(), option.into()],
        limit: Duration::from_secs(60),
        ..processors(number)
    };
    let software = flat(folder.path(), &LOOP, Archive::default());
    let mut answers = None;
    let ended = machine.run(&software, |line| {
        if answers.is_none() && line.starts_with("aegis: ") {
            answers = Some(ask(&socket, commands).expect("a monitor"));
        }
    });
    assert_eq!(ended.expect("an emulator").status, Status::Silent);
    answers.expect("the kernel's first line")
}

fn ask(socket: &Path, commands: &[&str]) -> std::io::Result<String> {
    let mut monitor = UnixStream::connect(socket)?;
    until_prompt(&mut monitor)?;
    let mut answer = |command: &str| {
        writeln!(monitor, "{command}")?;
        until_prompt(&mut monitor)
    };
    // The first processor is the kernel's own until the root begins.
    let root = format!("{:016x}-", address::ROOT_PROGRAM);
    while !answer("info mem")?.contains(&root) {
        std::thread::sleep(Duration::from_millis(20));
    }
    answer("stop")?;
    let answers: std::io::Result<String> = commands.iter().map(|command| answer(command)).collect();
    // The machine's end cuts this one off.
    answer("quit").ok();
    answers
}

/// What the monitor says until it waits for the next command.
fn until_prompt(monitor: &mut UnixStream) -> std::io::Result<String> {
    let (mut said, mut bytes) = (Vec::new(), [0; 1 << 16]);
    while !said.ends_with(b"\n(qemu) ") {
        match monitor.read(&mut bytes)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => said.extend(&bytes[..read]),
        }
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// The kernel's half: nothing is both writable and executable, or a user's. What all can read of it
/// in the lower half, nobody writes.
#[test]
fn page_tables_in_use_keep_writing_and_executing_apart() {
    if !ready() {
        return;
    }
    let answers = asked(2, &["info tlb", "info mem"]);
    let (mut kernel, mut executable) = (0, 0);
    for line in answers.lines() {
        // `ADDRESS: PHYSICAL XGPDACTUW`, with X for pages that are not executed.
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, _, flags] = words[..] else {
            continue;
        };
        let address = u64::from_str_radix(address.trim_end_matches(':'), 16);
        let (Ok(address), 9) = (address, flags.len()) else {
            continue;
        };
        if address >> 63 != 0 {
            kernel += 1;
            let (fixed, write) = (flags.starts_with('X'), flags.ends_with('W'));
            executable += u32::from(!fixed);
            assert!(fixed || !write, "{line}");
            assert_eq!(&flags[7..8], "-", "{line}");
        }
    }
    assert!(kernel > 100 && executable > 0, "{kernel} {executable}");
    // `START-END SIZE urw`, with the flags of all levels taken together.
    let mut shared = 0;
    for line in answers.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [range, _, flags] = words[..] else {
            continue;
        };
        let start = range
            .split_once('-')
            .map(|(start, _)| u64::from_str_radix(start, 16));
        let Some(Ok(start)) = start else { continue };
        if (0x7f00_0000_0000..1 << 47).contains(&start) {
            shared += 1;
            assert!(flags.ends_with("r-"), "{line}");
        }
    }
    assert!(shared >= 2, "{shared}");
}

/// A panic tells who called whom by name, and the machine's end says that it was one.
#[test]
fn a_panic_has_a_backtrace_with_names() {
    if !ready() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // There is no memory for the root's copy of it.
    let mut archive = Archive::default();
    archive.file("large", &vec![0; 40 << 20]);
    let software = flat(folder.path(), &LOOP, archive);
    let machine = Machine {
        memory: 64,
        ..processors(1)
    };
    let ended = machine.run(&software, |_| ()).expect("an emulator");
    assert_eq!(ended.status, Status::Panic, "{}", ended.lines.join("\n"));
    let said = ended.lines.join("\n");
    assert!(said.contains("the root environment: "), "{said}");
    assert!(said.contains("kernel_first+0x"), "{said}");
}

#[test]
fn the_smallest_root_stops_the_machine() {
    if !ready() {
        return;
    }
    for number in [1, 2, 8] {
        let ended = run(&processors(number), "hello", &[]);
        assert_well(&ended);
        assert!(
            ended
                .lines
                .iter()
                .any(|line| line == "hello from environment 1"),
            "{:?}",
            ended.lines
        );
    }
}

/// What the guide shows on devices does what it says there.
#[test]
fn frames_go_back() {
    if !ready() {
        return;
    }
    let machine = Machine {
        network: true,
        ..processors(1)
    };
    let ended = run(&machine, "echo", &[]);
    assert_well(&ended);
    let said = |line: &str| ended.lines.iter().filter(|said| *said == line).count();
    assert_eq!(said("60 bytes went back"), 3, "{:?}", ended.lines);
    assert_eq!(said("three frames went back"), 1, "{:?}", ended.lines);
    let ended = run(&processors(1), "echo", &[]);
    let said = ended.lines.iter().find(|line| line.starts_with("echo: "));
    assert_eq!(
        said.map(String::as_str),
        Some("echo: The machine has no such device.")
    );
}

/// The monitor shows the books, starts and ends an environment, and stops the machine.
#[test]
fn the_monitor_answers() {
    if !ready() {
        return;
    }
    // The first bytes may come before the kernel listens.
    let typed = "\n\n\nenvironments\nslices\nrun player 0 2\nkill 3\nnonsense\nstop 7\n";
    let machine = Machine {
        typed: typed.to_owned(),
        ..processors(2)
    };
    let ended = run(&machine, "monitor", &[]);
    let said = ended.lines.join("\n");
    assert_eq!(ended.status, Status::Stopped(7), "{said}");
    for answer in [
        "  position  0: environment 1",
        "environment 3 runs on processor 1",
        "environment 3 ends",
        "nonsense: no such command",
    ] {
        assert!(said.contains(answer), "{answer}\n{said}");
    }
}
