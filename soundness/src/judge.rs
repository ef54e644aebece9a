//! Did a snippet do what the verifier promises of it? Signals, control flow, lengths, stack
//! pointer, flags.

use crate::batch::guard_end;
use crate::runner::{COMPLAINTS, ENDLESS, Output, RETURNED, SIGNALLED, STEPPED};
use crate::window::{FORGED, IMPORTS};
use postern_verifier::window::{GATES, PAD, SLOT_SIZE, slot};
use postern_verifier::{Instruction, InstructionKind, Segment, next};

/// Flags that no snippet may set: TF (save by the runner itself), DF, IOPL, NT, AC, and everything
/// above.
const FORBIDDEN: u32 = !(0x8d5 | 0x202 | 0x1_0000);
const TF: u32 = 0x100;
/// The trap number of `int3`.
const BREAKPOINT: u32 = 3;

/// What is known of a snippet that ran.
#[derive(Debug)]
pub struct Case<'a> {
    /// Window base.
    pub base: u64,
    /// The batch's text and the window offset of its first byte.
    pub text: &'a [u8],
    /// Offset of `text`.
    pub text_offset: u32,
    /// Offset of the snippet.
    pub entry: u32,
    /// It ran with single steps.
    pub traced: bool,
    /// It is one instruction with `int3` behind it and at its branch targets, so that the
    /// breakpoint tells where it went.
    pub single: bool,
    /// Stack pointer before the snippet's return address was pushed.
    pub stack_top: u64,
    /// Bytes of stack below that.
    pub stack_len: u64,
}

/// How a snippet that broke no promise ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All of it (or of what was asked for) ran.
    Completed,
    /// A fault that the runtime would make a value of.
    Faulted,
    /// The processor does not have the instruction at this offset.
    Missing(u32),
    /// Only the timer ended it.
    Endless,
}

impl Case<'_> {
    fn instruction(&self, offset: u32) -> Option<Instruction> {
        let at = offset.checked_sub(self.text_offset)? as usize;
        next(self.text, at, Segment::Gs).ok()
    }

    fn bytes(&self, offset: u32, len: usize) -> &[u8] {
        let at = offset.wrapping_sub(self.text_offset) as usize;
        self.text.get(at..at + len).unwrap_or(&[])
    }

    /// Checks one result; says what is wrong.
    ///
    /// # Errors
    /// The broken promise, in words.
    pub fn check(&self, output: &Output) -> Result<End, String> {
        if output.mask != 0 {
            let names: Vec<_> = (0..COMPLAINTS.len())
                .filter(|n| output.mask >> n & 1 == 1)
                .map(|n| COMPLAINTS[n])
                .collect();
            return Err(names.join(", "));
        }
        let own = if self.traced { TF } else { 0 };
        if output.flags & FORBIDDEN & !own != 0 {
            return Err(format!("flags {:#x}", output.flags));
        }
        let stack = (self.stack_top - self.stack_len)..=self.stack_top;
        if !stack.contains(&output.rsp) || !output.rsp.is_multiple_of(8) {
            return Err(format!("rsp {:#x}", output.rsp));
        }
        let position = self.walk(output)?;
        match output.kind {
            RETURNED if output.rsp != self.stack_top => {
                Err(format!("returned with rsp {:#x}", output.rsp))
            }
            RETURNED | STEPPED => Ok(End::Completed),
            ENDLESS => Ok(End::Endless),
            SIGNALLED if self.single && !self.traced => self.landing(output),
            SIGNALLED => self.signal(output, position),
            kind => Err(format!("unknown end {kind}")),
        }
    }

    /// Where a single instruction that ran without steps arrived.
    fn landing(&self, output: &Output) -> Result<End, String> {
        let seen = self.instruction(self.entry).ok_or("not an instruction")?;
        if output.trap != BREAKPOINT || seen.kind == InstructionKind::Trap {
            return self.signal(output, Some(self.entry));
        }
        let landed = output.rip.wrapping_sub(self.base).wrapping_sub(1);
        let to = u32::try_from(landed).map_err(|_| format!("a breakpoint at {:#x}", output.rip))?;
        let end = self.entry + seen.length as u32;
        let target = seen.displacement.map(|d| end.wrapping_add_signed(d));
        // A slot returns behind the call.
        let called =
            seen.kind == InstructionKind::Call && to == end && target.is_some_and(in_slots);
        if !called {
            self.step(self.entry, Some(to), &mut Vec::new())
                .map_err(|why| format!("after {:#x} came {to:#x}: {why}", self.entry))?;
        }
        let below = if seen.kind == InstructionKind::Call && !called {
            16
        } else {
            8
        };
        if output.rsp != self.stack_top - below {
            return Err(format!("rsp is {:#x}", output.rsp));
        }
        Ok(End::Completed)
    }

    /// Follows the trace; returns where the next instruction would be, if the trace says.
    fn walk(&self, output: &Output) -> Result<Option<u32>, String> {
        if !self.traced {
            return Ok(None);
        }
        let trace = &output.trace[..output.steps as usize];
        let mut calls: Vec<u32> = Vec::new();
        let mut at = self.entry;
        let returned = (output.kind == RETURNED).then_some(None);
        for to in trace.iter().map(|&to| Some(to)).chain(returned) {
            self.step(at, to, &mut calls)
                .map_err(|why| format!("after {at:#x} came {to:x?}: {why}"))?;
            match to {
                Some(to) => at = to,
                None => return Ok(None),
            }
        }
        let depth = self.stack_top - 8 - 8 * calls.len() as u64;
        if output.kind == STEPPED && output.rsp != depth {
            return Err(format!("rsp is {:#x}, not {depth:#x}", output.rsp));
        }
        if let (STEPPED, Some(&call)) = (output.kind, calls.last())
            && calls.len() < 500
            && output.word != self.base + u64::from(call)
        {
            return Err(format!("the return address is {:#x}", output.word));
        }
        Ok(Some(at))
    }

    /// One step from the instruction at `at` to offset `to` (`None`: the runner).
    fn step(&self, at: u32, to: Option<u32>, calls: &mut Vec<u32>) -> Result<(), &'static str> {
        if in_slots(at) {
            return match (at - GATES) % SLOT_SIZE {
                0 if to == Some(at + PAD.len() as u32) => Ok(()),
                8 if to == calls.pop() => Ok(()),
                _ => Err("in a slot"),
            };
        }
        let seen = self.instruction(at).ok_or("not an instruction")?;
        let end = at + seen.length as u32;
        let target = seen.displacement.map(|d| end.wrapping_add_signed(d));
        let good = match seen.kind {
            InstructionKind::Plain | InstructionKind::Address | InstructionKind::Nop => {
                to == Some(end)
            }
            InstructionKind::Conditional => to == Some(end) || to == target,
            InstructionKind::Jump => to == target,
            InstructionKind::Call => {
                calls.push(end);
                to == target
            }
            InstructionKind::Return => to == calls.pop(),
            InstructionKind::Trap => false,
            InstructionKind::IndirectCall | InstructionKind::IndirectJump => {
                if seen.kind == InstructionKind::IndirectCall {
                    calls.push(end);
                }
                to.is_some_and(|to| self.is_pad(to))
            }
            _ => false,
        };
        if good {
            Ok(())
        } else {
            Err("not where the verifier says")
        }
    }

    fn is_pad(&self, offset: u32) -> bool {
        in_slots(offset) && (offset - GATES).is_multiple_of(SLOT_SIZE)
            || offset == FORGED
            || self.bytes(offset, PAD.len()) == PAD
    }

    /// Whether the signal is one that confined code may raise, at an instruction that may raise it.
    fn signal(&self, output: &Output, position: Option<u32>) -> Result<End, String> {
        let say = |what: &str| {
            Err(format!(
                "{what}: signal {} trap {} error {:#x} at {:#x}, address {:#x}",
                output.signal, output.trap, output.error, output.rip, output.address
            ))
        };
        let offset = output.rip.wrapping_sub(self.base);
        if offset >> 32 != 0 {
            return say("outside the window");
        }
        let mut offset = offset as u32;
        if output.trap == BREAKPOINT {
            // Reported behind the instruction, which may have a REX prefix.
            let found = [1, 2]
                .map(|n| offset.wrapping_sub(n))
                .into_iter()
                .find(|&at| {
                    let trap = self
                        .instruction(at)
                        .filter(|i| i.kind == InstructionKind::Trap);
                    trap.is_some_and(|i| at + i.length as u32 == offset)
                        && position.is_none_or(|p| p == at)
                });
            match found {
                Some(at) => offset = at,
                None => return say("no int3"),
            }
        }
        if position.is_some_and(|p| p != offset) {
            return say("not where the trace ended");
        }
        const FETCH: u32 = 16;
        if offset == FORGED && output.trap == 14 && output.error & FETCH != 0 {
            return Ok(End::Faulted);
        }
        let Some(seen) = self.instruction(offset) else {
            return say("not at an instruction");
        };
        let indirect = matches!(
            seen.kind,
            InstructionKind::IndirectCall | InstructionKind::IndirectJump
        );
        let pushes = matches!(
            seen.kind,
            InstructionKind::Call | InstructionKind::IndirectCall
        );
        match (output.signal as i32, output.trap) {
            (libc::SIGFPE, 0 | 16) => Ok(End::Faulted),
            (libc::SIGTRAP, BREAKPOINT) => Ok(End::Faulted),
            (libc::SIGILL, 6) if seen.kind == InstructionKind::Trap => Ok(End::Faulted),
            (libc::SIGILL, 6) => Ok(End::Missing(offset)),
            // Misaligned vectors and cmpxchg16b.
            (libc::SIGSEGV, 13) if seen.memory && !indirect => Ok(End::Faulted),
            (libc::SIGSEGV, 14)
                if seen.memory && (self.base..guard_end(self.base)).contains(&output.address) =>
            {
                Ok(End::Faulted)
            }
            (libc::SIGSEGV, 14) if pushes && output.address == output.rsp.wrapping_sub(8) => {
                Ok(End::Faulted)
            }
            _ => say("a signal that confined code cannot raise"),
        }
    }
}

fn in_slots(offset: u32) -> bool {
    (GATES..slot(IMPORTS)).contains(&offset)
}
