//! How children ended, were stopped or go on: the table says who has, and the registry forgets them
//! when it is asked how.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::entry;
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::table::{Process, event, state};

use crate::process::{own, registry, signals};

/// Which children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// All.
    Any,
    /// One, by its number.
    One(u32),
    /// Those of a process group.
    Group(u32),
}

/// What is waited for besides ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Events {
    /// That a child was stopped.
    pub stops: bool,
    /// That a child goes on which was stopped.
    pub continues: bool,
}

impl Events {
    /// Whether there is something to tell of a child.
    fn of(self, child: &Process) -> bool {
        match child.state.load(Relaxed) {
            state::ENDED => true,
            _ => match child.event.load(Relaxed) {
                event::STOPPED => self.stops,
                event::CONTINUED => self.continues,
                _ => false,
            },
        }
    }
}

/// Waits for children: a number and a status. `Ok(None)`: there is nothing to tell, and this does not
/// wait.
pub fn wait(whom: Whom, events: Events, waits: bool) -> Result<Option<(u32, u32)>, Errno> {
    let parent = own::pid();
    loop {
        let mut alive: Option<&Process> = None;
        let serves = |child: &&Process| {
            let is = child.state.load(Relaxed);
            child.parent.load(Relaxed) == parent
                && is != state::FREE
                && is != state::NEW
                && match whom {
                    Whom::Any => true,
                    Whom::One(pid) => child.pid.load(Relaxed) == pid,
                    Whom::Group(group) => child.group.load(Relaxed) == group,
                }
        };
        let all = registry::table().processes.iter();
        let some = match whom {
            Whom::One(pid) => registry::find(pid).into_iter().find(serves),
            _ => {
                let children = all.filter(serves);
                let mut ended = None;
                for child in children {
                    if events.of(child) {
                        ended = Some(child);
                        break;
                    }
                    alive = Some(child);
                }
                ended.or(alive)
            }
        };
        let child = some.ok_or(errno::CHILD)?;
        let pid = child.pid.load(Relaxed);
        if events.of(child) {
            let status = registry::reap(pid)?;
            return Ok(Some((pid, status)));
        }
        if !waits {
            return Ok(None);
        }
        let environment = child.environment.load(Relaxed);
        if environment == 0 || entry::yield_to(environment).is_err() {
            entry::yield_slice();
        }
        if signals::poll() {
            return Err(errno::INTR);
        }
    }
}
