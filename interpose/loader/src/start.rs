//! The beginning: the loader finds what it is to load, puts it into memory, and becomes it.

use crate::agent::{domain, places};
use crate::elf::{Elf, HEAD};
use crate::exec::{self, VARIABLE};
use crate::faults;
use crate::place::{self, Failed, Placed, heap};
use crate::system::{self, number};
use crate::thread::Block;
use crate::{fast, sites, stubs, trap};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};

global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "mov rdi, rsp",
    "and rsp, -16",
    "call {first}",
    "ud2",
    first = sym first,
);

/// What a loader is told: descriptors, by number.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The loader's own file.
    pub loader: i32,
    /// The agent's.
    pub agent: i32,
    /// What its window has.
    pub window: i32,
    /// Where it prints.
    pub output: i32,
    /// Open for as long as a process of the tree lives.
    pub alive: i32,
    /// The tree's end of what it has in common with its keeper, if there is one.
    pub keeper: i32,
}

/// Instead of an open file: the program is found by its path.
const BY_PATH: i32 = -1;
/// No program: the agent says its last words.
const LAST_WORDS: i32 = -2;
/// No program: the agent keeps what goes on without calls, once the tree has begun.
const KEEP: i32 = -3;

static TOLD: [AtomicI32; 6] = [const { AtomicI32::new(-1) }; 6];
/// Where the program's path is.
static PATH: AtomicU64 = AtomicU64::new(0);
/// Where its path without links is, and how long.
static LINK: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// What this one was told.
pub fn told() -> Told {
    let [loader, agent, window, output, alive, keeper] =
        [0, 1, 2, 3, 4, 5].map(|at| TOLD[at].load(SeqCst));
    Told {
        loader,
        agent,
        window,
        output,
        alive,
        keeper,
    }
}

/// The address of the program's path, which ends with a zero.
pub fn program_path() -> u64 {
    PATH.load(SeqCst)
}

/// Where the kernel's link to the program leads: its path without links. Nothing, before there is
/// one.
pub fn program() -> &'static [u8] {
    let [at, length] = [LINK[0].load(SeqCst), LINK[1].load(SeqCst)];
    if at == 0 {
        return b"";
    }
    // SAFETY: written once, at the beginning, in memory of the loader's own.
    unsafe { core::slice::from_raw_parts(at as *const u8, length as usize) }
}

/// Finds that out of the program's open file; if the kernel does not say it, the path is it.
fn find_link(file: i32, path: &'static [u8]) {
    let mut link = vec![0; exec::PATH];
    let name = format!("/proc/self/fd/{file}\0");
    // SAFETY: the kernel reads the name, which ends with a zero, and writes into the vector.
    let length = unsafe {
        let (name, to) = (name.as_ptr() as u64, link.as_mut_ptr() as u64);
        system::call(number::READLINK, [name, to, link.len() as u64, 0, 0, 0])
    };
    let found: &'static [u8] = match usize::try_from(length) {
        Ok(length) => &Vec::leak(link)[..length],
        Err(_) => path,
    };
    LINK[0].store(found.as_ptr() as u64, SeqCst);
    LINK[1].store(found.len() as u64, SeqCst);
}

/// The bytes of a string.
///
/// # Safety
/// It ends with a zero, and stays.
unsafe fn bytes(at: u64) -> &'static [u8] {
    // SAFETY: the caller's promise.
    unsafe { core::ffi::CStr::from_ptr(at as *const core::ffi::c_char) }.to_bytes()
}

fn number(text: &mut &[u8]) -> Option<i32> {
    let comma = text.iter().position(|byte| *byte == b',')?;
    let number = core::str::from_utf8(&text[..comma]).ok()?.parse().ok()?;
    *text = &text[comma + 1..];
    Some(number)
}

/// What the kernel has put on the stack.
struct Given {
    /// The word that counts the arguments.
    at: u64,
}

impl Given {
    fn word(&self, index: usize) -> u64 {
        // SAFETY: words of the kernel's, up to the end of the last list.
        unsafe { (self.at as *const u64).add(index).read() }
    }
}

extern "C" fn first(stack: u64) -> ! {
    let given = Given { at: stack };
    let arguments = given.word(0) as usize;
    let variables = arguments + 2;
    let mut variable = None;
    let mut after = variables;
    while given.word(after) != 0 {
        // SAFETY: strings of the kernel's.
        let text = unsafe { bytes(given.word(after)) };
        if variable.is_none() && text.starts_with(VARIABLE) {
            variable = Some((after, text));
        }
        after += 1;
    }
    let values = after + 1;
    let Some((place, text)) = variable else {
        system::give_up(127, &[b"the loader is started by `postern interpose`"]);
    };
    let mut rest = &text[VARIABLE.len()..];
    for told in &TOLD {
        match number(&mut rest) {
            Some(number) => told.store(number, SeqCst),
            None => system::give_up(127, &[b"the loader was told something else: ", text]),
        }
    }
    let Some(file) = number(&mut rest) else {
        system::give_up(127, &[b"the loader was told something else: ", text]);
    };
    let Told { agent, window, .. } = told();
    PATH.store(rest.as_ptr() as u64, SeqCst);
    if !stubs::prepare() {
        system::give_up(127, &[b"there is no memory for the loader"]);
    }
    if file == BY_PATH {
        let list = |index: usize| stack + 8 * index as u64;
        // The variables behind the loader's own are the program's.
        let error = exec::by_path(rest, list(1), list(variables));
        if error == system::error::ENOEXEC {
            // Why was said.
            system::end(126);
        }
        system::give_up(
            if error == system::error::ENOENT {
                127
            } else {
                126
            },
            &[rest, exec::sentence(error)],
        );
    }
    let Some(block) = Block::take() else {
        system::give_up(127, &[b"there is no memory for the loader"]);
    };
    trap::sit(block);
    block.is_mine();
    if !faults::begin() {
        system::give_up(127, &[b"there is no memory for the loader"]);
    }
    if file == KEEP && !has_begun() {
        system::end(0);
    }
    if let Err(why) = agent_of(agent, window) {
        system::give_up(125, &[b"the agent: ", why.as_bytes()]);
    }
    if file == LAST_WORDS {
        domain::last_words();
        if places::is_wanted(places::STATS) {
            let ended = places::noted(places::ENDED);
            if ended > 0 {
                let words = format!("postern: {ended} threads ended in the agent\n");
                system::write(told().output, words.as_bytes());
            }
            let [sites, stopped] = [places::REWRITTEN, places::STOPPED].map(places::noted);
            let words = format!("postern: {sites} sites rewritten, {stopped} calls by signal\n");
            system::write(told().output, words.as_bytes());
        }
        system::end(0);
    }
    if file == KEEP {
        domain::keep();
        system::end(0);
    }
    if let Err(why) = domain::program() {
        system::give_up(125, &[b"the agent: ", why.as_bytes()]);
    }
    let vectors = domain::agent().and_then(|agent| agent.uses_vectors());
    if let Some(vectors) = vectors.filter(|_| !places::is_wanted(places::SLOW)) {
        fast::begin(vectors);
        sites::begin();
    }
    let name = rest.rsplit(|byte| *byte == b'/').next().unwrap_or(rest);
    // SAFETY: a name that ends with a zero, as the path does.
    unsafe { system::call(number::PRCTL, [15, name.as_ptr() as u64, 0, 0, 0, 0]) };
    let (main, elf) = load(file, rest, true);
    find_link(file, rest);
    heap::begin(main.end);
    let mut entry = main.entry;
    let mut base = 0;
    if let Some((at, length)) = elf.interpreter {
        let mut path = [0; exec::PATH];
        let length = (length as usize).min(path.len() - 1);
        if system::pread(file, &mut path[..length], at) != length as i64 {
            system::give_up(127, &[rest, b": its interpreter's name cannot be read"]);
        }
        let end = path.iter().position(|byte| *byte == 0).unwrap_or(0);
        match exec::find(-100, &path, 0) {
            Ok(found) => {
                let (interpreter, _) = load(found.file, &path[..end], false);
                system::close(found.file);
                (entry, base) = (interpreter.entry, interpreter.start);
            }
            Err(_) => system::give_up(
                127,
                &[rest, b": its interpreter is not there: ", &path[..end]],
            ),
        }
    }
    system::close(file);
    let result = trap::begin(block);
    if result < 0 {
        let why: &[u8] = match result {
            system::error::EINVAL => {
                b"the kernel does not dispatch system calls to user space: \
                  it needs Linux 5.11 or later"
            }
            _ => {
                b"prctl(PR_SET_SYSCALL_USER_DISPATCH) is refused, by a filter (seccomp) of \
                  whoever started this process: no program can be served in it"
            }
        };
        system::give_up(127, &[why]);
    }
    let lists = Lists {
        given,
        place,
        values,
    };
    let stack = lists.rebuild(&main, elf.table.1, base);
    trap::rise(block);
    // SAFETY: the program's stack is as the kernel would have made it, and nothing here is used any
    // more.
    unsafe {
        asm!(
            "mov rsp, {stack}",
            "xor edx, edx",
            "xor ebp, ebp",
            "jmp {entry}",
            stack = in(reg) stack,
            entry = in(reg) entry,
            options(noreturn),
        )
    }
}

/// Waits until the tree's first process says something to its keeper, whose standard input is the
/// other end; false if the tree has ended. No signal but those of faults ends a keeper.
fn has_begun() -> bool {
    const RECVFROM: u64 = 45;
    const PEEK: u64 = 2;
    let (blocked, mut byte) = (!faults::BITS, 0u8);
    // SAFETY: the kernel reads a mask, and writes at most one byte.
    unsafe {
        let mask = &raw const blocked as u64;
        system::call(number::RT_SIGPROCMASK, [0, mask, 0, 8, 0, 0]);
        system::call(RECVFROM, [0, &raw mut byte as u64, 1, PEEK, 0, 0]) > 0
    }
}

/// Loads the agent.
fn agent_of(file: i32, window: i32) -> Result<(), String> {
    const LSEEK: u64 = 8;
    // SAFETY: the file is the tree's own; its bytes are mapped anew, and not changed by anybody.
    let bytes = unsafe {
        let length = system::call(LSEEK, [file as u64, 0, 2, 0, 0, 0]);
        let at = system::mmap(0, length.max(1) as u64, 1, 2, file, 0);
        if at < 0 {
            return Err(String::from("its file cannot be mapped"));
        }
        core::slice::from_raw_parts(at as *const u8, length as usize)
    };
    domain::begin(bytes, window)
}

/// What the agent is called.
pub fn agent_name() -> &'static [u8] {
    b"the agent"
}

/// Puts a file into memory.
fn load(file: i32, path: &[u8], main: bool) -> (Placed, Elf) {
    /// Where the kernel puts programs that may lie anywhere.
    const USUAL: u64 = 0x5555_5555_4000;
    let mut head = [0; HEAD];
    let got = system::pread(file, &mut head, 0).max(0) as usize;
    let elf = match Elf::read(&head[..got]) {
        Ok(elf) => elf,
        Err(why) => system::give_up(126, &[path, why.sentence()]),
    };
    let wish = if main { USUAL } else { 0 };
    match place::place(&elf, file, wish) {
        Ok(placed) => (placed, elf),
        Err(Failed::Taken) => system::give_up(127, &[path, b": something lies where it has to"]),
        Err(Failed::System) => system::give_up(127, &[path, b": it cannot be mapped"]),
    }
}

/// Arguments, variables and the kernel's values on the stack.
struct Lists {
    given: Given,
    /// The variable that is the loader's.
    place: usize,
    /// The first of the values.
    values: usize,
}

impl Lists {
    /// Puts them as the program is to find them, below where they were: the stack pointer.
    fn rebuild(&self, main: &Placed, segments: u64, base: u64) -> u64 {
        const PHDR: u64 = 3;
        const PHNUM: u64 = 5;
        const BASE: u64 = 7;
        const ENTRY: u64 = 9;
        const EXECFN: u64 = 31;
        const VDSO: u64 = 33;
        const IGNORED: u64 = 1;
        let no_vdso = places::is_wanted(places::NO_VDSO);
        let mut end = self.values;
        while self.given.word(end) != 0 {
            end += 2;
        }
        end += 2;
        // One word fewer, from an address that is a multiple of 16.
        let words = end - 1;
        let stack = (self.given.at - 8 * words as u64) & !15;
        // Far below what is used at the moment, so that nothing here is overwritten.
        let stack = stack - (64 << 10);
        let mut to = stack as *mut u64;
        for index in (0..end).filter(|index| *index != self.place) {
            let mut word = self.given.word(index);
            if index >= self.values
                && (index - self.values).is_multiple_of(2)
                && word == VDSO
                && no_vdso
            {
                word = IGNORED;
            }
            if index > self.values && (index - self.values) % 2 == 1 {
                word = match self.given.word(index - 1) {
                    PHDR => main.table,
                    PHNUM => segments,
                    BASE => base,
                    ENTRY => main.entry,
                    EXECFN => program_path(),
                    _ => word,
                };
            }
            // SAFETY: the stack is this thread's, and grows when it is touched.
            unsafe {
                to.write(word);
                to = to.add(1);
            }
        }
        stack
    }
}
