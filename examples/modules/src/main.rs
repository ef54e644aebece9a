//! `modules` says what it costs to have each of thirty modules in a domain of its own: requests in a second and memory, beside the same
//! modules without protection, in one run.
#![allow(missing_docs)]

use clap::{Parser, ValueEnum};
use postern_example_modules::modules::{Built, build};
use postern_example_modules::server::Error;
use postern_example_modules::{Server, Way, site};
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
    /// Pages over which the modules' code is spread, so that it does not lie at the same place in every window
    #[arg(long, default_value_t = 16)]
    spread: usize,
    /// Where the modules are built
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Print one answer and its log line instead
    #[arg(long)]
    show: bool,
    /// Serve a few requests one way, and print the process's memory in KiB
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
    let built = build(&folder, arguments.spread)?;
    match arguments.memory {
        Some(way) => memory(way, &built),
        None if arguments.show => show(&built),
        None => {
            speed(arguments, &built)?;
            table(&folder, arguments.spread)
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

/// One client and one connection: what the kernel does to bring an answer to it is part of a request.
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
    let status = std::fs::read_to_string("/proc/self/status")?;
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    let number = |text: &str, name: &str| -> Option<u64> {
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let numbers = [
        number(&status, "VmSize:"),
        number(&rollup, "Rss:"),
        number(&status, "VmPTE:"),
    ];
    let numbers: Option<Vec<u64>> = numbers.into_iter().collect();
    let numbers = numbers.ok_or("the kernel does not say how much memory there is")?;
    let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
    println!("{}", texts.join(" "));
    Ok(())
}

/// The paper's table of memory, each way in a process of its own.
fn table(folder: &Path, spread: usize) -> Result<(), Error> {
    println!("memory, KiB       virtual   physical   page tables   both, over unprotected");
    let mut first = None;
    for way in ["native", "confined"] {
        let child = Command::new(std::env::current_exe()?)
            .arg("--folder")
            .arg(folder)
            .args(["--memory", way, "--spread", &spread.to_string()])
            .output()?;
        let text = String::from_utf8_lossy(&child.stdout).into_owned();
        let numbers: Vec<u64> = text
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let &[all, physical, tables] = &numbers[..] else {
            return Err(String::from_utf8_lossy(&child.stderr).into());
        };
        let both = (physical + tables) as f64;
        let over = (both / *first.get_or_insert(both) - 1.0) * 100.0;
        println!("{way:10} {all:14} {physical:10} {tables:13} {over:17.1} %");
    }
    Ok(())
}
