//! What a path stands for: files of servers below their mount points, of the archive in `/bin` (and in
//! `/`, as long as nobody serves that), the console in `/dev`. `..` is the folder above the one that
//! the path before it leads to, over links, too.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};

use postern_aegis::entry;
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::protocol::{FOUND, Operation, PATH, SECOND, WORDS, status, walk};
use postern_exos_load::archive;

use crate::files::mounts::{self, Server};
use crate::files::trusted;
use crate::process::{registry, signals};

/// Links that a path goes over at most.
const LINKS: u32 = 16;

/// Slices in which a server is waited for that was started with the machine.
const PATIENCE: u32 = 1024;

/// A path from the root: each name once, none of them `.` or `..`.
#[derive(Clone, Copy)]
pub struct Path {
    bytes: [u8; PATH],
    length: usize,
    /// So many bytes at the beginning are a folder's path without links.
    known: usize,
    /// It must be a folder.
    pub is_folder: bool,
}

impl Path {
    const ROOT: Path = Path {
        bytes: [0; PATH],
        length: 0,
        known: 0,
        is_folder: false,
    };

    /// Its bytes, which begin with `/`.
    pub fn bytes(&self) -> &[u8] {
        match self.length {
            0 => b"/",
            length => self.bytes.get(..length).unwrap_or_default(),
        }
    }

    /// Goes on by a path, of which links are counted.
    fn go(&mut self, path: &[u8], links: &mut u32) -> Result<(), Errno> {
        if path.first() == Some(&b'/') {
            (self.length, self.known) = (0, 0);
        }
        for name in path.split(|byte| *byte == b'/') {
            match name {
                b"" | b"." => {}
                b".." => self.go_up(links)?,
                name => {
                    let end = self.length + 1 + name.len();
                    let to = self.bytes.get_mut(self.length..end);
                    let to = to.ok_or(errno::NAMETOOLONG)?;
                    to[0] = b'/';
                    to[1..].copy_from_slice(name);
                    self.length = end;
                }
            }
        }
        Ok(())
    }

    /// To the folder above.
    fn go_up(&mut self, links: &mut u32) -> Result<(), Errno> {
        if self.known < self.length {
            let must = core::mem::replace(&mut self.is_folder, true);
            match arrive(self, walk::FOLLOW | walk::FOLDER, 0, links)? {
                Target::Archive | Target::Served(..) => self.is_folder = must,
                _ => return Err(errno::NOTDIR),
            }
        }
        let above = self.bytes().iter().rposition(|byte| *byte == b'/');
        self.length = above.unwrap_or(0);
        self.known = self.length;
        Ok(())
    }

    /// A path of this process's.
    pub fn of(path: &[u8]) -> Result<Path, Errno> {
        if path.is_empty() {
            return Err(errno::NOENT);
        }
        let mut whole = current();
        whole.go(path, &mut 0)?;
        whole.is_folder = is_folder(path);
        Ok(whole)
    }
}

/// Whether a path says that it is a folder's.
fn is_folder(path: &[u8]) -> bool {
    let last = path.rsplit(|byte| *byte == b'/').next();
    matches!(last, Some(b"" | b"." | b".."))
}

#[unsafe(link_section = ".bss..lazy")]
static CURRENT: [AtomicU8; PATH] = [const { AtomicU8::new(0) }; PATH];
static LENGTH: AtomicUsize = AtomicUsize::new(0);

/// The folder that this process is in.
pub fn current() -> Path {
    let mut path = Path::ROOT;
    path.length = LENGTH.load(Relaxed).min(PATH);
    path.known = path.length;
    for (to, byte) in path.bytes.iter_mut().zip(&CURRENT).take(path.length) {
        *to = byte.load(Relaxed);
    }
    path
}

/// Permissions that files and folders do not get which this process makes.
static MASK: AtomicU32 = AtomicU32::new(0);

/// Those.
pub fn mask() -> u32 {
    MASK.load(Relaxed)
}

/// Others; what they were.
pub fn set_mask(mask: u32) -> u32 {
    MASK.swap(mask & 0o777, Relaxed)
}

/// Whether that is `/`.
pub fn is_in_root() -> bool {
    LENGTH.load(Relaxed) == 0
}

/// The process is in another folder, which is there, and its path has no links.
pub fn set_current(path: &Path) {
    for (to, byte) in CURRENT.iter().zip(path.bytes).take(path.length) {
        to.store(byte, Relaxed);
    }
    LENGTH.store(path.length, Relaxed);
}

/// The mask, and the folder that a process is started in, as its maker has said it; `/`, if that is none.
pub fn begin(mask: u32, path: Option<&[u8]>) {
    MASK.store(mask, Relaxed);
    let Some(path) = path else {
        return;
    };
    let mut current = Path::ROOT;
    if current.go(path, &mut 0).is_ok() {
        set_current(&current);
    }
}

/// What is at the end of a path.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// The archive.
    Archive,
    /// A file of the archive, by its index.
    File(usize),
    /// The console.
    Console,
    /// What takes everything and has nothing.
    Null,
    /// A server's, and its answer.
    Served(Server, [u64; WORDS]),
}

/// Follows a path by what [`walk`] says, and is where the links led at the end.
pub fn follow(path: &mut Path, flags: u32, mode: u32) -> Result<Target, Errno> {
    arrive(path, flags, mode, &mut 0)
}

fn arrive(path: &mut Path, flags: u32, mode: u32, links: &mut u32) -> Result<Target, Errno> {
    let _busy = signals::hold();
    let mut looks = 0;
    while *links < LINKS {
        let mount = registry::services().mount_of(path.bytes());
        let (place, length, found) = match mount {
            // The archive and the devices are everywhere but where a server has these very names.
            Some((_, 1, _)) | None => match own(path.bytes(), mount.is_none()) {
                Some(Err(errno::NOENT)) if comes(&mut looks) => continue,
                Some(target) => return target,
                None => mount.ok_or(errno::NOENT)?,
            },
            Some(mount) => mount,
        };
        let server = Server {
            place,
            birth: found.birth,
        };
        let rest = path.bytes().get(length..).unwrap_or_default();
        let flags = match path.is_folder {
            true => flags | walk::FOLDER | walk::FOLLOW,
            false => flags,
        };
        let words = [
            Operation::Walk.with(flags),
            0,
            rest.len() as u64,
            mode.into(),
        ];
        let answer = mounts::attach(server).and_then(|()| {
            trusted::copy_in(mounts::area_of(server), rest);
            mounts::call(server, words)
        });
        // It has ended since, or serves nothing after all: what is below it may be another's.
        if answer == Err(errno::STALE) && mounts::is_gone(server) {
            *links += 1;
            continue;
        }
        let answer = answer?;
        let words = core::array::from_fn(|index| mounts::answer(server, index));
        if answer == FOUND {
            return Ok(Target::Served(server, words));
        }
        *links += 1;
        link(path, (server, length), &words, links)?;
    }
    Err(errno::LOOP)
}

/// Whether a server may come yet that was started with the machine; waits a slice for it.
fn comes(looks: &mut u32) -> bool {
    let comes = registry::services().coming.load(Relaxed) != 0 && *looks < PATIENCE;
    if comes {
        *looks += 1;
        entry::yield_slice();
    }
    comes
}

/// A link is in the way: the path goes on where that leads.
fn link(
    path: &mut Path,
    (server, mount): (Server, usize),
    words: &[u64; WORDS],
    links: &mut u32,
) -> Result<(), Errno> {
    let mut target = [0; PATH];
    let length = usize::try_from(words[status::SIZE]).unwrap_or(PATH);
    let target = target.get_mut(..length).ok_or(errno::NAMETOOLONG)?;
    trusted::copy_out(mounts::area_of(server) + SECOND as u64, target);
    let at = usize::try_from(words[status::OFFSET]).map_err(|_| errno::IO)?;
    let at = mount.saturating_add(at);
    let former = *path;
    let rest = former.bytes().get(at..).ok_or(errno::IO)?;
    // Behind the link's name.
    let name = rest.iter().skip(1).position(|byte| *byte == b'/');
    let behind = name.map_or(&[][..], |name| rest.get(name + 2..).unwrap_or_default());
    // The folder that the link is in; the server went over no other link.
    let before = former.bytes().get(..at).unwrap_or_default();
    let above = before.iter().rposition(|byte| *byte != b'/');
    path.length = above.map_or(0, |last| last + 1);
    path.known = path.length;
    path.go(target, links)?;
    path.go(behind, links)?;
    path.is_folder |= behind.is_empty() && is_folder(target);
    Ok(())
}

/// What the library itself has of a path.
fn own(path: &[u8], is_root: bool) -> Option<Result<Target, Errno>> {
    let file = |name: &[u8]| {
        let found = archive::files().iter().position(|entry| entry.is(name));
        found.map(Target::File).ok_or(errno::NOENT)
    };
    match path {
        b"/dev/console" | b"/dev/tty" => return Some(Ok(Target::Console)),
        b"/dev/null" => return Some(Ok(Target::Null)),
        b"/bin" => return Some(Ok(Target::Archive)),
        b"/" if is_root => return Some(Ok(Target::Archive)),
        _ => {}
    }
    if let Some(name) = path.strip_prefix(b"/bin/") {
        return Some(file(name));
    }
    is_root.then(|| file(path.strip_prefix(b"/").unwrap_or(path)))
}

/// Whether a path is of what the library itself has, where nothing can be made.
pub fn is_own(path: &Path) -> bool {
    let mount = registry::services().mount_of(path.bytes());
    mount.is_none() || path.bytes().starts_with(b"/bin/") && mount.is_some_and(|mount| mount.1 == 1)
}
