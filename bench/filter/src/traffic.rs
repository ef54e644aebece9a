//! Whole programs on real traffic: `postern filter` beside tcpdump on one capture, and what
//! nftables' sets cost a packet.
//!
//! The traffic is sent over the loopback interface of a network namespace that this program makes
//! for itself, and captured there by `postern filter`.

use crate::{Measured, captured};
use postern_figures::clock::best_of;
use postern_figures::figure::Figure;
use std::cell::RefCell;
use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Packets that are captured, and bytes of the file that is made of them.
const PACKETS: u32 = 20_000;
const BYTES: usize = 200 << 20;
/// What is looked for.
const EXPRESSION: &str = "udp dst port 5003 or tcp port 7001";
/// Datagrams of one turn of the measurement of nftables.
const DATAGRAMS: u32 = 4000;

/// The figures; where something is missing, rows that say what.
pub fn figures() -> Measured {
    let mut figures = Vec::new();
    match capture() {
        Ok(file) => {
            figures.extend(captured::figures(&file)?);
            figures.push(programs(&file)?);
        }
        Err(error) => figures.push(Figure::plain("filter.captured", f64::NAN, "ns", error)),
    }
    match namespace(&["nft"]) {
        Ok(text) => figures.extend(text.lines().filter_map(|line| {
            let (count, cost) = line.split_once(' ')?;
            let note = "what a lookup in an nftables set of so many pairs of address and port adds to a datagram over loopback";
            Some(Figure::plain(format!("filter.nft.{count}"), cost.parse().ok()?, "ns", note))
        })),
        Err(error) => figures.push(Figure::plain("filter.nft", f64::NAN, "ns", error)),
    }
    Ok(figures)
}

fn postern() -> Result<PathBuf, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/postern");
    match path.exists() {
        true => Ok(path),
        false => Err("there is no target/release/postern; `cargo build --release` makes it".into()),
    }
}

/// Runs this program again in a network namespace of its own, with a loopback interface; returns
/// what it printed.
fn namespace(arguments: &[&str]) -> Result<String, String> {
    let this = std::env::current_exe().map_err(|e| e.to_string())?;
    let output = Command::new("unshare")
        .args([
            "-rn",
            "sh",
            "-ec",
            "ip link set lo up; exec \"$0\" inside \"$@\"",
        ])
        .arg(this)
        .args(arguments)
        .output()
        .map_err(|e| format!("unshare: {e}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "no network namespace: {}",
            error.trim().replace('\n', "; ")
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What runs in the namespace.
pub fn inside(arguments: &[String]) -> Result<(), String> {
    match arguments {
        [what] if what == "nft" => nft(),
        [what, file] if what == "capture" => talk(Path::new(file)),
        _ => Err("nothing to do in the namespace".into()),
    }
}

/// Datagrams to ten ports and a transfer over TCP, until enough of it is captured.
fn talk(file: &Path) -> Result<(), String> {
    let text = |e: std::io::Error| e.to_string();
    let mut capture = Command::new(postern()?)
        .args(["filter", "-i", "lo", "-c", &PACKETS.to_string(), "-w"])
        .arg(file)
        .stderr(Stdio::null())
        .spawn()
        .map_err(text)?;
    let listener = TcpListener::bind("127.0.0.1:7001").map_err(text)?;
    let receivers: Result<Vec<UdpSocket>, _> = (0..10)
        .map(|n| UdpSocket::bind(("127.0.0.1", 5000 + n)))
        .collect();
    let receivers = receivers.map_err(text)?;
    let sender = UdpSocket::bind("127.0.0.1:4000").map_err(text)?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = std::io::copy(&mut { stream }, &mut std::io::sink());
        }
    });
    let mut stream = TcpStream::connect("127.0.0.1:7001").map_err(text)?;
    let payload = [7; 1200];
    let end = Instant::now() + std::time::Duration::from_secs(60);
    while capture.try_wait().map_err(text)?.is_none() {
        if Instant::now() > end {
            // Only what was started here.
            let _ = capture.kill();
            return Err("the capture does not end".into());
        }
        for (n, receiver) in receivers.iter().enumerate() {
            let _ = sender.send_to(&payload[..100 * (n + 1)], ("127.0.0.1", 5000 + n as u16));
            let mut buffer = [0; 2048];
            receiver.recv(&mut buffer).map_err(text)?;
        }
        stream.write_all(&payload).map_err(text)?;
    }
    Ok(())
}

/// A directory that goes when this does.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, String> {
        let path = std::env::temp_dir().join(format!("postern-filter-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|e| e.to_string())?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays in a folder of temporary files is nobody's loss.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A capture file of the traffic.
fn capture() -> Result<Vec<u8>, String> {
    let folder = Folder::new()?;
    let file = folder.0.join("some.pcap");
    namespace(&["capture", &file.to_string_lossy()])?;
    let bytes = std::fs::read(&file).map_err(|e| e.to_string())?;
    match bytes.len() {
        0..1000 => Err("nothing was captured".into()),
        _ => Ok(bytes),
    }
}

/// Milliseconds of `postern filter` and of tcpdump on the same file, the captured packets again and
/// again.
fn programs(some: &[u8]) -> Result<Figure, String> {
    const NAME: &str = "filter.program.tcpdump";
    if Command::new("tcpdump").arg("--version").output().is_err() {
        let missing = "tcpdump is missing; `make setup-bench` installs it";
        return Ok(Figure::plain(NAME, f64::NAN, "ms", missing));
    }
    let folder = Folder::new()?;
    let file = folder.0.join("all.pcap");
    let (header, records) = some.split_at(24);
    let mut all = header.to_vec();
    while all.len() < BYTES {
        all.extend_from_slice(records);
    }
    std::fs::write(&file, &all).map_err(|e| e.to_string())?;
    let wrong = RefCell::new(None);
    let run = |command: &mut Command| {
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !status.is_ok_and(|status| status.success()) {
            wrong.replace(Some("a program failed on the capture".to_string()));
        }
    };
    let postern = postern()?;
    let [ours, theirs] = best_of(
        3,
        [
            &mut || {
                let mut command = Command::new(&postern);
                run(command.args(["filter", "-r"]).arg(&file).args([
                    "-w",
                    "/dev/null",
                    EXPRESSION,
                ]));
            },
            &mut || {
                let mut command = Command::new("tcpdump");
                run(command
                    .arg("-r")
                    .arg(&file)
                    .args(["-w", "/dev/null", EXPRESSION]));
            },
        ],
    );
    if let Some(error) = wrong.into_inner() {
        return Err(error);
    }
    let note = format!(
        "`{EXPRESSION}`, whole program, {} MiB of real traffic over loopback, repeated, to /dev/null; baseline: tcpdump",
        all.len() >> 20
    );
    Ok(Figure::plain(NAME, ours * 1e3, "ms", note).against(theirs * 1e3))
}

/// Prints what a lookup costs a datagram, for several sizes of sets.
fn nft() -> Result<(), String> {
    let text = |e: std::io::Error| e.to_string();
    let sender = UdpSocket::bind("127.0.0.1:4000").map_err(text)?;
    let receiver = UdpSocket::bind("127.0.0.1:5000").map_err(text)?;
    sender.connect("127.0.0.1:5000").map_err(text)?;
    let mut best = [f64::INFINITY; 4];
    for _ in 0..3 {
        for (best, count) in best.iter_mut().zip([0u32, 10, 1000, 100_000]) {
            rules(count)?;
            for _ in 0..10 {
                let mut buffer = [0; 64];
                let start = Instant::now();
                for _ in 0..DATAGRAMS {
                    sender.send(&[0; 18]).map_err(text)?;
                    receiver.recv(&mut buffer).map_err(text)?;
                }
                let spent = start.elapsed().as_nanos() as f64;
                *best = best.min(spent / f64::from(DATAGRAMS));
            }
        }
    }
    for (count, cost) in [10, 1000, 100_000].iter().zip(&best[1..]) {
        println!("{count} {}", cost - best[0]);
    }
    Ok(())
}

/// A table whose only rule looks source and port up in a set of so many pairs, the datagrams' own
/// not among them.
fn rules(count: u32) -> Result<(), String> {
    let rule = match count {
        0 => "",
        _ => "ip saddr . udp sport @pairs drop\n",
    };
    nftables(&format!(
        "flush ruleset\ntable ip postern {{\nset pairs {{ type ipv4_addr . inet_service; }}\n\
         chain input {{ type filter hook input priority 0;\n{rule}}}\n}}\n"
    ))?;
    // One message takes only so many.
    for first in (0..count).step_by(1000) {
        let pairs = (first..count.min(first + 1000)).map(|n| {
            let [_, a, b, c] = n.to_be_bytes();
            format!("10.{a}.{b}.{c} . {},", 1024 + n % 60_000)
        });
        let pairs: String = pairs.collect();
        nftables(&format!("add element ip postern pairs {{ {pairs} }}\n"))?;
    }
    Ok(())
}

fn nftables(script: &str) -> Result<(), String> {
    let mut nft = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|_| "nft is missing; `make setup-bench` installs it")?;
    if let Some(input) = &mut nft.stdin {
        let written = input.write_all(script.as_bytes());
        written.map_err(|e| e.to_string())?;
    }
    let output = nft.wait_with_output().map_err(|e| e.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "the kernel takes no rules: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}
