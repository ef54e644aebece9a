//! An environment in the making, by whoever may control it.

use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, Mapping, PAGE, memory, pages};
use postern_exos_abi::address::WINDOWS;

use crate::archive;
use crate::elf::{Program, Segment};
use crate::source::Source;
use crate::trusted;

/// The window through which pages are filled.
pub const FILLED: u64 = WINDOWS + PAGE as u64;

/// The environment.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// Its number, and the capability to control it.
    pub target: Target,
}

impl Space {
    /// Binds a page that is the environment's, or everybody's.
    pub fn bind(&self, at: u64, mapping: Mapping) -> Result<(), Error> {
        memory::map(at, mapping, 0, self.target)
    }

    /// Binds a fresh page, filled by a function that gets the address of a window.
    pub fn fresh(&self, at: u64, flags: u64, fill: impl FnOnce(u64)) -> Result<u32, Error> {
        let page = pages::take()?;
        let result = memory::map(FILLED, Mapping::new(page, Mapping::WRITE), 0, Target::SELF)
            .and_then(|()| {
                fill(FILLED);
                calls::give(page, self.target.environment)
            });
        if let Err(error) = result {
            let _ = pages::free(page);
            return Err(error);
        }
        self.bind(at, Mapping::new(page, flags))?;
        Ok(page)
    }

    /// Binds a copy of a page of the own space.
    pub fn copy(&self, at: u64, flags: u64) -> Result<u32, Error> {
        self.fresh(at, flags, |window| trusted::copy_page(window, at))
    }

    /// The same with other numbers at an offset.
    pub fn copy_changed(
        &self,
        at: u64,
        flags: u64,
        offset: usize,
        numbers: &[u32],
    ) -> Result<u32, Error> {
        self.fresh(at, flags, |window| {
            trusted::copy_page(window, at);
            for (index, number) in numbers.iter().enumerate() {
                let to = window + (offset + 4 * index) as u64;
                trusted::copy_in(to, &number.to_le_bytes());
            }
        })
    }

    /// Binds a page of zeros but for a word at an offset.
    pub fn word(&self, at: u64, flags: u64, offset: u64, word: u64) -> Result<u32, Error> {
        self.fresh(at, flags, |window| {
            trusted::copy_in(window + offset, &word.to_le_bytes());
        })
    }

    /// Binds a page of zeros, with nobody looking at it.
    pub fn zeros(&self, at: u64, flags: u64) -> Result<u32, Error> {
        let page = pages::take()?;
        if let Err(error) = calls::give(page, self.target.environment) {
            let _ = pages::free(page);
            return Err(error);
        }
        self.bind(at, Mapping::new(page, flags))?;
        Ok(page)
    }

    /// One page of a program.
    pub fn page_of(&self, file: &dyn Source, segment: &Segment, offset: u64) -> Result<(), Error> {
        let at = segment.at + offset;
        if let Some(page) = segment.shared(file, offset) {
            return self.bind(at, Mapping::new(page, segment.flags & !Mapping::WRITE));
        }
        if offset >= segment.filled && segment.lazy {
            return Ok(());
        }
        if offset >= segment.filled {
            return self.zeros(at, segment.flags).map(drop);
        }
        let length = (segment.filled - offset).min(PAGE as u64);
        let mut copied = Ok(());
        self.fresh(at, segment.flags, |window| {
            copied = file.copy(segment.offset + offset, window, length);
        })?;
        copied
    }

    /// All of a program.
    pub fn load(&self, file: &dyn Source, program: &Program) -> Result<(), Error> {
        for segment in program.segments() {
            for offset in segment.pages() {
                self.page_of(file, segment, offset)?;
            }
        }
        Ok(())
    }
}

/// Takes the windows away.
pub fn close_windows() {
    archive::close_window();
    let _ = calls::unmap(FILLED, Target::SELF);
}
