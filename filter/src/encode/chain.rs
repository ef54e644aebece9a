//! A function that asks programs of a set, one after the other, then single filters. The best rank goes from program to program in r10.

use alloc::vec::Vec;

use super::*;

const R10: u8 = 10;

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
    for (at, to) in jumps.chain(calls).collect::<Vec<_>>() {
        let distance = (to - at - 4) as u32;
        text[at..at + 4].copy_from_slice(&distance.to_le_bytes());
    }
    text
}
