//! From a number and five words to a [`Call`], or to an errno and nothing else.
//!
//! Invariant: every string and buffer that the call reads is copied here, once, and nobody looks at
//! the window again; every range that it may write is checked here to be writable. So `apply`
//! cannot be shown one thing and do another, and an answer cannot fail once something was done.
//! (Ranges stay mapped while a call is inside: a domain is reset only when nobody is.)

use super::call::*;
use crate::Domain;
use crate::error::MemoryError;
use crate::value::Offset;
use rustix::io::Errno;

/// Most bytes that one call moves. Longer reads and writes are done in part, as POSIX allows.
pub(super) const MOST: usize = 1 << 20;
/// Longest path with its NUL.
const PATH: usize = 4096;
/// Most parts of a vector of buffers, as in Linux.
const PARTS: u64 = 1024;

/// Where the answer's bytes go.
pub(super) enum Out {
    Nowhere,
    One(Offset, usize),
    Many(Vec<(Offset, usize)>),
}

impl Out {
    /// How many bytes there is room for.
    pub(super) fn room(&self) -> usize {
        match self {
            Out::Nowhere => 0,
            Out::One(_, room) => *room,
            Out::Many(parts) => parts.iter().map(|part| part.1).sum(),
        }
    }

    /// Writes as much of `bytes` as there is room for.
    pub(super) fn put(&self, domain: &Domain, mut bytes: &[u8]) -> Result<(), Errno> {
        let mut part = |&(offset, room): &(Offset, usize)| {
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            bytes = later;
            if now.is_empty() {
                return Ok(());
            }
            domain.write(offset, now).map_err(|_| Errno::FAULT)
        };
        match self {
            Out::Nowhere => Ok(()),
            Out::One(offset, room) => part(&(*offset, *room)),
            Out::Many(parts) => parts.iter().try_for_each(part),
        }
    }
}

struct Decoder<'a> {
    domain: &'a Domain,
    out: Out,
}

/// A pointer of the extension: its low 32 bits count.
fn offset(word: u64) -> Offset {
    Offset(word as u32)
}

impl Decoder<'_> {
    /// A NUL-terminated string.
    fn string(&self, word: u64) -> Result<Vec<u8>, Errno> {
        match self.domain.read_c_bytes(offset(word), PATH) {
            Ok(bytes) => Ok(bytes),
            Err(MemoryError::Unterminated { .. }) => Err(Errno::NAMETOOLONG),
            Err(_) => Err(Errno::FAULT),
        }
    }

    fn path(&self, directory: u64, word: u64) -> Result<GuestPath, Errno> {
        Ok(GuestPath {
            directory: directory as i32,
            bytes: self.string(word)?,
        })
    }

    /// A path relative to the working directory.
    fn here(&self, word: u64) -> Result<GuestPath, Errno> {
        self.path(WORKING_DIRECTORY as u64, word)
    }

    /// Bytes that the call reads.
    fn bytes(&self, word: u64, length: usize) -> Result<Vec<u8>, Errno> {
        if length == 0 {
            return Ok(Vec::new());
        }
        let copied = self.domain.read_vec(offset(word), length);
        copied.map_err(|_| Errno::FAULT)
    }

    fn words<const N: usize>(&self, word: u64) -> Result<[u64; N], Errno> {
        let mut bytes = [0; 64];
        let bytes = &mut bytes[..8 * N];
        let copied = self.domain.read(offset(word), bytes);
        copied.map_err(|_| Errno::FAULT)?;
        let mut values = bytes.chunks_exact(8).map(number);
        Ok(std::array::from_fn(|_| values.next().unwrap_or(0)))
    }

    fn writable(&self, word: u64, length: usize) -> Result<(Offset, usize), Errno> {
        let length = length.min(MOST);
        let checked = self.domain.check(offset(word), length, true);
        match checked {
            _ if length == 0 => Ok((Offset::NULL, 0)),
            Ok(()) => Ok((offset(word), length)),
            Err(_) => Err(Errno::FAULT),
        }
    }

    /// Where the answer goes; its room.
    fn answer(&mut self, word: u64, length: u64) -> Result<usize, Errno> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (at, length) = self.writable(word, length)?;
        self.out = Out::One(at, length);
        Ok(length)
    }

    /// As [`Self::answer`], if the pointer is not null.
    fn wanted(&mut self, word: u64, length: u64) -> Result<usize, Errno> {
        match offset(word) {
            Offset::NULL => Ok(0),
            _ => self.answer(word, length),
        }
    }

    /// A vector of buffers, copied once, cut to what one call moves.
    fn parts(&self, word: u64, count: u64) -> Result<Vec<(u64, usize)>, Errno> {
        if count > PARTS {
            return Err(Errno::INVAL);
        }
        let table = self.bytes(word, count as usize * 16)?;
        let (mut parts, mut left) = (Vec::new(), MOST);
        let mut sum = 0u64;
        for part in table.chunks_exact(16) {
            let (base, length) = (number(&part[..8]), number(&part[8..]));
            sum = sum.checked_add(length).ok_or(Errno::INVAL)?;
            if sum > i64::MAX as u64 {
                return Err(Errno::INVAL);
            }
            let length = usize::try_from(length).unwrap_or(usize::MAX).min(left);
            left -= length;
            if length > 0 {
                parts.push((base, length));
            }
        }
        Ok(parts)
    }

    fn read(&mut self, file: u64, at: Option<u64>, to: u64, length: u64) -> Result<Call, Errno> {
        let length = self.answer(to, length)?;
        let (file, at) = (file as i32, place(at)?);
        Ok(Call::Read { file, at, length })
    }

    fn read_parts(&mut self, file: u64, parts: u64, count: u64) -> Result<Call, Errno> {
        let checked: Result<Vec<_>, Errno> = self
            .parts(parts, count)?
            .iter()
            .map(|&(base, length)| self.writable(base, length))
            .collect();
        let parts = checked?;
        let length = parts.iter().map(|p| p.1).sum();
        self.out = Out::Many(parts);
        let file = file as i32;
        Ok(Call::Read {
            file,
            at: None,
            length,
        })
    }

    fn write(&self, file: u64, at: Option<u64>, from: u64, length: u64) -> Result<Call, Errno> {
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(MOST);
        let (file, at) = (file as i32, place(at)?);
        let bytes = self.bytes(from, length)?;
        Ok(Call::Write { file, at, bytes })
    }

    fn write_parts(&self, file: u64, parts: u64, count: u64) -> Result<Call, Errno> {
        let mut bytes = Vec::new();
        for (base, length) in self.parts(parts, count)? {
            bytes.extend(self.bytes(base, length)?);
        }
        let file = file as i32;
        Ok(Call::Write {
            file,
            at: None,
            bytes,
        })
    }

    fn open(&self, directory: u64, path: u64, flags: u64, mode: u64) -> Result<Call, Errno> {
        Ok(Call::Open {
            path: self.path(directory, path)?,
            flags: flags as i32,
            mode: mode as u32,
        })
    }

    fn stat_path(&mut self, path: GuestPath, follow: bool, out: u64) -> Result<Call, Errno> {
        self.answer(out, 144)?;
        Ok(Call::Stat(Target::Path { path, follow }))
    }

    fn stat_open(&mut self, file: u64, out: u64) -> Result<Call, Errno> {
        self.answer(out, 144)?;
        Ok(Call::Stat(Target::Open(file as i32)))
    }

    fn stat_at(&mut self, directory: u64, path: u64, out: u64, flags: u64) -> Result<Call, Errno> {
        let flags = flags as i32;
        if flags & !(libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH | libc::AT_NO_AUTOMOUNT) != 0 {
            return Err(Errno::INVAL);
        }
        let path = self.path(directory, path)?;
        if flags & libc::AT_EMPTY_PATH != 0 && path.bytes.is_empty() {
            return self.stat_open(directory, out);
        }
        let follow = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
        self.stat_path(path, follow, out)
    }

    fn set_times(&self, directory: u64, path: u64, times: u64, flags: u64) -> Result<Call, Errno> {
        let target = match offset(path) {
            Offset::NULL => Target::Open(directory as i32),
            _ => Target::Path {
                path: self.path(directory, path)?,
                follow: flags as i32 & libc::AT_SYMLINK_NOFOLLOW == 0,
            },
        };
        let time = |seconds: u64, nanoseconds: u64| FileTime {
            seconds: seconds as i64,
            nanoseconds: nanoseconds as i64,
        };
        let (access, modification) = match offset(times) {
            Offset::NULL => (time(0, UTIME_NOW), time(0, UTIME_NOW)),
            _ => {
                let [a, b, c, d] = self.words(times)?;
                (time(a, b), time(c, d))
            }
        };
        Ok(Call::SetTimes {
            target,
            access,
            modification,
        })
    }

    fn control(&mut self, file: u64, command: u64, argument: u64) -> Result<Call, Errno> {
        let file = file as i32;
        let duplicate = |close_on_exec| Call::Duplicate {
            file,
            to: None,
            least: argument as i32,
            close_on_exec,
            distinct: false,
        };
        let set = Some(argument as i32);
        Ok(match command as i32 {
            libc::F_DUPFD => duplicate(false),
            libc::F_DUPFD_CLOEXEC => duplicate(true),
            libc::F_GETFD => Call::DescriptorFlags { file, set: None },
            libc::F_SETFD => Call::DescriptorFlags { file, set },
            libc::F_GETFL => Call::StatusFlags { file, set: None },
            libc::F_SETFL => Call::StatusFlags { file, set },
            libc::F_GETLK => {
                self.answer(argument, 32)?;
                self.lock(file, LockAction::Query, argument)?
            }
            libc::F_SETLK => self.lock(file, LockAction::Set, argument)?,
            libc::F_SETLKW => self.lock(file, LockAction::Wait, argument)?,
            _ => return Err(Errno::INVAL),
        })
    }

    /// `struct flock`.
    fn lock(&self, file: Descriptor, action: LockAction, argument: u64) -> Result<Call, Errno> {
        let [head, start, length] = self.words(argument)?;
        Ok(Call::Lock {
            file,
            action,
            kind: head as i16,
            whence: (head >> 16) as i16,
            start: start as i64,
            length: length as i64,
        })
    }

    fn sleep(&self, clock: u64, absolute: bool, time: u64) -> Result<Call, Errno> {
        let [seconds, nanoseconds] = self.words(time)?;
        Ok(Call::Sleep {
            clock: clock as i32,
            absolute,
            seconds: seconds as i64,
            nanoseconds: nanoseconds as i64,
        })
    }

    fn time(&mut self, clock: i32, form: TimeForm, out: u64) -> Result<Call, Errno> {
        let size = if form == TimeForm::Seconds { 8 } else { 16 };
        self.wanted(out, size)?;
        Ok(Call::Time { clock, form })
    }
}

/// `UTIME_NOW`.
const UTIME_NOW: u64 = 0x3fff_ffff;

/// Eight bytes in the machine's order.
fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// A place in a file: not negative.
fn place(at: Option<u64>) -> Result<Option<i64>, Errno> {
    match at {
        None => Ok(None),
        Some(at) => i64::try_from(at).map(Some).map_err(|_| Errno::INVAL),
    }
}

/// A path and whether it is followed.
fn followed(path: GuestPath) -> Target {
    Target::Path { path, follow: true }
}

/// Decodes a call of an extension of `domain`: the call, and where its answer goes.
pub(super) fn decode(domain: &Domain, number: i64, words: [u64; 5]) -> Result<(Call, Out), Errno> {
    let mut d = Decoder {
        domain,
        out: Out::Nowhere,
    };
    let call = d.call(number, words)?;
    Ok((call, d.out))
}

impl Decoder<'_> {
    fn call(&mut self, number: i64, words: [u64; 5]) -> Result<Call, Errno> {
        let [a, b, c, d, e] = words;
        let file = a as i32;
        let here = WORKING_DIRECTORY as u64;
        Ok(match number {
            libc::SYS_exit | libc::SYS_exit_group => Call::Exit { status: a as i32 },
            libc::SYS_read => self.read(a, None, b, c)?,
            libc::SYS_pread64 => self.read(a, Some(d), b, c)?,
            libc::SYS_readv => self.read_parts(a, b, c)?,
            libc::SYS_write => self.write(a, None, b, c)?,
            libc::SYS_pwrite64 => self.write(a, Some(d), b, c)?,
            libc::SYS_writev => self.write_parts(a, b, c)?,
            libc::SYS_open => self.open(here, a, b, c)?,
            libc::SYS_openat => self.open(a, b, c, d)?,
            libc::SYS_creat => {
                let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
                self.open(here, a, flags as u64, b)?
            }
            libc::SYS_close => Call::Close { file },
            libc::SYS_lseek => Call::Seek {
                file,
                offset: b as i64,
                whence: c as i32,
            },
            libc::SYS_stat => {
                let path = self.here(a)?;
                self.stat_path(path, true, b)?
            }
            libc::SYS_lstat => {
                let path = self.here(a)?;
                self.stat_path(path, false, b)?
            }
            libc::SYS_fstat => self.stat_open(a, b)?,
            libc::SYS_newfstatat => self.stat_at(a, b, c, d)?,
            libc::SYS_access => Call::Access {
                path: self.here(a)?,
                mode: b as i32,
            },
            libc::SYS_faccessat => Call::Access {
                path: self.path(a, b)?,
                mode: c as i32,
            },
            libc::SYS_readlink => Call::ReadLink {
                path: self.here(a)?,
                length: self.answer(b, c)?,
            },
            libc::SYS_readlinkat => Call::ReadLink {
                path: self.path(a, b)?,
                length: self.answer(c, d)?,
            },
            libc::SYS_unlink => Call::Remove {
                path: self.here(a)?,
                directory: false,
            },
            libc::SYS_rmdir => Call::Remove {
                path: self.here(a)?,
                directory: true,
            },
            libc::SYS_unlinkat => Call::Remove {
                path: self.path(a, b)?,
                directory: c as i32 & libc::AT_REMOVEDIR != 0,
            },
            libc::SYS_rename => Call::Rename {
                from: self.here(a)?,
                to: self.here(b)?,
                flags: 0,
            },
            libc::SYS_renameat | libc::SYS_renameat2 => Call::Rename {
                from: self.path(a, b)?,
                to: self.path(c, d)?,
                flags: if number == libc::SYS_renameat {
                    0
                } else {
                    e as u32
                },
            },
            libc::SYS_link => Call::Link {
                from: self.here(a)?,
                to: self.here(b)?,
            },
            libc::SYS_linkat => Call::Link {
                from: self.path(a, b)?,
                to: self.path(c, d)?,
            },
            libc::SYS_symlink => Call::SymbolicLink {
                text: self.string(a)?,
                path: self.here(b)?,
            },
            libc::SYS_symlinkat => Call::SymbolicLink {
                text: self.string(a)?,
                path: self.path(b, c)?,
            },
            libc::SYS_mkdir => Call::MakeDirectory {
                path: self.here(a)?,
                mode: b as u32,
            },
            libc::SYS_mkdirat => Call::MakeDirectory {
                path: self.path(a, b)?,
                mode: c as u32,
            },
            libc::SYS_getdents64 => Call::ListDirectory {
                file,
                length: self.answer(b, u64::from(c as u32))?,
            },
            libc::SYS_truncate => Call::SetLength {
                target: followed(self.here(a)?),
                length: b as i64,
            },
            libc::SYS_ftruncate => Call::SetLength {
                target: Target::Open(file),
                length: b as i64,
            },
            libc::SYS_fsync | libc::SYS_fdatasync => Call::Sync {
                file,
                data_only: number == libc::SYS_fdatasync,
            },
            libc::SYS_utimensat => self.set_times(a, b, c, d)?,
            libc::SYS_chmod => Call::SetMode {
                target: followed(self.here(a)?),
                mode: b as u32,
            },
            libc::SYS_fchmod => Call::SetMode {
                target: Target::Open(file),
                mode: b as u32,
            },
            libc::SYS_fchmodat => Call::SetMode {
                target: followed(self.path(a, b)?),
                mode: c as u32,
            },
            libc::SYS_umask => Call::Mask { mode: a as u32 },
            libc::SYS_dup => Call::Duplicate {
                file,
                to: None,
                least: 0,
                close_on_exec: false,
                distinct: false,
            },
            libc::SYS_dup2 => Call::Duplicate {
                file,
                to: Some(b as i32),
                least: 0,
                close_on_exec: false,
                distinct: false,
            },
            libc::SYS_dup3 => Call::Duplicate {
                file,
                to: Some(b as i32),
                least: 0,
                close_on_exec: c as i32 & libc::O_CLOEXEC != 0,
                distinct: true,
            },
            libc::SYS_fcntl => self.control(a, b, c)?,
            libc::SYS_flock => Call::LockWhole {
                file,
                operation: b as i32,
            },
            libc::SYS_getcwd => Call::GetDirectory {
                length: self.answer(a, b)?,
            },
            libc::SYS_chdir => Call::ChangeDirectory(followed(self.here(a)?)),
            libc::SYS_fchdir => Call::ChangeDirectory(Target::Open(file)),
            libc::SYS_ioctl => {
                let request = b as u32;
                // `struct termios` as the kernel has it, `struct winsize`.
                let size = match u64::from(request) {
                    libc::TCGETS => 36,
                    libc::TIOCGWINSZ => 8,
                    _ => 0,
                };
                let length = if size == 0 { 0 } else { self.answer(c, size)? };
                Call::Device {
                    file,
                    request,
                    length,
                }
            }
            libc::SYS_clock_gettime => self.time(a as i32, TimeForm::Timespec, b)?,
            libc::SYS_gettimeofday => self.time(libc::CLOCK_REALTIME, TimeForm::Timeval, a)?,
            libc::SYS_time => self.time(libc::CLOCK_REALTIME, TimeForm::Seconds, a)?,
            libc::SYS_clock_getres => {
                self.wanted(b, 16)?;
                Call::Resolution { clock: a as i32 }
            }
            libc::SYS_times => {
                self.wanted(a, 32)?;
                Call::Usage { rusage: false }
            }
            libc::SYS_getrusage => {
                self.answer(b, 144)?;
                Call::Usage { rusage: true }
            }
            libc::SYS_nanosleep => self.sleep(libc::CLOCK_MONOTONIC as u64, false, a)?,
            libc::SYS_clock_nanosleep => self.sleep(a, b as i32 & libc::TIMER_ABSTIME != 0, c)?,
            libc::SYS_sched_yield => Call::Yield,
            libc::SYS_getrandom => Call::Random {
                length: self.answer(a, b)?,
            },
            libc::SYS_getpid => Call::Identity(Identity::Process),
            libc::SYS_getppid => Call::Identity(Identity::Parent),
            libc::SYS_gettid => Call::Identity(Identity::Thread),
            libc::SYS_getpgrp => Call::Identity(Identity::Group),
            libc::SYS_getuid => Call::Identity(Identity::User),
            libc::SYS_geteuid => Call::Identity(Identity::EffectiveUser),
            libc::SYS_getgid => Call::Identity(Identity::UserGroup),
            libc::SYS_getegid => Call::Identity(Identity::EffectiveUserGroup),
            libc::SYS_uname => {
                self.answer(a, 390)?;
                Call::SystemName
            }
            libc::SYS_kill | libc::SYS_tkill => Call::Signal {
                to: file,
                signal: b as i32,
            },
            libc::SYS_tgkill => Call::Signal {
                to: b as i32,
                signal: c as i32,
            },
            _ => Call::Unknown { number, words },
        })
    }
}
