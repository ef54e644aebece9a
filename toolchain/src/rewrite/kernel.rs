//! What is different in text for ring 0 ([`postern_verifier::Profile::Kernel`]).
//!
//! The passes write %gs, as everywhere else; each instruction that they write says %fs instead.
//! What the profile has no room for is refused here already, where the line of the source is known,
//! and not only by the verifier.

use std::borrow::Cow;

use super::instruction_set::Class;
use super::stack::StackState;
use super::thread_local::is_thread_relative;
use crate::assembly::{Instruction, Operand};

/// Most bytes of data stack that a function may take, as in the kernel itself.
const FRAME: i64 = 1024;

/// A line of output. In an instruction there is no text but operands, so that what is replaced is a
/// segment.
pub fn line(text: &str) -> Cow<'_, str> {
    match text.contains("%gs:") && !text.starts_with("\t.") {
        true => text.replace("%gs:", "%fs:").into(),
        false => text.into(),
    }
}

/// Refuses what cannot be in ring 0: an `instruction` of `function`, before and after which this is
/// known of the stack.
pub fn check(
    function: &str,
    instruction: &Instruction,
    class: Class,
    before: StackState,
    after: StackState,
) -> Result<(), String> {
    let what = match class {
        Class::Call => "call",
        _ => "jump",
    };
    if matches!(class, Class::Call | Class::Jump) && instruction.indirect {
        return Err(format!(
            "`{function}` makes an indirect {what}, and a kernel image has direct ones only, so that the depth of its calls is known: \
             call functions by name, for example from a switch over a number that is kept instead of the pointer"
        ));
    }
    let thread_local = |operand: &Operand| matches!(operand, Operand::Memory(memory) if is_thread_relative(memory));
    if instruction.operands.iter().any(thread_local) {
        return Err(format!(
            "`{function}` uses a thread-local variable or the stack protector, and a kernel image has no threads of its own: make the \
             variable global, or compile without -fstack-protector"
        ));
    }
    let deeper = |state: StackState| state.depth.filter(|depth| *depth > FRAME);
    match (deeper(before), deeper(after)) {
        (None, Some(bytes)) => Err(format!(
            "`{function}` takes {bytes} bytes of stack, and a function of a kernel image at most {FRAME}: make its arrays static, or let \
             its caller give it the memory"
        )),
        _ => Ok(()),
    }
}
