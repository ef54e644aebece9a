//! One stream of packets for many consumers: `pt_demux_…`.
//!
//! The host's function for faults is called when nothing is locked any more, so it may use the
//! source and the demultiplexer.

use crate::boundary::{self, FaultHandler, Out, PacketIn, Text, TextTarget, TextVector, User};
use crate::failure::{self, Code, Failure};
use crate::fault::Shown;
use crate::handle::{Handle, kind};
use crate::object::Object;
use crate::source::{self, SourceKind};
use crate::structures::CTally;
use postern_capture::{Demux, DemuxError, ProgramError, Rules, RulesError, load_compiled};
use postern_filter::{Databases, Options};
use std::ffi::{CString, OsStr, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A demultiplexer with what the C host holds of it.
pub struct Spread {
    source: Arc<source::Open>,
    working: Object<Working>,
    names: Vec<CString>,
}

struct Working {
    demux: Demux,
    finished: bool,
    on_fault: (FaultHandler, User),
}

kind!(DemuxKind: Arc<Spread>, b'X', "pt_demux");

/// Names in C and values, for the test that the header agrees.
pub const FLAGS: [(&str, i32); 1] = [("PT_DEMUX_ALL", ALL)];
const ALL: c_int = 1;

impl From<RulesError> for Failure {
    fn from(error: RulesError) -> Failure {
        let code = match error {
            RulesError::Read { .. } => Code::File,
            RulesError::Syntax { .. } | RulesError::Filter { .. } => Code::Source,
            _ => Code::Argument,
        };
        Failure::new(code, error.to_string())
    }
}

impl From<DemuxError> for Failure {
    fn from(error: DemuxError) -> Failure {
        let message = error.to_string();
        let code = match error {
            DemuxError::Steals { .. } => Code::Refused,
            DemuxError::Output { .. } => Code::File,
            DemuxError::Program(ProgramError::File(..)) => Code::File,
            DemuxError::Program(ProgramError::Load(_, error)) => Failure::from(error).code,
            DemuxError::Program(_) => Code::Argument,
            DemuxError::Extension(error) => return error.into(),
            DemuxError::Set(error) => return error.into(),
            DemuxError::Source(error) => return error.into(),
            _ => Code::Limit,
        };
        Failure::new(code, message)
    }
}

fn make(
    source: Handle<SourceKind>,
    flags: c_int,
    rules: impl FnOnce(Options) -> Result<Rules, Failure>,
) -> Handle<DemuxKind> {
    failure::or(Handle::NULL, || {
        let source = source.get()?;
        if flags & !ALL != 0 {
            let wrong = format!("{flags:#x} are no flags; PT_DEMUX_ALL is");
            return Err(Failure::new(Code::Argument, wrong));
        }
        let rules = rules(Options {
            link: source.lock()?.link(),
            ..Options::default()
        })?;
        let everybody = flags & ALL != 0;
        let made = Demux::with_loader(&rules, &mut *source.lock()?, everybody, load_compiled);
        let demux = made?;
        let names = demux.tallies().map(|(name, _)| failure::text(name));
        Ok(Handle::make(Arc::new(Spread {
            names: names.collect(),
            source,
            working: Object::new(Working {
                demux,
                finished: false,
                on_fault: Default::default(),
            }),
        })))
    })
}

/// `pt_demux_new`
#[unsafe(no_mangle)]
pub extern "C" fn pt_demux_new(
    source: Handle<SourceKind>,
    rules: Text<'_>,
    flags: c_int,
) -> Handle<DemuxKind> {
    make(source, flags, |options| {
        let path = Path::new(OsStr::from_bytes(rules.bytes("path")?));
        Ok(Rules::load(path, &Databases::system(), options)?)
    })
}

/// `pt_demux_to`
#[unsafe(no_mangle)]
pub extern "C" fn pt_demux_to(
    source: Handle<SourceKind>,
    consumers: TextVector<'_>,
    count: usize,
    flags: c_int,
) -> Handle<DemuxKind> {
    make(source, flags, |options| {
        let words = consumers.first(count, "consumer")?.into_iter().map(|word| {
            let word = String::from_utf8(word.to_vec());
            word.map_err(|_| Failure::new(Code::Argument, "a consumer is not UTF-8"))
        });
        let words: Vec<String> = words.collect::<Result<_, _>>()?;
        Ok(Rules::words(&words, &Databases::system(), options)?)
    })
}

/// `pt_demux_on_fault`
#[unsafe(no_mangle)]
pub extern "C" fn pt_demux_on_fault(
    demux: Handle<DemuxKind>,
    handler: FaultHandler,
    user: User,
) -> c_int {
    failure::code(|| {
        demux.get()?.working.lock()?.on_fault = (handler, user);
        Ok(())
    })
}

/// `pt_demux_packet`
#[unsafe(no_mangle)]
pub extern "C" fn pt_demux_packet(demux: Handle<DemuxKind>, packet: PacketIn<'_>) -> c_int {
    failure::code(|| {
        let (spread, seen) = (demux.get()?, packet.get()?.seen()?);
        let mut faults = Vec::new();
        let (given, (handler, user)) = {
            let mut working = spread.working.lock()?;
            let mut faulted = |name: &str, _, error: &_| faults.push(Shown::of_call(error, name));
            let mut source = spread.source.lock()?;
            let given = working.demux.packet(&mut source, &seen, &mut faulted);
            working.finished = false;
            (given, working.on_fault)
        };
        for fault in &faults {
            boundary::call_handler(handler, &fault.c, user);
        }
        Ok(given?)
    })
}

/// `pt_demux_idle`
#[unsafe(no_mangle)]
pub extern "C" fn pt_demux_idle(demux: Handle<DemuxKind>) -> c_int {
    failure::code(|| Ok(demux.get()?.working.lock()?.demux.idle()?))
}

fn finish(spread: &Spread) -> Result<(), Failure> {
    let mut working = spread.working.lock()?;
    working.finished = true;
    Ok(working.demux.finish()?)
}

/// `pt_demux_finish`
#[unsafe(no_mangle)]
pub extern "C" fn pt_demux_finish(demux: Handle<DemuxKind>) -> c_int {
    failure::code(|| finish(&*demux.get()?))
}

/// `pt_demux_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_demux_free(demux: Handle<DemuxKind>) -> c_int {
    failure::code(|| {
        let spread = demux.take()?;
        let finished = spread.working.lock()?.finished;
        match finished {
            true => Ok(()),
            false => finish(&spread),
        }
    })
}

/// `pt_demux_tally`
#[unsafe(no_mangle)]
pub extern "C" fn pt_demux_tally(
    demux: Handle<DemuxKind>,
    index: usize,
    tally: Out<'_, CTally>,
) -> c_int {
    failure::number(|| {
        let (spread, place) = (demux.get()?, tally.needed("tally")?);
        let working = spread.working.lock()?;
        let found = working.demux.tallies().nth(index);
        let (Some((_, tally)), Some(name)) = (found, spread.names.get(index)) else {
            return Ok(0);
        };
        place.put(CTally {
            name: name.as_ptr(),
            packets: tally.packets,
            bytes: tally.bytes,
            dropped: tally.dropped,
            answers: tally.answers,
            faults: tally.faults,
            reserved: [0; 2],
        });
        Ok(1)
    }) as c_int
}

/// `pt_demux_unclaimed`
#[unsafe(no_mangle)]
pub extern "C" fn pt_demux_unclaimed(demux: Handle<DemuxKind>, packets: Out<'_, u64>) -> c_int {
    failure::code(|| {
        packets.put(demux.get()?.working.lock()?.demux.unclaimed());
        Ok(())
    })
}

/// `pt_demux_show`
#[unsafe(no_mangle)]
pub extern "C" fn pt_demux_show(
    demux: Handle<DemuxKind>,
    text: TextTarget<'_>,
    size: usize,
) -> i64 {
    failure::number(|| {
        let shown = demux.get()?.working.lock()?.demux.set().to_string();
        text.fill(size, &shown)
    })
}
