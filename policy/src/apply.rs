//! Does what was decoded and granted: to streams and open files by their descriptors, to paths
//! below granted directories.

mod found;
mod paths;

use super::descriptors::Open;
use super::file::{Directory, WriteBudget};
use super::{Answer, Base, Done, Failure, Policy, System, compute};
use crate::{Call, LockAction};
use postern_runtime::Caller;
use rustix::io::Errno;
use std::sync::Arc;

/// Permissions that an extension can give: no set-user-id and its kin.
const PERMISSIONS: u32 = 0o777;

/// A call being done.
struct Work<'a> {
    system: &'a System,
    policy: &'a Arc<Policy>,
}

/// Does a call that the host, if it was asked, allowed.
pub(super) fn apply(
    system: &System,
    policy: &Arc<Policy>,
    caller: &Caller<'_>,
    call: &Call,
) -> Answer {
    if policy.base == Base::None {
        return Err(Failure::Refused(Errno::PERM));
    }
    let work = Work { system, policy };
    match call {
        Call::Read { file, at, length } => match &*work.open(*file)? {
            Open::Stream(stream) if at.is_none() => stream.read(*length),
            Open::Stream(_) => Err(Errno::SPIPE.into()),
            Open::File(file) => file.read(*at, *length),
            Open::Directory(_) => Err(Errno::ISDIR.into()),
        },
        Call::Write { file, at, bytes } => match &*work.open(*file)? {
            Open::Stream(stream) if at.is_none() => stream.write(bytes),
            Open::Stream(_) => Err(Errno::SPIPE.into()),
            Open::File(file) => file.write(*at, bytes, &work.room()),
            Open::Directory(_) => Err(Errno::BADF.into()),
        },
        Call::Close { file } => work.close(*file),
        Call::Seek {
            file,
            offset,
            whence,
        } => match &*work.open(*file)? {
            Open::Stream(_) => Err(Errno::SPIPE.into()),
            Open::File(file) => file.seek(*offset, *whence),
            Open::Directory(directory) => directory.seek(*offset, *whence),
        },
        Call::Sync { file, data_only } => match &*work.open(*file)? {
            Open::File(file) => file.sync(*data_only),
            Open::Directory(Directory {
                file: Some(file), ..
            }) => {
                rustix::fs::fsync(file)?;
                Ok(Done::value(0))
            }
            _ => Err(Errno::INVAL.into()),
        },
        Call::ListDirectory { file, length } => match &*work.open(*file)? {
            Open::Directory(directory) => directory.list(*length),
            _ => Err(Errno::NOTDIR.into()),
        },
        Call::Device { file, request, .. } => match &*work.open(*file)? {
            Open::Stream(stream) => stream.device(*request),
            _ => Err(Errno::NOTTY.into()),
        },
        Call::Duplicate {
            file,
            to,
            least,
            close_on_exec,
            distinct,
        } => {
            if *distinct && *to == Some(*file) {
                return Err(Errno::INVAL.into());
            }
            work.duplicate(*file, *to, *least, *close_on_exec)
        }
        Call::DescriptorFlags { file, set } => work.descriptor_flags(*file, *set),
        Call::StatusFlags { file, set } => work.status_flags(*file, *set),
        Call::Lock {
            file,
            action,
            kind,
            whence,
            start,
            length,
        } => work.lock(*file, *action, *kind, (*whence, *start, *length)),
        Call::LockWhole { file, operation } => match &*work.open(*file)? {
            Open::File(file) => file.lock_whole(*operation),
            _ => Err(Errno::INVAL.into()),
        },
        Call::Mask { mode } => {
            let mut state = system.state();
            let before = std::mem::replace(&mut state.table.mask, mode & PERMISSIONS);
            Ok(Done::value(before.into()))
        }
        Call::Open { path, flags, mode } => work.open_path(path, *flags, *mode),
        Call::Stat(target) => work.stat(target),
        Call::Access { path, mode } => work.access(path, *mode),
        Call::ReadLink { path, length } => work.read_link(path, *length),
        Call::Remove { path, directory } => work.remove(path, *directory),
        Call::Rename { from, to, flags } => work.rename(from, to, *flags),
        Call::Link { from, to } => work.link(from, to),
        Call::SymbolicLink { text, path } => work.symbolic_link(text, path),
        Call::MakeDirectory { path, mode } => work.make_directory(path, *mode),
        Call::SetLength { target, length } => work.set_length(target, *length),
        Call::SetTimes {
            target,
            access,
            modification,
        } => work.set_times(target, *access, *modification),
        Call::SetMode { target, mode } => work.set_mode(target, *mode),
        Call::GetDirectory { length } => work.get_directory(*length),
        Call::ChangeDirectory(target) => work.change_directory(target),
        _ => compute::apply(caller, call),
    }
}

impl<'a> Work<'a> {
    fn room(&self) -> WriteBudget<'a> {
        WriteBudget {
            written: &self.system.written,
            most: self.policy.rules.written,
            file_size: self.policy.rules.file_size,
        }
    }

    fn open(&self, file: i32) -> Result<Arc<Open>, Errno> {
        self.system.state().table.get(file)
    }

    /// Adds an open file, unless the policy that granted it is over.
    fn add(&self, open: Open, close_on_exec: bool) -> Answer {
        let open = Arc::new(open);
        let mut state = self.system.state();
        let over = |open: &Open| match open.from() {
            Some(granted) => !state.policy.rules.has(granted),
            None => true,
        };
        if !Arc::ptr_eq(&state.policy, self.policy) && over(&open) {
            drop(state);
            return Err(Failure::Refused(Errno::ACCESS));
        }
        // The reference kept here is the last one if there is no room, and it is dropped after the
        // lock.
        let number = state.table.add(open.clone(), 0, close_on_exec);
        drop(state);
        Ok(Done::value(number?.into()))
    }

    fn close(&self, file: i32) -> Answer {
        let open = self.system.state().table.remove(file)?;
        self.unlock(&open);
        Ok(Done::value(0))
    }

    /// As in POSIX, closing any descriptor of a file gives back all of the domain's locks on it.
    fn unlock(&self, open: &Open) {
        let Open::File(file) = open else { return };
        let holder = self.system.state().table.locks.remove(&file.identity);
        if let Some(Open::File(holder)) = holder.as_deref() {
            holder.unlock();
        }
    }

    fn duplicate(&self, file: i32, to: Option<i32>, least: i32, close_on_exec: bool) -> Answer {
        let mut state = self.system.state();
        let open = state.table.get(file)?;
        let Some(to) = to else {
            let number = state.table.add(open, least, close_on_exec)?;
            return Ok(Done::value(number.into()));
        };
        if to == file {
            return Ok(Done::value(to.into()));
        }
        let closed = state.table.put(to, open, close_on_exec)?;
        drop(state);
        if let Some(closed) = closed {
            self.unlock(&closed);
        }
        Ok(Done::value(to.into()))
    }

    fn descriptor_flags(&self, file: i32, set: Option<i32>) -> Answer {
        let mut state = self.system.state();
        let close_on_exec = state.table.close_on_exec(file)?;
        match set {
            Some(flags) => {
                *close_on_exec = flags & libc::FD_CLOEXEC != 0;
                Ok(Done::value(0))
            }
            None => Ok(Done::value(i64::from(*close_on_exec))),
        }
    }

    fn status_flags(&self, file: i32, set: Option<i32>) -> Answer {
        let open = self.open(file)?;
        let Some(flags) = set else {
            return Ok(Done::value(open.status().get().into()));
        };
        if let Open::File(file) = &*open {
            file.set_append(flags & libc::O_APPEND != 0)?;
        }
        open.status().set(flags);
        Ok(Done::value(0))
    }

    fn lock(
        &self,
        file: i32,
        action: LockAction,
        kind: i16,
        (whence, start, length): (i16, i64, i64),
    ) -> Answer {
        let open = self.open(file)?;
        let Open::File(file) = &*open else {
            return Err(Errno::INVAL.into());
        };
        let (start, length) = file.range(whence, start, length)?;
        // The first description that locks a file holds all of the domain's locks on it, as a
        // process would.
        let holder = {
            let mut state = self.system.state();
            let holder = state.table.locks.entry(file.identity);
            holder.or_insert_with(|| open.clone()).clone()
        };
        match &*holder {
            Open::File(holder) => match holder.lock(action, kind, start, length) {
                // The holder was opened for less than this one.
                Err(Failure::Error(Errno::BADF)) if !std::ptr::eq(holder, file) => {
                    Err(Errno::NOLCK.into())
                }
                answer => answer,
            },
            _ => Err(Errno::INVAL.into()),
        }
    }
}
