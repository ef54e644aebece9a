//! The machine: QEMU with one or more processors, a serial port, and a device to end it by.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::peer::{self, Peer};
use crate::status::Status;

/// How a machine runs.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Processors, from 1 on.
    pub processors: u32,
    /// One instruction is one nanosecond of the machine's, so that runs are the same to the
    /// instruction. Processors take turns then, and random numbers are known: for figures only.
    pub counted: bool,
    /// Counted, it idles by the host's clock: for what waits for a [`Peer`]. Otherwise it skips the
    /// time until the next clock of its own, again and again while it waits.
    pub waits: bool,
    /// Memory in MiB.
    pub memory: u32,
    /// After this the machine is ended.
    pub limit: Duration,
    /// Whether there is a network, with a [`Peer`] on it.
    pub network: bool,
    /// A network of the emulator's own instead.
    pub user: Option<User>,
    /// Whether there is a disk: [`DISK`] bytes, all zeros at the start.
    pub disk: bool,
    /// What the disk's contents are in on the host, as QEMU names files (`blkdebug:RULES:FILE`
    /// fails by rules); without it they are gone with the machine.
    pub image: Option<OsString>,
    /// Waits for a debugger at the emulator's port before the first instruction.
    pub debugged: bool,
    /// What is typed on the serial line, from the start on.
    pub typed: String,
    /// Options of the emulator besides, such as `-d` and `-D`.
    pub more: Vec<OsString>,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            processors: 1,
            counted: false,
            waits: false,
            memory: 128,
            limit: Duration::from_secs(120),
            network: false,
            user: None,
            disk: false,
            image: None,
            debugged: false,
            typed: String::new(),
            more: Vec::new(),
        }
    }
}

/// The emulator's own network: it has a server for DHCP, which gives the guest 10.0.2.15, and is
/// itself 10.0.2.2, which stands for this machine's loopback; 10.0.2.3 answers for names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Ports of this machine's loopback, and the guest's ports of TCP that they stand for.
    pub forwards: Vec<(u16, u16)>,
    /// Whether the guest reaches only who reaches it by a forwarded port: not this machine's
    /// loopback, and nothing outside.
    pub restricted: bool,
}

impl User {
    /// The emulator's options.
    fn options(&self) -> String {
        let mut options = String::from("-netdev user,id=network,ipv6=off");
        if self.restricted {
            options += ",restrict=on";
        }
        for (here, there) in &self.forwards {
            options += &format!(",hostfwd=tcp:127.0.0.1:{here}-:{there}");
        }
        options + " " + peer::DEVICE
    }
}

/// What a machine boots.
#[derive(Clone, Debug)]
pub struct Software {
    /// The kernel's file.
    pub kernel: PathBuf,
    /// What the emulator puts into memory for it.
    pub initial: PathBuf,
    /// The kernel's command line.
    pub line: String,
}

/// Where QEMU waits for a debugger.
pub const DEBUGGER: &str = "localhost:1234";

/// The machine could not be run.
#[derive(Debug, Error)]
pub enum EmulatorError {
    /// A command is missing.
    #[error("cannot start {0}: {1}")]
    Start(&'static str, std::io::Error),
    /// Its network or its disk cannot be made.
    #[error("cannot make the machine's devices: {0}")]
    Devices(std::io::Error),
    /// Its serial port could not be read.
    #[error("cannot read what the machine says: {0}")]
    Serial(std::io::Error),
}

/// Bytes of a machine's disk.
pub const DISK: u64 = 16 << 20;

/// What a machine has on the host while it runs.
pub(crate) struct Attached {
    options: Vec<OsString>,
    _peer: Option<Peer>,
    _folder: Option<tempfile::TempDir>,
}

/// What a machine said and how it ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Lines of the serial port.
    pub lines: Vec<String>,
    /// How it ended.
    pub status: Status,
    /// How long it ran, by the host's clock.
    pub took: Duration,
}

/// Whether there is an emulator here.
pub fn is_there() -> bool {
    let mut command = Command::new("qemu-system-x86_64");
    command.arg("--version").stdout(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Machine {
    /// QEMU's options but for the serial port.
    fn options(&self, software: &Software) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut add = |option: &str| words.extend(option.split(' ').map(OsString::from));
        add("-M q35 -cpu max -nodefaults -no-user-config -display none -no-reboot");
        add("-device isa-debug-exit,iobase=0xf4,iosize=0x04");
        match self.counted {
            // Neither random numbers nor the time of day differ between runs.
            true => {
                let sleep = if self.waits { "on" } else { "off" };
                add(&format!(
                    "-accel tcg,thread=single -icount shift=0,sleep={sleep}"
                ));
                add("-seed 1 -rtc base=2000-01-01,clock=vm");
            }
            false => add("-accel tcg,thread=multi"),
        }
        add(&format!("-smp {} -m {}", self.processors, self.memory));
        if self.debugged {
            add("-s -S");
        }
        if !software.line.is_empty() {
            words.extend(["-append".into(), software.line.clone().into()]);
        }
        words.extend(["-kernel".into(), software.kernel.clone().into()]);
        words.extend(["-initrd".into(), software.initial.clone().into()]);
        words.extend(self.more.iter().cloned());
        words
    }

    /// Makes network and disk on the host.
    pub(crate) fn attach(&self) -> std::io::Result<Attached> {
        let mut attached = Attached {
            options: Vec::new(),
            _peer: None,
            _folder: None,
        };
        if !self.network && self.user.is_none() && !self.disk {
            return Ok(attached);
        }
        let folder = tempfile::tempdir()?;
        let path = folder.path();
        let mut add = |option: &str| {
            let words = option.split(' ').map(OsString::from);
            attached.options.extend(words);
        };
        if let Some(user) = &self.user {
            add(&user.options());
        } else if self.network {
            add(&peer::options(path));
            attached._peer = Some(Peer::start(path)?);
        }
        if self.disk {
            let mut drive = OsString::from("if=none,id=disk,format=raw,file=");
            match &self.image {
                Some(image) => drive.push(image),
                None => {
                    let file = path.join("disk");
                    std::fs::File::create(&file)?.set_len(DISK)?;
                    drive.push(file);
                }
            }
            add("-device virtio-blk-pci,drive=disk,disable-legacy=on");
            attached.options.extend(["-drive".into(), drive]);
        }
        attached._folder = Some(folder);
        Ok(attached)
    }

    /// The emulator with the serial port at its own input and output, ended at the limit.
    pub(crate) fn command(&self, software: &Software, attached: &Attached) -> Command {
        // No machine outlives who started it, even if that is killed.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "TERM", "timeout", "--foreground", "-k", "5"])
            .arg(self.limit.as_secs().max(1).to_string())
            .arg("qemu-system-x86_64")
            .args(self.options(software))
            .args(&attached.options)
            .args(["-serial", "stdio"]);
        command
    }

    /// Runs until the machine ends, and hands over each line as it is said.
    pub fn run(
        &self,
        software: &Software,
        mut heard: impl FnMut(&str),
    ) -> Result<Ended, EmulatorError> {
        let begun = Instant::now();
        let attached = self.attach().map_err(EmulatorError::Devices)?;
        let mut child = self
            .command(software, &attached)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| EmulatorError::Start("setpriv", error))?;
        // So little that a pipe takes it whether it is read or not; its end is the line's.
        if let Some(mut line) = child.stdin.take() {
            line.write_all(self.typed.as_bytes())
                .map_err(EmulatorError::Serial)?;
        }
        let mut lines = Vec::new();
        if let Some(serial) = child.stdout.take() {
            let mut serial = BufReader::new(serial);
            let mut bytes = Vec::new();
            while serial
                .read_until(b'\n', &mut bytes)
                .map_err(EmulatorError::Serial)?
                > 0
            {
                let line = String::from_utf8_lossy(&bytes);
                let line = line.trim_end_matches(['\r', '\n']);
                heard(line);
                lines.push(line.to_owned());
                bytes.clear();
            }
        }
        let status = child.wait().map_err(EmulatorError::Serial)?;
        let took = begun.elapsed();
        Ok(Ended {
            lines,
            status: Status::of(status, took >= self.limit),
            took,
        })
    }

    /// Runs with the terminal at the serial port, as long as the user likes; Ctrl-A X leaves.
    pub fn attend(&self, software: &Software) -> Result<Status, EmulatorError> {
        let attached = self.attach().map_err(EmulatorError::Devices)?;
        let status = Command::new("qemu-system-x86_64")
            .args(self.options(software))
            .args(&attached.options)
            .args(["-serial", "mon:stdio"])
            .status()
            .map_err(|error| EmulatorError::Start("qemu-system-x86_64", error))?;
        Ok(Status::of(status, false))
    }
}

/// A folder's file for what is booted, written anew.
pub fn write(folder: &Path, name: &str, bytes: &[u8]) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(name);
    std::fs::write(&path, bytes)?;
    Ok(path)
}
