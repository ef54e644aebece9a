//! The bus of devices (PCI Local Bus Specification 3.0, chapter 6): who is on it, where its
//! registers are, and what is switched on of it. Only bus 0 is looked at, where the emulator puts
//! what it is told.

use core::arch::asm;

use super::loader::Range;

const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;

/// Who makes virtio's devices.
const VIRTIO: u32 = 0x1af4;

const COMMAND: u8 = 4;
const HEADER: u8 = 12;
const BASES: u8 = 0x10;

/// In the command register: answers at its base addresses; reaches memory; no interrupts by wire.
const ANSWERS: u32 = 1 << 1;
const REACHES: u32 = 1 << 2;
const NO_WIRE: u32 = 1 << 10;
/// In the word of its vectors: on, and not masked.
const VECTORS_ON: u32 = 1 << 31;
const VECTORS_MASKED: u32 = 1 << 30;

/// A function of a device.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// What is written to the address port for its first word.
    address: u32,
}

impl Function {
    /// A word of its configuration, at a multiple of four.
    pub fn read(&self, offset: u8) -> u32 {
        let value: u32;
        // SAFETY: the ports of the configuration; reading it has no effect but at the device. Only
        // the first processor comes here, while it starts.
        unsafe {
            self.name(offset);
            asm!("in eax, dx", in("dx") DATA, out("eax") value, options(nomem, nostack));
        }
        value
    }

    /// Writes a word.
    ///
    /// # Safety
    /// The device must not reach memory by it that it was not given.
    unsafe fn write(&self, offset: u8, value: u32) {
        // SAFETY: the ports of the configuration; what it does is the caller's promise.
        unsafe {
            self.name(offset);
            asm!("out dx, eax", in("dx") DATA, in("eax") value, options(nomem, nostack));
        }
    }

    /// # Safety
    /// Nobody else uses the ports.
    unsafe fn name(&self, offset: u8) {
        let address = self.address | u32::from(offset & !3);
        // SAFETY: it says which word the data port is.
        unsafe { asm!("out dx, eax", in("dx") ADDRESS, in("eax") address, options(nomem, nostack)) }
    }

    /// The addresses behind a base, as the firmware has set it; `None` if it is not of memory.
    pub fn base(&self, index: u8) -> Option<Range> {
        let at = BASES + 4 * index;
        let word = self.read(at);
        let long = word & 6 == 4;
        if index > 5 || word & 1 != 0 || (long && index == 5) {
            return None;
        }
        let command = self.read(COMMAND);
        // SAFETY: the device does not answer while its base is all ones, which says how many bits
        // of it are fixed; then everything is as before.
        let fixed = unsafe {
            self.write(COMMAND, command & !(ANSWERS | REACHES));
            self.write(at, u32::MAX);
            let fixed = self.read(at);
            self.write(at, word);
            self.write(COMMAND, command);
            fixed
        };
        let high = if long { self.read(at + 4) } else { 0 };
        let from = u64::from(high) << 32 | u64::from(word & !15);
        let bytes = u64::from(!(fixed & !15)) + 1;
        (from != 0 && fixed & !15 != 0).then_some(Range {
            from,
            to: from.checked_add(bytes)?,
        })
    }

    /// Lets the device answer, reach memory, and interrupt by its table of vectors alone, which the
    /// capability at `vectors` switches on.
    pub fn switch_on(&self, vectors: u8) {
        let command = self.read(COMMAND) & 0xffff;
        let control = self.read(vectors) & !VECTORS_MASKED;
        // SAFETY: it reaches memory as its queues say, and it has none yet.
        unsafe {
            self.write(COMMAND, command | ANSWERS | REACHES | NO_WIRE);
            self.write(vectors, control | VECTORS_ON);
        }
    }
}

/// The first function of virtio's with this kind of device (section 5).
pub fn find(kind: u16) -> Option<Function> {
    // A device that old drivers know, too, has another number.
    let numbers = [0x1040 + u32::from(kind), 0xfff + u32::from(kind)];
    let function = |slot: u32, function: u32| Function {
        address: 1 << 31 | slot << 11 | function << 8,
    };
    let is = |function: &Function| {
        let word = function.read(0);
        word & 0xffff == VIRTIO && numbers.contains(&(word >> 16))
    };
    (0..32).find_map(|slot| {
        let several = function(slot, 0).read(HEADER) >> 23 & 1 != 0;
        let functions = if several { 8 } else { 1 };
        (0..functions).map(|number| function(slot, number)).find(is)
    })
}
