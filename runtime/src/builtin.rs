//! The services that every domain is granted: their names begin with `__postern_`.
//!
//! Invariant: none of them gives an extension anything but ends of its own calls, what it was told
//! before, and sleep; and threads, if the host grants them.

use crate::event::service;
use crate::event::state::EventState;
use crate::own_threads::ThreadServices;
use crate::revoke;
use crate::service::{Caller, Services};
use crate::value::Offset;
use postern_gates::bulk::Function;
use postern_gates::{jump, peer};
use postern_image::ImportOwned;
use std::sync::Arc;

/// Offers those that the image imports.
pub(crate) fn offer(
    services: &mut Services,
    imports: &[ImportOwned],
    threads: &Arc<ThreadServices>,
    events: &Arc<EventState>,
) {
    let names = imports.iter().map(|import| &*import.name);
    for name in names.filter(|name| name.starts_with("__postern_")) {
        if threads.offer(services, name) || service::offer(services, name, events) {
            continue;
        }
        match name {
            "__postern_abort" => services.add(name, |caller: &Caller<'_>, message: Offset| {
                let domain = caller.domain();
                let text = domain.read_c_string(message, 4096);
                caller.abort(text.unwrap_or_else(|e| format!("(the message cannot be read: {e})")));
            }),
            "__postern_setjmp" => services.add(name, |caller: &Caller<'_>| {
                jump::mark().unwrap_or_else(|error| {
                    caller.abort(error.to_string());
                    0
                })
            }),
            "__postern_longjmp" => services.add(name, |caller: &Caller<'_>, depth: u32| {
                if let Err(error) = jump::jump(depth) {
                    caller.abort(error.to_string());
                }
            }),
            "__postern_peer_error" => {
                services.add(name, |_: &Caller<'_>| peer::error());
            }
            "__postern_return" => services.add(name, |caller: &Caller<'_>, depth: u32| {
                let found = jump::return_of(depth);
                found.unwrap_or_else(|error| {
                    caller.abort(error.to_string());
                    -1
                })
            }),
            "__postern_repossessed" => services.add(name, revoke::tell),
            _ => memory(services, name),
        }
    }
}

/// The memory gate's functions: what their slots lead to is no service, but they have a signature
/// and are counted like one.
fn memory(services: &mut Services, name: &str) {
    let never = |caller: &Caller<'_>| caller.abort("the memory gate was not reached");
    match Function::of(name) {
        Some(Function::Move) => services.add(
            name,
            move |c: &Caller<'_>, to: Offset, _: Offset, _: u64| {
                never(c);
                to
            },
        ),
        Some(Function::Fill) => {
            services.add(name, move |c: &Caller<'_>, to: Offset, _: i32, _: u64| {
                never(c);
                to
            })
        }
        Some(Function::Compare) => {
            services.add(name, move |c: &Caller<'_>, _: Offset, _: Offset, _: u64| {
                never(c);
                0i32
            })
        }
        Some(Function::Length) => services.add(name, move |c: &Caller<'_>, _: Offset, _: u64| {
            never(c);
            0u64
        }),
        Some(Function::Find) => {
            services.add(name, move |c: &Caller<'_>, _: Offset, _: i32, _: u64| {
                never(c);
                Offset(0)
            })
        }
        None => {}
    }
}
