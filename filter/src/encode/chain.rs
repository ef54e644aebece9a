//! Functions around programs. One that judges several packets in one call; and one that asks programs of a set, one after the other,
//! then single filters. The best rank goes from program to program in r10.

use alloc::vec::Vec;

use super::*;

const R10: u8 = 10;

/// Packets of one call.
pub(crate) const BATCH: u32 = 64;
/// A packet in the list: its offset, its length on the wire, its captured bytes, and the answer, each of 4 bytes.
pub(crate) const ENTRY: u32 = 16;

/// So many packets before its turn the processor is asked for a packet's headers: those of a ring are seldom near. A place that is not
/// there does no harm.
const AHEAD: u32 = 8;
/// Bytes in the lines that headers lie in.
const HEADERS: [i32; 2] = [12, 54];
const PREFETCH: Opcode = Opcode::new(0x0f18);

/// A function `void batch(list, count)` that asks the function right behind it for each packet of a list, at most [`BATCH`].
pub(crate) fn batch() -> Vec<u8> {
    const RBX: u8 = 3;
    const R12: u8 = 12;
    let mut text = Vec::new();
    let slot = |at| Rm::M(Mem::at(R15, at));
    let place = |packet: u32, at: u32| Rm::M(Mem::at(RBX, (ENTRY * packet + at) as i32));
    op(&mut text, LEA, true, R15, slot(-16), false);
    op(&mut text, STORE, true, RBX, slot(0), true);
    op(&mut text, STORE, true, R12, slot(8), true);
    op(&mut text, MOV, false, RBX, Rm::R(RDI), true);
    op(&mut text, MOV, false, R12, Rm::R(RSI), true);
    let (mut ends, mut calls) = (Vec::new(), Vec::new());
    for packet in 0..BATCH {
        let count = Rm::R(R12);
        op(&mut text, Opcode::new(0x83), false, 7, count, true);
        text.extend_from_slice(&[packet as u8, 0x0f, 0x86]);
        ends.push(text.len());
        text.extend_from_slice(&[0; 4]);
        if packet + AHEAD < BATCH {
            op(&mut text, MOV, false, RAX, place(packet + AHEAD, 0), true);
            for at in HEADERS {
                let line = Rm::M(Mem::at(RAX, at));
                op(&mut text, PREFETCH, false, 1, line, true);
            }
        }
        op(&mut text, MOV, false, RDI, place(packet, 0), true);
        op(&mut text, MOV, false, RSI, place(packet, 4), true);
        op(&mut text, MOV, false, RDX, place(packet, 8), true);
        text.push(0xe8);
        calls.push(text.len());
        text.extend_from_slice(&[0; 4]);
        op(&mut text, STORE, false, RAX, place(packet, 12), true);
    }
    let end = text.len();
    op(&mut text, MOV, true, RBX, slot(0), true);
    op(&mut text, MOV, true, R12, slot(8), true);
    op(&mut text, LEA, true, R15, slot(16), false);
    text.push(0xc3);
    let behind = text.len();
    let jumps = ends.into_iter().map(|at| (at, end));
    patch(
        &mut text,
        jumps.chain(calls.into_iter().map(|at| (at, behind))),
    );
    text
}

/// Writes the distances of forward branches: where each stands, and where it leads.
fn patch(text: &mut [u8], branches: impl Iterator<Item = (usize, usize)>) {
    for (at, to) in branches {
        let distance = (to - at - 4) as u32;
        text[at..at + 4].copy_from_slice(&distance.to_le_bytes());
    }
}

/// The text of `programs` and of `singles` with their ranks, the highest first, behind a function that returns the number of the best
/// filter and 1, or 0.
pub(crate) fn chain(programs: &[Vec<u8>], singles: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut text = Vec::new();
    let best = Rm::M(Mem::at(R15, 0));
    let stack = |text: &mut Vec<u8>, by| {
        op(text, LEA, true, R15, Rm::M(Mem::at(R15, by)), false);
    };
    let rank = |text: &mut Vec<u8>, rank: u64| {
        text.extend_from_slice(&[0x48, 0xb8]);
        text.extend_from_slice(&rank.to_le_bytes());
    };
    // Places of distances, and the part that each goes to.
    let mut calls = Vec::new();
    let mut call = |text: &mut Vec<u8>, part: usize| {
        text.push(0xe8);
        calls.push((text.len(), part));
        text.extend_from_slice(&[0; 4]);
    };
    let mut ends = Vec::new();
    stack(&mut text, -16);
    op(&mut text, Opcode::new(0x33), false, R10, Rm::R(R10), true);
    for part in 0..programs.len() {
        call(&mut text, part);
    }
    op(&mut text, STORE, true, R10, best, true);
    for (index, (value, _)) in singles.iter().enumerate() {
        rank(&mut text, *value);
        op(&mut text, Opcode::new(0x3b), true, RAX, best, true);
        text.extend_from_slice(&[0x0f, 0x86]);
        ends.push(text.len());
        text.extend_from_slice(&[0; 4]);
        call(&mut text, programs.len() + index);
        op(&mut text, Opcode::new(0x85), false, RAX, Rm::R(RAX), true);
        let next = text.len() + 2;
        text.extend_from_slice(&[0x74, 0]);
        rank(&mut text, *value);
        op(&mut text, STORE, true, RAX, best, true);
        text.push(0xe9);
        ends.push(text.len());
        text.extend_from_slice(&[0; 4]);
        text[next - 1] = (text.len() - next) as u8;
    }
    let end = text.len();
    op(&mut text, MOV, false, RAX, best, true);
    op(&mut text, Opcode::new(0xf7), false, 3, Rm::R(RAX), true);
    stack(&mut text, 16);
    text.push(0xc3);
    let mut parts = Vec::new();
    for part in programs.iter().chain(singles.iter().map(|(_, code)| code)) {
        parts.push(text.len());
        text.extend_from_slice(part);
    }
    let jumps = ends.into_iter().map(|at| (at, end));
    let calls = calls.into_iter().map(|(at, part)| (at, parts[part]));
    patch(&mut text, jumps.chain(calls));
    text
}
