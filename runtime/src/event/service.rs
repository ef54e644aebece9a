//! What a handler may do for the threads that are attached to its domain's events: wake one, send
//! it something, make it nicer or less so. Any call of the domain may.
//!
//! None of these allocates, locks or waits: they may have interrupted a thread anywhere. The one
//! that does is no handler's in such a thread: it fills pages.

use super::state::EventState;
use super::trusted::kernel;
use super::trusted::slots::{ClientSlot, Count, Slots};
use crate::domain::Domain;
use crate::fork;
use crate::service::{Caller, Services};
use crate::value::Offset;
use postern_gates::machine;
use postern_gates::upcall::Posted;
use postern_verifier::window::PAGE;
use rustix::process::{Pid, setpriority_process};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

const CLIENT: &str = "__postern_upcall_client";
const WAKE: &str = "__postern_upcall_wake";
const SEND: &str = "__postern_upcall_send";
const NICE: &str = "__postern_upcall_nice";
const FILL: &str = "__postern_page_fill";

/// Whether the service with this name is one that an interrupted thread may be in.
pub(super) fn is_one(name: &str) -> bool {
    [CLIENT, WAKE, SEND, NICE].contains(&name)
}

/// Offers the service with this name, if it is one of them. Their results are those of
/// `<postern/upcall.h>`.
pub(crate) fn offer(services: &mut Services, name: &str, state: &Arc<EventState>) -> bool {
    let state = state.clone();
    match name {
        CLIENT => services.add(name, move |_: &Caller<'_>| {
            let mine = machine::thread_id();
            let clients = state.slots().map_or(&[][..], |slots| &slots.clients[..]);
            let place = clients.iter().position(|c| c.tid.load(SeqCst) == mine);
            let first = state.slots().map_or(0, |slots| slots.first());
            place.map_or(-libc::ENOENT, |place| (first as usize + place) as i32)
        }),
        WAKE => services.add(name, move |_: &Caller<'_>, client: u32| {
            match state.slots().is_some_and(|slots| slots.wake(client)) {
                true => 0,
                false => -libc::ESRCH,
            }
        }),
        SEND => services.add(
            name,
            move |_: &Caller<'_>, client: u32, event: u32, data: u64| {
                let slots = state.slots();
                match slots.map(|slots| send(slots, client, event, data)) {
                    Some(Some(Posted::Sent)) => 0,
                    Some(Some(Posted::Coalesced)) => 1,
                    Some(Some(Posted::Dropped)) => -libc::ENOBUFS,
                    Some(Some(Posted::Detached)) | None => -libc::ESRCH,
                    Some(None) => -libc::ENOENT,
                }
            },
        ),
        NICE => services.add(name, move |_: &Caller<'_>, client: u32, nice: i32| {
            let Some((client, tid)) = state.slots().and_then(|slots| thread_of(slots, client))
            else {
                return -libc::ESRCH;
            };
            if !client.niceness.load(SeqCst) {
                return -libc::EPERM;
            }
            // A thread that has ended without a word may have left its number to another process.
            let thread = Pid::from_raw(tid.cast_signed()).filter(|_| kernel::is_ours(tid));
            match thread.map(|thread| setpriority_process(Some(thread), nice.clamp(-20, 19))) {
                Some(Ok(())) => 0,
                Some(Err(error)) => -error.raw_os_error(),
                None => -libc::ESRCH,
            }
        }),
        FILL => services.add(name, move |caller: &Caller<'_>, page: u32, source: u32| {
            fill(&state, &caller.domain(), page, source)
        }),
        _ => return false,
    }
    true
}

/// Fills a page of an area that the domain watches with one of its memory. 0, or a negated errno.
fn fill(state: &EventState, domain: &Domain, page: u32, source: u32) -> i32 {
    let watches: Vec<_> = {
        let watches = fork::lock(&state.watches);
        watches.iter().filter_map(|watch| watch.upgrade()).collect()
    };
    let Some(watch) = watches.iter().find(|watch| watch.covers(page)) else {
        return -libc::EINVAL;
    };
    let pin = domain.0.instance.pin();
    if domain.check(Offset(source), PAGE as usize, false).is_err() {
        return -libc::EFAULT;
    }
    match watch.fill(page, pin.base() as usize + source as usize) {
        Ok(()) => 0,
        Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
    }
}

fn thread_of(slots: &Slots, client: u32) -> Option<(&ClientSlot, u32)> {
    let client = &slots.clients[slots.place(client)?];
    let tid = client.tid.load(SeqCst);
    (tid != 0).then_some((client, tid))
}

/// Puts an event into a client's queue; `None`: there is no such event.
pub(super) fn send(slots: &Slots, client: u32, event: u32, data: u64) -> Option<Posted> {
    let (_, priority) = slots.handler(event)?;
    let client = slots.place(client).map(|place| &slots.clients[place]);
    let Some(mailbox) = client.and_then(|client| client.mailbox.get()) else {
        return Some(Posted::Detached);
    };
    let posted = mailbox.post(event, data, priority);
    match posted {
        Posted::Coalesced => slots.count_number(event, Count::Coalesced),
        Posted::Dropped => slots.count_number(event, Count::Dropped),
        Posted::Sent | Posted::Detached => {}
    }
    Some(posted)
}
