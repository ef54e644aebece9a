//! Tests of Postern's two central claims on the processor itself.
//!
//! - What the verifier accepts stays inside its window and leaves machine state alone: [`campaign`]
//!   executes random accepted code ([`instruction`], [`snippet`]) in children whose address space
//!   is that window and little else ([`batch`], `runner.s`), and [`judge`] compares what happened
//!   with what was promised.
//! - The gates can be left at any instruction: the tests of this crate interrupt them everywhere.
//!
//! Nothing here is part of what users trust or install.

pub mod batch;
pub mod campaign;
pub mod debugger;
pub mod host;
pub mod instruction;
pub mod judge;
pub mod random;
pub mod runner;
pub mod snippet;
pub mod window;
