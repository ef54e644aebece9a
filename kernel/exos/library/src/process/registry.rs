//! Requests to the registry, and the table that it writes.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::calls::Target;
use postern_aegis::{Error, ROOT, books, calls, entry, slices, start};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::mailbox::Mailbox;
use postern_exos_abi::request::{GROUP, Operation, STOP};
use postern_exos_abi::service::{self, Services, what};
use postern_exos_abi::signal;
use postern_exos_abi::table::{Process, Table, state};

use crate::process::trusted;

/// Asks the registry; the words behind the first of its answer.
pub fn ask(operation: Operation, words: [u64; 4]) -> Result<[u64; 4], Errno> {
    let [a, b, c, d] = words;
    loop {
        let told = entry::request(ROOT, [operation.word(), a, b, c, d]);
        if slices::giver() == Some(ROOT) {
            // It answered in a slice of its own, which it needs.
            entry::yield_slice();
        }
        match told {
            Ok([first, a, b, c, d]) => match Errno::of(first) {
                None => return Ok([a, b, c, d]),
                // It is busy with something that it does not interrupt.
                Some(errno::BUSY) => {}
                Some(error) => return Err(error),
            },
            Err(Error::Busy) => {}
            Err(_) => return Err(errno::SRCH),
        }
        entry::yield_slice();
    }
}

/// What was made for a process, with the capability to control it.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    /// Its number.
    pub pid: u32,
    /// Its environment.
    pub target: Target,
}

fn made([pid, environment, control, _]: [u64; 4]) -> Made {
    Made {
        pid: pid as u32,
        target: Target {
            environment: environment as u16,
            control,
        },
    }
}

/// A new process, which stands still and begins at an address. It may have so many pages.
pub fn create(entry: u64, room: u64, name: [u64; 2]) -> Result<Made, Errno> {
    ask(Operation::Create, [entry, room, name[0], name[1]]).map(made)
}

/// Another environment for this process.
pub fn replace(entry: u64, room: u64) -> Result<Made, Errno> {
    ask(Operation::Replace, [entry, room, 0, 0]).map(made)
}

/// This process is what was made for it. Does not come back.
pub fn commit(name: [u64; 2]) -> Result<(), Errno> {
    ask(Operation::Commit, [name[0], name[1], 0, 0]).map(drop)
}

/// Lets a process run that this one has made.
pub fn begin(pid: u32) -> Result<(), Errno> {
    ask(Operation::Start, [pid.into(), 0, 0, 0]).map(drop)
}

/// Lets a process run that this one has made, without a slice of its own.
pub fn begin_without_slice(pid: u32) -> Result<(), Errno> {
    ask(Operation::Start, [pid.into(), 1, 0, 0]).map(drop)
}

/// Ends this process, with a status as `wait` has it.
pub fn end(status: u32) -> ! {
    let _ = ask(Operation::Exit, [status.into(), 0, 0, 0]);
    start::exit()
}

/// A signal for a process; 0: for this one and all below it.
pub fn kill(pid: u32, signal: u32) -> Result<(), Errno> {
    ask(Operation::Kill, [pid.into(), signal.into(), 0, 0]).map(drop)
}

/// Stops a process as the default action of a signal does.
pub fn stop_by(pid: u32, signal: u32) -> Result<(), Errno> {
    let words = [pid.into(), signal::STOP.into(), signal.into(), 0];
    ask(Operation::Kill, words).map(drop)
}

/// A signal for a process group.
pub fn kill_group(group: u32, signal: u32) -> Result<(), Errno> {
    let whom = GROUP | u64::from(group);
    ask(Operation::Kill, [whom, signal.into(), 0, 0]).map(drop)
}

/// Moves this process or a child to a group.
pub fn set_group(pid: u32, group: u32) -> Result<(), Errno> {
    ask(Operation::Group, [pid.into(), group.into(), 0, 0]).map(drop)
}

/// A byte that was typed on the console, or what [`typed`](postern_exos_abi::request::typed) says.
pub fn typed(what: u64) -> Result<u8, Errno> {
    ask(Operation::Typed, [what, 0, 0, 0]).map(|[byte, ..]| byte as u8)
}

/// The group that the console is for.
pub fn set_foreground(group: u32) -> Result<(), Errno> {
    ask(Operation::Group, [0, group.into(), 0, 0]).map(drop)
}

/// How a child ended, which is forgotten then, or was stopped or goes on, which is told once.
pub fn reap(pid: u32) -> Result<u32, Errno> {
    ask(Operation::Reap, [pid.into(), 0, 0, 0]).map(|[status, ..]| status as u32)
}

/// More pages for this process.
pub fn room(pages: u64) -> Result<u32, Errno> {
    ask(Operation::Room, [pages, 0, 0, 0]).map(|[room, ..]| room as u32)
}

/// A limit of this process and those that it makes from now on: processes (0), pages (1), slices (2).
pub fn limit(what: u64, value: u64) -> Result<(), Errno> {
    ask(Operation::Limit, [what, value, 0, 0]).map(drop)
}

/// One slice more for a process below this one, or itself.
pub fn add_slice(pid: u32) -> Result<(), Errno> {
    ask(Operation::Slice, [pid.into(), 1, 0, 0]).map(drop)
}

/// One slice fewer for a process below this one, or itself. It may have freed one before; otherwise one
/// is taken from it, and this comes back when that is done.
pub fn remove_slice(pid: u32) -> Result<(), Errno> {
    ask(Operation::Slice, [pid.into(), -1i64 as u64, 0, 0]).map(drop)
}

/// Gives own pages to the registry to be kept for several processes: the capabilities to read and, if
/// asked, to write them. They stay bound where they are here, and are free when nobody binds them. What
/// is given and not kept is within this process's room: callers have signals held, whose handlers could
/// fill that meanwhile.
pub fn keep(pages: &[u32], writes: bool) -> Result<[u64; 2], Errno> {
    let places = &mailbox().numbers;
    if pages.len() > places.len() {
        return Err(errno::INVAL);
    }
    for (page, place) in pages.iter().zip(places) {
        // It may have been given before, when the request failed that was to follow.
        let owner = books::page(*page).map(|page| page.owner.load(Relaxed));
        if owner != Some(ROOT) {
            postern_aegis::pages::patiently(|| calls::give(*page, ROOT))
                .map_err(|_| errno::NOMEM)?;
        }
        place.store(*page, Relaxed);
    }
    let words = [pages.len() as u64, u64::from(writes), 0, 0];
    ask(Operation::Keep, words).map(|[read, write, ..]| [read, write])
}

/// Offers a service to all others, or says other words of it. Who offers `/` is told how to reach the
/// disk: the range of blocks (0: there is no disk), and the capabilities to read and to write it.
pub fn serve(name: &[u8], words: [u64; 4]) -> Result<[u64; 3], Errno> {
    let _busy = super::signals::hold();
    name_service(name, what::OFFER)?;
    ask(Operation::Serve, words).map(|[range, read, write, _]| [range, read, write])
}

/// Takes a service back.
pub fn serve_no_more(name: &[u8]) -> Result<(), Errno> {
    let _busy = super::signals::hold();
    name_service(name, what::TAKE_BACK)?;
    ask(Operation::Serve, [0; 4]).map(drop)
}

fn name_service(name: &[u8], what: u32) -> Result<(), Errno> {
    let numbers = service::numbers(name).ok_or(errno::INVAL)?;
    let places = &mailbox().numbers;
    for (place, number) in places.iter().zip(numbers.into_iter().chain([what])) {
        place.store(number, Relaxed);
    }
    Ok(())
}

/// Blocks of the disk for this process alone, until it ends: the range's number.
pub fn blocks(count: u64) -> Result<usize, Errno> {
    ask(Operation::Blocks, [count, 0, 0, 0]).map(|[range, ..]| range as usize)
}

/// Parts of devices that this process may have: at least so many from now on.
pub fn holdings(count: u64) -> Result<u32, Errno> {
    ask(Operation::Holdings, [count, 0, 0, 0]).map(|[count, ..]| count as u32)
}

/// Stops the machine with a status. Comes back only if this process may not.
pub fn stop(status: u64) -> Result<(), Errno> {
    ask(Operation::Stop, [STOP, status, 0, 0]).map(drop)
}

/// The page of services.
pub fn services() -> &'static Services {
    trusted::services()
}

/// Has pages found that were kept and are bound no more.
pub fn look() {
    let _ = ask(Operation::Room, [0; 4]);
}

/// The page that this process shares with the registry.
pub fn mailbox() -> &'static Mailbox {
    trusted::mailbox()
}

/// The table of processes.
pub fn table() -> &'static Table {
    trusted::table()
}

/// A process's record.
pub fn find(pid: u32) -> Option<&'static Process> {
    let slot = pid.checked_sub(1)? as usize % postern_exos_abi::table::PROCESSES;
    let record = table().processes.get(slot)?;
    let there = record.pid.load(Relaxed) == pid && record.state.load(Relaxed) != state::FREE;
    there.then_some(record)
}

/// What a refused call of the kernel means.
pub fn refusal(error: Error) -> Errno {
    match error {
        Error::Quota | Error::Exhausted => errno::NOMEM,
        Error::Argument => errno::INVAL,
        Error::Denied => errno::PERM,
        Error::NoEnvironment => errno::SRCH,
        Error::Kind => errno::NOEXEC,
        _ => errno::AGAIN,
    }
}
