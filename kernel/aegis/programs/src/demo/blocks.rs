//! The disk's scene.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::Call;
use postern_aegis::abi::call::{NAME_EVERYBODY, NAME_NOBODY, RIGHT_READ};
use postern_aegis::abi::device::Request;
use postern_aegis::abi::records::DISK;
use postern_aegis::disk::{self, Disk, flush, read, write};
use postern_aegis::load::Child;
use postern_aegis::{Error, Mapping, books, calls, mailbox, memory, pages, println};
use postern_aegis_programs::{Role, words};

use crate::scenes::{failed, player};
use crate::{Shown, wait};

/// Where a neighbour's mailbox has its request.
const AT: usize = 64;
/// The name whose capability lets read.
const NAME: u32 = 9;

/// Has a neighbour ask the disk; why it was not asked.
fn asks(neighbour: &Child, request: &Request) -> Option<Error> {
    for (index, word) in request.words().into_iter().enumerate() {
        neighbour.mailbox.set(AT + index, word);
    }
    let arguments = [mailbox::ADDRESS + 8 * AT as u64, 1];
    for (index, argument) in arguments.into_iter().enumerate() {
        neighbour.mailbox.set(words::ARGUMENT + index, argument);
    }
    neighbour.mailbox.set(words::ASKED, Call::Blocks as u64 + 1);
    wait(|| neighbour.mailbox.get(words::ASKED) == 0);
    let requests = &books::environment(neighbour.number).requests;
    wait(|| requests.load(Relaxed) == 0);
    Error::of(neighbour.mailbox.get(words::RESULT) as i64)
}

pub fn blocks() -> Shown {
    if disk::blocks() == 0 {
        println!("   this machine has no disk");
        return Ok(true);
    }
    const BLOCK: u64 = 5;
    const WORD: u64 = 0x6b73_6964;
    let mut disk = Disk::new().map_err(failed("a ring"))?;
    let at = memory::reserve(1);
    let page = memory::map_fresh(at, Mapping::WRITE).map_err(failed("a page"))?;
    memory::write(at, WORD);
    disk.make(&write(DISK, BLOCK, page))
        .map_err(failed("writing"))?;
    disk.make(&flush(DISK)).map_err(failed("flushing"))?;
    println!(
        "   environment 1 has {} blocks, and has written {WORD:#x} to block {BLOCK}, for good",
        disk::blocks()
    );
    // The block is a range of its own, which others read by a capability.
    let range = calls::split(DISK, BLOCK).map_err(failed("cutting"))?;
    let behind = calls::split(range, 1).map_err(failed("cutting"))?;
    calls::rename_holding(range, NAME, NAME_NOBODY).map_err(failed("a name"))?;
    let word = calls::capability(NAME, RIGHT_READ, 0).map_err(failed("a capability"))?;
    calls::rename(page, NAME_NOBODY, NAME_EVERYBODY).map_err(failed("a page for all"))?;
    let mut right = true;
    for neighbour in [player(Role::Obey, 0)?, player(Role::Obey, 0)?] {
        memory::write(at, 0);
        let by = |request: Request| Request {
            authority: word,
            ..request
        };
        let without = asks(&neighbour, &read(range, 0, page));
        let with = asks(&neighbour, &by(read(range, 0, page)));
        let found = memory::read(at);
        let writes = asks(&neighbour, &by(write(range, 0, page)));
        println!(
            "   environment {}: reads without a capability: {without:?}; with it: {found:#x}; \
             writes with it: {writes:?}",
            neighbour.number
        );
        let denied = Some(Error::Denied);
        right &= without == denied && with.is_none() && found == WORD && writes == denied;
        neighbour.end();
    }
    for range in [range, behind] {
        calls::join(DISK, range).map_err(failed("joining"))?;
    }
    pages::free(page).map_err(failed("freeing"))?;
    disk.free().map_err(failed("the ring"))?;
    Ok(right)
}
