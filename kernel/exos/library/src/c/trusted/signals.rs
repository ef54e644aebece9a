//! Signals.

use core::ffi::{c_int, c_uint};

use postern_exos_abi::errno;

use crate::c::trusted::answer;
use crate::process::signals::{self, Action};
use crate::process::{Stack, stack};

/// `struct sigaction` of `<sys/signal.h>`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Handling {
    handler: usize,
    mask: u64,
    flags: c_int,
}

const NO_STOPS: c_int = 1;
const TOLD: c_int = 2;
const ON_STACK: c_int = 4;
const NESTS: c_int = 0x4000_0000;
const RESTART: c_int = 0x1000_0000;
const ONCE: c_int = 0x8000_0000_u32 as c_int;

/// # Safety
/// Memory of the caller's, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    number: c_int,
    new: *const Handling,
    former: *mut Handling,
) -> c_int {
    // SAFETY: the caller says so.
    let new = (!new.is_null()).then(|| unsafe { *new });
    let action = new.map(|new| Action {
        handler: new.handler,
        mask: new.mask,
        told: new.flags & TOLD != 0,
        on_stack: new.flags & ON_STACK != 0,
        nests: new.flags & NESTS != 0,
        no_stops: new.flags & NO_STOPS != 0,
        restart: new.flags & RESTART != 0,
        once: new.flags & ONCE != 0,
    });
    let done = signals::act_on(number as u32, action).map(|was| {
        let flag = |is: bool, flag: c_int| if is { flag } else { 0 };
        let was = Handling {
            handler: was.handler,
            mask: was.mask,
            flags: flag(was.told, TOLD)
                | flag(was.restart, RESTART)
                | flag(was.once, ONCE)
                | flag(was.on_stack, ON_STACK)
                | flag(was.nests, NESTS)
                | flag(was.no_stops, NO_STOPS),
        };
        if !former.is_null() {
            // SAFETY: the caller says so.
            unsafe { former.write(was) };
        }
        0
    });
    answer(done)
}

#[unsafe(no_mangle)]
extern "C" fn signal(number: c_int, handler: usize) -> usize {
    let action = Action {
        handler,
        restart: true,
        ..Action::default()
    };
    match signals::act_on(number as u32, Some(action)) {
        Ok(former) => former.handler,
        Err(error) => answer::<isize>(Err(error)) as usize,
    }
}

const USED: c_int = 1;
const DISABLED: c_int = 2;

/// # Safety
/// Memory of the caller's, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaltstack(new: *const Stack, former: *mut Stack) -> c_int {
    let was = match stack::now() {
        None => Stack {
            flags: DISABLED,
            ..Stack::default()
        },
        Some([base, size]) => Stack {
            base,
            flags: if stack::is_used() { USED } else { 0 },
            size,
        },
    };
    // SAFETY: the caller says so.
    let new = (!new.is_null()).then(|| unsafe { *new });
    let done = match new {
        None => Ok(()),
        Some(new) if new.flags & DISABLED != 0 => stack::set(None),
        Some(new) if new.flags & !USED != 0 => Err(errno::INVAL),
        Some(new) => stack::set(Some([new.base, new.size])),
    };
    if done.is_ok() && !former.is_null() {
        // SAFETY: as above.
        unsafe { former.write(was) };
    }
    answer(done.map(|()| 0))
}

#[unsafe(no_mangle)]
extern "C" fn raise(number: c_int) -> c_int {
    answer(signals::raise(number as u32).map(|()| 0))
}

/// # Safety
/// Memory of the caller's, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigprocmask(how: c_int, new: *const u64, former: *mut u64) -> c_int {
    let mask = signals::mask();
    if !former.is_null() {
        // SAFETY: the caller says so.
        unsafe { former.write(mask) };
    }
    if new.is_null() {
        return 0;
    }
    // SAFETY: the caller says so.
    let new = unsafe { *new };
    let next = match how {
        0 => new,
        1 => mask | new,
        2 => mask & !new,
        _ => return answer(Err(errno::INVAL)),
    };
    signals::set_mask(next);
    0
}

/// # Safety
/// Memory of the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigpending(to: *mut u64) -> c_int {
    // SAFETY: the caller says so.
    unsafe { to.write(signals::pending()) };
    0
}

/// # Safety
/// Memory of the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigsuspend(mask: *const u64) -> c_int {
    // SAFETY: the caller says so.
    signals::suspend(unsafe { *mask });
    answer(Err(errno::INTR))
}

#[unsafe(no_mangle)]
extern "C" fn pause() -> c_int {
    signals::pause();
    answer(Err(errno::INTR))
}

#[unsafe(no_mangle)]
extern "C" fn alarm(seconds: c_uint) -> c_uint {
    let [left, _] = signals::alarm(u64::from(seconds) * 1_000_000, 0);
    left.div_ceil(1_000_000) as c_uint
}

#[unsafe(no_mangle)]
extern "C" fn ualarm(microseconds: c_uint, interval: c_uint) -> c_uint {
    let [left, _] = signals::alarm(microseconds.into(), interval.into());
    left as c_uint
}
