//! Functions around programs. One that judges several packets in one call; and one that asks
//! programs of a set, one after the other, then single filters. The best rank goes from program to
//! program in r10.

use alloc::vec::Vec;

use postern_x86::{Label, Reach};

use super::*;

/// Packets of one call.
pub(crate) const BATCH: u32 = 64;
/// A packet in the list: its offset, its length on the wire, its captured bytes, and the answer,
/// each of 4 bytes.
pub(crate) const ENTRY: u32 = 16;

/// So many packets before its turn the processor is asked for a packet's headers: those of a ring
/// are seldom near. A place that is not there does no harm.
const AHEAD: u32 = 8;
/// Bytes in the lines that headers lie in.
const HEADERS: [i32; 2] = [12, 54];

/// A function `void batch(list, count)` that asks the function right behind it for each packet of a
/// list, at most [`BATCH`].
pub(crate) fn batch() -> Vec<u8> {
    /// The list, and how many packets are in it.
    const LIST: Gpr = Gpr::Rbx;
    const COUNT: Gpr = Gpr::R12;
    const SITE: Site = Site::Process;
    let (end, behind) = (Label(0), Label(1));
    let place =
        |packet: u32, at: u32| SITE.confined(Mem::base(LIST).disp((ENTRY * packet + at) as i32));
    let mut asm = Assembler::new();
    move_stack(&mut asm, -16);
    asm.mov_mr(Width::Qword, SITE.on_stack(0), LIST);
    asm.mov_mr(Width::Qword, SITE.on_stack(8), COUNT);
    asm.mov(Width::Dword, LIST, Gpr::Rdi);
    asm.mov(Width::Dword, COUNT, Gpr::Rsi);
    for packet in 0..BATCH {
        asm.cmp_mi(Width::Dword, COUNT, packet as i32);
        asm.jcc(Cond::BelowOrEqual, end, Reach::Near);
        if packet + AHEAD < BATCH {
            asm.mov(Width::Dword, Gpr::Rax, place(packet + AHEAD, 0));
            for at in HEADERS {
                asm.prefetch(SITE.confined(Mem::base(Gpr::Rax).disp(at)));
            }
        }
        asm.mov(Width::Dword, PACKET, place(packet, 0));
        asm.mov(Width::Dword, WIRE, place(packet, 4));
        asm.mov(Width::Dword, CAPTURED, place(packet, 8));
        asm.call(behind);
        asm.mov_mr(Width::Dword, place(packet, 12), Gpr::Rax);
    }
    asm.bind(end);
    asm.mov(Width::Qword, LIST, SITE.on_stack(0));
    asm.mov(Width::Qword, COUNT, SITE.on_stack(8));
    move_stack(&mut asm, 16);
    asm.ret();
    asm.bind(behind);
    finished(asm)
}

fn move_stack(asm: &mut Assembler, by: i32) {
    asm.lea(Width::Qword, STACK, Mem::base(STACK).disp(by));
}

fn finished(mut asm: Assembler) -> Vec<u8> {
    let linked = asm.link();
    debug_assert_eq!(
        linked,
        Ok(()),
        "all labels are bound, and no jump between parts is short"
    );
    asm.take_code()
}

/// The text of `programs` and of `singles` with their ranks, the highest first, behind a function
/// that returns the number of the best filter and 1, or 0.
pub(crate) fn chain(site: Site, programs: &[Vec<u8>], singles: &[(u64, Vec<u8>)]) -> Vec<u8> {
    const BEST: Gpr = Gpr::R10;
    let best = site.on_stack(0);
    // Each part's label is its number; then come the end, and where each single filter that did not
    // match goes on.
    let parts = programs.len() + singles.len();
    let end = Label(parts as u32);
    let mut asm = Assembler::new();
    move_stack(&mut asm, -16);
    asm.xor(Width::Dword, BEST, BEST);
    for part in 0..programs.len() {
        asm.call(Label(part as u32));
    }
    asm.mov_mr(Width::Qword, best, BEST);
    for (index, (rank, _)) in singles.iter().enumerate() {
        let next = Label((parts + 1 + index) as u32);
        asm.mov_imm64(Gpr::Rax, *rank);
        asm.cmp(Width::Qword, Gpr::Rax, best);
        asm.jcc(Cond::BelowOrEqual, end, Reach::Near);
        asm.call(Label((programs.len() + index) as u32));
        asm.test(Width::Dword, Gpr::Rax, Gpr::Rax);
        asm.jcc(Cond::Equal, next, Reach::Short);
        asm.mov_imm64(Gpr::Rax, *rank);
        asm.mov_mr(Width::Qword, best, Gpr::Rax);
        asm.jmp(end, Reach::Near);
        asm.bind(next);
    }
    asm.bind(end);
    asm.mov(Width::Dword, Gpr::Rax, best);
    asm.neg(Width::Dword, Gpr::Rax);
    move_stack(&mut asm, 16);
    asm.ret();
    let codes = programs.iter().chain(singles.iter().map(|(_, code)| code));
    for (part, code) in codes.enumerate() {
        asm.bind(Label(part as u32));
        asm.bytes(code);
    }
    finished(asm)
}
