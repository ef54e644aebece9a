//! The host's side of Aegis: from the sources of a kernel and its programs to a machine in an
//! emulator, and to what that machine said.
//!
//! | file | what |
//! |---|---|
//! | [`place`] | where sources and builds lie |
//! | [`archive`] | files as one file: cpio's newc form |
//! | [`program`] | a program's ELF file as the bytes that stand in memory |
//! | [`symbols`] | names of the kernel's addresses, for its backtraces |
//! | [`package`] | what the kernel is booted with: root program, archive, symbols |
//! | [`software`] | kernel and package of what was built |
//! | [`build`] | kernel and programs, built by cargo |
//! | [`images`] | images for the kernel's judge, with what it is to say |
//! | [`status`] | what the machine's exit status means |
//! | [`emulator`] | QEMU: options, lines of the serial port, its end |
//! | [`session`] | a machine with somebody at its serial line |
//! | [`peer`] | the other side of the machine's network |
//! | [`count`] | a run in which heavy instructions are counted |
//! | [`said`] | lines that programs say for this side |
//! | [`aegis`] | Aegis's own figures |
//! | [`linux`] | Debian's Linux in the same emulator, to compare with |
//! | [`plot`] | numbers of some, drawn |
//! | [`budgets`] | what operations take, exactly |
//! | [`bless`] | what was measured becomes the budgets |
//! | [`reference`](mod@reference) | the table of calls that the book shows |
//! | [`figures`] | Aegis and Linux beside each other, as the paper's tables have them |
//! | [`compare`] | options of `bench`, Linux's columns, and what is printed |
#![forbid(unsafe_code)]

pub mod aegis;
pub mod archive;
pub mod bless;
pub mod budgets;
pub mod build;
pub mod compare;
pub mod count;
pub mod emulator;
pub mod figures;
pub mod images;
pub mod linux;
pub mod package;
pub mod peer;
pub mod place;
pub mod plot;
pub mod program;
pub mod reference;
pub mod said;
pub mod session;
pub mod software;
pub mod status;
pub mod symbols;
