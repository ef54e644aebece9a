//! `modules` says what it costs to have each of thirty modules in a domain of its own: requests in
//! a second and memory, beside the same modules without protection, in one run.
#![allow(missing_docs)]

use clap::{Parser, ValueEnum};
use postern_example_modules::memory::Memory;
use postern_example_modules::modules::{Built, MODULES, build};
use postern_example_modules::server::Error;
use postern_example_modules::{Server, Way, site};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Serve requests by thirty modules, unprotected and each in a domain of its own
#[derive(Parser)]
#[command(name = "modules")]
struct Arguments {
    /// KiB of the file that is asked for: 1, 4, 16, 64, 128 or 256; without it, all of them
    #[arg(long)]
    size: Option<usize>,
    /// Requests of one turn
    #[arg(long, default_value_t = 10)]
    turn: u32,
    /// Turns of each kind
    #[arg(long, default_value_t = 300)]
    turns: u32,
    /// Let the modules' code begin in the same page of every window
    #[arg(long)]
    alike: bool,
    /// Where the modules are built
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Print one answer and its log line instead
    #[arg(long)]
    show: bool,
    /// Load only so many modules
    #[arg(long, default_value_t = MODULES.len())]
    modules: usize,
    /// Serve a few requests one way, and print what the process's memory consists of, in KiB
    #[arg(long, value_name = "WAY")]
    memory: Option<OneWay>,
}

#[derive(Clone, Copy, ValueEnum)]
enum OneWay {
    /// Shared objects
    Native,
    /// Domains
    Confined,
}

const ADDRESS: &str = "10.1.2.3";

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("modules: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Error> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("build");
    let folder = arguments.folder.clone().unwrap_or(own);
    let mut built = build(&folder, arguments.alike)?;
    built.truncate(arguments.modules);
    match arguments.memory {
        Some(way) => memory(way, &built),
        None if arguments.show => show(&built),
        None => {
            speed(arguments, &built)?;
            table(arguments, &folder)
        }
    }
}

fn server(way: Way, built: &[Built]) -> Result<Server, Error> {
    Server::new(way, built, site::files(), site::SECRETS)
}

fn show(built: &[Built]) -> Result<(), Error> {
    let mut server = server(Way::Confined, built)?;
    let mut answer = Vec::new();
    server.serve(&site::request(1), ADDRESS, 1_000_000_000, &mut answer);
    std::io::stdout().write_all(&answer)?;
    println!("\n{}", String::from_utf8_lossy(server.log()));
    Ok(())
}

/// One client and one connection: what the kernel does to bring an answer to it is part of a
/// request.
struct Client {
    here: UnixStream,
    there: UnixStream,
    bytes: Vec<u8>,
}

impl Client {
    fn new() -> std::io::Result<Client> {
        let (here, there) = UnixStream::pair()?;
        Ok(Client {
            here,
            there,
            bytes: vec![0; 32 << 10],
        })
    }

    fn get(&mut self, answer: &[u8]) -> std::io::Result<()> {
        for part in answer.chunks(self.bytes.len()) {
            self.here.write_all(part)?;
            self.there.read_exact(&mut self.bytes[..part.len()])?;
        }
        Ok(())
    }
}

/// The best time of a request in each of the ways, in turns.
fn speed(arguments: &Arguments, built: &[Built]) -> Result<(), Error> {
    let mut servers = [server(Way::Native, built)?, server(Way::Confined, built)?];
    let mut client = Client::new()?;
    let mut answer = Vec::new();
    let sizes = arguments
        .size
        .map_or(vec![1, 4, 16, 64, 128, 256], |size| vec![size]);
    println!("file   answer made, not sent            made and sent");
    println!("KiB    native us  confined us  over   native/s  confined/s  over");
    for size in sizes {
        let request = site::request(size);
        let mut best = [[Duration::MAX; 2]; 2];
        for _ in 0..arguments.turns {
            for send in [false, true] {
                for (way, server) in servers.iter_mut().enumerate() {
                    let start = Instant::now();
                    for k in 0..arguments.turn {
                        answer.clear();
                        server.serve(&request, ADDRESS, 1_000_000_000 + u64::from(k), &mut answer);
                        if send {
                            client.get(&answer)?;
                        }
                    }
                    let best = &mut best[usize::from(send)][way];
                    *best = (*best).min(start.elapsed() / arguments.turn);
                }
            }
        }
        let micros = |d: Duration| d.as_secs_f64() * 1e6;
        let over = |pair: [Duration; 2]| (micros(pair[1]) / micros(pair[0]) - 1.0) * 100.0;
        let [alone, whole] = best;
        println!(
            "{size:3}   {:9.2}  {:11.2}  {:4.1} %  {:8.0}  {:10.0}  {:4.1} %",
            micros(alone[0]),
            micros(alone[1]),
            over(alone),
            1e6 / micros(whole[0]),
            1e6 / micros(whole[1]),
            over(whole)
        );
    }
    let (before, requests) = (servers[1].calls(), 1000);
    for _ in 0..requests {
        answer.clear();
        servers[1].serve(&site::request(64), ADDRESS, 1_000_000_000, &mut answer);
    }
    let after = servers[1].calls();
    println!(
        "calls of a request: {} into modules, {} out of them",
        (after.0 - before.0) / requests,
        (after.1 - before.1) / requests
    );
    Ok(())
}

fn memory(way: OneWay, built: &[Built]) -> Result<(), Error> {
    let mut server = match way {
        OneWay::Native => server(Way::Native, built)?,
        OneWay::Confined => server(Way::Confined, built)?,
    };
    let mut answer = Vec::new();
    for _ in 0..10 {
        answer.clear();
        server.serve(&site::request(64), ADDRESS, 1_000_000_000, &mut answer);
    }
    print!("{}", Memory::read(&server.windows())?.print());
    Ok(())
}

/// The memory of a server with so many modules, each way in a process of its own.
fn measure(arguments: &Arguments, folder: &Path, modules: usize) -> Result<[Memory; 2], Error> {
    let mut both = Vec::new();
    for way in ["native", "confined"] {
        let child = Command::new(std::env::current_exe()?)
            .arg("--folder")
            .arg(folder)
            .args(["--memory", way, "--modules", &modules.to_string()])
            .args(arguments.alike.then_some("--alike"))
            .output()?;
        let memory = Memory::parse(&String::from_utf8_lossy(&child.stdout));
        both.push(memory.ok_or_else(|| String::from_utf8_lossy(&child.stderr).into_owned())?);
    }
    both.try_into().map_err(|_| "two ways".into())
}

/// The paper's table of memory, what each module has its part in it, and what the whole consists
/// of.
fn table(arguments: &Arguments, folder: &Path) -> Result<(), Error> {
    let all = MODULES.len();
    let [native, confined] = measure(arguments, folder, all)?;
    let over = |a: u64, b: u64| (b as f64 / a as f64 - 1.0) * 100.0;
    println!("\nmemory, KiB        virtual   physical   over   page tables   both, over");
    for memory in [&native, &confined] {
        println!(
            "{:10} {:15} {:10} {:5.1} % {:12} {:9.1} %",
            if memory == &native {
                "native"
            } else {
                "confined"
            },
            memory.reserved,
            memory.physical,
            over(native.physical, memory.physical),
            memory.tables,
            over(
                native.physical + native.tables,
                memory.physical + memory.tables
            ),
        );
    }
    let [one, one_confined] = measure(arguments, folder, 1)?;
    let each =
        |one: u64, all_of_them: u64| (all_of_them as f64 - one as f64) / (MODULES.len() - 1) as f64;
    let (a, b) = (
        each(one.own(), native.own()),
        each(one_confined.own(), confined.own()),
    );
    println!(
        "one more module    native {a:.1} KiB, confined {b:.1} KiB; page tables {:.1}, {:.1}",
        each(one.tables, native.tables),
        each(one_confined.tables, confined.tables)
    );
    println!(
        "the domains alone  {:.1} % of the unprotected server's physical memory",
        (b - a) * all as f64 / native.physical as f64 * 100.0
    );
    println!(
        "memory files hold  {} KiB, of which what is mapped is part of the physical memory",
        confined.files
    );
    println!("physical memory, KiB                      native  confined");
    let names: BTreeSet<&String> = native.parts.keys().chain(confined.parts.keys()).collect();
    for name in names {
        let of = |memory: &Memory| memory.parts.get(name).copied().unwrap_or(0);
        println!("{name:40} {:7}  {:8}", of(&native), of(&confined));
    }
    Ok(())
}
