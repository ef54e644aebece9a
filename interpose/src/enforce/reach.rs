//! Whom a call reaches, by the numbers of processes: some calls are for a process's own threads
//! alone, and no signal of the tree's comes to the supervisor.

use super::caller::Caller;
use rustix::io::Errno;
use rustix::process::{Pid, getpgid, getpgrp, getpid};

/// Whether this is the caller's process or one of its threads.
pub fn is_own(caller: &Caller, number: u32) -> Result<bool, Errno> {
    let process = caller.status()?.process;
    Ok(number == process || has_thread(process, number))
}

fn has_thread(process: u32, number: u32) -> bool {
    std::fs::exists(format!("/proc/{process}/task/{number}")).unwrap_or(false)
}

/// Whether this process, or a thread of its, has this number.
pub fn is_ours(number: u32) -> bool {
    let own = getpid().as_raw_nonzero().get() as u32;
    number == own || has_thread(own, number)
}

/// Calls that would signal the supervisor, or bring a process into its group, have `EPERM`. One
/// whose process is not there yet has none, for its number may become a thread's of the
/// supervisor's.
pub fn spares_us(caller: &Caller, number: i64, words: &[u64; 6]) -> Result<(), Errno> {
    let word = |at: usize| words[at] as i32;
    let (targets, signal) = match number {
        libc::SYS_kill => return group_or_process(caller, word(0), word(1)),
        libc::SYS_setpgid => {
            let ours = getpgrp().as_raw_nonzero().get() == word(1);
            return if ours { Err(Errno::PERM) } else { Ok(()) };
        }
        libc::SYS_tkill | libc::SYS_rt_sigqueueinfo => (0..1, word(1)),
        libc::SYS_tgkill | libc::SYS_rt_tgsigqueueinfo => (0..2, word(2)),
        _ => return Ok(()),
    };
    targets.map(word).try_for_each(|target| one(target, signal))
}

fn one(target: i32, signal: i32) -> Result<(), Errno> {
    if target <= 0 || signal == 0 {
        // The kernel says what there is to say.
        return Ok(());
    }
    if is_ours(target as u32) {
        return Err(Errno::PERM);
    }
    match std::fs::exists(format!("/proc/{target}")) {
        Ok(true) => Ok(()),
        _ => Err(Errno::SRCH),
    }
}

fn group_or_process(caller: &Caller, target: i32, signal: i32) -> Result<(), Errno> {
    let group = match target {
        1.. => return one(target, signal),
        _ if signal == 0 => return Ok(()),
        // All processes of the user's.
        -1 => return Err(Errno::PERM),
        0 => {
            let group = getpgid(Pid::from_raw(caller.thread as i32))?;
            caller.still()?;
            group.as_raw_nonzero().get()
        }
        other => other.checked_neg().ok_or(Errno::SRCH)?,
    };
    match group == getpgrp().as_raw_nonzero().get() {
        true => Err(Errno::PERM),
        false => Ok(()),
    }
}
