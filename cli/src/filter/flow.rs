//! The packets' way: from a source by the filter and the handler to a file or the terminal, until
//! the source or the user ends it.

use std::fs::OpenOptions;
use std::io::{IsTerminal, Write};
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use postern::{CallError, Shared};
use postern_capture::{
    CaptureDirection, Direction, Format, Handler, Link, Live, Next, PacketFilter, PacketRef,
    Sender, Source, SourceError, Writer,
};
use postern_filter::Filter;

use super::Arguments;
use super::show::Clock;
use crate::output::{self, Failure, Outcome, REFUSED, SUCCESS};

/// Files from which on a bar shows how far they are read.
const BIG: u64 = 16 << 20;
/// Packets between two looks at the terminal and at what is not written yet.
pub const OFTEN: u64 = 4096;
/// Faults of a program that are told; all are counted.
pub const TOLD: u64 = 5;

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

    /// Fails if this is the file that is read: writing would begin with making it empty.
    pub fn spare(&self, path: &Path) -> Result<(), Failure> {
        let same = |read: &PathBuf| {
            let (from, to) = (std::fs::metadata(read).ok()?, std::fs::metadata(path).ok()?);
            Some(from.is_file() && (from.dev(), from.ino()) == (to.dev(), to.ino()))
        };
        match self.read.as_ref().and_then(same) {
            Some(true) => Err(unusable(format!(
                "{} is the file that is read: write another one",
                path.display()
            ))),
            _ => Ok(()),
        }
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
        match (&self.interface, &self.read) {
            (Some(interface), _) => postern_capture::link(interface),
            (None, Some(path)) if path.is_file() => Some(Source::file(path).ok()?.link()),
            _ => None,
        }
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

/// A capture file to write, or standard output.
fn outlet(path: &Path, format: Format, source: &Source) -> Result<Writer, Failure> {
    let (link, interfaces) = (source.link(), source.interfaces());
    let writer = match path == Path::new("-") {
        true => Writer::new_of(Box::new(std::io::stdout()), format, link, interfaces),
        false => Writer::create_of(path, format, link, interfaces),
    };
    writer.map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::unusable(format!("cannot write {}: {error}", path.display()))
}

/// How far a big file is read, if somebody looks.
pub struct Bar(Option<ProgressBar>);

impl Bar {
    /// A bar for a source that is a big file, where standard error is a terminal.
    pub fn of(source: &mut Source) -> Bar {
        let size = source.progress().map_or(0, |(_, size)| size);
        if size < BIG || !std::io::stderr().is_terminal() {
            return Bar(None);
        }
        let bar = ProgressBar::new(size);
        let style = "[{bar:40}] {bytes} of {total_bytes}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style.progress_chars("=> "));
        }
        Bar(Some(bar))
    }

    /// Moves the bar.
    pub fn show(&self, source: &mut Source) {
        if let (Some(bar), Some((at, _))) = (&self.0, source.progress()) {
            bar.set_position(at);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Where accepted packets go.
struct Flow<'a> {
    arguments: &'a Arguments,
    judge: Judge<'a>,
    /// Links for which the filter cannot be said: none of their packets is accepted.
    unknown: Vec<Link>,
    writer: Option<Writer>,
    handler: Option<Handler>,
    sender: Option<Sender>,
    clock: Clock,
    lines: String,
    bytes: Vec<u8>,
    accepted: u64,
    taken: u64,
    sent: u64,
    unsent: u64,
}

/// Who judges: made for what the source's packets begin with.
pub type Judge<'a> = &'a dyn Fn(Link) -> Result<Filter, Failure>;

/// Runs until the source ends, or enough was seen. The filter is `judge`'s for each link, unless it
/// is a program.
pub fn run(arguments: &Arguments, program: Option<PacketFilter>, judge: Judge<'_>) -> Outcome {
    let stop = postern_capture::stop_on_interrupt();
    let seen = arguments.write.is_none() && std::io::stdout().is_terminal();
    let mut source = arguments.from.open(seen || arguments.handler.is_some())?;
    let mut filter = match program {
        Some(program) => program,
        None => {
            let wanted = judge(source.link())?;
            source.only(&wanted);
            PacketFilter::compiled_for(source.link(), &wanted.code()).map_err(unusable)?
        }
    };
    filter.watch(&mut source).map_err(unusable)?;
    if let Some(path) = &arguments.write {
        arguments.from.spare(path)?;
    }
    let writer = arguments.write.as_deref().map(|path| {
        let named = if arguments.pcapng {
            Format::PcapNg
        } else {
            Format::of(path)
        };
        outlet(path, named, &source)
    });
    let mut flow = Flow {
        arguments,
        judge,
        unknown: Vec::new(),
        writer: writer.transpose()?,
        handler: handler(arguments, &mut source)?,
        sender: source.sender(),
        clock: Clock::default(),
        lines: String::new(),
        bytes: Vec::new(),
        accepted: 0,
        taken: 0,
        sent: 0,
        unsent: 0,
    };
    arguments.from.announce(source.link());
    let damage = flow.all(&mut source, &mut filter, stop)?;
    flow.finish(&mut source, &filter)?;
    if let Some(error) = &damage {
        let named = arguments.from.named(error);
        named.report();
    }
    let faults = filter.faults() + flow.handler.as_ref().map_or(0, Handler::faults);
    Ok(match damage.is_some() || faults > 0 {
        true => REFUSED,
        false => SUCCESS,
    })
}

fn handler(arguments: &Arguments, source: &mut Source) -> Result<Option<Handler>, Failure> {
    let Some(path) = &arguments.handler else {
        return Ok(None);
    };
    let image = postern_capture::load(path).map_err(unusable)?;
    let area = area(&arguments.area)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let handler = Handler::new(&image, &name, area.as_ref()).map_err(unusable)?;
    handler.watch(source).map_err(unusable)?;
    Ok(Some(handler))
}

/// The area over a file, which is made if it is not there.
fn area(words: &[String]) -> Result<Option<Shared>, Failure> {
    let [path, bytes] = words else {
        return Ok(None);
    };
    let bytes: u64 = bytes
        .parse()
        .map_err(|_| Failure::unusable(format!("`{bytes}` is no number of bytes")))?;
    let open = || {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).open(path)?;
        if file.metadata()?.len() < bytes {
            file.set_len(bytes)?;
        }
        Ok(file)
    };
    let file = open().map_err(|error| cannot_write(Path::new(path), &error))?;
    let builder = Shared::builder().name(path.as_str());
    let area = builder.file(file.into(), 0, bytes as usize);
    area.map(Some).map_err(unusable)
}

impl Flow<'_> {
    /// Every packet; gives why it ended early, if it did.
    fn all(
        &mut self,
        source: &mut Source,
        filter: &mut PacketFilter,
        stop: &AtomicBool,
    ) -> Result<Option<SourceError>, Failure> {
        let bar = Bar::of(source);
        let live = self.sender.is_some() || source.progress().is_none();
        let (tell, write_out) = postern_capture::requests();
        let mut number = 0;
        while !stop.load(Ordering::SeqCst) && self.arguments.limit != Some(self.accepted) {
            match source.next() {
                Ok(Next::Packet(seen)) => {
                    number += 1;
                    self.packet(source, filter, &seen, number)?;
                    if number % OFTEN == 0 {
                        bar.show(source);
                        self.flush()?;
                    }
                }
                Ok(Next::Idle) => self.flush()?,
                Ok(Next::End) => break,
                Err(error) => return Ok(Some(error)),
            }
            if live && !self.lines.is_empty() {
                self.print()?;
            }
            if tell.swap(false, Ordering::SeqCst) {
                let counters = source.counters();
                let text = format!(
                    "{} packets captured, {} packets received by filter, {} packets dropped by kernel\n",
                    self.accepted, counters.received, counters.dropped
                );
                // If stderr is gone nobody can be told.
                let _ = std::io::stderr().write_all(text.as_bytes());
            }
            if write_out.swap(false, Ordering::SeqCst) {
                self.flush()?;
            }
        }
        Ok(None)
    }

    fn packet(
        &mut self,
        source: &mut Source,
        filter: &mut PacketFilter,
        seen: &PacketRef,
        number: u64,
    ) -> Result<(), Failure> {
        let link = seen.origin.link;
        if !filter.knows(link) && !self.unknown.contains(&link) {
            self.learn(source, filter, link)?;
        }
        match filter.ask(seen) {
            Ok(0) => return Ok(()),
            Ok(_) => self.accepted += 1,
            Err(error) => {
                tell(number, filter.faults(), &error);
                return Ok(());
            }
        }
        if self.handled(source, seen, number)? {
            return Ok(());
        }
        if self.writer.is_none() && self.arguments.count {
            return Ok(());
        }
        // A file that shrank while it was judged says so with the next packet.
        if source.read(seen, &mut self.bytes).is_err() {
            return Ok(());
        }
        self.bytes.truncate(self.arguments.from.kept());
        if let Some(writer) = &mut self.writer {
            writer.origin(source.interface(seen), seen.origin.direction);
            writer.link(link);
            let written = writer.packet(seen.time, &self.bytes, seen.wire);
            let flushed = match self.arguments.unbuffered {
                true => written.and_then(|()| writer.flush()),
                false => written,
            };
            flushed.map_err(|error| self.cannot_write(&error))?;
            if !self.arguments.print {
                return Ok(());
            }
        }
        let interface = if source.is_mixed() || self.arguments.style.json {
            source.interface(seen)
        } else {
            ""
        };
        let style = &self.arguments.style;
        self.lines += &style.text(&mut self.clock, number, seen, interface, &self.bytes);
        if self.lines.len() > 1 << 16 {
            self.print()?;
        }
        Ok(())
    }

    /// Makes the filter for packets of another link than those before.
    fn learn(
        &mut self,
        source: &mut Source,
        filter: &mut PacketFilter,
        link: Link,
    ) -> Result<(), Failure> {
        match (self.judge)(link) {
            Ok(wanted) => filter.add(link, &wanted.code(), source).map_err(unusable)?,
            Err(error) => {
                error.report();
                self.unknown.push(link);
            }
        }
        Ok(())
    }

    /// Gives the packet to the handler; whether that took it.
    fn handled(
        &mut self,
        source: &mut Source,
        seen: &PacketRef,
        number: u64,
    ) -> Result<bool, Failure> {
        let Some(handler) = &mut self.handler else {
            return Ok(false);
        };
        let (taken, answers) = match handler.run(seen) {
            Ok(result) => result,
            Err(error) => {
                tell(number, handler.faults(), &error);
                return Ok(false);
            }
        };
        for frame in answers.frames() {
            let sent = match (&self.sender, &mut self.writer) {
                (Some(sender), _) => sender.answer(seen, frame).is_ok(),
                (None, Some(writer)) => {
                    writer.origin(source.interface(seen), Direction::Out);
                    let written = writer.packet(seen.time, frame, frame.len() as u32);
                    written.map_err(|error| self.cannot_write(&error))?;
                    true
                }
                (None, None) => false,
            };
            *(if sent {
                &mut self.sent
            } else {
                &mut self.unsent
            }) += 1;
        }
        self.taken += u64::from(taken);
        Ok(taken)
    }

    fn cannot_write(&self, error: &std::io::Error) -> Failure {
        let path = self.arguments.write.as_deref().unwrap_or(Path::new("-"));
        cannot_write(path, error)
    }

    fn print(&mut self) -> Result<(), Failure> {
        output::print(&std::mem::take(&mut self.lines))
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.print()?;
        match self.writer.as_mut().map(Writer::flush) {
            Some(Err(error)) => Err(self.cannot_write(&error)),
            _ => Ok(()),
        }
    }

    /// What was counted.
    fn finish(&mut self, source: &mut Source, filter: &PacketFilter) -> Result<(), Failure> {
        self.print()?;
        if let Some(Err(error)) = self.writer.as_mut().map(Writer::finish) {
            return Err(self.cannot_write(&error));
        }
        let counters = source.counters();
        let (accepted, received) = (self.accepted, counters.received);
        let mut text = format!("{accepted} of {received} packets accepted\n");
        if self.arguments.from.interface.is_some() {
            text += &format!("{} packets dropped by kernel\n", counters.dropped);
        }
        if let Some(handler) = &self.handler {
            text += &format!(
                "{} packets handled, {} taken, {} answers sent, {} not sent, {} faults\n",
                handler.calls(),
                self.taken,
                self.sent,
                self.unsent,
                handler.faults()
            );
        }
        if filter.faults() > 0 {
            text += &format!("{} faults of the program\n", filter.faults());
        }
        if self.arguments.count {
            return output::print(&text);
        }
        // If stderr is gone nobody can be told.
        let _ = std::io::stderr().write_all(text.as_bytes());
        Ok(())
    }
}

/// Says that a program faulted, unless it did so often already.
fn tell(number: u64, faults: u64, error: &CallError) {
    if faults <= TOLD {
        output::complain(&format!("packet {number}: {error}"));
    }
    if faults == TOLD {
        output::complain("further faults are only counted");
    }
}
