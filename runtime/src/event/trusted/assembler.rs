//! Instructions of the kernel's programs, as [`super::bpf`] writes them. The kernel judges what it
//! is given, so nothing here is unsafe.

use std::os::fd::{AsRawFd, OwnedFd};

/// `bpf_map_lookup_elem`, of `enum bpf_func_id` (include/uapi/linux/bpf.h).
const LOOKUP: i32 = 1;

/// One instruction: operation, registers, offset, immediate value.
type Instruction = (u8, u8, u8, i16, i32);

/// The program's own assembler.
#[derive(Default)]
pub(super) struct Assembler {
    code: Vec<u64>,
    /// Jumps to the end, by the place of their instruction.
    leaving: Vec<usize>,
}

impl Assembler {
    fn put(&mut self, (operation, to, from, offset, value): Instruction) {
        let registers = u64::from(from) << 4 | u64::from(to);
        let low = u64::from(operation) | registers << 8 | u64::from(offset as u16) << 16;
        self.code.push(low | u64::from(value as u32) << 32);
    }

    /// `to = from`
    pub(super) fn copy(&mut self, to: u8, from: u8) {
        self.put((0xbf, to, from, 0, 0));
    }

    pub(super) fn set(&mut self, to: u8, value: i32) {
        self.put((0xb7, to, 0, 0, value));
    }

    pub(super) fn add(&mut self, to: u8, value: i32) {
        self.put((0x07, to, 0, 0, value));
    }

    /// `to += from`
    pub(super) fn add_register(&mut self, to: u8, from: u8) {
        self.put((0x0f, to, from, 0, 0));
    }

    /// `to = *(u64 *)(from + offset)`
    pub(super) fn load(&mut self, to: u8, from: u8, offset: i16) {
        self.put((0x79, to, from, offset, 0));
    }

    /// The same of 32 bits.
    pub(super) fn load_half(&mut self, to: u8, from: u8, offset: i16) {
        self.put((0x61, to, from, offset, 0));
    }

    /// `*(u64 *)(to + offset) = from`
    pub(super) fn store(&mut self, to: u8, offset: i16, from: u8) {
        self.put((0x7b, to, from, offset, 0));
    }

    pub(super) fn store_half(&mut self, to: u8, offset: i16, from: u8) {
        self.put((0x63, to, from, offset, 0));
    }

    /// The same of 8 bits.
    pub(super) fn load_byte(&mut self, to: u8, from: u8, offset: i16) {
        self.put((0x71, to, from, offset, 0));
    }

    pub(super) fn store_byte(&mut self, to: u8, offset: i16, from: u8) {
        self.put((0x73, to, from, offset, 0));
    }

    pub(super) fn call(&mut self, helper: i32) {
        self.put((0x85, 0, 0, 0, helper));
    }

    /// To the end if `register` compares so with the value of another one, or with a number.
    pub(super) fn leave_if(&mut self, operation: u8, register: u8, other: u8, value: i32) {
        self.leaving.push(self.code.len());
        self.put((operation, register, other, 0, value));
    }

    /// Over what `skipped` puts, if `register` compares so with a number.
    pub(super) fn skip_if(
        &mut self,
        operation: u8,
        register: u8,
        value: i32,
        skipped: impl FnOnce(&mut Self),
    ) {
        let place = self.code.len();
        self.put((operation, register, 0, 0, value));
        skipped(self);
        let distance = (self.code.len() - place - 1) as u64;
        self.code[place] |= distance << 16;
    }

    /// r0 = the value in a map for the key on the stack, at `r10 + key`; to the end without one.
    pub(super) fn look_up(&mut self, map: &OwnedFd, key: i16) {
        // A load of 64 bits, which says that it is a map's descriptor.
        self.put((0x18, 1, 1, 0, map.as_raw_fd()));
        self.put((0, 0, 0, 0, 0));
        self.copy(2, 10);
        self.add(2, i32::from(key));
        self.call(LOOKUP);
        self.leave_if(EQUAL, 0, 0, 0);
    }

    /// The end: 0.
    pub(super) fn finish(mut self) -> Vec<u64> {
        let end = self.code.len();
        for place in self.leaving {
            let distance = (end - place - 1) as u64;
            self.code[place] |= distance << 16;
        }
        self.code.push(0xb7);
        self.code.push(0x95);
        self.code
    }
}

/// With a number.
const EQUAL: u8 = 0x15;
pub(super) const NOT_EQUAL: u8 = 0x55;
pub(super) const AT_LEAST: u8 = 0x35;
/// With a register.
pub(super) const AT_LEAST_OF: u8 = 0x3d;
pub(super) const OTHER_THAN: u8 = 0x5d;
