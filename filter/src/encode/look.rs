//! Lookups of a set's program. r10 holds the best rank so far; everything a lookup does is without branches, so that it costs the
//! same whatever is found, but for the check of a table's range.

use super::*;
use crate::lookup::{BOUND, COUNT, Chunk, ENTRIES, Layout, Lookup, REST, Source};

const R10: u8 = 10;
const CMOVE: Opcode = Opcode::new(0x0f44);
const CMOVA: Opcode = Opcode::new(0x0f47);
const ADD: Opcode = Opcode::new(0x03);
const XOR: Opcode = Opcode::new(0x33);
const CMP: Opcode = Opcode::new(0x3b);

fn absolute(at: u32) -> Rm {
    Rm::M(Mem {
        base: None,
        index: None,
        scale: 1,
        disp: at as i32,
        long: false,
    })
}

impl Encoder<'_> {
    /// r10 belongs to the best rank.
    pub(super) fn reserve_best(&mut self) {
        self.pinned |= 1 << 2;
        if self.program.afresh {
            self.constant(R10, 0);
        }
    }

    /// Compares the best rank with the one at a place: the condition is that it is not lower.
    pub(super) fn beaten(&mut self, at: u32) -> (u8, bool) {
        self.wide(CMP, R10, absolute(at + BOUND));
        (3, true)
    }

    /// The filter's number of the best rank and 1, or 0.
    pub(super) fn best(&mut self) {
        op(&mut self.text, MOV, false, RAX, Rm::R(R10), true);
        op(
            &mut self.text,
            Opcode::new(0xf7),
            false,
            3,
            Rm::R(RAX),
            true,
        );
        self.leave();
    }

    fn wide(&mut self, opcode: Opcode, register: u8, rm: Rm) {
        op(&mut self.text, opcode, true, register, rm, true);
    }

    fn narrow(&mut self, opcode: Opcode, register: u8, rm: Rm) {
        op(&mut self.text, opcode, false, register, rm, true);
    }

    /// Keeps the rank in rax if it is higher.
    fn improve(&mut self) {
        self.wide(CMP, RAX, Rm::R(R10));
        self.wide(CMOVA, R10, Rm::R(RAX));
    }

    pub(super) fn look(&mut self, number: u32, next: NodeId) {
        let program = self.program;
        match program.lookups.get(number as usize) {
            Some(Lookup::Rank { at }) => {
                self.wide(MOV, RAX, absolute(*at));
                self.improve();
            }
            Some(Lookup::Direct { field, at, base }) => {
                self.into(*field, RAX);
                self.narrow(Opcode::new(0x2b), RAX, absolute(at + REST));
                self.narrow(CMP, RAX, absolute(at + COUNT));
                self.jump_if(3, next);
                self.narrow(MOV, R11, absolute(at + ENTRIES));
                let rank = Mem {
                    base: Some(R11),
                    index: Some(RAX),
                    scale: 8,
                    disp: *base as i32,
                    long: false,
                };
                self.wide(MOV, RAX, Rm::M(rank));
                self.improve();
            }
            Some(Lookup::Hash { layout, at, base }) => self.hash(layout, *at, *base),
            None => {}
        }
    }

    fn hash(&mut self, layout: &Layout, at: u32, base: u32) {
        let before = self.slots;
        self.slots += layout.words;
        self.most_slots = self.most_slots.max(self.slots);
        self.gather(layout, before);
        let entry = layout.entry();
        let keys = 8 * (2 * layout.words + 1);
        for hash in 0..2 {
            let keys = at + REST + hash * keys;
            self.wide(MOV, R11, absolute(keys));
            for word in 0..layout.words {
                let slot = self.slot(before + word);
                let low = Rm::M(slot);
                let high = Rm::M(Mem::at(R15, slot.disp + 4));
                self.narrow(MOV, RAX, low);
                self.wide(ADD, RAX, absolute(keys + 8 + 16 * word));
                self.narrow(MOV, RCX, high);
                self.wide(ADD, RCX, absolute(keys + 16 + 16 * word));
                self.wide(Opcode::new(0x0faf), RAX, Rm::R(RCX));
                self.wide(ADD, R11, Rm::R(RAX));
            }
            op(&mut self.text, Opcode::new(0xc1), true, 5, Rm::R(R11), true);
            self.text.push(32);
            self.narrow(Opcode::new(0x23), R11, absolute(at + COUNT));
            op(
                &mut self.text,
                Opcode::new(0xc1),
                false,
                4,
                Rm::R(R11),
                true,
            );
            self.text.push((2 * entry).trailing_zeros() as u8);
            self.narrow(ADD, R11, absolute(at + ENTRIES));
            for place in 0..2 {
                let of = |at: u32| {
                    Rm::M(Mem::at(
                        R11,
                        base.wrapping_add(place * entry + 8 * at) as i32,
                    ))
                };
                // rcx becomes 0 if the keys are equal.
                for word in 0..layout.words {
                    let register = if word == 0 { RCX } else { RAX };
                    let slot = Rm::M(self.slot(before + word));
                    self.wide(MOV, register, slot);
                    self.wide(XOR, register, of(word));
                    if word > 0 {
                        self.wide(Opcode::new(0x0b), RCX, Rm::R(RAX));
                    }
                }
                // `mov`, because `xor` would change the flags.
                self.text.push(0xb8);
                self.text.extend_from_slice(&[0; 4]);
                self.wide(CMOVE, RAX, of(layout.words));
                self.improve();
            }
        }
        self.slots = before;
    }

    /// The key's words to slots.
    fn gather(&mut self, layout: &Layout, slots: u32) {
        let mut last = None;
        for (index, chunk) in layout.chunks.iter().enumerate() {
            let first = last != Some(chunk.word);
            last = Some(chunk.word);
            let slot = Rm::M(self.slot(slots + chunk.word));
            let computed = !matches!(chunk.source, Source::Bytes { base: None, .. });
            // A computed one uses rax and rcx: what the word has so far waits in its slot.
            let register = if first || computed { RAX } else { RCX };
            self.chunk(chunk, register);
            if chunk.shift > 0 {
                let rm = Rm::R(register);
                op(&mut self.text, Opcode::new(0xc1), true, 4, rm, true);
                self.text.push(chunk.shift);
            }
            if !first {
                let other = if computed { slot } else { Rm::R(RCX) };
                self.wide(Opcode::new(0x0b), RAX, other);
            }
            let next = layout.chunks.get(index + 1);
            let goes_on = next.is_some_and(|next| {
                next.word == chunk.word && matches!(next.source, Source::Bytes { base: None, .. })
            });
            if !goes_on {
                self.wide(STORE, RAX, slot);
            }
        }
        if layout.chunks.is_empty() {
            self.constant(RAX, 0);
            let slot = Rm::M(self.slot(slots));
            self.wide(STORE, RAX, slot);
        }
    }

    fn chunk(&mut self, chunk: &Chunk, register: u8) {
        let (base, off) = match chunk.source {
            Source::Value(id) => return self.into(id, register),
            Source::Bytes { base, off } => (base, off),
        };
        let index = base.map(|base| self.value(base));
        let field = Rm::M(Mem {
            base: Some(RDI),
            index,
            scale: 1,
            disp: off as i32,
            long: false,
        });
        let opcode = match chunk.size {
            1 => MOVZX8,
            2 => MOVZX16,
            _ => MOV,
        };
        op(
            &mut self.text,
            opcode,
            chunk.size == 8,
            register,
            field,
            true,
        );
    }
}
