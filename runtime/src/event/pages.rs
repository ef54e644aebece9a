//! Pages that miss, of an area that is watched.
//!
//! Whoever touches one sleeps in the kernel. A thread of the subscription's own reads which, and
//! writes the address to a pipe, which is the event's descriptor. What the dispatcher itself
//! touches it fills with zeros at once: so a handler, and a service that it calls, never waits for
//! itself.

use super::error::{EventError, system};
use super::state::EventState;
use super::trusted::slots::Slots;
use crate::domain::Domain;
use crate::fork;
use crate::share::Shared;
use crate::share::watch::Watch;
use crate::value::Offset;
use postern_gates::mask::SignalsBlocked;
use postern_gates::signal;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// Of the kernel's pages and of the areas'.
const PAGE: usize = 4096;

/// An area is watched until this is dropped.
pub(super) struct Pages {
    watch: Arc<Watch>,
    tells: Arc<OwnedFd>,
    end: Arc<OwnedFd>,
    process: u64,
}

impl Pages {
    /// With the descriptor that is to be waited for.
    pub(super) fn new(shared: &Shared) -> Result<(Pages, OwnedFd), EventError> {
        let watch = Watch::begin(shared).map_err(|error| match error.kind() {
            ErrorKind::ResourceBusy => EventError::Watched(shared.name().to_owned()),
            _ => EventError::Pages {
                area: shared.name().to_owned(),
                reason: error.to_string(),
            },
        })?;
        let failed = || system("watch an area");
        let pipe = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
        let (told, tells) = pipe.map_err(|e| failed()(e.into()))?;
        let end = eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| failed()(e.into()))?;
        let pages = Pages {
            watch,
            tells: Arc::new(tells),
            end: Arc::new(end),
            process: fork::process(),
        };
        Ok((pages, told))
    }

    pub(super) fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// Tells what is touched from now on, in the domain's window, too.
    pub(super) fn begin(&self, domain: &Domain, slots: &Arc<Slots>) -> Result<(), EventError> {
        let (watch, tells) = (self.watch.clone(), self.tells.clone());
        let (end, slots) = (self.end.clone(), slots.clone());
        {
            let _signals = SignalsBlocked::new();
            let thread = std::thread::Builder::new().name("postern-pages".into());
            let spawned = thread.spawn(move || {
                signal::take_only_ours();
                tell(&watch, &tells, &end, &slots);
            });
            spawned.map_err(system("start the thread that reads which pages miss"))?;
        }
        let mut watches = fork::lock(&domain.0.events.watches);
        watches.retain(|watch| watch.strong_count() != 0);
        watches.push(Arc::downgrade(&self.watch));
        drop(watches);
        domain.0.instance.watch_areas();
        Ok(())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // What a forked child has of it is the parent's.
        if self.process == fork::process() {
            self.watch.end();
            let _ = rustix::io::write(&*self.end, &1u64.to_ne_bytes());
        }
    }
}

fn tell(watch: &Watch, tells: &OwnedFd, end: &OwnedFd, slots: &Slots) {
    loop {
        let mut waits = [
            PollFd::from_borrowed_fd(watch.descriptor(), PollFlags::IN),
            PollFd::new(end, PollFlags::IN),
        ];
        let _ = poll(&mut waits, None);
        if !waits[1].revents().is_empty() {
            return;
        }
        while let Some((address, thread)) = watch.next() {
            let mine = thread == slots.dispatcher.load(SeqCst);
            let bytes = (address as u64).to_ne_bytes();
            // A full pipe has thousands of them: these are zeros rather than told late.
            if mine || rustix::io::write(tells, &bytes) != Ok(bytes.len()) {
                watch.settle(address);
            }
        }
    }
}

/// Fills a page of an area that the domain watches from another one of its memory. 0, or a negated
/// errno.
pub(super) fn fill(state: &EventState, domain: &Domain, page: u32, source: u32) -> i32 {
    let watches = fork::lock(&state.watches).clone();
    let mut watches = watches.iter().filter_map(|watch| watch.upgrade());
    let of = |watch: &Arc<Watch>| {
        let area = watch.area();
        (area.start..area.end).contains(&page) && watch.is_on()
    };
    let Some(watch) = watches.find(of) else {
        return -libc::EINVAL;
    };
    let pin = domain.0.instance.pin();
    if domain.check(Offset(source), PAGE, false).is_err() {
        return -libc::EFAULT;
    }
    let from = pin.base() as usize + source as usize;
    match watch.fill(page, from) {
        Ok(()) => 0,
        // It has ended just now.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => -libc::EINVAL,
        Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
    }
}
