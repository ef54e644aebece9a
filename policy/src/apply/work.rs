//! A call being done: what it needs of its domain, and calls about descriptors.

use crate::LockAction;
use crate::descriptors::Open;
use crate::file::WriteBudget;
use crate::policy::Policy;
use crate::state::System;
use postern_runtime::system::{Answer, Done, Failure};
use rustix::io::Errno;
use std::sync::Arc;

/// Permissions that an extension can give: no set-user-id and its kin.
pub(super) const PERMISSIONS: u32 = 0o777;

/// A call being done.
pub(super) struct Work<'a> {
    pub(super) system: &'a System,
    pub(super) policy: &'a Arc<Policy>,
}

impl<'a> Work<'a> {
    pub(super) fn room(&self) -> WriteBudget<'a> {
        WriteBudget {
            written: &self.system.written,
            most: self.policy.rules.written,
            file_size: self.policy.rules.file_size,
        }
    }

    pub(super) fn open(&self, file: i32) -> Result<Arc<Open>, Errno> {
        self.system.state().table.get(file)
    }

    /// Adds an open file, unless the policy that granted it is over.
    pub(super) fn add(&self, open: Open, close_on_exec: bool) -> Answer {
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

    pub(super) fn close(&self, file: i32) -> Answer {
        let open = self.system.state().table.remove(file)?;
        self.unlock(&open);
        Ok(Done::value(0))
    }

    /// As in POSIX, closing any descriptor of a file gives back all of the domain's locks on it.
    pub(super) fn unlock(&self, open: &Open) {
        let Open::File(file) = open else { return };
        let holder = self.system.state().table.locks.remove(&file.identity);
        if let Some(Open::File(holder)) = holder.as_deref() {
            holder.unlock();
        }
    }

    pub(super) fn duplicate(
        &self,
        file: i32,
        to: Option<i32>,
        least: i32,
        close_on_exec: bool,
    ) -> Answer {
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

    pub(super) fn descriptor_flags(&self, file: i32, set: Option<i32>) -> Answer {
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

    pub(super) fn status_flags(&self, file: i32, set: Option<i32>) -> Answer {
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

    pub(super) fn lock(
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
