//! What a tree may execute, by a ruleset of the kernel's (landlock): it is looked at where the
//! kernel opens a program, so that no path can change before.

use rustix::fs::{Mode, OFlags, open};
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const EXECUTE: u64 = 1;
/// A rule for a file, or for all below a folder.
const BENEATH: i32 = 1;

/// As `struct landlock_ruleset_attr` begins.
#[repr(C)]
struct Handled {
    files: u64,
}

/// As `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct Rule {
    allowed: u64,
    below: i32,
}

/// Files that may be executed, and all others may not.
#[derive(Debug)]
pub struct Executable(OwnedFd);

impl Executable {
    /// None yet.
    ///
    /// # Errors
    /// The kernel has no landlock.
    pub fn new() -> Result<Executable> {
        let handled = Handled { files: EXECUTE };
        let create = libc::SYS_landlock_create_ruleset;
        // SAFETY: the kernel reads the structure.
        let file = unsafe { libc::syscall(create, &raw const handled, size_of::<Handled>(), 0) };
        if file < 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: a descriptor that was just made, and that nobody else has.
        Ok(Executable(unsafe { OwnedFd::from_raw_fd(file as i32) }))
    }

    /// One more, or all below a folder.
    ///
    /// # Errors
    /// It is not there.
    pub fn allow(&self, path: &Path) -> Result<()> {
        let file = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let rule = Rule {
            allowed: EXECUTE,
            below: file.as_raw_fd(),
        };
        let (add, own) = (libc::SYS_landlock_add_rule, self.0.as_raw_fd());
        // SAFETY: the kernel reads the structure.
        match unsafe { libc::syscall(add, own, BENEATH, &raw const rule, 0) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }

    /// The program that is started, and its children, execute these alone. Files without a place
    /// are not looked at by rulesets; those that may be executed are reached by
    /// `/proc/PID/map_files`, for which capabilities are needed that they have not.
    pub fn restrict(self, command: &mut Command) {
        let restrict = move || {
            drop_capabilities()?;
            let (restrict, own) = (libc::SYS_landlock_restrict_self, self.0.as_raw_fd());
            // SAFETY: numbers alone; the calls may be made between fork and exec.
            let done = unsafe {
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                    && libc::syscall(restrict, own, 0) == 0
            };
            match done {
                true => Ok(()),
                false => Err(Error::last_os_error()),
            }
        };
        // SAFETY: it makes system calls alone.
        unsafe { command.pre_exec(restrict) };
    }
}

/// The calling process, and what it executes, may not use `/proc/PID/map_files`: without
/// `CAP_SYS_ADMIN` and `CAP_CHECKPOINT_RESTORE`.
fn drop_capabilities() -> Result<()> {
    const ADMIN: u32 = 21;
    const RESTORE: u32 = 40;
    // `_LINUX_CAPABILITY_VERSION_3`, of this process.
    let header = [0x2008_0522_u32, 0];
    // Effective, permitted and inheritable ones: the lower halves, then the upper.
    let mut sets = [0_u32; 6];
    // SAFETY: the kernel reads the header and writes the sets, or reads them; the calls may be made
    // between fork and exec.
    unsafe {
        if libc::syscall(libc::SYS_capget, &raw const header, &raw mut sets) != 0 {
            return Err(Error::last_os_error());
        }
        let bits = [(0..3, 1 << ADMIN), (3..6, 1 << (RESTORE - 32))];
        if bits
            .iter()
            .all(|(at, bit)| sets[at.clone()].iter().all(|set| set & bit == 0))
        {
            return Ok(());
        }
        for capability in [ADMIN, RESTORE] {
            // Where this is refused, `no_new_privs` has programs not get them by being executed.
            libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
            libc::prctl(
                libc::PR_CAP_AMBIENT,
                libc::PR_CAP_AMBIENT_LOWER,
                capability,
                0,
                0,
            );
        }
        for (at, bit) in bits {
            sets[at].iter_mut().for_each(|set| *set &= !bit);
        }
        match libc::syscall(libc::SYS_capset, &raw const header, &raw const sets) {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }
}
