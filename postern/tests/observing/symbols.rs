//! Symbols for perf and GDB, as these tools read them.
use super::support::succeeds_in_child;
use postern::{Config, Domain, HotWindow, Image, Perf, Placement, hot_window};
use postern_toolchain::{Build, Language};
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "\
static volatile long total;
__attribute__((noinline)) static long sum_inner(long n)
{
\ttotal += n;
\tif (n == 7)
\t\t__builtin_trap();
\treturn total;
}
long outer(long n)
{
\treturn sum_inner(n) + 1;
}
";

fn compiled(directory: &Path) -> Image {
    let (source, extension) = (directory.join("sums.c"), directory.join("sums.px"));
    std::fs::write(&source, SOURCE).unwrap();
    let build = Build::new(Language::C).file(&source).flags(["-O1"]);
    build.output(&extension).run().unwrap();
    Image::load(&extension).unwrap()
}

/// A new directory in which the process works from now on.
fn work_in_new_directory() -> PathBuf {
    let name = format!("postern-symbols-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    std::env::set_current_dir(&directory).unwrap();
    directory
}

fn start(perf: Perf, debugger: bool) {
    let mut config = Config::default();
    (config.perf, config.debugger) = (perf, debugger);
    postern::init(config).unwrap();
}

fn domain(image: &Image) -> Domain {
    let builder = Domain::builder(image).name("summer");
    builder.placement(Placement::Cold).build().unwrap()
}

/// Moves the domain, if there is a hot window, and returns the bases that it had.
fn bases(domain: &Domain) -> Vec<u64> {
    let mut bases = vec![domain.base()];
    if hot_window() == HotWindow::Free {
        domain.set_placement(Placement::Hot);
        assert!(domain.is_hot());
        bases.push(domain.base());
    }
    bases
}

#[test]
fn the_map_names_functions_wherever_the_domain_lies() {
    succeeds_in_child(
        "symbols::the_map_names_functions_wherever_the_domain_lies",
        || {
            start(Perf::Map, false);
            let directory = work_in_new_directory();
            let image = compiled(&directory);
            let d = domain(&image);
            let exports = &image.tables().exports;
            let outer = exports.iter().find(|e| &*e.name == "outer").unwrap().offset;
            let path = format!("/tmp/perf-{}.map", std::process::id());
            let bases = bases(&d);
            let text = std::fs::read_to_string(&path).unwrap();
            for base in bases {
                let address = base + u64::from(outer);
                let found = text.lines().any(|line| {
                    let mut words = line.splitn(3, ' ');
                    let mut number = || u64::from_str_radix(words.next().unwrap(), 16).unwrap();
                    let (at, size) = (number(), number());
                    at == address && size > 0 && words.next() == Some("outer [summer]")
                });
                assert!(found, "{address:#x} in\n{text}");
            }
            std::fs::remove_file(path).unwrap();
            std::fs::remove_dir_all(directory).unwrap();
        },
    );
}

/// Reads the records of a jitdump: kind, time, contents.
fn records(dump: &[u8]) -> Vec<(u32, u64, &[u8])> {
    let word = |at: usize| u32::from_le_bytes(dump[at..at + 4].try_into().unwrap());
    let long = |at: usize| u64::from_le_bytes(dump[at..at + 8].try_into().unwrap());
    assert_eq!(&dump[..4], b"DTiJ");
    assert_eq!((word(4), word(8), word(12)), (1, 40, 62));
    assert_eq!(word(20), std::process::id());
    let (mut at, mut all) = (40, Vec::new());
    while at < dump.len() {
        let length = word(at + 4) as usize;
        all.push((word(at), long(at + 8), &dump[at + 16..at + length]));
        at += length;
    }
    assert_eq!(at, dump.len());
    assert!(all.is_sorted_by_key(|record| record.1));
    all
}

#[test]
fn the_dump_has_names_lines_and_code() {
    succeeds_in_child("symbols::the_dump_has_names_lines_and_code", || {
        start(Perf::Jitdump, false);
        let directory = work_in_new_directory();
        let image = compiled(&directory);
        let d = domain(&image);
        let bases = bases(&d);
        let path = directory.join(format!("jit-{}.dump", std::process::id()));
        let dump = std::fs::read(&path).unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mark = format!("jit-{}.dump", std::process::id());
        let mark = maps.lines().find(|line| line.contains(&mark)).unwrap();
        assert!(mark.contains("r-xp"), "perf sees no mark: {mark}");
        let records = records(&dump);
        let long =
            |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let exports = &image.tables().exports;
        let outer = exports.iter().find(|e| &*e.name == "outer").unwrap().offset;
        for base in bases {
            let address = base + u64::from(outer);
            let load = records
                .iter()
                .find(|(kind, _, r)| *kind == 0 && long(r, 16) == address);
            let load = load.expect("a record for outer").2;
            assert!(load[40..].starts_with(b"outer [summer]\0"));
            let code = &load[40 + 15..];
            assert_eq!(code.len() as u64, long(load, 24));
            assert_eq!(
                code,
                d.read_vec(postern::Offset(outer), code.len()).unwrap()
            );
            let lines = records
                .iter()
                .find(|(kind, _, r)| *kind == 2 && long(r, 0) == address);
            let lines = lines.expect("lines of outer").2;
            assert!(long(lines, 8) >= 1 && (address..address + 16).contains(&long(lines, 16)));
            assert_eq!(u32::from_le_bytes(lines[24..28].try_into().unwrap()), 10);
            let file = lines[32..].split(|&b| b == 0).next().unwrap();
            assert!(file.ends_with(b"sums.c"));
        }
        std::fs::remove_dir_all(directory).unwrap();
    });
}

/// What the debugger runs: calls, then a call that traps, in another window each.
#[test]
fn host_for_the_debugger() {
    if std::env::var_os("POSTERN_GDB").is_none() {
        return;
    }
    let directory = work_in_new_directory();
    let image = compiled(&directory);
    let d = domain(&image);
    bases(&d);
    let outer = d.func::<fn(i64) -> i64>("outer").unwrap();
    assert_eq!(outer.call(3).unwrap(), 4);
    let former = d.base();
    d.set_placement(if d.is_hot() {
        Placement::Cold
    } else {
        Placement::Hot
    });
    assert_ne!(d.base(), former);
    assert!(outer.call(7).is_err());
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn gdb_stops_in_extensions_and_shows_where() {
    if Command::new("gdb").arg("--version").output().is_err() {
        eprintln!("gdb is not installed, so nothing is tested");
        return;
    }
    let output = Command::new("gdb")
        .args(["-batch", "-nx", "-ex", "set breakpoint pending on"])
        .args([
            "-ex",
            "set env POSTERN_GDB=1",
            "-ex",
            "handle SIG61 SIG62 nostop noprint pass",
        ])
        .args(["-ex", "break sum_inner", "-ex", "run", "-ex", "backtrace 2"])
        .args(["-ex", "continue", "-ex", "backtrace 2", "-ex", "continue"])
        .args(["-ex", "backtrace 1", "-ex", "kill", "--args"])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "symbols::host_for_the_debugger",
            "--nocapture",
            "--test-threads=1",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let all = format!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let frames: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
    let shows = |n: usize, function: &str, lines: &[u32]| {
        let line = frames
            .get(n)
            .unwrap_or_else(|| panic!("frame {n} of\n{all}"));
        let place = |l: &u32| line.ends_with(&format!("sums.c:{l}"));
        assert!(
            line.contains(&format!("{function} (")) && lines.iter().any(place),
            "{line}\n{all}"
        );
    };
    // The second call is made in another window.
    for n in [0, 2] {
        shows(n, "sum_inner", &[3, 4, 5]);
        // The line of the call, or the one behind it.
        shows(n + 1, "outer", &[10, 11]);
    }
    // No breakpoint that was moved along, but the extension's own trap.
    assert!(
        text.contains("SIGILL") && !text.contains("SIGTRAP"),
        "{all}"
    );
    shows(4, "sum_inner", &[6]);
}
