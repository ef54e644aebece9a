//! An assembler for x86-64: instructions as methods, operands as types.
//!
//! Registers, widths and conditions are enumerations, a memory operand is a [`Mem`], and what may
//! be either register or memory is an [`Rm`]. An [`Assembler`] writes each instruction into one
//! vector of bytes, in one encoding that its method fixes: who makes code knows how long it gets.
//! It knows nothing of windows. That memory is relative to gs with 32-bit addresses, and that
//! indirect branches are guarded, is for its users to say and for the verifier to judge.
//!
//! A method without a suffix writes a register and reads register or memory (in the manuals' words,
//! the operand encoding RM). `_mr` goes the other way, `_mi` puts a constant into register or
//! memory. Destinations come first.
//!
//! ```
//! use postern_x86::{Assembler, Cond, Gpr, Label, Mem, Reach, Width};
//!
//! // The greater of two numbers, or the trap.
//! let mut asm = Assembler::new();
//! let trap = Label(0);
//! asm.mov(Width::Dword, Gpr::Rax, Gpr::Rdi);
//! asm.cmp(Width::Dword, Gpr::Rax, Mem::base(Gpr::Rsi).gs().addr32());
//! asm.jcc(Cond::Equal, trap, Reach::Short);
//! asm.cmov(Cond::Below, Width::Dword, Gpr::Rax, Mem::base(Gpr::Rsi).gs().addr32());
//! asm.ret();
//! asm.bind(trap);
//! asm.ud2();
//! asm.link().unwrap();
//! assert_eq!(asm.code().len(), 16);
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod assembler;
mod branch;
mod condition;
mod encode;
mod float;
mod integer;
mod label;
mod operand;
mod register;

pub use assembler::{Assembler, Mark, Reference, ReferenceKind};
pub use condition::Cond;
pub use float::{FloatOp, Precision};
pub use integer::{Alu, Shift};
pub use label::{Label, LinkError, Reach};
pub use operand::{Mem, Rm, Scale, Segment, Symbol};
pub use register::{Gpr, Width, Xmm};
