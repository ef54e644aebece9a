//! Does what was decoded and granted: to streams and open files by their descriptors, to paths
//! below granted directories.

mod found;
mod paths;
mod work;

use super::compute;
use super::descriptors::Open;
use super::file::Directory;
use super::policy::{Base, Policy};
use super::state::System;
use crate::Call;
use postern_runtime::Caller;
use postern_runtime::system::{Answer, Done, Failure};
use rustix::io::Errno;
use std::sync::Arc;
use work::{PERMISSIONS, Work};

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
