//! Clients: processes, what they have open, and their areas.

use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::calls::{self, Target};
use postern_aegis::{Mapping, PAGE, ROOT, books, memory};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::protocol::{HELD, PAGES};
use postern_exos_abi::table::{PROCESSES, Process, state};

use super::trusted;
use crate::ipc::area;
use crate::process::registry;

/// Where areas stand.
pub const AREAS: u64 = 0x7d00_0000_0000;
/// Bytes of an area's place: its pages, and behind them that of answers.
pub const AREA: u64 = 8 * PAGE as u64;

/// Nodes that a process has open at most.
pub const NODES: usize = HELD;

#[derive(Debug)]
struct Client {
    /// 0: the place is free.
    pid: u32,
    /// The environment that has brought the area along, and its birth; 0: none yet.
    environment: u16,
    birth: u32,
    nodes: Vec<u64>,
}

const NONE: Client = Client {
    pid: 0,
    environment: 0,
    birth: 0,
    nodes: Vec::new(),
};

/// All of them.
#[derive(Debug)]
pub struct Clients {
    all: Vec<Client>,
    /// Places of environments.
    of: [u8; 256],
}

/// Where a client's area stands.
pub fn address(client: usize) -> u64 {
    AREAS + client as u64 * AREA
}

/// The process of an environment.
fn process_of(environment: u16) -> Option<&'static Process> {
    let birth = books::environment(environment).birth.load(Relaxed);
    registry::table().processes.iter().find(|process| {
        process.environment.load(Relaxed) == environment
            && process.birth.load(Relaxed) == birth
            && matches!(process.state.load(Relaxed), state::LIVES | state::STOPPED)
    })
}

impl Clients {
    /// Nobody.
    pub fn new() -> Clients {
        Clients {
            all: (0..PROCESSES).map(|_| NONE).collect(),
            of: [0; 256],
        }
    }

    /// The client that an environment is.
    pub fn of(&self, environment: u16) -> Option<usize> {
        let place = usize::from(*self.of.get(usize::from(environment))?);
        let client = self.all.get(place)?;
        let birth = books::environment(environment).birth.load(Relaxed);
        (client.environment == environment && client.birth == birth && client.pid != 0)
            .then_some(place)
    }

    /// Its process.
    pub fn pid(&self, client: usize) -> u32 {
        self.all.get(client).map_or(0, |client| client.pid)
    }

    fn place(&mut self, pid: u32) -> Result<(usize, bool), Errno> {
        if let Some(place) = self.all.iter().position(|client| client.pid == pid) {
            return Ok((place, false));
        }
        let free = self.all.iter().position(|client| client.pid == 0);
        let place = free.ok_or(errno::NFILE)?;
        self.all[place].pid = pid;
        Ok((place, true))
    }

    /// A client brings its area along. Pages are kept by the registry,
    /// which frees none that is bound: one of anybody else's could be gone while it is used here.
    pub fn attach(&mut self, environment: u16, page: u64, capability: u64) -> Result<usize, Errno> {
        let process = process_of(environment).ok_or(errno::SRCH)?;
        let (pid, birth) = (process.pid.load(Relaxed), process.birth.load(Relaxed));
        let page = u32::try_from(page).map_err(|_| errno::INVAL)?;
        let (place, first) = self.place(pid)?;
        self.unbind(place);
        let from = address(place);
        let answers = from + (PAGES * PAGE) as u64;
        let bound = bind(answers, page, capability).and_then(|()| {
            let numbers = trusted::numbers(place);
            let places = (from..).step_by(PAGE);
            let mut pages = numbers.into_iter().zip(places);
            pages.try_for_each(|(page, at)| bind(at, page, capability))
        });
        if let Err(error) = bound {
            self.unbind(place);
            if first {
                self.all[place].pid = 0;
            }
            return Err(error);
        }
        let client = &mut self.all[place];
        (client.environment, client.birth) = (environment, birth);
        self.of[usize::from(environment) % 256] = place as u8;
        Ok(place)
    }

    fn unbind(&mut self, place: usize) {
        self.all[place].environment = 0;
        area::clear(address(place), PAGES + 1);
    }

    /// A child of a client's that has not begun.
    pub fn child(&mut self, client: usize, pid: u32) -> Result<usize, Errno> {
        let process = registry::find(pid).ok_or(errno::SRCH)?;
        let parent = process.parent.load(Relaxed);
        if parent != self.pid(client) || process.state.load(Relaxed) != state::NEW {
            return Err(errno::PERM);
        }
        self.place(pid).map(|(place, _)| place)
    }

    /// Whether a client has a node open.
    pub fn has(&self, client: usize, node: u64) -> bool {
        self.all
            .get(client)
            .is_some_and(|client| client.nodes.contains(&node))
    }

    /// Whether anybody has something open.
    pub fn have_some(&self) -> bool {
        self.all.iter().any(|client| !client.nodes.is_empty())
    }

    /// The node of an index among those that a client has open.
    pub fn node(&self, client: usize, index: usize) -> Option<u64> {
        self.all.get(client)?.nodes.get(index).copied()
    }

    /// A client has a node open from now on.
    pub fn add(&mut self, client: usize, node: u64) -> Result<(), Errno> {
        let nodes = &mut self.all.get_mut(client).ok_or(errno::SRCH)?.nodes;
        if nodes.len() >= NODES {
            return Err(errno::MFILE);
        }
        nodes.push(node);
        Ok(())
    }

    /// No more; whether it had.
    pub fn remove(&mut self, client: usize, node: u64) -> bool {
        let Some(client) = self.all.get_mut(client) else {
            return false;
        };
        let at = client.nodes.iter().position(|other| *other == node);
        at.map(|at| client.nodes.swap_remove(at)).is_some()
    }

    /// A client has only these open; what is not among them is told.
    pub fn retain(&mut self, client: usize, nodes: &[u64], mut closed: impl FnMut(u64)) {
        if let Some(client) = self.all.get_mut(client) {
            client.nodes.retain(|node| {
                let stays = nodes.contains(node);
                if !stays {
                    closed(*node);
                }
                stays
            });
        }
    }

    /// Forgets processes that have ended: their numbers and what they had open are told.
    pub fn look(&mut self, mut ended: impl FnMut(u32), mut closed: impl FnMut(u64)) {
        for place in 0..self.all.len() {
            let pid = self.all[place].pid;
            let lives = |process: &Process| process.state.load(Relaxed) != state::ENDED;
            if pid == 0 || registry::find(pid).is_some_and(lives) {
                continue;
            }
            self.unbind(place);
            let client = core::mem::replace(&mut self.all[place], NONE);
            ended(pid);
            client.nodes.into_iter().for_each(&mut closed);
        }
    }
}

impl Default for Clients {
    fn default() -> Clients {
        Clients::new()
    }
}

/// Binds a page that the registry keeps.
fn bind(at: u64, page: u32, capability: u64) -> Result<(), Errno> {
    let kept = || books::page(page).is_some_and(|page| page.owner.load(Relaxed) == ROOT);
    if !kept() {
        return Err(errno::PERM);
    }
    let mapping = Mapping::new(page, Mapping::WRITE);
    memory::map(at, mapping, capability, Target::SELF).map_err(|_| errno::PERM)?;
    // It may have been another's in between, who could take it away. Given to the registry after
    // that, it is bound no more.
    if kept() && memory::page_at(at) == Some(page) {
        return Ok(());
    }
    let _ = calls::unmap(at, Target::SELF);
    Err(errno::PERM)
}
