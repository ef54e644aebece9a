//! Handlers: extensions that run on each packet which a filter accepts, where it lies, and may
//! answer it or move its contents into an area of their own: the part of Exokernel's
//! application-specific safe handlers (section 6.3) that a user's process can have.
//!
//! Invariant: an answer leaves only if the call that made it returned without a fault.

use crate::filter::{ExtensionError, PacketFunction, entry};
use crate::packet::PacketRef;
use crate::source::Source;
use postern::{CallError, Caller, Domain, Image, Offset, Prot, RestartPolicy, Shared};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Answers of one call.
const MOST_ANSWERS: usize = 64;
/// Bytes of one answer.
const LONGEST: u32 = 1 << 16;

/// Frames that a call answers with.
#[derive(Debug, Default)]
pub struct Answers {
    frames: Vec<Vec<u8>>,
}

impl Answers {
    /// The frames, in the order in which they were made.
    pub fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.frames.iter().map(Vec::as_slice)
    }
}

type Outbox = Arc<Mutex<Answers>>;

fn lock(outbox: &Outbox) -> MutexGuard<'_, Answers> {
    outbox.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An extension that is attached to a filter.
pub struct Handler {
    domain: Domain,
    entry: PacketFunction,
    outbox: Outbox,
    calls: u64,
    faults: u64,
}

impl Handler {
    /// An extension that exports `int handle(const unsigned char *packet, unsigned length, unsigned
    /// wire_length)` and may import what `postern/packet.h` has. `area` is what it can move
    /// packets' contents to, and the host and others can read.
    ///
    /// # Errors
    /// It exports something else, wishes other services, or there is no room in its window.
    pub fn new(
        image: &Image,
        name: &str,
        area: Option<&Shared>,
    ) -> Result<Handler, ExtensionError> {
        let outbox = Outbox::default();
        let (answers, place) = (outbox.clone(), area.map(|area| (area.offset(), area.len())));
        let domain = Domain::builder(image)
            .name(name)
            .restart(RestartPolicy::Immediate)
            .service(
                "packet_send",
                move |caller: &Caller<'_>, frame: Offset, length: u32| {
                    let mut answers = lock(&answers);
                    if length > LONGEST || answers.frames.len() >= MOST_ANSWERS {
                        return -1i32;
                    }
                    match caller.domain().read_vec(frame, length as usize) {
                        Ok(bytes) => answers.frames.push(bytes),
                        Err(_) => return -1,
                    }
                    0
                },
            )
            .service("packet_area", move |caller: &Caller<'_>, size: Offset| {
                let (offset, bytes) = place.unwrap_or((Offset(0), 0));
                let told = caller.domain().write(size, &(bytes as u32).to_le_bytes());
                if let Err(error) = told {
                    caller.abort(error.to_string());
                }
                offset
            })
            .build()?;
        if let Some(area) = area {
            domain.share(area, Prot::ReadWrite)?;
        }
        let entry = entry(&domain, "handle")?;
        Ok(Handler {
            domain,
            entry,
            outbox,
            calls: 0,
            faults: 0,
        })
    }

    /// The domain that it runs in.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Maps a source's packets into the handler's window.
    ///
    /// # Errors
    /// There is no room for them.
    pub fn watch(&self, source: &mut Source) -> Result<(), ExtensionError> {
        Ok(source.watch(&self.domain)?)
    }

    /// Runs on a packet: whether it takes it, and what it answers.
    ///
    /// # Errors
    /// A fault, with its place; there are no answers then, and the next call finds the handler as
    /// it was at first.
    pub fn run(&mut self, seen: &PacketRef) -> Result<(bool, Answers), CallError> {
        self.calls += 1;
        let result = self.entry.call(seen.at, seen.captured, seen.wire);
        let answers = std::mem::take(&mut *lock(&self.outbox));
        self.faults += u64::from(result.is_err());
        Ok((result? != 0, answers))
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Calls that ended with an error.
    pub fn faults(&self) -> u64 {
        self.faults
    }
}
