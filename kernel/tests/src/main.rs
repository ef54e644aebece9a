//! The only program of the machine that the tests boot: loads the module, asks it for verdicts, and
//! compares each with what the same judge says in this process.
//!
//! Its last line is `guest: ok`, or says what is wrong.

mod calls;
mod checks;
mod client;
mod fuzz;
mod hooks;
mod network;
mod runs;
mod segments;
mod trusted;

use std::fs::{File, OpenOptions};

/// Numbers at random begin with this; the machine's command line has another, if told.
const SEED: u64 = 1;

fn open() -> Result<File, String> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/postern")
        .map_err(|error| format!("/dev/postern: {error}"))
}

/// The value of `name=` on the kernel's command line.
fn option(name: &str) -> Option<u64> {
    let line = std::fs::read_to_string("/proc/cmdline").ok()?;
    let word = line
        .split_whitespace()
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    word?.parse().ok()
}

fn said(what: &str) -> impl Fn(std::io::Error) -> String + '_ {
    move |error| format!("{what}: {error}")
}

fn run() -> Result<(), String> {
    for (kind, at) in [
        (c"devtmpfs", c"/dev"),
        (c"proc", c"/proc"),
        (c"sysfs", c"/sys"),
    ] {
        trusted::mount(kind, at).map_err(|error| format!("{at:?}: {error}"))?;
    }
    let module = File::open("/postern.ko").map_err(said("/postern.ko"))?;
    let seed = option("postern.seed").unwrap_or(SEED);
    let count = option("postern.snippets").unwrap_or(1000);
    trusted::insert(&module).map_err(said("loading"))?;
    {
        let device = open()?;
        // For whoever works on them.
        if option("postern.hooks").is_some() {
            return hooks::all();
        }
        let cases = checks::cases()?;
        checks::corpus(&device, &cases)?;
        calls::functions(&device)?;
        segments::shared(&device)?;
        calls::policies(&device)?;
        calls::memory(&device)?;
        runs::rights(&device)?;
        calls::segments(&device)?;
        calls::told(&device)?;
        calls::limits(&device)?;
        let before = runs::held()?;
        calls::in_turns(&device, 20)?;
        calls::replaced(&device, 30)?;
        hooks::all()?;
        runs::accepted_code(&device, &cases, seed, count)?;
        checks::images(&device, &cases, seed, count / 5)?;
        checks::refused_memory(&device, &cases)?;
        calls::replaced_without_memory(&device)?;
        runs::as_before(before)?;
        checks::bad_arguments(&device)?;
        checks::strangers(&device)?;
        // On each processor at the same time.
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..processors)
                .map(|thread| {
                    let (device, cases) = (&device, &cases);
                    scope.spawn(move || {
                        checks::snippets(device, cases, seed + thread, count / processors)
                    })
                })
                .collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
        })?;
        if trusted::remove(c"postern").is_ok() {
            return Err("the module was unloaded while its device was open".into());
        }
        if let Some(count) = option("postern.fuzz") {
            fuzz::requests(&device, seed, count)?;
        }
        if std::path::Path::new("/client.pst").exists() {
            client::everything()?;
        }
        checks::left_loaded(&device, &cases)?;
    }
    trusted::remove(c"postern").map_err(said("unloading"))?;
    // The kernel keeps page tables of its own addresses for the next time: the first has them made.
    let first = runs::held()?;
    if std::path::Path::new("/dev/postern").exists() {
        return Err("the device is still there".into());
    }
    trusted::insert(&module).map_err(said("loading again"))?;
    checks::left_loaded(&open()?, &checks::cases()?)?;
    trusted::remove(c"postern").map_err(said("unloading again"))?;
    match first.0 {
        0 => runs::as_before(first),
        left => Err(format!("{left} windows are left")),
    }
}

fn main() {
    if std::process::id() != 1 {
        eprintln!("postern-kernel-guest: this is the first process of a machine for tests");
        std::process::exit(1);
    }
    match run() {
        Ok(()) => println!("guest: ok"),
        Err(error) => println!("guest: {error}"),
    }
    trusted::end()
}
