//! What answers in the kernel for the service `net`: a handler of the archive's, with a page that
//! both see. It has the machine's addresses from there, and counts there what it has answered.

use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::records::run;
use postern_aegis::handler::{self, Handler};
use postern_aegis::{Error, memory};
use postern_exos_abi::network::{HANDLER, Place};
use postern_exos_load::archive;

use crate::memory::room;
use crate::net::inlet::Inlet;

/// Bytes of an image at most.
const IMAGE: u64 = 64 << 10;
/// Pages that a handler takes at most, with their tables.
const PAGES: u64 = 64;
/// Where the handler sees the page.
const SHARED: u64 = 0x10_0000;
/// Words of the page: addresses as they stand in frames, the first byte the lowest, and counts.
const HARDWARE: u64 = 0;
const ADDRESS: u64 = 8;
const COUNTS: [u64; 3] = [16, 24, 32];

/// A handler at work.
#[derive(Debug)]
pub struct Answers {
    handler: Handler,
    at: u64,
}

/// What a handler has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Questions for this machine's address that it has answered.
    pub questions: u64,
    /// Echoes.
    pub echoes: u64,
    /// Answers for which there was no room.
    pub unsent: u64,
}

impl Answers {
    /// The archive's handler, for endpoints whose frames go on to an inlet. `None`: the archive has
    /// none, or it cannot be had; then the service answers.
    pub fn load(inlet: &Inlet, endpoints: &[usize]) -> Option<Answers> {
        let file = archive::index_of(HANDLER).and_then(archive::nth)?;
        let length = usize::try_from(file.length.min(IMAGE)).ok()?;
        let mut image = Vec::new();
        image.try_reserve_exact(length).ok()?;
        image.resize(length, 0);
        file.read(0, &mut image).ok()?;
        room::ahead(PAGES).ok()?;
        let handler = handler::load(&image, 1).ok()?;
        Answers::begin(handler, inlet, endpoints).ok()
    }

    fn begin(mut handler: Handler, inlet: &Inlet, endpoints: &[usize]) -> Result<Answers, Error> {
        let at = memory::reserve(1);
        let mut begin = || {
            handler.share(SHARED, at)?;
            let mut all = endpoints.iter();
            all.try_for_each(|endpoint| inlet.direct(*endpoint, handler.number))
        };
        match begin() {
            Ok(()) => Ok(Answers { handler, at }),
            Err(error) => {
                handler.end();
                Err(error)
            }
        }
    }

    /// This machine is here. It answers from the moment on that the address is there, with the
    /// address of Ethernet that was there before.
    pub fn set(&self, place: &Place) {
        let [a, b, c, d, e, f] = place.hardware;
        let hardware = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
        memory::write(self.at + HARDWARE, hardware);
        let address = u32::from_le_bytes(place.address.octets());
        memory::write(self.at + ADDRESS, address.into());
    }

    /// Whether it answers still: a handler that breaks a rule is called no more.
    pub fn is_well(&self) -> bool {
        self.handler.record().ended.load(Relaxed) == run::WELL
    }

    /// What it has done.
    pub fn counts(&self) -> Counts {
        let [questions, echoes, unsent] = COUNTS.map(|offset| memory::read(self.at + offset));
        Counts {
            questions,
            echoes,
            unsent,
        }
    }
}
