//! `<exos/schedule.h>`.

use core::arch::global_asm;
use core::ffi::c_int;

use postern_aegis::{Error, entry};
use postern_exos_abi::{address, table::Table};
use postern_exos_schedule::{Client, deadline, round_robin, stride};

use crate::schedule::clients::{self, Standing};

const ESRCH: c_int = 3;
const EAGAIN: c_int = 11;
const EINVAL: c_int = 22;

type Choose = unsafe extern "C" fn(*mut Schedule) -> c_int;
type Charge = unsafe extern "C" fn(*mut Schedule, c_int, u64);

/// `struct exos_policy`.
#[repr(C)]
pub struct Policy {
    choose: Choose,
    charge: Option<Charge>,
}

/// `struct exos_schedule`.
#[repr(C)]
pub struct Schedule {
    policy: *const Policy,
    clients: *mut Client,
    count: c_int,
    last: c_int,
    slices: u64,
    tries: u64,
}

unsafe extern "C" {
    safe fn __errno() -> *mut c_int;
}

fn fails(error: c_int) -> c_int {
    // SAFETY: newlib's own variable, of a process with one thread.
    unsafe { *__errno() = error };
    -1
}

/// The table of processes.
fn table() -> &'static Table {
    // SAFETY: the registry's page, which every process has there; it is atomic words.
    unsafe { &*(address::TABLE as *const Table) }
}

/// How a client stands; who has refused in this try is away.
fn standing_of(client: &Client, tries: u64) -> Standing {
    match clients::standing(table(), client.pid) {
        Standing::Able(_) if client.refused == tries => Standing::Away,
        standing => standing,
    }
}

/// The clients of a schedule.
///
/// # Safety
/// The schedule is the caller's, its clients are so many as it says, and nobody else has them.
unsafe fn clients_of<'a>(schedule: *const Schedule) -> &'a mut [Client] {
    // SAFETY: the caller says so.
    unsafe {
        match (usize::try_from((*schedule).count), (*schedule).clients) {
            (Ok(count), clients) if !clients.is_null() => {
                core::slice::from_raw_parts_mut(clients, count)
            }
            _ => &mut [],
        }
    }
}

/// The same by its place.
///
/// # Safety
/// As [`clients_of`].
unsafe fn standing(schedule: *const Schedule, place: c_int) -> Standing {
    // SAFETY: the caller says so.
    let (clients, tries) = unsafe { (clients_of(schedule), (*schedule).tries) };
    let client = usize::try_from(place)
        .ok()
        .and_then(|place| clients.get(place));
    client.map_or(Standing::Ended, |client| standing_of(client, tries))
}

unsafe extern "C" {
    #[link_name = "exos_scheduler"]
    safe static SCHEDULER: Policy;
}

// A piece that a program replaces by defining its name.
global_asm!(
    ".weak exos_scheduler",
    ".set exos_scheduler, exos_round_robin",
);

/// The policy of a schedule: the program's scheduler, if it names none.
///
/// # Safety
/// The schedule is the caller's.
unsafe fn policy_of(schedule: *const Schedule) -> *const Policy {
    // SAFETY: the caller says so.
    let policy = unsafe { (*schedule).policy };
    if policy.is_null() {
        return &raw const SCHEDULER;
    }
    policy
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn exos_schedule_able(schedule: *const Schedule, place: c_int) -> c_int {
    // SAFETY: the caller says so.
    c_int::from(matches!(
        unsafe { standing(schedule, place) },
        Standing::Able(_)
    ))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn exos_schedule_slice(schedule: *mut Schedule) -> c_int {
    // SAFETY: the caller's schedule, of which nothing is borrowed while its policy's functions run.
    unsafe {
        if schedule.is_null() {
            return fails(EINVAL);
        }
        let policy = policy_of(schedule);
        (*schedule).tries = (*schedule).tries.wrapping_add(1);
        // Each client refuses once; a policy that chooses one again is asked no more.
        for _ in 0..(*schedule).count {
            let place = ((*policy).choose)(schedule);
            let Standing::Able(environment) = standing(schedule, place) else {
                break;
            };
            match clients::give(environment) {
                Ok(slices) => {
                    had(schedule, place, slices);
                    return place;
                }
                Err(_) => clients_of(schedule)[place as usize].refused = (*schedule).tries,
            }
        }
        let alive = |place| standing(schedule, place) != Standing::Ended;
        if !(0..(*schedule).count).any(alive) {
            return fails(ESRCH);
        }
    }
    entry::yield_slice();
    fails(EAGAIN)
}

/// A client has had slices.
///
/// # Safety
/// The schedule is the caller's, and the place one of its clients'.
unsafe fn had(schedule: *mut Schedule, place: c_int, slices: u64) {
    // SAFETY: the caller says so.
    unsafe {
        (*schedule).last = place;
        (*schedule).slices = (*schedule).slices.wrapping_add(slices);
        if let Some(charge) = (*policy_of(schedule)).charge {
            charge(schedule, place, slices);
        }
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn exos_schedule_run(schedule: *mut Schedule, slices: u64) -> c_int {
    for _ in 0..slices {
        // SAFETY: the caller says so, and errno is newlib's own.
        if unsafe { exos_schedule_slice(schedule) < 0 && *__errno() != EAGAIN } {
            return -1;
        }
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn exos_without_slices() -> c_int {
    match clients::without_slices() {
        Ok(()) => 0,
        Err(Error::Again) => fails(EAGAIN),
        Err(_) => fails(EINVAL),
    }
}

/// Asks a policy of the library's, with the place that was last and who is able.
///
/// # Safety
/// The schedule is the caller's, and nothing of it is borrowed.
unsafe fn chosen(
    schedule: *const Schedule,
    choose: impl FnOnce(&mut [Client], usize, &dyn Fn(&Client) -> bool) -> Option<usize>,
) -> c_int {
    // SAFETY: the caller says so.
    let (clients, tries) = unsafe { (clients_of(schedule), (*schedule).tries) };
    // SAFETY: as above.
    let last = usize::try_from(unsafe { (*schedule).last }).unwrap_or(usize::MAX);
    let able = |client: &Client| matches!(standing_of(client, tries), Standing::Able(_));
    choose(clients, last, &able).map_or(-1, |place| place as c_int)
}

/// Tells a policy of the library's what a client had.
///
/// # Safety
/// As [`chosen`].
unsafe fn charged(
    schedule: *mut Schedule,
    place: c_int,
    slices: u64,
    charge: fn(&mut [Client], usize, u64),
) {
    // SAFETY: the caller says so.
    let clients = unsafe { clients_of(schedule) };
    charge(
        clients,
        usize::try_from(place).unwrap_or(usize::MAX),
        slices,
    );
}

#[unsafe(export_name = "exos_round_robin")]
static ROUND_ROBIN: Policy = Policy {
    choose: choose_round_robin,
    charge: Some(charge_round_robin),
};

unsafe extern "C" fn choose_round_robin(schedule: *mut Schedule) -> c_int {
    // SAFETY: the schedule is of who calls a policy's function.
    unsafe {
        chosen(schedule, |clients, last, able| {
            round_robin::choose(clients, last, able)
        })
    }
}

unsafe extern "C" fn charge_round_robin(schedule: *mut Schedule, place: c_int, slices: u64) {
    // SAFETY: as above.
    unsafe { charged(schedule, place, slices, round_robin::charge) }
}

#[unsafe(export_name = "exos_stride")]
static STRIDE: Policy = Policy {
    choose: choose_stride,
    charge: Some(charge_stride),
};

unsafe extern "C" fn choose_stride(schedule: *mut Schedule) -> c_int {
    // SAFETY: the schedule is of who calls a policy's function.
    unsafe { chosen(schedule, |clients, _, able| stride::choose(clients, able)) }
}

unsafe extern "C" fn charge_stride(schedule: *mut Schedule, place: c_int, slices: u64) {
    // SAFETY: as above.
    unsafe { charged(schedule, place, slices, stride::charge) }
}

#[unsafe(export_name = "exos_deadline")]
static DEADLINE: Policy = Policy {
    choose: choose_deadline,
    charge: Some(charge_deadline),
};

unsafe extern "C" fn choose_deadline(schedule: *mut Schedule) -> c_int {
    // SAFETY: the schedule is of who calls a policy's function.
    unsafe { chosen(schedule, |clients, _, able| deadline::choose(clients, able)) }
}

unsafe extern "C" fn charge_deadline(schedule: *mut Schedule, place: c_int, slices: u64) {
    // SAFETY: as above.
    unsafe { charged(schedule, place, slices, deadline::charge) }
}
