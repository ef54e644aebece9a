//! Process groups, and the one that the console is for: the registry writes them into the table, which
//! everybody reads.

use core::sync::atomic::Ordering::Relaxed;

use postern_exos_abi::errno::{self, Errno};

use crate::process::{own, registry};

/// A process's group.
pub fn of(pid: u32) -> Result<u32, Errno> {
    let pid = if pid == 0 { own::pid() } else { pid };
    let record = registry::find(pid).ok_or(errno::SRCH)?;
    Ok(record.group.load(Relaxed))
}

/// This process's group.
pub fn own() -> u32 {
    of(0).unwrap_or_default()
}

/// Moves this process (0) or a child to a group; 0: to one of its own.
pub fn join(pid: u32, group: u32) -> Result<(), Errno> {
    let pid = if pid == 0 { own::pid() } else { pid };
    registry::set_group(pid, if group == 0 { pid } else { group })
}

/// The group that the console is for: who opened it first, if nobody has said.
pub fn foreground() -> u32 {
    match registry::table().foreground.load(Relaxed) {
        0 => 1,
        group => group,
    }
}
