//! Assembly: the first instruction, and the functions on memory that the compiler calls.

use core::arch::global_asm;

global_asm!(include_str!("start.s"), options(att_syntax));
global_asm!(include_str!("memory.s"), options(att_syntax));
