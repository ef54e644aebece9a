//! Files on blocks of the disk, served to all: those of `/`, or on blocks that this process has for
//! itself.
//!
//! What was changed is brought to the disk within a second or two, and at once when a client asks
//! for it. A disk that is damaged is served to be read, as far as that goes.

use postern_aegis::println;
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::Files;
use postern_exos_abi::protocol::VERSION;
use postern_exos_fs::{Block, Error, FRAMES, FileSystem, Format, format};

use crate::disk::driver::{Driver, Range};
use crate::disk::frames::{self, Frames};
use crate::disk::policy::Choice;
use crate::files::server;
use crate::process::registry;

/// The name under which the disk is served.
const ROOT: &[u8] = b"/";

/// Frames of a cache, if nobody says how many: at most so many, and fewer where memory is short.
const MOST: usize = 4096;

/// When a new file system is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Make {
    /// Never.
    No,
    /// If there is none.
    Missing,
    /// In any case: what there was is lost.
    Anew,
}

/// What is to be served.
#[derive(Debug)]
pub struct How<'a> {
    /// The mount point. `/` has the disk's own blocks.
    pub name: &'a [u8],
    /// Elsewhere: so many blocks of this process's.
    pub blocks: u64,
    /// Frames of the cache; 0: as many as seem right.
    pub frames: usize,
    /// Whether the blocks become a new file system.
    pub make: Make,
    /// Which frame is given up.
    pub choice: Choice,
}

type Mounted<'d> = FileSystem<'d, &'d mut Driver, Choice, Frames>;

/// Serves files until somebody unmounts them: they are on the disk then.
pub fn serve(how: How<'_>) -> Result<(), Errno> {
    let is_root = how.name == ROOT;
    let range = match is_root {
        true => root(),
        false => registry::blocks(how.blocks).map(|number| Range {
            number,
            read: 0,
            write: 0,
        }),
    }?;
    let served = serve_on(how, range);
    if is_root && served.is_err() {
        let _ = registry::serve_no_more(ROOT);
    }
    served
}

/// The disk's range. Whoever comes for files before they are served waits.
fn root() -> Result<Range, Errno> {
    // Nothing is believed to stay as it is until the server says so.
    let [number, read, write] = registry::serve(ROOT, [0, 0, VERSION, 1])?;
    if number == 0 {
        let _ = registry::serve_no_more(ROOT);
        return Err(errno::NODEV);
    }
    Ok(Range {
        number: number as usize,
        read,
        write,
    })
}

fn serve_on(how: How<'_>, range: Range) -> Result<(), Errno> {
    let count = match how.frames {
        0 => frames::some(FRAMES, MOST),
        count => count.max(FRAMES),
    };
    let (mut driver, frames) = (Driver::new(range)?, frames::take(count)?);
    match mount(&mut driver, frames, how.make, how.choice) {
        Ok(mut files) => {
            server::serve(how.name, &mut files, false, quiet)?;
            files.synchronise(None)
        }
        Err(error) => {
            println!("fsd: {error}");
            Err(error.errno())
        }
    }
}

fn mount<'d>(
    driver: &'d mut Driver,
    frames: &'d mut [Block],
    make: Make,
    choice: Choice,
) -> Result<Mounted<'d>, Error> {
    let wanted = match make {
        Make::No => false,
        Make::Anew => true,
        Make::Missing => matches!(postern_exos_fs::is_there(driver), Err(Error::NoFileSystem)),
    };
    if wanted {
        let now = frames::now();
        let how = Format {
            id: now,
            now,
            ..Format::default()
        };
        format(driver, &how)?;
    }
    let (files, damage) = FileSystem::mount_or_read(driver, frames, choice, Frames)?;
    if let Some(damage) = damage {
        println!("fsd: {damage}");
        println!("fsd: its files can be read, and not be changed");
    }
    Ok(files)
}

/// Some time after a request, or now and then between many.
fn quiet(files: &mut Mounted<'_>) {
    // What cannot be changed has nothing to be brought to the disk.
    let _ = files.synchronise(None);
    if let Some(error) = files.take_error() {
        println!("fsd: {error}");
    }
}
