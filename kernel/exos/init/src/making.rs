//! Environments for processes: context, first table, quotas, what everybody reads, a mailbox.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::call::{PAGES, RIGHT_CONTROL};
use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, Mapping, address, books, memory, pages};
use postern_exos_abi::address::MAILBOX;

use crate::public;

/// What was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// The environment's number.
    pub environment: u16,
    /// Its birth.
    pub birth: u32,
}

impl Made {
    /// Whether it lives.
    pub fn lives(self) -> bool {
        books::lives(self.environment)
            && books::environment(self.environment).birth.load(Relaxed) == self.birth
    }

    /// To name it in calls: it is the root's child.
    pub fn target(self) -> Target {
        Target::child(self.environment)
    }

    /// The capability to control it.
    pub fn control(self) -> Result<u64, Error> {
        calls::capability(0, RIGHT_CONTROL, self.environment)
    }

    /// Ends it.
    pub fn end(self) {
        if self.lives() {
            let _ = calls::destroy(self.target());
        }
    }

    /// Slices that it has.
    pub fn slices(self) -> u32 {
        let record = books::environment(self.environment);
        match record.birth.load(Relaxed) == self.birth {
            true => record.slices.load(Relaxed),
            false => 0,
        }
    }

    /// Slices that it had to their end: the time that it ran.
    pub fn ran(self) -> u64 {
        let record = books::environment(self.environment);
        if record.birth.load(Relaxed) == self.birth {
            record.whole.load(Relaxed)
        } else {
            0
        }
    }
}

/// Makes one that stands still, and begins at an address. Its mailbox is a page of the root's.
pub fn make(entry: u64, room: u32, mailbox: u32) -> Result<Made, Error> {
    let (context, table) = (pages::take()?, pages::take()?);
    let made = begin(context, entry).and_then(|()| calls::create(context, table));
    let environment = match made {
        Ok(environment) => environment,
        Err(error) => {
            let _ = pages::free(context);
            let _ = pages::free(table);
            return Err(error);
        }
    };
    let made = Made {
        environment,
        birth: books::environment(environment).birth.load(Relaxed),
    };
    furnish(made, context, room, mailbox).inspect_err(|_| made.end())?;
    Ok(made)
}

fn begin(context: u32, entry: u64) -> Result<(), Error> {
    let window = pages::window();
    memory::map(
        window,
        Mapping::new(context, Mapping::WRITE),
        0,
        Target::SELF,
    )?;
    let own = window + offset_of!(postern_aegis::abi::Context, guaranteed) as u64;
    memory::write(
        window + offset_of!(postern_aegis::abi::Context, begin) as u64,
        entry,
    );
    memory::write(own, address::GUARANTEED);
    memory::write(own + 8, Mapping::new(context, Mapping::WRITE).0);
    calls::unmap(window, Target::SELF).map(drop)
}

fn furnish(made: Made, context: u32, room: u32, mailbox: u32) -> Result<(), Error> {
    let with = made.target();
    calls::quota(made.environment, PAGES, 2, room)?;
    let bind = |at, page, flags| memory::map(at, Mapping::new(page, flags), 0, with);
    bind(address::GUARANTEED, context, Mapping::WRITE)?;
    bind(MAILBOX, mailbox, Mapping::WRITE)?;
    public::share(with)
}
