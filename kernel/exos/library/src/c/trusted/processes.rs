//! Processes and time.

use core::ffi::{c_char, c_int, c_uint};

use postern_aegis::{slices, time};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::signal;

use crate::c::trusted::{answer, string};
use crate::files::{self, console, descriptors};
use crate::net::sockets;
use crate::process::wait::{Events, Whom};
use crate::process::{exec, groups, own, registry, signals, wait};

/// Arguments and variables, as C has them: arrays of strings, ended by null.
struct Call {
    arguments: *const *const c_char,
    variables: *const *const c_char,
}

/// # Safety
/// An array of strings, ended by null, or null.
unsafe fn strings<'a>(array: *const *const c_char) -> impl Iterator<Item = &'a [u8]> + Clone {
    let mut next = array;
    core::iter::from_fn(move || {
        if next.is_null() {
            return None;
        }
        // SAFETY: the caller says so.
        let now = unsafe { *next };
        if now.is_null() {
            return None;
        }
        next = next.wrapping_add(1);
        // SAFETY: as above.
        Some(unsafe { string(now) })
    })
}

impl exec::Call for Call {
    fn arguments(&self) -> impl Iterator<Item = &[u8]> + Clone {
        // SAFETY: whoever makes one says so.
        unsafe { strings(self.arguments) }
    }

    fn variables(&self) -> impl Iterator<Item = &[u8]> + Clone {
        // SAFETY: as above.
        unsafe { strings(self.variables) }
    }
}

#[unsafe(no_mangle)]
extern "C" fn _exit(status: c_int) -> ! {
    sockets::leave();
    files::leave();
    registry::end(signal::exited(status))
}

#[unsafe(no_mangle)]
extern "C" fn _Exit(status: c_int) -> ! {
    sockets::leave();
    files::leave();
    registry::end(signal::exited(status))
}

/// A program's name, and how it is called.
///
/// # Safety
/// A string, and arrays of strings ended by null.
unsafe fn called<'a>(
    name: *const c_char,
    arguments: *const *const c_char,
    variables: *const *const c_char,
) -> (&'a [u8], Call) {
    let call = Call {
        arguments,
        variables,
    };
    // SAFETY: the caller says so.
    (unsafe { string(name) }, call)
}

/// # Safety
/// A string, and arrays of strings ended by null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(
    name: *const c_char,
    arguments: *const *const c_char,
    variables: *const *const c_char,
) -> c_int {
    // SAFETY: the caller says so.
    let (name, call) = unsafe { called(name, arguments, variables) };
    answer(exec::exec(name, &call).map(|()| 0))
}

/// What newlib's own functions call.
///
/// # Safety
/// As `execve`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _execve(
    name: *const c_char,
    arguments: *const *const c_char,
    variables: *const *const c_char,
) -> c_int {
    // SAFETY: as there.
    unsafe { execve(name, arguments, variables) }
}

/// A new process of a program, without a copy of this one: its number.
///
/// # Safety
/// As `execve`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exos_spawn(
    name: *const c_char,
    arguments: *const *const c_char,
    variables: *const *const c_char,
) -> c_int {
    // SAFETY: the caller says so.
    let (name, call) = unsafe { called(name, arguments, variables) };
    answer(exec::spawn(name, &call).map(|pid| pid as c_int))
}

const NO_HANG: c_int = 1;
const UNTRACED: c_int = 2;
const CONTINUED: c_int = 8;

/// # Safety
/// Memory of the caller's, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int {
    if options & !(NO_HANG | UNTRACED | CONTINUED) != 0 {
        return answer(Err(errno::INVAL));
    }
    let whom = match pid {
        -1 => Whom::Any,
        0 => Whom::Group(groups::own()),
        1.. => Whom::One(pid as u32),
        _ => Whom::Group(pid.unsigned_abs()),
    };
    let events = Events {
        stops: options & UNTRACED != 0,
        continues: options & CONTINUED != 0,
    };
    let waits = options & NO_HANG == 0;
    let waited = loop {
        let watches = waits && console::watches();
        match wait::wait(whom, events, waits && !watches) {
            Ok(None) if watches => {
                console::watch();
                postern_aegis::entry::yield_slice();
                if signals::poll() {
                    break Err(errno::INTR);
                }
            }
            result => break result,
        }
    };
    let result = waited.map(|ended| match ended {
        None => 0,
        Some((pid, how)) => {
            if !status.is_null() {
                // SAFETY: the caller says so.
                unsafe { status.write(how as c_int) };
            }
            pid as c_int
        }
    });
    answer(result)
}

/// # Safety
/// As [`waitpid`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wait(status: *mut c_int) -> c_int {
    // SAFETY: as there.
    unsafe { waitpid(-1, status, 0) }
}

#[unsafe(no_mangle)]
extern "C" fn getpid() -> c_int {
    own::pid() as c_int
}

#[unsafe(no_mangle)]
extern "C" fn getppid() -> c_int {
    own::parent() as c_int
}

#[unsafe(no_mangle)]
extern "C" fn kill(pid: c_int, number: c_int) -> c_int {
    let number = u32::try_from(number).map_err(|_| errno::INVAL);
    let sent = number.and_then(|number| {
        let own = own::pid() as c_int;
        match pid {
            _ if pid == own && number != 0 => return signals::raise(number),
            // Everybody whom it may signal at all: itself and what it has made.
            -1 => registry::kill(0, number)?,
            0 => registry::kill_group(groups::own(), number)?,
            1.. => registry::kill(pid as u32, number)?,
            _ => registry::kill_group(pid.unsigned_abs(), number)?,
        }
        signals::poll();
        Ok(())
    });
    answer(sent.map(|()| 0))
}

#[unsafe(no_mangle)]
extern "C" fn killpg(group: c_int, number: c_int) -> c_int {
    match group {
        0.. => kill(-group, number),
        _ => answer(Err(errno::INVAL)),
    }
}

fn positive(pid: c_int) -> Result<u32, Errno> {
    u32::try_from(pid).map_err(|_| errno::INVAL)
}

#[unsafe(no_mangle)]
extern "C" fn setpgid(pid: c_int, group: c_int) -> c_int {
    let both = positive(pid).and_then(|pid| Ok((pid, positive(group)?)));
    answer(both.and_then(|(pid, group)| groups::join(pid, group).map(|()| 0)))
}

#[unsafe(no_mangle)]
extern "C" fn setpgrp() -> c_int {
    setpgid(0, 0)
}

#[unsafe(no_mangle)]
extern "C" fn getpgid(pid: c_int) -> c_int {
    let group = positive(pid).and_then(groups::of);
    answer(group.map(|group| group as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn getpgrp() -> c_int {
    groups::own() as c_int
}

/// There is one session, the console's: this makes a group alone.
#[unsafe(no_mangle)]
extern "C" fn setsid() -> c_int {
    let pid = own::pid();
    if groups::own() == pid {
        return answer(Err(errno::PERM));
    }
    answer(groups::join(0, 0).map(|()| pid as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn getsid(pid: c_int) -> c_int {
    answer(positive(pid).and_then(groups::of).map(|_| 1))
}

#[unsafe(no_mangle)]
extern "C" fn tcgetpgrp(number: c_int) -> c_int {
    let group = descriptors::console(number).map(|()| groups::foreground());
    answer(group.map(|group| group as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn tcsetpgrp(number: c_int, group: c_int) -> c_int {
    let done = descriptors::console(number)
        .and_then(|()| positive(group))
        .and_then(console::give);
    answer(done.map(|()| 0))
}

/// Slices, as `clock_t` has them: own and children's, in this system all of them a user's.
///
/// # Safety
/// Four words of the caller's, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn times(to: *mut [u64; 4]) -> u64 {
    let [own, children] = own::times();
    if !to.is_null() {
        // SAFETY: the caller says so.
        unsafe { to.write([own, 0, children, 0]) };
    }
    own::ticks()
}

/// What this process (0) or its children (-1) used, as newlib's `struct rusage` has it: seconds and
/// microseconds of a user's and of the system's time, of which there is none.
///
/// # Safety
/// Four words of the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrusage(who: c_int, to: *mut [u64; 4]) -> c_int {
    let [own, children] = own::times();
    let used = match who {
        0 => own,
        -1 => children,
        _ => return answer(Err(errno::INVAL)),
    };
    // SAFETY: the caller says so.
    unsafe { to.write([used / 1000, used % 1000 * 1000, 0, 0]) };
    0
}

/// # Safety
/// Two words of the caller's, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(to: *mut [u64; 2], _zone: *const u8) -> c_int {
    if !to.is_null() {
        let within = slices::clock() % time::frequency();
        let micro = u128::from(within) * 1_000_000 / u128::from(time::frequency());
        // SAFETY: the caller says so.
        unsafe { to.write([time::now(), micro as u64]) };
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn sleep(seconds: c_uint) -> c_uint {
    signals::sleep(u64::from(seconds) * 1_000_000).div_ceil(1_000_000) as c_uint
}

#[unsafe(no_mangle)]
extern "C" fn usleep(microseconds: c_uint) -> c_int {
    match signals::sleep(microseconds.into()) {
        0 => 0,
        _ => answer(Err(errno::INTR)),
    }
}

#[unsafe(no_mangle)]
extern "C" fn sched_yield() -> c_int {
    postern_aegis::entry::yield_slice();
    signals::poll();
    0
}

#[unsafe(no_mangle)]
extern "C" fn exos_limit(what: c_int, value: u64) -> c_int {
    answer(registry::limit(what as u64, value).map(|()| 0))
}

#[unsafe(no_mangle)]
extern "C" fn exos_room(pages: u64) -> c_int {
    answer(registry::room(pages).map(|room| room as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn exos_stop(status: c_uint) -> c_int {
    answer(registry::stop(status.into()).map(|()| 0))
}

/// `struct exos_usage` of `<exos/process.h>`.
///
/// # Safety
/// Memory of the caller's for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exos_usage(pid: c_int, to: *mut own::Usage) -> c_int {
    let found = positive(pid).and_then(|pid| own::usage(pid).ok_or(errno::SRCH));
    answer(found.map(|usage| {
        // SAFETY: the caller says so.
        unsafe { to.write(usage) };
        0
    }))
}

/// `struct exos_machine` of `<exos/process.h>`.
///
/// # Safety
/// Memory of the caller's for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exos_machine(to: *mut own::Machine) {
    // SAFETY: the caller says so.
    unsafe { to.write(own::machine()) };
}

/// Asks the registry with words as they are: for tests of what it makes of nonsense.
///
/// # Safety
/// Five words of the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exos_ask(words: *mut [u64; 5]) -> c_int {
    // SAFETY: the caller says so.
    let asked = unsafe { *words };
    match postern_aegis::entry::request(postern_aegis::ROOT, asked) {
        Ok(told) => {
            // SAFETY: as above.
            unsafe { words.write(told) };
            0
        }
        Err(_) => -1,
    }
}
