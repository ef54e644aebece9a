//! Faults: what an extension did that ended its call, with the place, as a value.

mod classify;
mod signal;

pub(crate) use signal::signal_name;

use crate::image::ImageInner;
use crate::value::Offset;
use postern_gates::map::Prot;
use postern_image::debug;
use std::fmt;
use std::sync::Arc;

/// What kind of rule was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access to the first 64 KiB of the window.
    NullPointer,
    /// A read where nothing is mapped.
    Read,
    /// A write where nothing is mapped.
    Write,
    /// A write to memory that the domain may only read.
    ReadOnly,
    /// A jump or call through a pointer that is no function.
    BadJump,
    /// Execution of what is not verified text.
    Execute,
    /// The program's own trap (`ud2`, `__builtin_trap`).
    Trap,
    /// An instruction that this processor does not have.
    IllegalInstruction,
    /// Division by zero or overflow, or an unmasked x87 exception.
    Arithmetic,
    /// A vector access that is not aligned as the instruction asks.
    Misaligned,
    /// An access to a page of a shared area that its file has no more.
    Bus,
    /// Locals and spills exceed the data stack.
    DataStackOverflow,
    /// Calls nest deeper than the control stack or [`crate::Limits::call_depth`] allows.
    ControlStackOverflow,
    /// An access just above the heap: the memory limit.
    HeapLimit,
    /// The call took longer than its deadline.
    Deadline,
    /// [`crate::Domain::interrupt`] ended it.
    Interrupted,
    /// Another thread's fault closed the domain.
    AnotherThread,
    /// A service was called with too little control stack left.
    ServiceStack,
    /// The extension or a service gave up, with a message.
    Aborted,
    /// The policy ended the call, with its reason.
    Killed,
    /// A function of a namespace was called that has been deleted; the message is its name.
    Deleted,
}

impl FaultKind {
    /// All kinds, in the order of their declaration.
    pub const ALL: [FaultKind; 21] = [
        FaultKind::NullPointer,
        FaultKind::Read,
        FaultKind::Write,
        FaultKind::ReadOnly,
        FaultKind::BadJump,
        FaultKind::Execute,
        FaultKind::Trap,
        FaultKind::IllegalInstruction,
        FaultKind::Arithmetic,
        FaultKind::Misaligned,
        FaultKind::Bus,
        FaultKind::DataStackOverflow,
        FaultKind::ControlStackOverflow,
        FaultKind::HeapLimit,
        FaultKind::Deadline,
        FaultKind::Interrupted,
        FaultKind::AnotherThread,
        FaultKind::ServiceStack,
        FaultKind::Aborted,
        FaultKind::Killed,
        FaultKind::Deleted,
    ];

    /// The name, in kebab case: stable, for logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::NullPointer => "null-pointer",
            FaultKind::Read => "read",
            FaultKind::Write => "write",
            FaultKind::ReadOnly => "read-only",
            FaultKind::BadJump => "bad-jump",
            FaultKind::Execute => "execute",
            FaultKind::Trap => "trap",
            FaultKind::IllegalInstruction => "illegal-instruction",
            FaultKind::Arithmetic => "arithmetic",
            FaultKind::Misaligned => "misaligned",
            FaultKind::Bus => "bus",
            FaultKind::DataStackOverflow => "data-stack-overflow",
            FaultKind::ControlStackOverflow => "control-stack-overflow",
            FaultKind::HeapLimit => "heap-limit",
            FaultKind::Deadline => "deadline",
            FaultKind::Interrupted => "interrupted",
            FaultKind::AnotherThread => "another-thread",
            FaultKind::ServiceStack => "service-stack",
            FaultKind::Aborted => "aborted",
            FaultKind::Killed => "killed",
            FaultKind::Deleted => "deleted",
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            FaultKind::NullPointer => "null pointer access",
            FaultKind::Read => "read of unmapped memory",
            FaultKind::Write => "write to unmapped memory",
            FaultKind::ReadOnly => "write to read-only memory",
            FaultKind::BadJump => "jump through a pointer that is no function",
            FaultKind::Execute => "execution outside verified text",
            FaultKind::Trap => "trap instruction",
            FaultKind::IllegalInstruction => "instruction that this processor lacks",
            FaultKind::Arithmetic => "arithmetic exception (division by zero or overflow)",
            FaultKind::Misaligned => "misaligned vector access",
            FaultKind::Bus => "access to a page that its file has no more",
            FaultKind::DataStackOverflow => "data stack overflow",
            FaultKind::ControlStackOverflow => "call depth exceeded",
            FaultKind::HeapLimit => "access beyond the heap limit",
            FaultKind::Deadline => "deadline exceeded",
            FaultKind::Interrupted => "interrupted by the host",
            FaultKind::AnotherThread => "ended because another thread faulted in the domain",
            FaultKind::ServiceStack => "too little control stack left for a service",
            FaultKind::Aborted => "aborted",
            FaultKind::Killed => "ended by the policy",
            FaultKind::Deleted => "call of a deleted function",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence())
    }
}

/// Registers at a fault. Pointers are window offsets in their low 32 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Registers(pub [u64; 15]);

impl Registers {
    /// Names, in the order of the values.
    pub const NAMES: [&'static str; 15] = [
        "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9", "r10", "r11", "r12", "r13",
        "r14", "r15",
    ];
}

/// The page of a shared area that a fault met.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedPage {
    /// Name of the area.
    pub area: Arc<str>,
    /// The area's own offset.
    pub start: Offset,
    /// Number of the page in the area, from 0.
    pub page: u32,
    /// What the domain may do with it, by now.
    pub protection: Prot,
}

/// How a call ended that did not return. Symbols and lines are looked up when they are asked for.
#[derive(Clone)]
#[non_exhaustive]
pub struct Fault {
    /// What kind.
    pub kind: FaultKind,
    /// Name of the domain.
    pub domain: Arc<str>,
    /// Offset of the instruction, where there is one.
    pub offset: Option<Offset>,
    /// Offset that was accessed or jumped to, where there is one.
    pub address: Option<Offset>,
    /// The page of a shared area where `address` is, if it is in one.
    pub shared: Option<SharedPage>,
    /// The extension's registers, where they are known.
    pub registers: Option<Registers>,
    /// Return offsets, innermost first, at most 32. They are exact: the extension cannot write
    /// them.
    pub backtrace: Vec<Offset>,
    /// Depth of calls when it happened.
    pub depth: u64,
    /// The signal that the processor's exception became, if it was one.
    pub signal: Option<i32>,
    /// Message of [`FaultKind::Aborted`] and [`FaultKind::Killed`]; the function's name of
    /// [`FaultKind::Deleted`].
    pub message: Option<String>,
    image: Arc<ImageInner>,
    /// Size of the domain's data stacks in bytes.
    data_stack: u32,
    /// What is known of offsets in the units of a namespace, which may be gone when it is asked
    /// for.
    units: Vec<(u32, String)>,
}

impl Fault {
    /// Name and source line of an offset of this fault's image, or of one of the fault's own
    /// offsets in a namespace: `function at file:line`.
    pub fn describe(&self, offset: Offset) -> String {
        self.place_in(&self.image.file_bytes(), offset.0)
    }

    /// The same, when the image's file has been put together already.
    fn place_in(&self, file: &[u8], offset: u32) -> String {
        let unit = self.units.iter().find(|(o, _)| *o == offset);
        match unit {
            Some((_, place)) => place.clone(),
            None => debug::describe(file, offset),
        }
    }

    /// Name and source line of the instruction, or an empty string.
    pub fn place(&self) -> String {
        self.offset.map_or_else(String::new, |o| self.describe(o))
    }

    /// A report of many lines: registers and backtrace.
    pub fn report(&self) -> String {
        use fmt::Write;
        let mut text = format!("{self}\n  in domain {}\n", self.domain);
        if let Some(registers) = &self.registers {
            for (i, (name, value)) in Registers::NAMES.iter().zip(registers.0).enumerate() {
                let end = if i % 4 == 3 { '\n' } else { ' ' };
                let _ = write!(text, "  {name:>3} {value:016x}{end}");
            }
            text.push('\n');
        }
        let file = self.image.file_bytes();
        for (i, &offset) in self.backtrace.iter().enumerate() {
            // A return address is behind its call.
            let place = self.place_in(&file, offset.0.wrapping_sub(1));
            let _ = writeln!(text, "  #{:<2} {offset} {place}", i + 1);
        }
        if self.depth > self.backtrace.len() as u64 {
            let _ = writeln!(
                text,
                "  … {} more",
                self.depth - self.backtrace.len() as u64
            );
        }
        text
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(message) = &self.message {
            write!(f, ": {message}")?;
        }
        if let Some(address) = self.address {
            let preposition = match self.kind {
                FaultKind::BadJump => "to",
                _ => "at",
            };
            write!(f, " {preposition} {address}")?;
        }
        if let Some(shared) = &self.shared {
            let right = match shared.protection {
                Prot::None => "which has no access to it",
                Prot::Read => "which may read it",
                Prot::ReadWrite => "which may read and write it",
            };
            let (page, area, domain) = (shared.page, &shared.area, &self.domain);
            write!(
                f,
                " (page {page} of area `{area}`, domain `{domain}`, {right})"
            )?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", in {} ({offset})", self.place())?;
        }
        if self.kind == FaultKind::DataStackOverflow {
            let size = self.data_stack >> 10;
            write!(
                f,
                "; the stack has {size} KiB, -fpostern-stack=SIZE links a larger one"
            )?;
            if self.image.tables.header.any_stack {
                f.write_str(" and `postern run --stack SIZE` gives one")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault")
            .field("kind", &self.kind)
            .field("domain", &self.domain)
            .field("offset", &self.offset)
            .field("address", &self.address)
            .field("shared", &self.shared)
            .field("place", &self.place())
            .field("signal", &self.signal.map(signal_name))
            .field("message", &self.message)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}
