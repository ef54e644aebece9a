//! Lookups of a set's program. r10 holds the best rank so far; everything a lookup does is without
//! branches, so that it costs the same whatever is found, but for the check of a table's range.

use postern_x86::{Scale, Shift};

use super::*;
use crate::lookup::{BOUND, COUNT, Chunk, ENTRIES, Layout, Lookup, REST, Source};

/// The best rank.
const BEST: Gpr = Gpr::R10;

impl Encoder<'_> {
    /// r10 belongs to the best rank.
    pub(super) fn reserve_best(&mut self) {
        self.pinned |= 1 << 2;
        if self.program.afresh {
            self.constant(BEST, 0);
        }
    }

    /// Compares the best rank with the one at a place: the condition is that it is not lower.
    pub(super) fn beaten(&mut self, at: u32) -> Cond {
        let site = self.site;
        self.asm.cmp(Width::Qword, BEST, site.absolute(at + BOUND));
        Cond::AboveOrEqual
    }

    /// The filter's number of the best rank and 1, or 0.
    pub(super) fn best(&mut self) {
        self.asm.mov(Width::Dword, Gpr::Rax, BEST);
        self.asm.neg(Width::Dword, Gpr::Rax);
        self.leave();
    }

    /// Keeps the rank in rax if it is higher.
    fn improve(&mut self) {
        self.asm.cmp(Width::Qword, Gpr::Rax, BEST);
        self.asm.cmov(Cond::Above, Width::Qword, BEST, Gpr::Rax);
    }

    pub(super) fn lookup(&mut self, number: u32, next: NodeId) {
        let site = self.site;
        let program = self.program;
        match program.lookups.get(number as usize) {
            Some(Lookup::Rank { at }) => {
                self.asm.mov(Width::Qword, Gpr::Rax, site.absolute(*at));
                self.improve();
            }
            Some(Lookup::Direct { field, at, base }) => {
                self.into(*field, Gpr::Rax);
                let (asm, base) = (&mut self.asm, *base as i32);
                asm.sub(Width::Dword, Gpr::Rax, site.absolute(at + REST));
                asm.cmp(Width::Dword, Gpr::Rax, site.absolute(at + COUNT));
                self.jump_if(Cond::AboveOrEqual, next);
                let rank = Mem::base(Gpr::R11).index(Gpr::Rax, Scale::Eight).disp(base);
                let asm = &mut self.asm;
                asm.mov(Width::Dword, Gpr::R11, site.absolute(at + ENTRIES));
                asm.mov(Width::Qword, Gpr::Rax, site.confined(rank));
                self.improve();
            }
            Some(Lookup::Hash { layout, at, base }) => self.hash(layout, *at, *base),
            None => {}
        }
    }

    fn hash(&mut self, layout: &Layout, at: u32, base: u32) {
        let site = self.site;
        let before = self.slots;
        self.slots += layout.words;
        self.most_slots = self.most_slots.max(self.slots);
        self.gather(layout, before);
        let entry = layout.entry();
        let keys = 8 * (2 * layout.words + 1);
        for hash in 0..2 {
            let keys = at + REST + hash * keys;
            self.hash_key(layout.words, before, keys);
            let asm = &mut self.asm;
            asm.shift(Shift::Shr, Width::Qword, Gpr::R11, 32);
            asm.and(Width::Dword, Gpr::R11, site.absolute(at + COUNT));
            let pair = (2 * entry).trailing_zeros() as u8;
            asm.shift(Shift::Shl, Width::Dword, Gpr::R11, pair);
            asm.add(Width::Dword, Gpr::R11, site.absolute(at + ENTRIES));
            for place in 0..2 {
                self.entry(layout.words, before, base.wrapping_add(place * entry));
            }
        }
        self.slots = before;
    }

    /// The hash of the words in slots, to the upper half of r11: a sum of products with the numbers
    /// at `keys`.
    fn hash_key(&mut self, words: u32, slots: u32, keys: u32) {
        let site = self.site;
        self.asm.mov(Width::Qword, Gpr::R11, site.absolute(keys));
        for word in 0..words {
            let slot = 8 * (slots + word);
            let asm = &mut self.asm;
            asm.mov(Width::Dword, Gpr::Rax, site.on_stack(slot));
            asm.add(Width::Qword, Gpr::Rax, site.absolute(keys + 8 + 16 * word));
            asm.mov(Width::Dword, Gpr::Rcx, site.on_stack(slot + 4));
            asm.add(Width::Qword, Gpr::Rcx, site.absolute(keys + 16 + 16 * word));
            asm.imul(Width::Qword, Gpr::Rax, Gpr::Rcx);
            asm.add(Width::Qword, Gpr::R11, Gpr::Rax);
        }
    }

    /// Compares the words in slots with the entry `disp` bytes behind r11, and keeps its rank if
    /// they are equal and it is higher.
    fn entry(&mut self, words: u32, slots: u32, disp: u32) {
        let site = self.site;
        let of = |word: u32| {
            let disp = disp.wrapping_add(8 * word) as i32;
            site.confined(Mem::base(Gpr::R11).disp(disp))
        };
        // rcx becomes 0 if the keys are equal.
        for word in 0..words {
            let register = if word == 0 { Gpr::Rcx } else { Gpr::Rax };
            let slot = self.slot(slots + word);
            self.asm.mov(Width::Qword, register, slot);
            self.asm.xor(Width::Qword, register, of(word));
            if word > 0 {
                self.asm.or(Width::Qword, Gpr::Rcx, Gpr::Rax);
            }
        }
        // `mov`, because `xor` would change the flags.
        self.asm.mov_imm32(Gpr::Rax, 0);
        self.asm
            .cmov(Cond::Equal, Width::Qword, Gpr::Rax, of(words));
        self.improve();
    }

    /// The key's words to slots.
    fn gather(&mut self, layout: &Layout, slots: u32) {
        let mut last = None;
        for (index, chunk) in layout.chunks.iter().enumerate() {
            let first = last != Some(chunk.word);
            last = Some(chunk.word);
            let slot = self.slot(slots + chunk.word);
            let computed = !matches!(chunk.source, Source::Bytes { base: None, .. });
            // A computed one uses rax and rcx: what the word has so far waits in its slot.
            let register = match first || computed {
                true => Gpr::Rax,
                false => Gpr::Rcx,
            };
            self.chunk(chunk, register);
            if chunk.shift > 0 {
                self.asm
                    .shift(Shift::Shl, Width::Qword, register, chunk.shift);
            }
            if !first {
                let other = match computed {
                    true => Rm::Mem(slot),
                    false => Rm::Reg(Gpr::Rcx),
                };
                self.asm.or(Width::Qword, Gpr::Rax, other);
            }
            let next = layout.chunks.get(index + 1);
            let goes_on = next.is_some_and(|next| {
                next.word == chunk.word && matches!(next.source, Source::Bytes { base: None, .. })
            });
            if !goes_on {
                self.asm.mov_mr(Width::Qword, slot, Gpr::Rax);
            }
        }
        if layout.chunks.is_empty() {
            self.constant(Gpr::Rax, 0);
            let slot = self.slot(slots);
            self.asm.mov_mr(Width::Qword, slot, Gpr::Rax);
        }
    }

    fn chunk(&mut self, chunk: &Chunk, register: Gpr) {
        let (base, off) = match chunk.source {
            Source::Value(id) => return self.into(id, register),
            Source::Bytes { base, off } => (base, off),
        };
        let bytes = match base {
            None => self.field(off),
            Some(base) => self.field(off).index(self.value(base), Scale::One),
        };
        match chunk.size {
            8 => self.asm.mov(Width::Qword, register, bytes),
            size => self.load_bytes(register, bytes, size),
        }
    }
}
