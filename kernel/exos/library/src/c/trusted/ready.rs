//! Waiting for several descriptors: <poll.h>, <sys/select.h>.

use core::ffi::c_int;
use core::slice;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::start::DESCRIPTORS;

use crate::c::trusted::answer;
use crate::files::ready::ready;
use crate::net::own;
use crate::net::wait::{self, Until};
use crate::process::signals;

/// `struct pollfd`.
#[repr(C)]
#[derive(Debug)]
pub struct Polled {
    number: c_int,
    events: i16,
    found: i16,
}

const IN: i16 = 1;
const OUT: i16 = 4;
const ERROR: i16 = 8;
const HANGUP: i16 = 0x10;
const INVALID: i16 = 0x20;

/// What is so of a descriptor.
fn look(number: c_int) -> i16 {
    let Ok(ready) = ready(number) else {
        return INVALID;
    };
    let flag = |is: bool, flag: i16| if is { flag } else { 0 };
    flag(ready.read, IN)
        | flag(ready.write, OUT)
        | flag(ready.error, ERROR)
        | flag(ready.ended, HANGUP)
}

/// Looks until something is found, or time is over, or a handler was called.
fn until(end: Until, mut find: impl FnMut() -> c_int) -> Result<c_int, Errno> {
    loop {
        let found = find();
        if found > 0 {
            return Ok(found);
        }
        let Some(left) = end.left() else {
            return Ok(0);
        };
        if signals::poll() {
            return Err(errno::INTR);
        }
        let due = own::with_some(|net| net.rest()).flatten();
        wait::rest(left.min(due.unwrap_or(u64::MAX)));
    }
}

/// # Safety
/// There are so many.
#[unsafe(no_mangle)]
unsafe extern "C" fn poll(all: *mut Polled, count: u64, milliseconds: c_int) -> c_int {
    let all = match count {
        0 => &mut [],
        count if count > DESCRIPTORS as u64 * 4 => return answer(Err(errno::INVAL)),
        // SAFETY: the caller says so.
        count => unsafe { slice::from_raw_parts_mut(all, count as usize) },
    };
    let end = match u64::try_from(milliseconds) {
        Ok(0) => Until::Now,
        Ok(milliseconds) => Until::after(milliseconds * 1000),
        Err(_) => Until::Ever,
    };
    let found = until(end, || {
        let mut found = 0;
        for polled in all.iter_mut() {
            polled.found = match polled.number {
                ..0 => 0,
                number => look(number) & (polled.events | ERROR | HANGUP | INVALID),
            };
            found += c_int::from(polled.found != 0);
        }
        found
    });
    answer(found)
}

/// `struct timeval`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Time {
    seconds: i64,
    microseconds: i64,
}

/// # Safety
/// Sets of 64 descriptors, and a time, or null.
#[unsafe(no_mangle)]
unsafe extern "C" fn select(
    count: c_int,
    reads: *mut u64,
    writes: *mut u64,
    others: *mut u64,
    time: *const Time,
) -> c_int {
    if !(0..=64).contains(&count) {
        return answer(Err(errno::INVAL));
    }
    // SAFETY: the caller says so.
    let read = |set: *mut u64| unsafe { if set.is_null() { 0 } else { set.read() } };
    let wanted = [read(reads), read(writes), read(others)];
    // SAFETY: as above.
    let end = match unsafe { time.as_ref() } {
        None => Until::Ever,
        Some(time) => {
            let all = time
                .seconds
                .saturating_mul(1_000_000)
                .saturating_add(time.microseconds);
            match u64::try_from(all) {
                Ok(0) => Until::Now,
                Ok(all) => Until::after(all),
                Err(_) => return answer(Err(errno::INVAL)),
            }
        }
    };
    let mut sets = [0; 3];
    let mut bad = false;
    let found = until(end, || {
        sets = [0; 3];
        for number in 0..count {
            let bit = 1 << number;
            if wanted.iter().all(|set| set & bit == 0) {
                continue;
            }
            let found = look(number);
            bad |= found & INVALID != 0;
            let is = [IN | HANGUP | ERROR, OUT | ERROR, 0];
            for ((set, is), wanted) in sets.iter_mut().zip(is).zip(wanted) {
                if wanted & bit != 0 && found & is != 0 {
                    *set |= bit;
                }
            }
        }
        let found: u32 = sets.iter().map(|set| set.count_ones()).sum();
        found as c_int + c_int::from(bad)
    });
    if bad {
        return answer(Err(errno::BADF));
    }
    if found.is_ok() {
        for (to, set) in [reads, writes, others].into_iter().zip(sets) {
            if !to.is_null() {
                // SAFETY: as above.
                unsafe { to.write(set) };
            }
        }
    }
    answer(found)
}
