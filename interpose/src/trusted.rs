//! What needs `unsafe`: what is done in a child before a loader is executed there; filters,
//! their notifications, and what may be executed; another process's memory.

pub mod foreign;
pub mod landlock;
pub mod seccomp;

use std::os::unix::process::CommandExt;
use std::process::Command;

/// The program that is started has these descriptors, by the same numbers; others, it has not.
pub fn give(command: &mut Command, numbers: Vec<i32>) {
    let keep = move || {
        for &number in &numbers {
            // SAFETY: descriptors are no memory; the call may be made between fork and exec.
            if number >= 0 && unsafe { libc::fcntl(number, libc::F_SETFD, 0) } < 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: it makes system calls alone, and allocates only where one fails.
    unsafe { command.pre_exec(keep) };
}
