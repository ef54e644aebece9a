//! The demonstration behind `make demo`: one host that calls good extensions, is attacked by eight
//! bad ones, and goes on.
//!
//! `postern-demo DIRECTORY` expects the compiled examples there (demo/run.sh makes them) and exits
//! with 1 if anything does not go as promised; so does `postern-demo --site POSTERN FOLDER`, which
//! serves a site with that command.

mod error;
mod native;
mod picture;
mod site;

use error::Result;
use native::Native;
use postern::{CallError, Domain, FaultKind, Image, LoadError, Offset};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

const ROUNDS: u32 = 9;

/// What extensions are after.
const SECRET: u64 = 0x5ec2_e7c0_ffee;

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let result = match &arguments[..] {
        [directory] => run(directory),
        [option, postern, folder] if option.as_os_str() == "--site" => site::run(postern, folder),
        _ => {
            eprintln!(
                "usage: postern-demo DIRECTORY | postern-demo --site POSTERN FOLDER (see demo/run.sh)"
            );
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("postern-demo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(directory: &Path) -> Result<()> {
    println!("── Good extensions ──────────────────────────────────────────────");
    let gray = grayscale(directory)?;
    checksum(directory)?;
    call_cost(directory)?;
    println!("\n── Eight hostile extensions ─────────────────────────────────────");
    hostile(directory, &gray)?;
    println!("\nThe host is alive, its secret is intact, and the good extension still answers.");
    Ok(())
}

/// Best of several rounds of both, taken in turn, so that a noisy machine is noisy to both.
fn best(mut a: impl FnMut() -> Result<()>, mut b: impl FnMut()) -> Result<(Duration, Duration)> {
    let mut least = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        a()?;
        least.0 = least.0.min(start.elapsed());
        let start = Instant::now();
        b();
        least.1 = least.1.min(start.elapsed());
    }
    Ok(least)
}

fn report(what: &str, (confined, native): (Duration, Duration)) {
    println!(
        "  {what:<24} confined {:>9.3} ms   native {:>9.3} ms   ratio {:.3}",
        confined.as_secs_f64() * 1e3,
        native.as_secs_f64() * 1e3,
        confined.as_secs_f64() / native.as_secs_f64()
    );
}

fn grayscale(directory: &Path) -> Result<Domain> {
    let colored = picture::landscape(1280, 960);
    let domain = Domain::builder(&Image::load(directory.join("gray.px"))?).build()?;
    let gray = domain.func::<fn(Offset, u64) -> i64>("gray")?;
    let native = Native::open(&directory.join("gray.so"))?;

    let buffer = domain.alloc_from(&colored)?;
    let pixels = gray.call(buffer, colored.len() as u64)?;
    let result = domain.read_vec(buffer, colored.len())?;
    let mut expected = colored.clone();
    native.gray(&mut expected);
    if pixels != 1280 * 960 || result != expected {
        return Err("the confined picture differs from the native one".into());
    }
    std::fs::write(directory.join("landscape.ppm"), &colored)?;
    std::fs::write(directory.join("gray.ppm"), &result)?;
    println!(
        "  {} → {}: {pixels} pixels, equal to the native build's",
        directory.join("landscape.ppm").display(),
        directory.join("gray.ppm").display()
    );
    let mut copy = colored.clone();
    report(
        "grayscale",
        best(
            || Ok(gray.call(buffer, colored.len() as u64).map(|_| ())?),
            || {
                black_box(native.gray(&mut copy));
            },
        )?,
    );
    Ok(domain)
}

fn checksum(directory: &Path) -> Result<()> {
    let file = directory.join("landscape.ppm");
    let data = std::fs::read(&file)?;
    let domain = Domain::builder(&Image::load(directory.join("sha256.px"))?).build()?;
    let sha256 = domain.func::<fn(Offset, u64, Offset)>("sha256")?;
    let native = Native::open(&directory.join("sha256.so"))?;
    let (buffer, digest) = (domain.alloc_from(&data)?, domain.alloc(32)?);
    sha256.call(buffer, data.len() as u64, digest)?;
    let hex: String = domain
        .read_vec(digest, 32)?
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    let theirs = Command::new("sha256sum").arg(&file).output()?;
    let theirs = String::from_utf8_lossy(&theirs.stdout).into_owned();
    if !theirs.starts_with(&hex) {
        return Err(format!("sha256: {hex} differs from sha256sum's {theirs}").into());
    }
    println!("  SHA-256 {hex}, equal to sha256sum's");
    report(
        "SHA-256",
        best(
            || Ok(sha256.call(buffer, data.len() as u64, digest)?),
            || {
                black_box(native.sha256(&data));
            },
        )?,
    );
    Ok(())
}

fn call_cost(directory: &Path) -> Result<()> {
    const CALLS: i32 = 2_000_000;
    let domain = Domain::builder(&Image::load(directory.join("add.px"))?).build()?;
    let add = domain.func::<fn(i32, i32) -> i64>("add")?;
    extern "C" fn plain(a: i32, b: i32) -> i64 {
        i64::from(a) + i64::from(b)
    }
    let plain: extern "C" fn(i32, i32) -> i64 = black_box(plain);
    let (confined, native) = best(
        || {
            for i in 0..CALLS {
                black_box(add.call(i, 1)?);
            }
            Ok(())
        },
        || {
            for i in 0..CALLS {
                black_box(plain(i, 1));
            }
        },
    )?;
    let each = |d: Duration| d.as_secs_f64() * 1e9 / f64::from(CALLS);
    println!(
        "  a call                   confined {:>9.2} ns   native {:>9.2} ns   (`postern bench gates` gives cycles)",
        each(confined),
        each(native)
    );
    Ok(())
}

fn hostile(directory: &Path, good: &Domain) -> Result<()> {
    use FaultKind::*;
    let secret: u64 = SECRET;
    let secret: &u64 = black_box(&secret);
    let address = std::ptr::from_ref(secret) as u64;
    let host_code = main as *const () as u64;
    let domain = Domain::builder(&Image::load(directory.join("hostile.px"))?)
        .deadline(Some(Duration::from_millis(50)))
        .build()?;
    let attacks: [(&str, &str, u64, &[FaultKind]); 5] = [
        (
            "read a host secret",
            "read_secret",
            address,
            &[Read, NullPointer],
        ),
        (
            "write host memory",
            "write_host",
            address,
            &[Write, ReadOnly, NullPointer],
        ),
        ("jump into the host", "jump_to_host", host_code, &[BadJump]),
        ("endless loop", "endless_loop", 0, &[Deadline]),
        (
            "endless recursion",
            "endless_recursion",
            0,
            &[ControlStackOverflow, DataStackOverflow],
        ),
    ];
    for (what, function, argument, expected) in attacks {
        let outcome = domain.func::<fn(u64) -> i64>(function)?.call(argument);
        // Only the lower half of a host's address counts, and it may name a page of its own.
        match (function, outcome) {
            ("read_secret", Ok(read)) if read as u64 != *secret => own_page(what),
            ("write_host", Ok(_)) if intact(secret) => own_page(what),
            (_, outcome) => stopped(what, outcome, expected)?,
        }
        domain.reset()?;
        still_good(good)?;
    }
    // Where it does for sure: what is read and written is what lies there.
    let own = domain.alloc_from(&0x006f_776e_u64.to_le_bytes())?;
    let alias = address & !0xffff_ffff | u64::from(own.0);
    let read = domain.func::<fn(u64) -> i64>("read_secret")?.call(alias)?;
    domain.func::<fn(u64) -> i64>("write_host")?.call(alias)?;
    if read != 0x006f_776e || domain.read_vec(own, 8)? == 0x006f_776e_u64.to_le_bytes() {
        return Err(format!("an alias of its own page read {read:#x}").into());
    }
    domain.reset()?;
    // A forged return address has nothing to be forged: the real one is out of reach, the attack
    // changes its own locals.
    match domain
        .func::<fn(u64) -> i64>("forged_return")?
        .call(host_code)
    {
        Ok(1) => println!(
            "  forged return address     harmless: the data stack holds no return addresses"
        ),
        other => stopped(
            "forged return address",
            other,
            &[Write, ReadOnly, DataStackOverflow],
        )?,
    }
    domain.reset()?;
    let outcome = domain.func::<fn(u64) -> i64>("null_pointer")?.call(0);
    stopped("null pointer", outcome, &[NullPointer])?;
    still_good(good)?;
    for name in ["by_syscall", "by_int80"] {
        let code = std::fs::read(directory.join(format!("{name}.bin")))?;
        let mut builder = postern_image::ImageBuilder::new(code);
        builder.export(name, 0, Some("l()".parse()?));
        match Image::from_bytes(&builder.build()?) {
            Err(LoadError::Refused { violation, .. }) => {
                println!(
                    "  {:<25} refused before it ran: {violation}",
                    name.replace('_', " ")
                );
            }
            Err(other) => return Err(other.into()),
            Ok(_) => return Err(format!("{name}: a system call was accepted").into()),
        }
        still_good(good)?;
    }
    if !intact(secret) {
        return Err("the secret was changed".into());
    }
    Ok(())
}

fn intact(secret: &u64) -> bool {
    *black_box(secret) == SECRET
}

fn own_page(what: &str) {
    println!("  {what:<25} harmless: the address, cut to the window, names a page of its own");
}

/// Prints the reason, and fails unless it is one of those expected.
fn stopped(
    what: &str,
    outcome: std::result::Result<i64, CallError>,
    expected: &[FaultKind],
) -> Result<()> {
    match outcome {
        Err(CallError::Fault(fault)) if expected.contains(&fault.kind) => {
            println!("  {what:<25} stopped: {fault}");
            Ok(())
        }
        other => Err(format!("{what}: expected one of {expected:?}, got {other:?}").into()),
    }
}

/// The host still calls the good extension.
fn still_good(good: &Domain) -> Result<()> {
    let mut tiny = b"P6\n1 1\n255\n".to_vec();
    tiny.extend([200, 100, 50]);
    let buffer = good.alloc_from(&tiny)?;
    let pixels = good
        .func::<fn(Offset, u64) -> i64>("gray")?
        .call(buffer, tiny.len() as u64)?;
    let result = good.read_vec(buffer, tiny.len())?;
    good.free(buffer)?;
    if pixels == 1 && result.ends_with(&[124, 124, 124]) {
        return Ok(());
    }
    Err(format!("the good extension failed: {pixels} pixels, {result:?}").into())
}
