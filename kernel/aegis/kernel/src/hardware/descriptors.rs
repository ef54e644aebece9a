//! Segments, task states, the interrupt table, and where calls enter.

use core::arch::asm;
use core::cell::UnsafeCell;

use postern_aegis_abi::PROCESSORS;

use super::{interrupts, local, registers};

/// Selectors. `sysretq` takes the user's two from the kernel's order.
const KERNEL_CODE: u64 = 0x08;
const USER_BASE: u64 = 0x18;
const TASK: u16 = 0x30;

/// What the processor looks for in a task state: the stacks.
#[repr(C, packed(4))]
struct TaskState {
    reserved0: u32,
    stacks: [u64; 3],
    reserved1: u64,
    interrupt_stacks: [u64; 7],
    reserved2: u64,
    reserved3: u16,
    permissions: u16,
}

#[repr(C, align(64))]
struct Own<T>(UnsafeCell<T>);
// SAFETY: each processor writes its own before it uses it, and only the processor reads it then.
unsafe impl<T> Sync for Own<T> {}

static TASKS: [Own<TaskState>; PROCESSORS] = [const {
    Own(UnsafeCell::new(TaskState {
        reserved0: 0,
        stacks: [0; 3],
        reserved1: 0,
        interrupt_stacks: [0; 7],
        reserved2: 0,
        reserved3: 0,
        // Behind the state: no port is the user's.
        permissions: size_of::<TaskState>() as u16,
    }))
}; PROCESSORS];
static SEGMENTS: [Own<[u64; 8]>; PROCESSORS] = [const { Own(UnsafeCell::new([0; 8])) }; PROCESSORS];
static INTERRUPTS: Own<[[u64; 2]; 256]> = Own(UnsafeCell::new([[0; 2]; 256]));

unsafe extern "C" {
    static vectors: [u64; interrupts::LAST as usize + 1];
    fn syscall_entry();
}

#[repr(C, packed)]
struct Pointer(u16, u64);

/// Fills the interrupt table, for all processors.
pub fn fill_interrupts() {
    // SAFETY: runs once, on the first processor, before another is started.
    let table = unsafe { &mut *INTERRUPTS.0.get() };
    for (vector, gate) in table
        .iter_mut()
        .enumerate()
        .take(interrupts::LAST as usize + 1)
    {
        // SAFETY: an array of the assembly, of that many words.
        let at = unsafe { vectors[vector] };
        // These may come where the kernel has not changed stacks yet, and within each other.
        let stack = match vector {
            1 => 1,
            2 => 2,
            8 | 18 => 3,
            _ => 0,
        };
        // A breakpoint may be an instruction of a user.
        let level = if vector == 3 { 0xee } else { 0x8e };
        *gate = [
            at & 0xffff | KERNEL_CODE << 16 | stack << 32 | level << 40 | (at >> 16 & 0xffff) << 48,
            at >> 32,
        ];
    }
}

/// Loads this processor's tables and says where calls enter.
pub fn start(processor: usize) {
    // SAFETY: each processor fills and loads its own tables once, with interrupts off. Selectors
    // and the entry are those of this file and of `entry.s`.
    unsafe {
        let task = &mut *TASKS[processor].0.get();
        task.stacks[0] = local::stack(processor);
        for stack in 0..3 {
            task.interrupt_stacks[stack] = local::last_resort(processor, stack);
        }
        let at = TASKS[processor].0.get() as u64;
        let limit = size_of::<TaskState>() as u64 - 1;
        let segments = &mut *SEGMENTS[processor].0.get();
        *segments = [
            0,
            0x00af_9b00_0000_ffff, // kernel code
            0x00cf_9300_0000_ffff, // kernel data
            0,
            0x00cf_f300_0000_ffff, // user data
            0x00af_fb00_0000_ffff, // user code
            limit | (at & 0xff_ffff) << 16 | 0x89 << 40 | (at >> 24 & 0xff) << 56,
            at >> 32,
        ];
        let pointer = Pointer(63, segments.as_ptr() as u64);
        asm!("lgdt [{}]", in(reg) &pointer, options(nostack));
        let pointer = Pointer(4095, INTERRUPTS.0.get() as u64);
        asm!("lidt [{}]", in(reg) &pointer, options(nostack));
        asm!("push {code}", "lea {at}, [rip + 2f]", "push {at}", "retfq", "2:",
            code = const KERNEL_CODE, at = out(reg) _);
        asm!("mov ds, {zero:e}", "mov es, {zero:e}", "mov ss, {zero:e}", "mov fs, {zero:e}",
            "mov gs, {zero:e}", zero = in(reg) 0);
        asm!("ltr {:x}", in(reg) TASK, options(nostack));
        registers::write_model(0xc000_0081, USER_BASE << 48 | KERNEL_CODE << 32);
        registers::write_model(0xc000_0082, syscall_entry as *const () as u64);
        // Off in the kernel: alignment checks (and SMAP's exception), nesting, input and output
        // level, direction, interrupts, steps.
        registers::write_model(0xc000_0084, 0x4_7700);
    }
}
