//! Numbers, and what they stand for.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use postern_aegis::Error;
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::Kind;
use postern_exos_abi::protocol::{status, walk};
use postern_exos_abi::signal;
use postern_exos_abi::start::{DESCRIPTORS, Handed, Head};
use postern_exos_load::archive;
use postern_exos_load::space::Space;

use crate::files::paths::{self, Path, Target};
use crate::files::served::{self, File};
use crate::files::{console, folders, mounts, offsets};
use crate::ipc::pipe::{self, End};
use crate::net::sockets;
use crate::process::signals;

/// What a descriptor is of.
pub mod kind {
    /// Nothing.
    pub const NONE: u32 = 0;
    /// The console.
    pub const CONSOLE: u32 = 1;
    /// A file of the archive: its index, and where its offset is.
    pub const FILE: u32 = 2;
    /// An end of a pipe.
    pub const PIPE: u32 = 3;
    /// The archive itself, to be listed.
    pub const FOLDER: u32 = 4;
    /// A file or folder of a server ([`File`](crate::files::served::File)).
    pub const SERVED: u32 = 5;
    /// What takes everything and has nothing.
    pub const NULL: u32 = 6;
    /// A socket, which no other process has.
    pub const SOCKET: u32 = 8;
}

/// Flags, as C has them.
pub mod flag {
    /// To be written only; 2 both.
    pub const WRITES: u64 = 1;
    /// Bits of how it is opened.
    pub const ACCESS: u64 = 3;
    /// Is to be made if it is not there.
    pub const CREATE: u64 = 0o100;
    /// Must not be there.
    pub const EXCLUSIVE: u64 = 0o200;
    /// Is cut to nothing.
    pub const TRUNCATE: u64 = 0o1000;
    /// Is written at its end.
    pub const APPEND: u64 = 0o2000;
    /// Does not wait.
    pub const NONBLOCK: u64 = 0o4000;
    /// A folder only.
    pub const FOLDER: u64 = 0o200_000;
    /// A link at the path's end is not followed.
    pub const NOFOLLOW: u64 = 0o400_000;
    /// What is written is on the disk for good before the call comes back.
    pub const SYNCHRONOUS: u64 = 0o10_000;
    /// Is not handed on.
    pub const CLOSES: u64 = 0o2_000_000;
}

/// A descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// [`kind`].
    pub kind: u32,
    /// [`flag`].
    pub flags: u64,
    /// The kind's own.
    pub words: [u64; 2],
}

struct Place {
    kind: AtomicU32,
    flags: AtomicU64,
    words: [AtomicU64; 2],
}

static PLACES: [Place; DESCRIPTORS] = [const {
    Place {
        kind: AtomicU32::new(kind::NONE),
        flags: AtomicU64::new(0),
        words: [const { AtomicU64::new(0) }; 2],
    }
}; DESCRIPTORS];

/// The descriptor of a number.
pub fn get(number: i32) -> Result<Descriptor, Errno> {
    let place = usize::try_from(number).ok().and_then(|at| PLACES.get(at));
    let place = place.ok_or(errno::BADF)?;
    let kind = place.kind.load(Relaxed);
    if kind == kind::NONE {
        return Err(errno::BADF);
    }
    Ok(Descriptor {
        kind,
        flags: place.flags.load(Relaxed),
        words: [0, 1].map(|word| place.words[word].load(Relaxed)),
    })
}

fn put(number: usize, descriptor: Descriptor) {
    if let Some(place) = PLACES.get(number) {
        for (to, word) in place.words.iter().zip(descriptor.words) {
            to.store(word, Relaxed);
        }
        place.flags.store(descriptor.flags, Relaxed);
        place.kind.store(descriptor.kind, Relaxed);
    }
}

/// Sets a descriptor's flags that can be changed.
pub fn set_flags(number: i32, flags: u64) -> Result<(), Errno> {
    let now = get(number)?;
    put(number as usize, Descriptor { flags, ..now });
    Ok(())
}

/// The lowest free number from one on, for a descriptor.
pub fn add(from: i32, descriptor: Descriptor) -> Result<i32, Errno> {
    let from = usize::try_from(from).map_err(|_| errno::INVAL)?;
    let free = |at: &usize| PLACES[*at].kind.load(Relaxed) == kind::NONE;
    let at = (from..DESCRIPTORS).find(free).ok_or(errno::MFILE)?;
    put(at, descriptor);
    Ok(at as i32)
}

/// The descriptors that a process was started with; the console, if nobody handed any on.
pub fn open(head: &Head, handed: impl Iterator<Item = Handed>) {
    offsets::open(head);
    for handed in handed {
        let [first, second, ..] = handed.words;
        let mut words = [first, second];
        if handed.kind == kind::PIPE {
            let Some(end) = End::taken(handed.words) else {
                continue;
            };
            words = end.words();
        }
        if handed.kind == kind::SERVED {
            let _ = mounts::opened(mounts::Server::of(second), first);
        }
        let descriptor = Descriptor {
            kind: handed.kind,
            flags: handed.flags,
            words,
        };
        put(handed.number as usize, descriptor);
    }
    if head.parent == 0 {
        let console = Descriptor {
            kind: kind::CONSOLE,
            flags: 2,
            words: [0; 2],
        };
        (0..3).for_each(|number| put(number, console));
    }
}

/// What is handed on to another program.
pub fn to_hand_on(space: &Space) -> Result<[Handed; DESCRIPTORS], Error> {
    let mut all = [Handed::default(); DESCRIPTORS];
    for (number, handed) in all.iter_mut().enumerate() {
        let Ok(descriptor) = get(number as i32) else {
            continue;
        };
        if descriptor.flags & flag::CLOSES != 0 || descriptor.kind == kind::SOCKET {
            continue;
        }
        let [first, second] = descriptor.words;
        let words = match end(descriptor) {
            Some(end) => end.pass(space.target)?,
            None => [first, second, 0, 0],
        };
        *handed = Handed {
            number: number as u32,
            kind: descriptor.kind,
            flags: descriptor.flags,
            words,
        };
    }
    Ok(all)
}

/// An error, if a descriptor is not of the console.
pub fn console(number: i32) -> Result<(), Errno> {
    match get(number)?.kind {
        kind::CONSOLE => Ok(()),
        _ => Err(errno::NOTTY),
    }
}

/// The file of a server that a descriptor is of.
pub fn served(descriptor: Descriptor) -> Option<File> {
    (descriptor.kind == kind::SERVED).then(|| File::of(descriptor.words))
}

/// The pipe's end that a descriptor is.
pub fn end(descriptor: Descriptor) -> Option<End> {
    (descriptor.kind == kind::PIPE).then(|| End::of(descriptor.words))
}

/// What a walk does for flags of C's.
fn walk_of(flags: u64) -> u32 {
    let pairs = [
        (flag::CREATE, walk::CREATE),
        (flag::CREATE | flag::EXCLUSIVE, walk::EXCLUSIVE),
        (flag::TRUNCATE, walk::TRUNCATE),
        (flag::FOLDER, walk::FOLDER),
    ];
    let set = pairs.into_iter().filter(|(all, _)| flags & all == *all);
    let writes = match flags & flag::ACCESS {
        0 => 0,
        _ => walk::WRITES,
    };
    let follows = match flags & flag::NOFOLLOW {
        0 => walk::FOLLOW,
        _ => 0,
    };
    set.fold(walk::OPEN | follows | writes, |all, (_, bit)| all | bit)
}

/// Opens what a path stands for.
pub fn open_file(name: &[u8], flags: u64, mode: u32) -> Result<i32, Errno> {
    let _hold = signals::hold();
    let writes = flags & flag::ACCESS != 0;
    let of = |kind, words| Descriptor { kind, flags, words };
    let mut path = Path::of(name)?;
    let target = paths::follow(&mut path, walk_of(flags), mode & !paths::mask());
    match target {
        Ok(Target::Console) => return add(0, of(kind::CONSOLE, [0; 2])),
        Ok(Target::Null) => return add(0, of(kind::NULL, [0; 2])),
        // What the library has itself nobody writes.
        Ok(Target::Archive) if writes => return Err(errno::ISDIR),
        Ok(Target::File(_)) if writes => return Err(errno::ROFS),
        Ok(Target::File(_)) if flags & flag::FOLDER != 0 => return Err(errno::NOTDIR),
        Err(errno::NOENT) if flags & flag::CREATE != 0 && paths::is_own(&path) => {
            return Err(errno::ROFS);
        }
        _ => {}
    }
    match target? {
        Target::Archive => {
            let words = [0, place()?];
            folders::opened(words, &path);
            add(0, of(kind::FOLDER, words))
        }
        Target::File(index) => add(0, of(kind::FILE, [index as u64, place()?])),
        Target::Console | Target::Null => Err(errno::IO),
        Target::Served(server, found) => {
            let words = served::open(server, &found, place()?)?;
            if found[status::KIND] == Kind::Folder as u64 {
                folders::opened(words, &path);
            }
            let added = add(0, of(kind::SERVED, words));
            added.inspect_err(|_| File::of(words).close())
        }
    }
}

fn place() -> Result<u64, Errno> {
    offsets::take(places()).map_err(|_| errno::NFILE)
}

/// Places of offsets that are in use.
pub fn places() -> impl Iterator<Item = u64> + Clone {
    PLACES.iter().filter_map(|place| {
        let has = matches!(
            place.kind.load(Relaxed),
            kind::FILE | kind::FOLDER | kind::SERVED
        );
        has.then(|| place.words[1].load(Relaxed) & 0xffff)
    })
}

/// A pipe: the descriptor to read, and the one to write.
pub fn pipe(flags: u64) -> Result<[i32; 2], Errno> {
    let _hold = signals::hold();
    let [reads, writes] = pipe::create().map_err(|_| errno::NFILE)?;
    let of = |end: End, more: u64| Descriptor {
        kind: kind::PIPE,
        flags: flags | more,
        words: end.words(),
    };
    let first = add(0, of(reads, 0));
    let second = first.and_then(|_| add(0, of(writes, flag::WRITES)));
    match (first, second) {
        (Ok(first), Ok(second)) => Ok([first, second]),
        (first, _) => {
            reads.close();
            writes.close();
            if let Ok(first) = first {
                put(first as usize, NONE);
            }
            Err(errno::MFILE)
        }
    }
}

const NONE: Descriptor = Descriptor {
    kind: kind::NONE,
    flags: 0,
    words: [0; 2],
};

/// Closes a descriptor.
pub fn close(number: i32) -> Result<(), Errno> {
    let _hold = signals::hold();
    let descriptor = get(number)?;
    put(number as usize, NONE);
    if let Some(end) = end(descriptor) {
        end.close();
    }
    if descriptor.kind == kind::SOCKET {
        sockets::closed(descriptor);
    }
    if let Some(file) = served(descriptor) {
        file.close();
    }
    Ok(())
}

/// Another number, from one on, for what a descriptor stands for.
pub fn duplicate(number: i32, from: i32) -> Result<i32, Errno> {
    let _hold = signals::hold();
    let descriptor = get(number)?;
    let again = add(from, again(descriptor))?;
    one_more(descriptor);
    Ok(again)
}

/// One number more is of the same.
fn one_more(descriptor: Descriptor) {
    if let Some(end) = end(descriptor) {
        end.again();
    }
    if let Some(file) = served(descriptor) {
        file.again();
    }
}

fn again(descriptor: Descriptor) -> Descriptor {
    Descriptor {
        flags: descriptor.flags & !flag::CLOSES,
        ..descriptor
    }
}

/// The same at this number, which is closed before.
pub fn duplicate_to(number: i32, to: i32) -> Result<i32, Errno> {
    let _hold = signals::hold();
    let descriptor = get(number)?;
    let at = usize::try_from(to).map_err(|_| errno::BADF)?;
    if at >= DESCRIPTORS {
        return Err(errno::BADF);
    }
    if number != to {
        let _ = close(to);
        put(at, again(descriptor));
        one_more(descriptor);
    }
    Ok(to)
}

fn file_of(descriptor: Descriptor) -> Result<archive::File, Errno> {
    archive::nth(descriptor.words[0] as usize).ok_or(errno::IO)
}

/// Why a call is not to wait.
fn stops(descriptor: Descriptor) -> Option<i32> {
    if descriptor.flags & flag::NONBLOCK != 0 {
        return Some(errno::AGAIN.0);
    }
    signals::poll().then_some(errno::INTR.0)
}

/// Reads; 0 at the end.
pub fn read(number: i32, to: &mut [u8]) -> Result<usize, Errno> {
    let descriptor = get(number)?;
    match descriptor.kind {
        kind::CONSOLE => console::read(to),
        kind::NULL => Ok(0),
        kind::FILE => {
            let _hold = signals::hold();
            let file = file_of(descriptor)?;
            let offset = offsets::word(descriptor.words[1]);
            let at = offset.load(Relaxed);
            let done = file.read(at, to).map_err(|_| errno::IO)?;
            offset.store(at + done as u64, Relaxed);
            Ok(done)
        }
        kind::PIPE => {
            let end = End::of(descriptor.words);
            end.read(to.as_mut_ptr(), to.len(), || stops(descriptor))
                .map_err(Errno)
        }
        kind::SOCKET => sockets::receive(number, to, 0).map(|received| received.count),
        kind::SERVED if descriptor.flags & flag::ACCESS == flag::WRITES => Err(errno::BADF),
        kind::SERVED => File::of(descriptor.words).read(to),
        _ => Err(errno::ISDIR),
    }
}

/// Writes.
pub fn write(number: i32, bytes: &[u8]) -> Result<usize, Errno> {
    let descriptor = get(number)?;
    match descriptor.kind {
        kind::CONSOLE => console::write(bytes),
        kind::NULL => Ok(bytes.len()),
        kind::PIPE => {
            let end = End::of(descriptor.words);
            let done = end.write(bytes.as_ptr(), bytes.len(), || stops(descriptor));
            if done == Err(errno::PIPE.0) {
                signals::raise(signal::PIPE)?;
            }
            done.map_err(Errno)
        }
        kind::SOCKET => sockets::send(number, bytes, 0, None),
        kind::SERVED if descriptor.flags & flag::ACCESS != 0 => {
            let file = File::of(descriptor.words);
            let done = file.write(bytes, descriptor.flags & flag::APPEND != 0)?;
            synchronise(descriptor, file).map(|()| done)
        }
        _ => Err(errno::BADF),
    }
}

fn synchronise(descriptor: Descriptor, file: File) -> Result<(), Errno> {
    match descriptor.flags & flag::SYNCHRONOUS {
        0 => Ok(()),
        _ => file.synchronise(),
    }
}

/// Reads at an offset, and leaves the descriptor's.
pub fn read_at(number: i32, to: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let descriptor = get(number)?;
    match descriptor.kind {
        kind::FILE => {
            let _hold = signals::hold();
            file_of(descriptor)?.read(offset, to).map_err(|_| errno::IO)
        }
        kind::SERVED if descriptor.flags & flag::ACCESS == flag::WRITES => Err(errno::BADF),
        kind::SERVED => File::of(descriptor.words).read_at(offset, to),
        kind::FOLDER => Err(errno::ISDIR),
        _ => Err(errno::SPIPE),
    }
}

/// Writes at an offset, and leaves the descriptor's.
pub fn write_at(number: i32, bytes: &[u8], offset: u64) -> Result<usize, Errno> {
    let descriptor = get(number)?;
    match descriptor.kind {
        kind::SERVED if descriptor.flags & flag::ACCESS != 0 => {
            let file = File::of(descriptor.words);
            let (done, _) = file.write_at(offset, bytes, false)?;
            synchronise(descriptor, file).map(|()| done)
        }
        kind::SERVED | kind::FILE | kind::FOLDER => Err(errno::BADF),
        _ => Err(errno::SPIPE),
    }
}

/// Another offset: from the beginning (0), from where it is (1), from the end (2).
pub fn seek(number: i32, offset: i64, from: i32) -> Result<u64, Errno> {
    let descriptor = get(number)?;
    let (length, place) = match descriptor.kind {
        kind::FILE => (file_of(descriptor)?.length, descriptor.words[1]),
        kind::FOLDER => (archive::files().len() as u64, descriptor.words[1]),
        kind::SERVED => {
            let file = File::of(descriptor.words);
            let length = match from {
                2 => file.status()?[status::SIZE],
                _ => 0,
            };
            (length, file.place())
        }
        _ => return Err(errno::SPIPE),
    };
    let word = offsets::word(place);
    let base = match from {
        0 => 0,
        1 => word.load(Relaxed),
        2 => length,
        _ => return Err(errno::INVAL),
    };
    let to = base.checked_add_signed(offset).ok_or(errno::INVAL)?;
    word.store(to, Relaxed);
    Ok(to)
}
