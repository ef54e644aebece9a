//! The packets' way: from a source by the filter and the handler to a file or the terminal, until
//! the source or the user ends it.

use std::fs::OpenOptions;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use postern::{CallError, Shared};
use postern_capture::{
    Direction, Handler, Link, Next, PacketFilter, PacketRef, Savefiles, Sender, Source, SourceError,
};
use postern_filter::Filter;

use super::arguments::Arguments;
use super::from::unusable;
use super::save::cannot_write;
use super::show::{Clock, Precision};
use crate::output::{self, Failure, Outcome, REFUSED, SUCCESS};

/// Files from which on a bar shows how far they are read.
const BIG: u64 = 16 << 20;
/// Packets between two looks at the terminal and at what is not written yet.
pub const OFTEN: u64 = 4096;
/// Faults of a program that are told; all are counted.
pub const TOLD: u64 = 5;

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
    files: Option<Savefiles<'a>>,
    /// As many files are written as were wanted.
    full: bool,
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
    let seen = arguments.save.write.is_none() && std::io::stdout().is_terminal();
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
    let handler = handler(arguments, &mut source)?;
    arguments.from.relinquish()?;
    let precision = arguments.style.precision();
    let micro = is_micro(precision, &source);
    let mut flow = Flow {
        arguments,
        judge,
        unknown: Vec::new(),
        files: arguments.save.begin(&arguments.from, &source, micro)?,
        full: false,
        handler,
        sender: source.sender(),
        clock: Clock::new(precision),
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

/// Whether times finer than microseconds are wanted by nobody: what was asked for counts, then the
/// source, as far as it is known.
fn is_micro(precision: Option<Precision>, source: &Source) -> bool {
    precision == Some(Precision::Micro) || precision.is_none() && source.is_micro()
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
        let ended = |flow: &Self| flow.full || flow.arguments.limit == Some(flow.accepted);
        while !stop.load(Ordering::SeqCst) && !ended(self) {
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
        if self.files.is_none() && self.arguments.count {
            return Ok(());
        }
        // A file that shrank while it was judged says so with the next packet.
        if source.read(seen, &mut self.bytes).is_err() {
            return Ok(());
        }
        self.bytes.truncate(self.arguments.from.kept());
        if self.files.is_some() {
            self.save(source, seen)?;
            if !self.arguments.print || self.full {
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
        if self.lines.len() > 1 << 16 || self.arguments.unbuffered {
            self.print()?;
        }
        Ok(())
    }

    /// Writes the packet, whose bytes are there, to the file whose turn it is.
    fn save(&mut self, source: &mut Source, seen: &PacketRef) -> Result<(), Failure> {
        let Some(files) = &mut self.files else {
            return Ok(());
        };
        let turned = files.turn();
        let turned = turned.map_err(|error| cannot_write(files.path(), &error))?;
        if let Some(complaint) = files.complaint() {
            output::complain(&complaint);
        }
        let Some(writer) = files.writer().filter(|_| turned) else {
            self.full = true;
            let most = self.arguments.save.files().unwrap_or_default();
            output::complain(&format!("Maximum file limit reached: {most}"));
            return Ok(());
        };
        let precision = self.arguments.style.precision();
        writer.micro(is_micro(precision, source));
        let time = match precision {
            Some(Precision::Micro) => seen.time / 1000 * 1000,
            _ => seen.time,
        };
        writer.origin(source.interface(seen), seen.origin.direction);
        writer.link(seen.origin.link);
        let written = writer.packet(time, &self.bytes, seen.wire);
        let flushed = match self.arguments.unbuffered {
            true => written.and_then(|()| writer.flush()),
            false => written,
        };
        flushed.map_err(|error| self.cannot_write(&error))
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
            let writer = self.files.as_mut().and_then(Savefiles::writer);
            let sent = match (&self.sender, writer) {
                (Some(sender), _) => sender.answer(seen, frame).is_ok(),
                (None, Some(writer)) => {
                    writer.micro(is_micro(self.arguments.style.precision(), source));
                    writer.origin(source.interface(seen), Direction::Out);
                    writer.link(seen.origin.link);
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
        let path = self.files.as_ref().map_or(Path::new("-"), Savefiles::path);
        cannot_write(path, error)
    }

    fn print(&mut self) -> Result<(), Failure> {
        output::print(&std::mem::take(&mut self.lines))
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.print()?;
        match self.files.as_mut().map(Savefiles::flush) {
            Some(Err(error)) => Err(self.cannot_write(&error)),
            _ => Ok(()),
        }
    }

    /// What was counted.
    fn finish(&mut self, source: &mut Source, filter: &PacketFilter) -> Result<(), Failure> {
        self.print()?;
        if let Some(Err(error)) = self.files.as_mut().map(Savefiles::finish) {
            return Err(self.cannot_write(&error));
        }
        let counters = source.counters();
        let (accepted, received) = (self.accepted, counters.received);
        let mut text = format!("{accepted} of {received} packets accepted\n");
        if self.arguments.from.is_live() {
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
