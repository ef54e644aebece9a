//! Calls about what is named otherwise than by a path or an address: queues of messages, files in
//! memory, and processes by a descriptor. Names are copied, descriptors held, and the call is made
//! with these.

use super::agent::Copies;
use super::caller::{Caller, PATH};
use super::files::Made;
use super::reach;
use crate::trusted::foreign;
use rustix::io::Errno;
use rustix::process::umask;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Such a call.
#[derive(Debug)]
pub enum Named {
    Queue {
        name: Vec<u8>,
        flags: i32,
        mode: u32,
        attributes: Option<[u8; ATTRIBUTES]>,
    },
    QueueRemoved(Vec<u8>),
    /// A file in memory that nobody can execute.
    Memory {
        name: Vec<u8>,
        flags: u32,
    },
    Signal {
        process: OwnedFd,
        number: i32,
        info: Option<[u8; INFO]>,
        flags: u32,
    },
}

/// Bytes of a `struct mq_attr`, and of a `siginfo_t`.
pub const ATTRIBUTES: usize = 64;
pub const INFO: usize = 128;

fn copy_of<const N: usize>(caller: &Caller, at: u64) -> Result<Option<[u8; N]>, Errno> {
    let mut bytes = [0; N];
    match at {
        0 => Ok(None),
        _ => caller.read(at, &mut bytes).map(|()| Some(bytes)),
    }
}

/// Copies what a call needs; `told` are its words, which become the agent's. `None` for others.
pub fn copy(
    caller: &Caller,
    number: i64,
    told: &mut [u64; 6],
    copies: &mut Copies,
) -> Result<Option<Named>, Errno> {
    let words = *told;
    let named = match number {
        libc::SYS_mq_open => {
            let (name, attributes) = (caller.string(words[0])?, copy_of(caller, words[3])?);
            told[0] = copies.add(name.clone());
            if let Some(bytes) = attributes {
                told[3] = copies.add(bytes.to_vec());
            }
            Named::Queue {
                name,
                flags: words[1] as i32,
                mode: words[2] as u32,
                attributes,
            }
        }
        libc::SYS_mq_unlink => {
            let name = caller.string(words[0])?;
            told[0] = copies.add(name.clone());
            Named::QueueRemoved(name)
        }
        libc::SYS_memfd_create => {
            let name = caller.string(words[0])?;
            told[0] = copies.add(name.clone());
            let flags = words[1] as u32;
            Named::Memory { name, flags }
        }
        libc::SYS_pidfd_send_signal => {
            let process = caller.descriptor(words[0] as i32)?;
            // Which process it is, since descriptors have no meaning for the agent.
            told[4] = process_of(&process)?.into();
            Named::Signal {
                process,
                number: words[1] as i32,
                info: copy_of(caller, words[2])?,
                flags: words[3] as u32,
            }
        }
        _ => return Ok(None),
    };
    caller.still()?;
    Ok(Some(named))
}

/// The process that a descriptor is for. One for a folder of `/proc` is none here.
fn process_of(file: &OwnedFd) -> Result<u32, Errno> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()));
    let text = text.map_err(|_| Errno::BADF)?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pid:"));
    let number: i32 = line
        .and_then(|number| number.trim().parse().ok())
        .ok_or(Errno::BADF)?;
    // -1: it has ended; 0: it is in another namespace.
    match u32::try_from(number) {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(Errno::SRCH),
    }
}

fn with_zero(mut name: Vec<u8>) -> Vec<u8> {
    name.truncate(PATH);
    name.push(0);
    name
}

impl Named {
    /// Does it.
    pub fn make(self, caller: &Caller) -> Result<Made, Errno> {
        match self {
            Named::Queue {
                name,
                flags,
                mode,
                attributes,
            } => {
                umask(caller.status()?.mask);
                let attributes = attributes.as_ref();
                let queue = foreign::open_queue(&with_zero(name), flags, mode, attributes)?;
                Ok(Made::File(queue, flags & libc::O_CLOEXEC != 0))
            }
            Named::QueueRemoved(name) => {
                foreign::remove_queue(&with_zero(name)).map(|()| Made::Result(0))
            }
            Named::Memory { name, flags } => {
                if flags & libc::MFD_EXEC != 0 {
                    return Err(Errno::ACCESS);
                }
                let all = flags | libc::MFD_NOEXEC_SEAL | libc::MFD_CLOEXEC;
                let file = foreign::memory_file(&with_zero(name), all);
                // A kernel before 6.3 has no such files.
                let file = file.map_err(|error| match error {
                    Errno::INVAL if flags & libc::MFD_NOEXEC_SEAL == 0 => Errno::ACCESS,
                    other => other,
                })?;
                Ok(Made::File(file, flags & libc::MFD_CLOEXEC != 0))
            }
            Named::Signal {
                process,
                number,
                info,
                flags,
            } => {
                /// `PIDFD_SIGNAL_PROCESS_GROUP`.
                const GROUP: u32 = 4;
                if flags & GROUP != 0 {
                    return Err(Errno::INVAL);
                }
                if number != 0 && reach::is_ours(process_of(&process)?) {
                    return Err(Errno::PERM);
                }
                let sent = foreign::signal(process.as_fd(), number, info.as_ref(), flags);
                sent.map(|()| Made::Result(0))
            }
        }
    }
}
