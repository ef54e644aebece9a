//! Programs of the archive as processes: new ones, or this one.

use postern_exos_abi::VERSION;
use postern_exos_abi::errno::Errno;
use postern_exos_abi::signal;
use postern_exos_abi::start::Head;
use postern_exos_load::elf::Program;
use postern_exos_load::space::{self, Space};
use postern_exos_load::start::Start;

use postern_aegis::Error;

use crate::files;
use crate::files::paths;
use crate::net::sockets;
use crate::process::program::{self, Found};
use crate::process::registry::{Made, refusal};
use crate::process::{own, registry, signals};

/// Pages that a new process may have beyond those of its program.
const ROOM: u64 = 192;

/// How a program is called.
pub trait Call {
    /// Its arguments.
    fn arguments(&self) -> impl Iterator<Item = &[u8]> + Clone;
    /// Its variables.
    fn variables(&self) -> impl Iterator<Item = &[u8]> + Clone;
}

fn room(program: &Program) -> u64 {
    let pages = program
        .segments()
        .iter()
        .map(|segment| segment.pages().count() as u64);
    ROOM + pages.sum::<u64>()
}

fn short(name: &[u8]) -> [u64; 2] {
    let last = name.rsplit(|byte| *byte == b'/').next();
    own::words_of(last.unwrap_or(name))
}

fn fill(made: &Made, found: &Found, name: &[u8], call: &impl Call) -> Result<(), Error> {
    let space = Space {
        target: made.target,
    };
    space.load(found.source(), &found.program)?;
    let mut head = Head {
        version: VERSION,
        pid: made.pid,
        parent: own::pid(),
        ignored: signals::ignored(),
        mask: signals::mask(),
        permissions: paths::mask() as u16,
        ..Head::default()
    };
    let mut start = Start::new();
    files::hand_on(&space, &mut head, |handed| start.hand(handed))?;
    if !paths::is_in_root() {
        start.folder(&mut head, paths::current().bytes())?;
    }
    let own = call.arguments().skip(found.is_script().into());
    start.strings(
        &mut head,
        found.arguments(name).chain(own),
        call.variables(),
    )?;
    start.finish(&head, &space)
}

/// A new process of a program: its number.
pub fn spawn(name: &[u8], call: &impl Call) -> Result<u32, Errno> {
    let found = program::find(name)?;
    files::share().map_err(refusal)?;
    let program = &found.program;
    let made = registry::create(program.entry, room(program), short(name))?;
    let begun = fill(&made, &found, name, call)
        .map_err(refusal)
        .and_then(|()| files::tell_child(made.pid))
        .and_then(|()| registry::begin(made.pid));
    space::close_windows();
    match begun {
        Ok(()) => Ok(made.pid),
        Err(error) => {
            let _ = registry::kill(made.pid, signal::KILL);
            Err(error)
        }
    }
}

/// This process becomes another program, and does not come back.
pub fn exec(name: &[u8], call: &impl Call) -> Result<(), Errno> {
    let found = program::find(name)?;
    files::share().map_err(refusal)?;
    let program = &found.program;
    let made = registry::replace(program.entry, room(program))?;
    let made = Made {
        pid: own::pid(),
        ..made
    };
    let filled = fill(&made, &found, name, call);
    space::close_windows();
    filled.map_err(refusal)?;
    // Nothing is dropped behind the end.
    drop(found);
    sockets::leave();
    registry::commit(short(name))
}
