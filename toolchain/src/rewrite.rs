//! From compiler assembly to confined assembly.
//!
//! The rewriter applies the extension ABI (`docs/src/internals/abi.md`) to each statement:
//! gs-relative 32-bit operands, two stacks, landing pads, guarded indirect branches. It is not
//! trusted: the verifier judges what comes out of the assembler. So its duty is that the program
//! still means what the compiler meant, and that whatever cannot be confined is refused here, with
//! the line of the source.
//!
//! Invariant of the output: at every instruction %r15 equals the compiler's stack pointer plus a
//! number that the rewriter knows at that place, the *bias*; it is 0 at calls and 8 at function
//! entries, returns and tail calls.

mod directive;
mod emit;
mod examine;
mod flags;
mod flow;
pub mod instruction_set;
mod kernel;
mod llvm;
mod operand;
mod program;
mod stack;
mod strings;
mod thread_local;

use crate::assembly::parse;
use crate::diagnostic::Diagnostic;

/// Where the data stack is adjusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Adjustment {
    /// In the callee, pushes and pops merged: what `postern cc` does.
    #[default]
    Callee,
    /// %r15 follows the compiler's stack pointer at each instruction: simpler and slower, to
    /// measure against.
    Fixed,
}

/// Whose assembly it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compiler {
    /// gcc's, with the flags of extensions, or somebody's own.
    #[default]
    Gcc,
    /// LLVM's, with the two registers reserved.
    Llvm,
}

impl Compiler {
    /// Bytes below the stack pointer that a function without calls may use.
    fn red_zone(self) -> i64 {
        match self {
            Self::Gcc => 0,
            Self::Llvm => llvm::RED_ZONE,
        }
    }
}

/// How to rewrite.
#[derive(Clone, Debug)]
pub struct RewriteOptions {
    /// Where the data stack is adjusted.
    pub adjustment: Adjustment,
    /// Whether line tables and debug sections are kept.
    pub debug: bool,
    /// For the kernel's profile: memory through %fs, and what cannot be there is refused.
    pub kernel: bool,
    /// Whose assembly it is.
    pub compiler: Compiler,
}

impl Default for RewriteOptions {
    fn default() -> Self {
        Self {
            adjustment: Adjustment::Callee,
            debug: true,
            kernel: false,
            compiler: Compiler::Gcc,
        }
    }
}

/// Rewrites the assembly `source`; `file` names it in messages where it has no line information
/// itself.
///
/// # Errors
/// Everything that cannot be confined or is not understood, in the order of the source.
pub fn rewrite(
    source: &str,
    file: &str,
    options: &RewriteOptions,
) -> Result<String, Vec<Diagnostic>> {
    let mut statements =
        parse::parse(source, file).map_err(|e| vec![Diagnostic::new(&e.place, e.message)])?;
    join_lone_prefixes(&mut statements);
    if options.compiler == Compiler::Llvm {
        llvm::normalise(&mut statements);
    }
    let program = program::Program::new(&statements);
    let flow = flow::analyse(&program, options.adjustment);
    emit::Emitter::new(&program, &flow, options).run()
}

/// `lock; incl (%rax)` is one instruction in two statements.
fn join_lone_prefixes(statements: &mut Vec<crate::assembly::Statement>) {
    use crate::assembly::StatementKind;
    let mut pending: Option<String> = None;
    statements.retain_mut(|statement| {
        let StatementKind::Instruction(instruction) = &mut statement.kind else {
            return true;
        };
        if let Some(prefix) = pending.take() {
            instruction.prefixes.insert(0, prefix);
        }
        let lone = instruction.operands.is_empty()
            && matches!(
                instruction.mnemonic.as_str(),
                "lock" | "rep" | "repe" | "repz" | "repne" | "repnz" | "notrack" | "bnd"
            );
        let pause =
            matches!(instruction.prefixes.as_slice(), [prefix] if prefix.starts_with("rep"));
        if instruction.mnemonic == "nop" && instruction.operands.is_empty() && pause {
            instruction.prefixes.clear();
            "pause".clone_into(&mut instruction.mnemonic);
        }
        if lone {
            pending = Some(std::mem::take(&mut instruction.mnemonic));
        }
        !lone
    });
}
