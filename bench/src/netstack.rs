//! The network stack in a domain beside the kernel's: TCP both ways, and there and back; datagrams
//! that are forwarded while others compute, which the paper on user-level sandboxing measures.
//!
//! Two namespaces with a veth pair between them, made for this. The program under test is the
//! same, by plain sockets (`netstack.c`); its peer always has the kernel's. With offloads the
//! kernel hands segments of 64 KiB over and computes no sums; without, it does what the stack does.

use crate::serve::{here, postern};
use postern_figures::Measured;
use postern_figures::figure::Figure;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Addresses: the kernel's and the stack's on one side, the peer's on the other.
const KERNEL: &str = "10.78.0.3";
const STACK: &str = "10.78.0.2";
const PEER: &str = "10.78.0.1";
/// Interfaces: of the side that is measured, and of its peer.
const OWN: &str = "own";
const OTHER: &str = "other";
/// How long each is measured.
const SECONDS: f64 = 1.5;
/// What a packet meets that a stack of one's own does not have.
const OFFLOADS: [&str; 6] = ["rx", "tx", "sg", "tso", "gso", "gro"];
/// Threads that compute beside those that forward.
const HOGS: [usize; 3] = [0, 4, 16];
/// How long a server of a pair has to begin.
const BEGIN: Duration = Duration::from_secs(1);
/// How long a part may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The sources.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Whether namespaces can be made, and offloads told of.
pub fn possible() -> bool {
    let made = Command::new("unshare").args(["-n", "true"]).output();
    made.is_ok_and(|output| output.status.success())
        && ["ip", "ethtool", "cargo"].into_iter().all(here)
}

/// A process that is killed, if it has not ended, and waited for.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whose sockets a program has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Kernel,
    Stack,
}

/// Two namespaces, the program, and the agent.
struct Wire {
    own: Running,
    other: Running,
    program: PathBuf,
    agent: PathBuf,
    postern: PathBuf,
    port: Cell<u16>,
}

fn done(command: &mut Command) -> Result<(), String> {
    let what = command.get_program().to_string_lossy().into_owned();
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "{what} failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Err(format!("{what}: {error}")),
    }
}

/// A namespace, for as long as a process sleeps in it.
fn namespace() -> Result<Running, String> {
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", "echo; exec sleep 3600"]);
    let spawned = command.stdout(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|error| error.to_string())?;
    let mut said = child.stdout.take().ok_or("no pipe")?;
    let child = Running(child);
    // It is there when the shell has said something.
    std::io::Read::read_exact(&mut said, &mut [0]).map_err(|error| error.to_string())?;
    Ok(child)
}

impl Wire {
    fn new(folder: &Path) -> Result<Wire, String> {
        let (program, agent) = (folder.join("netstack"), folder.join("netstack.px"));
        let source = folder.join("netstack.c");
        std::fs::write(&source, include_str!("netstack.c")).map_err(|error| error.to_string())?;
        done(
            Command::new("gcc")
                .args(["-O2", "-o"])
                .arg(&program)
                .arg(source),
        )?;
        let postern = std::path::absolute(postern()?).map_err(|error| error.to_string())?;
        done(Command::new(&postern).args(["llvm", "install"]))?;
        let build = Path::new(SOURCES).join("interpose/netstack/build.sh");
        done(Command::new(build).arg(&agent).env("POSTERN", &postern))?;
        let wire = Wire {
            own: namespace()?,
            other: namespace()?,
            program,
            agent,
            postern,
            port: Cell::new(5000),
        };
        let peers = wire.other.0.id().to_string();
        let pair = ["link", "add", OWN, "type", "veth", "peer", "name", OTHER];
        done(wire.own("ip").args(pair).args(["netns", &peers]))?;
        for (side, interface, address) in [(&wire.own, OWN, KERNEL), (&wire.other, OTHER, PEER)] {
            let address = format!("{address}/24");
            done(in_namespace(side, "ip").args(["addr", "add", &address, "dev", interface]))?;
            for interface in [interface, "lo"] {
                done(in_namespace(side, "ip").args(["link", "set", interface, "up"]))?;
            }
        }
        Ok(wire)
    }

    fn own(&self, program: &str) -> Command {
        in_namespace(&self.own, program)
    }

    fn offloads(&self, on: bool) -> Result<(), String> {
        for (side, interface) in [(&self.own, OWN), (&self.other, OTHER)] {
            for offload in OFFLOADS {
                let state = if on { "on" } else { "off" };
                // An interface may not have it.
                let _ = done(in_namespace(side, "ethtool").args(["-K", interface, offload, state]));
            }
        }
        Ok(())
    }

    fn next_port(&self) -> u16 {
        self.port.set(self.port.get() + 2);
        self.port.get()
    }

    /// Starts a part of the program: on the side that is measured, or as its peer.
    fn start(&self, whose: Option<Whose>, part: &str, to: &str, port: u16, seconds: f64) -> Part {
        let mut command = match whose {
            None => in_namespace(&self.other, &self.program.to_string_lossy()),
            Some(Whose::Kernel) => self.own(&self.program.to_string_lossy()),
            Some(Whose::Stack) => {
                let mut command = self.own(&self.postern.to_string_lossy());
                command.arg("interpose").arg(&self.agent);
                command.args([
                    "--interface",
                    OWN,
                    "--address",
                    &format!("{STACK}/24"),
                    "--",
                ]);
                command.arg(&self.program);
                command
            }
        };
        command.args([part, to, &port.to_string(), &seconds.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Part(
            command
                .spawn()
                .map(Running)
                .map_err(|error| error.to_string()),
        )
    }
}

fn in_namespace(side: &Running, program: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["-n", "-t", &side.0.id().to_string(), program]);
    command
}

/// A part that runs.
struct Part(Result<Running, String>);

impl Part {
    /// Waits for its end: what it has printed.
    fn end(self) -> Result<String, String> {
        let mut part = self.0?;
        let (child, begun) = (&mut part.0, Instant::now());
        while child
            .try_wait()
            .map_err(|error| error.to_string())?
            .is_none()
        {
            if begun.elapsed() > PATIENCE {
                return Err("a part of the program does not end".to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        said(child)
    }

    fn number(self) -> Result<f64, String> {
        let text = self.end()?;
        let number = text.trim().parse();
        number.map_err(|_| format!("the program said {text:?}, which is no number"))
    }
}

fn said(child: &mut Child) -> Result<String, String> {
    let mut text = String::new();
    let mut pipe = child.stdout.take().ok_or("no pipe")?;
    std::io::Read::read_to_string(&mut pipe, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

/// A figure of both; the kernel's is the baseline.
fn both(
    figures: &mut Vec<Figure>,
    what: (&str, &'static str, &str),
    mut measure: impl FnMut(Whose, &str) -> Result<f64, String>,
) -> Result<(), String> {
    let (name, unit, about) = what;
    let kernel = measure(Whose::Kernel, KERNEL)?;
    let stack = measure(Whose::Stack, STACK)?;
    for (whose, value) in [("kernel", kernel), ("stack", stack)] {
        let how = format!("{about}, by the {whose}'s sockets, over the kernel's");
        let figure = Figure::plain(format!("netstack.{name}.{whose}"), value, unit, how);
        figures.push(figure.against(kernel));
    }
    Ok(())
}

/// The figures.
pub fn figures(directory: &Path) -> Measured {
    let folder = directory.join("netstack");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let wire = Wire::new(&folder)?;
    let mut figures = Vec::new();
    for (on, state, about) in [
        (true, "offloads", "with offloads"),
        (false, "plain", "without"),
    ] {
        wire.offloads(on)?;
        let about = |what: &str| format!("{what}, {about}");
        let received = (
            &*format!("received.{state}"),
            "Gbit/s",
            &*about("TCP received"),
        );
        both(&mut figures, received, |whose, address| {
            let port = wire.next_port();
            let sink = wire.start(Some(whose), "sink", "-", port, SECONDS);
            std::thread::sleep(BEGIN);
            let source = wire.start(None, "source", address, port, 2.0 * SECONDS);
            let got = sink.number()?;
            source.end().map(|_| got)
        })?;
        let sent = (&*format!("sent.{state}"), "Gbit/s", &*about("TCP sent"));
        both(&mut figures, sent, |whose, _| {
            let port = wire.next_port();
            let sink = wire.start(None, "sink", "-", port, SECONDS);
            let source = wire.start(Some(whose), "source", PEER, port, 2.0 * SECONDS);
            let got = sink.number()?;
            source.end().map(|_| got)
        })?;
        let trip = (
            &*format!("trip.{state}"),
            "us",
            &*about("one byte by TCP, there and back"),
        );
        both(&mut figures, trip, |whose, address| {
            let port = wire.next_port();
            let echo = wire.start(Some(whose), "echo", "-", port, 0.0);
            std::thread::sleep(BEGIN);
            let asked = wire.start(None, "ask", address, port, SECONDS).number()?;
            echo.end().map(|_| asked)
        })?;
    }
    for hogs in HOGS {
        let busy: Vec<Running> = (0..hogs)
            .filter_map(|_| {
                Command::new("sh")
                    .args(["-c", "while :; do :; done"])
                    .spawn()
                    .ok()
            })
            .map(Running)
            .collect();
        let name = format!("forwarded.{hogs}-hogs");
        let about = format!(
            "datagrams of 1,000 bytes forwarded beside {} that compute",
            busy.len()
        );
        both(&mut figures, (&name, "Mbit/s", &about), |whose, address| {
            let port = wire.next_port();
            let forward = wire.start(Some(whose), "forward", PEER, port, SECONDS + 2.5);
            std::thread::sleep(BEGIN);
            let flood = wire.start(None, "flood", address, port, SECONDS + 1.0);
            std::thread::sleep(BEGIN / 3);
            let count = wire.start(None, "count", "-", port + 1, SECONDS).number()?;
            flood.end()?;
            forward.end().map(|_| count)
        })?;
    }
    Ok(figures)
}
