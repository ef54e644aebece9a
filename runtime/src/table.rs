//! The protection table: which domain may do what with which range of offsets.
//!
//! The kernel knows the protections of every window. What it does not know are names: of domains
//! and areas. Those the runtime keeps in a memory file with records of fixed size, which other
//! processes of the same user find among its descriptors; so a look at a running process asks
//! nothing of it. Invariant: the runtime writes the file and never reads what matters to it from
//! there.
//!
//! | at | what |
//! |---|---|
//! | 0 | `postern\0`; u32 version; u32 process; u64 base of the arena, or 0; u32 domain records and u32 area records ever in use |
//! | [`DOMAINS`] | for each control block: u64 not 0 while in use; u64 base; name; image's name |
//! | [`AREAS`] | u32 first offset, 0 while not in use; u32 end; name |
//!
//! A name is its length in a byte and as much of it as there is room for.

mod read;
mod show;

pub use read::{Cell, Column, MemoryTable, Row, TableDomain, TableError, memory_table};

use postern_gates::control::MAX_DOMAINS;
use postern_gates::machine::{self, Published};
use postern_gates::map::{Mapping, Prot};
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

const MAGIC: [u8; 8] = *b"postern\0";
const VERSION: u32 = 1;
/// Name of the memory file.
const FILE: &std::ffi::CStr = c"postern-table";

const HEADER: usize = 32;
const DOMAINS: usize = 4096;
const DOMAIN: usize = 128;
/// Room for a domain's name with its length, and for its image's.
const DOMAIN_NAMES: [std::ops::Range<usize>; 2] = [16..80, 80..128];
const AREAS: usize = DOMAINS + MAX_DOMAINS * DOMAIN;
const AREA: usize = 96;
const AREA_NAME: std::ops::Range<usize> = 8..96;
const MAX_AREAS: usize = 65_536;
const BYTES: usize = AREAS + MAX_AREAS * AREA;

/// Where the file is mapped, once there is one.
static MAPPED: OnceLock<Mapping> = OnceLock::new();
/// Whether what is mapped there is this process's.
static IN_USE: AtomicBool = AtomicBool::new(false);
/// The descriptor by which others find it.
static PUBLISHED: Mutex<Option<Published>> = Mutex::new(None);
/// The window of the host's views.
static ARENA: AtomicU64 = AtomicU64::new(0);
/// Domain records ever in use. Written under the lock of the domains.
static DOMAINS_USED: AtomicU32 = AtomicU32::new(0);

/// Area records: how many were ever in use, and those that are free again.
#[derive(Default)]
pub(crate) struct AreaRecords {
    used: usize,
    free: Vec<usize>,
}

static AREA_RECORDS: Mutex<AreaRecords> = Mutex::new(AreaRecords {
    used: 0,
    free: Vec::new(),
});

/// The free area records. Taken under the arena's lock.
pub(crate) fn area_records() -> MutexGuard<'static, AreaRecords> {
    AREA_RECORDS.lock().unwrap_or_else(|e| e.into_inner())
}

/// Makes the file. Without it (no memory, no descriptors) everything works but the view from
/// outside. Called once, at start.
pub(crate) fn start() {
    match make() {
        Ok((mapped, file)) => {
            publish(file);
            if MAPPED.set(mapped).is_ok() {
                IN_USE.store(true, Ordering::Release);
            }
            write_header();
        }
        Err(error) => tracing::warn!(%error, "`postern inspect --live` will not find this process"),
    }
}

/// Leaves the file's descriptor open for other processes to find, in place of the one before. If
/// that fails nobody finds it.
fn publish(file: File) {
    // Held by whoever starts the runtime, or by the only thread of a forked child that finds it
    // started.
    let mut published = PUBLISHED.lock().unwrap_or_else(|e| e.into_inner());
    let done = match &mut *published {
        Some(published) => published.replace(file),
        None => Published::new(file).map(|new| *published = Some(new)),
    };
    if let Err(error) = done {
        tracing::warn!(%error, "`postern inspect --live` will not find this process");
    }
}

/// A file that can hold all records, mapped.
fn make() -> Result<(Mapping, File), Box<dyn std::error::Error>> {
    let file = new_file()?;
    let mapped = Mapping::reserve(BYTES)?;
    mapped.share(file.as_fd(), Prot::ReadWrite)?;
    Ok((mapped, file))
}

fn new_file() -> std::io::Result<File> {
    // A process with such a limit would be ended, not refused.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    if limit.is_some_and(|limit| limit < BYTES as u64) {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    let file = machine::memory_file(FILE, false)?;
    machine::size(&file, BYTES as u64)?;
    machine::seal_shrink(&file)?;
    Ok(file)
}

fn put(at: usize, bytes: &[u8]) {
    if IN_USE.load(Ordering::Acquire)
        && let Some(mapped) = MAPPED.get()
    {
        // The file cannot shrink; and a record that is not written is only not seen.
        let _ = mapped.write(at, bytes);
    }
}

fn write_header() {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&std::process::id().to_le_bytes());
    header[16..24].copy_from_slice(&ARENA.load(Ordering::Relaxed).to_le_bytes());
    header[24..28].copy_from_slice(&DOMAINS_USED.load(Ordering::Relaxed).to_le_bytes());
    header[28..].copy_from_slice(&(area_records().used as u32).to_le_bytes());
    put(0, &header);
}

/// Stores as much of a name as there is room for, without control characters, which would garble a
/// terminal.
fn put_name(room: &mut [u8], name: &str) {
    let (mut used, mut letter) = (0, [0; 4]);
    for c in name.chars() {
        let shown = if c.is_control() { '\u{fffd}' } else { c };
        let bytes = shown.encode_utf8(&mut letter).as_bytes();
        let Some(place) = room.get_mut(1 + used..1 + used + bytes.len()) else {
            break;
        };
        place.copy_from_slice(bytes);
        used += bytes.len();
    }
    room[0] = used as u8;
}

/// Notes a domain, or where it lies now. The caller holds the lock of the domains, or for one that
/// is noted already, that of moves.
pub(crate) fn note_domain(number: u32, base: u64, name: &str, image: &str) {
    let mut record = [0; DOMAIN];
    record[8..16].copy_from_slice(&base.to_le_bytes());
    put_name(&mut record[DOMAIN_NAMES[0].clone()], name);
    put_name(&mut record[DOMAIN_NAMES[1].clone()], image);
    let at = DOMAINS + number as usize * DOMAIN;
    // Whoever reads in between finds it not in use.
    put(at, &record);
    put(at, &1u64.to_le_bytes());
    if DOMAINS_USED.fetch_max(number + 1, Ordering::Relaxed) <= number {
        write_header();
    }
}

/// The caller holds the lock of the domains.
pub(crate) fn forget_domain(number: usize) {
    put(DOMAINS + number * DOMAIN, &0u64.to_le_bytes());
}

/// Notes where the host's views lie. The caller holds the arena's lock.
pub(crate) fn set_arena(base: u64) {
    ARENA.store(base, Ordering::Relaxed);
    write_header();
}

/// Notes an area; the number of its record, if there is room. The caller holds the arena's lock.
pub(crate) fn note_area(start: u32, end: u32, name: &str) -> Option<usize> {
    let mut records = area_records();
    let number = match records.free.pop() {
        Some(number) => number,
        None if records.used < MAX_AREAS => {
            records.used += 1;
            records.used - 1
        }
        None => return None,
    };
    drop(records);
    put_area(number, start, end, name);
    write_header();
    Some(number)
}

/// Writes the record of an area.
pub(crate) fn put_area(number: usize, start: u32, end: u32, name: &str) {
    let mut record = [0; AREA];
    record[4..8].copy_from_slice(&end.to_le_bytes());
    put_name(&mut record[AREA_NAME], name);
    let at = AREAS + number * AREA;
    put(at, &record);
    put(at, &start.to_le_bytes());
}

/// The caller holds the arena's lock.
pub(crate) fn forget_area(record: Option<usize>) {
    if let Some(number) = record {
        put(AREAS + number * AREA, &0u32.to_le_bytes());
        area_records().free.push(number);
    }
}

/// In a forked child: a file of its own, for the parent goes on writing the other. True if the
/// caller is to put all records there. No other thread exists.
pub(crate) fn begin_anew() -> bool {
    let was_in_use = IN_USE.swap(false, Ordering::SeqCst);
    let Some(mapped) = MAPPED.get().filter(|_| was_in_use) else {
        return false;
    };
    let Ok(file) = new_file() else { return false };
    if mapped.share(file.as_fd(), Prot::ReadWrite).is_err() {
        return false;
    }
    publish(file);
    IN_USE.store(true, Ordering::Release);
    write_header();
    true
}
