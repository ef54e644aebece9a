//! The trusted base of the runtime: everything that is `unsafe`, and nothing else.
//!
//! | module | what |
//! |---|---|
//! | `gate.s`, `peer.s`, [`gate`] | the instructions that cross a domain's boundary |
//! | [`above`] | what is asked of the code that is built on it |
//! | [`lifecycle`] | a domain's lifecycle: its phases and the transitions between them |
//! | [`call_state`] | where a thread is with its innermost call, and what others may read of that |
//! | [`atomic`] | what both ask of an atomic word, so that a model can stand in for it |
//! | [`control`] | what gates read of a domain |
//! | [`thread`] | what gates and handlers know of a thread |
//! | [`register`] | how a thread becomes known, and is forgotten |
//! | [`record`] | the calls of a thread that wait |
//! | [`peer`] | calls from one extension to another: the slow path, and ends |
//! | [`slow`] | the entry gate's slow path, and the way out of ended calls |
//! | [`stale`] | calls that the host has left behind |
//! | [`signal`], [`copies`] | faults and aborts; other copies of this library in the process |
//! | [`outcome`] | how a call ended, in raw facts |
//! | [`jump`] | setjmp and longjmp: moving an extension's control stack pointer |
//! | [`host`] | floating-point control and the gs base: the host's and the extension's
//! | [`enter`] | typed calls through an entry gate |
//! | [`shim`] | closures behind the service gate |
//! | [`guard`] | services that are decided about before they are called |
//! | [`registers`] | which bits of registers the values of C types fill |
//! | [`stray`] | services that return out of turn |
//! | [`stub`] | plain C function pointers to entries |
//! | [`inside`] | who is inside a domain, and who waits for whom to leave |
//! | [`switch`] | entries that are exchanged while threads call them |
//! | [`slot`] | boxed values that threads exchange |
//! | [`lock`] | locks on parts of files |
//! | [`code`] | text that comes while threads run: the code area of a namespace |
//! | [`mask`] | the signals that a thread takes, and on which stack |
//! | [`window`] | windows and their parts, owned |
//! | [`text`] | verified text, which alone may run in windows |
//! | [`map`], [`memory`] | address space; bytes in it |
//! | [`machine`] | what the processor and the kernel must have |

pub(crate) mod above;
pub(crate) mod atomic;
pub(crate) mod call_state;
pub(crate) mod code;
pub(crate) mod control;
pub(crate) mod copies;
pub(crate) mod debugger;
pub(crate) mod enter;
pub(crate) mod gate;
pub(crate) mod guard;
pub(crate) mod host;
pub(crate) mod inside;
pub(crate) mod jump;
pub(crate) mod lifecycle;
pub(crate) mod lock;
pub(crate) mod machine;
pub(crate) mod map;
pub(crate) mod mask;
pub(crate) mod memory;
pub(crate) mod outcome;
pub(crate) mod pages;
pub(crate) mod peer;
pub(crate) mod record;
pub(crate) mod register;
pub(crate) mod registers;
pub(crate) mod shim;
pub(crate) mod signal;
pub(crate) mod slot;
pub(crate) mod slow;
pub(crate) mod stale;
pub(crate) mod stray;
pub(crate) mod stub;
pub(crate) mod switch;
pub(crate) mod text;
pub(crate) mod thread;
pub(crate) mod window;
