//! How children ended: the table says who has, and the registry forgets them when it is asked how.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::entry;
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::table::{Process, state};

use crate::process::{own, registry, signals};

/// Waits for a child, or any (`None`): its number and its status. `Ok(None)`: none has ended, and
/// this does not wait.
pub fn wait(whom: Option<u32>, waits: bool) -> Result<Option<(u32, u32)>, Errno> {
    let parent = own::pid();
    loop {
        let mut alive: Option<&Process> = None;
        let serves = |child: &&Process| {
            let is = child.state.load(Relaxed);
            child.parent.load(Relaxed) == parent
                && is != state::FREE
                && is != state::NEW
                && whom.is_none_or(|pid| child.pid.load(Relaxed) == pid)
        };
        let one = whom.map(registry::find);
        let all = registry::table().processes.iter();
        let some = match one {
            Some(one) => one.into_iter().find(serves),
            None => {
                let children = all.filter(serves);
                let mut ended = None;
                for child in children {
                    match child.state.load(Relaxed) {
                        state::ENDED => {
                            ended = Some(child);
                            break;
                        }
                        _ => alive = Some(child),
                    }
                }
                ended.or(alive)
            }
        };
        let child = some.ok_or(errno::CHILD)?;
        let pid = child.pid.load(Relaxed);
        if child.state.load(Relaxed) == state::ENDED {
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
