//! The rules that code must keep, and the violation that says where it broke one.

use core::fmt;

/// Why text was refused: the first rule that was found broken, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Window offset of the instruction that breaks the rule (of the text's first byte for
    /// [`Rule::Layout`], [`Rule::Empty`] and [`Rule::BufferTooSmall`]).
    pub offset: u32,
    /// The rule.
    pub rule: Rule,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "at offset {:#x}: {} ({})",
            self.offset,
            self.rule.sentence(),
            self.rule.name()
        )
    }
}

impl core::error::Error for Violation {}

macro_rules! rules {
    ($($variant:ident $name:literal $sentence:literal)*) => {
        /// A rule of the verifier.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $(#[doc = $sentence] $variant,)*
        }

        impl Rule {
            /// Every rule, in the order of the reference page.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant),*];

            /// The rule's identifier, in kebab case.
            pub const fn name(self) -> &'static str {
                match self { $(Rule::$variant => $name),* }
            }

            /// One sentence that says what is wrong and what to do.
            pub const fn sentence(self) -> &'static str {
                match self { $(Rule::$variant => $sentence),* }
            }
        }
    };
}

rules! {
    Layout "layout"
        "The text does not lie between the gate slots and the end of the window; place it at the offset that `Layout::new` gives."
    Empty "empty"
        "The text is empty; an extension needs at least one instruction."
    BufferTooSmall "buffer-too-small"
        "The buffer is too small; give as many words as `buffer_len` (for other profiles than the user's: `bounded_buffer_len`) says."
    NotAllowed "not-allowed"
        "This instruction is not on the allow list; use one of the reference page, or compile with `postern cc`, which emits no other."
    Form "form"
        "The instruction is on the allow list, but not in this form (operand size, register or memory operand, opcode extension, vector length); use a form of the reference page."
    Prefix "prefix"
        "Prefixes are repeated, out of order, contradictory or without effect; write at most segment, 67h, 66h, then lock, F2h or F3h, then REX, each once."
    Unconfined "unconfined"
        "The memory operand could leave the window; give it the image's segment override and a 32-bit address size, as in `%gs:disp(%base32,%index32,scale)`."
    NoMemoryOperand "no-memory-operand"
        "A segment override or address-size prefix stands on an instruction that accesses no memory; leave it out."
    RipRelative "rip-relative"
        "The address is relative to the instruction pointer; compile with -fno-pic so that addresses are offsets."
    StackPointer "stack-pointer"
        "The instruction names rsp (or a part of it), which is the control stack's; use the data stack pointer r15."
    Truncated "truncated"
        "The last instruction runs past the end of text; remove it or complete it."
    FallsThrough "falls-through"
        "The last instruction can go on past the end of text; end with a jump, ret, ud2 or int3."
    BranchOutside "branch-outside"
        "The branch goes neither into this text nor to a slot; call services, and functions of other texts, through their slots."
    BranchToGate "branch-to-gate"
        "The branch goes between gate slots or to one that the image does not import; slot k begins 32 k bytes behind the first, k below the import count."
    BranchToLink "branch-to-link"
        "The branch goes into the middle of a link slot; slot k begins at the links' start + 32 k."
    BranchMisplaced "branch-misplaced"
        "The branch goes into the middle of an instruction or of a guarded sequence; branch to an instruction's first byte."
    Unguarded "unguarded"
        "The indirect branch is not the end of a guarded sequence; write the five instructions of the ABI, section 5, one after the other."
    StrayPad "stray-pad"
        "The eight bytes of the landing pad occur inside an instruction; choose another constant or displacement."
    BoundedBackward "bounded-backward"
        "The bounded profile allows branches and calls only forward; unroll the loop."
    BoundedIndirect "bounded-indirect"
        "The bounded profile allows no indirect branch; branch directly."
    BoundedPath "bounded-path"
        "A call that begins here could run more instructions than the maximum, or more than 2^32 - 2; call less often, or ask for a higher maximum."
    BoundedDepth "bounded-depth"
        "Calls from here on nest deeper than the maximum; call less deeply, or ask for a higher maximum."
    KernelVector "kernel-vector"
        "The kernel profile has general registers only; compile with `postern cc --kernel`, or without floating point and vectors."
    KernelIndirect "kernel-indirect"
        "The kernel profile allows no indirect branch; branch directly, and compile switches without tables."
    KernelCall "kernel-call"
        "The kernel profile allows calls only forward, so that none is recursive; place callees behind their callers, and make a recursion a loop."
    KernelJump "kernel-jump"
        "The kernel profile allows jumps back only as far as the nearest target of a call; jump within the function, or call."
    KernelDepth "kernel-depth"
        "Calls from here on nest deeper than the 128 that the kernel profile allows on the kernel's own stack; let functions be inlined, or return before the next call."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_sentences_say_what_to_do() {
        for (i, rule) in Rule::ALL.iter().enumerate() {
            assert!(
                Rule::ALL[..i]
                    .iter()
                    .all(|other| other.name() != rule.name())
            );
            assert!(
                rule.sentence().ends_with('.') && rule.sentence().contains(';'),
                "{rule:?}"
            );
        }
    }
}
