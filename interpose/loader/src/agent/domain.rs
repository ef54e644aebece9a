//! The agent's domain in this process.

use super::places::{self, STACKS};
use super::{Asked, engine, services};
use crate::fast::Vectors;
use crate::faults;
use crate::thread::Block as ThreadBlock;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::arch::asm;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::SeqCst};
use postern_gates::block::{Block, Terms};
use postern_gates::callee::ServiceTable;
use postern_gates::enter;
use postern_gates::entry::{Entry, Manner};
use postern_gates::gate::{FACT_GS, FACT_X87, FACT_XMM, FACT_YMM, STATUS_OK};
use postern_gates::text::{Text, TextError};
use postern_gates::window::Window;
use postern_image::{ImageFile, ImageTables, Signature};
use postern_verifier::window::{LIMIT, PAGE, THREAD_BLOCK};

/// Bytes of heap where the image does not say otherwise.
const HEAP: u64 = 16 << 20;
/// The function that is asked: `int pt_agent(struct pt_call *)`.
const ASKED: &str = "pt_agent";
/// The function that is called behind a call, if it is there:
/// `void pt_agent_after(struct pt_call *)`.
const AFTER: &str = "pt_agent_after";

/// The agent.
pub struct Agent {
    block: Block,
    window: Arc<Window>,
    entry: Entry,
    after: Option<Entry>,
    /// Where the first data stack begins, and bytes of each.
    stacks: u32,
    stack: u32,
    /// Bytes at the top of each, with their first values.
    top: Vec<u8>,
}

static AGENT: AtomicPtr<Agent> = AtomicPtr::new(core::ptr::null_mut());

/// The agent, once there is one.
pub fn agent() -> Option<&'static Agent> {
    // SAFETY: made once, and kept for good.
    unsafe { AGENT.load(SeqCst).as_ref() }
}

/// Loads an agent, whose window others may have already.
pub fn begin(bytes: &[u8], file: i32) -> Result<(), String> {
    engine::start();
    let image = ImageFile::parse(bytes).map_err(|error| format!("{error}"))?;
    let top = match image.thread_locals() {
        None => alloc::vec![0; THREAD_BLOCK as usize],
        Some(variables) => variables.initial(0),
    };
    let text = Text::verify(&image, &top).map_err(|error| match error {
        TextError::Shape => String::from("it does not fit into a window"),
        TextError::Refused(why) => format!("it is not confined: {why}"),
    })?;
    let text = Arc::new(text);
    let tables = ImageTables::from(&image);
    let layout = text.layout();
    let (stack, wish) = (layout.stack_size, tables.header.heap_wish);
    let heap = if wish == 0 { HEAP } else { wish };
    let align = u64::from(stack.max(PAGE));
    let heap_end = (u64::from(layout.heap_start) + heap).next_multiple_of(align);
    let area = STACKS as u64 * u64::from(stack);
    if heap_end + area > u64::from(LIMIT) {
        return Err(String::from("its heap and data stacks are too large"));
    }
    let fresh = places::begin(file, heap_end + area - u64::from(layout.stack));
    let fresh = fresh.ok_or("there is no memory for its window")?;
    let (heap_end, area) = (heap_end as u32, area as u32);
    let window = match fresh {
        true => Window::furnish(&text, heap_end, area),
        false => Window::join(&text, heap_end, area),
    };
    let window = Arc::new(window.map_err(|error| format!("{error}"))?);
    faults::window_is(window.base());
    let services = tables.imports.iter().map(|import| {
        let found = services::find(&import.name);
        found.ok_or_else(|| format!("agents have no function `{}`", import.name))
    });
    let services = services.collect::<Result<Vec<_>, String>>()?;
    let table = services
        .iter()
        .map(|(callee, result)| (callee, services::STACK, *result));
    let block = Block::take().map_err(|error| format!("{error}"))?;
    let opened = block.open(&text, ServiceTable::new(table), &window, &Terms::default());
    opened.map_err(|error| format!("{error}"))?;
    let export = tables
        .export(ASKED)
        .ok_or_else(|| format!("it has no function `{ASKED}`"))?;
    let signature: Signature = "i(p)".parse().map_err(|error| format!("{error}"))?;
    let entry = block.entry(export.offset, &signature, Manner::default());
    let signature: Signature = "v(p)".parse().map_err(|error| format!("{error}"))?;
    let after = tables.export(AFTER);
    let after = after.map(|export| block.entry(export.offset, &signature, Manner::default()));
    let agent = alloc::boxed::Box::new(Agent {
        block,
        window,
        entry,
        after,
        stacks: heap_end,
        stack,
        top,
    });
    let agent: &Agent = alloc::boxed::Box::leak(agent);
    AGENT.store(core::ptr::from_ref(agent).cast_mut(), SeqCst);
    agent.seat(ThreadBlock::mine())?;
    for (name, place) in [
        (LAST, &LAST_WORDS),
        (PROGRAM, &PROGRAM_BEGINS),
        (KEEP, &KEEPER),
    ] {
        if let Some(function) = tables.export(name) {
            place.store(function.offset, SeqCst);
        }
    }
    for name in ["__postern_init", FIRST] {
        if let Some(first) = tables.export(name).filter(|_| fresh)
            && !agent.run(first.offset)
        {
            return Err(engine::why());
        }
    }
    Ok(())
}

/// Functions without arguments that agents may have: called once, before the first call of the
/// tree's, and when its last process has ended; before the first call of each program; and in a
/// process beside the tree.
const FIRST: &str = "pt_agent_begin";
const LAST: &str = "pt_agent_end";
const PROGRAM: &str = "pt_agent_program";
const KEEP: &str = "pt_agent_keep";
static LAST_WORDS: AtomicU32 = AtomicU32::new(0);
static PROGRAM_BEGINS: AtomicU32 = AtomicU32::new(0);
static KEEPER: AtomicU32 = AtomicU32::new(0);

/// A program begins.
pub fn program() -> Result<(), String> {
    let offset = PROGRAM_BEGINS.load(SeqCst);
    match agent().filter(|_| offset != 0) {
        Some(agent) if !agent.run(offset) => Err(engine::why()),
        _ => Ok(()),
    }
}

/// What goes on without calls, until the tree has ended.
pub fn keep() {
    run_or_tell(&KEEPER);
}

/// The tree has ended: the agent may say something about it.
pub fn last_words() {
    run_or_tell(&LAST_WORDS);
}

fn run_or_tell(function: &AtomicU32) {
    let offset = function.load(SeqCst);
    if let Some(agent) = agent().filter(|_| offset != 0)
        && !agent.run(offset)
    {
        let why = engine::why();
        crate::system::tell(&[b"postern: the agent failed: ", why.as_bytes(), b"\n"]);
    }
}

impl Agent {
    /// Gives a thread a data stack.
    pub fn seat(&self, block: &ThreadBlock) -> Result<(), String> {
        let place = places::take(block.thread());
        let place = place.ok_or_else(|| format!("more than {STACKS} threads"))?;
        block.sit(place);
        let top = self.top_of(place) - self.top.len() as u32;
        match self.window.write(top, &self.top) {
            true => Ok(()),
            false => Err(String::from("there is no memory for its data stack")),
        }
    }

    fn top_of(&self, place: usize) -> u32 {
        self.stacks + (place as u32 + 1) * self.stack
    }

    /// Where the record of a thread's call is.
    pub fn record(&self, block: &ThreadBlock) -> u32 {
        let top = self.top_of(block.place()) - self.top.len() as u32;
        (top - size_of::<Asked>() as u32) & !63
    }

    /// Where a thread's data stack begins: below the record.
    pub fn data_stack(&self, block: &ThreadBlock) -> u32 {
        self.record(block)
    }

    /// Writes a record.
    pub fn put(&self, at: u32, asked: &Asked) {
        let to = (self.window.base() + u64::from(at)) as *mut Asked;
        // SAFETY: in the thread's data stack, which is mapped for good. Other threads of the agent
        // may write there, so no reference is made.
        unsafe { to.write_volatile(*asked) };
    }

    /// Reads it.
    pub fn get(&self, at: u32) -> Asked {
        let from = (self.window.base() + u64::from(at)) as *const Asked;
        // SAFETY: as above; any words are a record.
        unsafe { from.read_volatile() }
    }

    /// Asks, on the calling thread. Vector registers are as they were, unless the agent's text has
    /// instructions of theirs.
    pub fn call(&self, record: u32) -> Option<u64> {
        let (integer, status): (u64, u32);
        // SAFETY: an entry begins with its gate, which keeps what C's convention has it keep; all
        // six registers for integers are set, and no others are arguments.
        unsafe {
            asm!(
                "call qword ptr [rax]",
                inout("rax") &raw const self.entry => integer,
                inout("rdi") u64::from(record) => _,
                inout("rsi") 0u64 => _, inout("rdx") 0u64 => _, inout("rcx") 0u64 => _,
                inout("r8") 0u64 => _, inout("r9") 0u64 => _,
                lateout("r10") _, lateout("r11") status,
            );
        }
        (status == STATUS_OK).then_some(integer & 0xffff_ffff)
    }

    /// What registers its text has instructions for that its gates do not keep. `None`: more than
    /// the dispatcher does.
    pub fn uses_vectors(&self) -> Option<Vectors> {
        let facts = self.entry.control().facts();
        match facts {
            _ if facts & (FACT_YMM | FACT_GS) != 0 => None,
            _ if facts & FACT_X87 != 0 => Some(Vectors::LowerAndFloat),
            _ if facts & FACT_XMM != 0 => Some(Vectors::Lower),
            _ => Some(Vectors::None),
        }
    }

    /// Whether it is called behind calls.
    pub fn sees_after(&self) -> bool {
        self.after.is_some()
    }

    /// Calls it behind a call, on the calling thread. Whether it returned.
    pub fn call_after(&self, record: u32) -> bool {
        let arguments = [record.into(), 0, 0, 0, 0, 0];
        self.after
            .as_ref()
            .is_some_and(|entry| enter::all(entry, arguments, [0; 8], &[]).status == STATUS_OK)
    }

    /// Runs a function without arguments. Whether it returned.
    fn run(&self, offset: u32) -> bool {
        let Ok(nothing) = Signature::new(None, &[]) else {
            return false;
        };
        let entry = self.block.entry(offset, &nothing, Manner::default());
        let place = ThreadBlock::mine().place();
        places::passes(place);
        let status = enter::all(&entry, [0; 6], [0; 8], &[]).status;
        places::passes(place);
        status == STATUS_OK
    }

    /// The window.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The calling thread has another data stack from now on, or none.
    pub fn leave(&self) {
        self.block.take_my_data_stack();
    }
}
