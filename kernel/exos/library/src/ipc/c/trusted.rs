//! The functions of <exos/pipe.h>, <exos/shared.h>, <exos/doorbell.h>, <exos/lrpc.h>,
//! <exos/yield.h> that are not assembly's.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use postern_aegis::{Error, books, entry};

use crate::ipc::doorbell::{self, Doorbell};
use crate::ipc::pipe::{self, End};
use crate::ipc::shared::{self, Words};
use crate::process::signals;

/// `exos_own_environment` of <exos/yield.h>.
#[unsafe(export_name = "exos_own_environment")]
static OWN: AtomicU64 = AtomicU64::new(0);

/// In every process once, copies too.
pub fn begin() {
    OWN.store(books::own_number().into(), Relaxed);
}

unsafe extern "C" {
    safe fn __errno() -> *mut c_int;
}

fn fails(error: Error) -> c_int {
    // SAFETY: newlib's own variable, of a process with one thread.
    unsafe { *__errno() = number(error) };
    -1
}

/// As C has errors.
fn number(error: Error) -> c_int {
    match error {
        Error::Argument | Error::Unmapped => 22,
        Error::Denied | Error::Kind => 13,
        Error::Busy | Error::Again => 11,
        Error::NoEnvironment => 3,
        _ => 12,
    }
}

/// `struct exos_pipe` of <exos/pipe.h>.
#[repr(C)]
#[derive(Debug)]
pub struct PipeEnd {
    ring: u64,
    slot: u32,
    end: u32,
}

/// Makes a pipe.
///
/// # Safety
/// There is room for two ends.
#[unsafe(no_mangle)]
unsafe extern "C" fn exos_pipe_create(ends: *mut [PipeEnd; 2]) -> c_int {
    let made = match pipe::create() {
        Err(error) => return fails(error),
        Ok(made) => made.map(|end| PipeEnd {
            ring: end.address(),
            slot: end.place().0 as u32,
            end: end.place().1 as u32,
        }),
    };
    // SAFETY: the caller says so.
    unsafe { ends.write(made) };
    0
}

fn end(pipe: &PipeEnd) -> End {
    End::at(pipe.slot as usize, pipe.end as usize)
}

#[unsafe(no_mangle)]
extern "C" fn exos_pipe_close(pipe: &mut PipeEnd) {
    end(pipe).close();
}

#[unsafe(no_mangle)]
extern "C" fn exos_pipe_wait(pipe: &PipeEnd) -> c_int {
    let looks = || _ = signals::poll();
    match end(pipe).waits(looks) {
        true => 0,
        false => -1,
    }
}

#[unsafe(no_mangle)]
extern "C" fn exos_shared_create(length: usize, words: &mut Words) -> *mut u8 {
    gives(shared::create(length).map(|(at, made)| {
        *words = made;
        at
    }))
}

#[unsafe(no_mangle)]
extern "C" fn exos_shared_attach(words: &Words) -> *mut u8 {
    gives(shared::attach(words))
}

fn gives(made: Result<u64, Error>) -> *mut u8 {
    match made {
        Ok(at) => at as *mut u8,
        Err(error) => {
            fails(error);
            core::ptr::null_mut()
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn exos_shared_reader(memory: u64, words: &mut Words) -> c_int {
    shared::reader(memory).map_or_else(fails, |made| {
        *words = made;
        0
    })
}

#[unsafe(no_mangle)]
extern "C" fn exos_shared_detach(memory: u64) -> c_int {
    shared::detach(memory).map_or_else(fails, |()| 0)
}

#[unsafe(no_mangle)]
extern "C" fn exos_doorbell_wake(bell: &Doorbell) {
    doorbell::wake(bell);
}

/// Sleeps at bells.
///
/// # Safety
/// There are so many bells, and words of what was seen.
#[unsafe(no_mangle)]
unsafe extern "C" fn exos_doorbell_wait(
    bells: *const &Doorbell,
    seen: *mut u64,
    count: c_int,
    slices: u32,
) -> c_int {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the caller says so.
    let bells = unsafe { core::slice::from_raw_parts(bells, count) };
    // SAFETY: as above.
    let saw = |index: usize| unsafe { seen.add(index).read() };
    let Some(index) = doorbell::wait(bells, saw, slices, || false) else {
        return -1;
    };
    // SAFETY: as above; the index is one of them.
    unsafe { seen.add(index).write(doorbell::rings(bells[index])) };
    index as c_int
}

#[unsafe(no_mangle)]
extern "C" fn exos_lrpc_patience(slices: u32) {
    let _ = entry::set_patience(slices);
}

#[unsafe(no_mangle)]
extern "C" fn exos_environment() -> u32 {
    books::own_number().into()
}

#[unsafe(no_mangle)]
extern "C" fn exos_yield_to(environment: u32) -> c_int {
    let given = u16::try_from(environment).map(entry::yield_to);
    if given == Ok(Ok(())) { 0 } else { -1 }
}

#[unsafe(no_mangle)]
extern "C" fn exos_yield() {
    entry::yield_slice();
    // Who yields all the time is never interrupted by the end of a slice.
    signals::poll();
}
