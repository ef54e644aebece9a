//! The checks. Each reads a fact of the machine from the kernel's own tables and says what it means
//! here.

use std::fs;
use std::process::Command;
use std::time::Duration;

use postern::{Config, Domain, HotWindow, Image};
use postern_image::ImageBuilder;
use postern_verifier::window::{NULL_GUARD, WINDOW_SIZE};
use serde::Serialize;

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// It serves.
    Ok,
    /// Extensions run without it, with the drawback that is said.
    Note,
    /// Extensions do not run without it.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How it went.
    pub state: CheckStatus,
    /// What was found.
    pub found: String,
    /// What to do, where something is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// Mappings that a domain takes, at most.
const MAPPINGS_PER_DOMAIN: u64 = 6;
/// Address space that a window takes, in bytes.
const WINDOW_SPAN: u64 = WINDOW_SIZE + NULL_GUARD as u64;

/// All checks, in an order in which the first missing thing is the one to mend first.
pub fn all() -> Vec<Check> {
    let mut checks = vec![
        processor(),
        kernel(),
        fsgsbase(),
        vectors(),
        address_space(),
        memory_files(),
        signals(),
    ];
    checks.extend([trial(), hot_window(), lowest_address(), mappings()]);
    checks.extend(
        [
            ("gcc", "gcc"),
            ("g++", "g++"),
            ("as", "binutils"),
            ("ld", "binutils"),
        ]
        .map(|(t, p)| tool(t, p)),
    );
    checks.push(llvm());
    checks
}

fn check(name: &'static str, state: CheckStatus, found: impl Into<String>, remedy: &str) -> Check {
    let remedy = (state != CheckStatus::Ok).then(|| remedy.to_owned());
    Check {
        name,
        state,
        found: found.into(),
        remedy,
    }
}

fn needed(serves: bool) -> CheckStatus {
    if serves {
        CheckStatus::Ok
    } else {
        CheckStatus::Missing
    }
}

fn wanted(serves: bool) -> CheckStatus {
    if serves {
        CheckStatus::Ok
    } else {
        CheckStatus::Note
    }
}

/// A file of /proc without the end of line; empty if it is not there.
fn proc(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim_end()
        .to_owned()
}

/// The value of a line `name: value` of a file of /proc.
fn field(path: &str, name: &str) -> Option<String> {
    let line = |line: &str| {
        line.strip_prefix(name)?
            .strip_prefix(':')
            .map(|v| v.trim().to_owned())
    };
    proc(path).lines().find_map(line)
}

fn processor() -> Check {
    let model = field("/proc/cpuinfo", "model name\t").unwrap_or_else(|| "unknown model".into());
    let serves = cfg!(target_arch = "x86_64");
    check(
        "processor",
        needed(serves),
        model,
        "use a machine with an x86-64 processor",
    )
}

fn kernel() -> Check {
    let release = proc("/proc/sys/kernel/osrelease");
    let mut numbers = release
        .split(['.', '-'])
        .map(|n| n.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    check(
        "kernel",
        needed(version >= (5, 9)),
        format!("Linux {release}"),
        "use Linux 5.9 or later",
    )
}

/// An entry of the auxiliary vector, by its number in `elf.h`.
fn auxiliary(number: u64) -> Option<u64> {
    let vector = fs::read("/proc/self/auxv").ok()?;
    let word = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
    let mut entries = vector
        .chunks_exact(16)
        .map(|e| (word(&e[..8]), word(&e[8..])));
    entries.find(|e| e.0 == Some(number))?.1
}

fn fsgsbase() -> Check {
    const AT_HWCAP2: u64 = 26;
    let serves = auxiliary(AT_HWCAP2).unwrap_or(0) & 2 != 0;
    let found = if serves {
        "user code may set the gs base"
    } else {
        "the kernel does not let user code set the gs base"
    };
    let remedy = "use a processor of 2012 (Intel) or 2018 (AMD) or later with Linux 5.9 or later, \
                  and do not boot with nofsgsbase";
    check("FSGSBASE", needed(serves), found, remedy)
}

fn vectors() -> Check {
    #[cfg(target_arch = "x86_64")]
    let levels = [
        (std::arch::is_x86_feature_detected!("sse4.2"), "SSE4.2"),
        (std::arch::is_x86_feature_detected!("avx"), "AVX"),
        (std::arch::is_x86_feature_detected!("avx2"), "AVX2"),
        (std::arch::is_x86_feature_detected!("fma"), "FMA"),
        (std::arch::is_x86_feature_detected!("bmi2"), "BMI2"),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let levels = [(false, "SSE4.2")];
    let has: Vec<&str> = levels
        .iter()
        .filter_map(|&(has, name)| has.then_some(name))
        .collect();
    let found = if has.is_empty() {
        "SSE2 only".to_owned()
    } else {
        has.join(" ")
    };
    let remedy = "extensions compiled with -march=x86-64-v3 do not load here; compile with -march=x86-64-v2 or x86-64";
    check("vectors", wanted(has.len() == levels.len()), found, remedy)
}

/// The soft limit of a row of /proc/self/limits; `None` is unlimited.
fn limit(row: &str) -> Option<u64> {
    let limits = proc("/proc/self/limits");
    let line = limits.lines().find_map(|l| l.strip_prefix(row))?;
    line.split_whitespace().next()?.parse().ok()
}

fn address_space() -> Check {
    let limit = limit("Max address space");
    let found = match limit {
        None => "not limited".to_owned(),
        Some(bytes) => format!("limited to {}", crate::number::bytes(bytes)),
    };
    // The smallest pool, and as much again for the host.
    let serves = limit.is_none_or(|bytes| bytes >= 4 * WINDOW_SPAN);
    check(
        "address space",
        needed(serves),
        found,
        "raise the limit: ulimit -v unlimited",
    )
}

fn memory_files() -> Check {
    let value = proc("/proc/sys/vm/memfd_noexec");
    let found = match value.as_str() {
        "" => "executable memory files are allowed (the kernel knows no restriction)".to_owned(),
        value => format!("vm.memfd_noexec = {value}"),
    };
    let remedy = "allow executable memory files: sysctl vm.memfd_noexec=0";
    check("memory files", needed(value != "2"), found, remedy)
}

fn signals() -> Check {
    const NEEDED: [(u32, &str); 5] = [
        (4, "SIGILL"),
        (5, "SIGTRAP"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (11, "SIGSEGV"),
    ];
    let blocked = field("/proc/self/status", "SigBlk").unwrap_or_default();
    let blocked = u64::from_str_radix(&blocked, 16).unwrap_or(0);
    let names: Vec<&str> = NEEDED
        .iter()
        .filter(|(n, _)| blocked >> (n - 1) & 1 != 0)
        .map(|(_, name)| *name)
        .collect();
    let found = if names.is_empty() {
        "none of the fault signals is blocked".to_owned()
    } else {
        format!("blocked: {}", names.join(" "))
    };
    check(
        "signals",
        needed(names.is_empty()),
        found,
        "start this from a process that does not block them",
    )
}

/// The proof: an extension of four bytes is loaded, verified, instantiated and called.
fn trial() -> Check {
    let called = || -> Result<(), String> {
        // lea 2(%rdi), %eax; ret
        let mut builder = ImageBuilder::new([0x8d, 0x47, 0x02, 0xc3]);
        let signature = "i(i)".parse().map_err(|e| format!("{e}"))?;
        let file = builder
            .export("add_two", 0, Some(signature))
            .build()
            .map_err(|e| e.to_string())?;
        postern::init(Config::default()).map_err(|e| e.to_string())?;
        let image = Image::from_bytes(&file).map_err(|e| e.to_string())?;
        let deadline = Some(Duration::from_secs(1));
        let domain = Domain::builder(&image)
            .deadline(deadline)
            .build()
            .map_err(|e| e.to_string())?;
        let add_two = domain
            .func::<fn(i32) -> i32>("add_two")
            .map_err(|e| e.to_string())?;
        match add_two.call(40) {
            Ok(42) => Ok(()),
            Ok(other) => Err(format!("40 + 2 gave {other}")),
            Err(error) => Err(error.to_string()),
        }
    };
    match called() {
        Ok(()) => check(
            "trial",
            CheckStatus::Ok,
            "an extension was loaded, verified and called",
            "",
        ),
        Err(error) => check(
            "trial",
            CheckStatus::Missing,
            error,
            "mend what is missing above; if nothing is, report this",
        ),
    }
}

/// Asks the library, which the trial has started if it starts at all.
fn hot_window() -> Check {
    let remedy = "extensions run some percent slower; build hosts position-independent and without MAP_32BIT mappings";
    match postern::hot_window() {
        HotWindow::Occupied if limit("Max address space").is_some() => {
            let found = "the low 4 GiB cannot be reserved within the limit of address space";
            check(
                "hot window",
                CheckStatus::Note,
                found,
                "raise the limit: ulimit -v unlimited",
            )
        }
        HotWindow::Occupied => check(
            "hot window",
            CheckStatus::Note,
            "the low 4 GiB are in use by somebody else",
            remedy,
        ),
        HotWindow::Off => {
            let found = "not tried, because extensions do not run here";
            check(
                "hot window",
                CheckStatus::Note,
                found,
                "mend what is missing first",
            )
        }
        _ => check(
            "hot window",
            CheckStatus::Ok,
            "the low 4 GiB are free for the fastest window",
            "",
        ),
    }
}

fn lowest_address() -> Check {
    let lowest: u64 = proc("/proc/sys/vm/mmap_min_addr").parse().unwrap_or(0);
    let serves = lowest <= u64::from(NULL_GUARD);
    let found = format!("vm.mmap_min_addr = {lowest}");
    check(
        "lowest address",
        wanted(serves),
        found,
        "the hot window begins at 64 KiB: sysctl vm.mmap_min_addr=65536",
    )
}

fn mappings() -> Check {
    let most: u64 = proc("/proc/sys/vm/max_map_count").parse().unwrap_or(65530);
    let taken = proc("/proc/self/maps").lines().count() as u64;
    let domains = most.saturating_sub(taken) / MAPPINGS_PER_DOMAIN;
    let found = format!("vm.max_map_count = {most}: about {domains} domains in a process");
    check(
        "mappings",
        wanted(domains >= 10_000),
        found,
        "for more: sysctl vm.max_map_count=262144",
    )
}

fn tool(name: &'static str, package: &str) -> Check {
    let version = Command::new(name)
        .arg("--version")
        .output()
        .ok()
        .filter(|o| o.status.success());
    let line = version.and_then(|o| {
        String::from_utf8_lossy(&o.stdout)
            .lines()
            .next()
            .map(str::to_owned)
    });
    let remedy = format!("to compile extensions: apt install {package}");
    check(
        name,
        wanted(line.is_some()),
        line.unwrap_or_else(|| "not found".into()),
        &remedy,
    )
}

fn llvm() -> Check {
    let llc = postern_toolchain::llvm::llc();
    let remedy = format!(
        "to compile bitcode and Rust: {}",
        postern_toolchain::llvm::REMEDY
    );
    let found = llc.as_ref().map_or_else(
        || "not installed".to_owned(),
        |llc| llc.display().to_string(),
    );
    check(
        "LLVM 23",
        wanted(llc.is_some_and(|llc| llc.exists())),
        found,
        &remedy,
    )
}
