//! Services that processes offer, and parts of devices for processes: who offers `/` gets the disk.
//!
//! The disk is two ranges of blocks from the start: what the server of `/` has by capability, and
//! behind it blocks for who asks, which are cut off as they are asked for. The kernel's books say who
//! has which; those of processes that have ended are the root's again.

use core::sync::atomic::Ordering::{Relaxed, Release};

use postern_aegis::abi::HOLDINGS as ALL;
use postern_aegis::abi::call::{HOLDINGS, NAME_NOBODY, RIGHT_READ, RIGHT_WRITE};
use postern_aegis::disk::{self, range};
use postern_aegis::{ROOT, books, calls, println};
use postern_exos_abi::disk::{PART, of_files};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::request;
use postern_exos_abi::service::{NAME, Service, WORDS, is_name, name_of, what};
use postern_exos_abi::signal;

use crate::registry::{Registry, refusal};

/// The whole disk, at the start.
const DISK: usize = 3;

/// The service that has the disk.
const ROOT_OF_FILES: &[u8] = b"/";

impl Registry {
    /// Cuts the disk in two.
    pub fn open_disk(&mut self) {
        let all = disk::blocks();
        if all >= PART && range(DISK).is_some() {
            let _ = calls::split(DISK, of_files(all));
        }
    }

    /// A change of the page of services, in one step for who reads.
    fn change(&self, what: impl FnOnce()) {
        let Some(services) = self.services else {
            return;
        };
        services.changes.fetch_add(1, Relaxed);
        core::sync::atomic::fence(Release);
        what();
        services.changes.fetch_add(1, Release);
    }

    /// Offers or takes back a service: its name stands in the mailbox.
    pub fn serve(&mut self, slot: usize, words: [u64; WORDS]) -> Result<[u64; 3], Errno> {
        let mailbox = self.mailbox(slot).ok_or(errno::SRCH)?;
        // Read once, since it may change between two looks.
        let numbers = core::array::from_fn(|index| mailbox.numbers[index].load(Relaxed));
        let takes_back = match mailbox.numbers[numbers.len()].load(Relaxed) {
            what::OFFER => false,
            what::TAKE_BACK => true,
            _ => return Err(errno::INVAL),
        };
        let (bytes, length) = name_of(numbers);
        let name = bytes.get(..length).filter(|name| is_name(name));
        let name = name.ok_or(errno::INVAL)?;
        let services = self.services.ok_or(errno::NOSYS)?;
        let found = services.all.iter().find(|one| is_of(one, name));
        let own = |one: &&Service| one.pid.load(Relaxed) == self.pid(slot);
        match found {
            Some(_) if found.filter(own).is_none() => Err(errno::EXIST),
            None if takes_back => Err(errno::NOENT),
            Some(one) if takes_back => {
                self.change(|| one.pid.store(0, Relaxed));
                Ok([0; 3])
            }
            Some(one) => {
                self.change(|| say(one, words));
                Ok([0; 3])
            }
            // Files and the network are everybody's: who has limits of its own offers none to others.
            None if self.tree(slot) != 0 && matches!(name, [b'/', ..] | b"net") => Err(errno::PERM),
            None => {
                let free = services.all.iter().find(|one| one.pid.load(Relaxed) == 0);
                let one = free.ok_or(errno::NOSPC)?;
                let made = self.environment(slot).ok_or(errno::SRCH)?;
                let disk = match name == ROOT_OF_FILES {
                    true => self.disk()?,
                    false => [0; 3],
                };
                self.change(|| {
                    for (to, byte) in one.name.0.iter().zip(bytes) {
                        to.store(byte, Relaxed);
                    }
                    say(one, words);
                    one.birth.store(made.birth, Relaxed);
                    one.environment.store(made.environment.into(), Relaxed);
                    one.pid.store(self.pid(slot), Relaxed);
                });
                self.came(slot);
                Ok(disk)
            }
        }
    }

    /// How the disk is reached from now on: who did before does no more.
    fn disk(&mut self) -> Result<[u64; 3], Errno> {
        if range(DISK).is_none() {
            return Ok([0; 3]);
        }
        let [read, write] = [self.keeper.name(), self.keeper.name()];
        let (read, write) = (read?, write?);
        calls::rename_holding(DISK, read, write).map_err(refusal)?;
        Ok([
            DISK as u64,
            calls::capability(read, RIGHT_READ, 0).map_err(refusal)?,
            calls::capability(write, RIGHT_WRITE, 0).map_err(refusal)?,
        ])
    }

    /// A process that was started with the machine has offered something, or has ended.
    fn came(&mut self, slot: usize) {
        if core::mem::take(&mut self.slots[slot].coming)
            && let Some(services) = self.services
        {
            services.coming.fetch_sub(1, Relaxed);
        }
    }

    /// A process was started with the machine.
    pub fn comes(&mut self, slot: usize) {
        self.slots[slot].coming = true;
        if let Some(services) = self.services {
            services.coming.fetch_add(1, Relaxed);
        }
    }

    /// A process's environment is no more, and what it offered neither: its clients see that there is
    /// no service any more, so why is said here, if nobody has asked for it.
    pub(crate) fn serves_no_more(&mut self, slot: usize, status: u32) {
        self.came(slot);
        let (pid, Some(services)) = (self.pid(slot), self.services) else {
            return;
        };
        let own = |one: &&Service| one.pid.load(Relaxed) == pid;
        for one in services.all.iter().filter(own) {
            let name: [u8; NAME] = core::array::from_fn(|at| one.name.0[at].load(Relaxed));
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let signal = status & 0x7f;
            if let (false, Ok(name)) = (
                [0, signal::KILL].contains(&signal),
                core::str::from_utf8(name),
            ) {
                println!("init: signal {signal} ended the server of {name}");
            }
            // What it has asked of the disk is done still; nobody asks more.
            if is_of(one, ROOT_OF_FILES) {
                let _ = calls::rename_holding(DISK, NAME_NOBODY, NAME_NOBODY);
            }
            self.change(|| one.pid.store(0, Relaxed));
        }
    }

    /// Blocks for a process; none: what it has is given back.
    pub fn blocks(&mut self, slot: usize, count: u64) -> Result<u64, Errno> {
        let made = self.environment(slot).ok_or(errno::SRCH)?;
        if count == 0 {
            for number in owned(made.environment) {
                let _ = calls::drop_holding(number, made.control().map_err(refusal)?);
            }
            return Ok(0);
        }
        self.join_blocks();
        let large = |number: &usize| {
            let blocks = range(*number).map_or(0, |range| range.count.load(Relaxed));
            *number != DISK && blocks >= count
        };
        let number = owned(ROOT).find(large).ok_or(errno::NOSPC)?;
        let has = books::environment(made.environment).holdings.load(Relaxed);
        self.holdings(slot, u64::from(has) + 1)?;
        if range(number).is_some_and(|range| range.count.load(Relaxed) > count) {
            calls::split(number, count).map_err(|_| errno::NOSPC)?;
        }
        calls::give_holding(number, made.environment).map_err(refusal)?;
        Ok(number as u64)
    }

    /// What the root has and follows each other is one range again, but for the disk's own.
    fn join_blocks(&mut self) {
        let end = |number: usize| {
            range(number).map(|range| range.first.load(Relaxed) + range.count.load(Relaxed))
        };
        let first = |number: usize| range(number).map(|range| range.first.load(Relaxed));
        // One joined range has another end, so its successors are looked for again.
        for number in 1..ALL {
            while number != DISK
                && owned(ROOT).any(|own| own == number)
                && let Some(behind) = owned(ROOT).find(|behind| first(*behind) == end(number))
                && behind != DISK
                && calls::join(number, behind).is_ok()
            {}
        }
    }

    /// A process may have so many parts of devices.
    pub fn holdings(&mut self, slot: usize, count: u64) -> Result<u32, Errno> {
        let made = self.environment(slot).ok_or(errno::SRCH)?;
        let count = u32::try_from(count).map_err(|_| errno::AGAIN)?;
        if count > request::HOLDINGS {
            return Err(errno::AGAIN);
        }
        let record = books::environment(made.environment);
        let now = record.holdings_limit.load(Relaxed);
        if count <= now {
            return Ok(now);
        }
        calls::quota(made.environment, HOLDINGS, 0, count).map_err(|_| errno::AGAIN)?;
        Ok(count)
    }
}

/// Ranges of blocks that an environment has.
fn owned(environment: u16) -> impl Iterator<Item = usize> {
    (1..ALL).filter(move |number| {
        range(*number).is_some_and(|range| range.owner.load(Relaxed) == environment)
    })
}

/// Whether a service has a name.
fn is_of(one: &Service, name: &[u8]) -> bool {
    let bytes = one.name.0.iter().map(|byte| byte.load(Relaxed));
    one.pid.load(Relaxed) != 0
        && name.len() < NAME
        && bytes
            .take(name.len() + 1)
            .eq(name.iter().copied().chain([0]))
}

fn say(one: &Service, words: [u64; WORDS]) {
    for (to, word) in one.words.iter().zip(words) {
        to.store(word, Relaxed);
    }
}
