//! Programs: which file one is, how the loader is executed instead of it, and what it is told of
//! itself.

use crate::elf::{Elf, HEAD, Unfit};
use crate::stubs::Kind;
use crate::system::{self, error, number};
use crate::thread::Block;
use crate::{calls, start, trap::Call};
use core::fmt::Write;
use core::sync::atomic::Ordering::SeqCst;

/// Bytes of a path with its zero.
pub const PATH: usize = 4096;

/// Where a program is executed from: an open file, with its path.
pub struct Program {
    /// To be read.
    pub file: i32,
    /// What it has of its head.
    pub head: [u8; HEAD],
    /// How much.
    pub filled: usize,
}

/// Opens a program: an ELF file of this machine's, that the caller may execute.
pub fn find(folder: i32, path: &[u8], flags: u64) -> Result<Program, i64> {
    const AT_EACCESS: u64 = 0x200;
    const AT_EMPTY_PATH: u64 = 0x1000;
    const MAY_EXECUTE: u64 = 1;
    let at = path.as_ptr() as u64;
    let empty = path.first() == Some(&0);
    if empty && flags & AT_EMPTY_PATH == 0 {
        return Err(error::ENOENT);
    }
    // SAFETY: the kernel reads the path, which ends with a zero.
    let (may, file) = unsafe {
        let access = AT_EACCESS | flags & AT_EMPTY_PATH;
        let may = system::call(
            number::FACCESSAT2,
            [folder as u64, at, MAY_EXECUTE, access, 0, 0],
        );
        let file = match empty {
            true => system::call(number::FCNTL, [folder as u64, 0, 0, 0, 0, 0]),
            false => system::call(number::OPENAT, [folder as u64, at, 0, 0, 0, 0]),
        };
        (may, file)
    };
    if file < 0 {
        return Err(file);
    }
    let mut program = Program {
        file: file as i32,
        head: [0; HEAD],
        filled: 0,
    };
    let got = system::pread(program.file, &mut program.head, 0);
    if may < 0 || got < 0 {
        system::close(program.file);
        // A folder cannot be read, nor executed.
        return Err(if may < 0 { may } else { error::EACCES });
    }
    program.filled = got as usize;
    Ok(program)
}

/// The interpreter that the first line of a script names, and its argument, each with a zero.
fn script(head: &[u8]) -> Option<[u8; 256]> {
    let line = head.strip_prefix(b"#!")?;
    let line = line.get(..255.min(line.len()))?;
    let line = &line[..line
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(line.len())];
    let line = line.trim_ascii();
    let mut words = [0; 256];
    let first = line
        .iter()
        .position(|byte| matches!(byte, b' ' | b'\t'))
        .unwrap_or(line.len());
    let rest = line[first..].trim_ascii();
    words[..first].copy_from_slice(&line[..first]);
    words[first + 1..first + 1 + rest.len()].copy_from_slice(rest);
    (first > 0).then_some(words)
}

/// Interpreters of one script, at most.
const DEEPEST: usize = 5;

/// Strings and pointers for a new program, in pages that stay until it has begun.
#[repr(C)]
struct Prepared {
    bytes: u64,
    /// The program's open file, and the process that has it: the descriptors of one whose maker
    /// waits are its own.
    file: i32,
    process: i32,
    name: [u8; PATH],
    told: [u8; PATH + 64],
    loader: [u8; 32],
    interpreters: [[u8; 256]; DEEPEST],
}

/// A list of pointers in such pages.
struct Pointers {
    at: u64,
    count: usize,
    most: usize,
}

impl Pointers {
    fn push(&mut self, pointer: u64) {
        if self.count < self.most {
            // SAFETY: room of its own, with one word more, which is zero.
            unsafe { (self.at as *mut u64).add(self.count).write(pointer) };
            self.count += 1;
        }
    }
}

impl Prepared {
    /// With room for so many arguments and variables.
    fn new(
        arguments: usize,
        variables: usize,
    ) -> Option<(&'static mut Prepared, Pointers, Pointers)> {
        let start = size_of::<Prepared>().next_multiple_of(8) as u64;
        let list = |most: usize| 8 * (most as u64 + 1);
        let bytes = start + list(arguments) + list(variables);
        let at = system::fresh(bytes)?;
        // SAFETY: fresh pages; zeros are such a structure.
        let prepared = unsafe { &mut *(at as *mut Prepared) };
        prepared.bytes = bytes;
        let pointers = |at, most| Pointers { at, count: 0, most };
        let argv = pointers(at + start, arguments);
        let envp = pointers(at + start + list(arguments), variables);
        Some((prepared, argv, envp))
    }

    fn address(&self) -> u64 {
        core::ptr::from_ref(self) as u64
    }
}

/// Gives back what was prepared for a program that did not begin, or that began in a process whose
/// maker waited.
fn forget(at: u64) {
    if at != 0 {
        // SAFETY: pages of a `Prepared`, which nobody uses any more.
        unsafe {
            let Prepared {
                bytes,
                file,
                process,
                ..
            } = *(at as *const Prepared);
            if process as u64 == system::process() {
                system::close(file);
            }
            system::call(number::MUNMAP, [at, bytes, 0, 0, 0, 0]);
        }
    }
}

/// How many pointers there are before the zero.
fn count(mut at: u64) -> Result<usize, i64> {
    const MOST: usize = 1 << 20;
    let mut found = 0;
    while at != 0 && found < MOST {
        match system::word(at) {
            None => return Err(error::EFAULT),
            Some(0) => return Ok(found),
            Some(_) => found += 1,
        }
        at += 8;
    }
    if at == 0 { Ok(0) } else { Err(error::E2BIG) }
}

/// The name of the variable by which loaders are told what to load.
pub const VARIABLE: &[u8] = b"POSTERN_INTERPOSE=";

/// A string in a buffer.
struct Text<'a> {
    to: &'a mut [u8],
    filled: usize,
}

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.bytes(text.as_bytes()).ok_or(core::fmt::Error)
    }
}

impl Text<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        let to = self.to.get_mut(self.filled..self.filled + bytes.len())?;
        to.copy_from_slice(bytes);
        self.filled += bytes.len();
        Some(())
    }
}

/// The calls `execve` and `execveat`: the loader is executed, and told which program it is to load.
pub fn exec(call: &mut Call<'_>, folder: Option<i32>, words: [u64; 4]) {
    const AT_FDCWD: i32 = -100;
    let [path, arguments, variables, flags] = words;
    let mut name = [0; PATH];
    let block = Block::mine();
    forget(block.prepared.swap(0, SeqCst));
    let prepared = system::string(path, &mut name).and_then(|_| {
        let folder = folder.unwrap_or(AT_FDCWD);
        prepare(folder, &name, arguments, variables, flags)
    });
    match prepared {
        Ok((prepared, words)) => {
            block.prepared.store(prepared, SeqCst);
            crate::agent::leave(block);
            // With the program's own mask, which the next one has: so when it goes on.
            let (number, words) = of_loader(words);
            call.number = number;
            calls::alter(call, words);
        }
        Err(error) => call.answer(error),
    }
}

/// The call that executes the loader: `execve`, as filters of the program's expect it, or what does
/// without /proc.
fn of_loader([path, arguments, variables]: [u64; 3]) -> (u64, [u64; 6]) {
    const AT_EMPTY_PATH: u64 = 0x1000;
    const AT_FDCWD: u64 = -100_i64 as u64;
    let loader = start::told().loader as u64;
    // SAFETY: the kernel reads the path.
    let there = unsafe { system::call(number::FACCESSAT2, [AT_FDCWD, path, 0, 0, 0, 0]) };
    if there == 0 {
        return (number::EXECVE, [path, arguments, variables, 0, 0, 0]);
    }
    let empty = c"".as_ptr() as u64;
    (
        number::EXECVEAT,
        [loader, empty, arguments, variables, AT_EMPTY_PATH, 0],
    )
}

/// Executes the first program of a tree, with lists that begin there; of the variables, the
/// loader's own is left out. An error, if it comes back.
pub fn by_path(path: &[u8], arguments: u64, variables: u64) -> i64 {
    let mut name = [0; PATH];
    match name.get_mut(..path.len()) {
        Some(to) if path.len() < PATH => to.copy_from_slice(path),
        _ => return error::ENAMETOOLONG,
    }
    match prepare(-100, &name, arguments, variables, 0) {
        // SAFETY: what was put together stays; if the call comes back, nothing has changed.
        Ok((_, words)) => unsafe {
            let (number, words) = of_loader(words);
            system::call(number, words)
        },
        Err(error) => error,
    }
}

/// Puts together what the loader is executed with: the words of `execveat`, and where they lie.
fn prepare(
    folder: i32,
    name: &[u8; PATH],
    arguments: u64,
    variables: u64,
    flags: u64,
) -> Result<(u64, [u64; 3]), i64> {
    let (given, known) = (count(arguments)?, count(variables)?);
    // Each interpreter of a script has two words more.
    let room = Prepared::new(given.max(1) + 2 * DEEPEST, known + 1);
    let (prepared, argv, envp) = room.ok_or(error::ENOMEM)?;
    let at = prepared.address();
    prepared.name = *name;
    let lists = (argv, envp, given, known);
    fill(prepared, lists, (arguments, variables), folder, flags)
        .map(|words| (at, words))
        .inspect_err(|_| forget(at))
}

fn fill(
    prepared: &mut Prepared,
    (mut argv, mut envp, given, known): (Pointers, Pointers, usize, usize),
    (arguments, variables): (u64, u64),
    folder: i32,
    flags: u64,
) -> Result<[u64; 3], i64> {
    let Prepared {
        file,
        process,
        name,
        told,
        loader,
        interpreters,
        ..
    } = prepared;
    let mut program = find(folder, &name[..], flags)?;
    let mut depth = 0;
    while let Some(words) = script(&program.head[..program.filled]) {
        system::close(program.file);
        *interpreters.get_mut(depth).ok_or(error::ELOOP)? = words;
        depth += 1;
        program = find(-100, &words, 0)?;
    }
    let path = match depth {
        0 => &name[..],
        _ => &interpreters[depth - 1][..],
    };
    let length = path.iter().position(|byte| *byte == 0).unwrap_or(0);
    if let Err(why) = Elf::read(&program.head[..program.filled]) {
        system::close(program.file);
        // Those that the kernel would execute; the first one's caller is no shell that says it.
        if matches!(why, Unfit::Machine | Unfit::Place) || start::program().is_empty() {
            system::tell(&[b"postern: ", &path[..length], why.sentence(), b"\n"]);
        }
        return Err(error::ENOEXEC);
    }
    if has_rights_of_its_own(program.file) {
        const WORDS: &[u8] = b": it has the caller's rights here, and not those of its file \
                               (set-user-ID, set-group-ID or capabilities)\n";
        system::tell(&[b"postern: ", &path[..length], WORDS]);
    }
    // The innermost interpreter first, as each is called by the one before.
    for words in interpreters[..depth].iter().rev() {
        let first = words.iter().position(|byte| *byte == 0).unwrap_or(0);
        argv.push(words.as_ptr() as u64);
        if words[first + 1] != 0 {
            argv.push(words.as_ptr() as u64 + first as u64 + 1);
        }
    }
    if depth > 0 {
        argv.push(name.as_ptr() as u64);
    }
    let skipped = usize::from(depth > 0);
    for index in skipped..given {
        argv.push(system::word(arguments + 8 * index as u64).unwrap_or(0));
    }
    if argv.count == 0 {
        argv.push(c"".as_ptr() as u64);
    }
    let mut text = Text {
        to: told,
        filled: 0,
    };
    let own = start::told();
    let written = text.bytes(VARIABLE).is_some()
        && write!(
            text,
            "{},{},{},{},{},{},{},",
            own.loader, own.agent, own.window, own.output, own.alive, own.keeper, program.file
        )
        .is_ok()
        && text.bytes(&path[..length]).is_some();
    if !written {
        system::close(program.file);
        return Err(error::ENAMETOOLONG);
    }
    (*file, *process) = (program.file, system::process() as i32);
    envp.push(told.as_ptr() as u64);
    for index in 0..known {
        let variable = system::word(variables + 8 * index as u64).unwrap_or(0);
        let mut start = [0; VARIABLE.len()];
        let own = system::read_program(variable, &mut start) && start == VARIABLE;
        if !own {
            envp.push(variable);
        }
    }
    let mut text = Text {
        to: loader,
        filled: 0,
    };
    let _ = write!(text, "/proc/self/fd/{}", own.loader);
    Ok([loader.as_ptr() as u64, argv.at, envp.at])
}

/// Whether the kernel would give a program other rights than the caller's: loaders are executed by
/// the caller's.
fn has_rights_of_its_own(file: i32) -> bool {
    const FSTAT: u64 = 5;
    const FGETXATTR: u64 = 193;
    const IDS: [u64; 2] = [107, 108];
    const SET_USER: u32 = 0o4000;
    const SET_GROUP: u32 = 0o2010;
    let mut status = [0u32; 36];
    // SAFETY: the kernel reads the name and writes the structure.
    unsafe {
        if system::call(FSTAT, [file as u64, status.as_mut_ptr() as u64, 0, 0, 0, 0]) < 0 {
            return false;
        }
        // `struct stat`: mode, user and group.
        let [mode, user, group] = [status[6], status[7], status[8]];
        let own = IDS.map(|number| system::call(number, [0; 6]) as u32);
        let name = c"security.capability".as_ptr() as u64;
        mode & SET_USER != 0 && user != own[0]
            || mode & SET_GROUP == SET_GROUP && group != own[1]
            || own[0] != 0 && system::call(FGETXATTR, [file as u64, name, 0, 0, 0, 0]) > 0
    }
}

/// An error of [`by_path`] in words.
pub fn sentence(error: i64) -> &'static [u8] {
    match error {
        error::ENOENT => b": no such program",
        error::EACCES => b": it may not be executed, or not be read",
        error::ELOOP => b": too many scripts that interpret each other",
        _ => b": it cannot be executed",
    }
}

/// What all such paths begin with.
const PROCESSES: &[u8; 6] = b"/proc/";

/// Whether a path of the program's may be one, by how it begins: to look costs a tenth of a signal.
pub fn may_be_own_link(path: u64) -> bool {
    let mut start = [0; PROCESSES.len()];
    // A shorter path may end with its page.
    !system::read_program(path, &mut start) || start == *PROCESSES
}

/// Whether a path is the kernel's link to the calling program's file.
fn is_own_link(path: &[u8]) -> bool {
    let Some(rest) = path.strip_prefix(PROCESSES) else {
        return false;
    };
    let Some(process) = rest.strip_suffix(b"/exe") else {
        return false;
    };
    let own = system::process() as u32;
    process == b"self" || process == b"thread-self" || digits(process) == Some(own)
}

fn digits(text: &[u8]) -> Option<u32> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

/// The calls that read links: the kernel's link to the program's file leads to the loader.
pub fn read_link(call: &mut Call<'_>, path: u64, to: u64, room: u64, words: [u64; 6]) {
    let mut name = [0; PATH];
    match system::string(path, &mut name) {
        Ok(length) if is_own_link(&name[..length]) => {
            let file = start::program();
            let part = &file[..file.len().min(room as usize)];
            match system::write_program(to, part) {
                true => call.answer(part.len() as i64),
                false => call.answer(error::EFAULT),
            }
        }
        _ => calls::pass(call, words, Kind::Plain),
    }
}

/// The calls that open files.
pub fn open(call: &mut Call<'_>, path: u64, flags: u64, words: [u64; 6]) {
    let mut name = [0; PATH];
    match system::string(path, &mut name) {
        Ok(length) if is_own_link(&name[..length]) => {
            let file = start::program_path();
            // SAFETY: the kernel reads the path.
            let result = unsafe { system::call(number::OPEN, [file, flags, 0, 0, 0, 0]) };
            call.answer(result);
        }
        _ => calls::pass(call, words, Kind::Plain),
    }
}
