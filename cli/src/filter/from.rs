//! Where packets come from, as options say it: a file, a pipe, an interface.

use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args;
use postern_capture::{CaptureDirection, Link, Live, Source, SourceError};

use crate::output::Failure;

/// Arguments or files that cannot be used.
pub fn unusable(error: impl std::fmt::Display) -> Failure {
    Failure::unusable(error.to_string())
}

/// Where packets come from.
#[derive(Args)]
pub struct From {
    /// Read packets from this pcap or pcapng file; `-` is standard input
    #[arg(short = 'r', long, value_name = "FILE")]
    read: Option<PathBuf>,
    /// Capture on this interface; `any` is all whose packets filters know
    #[arg(short = 'i', long, value_name = "INTERFACE", conflicts_with = "read", value_parser = named)]
    interface: Option<String>,
    /// Capture only packets that are for this machine anyway (not promiscuous)
    #[arg(short = 'p', long, requires = "interface")]
    no_promiscuous: bool,
    /// Keep at most so many bytes of each packet; 0 is all of them
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 0,
        value_parser = clap::value_parser!(u32).range(0..=262_144))]
    snaplen: u32,
    /// Capture only packets that come in, or that go out
    #[arg(
        short = 'Q',
        long = "direction",
        value_name = "WAY",
        requires = "interface",
        default_value = "inout"
    )]
    way: Which,
    /// MiB of memory for packets that were not looked at yet
    #[arg(long, value_name = "MIB", requires = "interface", default_value_t = 16,
        value_parser = clap::value_parser!(u32).range(2..=1024))]
    ring: u32,
    /// The same in KiB
    #[arg(short = 'B', long, value_name = "KIB", requires = "interface", conflicts_with = "ring",
        value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    buffer_size: Option<u32>,
    /// Look at each packet as soon as it comes, not at many together; so do handlers, and lines on
    /// a terminal
    #[arg(long)]
    immediate_mode: bool,
    /// As soon as the source is open, become this user if the process is root's
    #[arg(short = 'Z', long = "relinquish-privileges", value_name = "USER")]
    user: Option<String>,
}

/// The name of an interface, which may be given by its place in the list of `-D`, from 1 on.
fn named(text: &str) -> Result<String, String> {
    let Ok(number) = text.parse::<usize>() else {
        return Ok(text.to_owned());
    };
    let listed = postern_capture::interfaces().unwrap_or_default();
    if listed.iter().any(|name| name == text) {
        return Ok(text.to_owned());
    }
    let place = number.checked_sub(1);
    let found = place.and_then(|place| listed.into_iter().nth(place));
    found.ok_or_else(|| format!("there is no interface {number}; `-D` lists them"))
}

/// Which packets of an interface are wanted.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Which {
    In,
    Out,
    Inout,
}

impl From {
    /// Whether there is a source.
    pub fn is_some(&self) -> bool {
        self.read.is_some() || self.interface.is_some()
    }

    /// Whether packets come from an interface.
    pub fn is_live(&self) -> bool {
        self.interface.is_some()
    }

    /// Whether this is the file that is read: writing would begin with making it empty.
    pub fn is_read(&self, path: &Path) -> bool {
        let same = |read: &PathBuf| {
            let (from, to) = (std::fs::metadata(read).ok()?, std::fs::metadata(path).ok()?);
            Some(from.is_file() && (from.dev(), from.ino()) == (to.dev(), to.ino()))
        };
        self.read.as_ref().and_then(same) == Some(true)
    }

    /// Bytes of a packet that are shown and written.
    pub fn kept(&self) -> usize {
        match self.snaplen {
            0 => 1 << 18,
            bytes => bytes as usize,
        }
    }

    /// The netmask of the captured network: the one that was given, or the interface's.
    pub fn netmask(&self, given: Option<Ipv4Addr>) -> Option<u32> {
        let of_interface = || postern_capture::netmask(self.interface.as_deref()?);
        given.or_else(of_interface).map(Ipv4Addr::to_bits)
    }

    /// Says that packets are captured from now on.
    pub fn announce(&self, link: Link) {
        if let Some(interface) = &self.interface {
            // If stderr is gone nobody can be told.
            let text = format!(
                "listening on {interface}, link type {}; ^C ends\n",
                link.name()
            );
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
    }

    /// What packets begin with, of an interface or a file that can be looked at before it is read.
    pub fn link(&self) -> Option<Link> {
        match &self.read {
            Some(path) if path.is_file() => Some(Source::file(path).ok()?.link()),
            _ => self.interface_link(),
        }
    }

    /// What packets of the interface begin with.
    pub fn interface_link(&self) -> Option<Link> {
        postern_capture::link(self.interface.as_deref()?)
    }

    /// Becomes the user that was asked for. The source is open then, files to write are not.
    pub fn relinquish(&self) -> Result<(), Failure> {
        let Some(user) = &self.user else {
            return Ok(());
        };
        let changed = postern_capture::become_user(user);
        if changed.map_err(|error| unusable(format!("-Z {user}: {error}")))? {
            // If stderr is gone nobody can be told.
            let _ = writeln!(std::io::stderr(), "dropped privs to {user}");
        }
        Ok(())
    }

    /// Opens the source; `immediate` is for those who answer or are looked at.
    pub fn open(&self, immediate: bool) -> Result<Source, Failure> {
        if let Some(interface) = &self.interface {
            let live = Live {
                interface: interface.clone(),
                promiscuous: !self.no_promiscuous,
                snaplen: self.kept() as u32,
                ring: match self.buffer_size {
                    Some(kib) => (kib as usize) << 10,
                    None => (self.ring as usize) << 20,
                },
                direction: match self.way {
                    Which::In => Some(CaptureDirection::In),
                    Which::Out => Some(CaptureDirection::Out),
                    Which::Inout => None,
                },
                immediate: immediate || self.immediate_mode,
            };
            return Source::live(&live).map_err(unusable);
        }
        if !matches!(self.way, Which::Inout) {
            return Err(unusable(
                "-Q chooses packets of an interface: files do not say which way their packets went",
            ));
        }
        let path = self.read.as_deref().unwrap_or(Path::new("-"));
        if path == Path::new("-") {
            return Source::file(Path::new("/dev/stdin")).map_err(unusable);
        }
        Source::file(path).map_err(|error| self.named(&error))
    }

    /// An error with the file's name.
    pub fn named(&self, error: &SourceError) -> Failure {
        match (&self.read, error) {
            (Some(path), SourceError::Format(_)) => {
                Failure::unusable(format!("{}: {error}", path.display()))
            }
            _ => unusable(error),
        }
    }
}
