//! The first process: what the archive's file `init` says, or a shell; and the services that its file
//! `services.list` names, a line each, which run before.

use postern_aegis::{Error, archive, println};
use postern_exos_abi::VERSION;
use postern_exos_abi::start::Head;
use postern_exos_load::archive::{index_of, nth};
use postern_exos_load::elf::Program;
use postern_exos_load::space::{self, Space};
use postern_exos_load::start::Start;

use crate::registry::Registry;

/// Pages that it may have at first.
const ROOM: u64 = 512;

/// Makes and starts them. The first process has the first number, and starts last.
pub fn start(registry: &mut Registry) -> Result<(), Error> {
    let line = archive::own().file("init").unwrap_or(b"sh");
    let first = make(registry, line)?;
    let services = archive::own().file("services.list").unwrap_or(b"");
    let lines = services.split(|byte| *byte == b'\n');
    for line in lines.filter(|line| !line.trim_ascii().is_empty()) {
        let pid = make(registry, line)?;
        if let Ok(slot) = registry.slot_of(pid.into()) {
            registry.comes(slot);
        }
    }
    registry.keeper.open();
    let mut pid = first + 1;
    while registry.slot_of(pid.into()).is_ok() {
        begin(registry, pid)?;
        pid += 1;
    }
    begin(registry, first)
}

fn begin(registry: &mut Registry, pid: u32) -> Result<(), Error> {
    let started = registry.start(None, pid.into(), true);
    started.map_err(|_| Error::Quota)
}

/// Makes a process that is called with a line's words: its number.
fn make(registry: &mut Registry, line: &[u8]) -> Result<u32, Error> {
    let words = || {
        let words = line.split(u8::is_ascii_whitespace);
        words.filter(|word| !word.is_empty())
    };
    let name = words().next().unwrap_or(b"sh");
    let file = index_of(name).and_then(nth).ok_or(Error::Argument)?;
    let program = Program::read(&file)?;
    if program.version != VERSION {
        let version = program.version;
        println!(
            "init: a process to begin with reads start pages of version {version}, not {VERSION}"
        );
        return Err(Error::Kind);
    }
    let made = registry.create(None, (program.entry, ROOM), name_of(name));
    let (slot, made) = made.map_err(|_| Error::Quota)?;
    let space = Space {
        target: made.target(),
    };
    space.load(&file, &program)?;
    let mut head = Head {
        permissions: 0o022,
        version: VERSION,
        pid: registry.pid(slot),
        ..Head::default()
    };
    let mut start = Start::new();
    start.strings(&mut head, words(), core::iter::empty())?;
    start.finish(&head, &space)?;
    space::close_windows();
    Ok(head.pid)
}

/// A name's first bytes as words.
fn name_of(name: &[u8]) -> [u64; 2] {
    let mut bytes = [0; 16];
    let length = name.len().min(15);
    bytes[..length].copy_from_slice(&name[..length]);
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(word)
    };
    [word(0), word(8)]
}
