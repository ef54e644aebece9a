//! Interrupts and ends of slices, exceptions that the kernel looks at first, and who runs next.

use core::mem::offset_of;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use postern_aegis_abi::address::GUARANTEED;
use postern_aegis_abi::context::{Others, Saved};
use postern_aegis_abi::records::{Environment, Slice, claim, end, stopping};
use postern_aegis_abi::{Context, ROOT, status};
use postern_aegis_books::{Emergency, Hardware, Tick};

use crate::boot::say;
use crate::console;
use crate::filters;
use crate::hardware::memory::Words;
use crate::hardware::switch::{self, Frame};
use crate::hardware::{filters as decision, handler, interrupts, local, port, registers};
use crate::machine::{Here, books};
use crate::{disk, network};

/// A word of a context.
fn word(context: &Words, offset: usize) -> u64 {
    context[offset / 8].load(Relaxed)
}

/// `entry.s` calls this with all registers saved: interrupts, and exceptions that are not an
/// environment's alone.
#[unsafe(no_mangle)]
extern "C" fn kernel_trap(frame: &mut Frame) {
    match frame.vector as u8 {
        interrupts::CLOCK => {
            interrupts::end();
            if !handler::has_ticked(frame) {
                tick(frame);
            }
        }
        interrupts::REQUEST => {
            interrupts::end();
            Here.poll();
            if frame.is_users() {
                leave_if_stopping();
            }
        }
        interrupts::NETWORK | interrupts::DISK => {
            interrupts::end();
            // A handler is not interrupted by what may run one: frames that came are looked for
            // when it is done, and the rest at the next tick.
            if !handler::runs() {
                match frame.vector as u8 {
                    interrupts::NETWORK => network::interrupt(),
                    _ => disk::interrupt(),
                }
            }
            if frame.is_users() {
                leave_if_stopping();
            }
        }
        interrupts::SPURIOUS => {}
        14 if frame.is_users() => miss(frame),
        0..32 if handler::has_faulted(frame) => {}
        0..32 if decision::escape(frame) => {}
        vector => panic!(
            "exception {vector} in the kernel: code {:#x}, at {:#x}, address {:#x}, stack {:#x}",
            frame.code,
            frame.rip,
            registers::fault_address(),
            frame.rsp
        ),
    }
    if frame.is_users() && frame.vector as u8 >= interrupts::CLOCK {
        upcall(frame);
    }
}

/// Leaves the environment that runs here, if it has ended or is handed over.
pub fn leave_if_stopping() {
    if let Some(environment) = switch::current()
        && environment.stopping.load(Acquire) >= stopping::SUBMIT
    {
        leave();
    }
}

/// Slices after which a processor looks for what is due, beside its ticks.
const DUE: u64 = 8;

/// Looks for what is due.
fn look(processor: usize) {
    books().due(processor);
    if processor != 0 {
        return;
    }
    books().alarms();
    console::look();
    network::look();
    disk::tick();
}

/// Tells who runs here of a device's event at once, if it wants that and its slice is not over.
fn upcall(frame: &mut Frame) {
    let Some(environment) = switch::current() else {
        return;
    };
    let context = switch::context(environment);
    let handler = word(context, offset_of!(Context, upcall));
    if handler == 0 || word(context, offset_of!(Context, events)) & Context::DEVICES == 0 {
        return;
    }
    let here = &books().machine.processor[local::this().processor()];
    if here.told.load(Relaxed) == u32::from(environment.number.load(Relaxed)) {
        return;
    }
    context[offset_of!(Context, upcall) / 8].store(0, Relaxed);
    save(frame, context, offset_of!(Context, upcalled));
    resume_at(frame, handler);
}

/// The clock ticked: a slice is over, or nobody runs.
fn tick(frame: &mut Frame) {
    if !handler::slice_is_over() {
        return;
    }
    let processor = local::this().processor();
    let tick = books().tick(processor);
    look(processor);
    // Whoever is told now has a slice's time to yield, and not what was left of it here: the next
    // tick may be waiting already, after much to do or on a host that has stopped the machine, and
    // would count as time in excess.
    handler::slice_begins();
    let Some(environment) = frame.is_users().then(switch::current).flatten() else {
        return;
    };
    environment.whole.fetch_add(1, Relaxed);
    match tick {
        Tick::Stay => {}
        // The handler saves what it needs and yields.
        Tick::Tell(handler) => {
            save(
                frame,
                switch::context(environment),
                offset_of!(Context, interrupted),
            );
            resume_at(frame, handler);
        }
        Tick::Next => leave(),
    }
    leave_if_stopping();
}

/// Leaves in a context what a handler needs to go on without the kernel.
fn save(frame: &Frame, context: &Words, at: usize) {
    let saved = [
        (offset_of!(Saved, rax), frame.rax),
        (offset_of!(Saved, rcx), frame.rcx),
        (offset_of!(Saved, r11), frame.r11),
        (offset_of!(Saved, rip), frame.rip),
        (offset_of!(Saved, rflags), frame.rflags),
        (offset_of!(Saved, code), frame.code),
        (offset_of!(Saved, vector), frame.vector),
    ];
    for (offset, value) in saved {
        context[(at + offset) / 8].store(value, Relaxed);
    }
}

/// Leaves in a context the registers that no handler will find where they were.
fn save_others(frame: &Frame, context: &Words) {
    let others: Others = [
        frame.rbx, frame.rdx, frame.rsi, frame.rdi, frame.rbp, frame.rsp, frame.r8, frame.r9,
        frame.r10, frame.r12, frame.r13, frame.r14, frame.r15,
    ];
    let first = offset_of!(Context, emerged_others) / 8;
    for (word, register) in context[first..].iter().zip(others) {
        word.store(register, Relaxed);
    }
}

/// Goes back to a handler instead of where the environment was.
fn resume_at(frame: &mut Frame, handler: u64) {
    frame.rip = handler & ((1 << 47) - 1);
    frame.rflags = 0x202;
    frame.rax = frame.vector;
}

/// A page fault in the second segment, or of the page of the handler itself.
fn miss(frame: &mut Frame) {
    let Some(environment) = switch::current() else {
        panic!("a fault of nobody")
    };
    let context = switch::context(environment);
    let number = environment.number.load(Relaxed);
    let address = registers::fault_address();
    let save_fault = |at: usize| {
        save(frame, context, at);
        context[(at + offset_of!(Saved, address)) / 8].store(address, Relaxed);
    };
    let handler = word(context, offset_of!(Context, exception) + 8 * 14);
    if books().guarantee(number, address) {
        return;
    }
    match handler {
        // Not even here: the handler's own page.
        _ if handler != 0 && handler >> 12 == address >> 12 => {}
        0 if address < GUARANTEED => end(end::EXCEPTION + 14, frame.rip),
        0 => {}
        _ => {
            save_fault(offset_of!(Context, excepted));
            return resume_at(frame, handler);
        }
    }
    match books().emergency(number, address, frame.rip) {
        Emergency::Restored => {}
        Emergency::Entry(handler) => {
            save_fault(offset_of!(Context, emerged));
            resume_at(frame, handler);
        }
        Emergency::Gone => {
            // Whoever thaws it may have it go on.
            save_fault(offset_of!(Context, emerged));
            save_others(frame, context);
            leave()
        }
    }
}

/// The running environment ends, for a reason, at an instruction.
pub fn end(reason: u32, at: u64) -> ! {
    if let Some(environment) = switch::current() {
        books().end(environment.number.load(Relaxed), reason, at);
    }
    leave()
}

/// The running environment is left, and the next one of this processor's vector begins.
pub fn leave() -> ! {
    switch::leave();
    books().vacate(local::this().processor());
    switch::next()
}

/// `entry.s` calls this on an empty stack: the next environment of this processor's vector begins.
#[unsafe(no_mangle)]
extern "C" fn kernel_schedule() -> ! {
    let local = local::this();
    let processor = local.processor();
    loop {
        Here.poll();
        // Where everybody yields early, the clock never ticks: what is due is taken all the same.
        let ticks = books().machine.processor[processor].ticks.load(Relaxed);
        if ticks.is_multiple_of(DUE) {
            look(processor);
        }
        let more = books().reap();
        filters::settle(None);
        if books().environment(ROOT).claim.load(Relaxed) == claim::FREE {
            let root = books().environment(ROOT);
            let (why, at) = (root.ended.load(Relaxed), root.ended_at.load(Relaxed));
            say(format_args!(
                "aegis: the root environment has ended: {why:#x} at {at:#x}"
            ));
            port::stop(status::ROOT_ENDED);
        }
        if let Some(turn) = books().next_turn(processor) {
            let slice = &books().machine.slices[processor][turn.position];
            local.slice.store(slice as *const Slice as u64, Relaxed);
            handler::slice_begins();
            begin(books().environment(turn.environment), turn.entry);
        }
        if more {
            // What is left may wait for a device.
            registers::let_in();
        } else {
            registers::wait();
        }
    }
}

/// A slice begins.
fn begin(environment: &'static Environment, entry: u64) -> ! {
    let context = switch::context(environment);
    let events = word(context, offset_of!(Context, events));
    let fs = word(context, offset_of!(Context, fs));
    let gs = word(context, offset_of!(Context, gs));
    let fpu = word(context, offset_of!(Context, fpu)) & 1 != 0;
    switch::begin(environment, entry, events, fs, gs, fpu)
}
