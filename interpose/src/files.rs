//! Files that all processes of a tree have, by number.

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::fcntl_dupfd_cloexec;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Numbers from here on are asked for, so that programs find the low ones free.
const HIGH: i32 = 900;

/// The loader.
static LOADER: &[u8] = include_bytes!(env!("POSTERN_LOADER"));

/// The same file by a high number.
pub fn high(file: BorrowedFd<'_>) -> std::io::Result<OwnedFd> {
    let high = fcntl_dupfd_cloexec(file, HIGH).or_else(|_| fcntl_dupfd_cloexec(file, 3))?;
    Ok(high)
}

/// Two ends of a socket for messages, the first by a high number.
pub fn pair() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let (one, other) = rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    Ok((high(one.as_fd())?, other))
}

/// A file of these bytes, which nobody changes.
pub fn fixed(name: &str, bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = std::fs::File::from(file);
    file.write_all(bytes)?;
    let all = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, all)?;
    Ok(file.into())
}

/// The loader's file.
pub fn loader() -> std::io::Result<OwnedFd> {
    fixed("postern-loader", LOADER)
}

/// Where the agent's arguments lie in the tree's file: their length, then each with a zero. As
/// `loader/src/agent/places.rs` has it.
const ARGUMENTS: usize = 8 << 10;
const ARGUMENTS_END: usize = 56 << 10;
const END: usize = 64 << 10;
/// And where what is wanted of loaders is, by bits: no site rewritten, counts printed at the end,
/// no vDSO.
const WANTED: usize = (4 << 10) + 4;
pub const SLOW: u32 = 1;
pub const STATS: u32 = 2;
pub const NO_VDSO: u32 = 4;

/// Where, for each thread that may be in the agent, its number, its process's, and how often it
/// has entered or left it are.
pub const SEATS: usize = 1024;
pub const THREADS: u64 = 0;
pub const PROCESSES: u64 = 56 << 10;
pub const ENTRIES: u64 = 60 << 10;

/// The file that the agent's window is in, with its arguments. `None` if they are too long.
pub fn window<'a>(
    arguments: impl Iterator<Item = &'a [u8]>,
    wanted: u32,
) -> std::io::Result<Option<OwnedFd>> {
    let mut words = Vec::new();
    for argument in arguments {
        words.extend(argument);
        words.push(0);
    }
    if ARGUMENTS + 4 + words.len() > ARGUMENTS_END {
        return Ok(None);
    }
    let mut bytes = vec![0; ARGUMENTS];
    bytes[WANTED..WANTED + 4].copy_from_slice(&wanted.to_le_bytes());
    bytes.extend((words.len() as u32).to_le_bytes());
    bytes.extend(words);
    bytes.resize(END, 0);
    let file = memfd_create("postern-agent", MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(file);
    file.write_all(&bytes)?;
    Ok(Some(file.into()))
}
