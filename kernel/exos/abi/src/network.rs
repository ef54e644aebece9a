//! What the service `net` says of this machine's network, in a page that all read: its address, and
//! who is where. The service's words are the page's number and the capability to read it.
//!
//! Words are whole each. Who reads an address of Ethernet looks at the word before it, too: both
//! are stored anew when a place gets another neighbour.

use core::net::Ipv4Addr;
use core::sync::atomic::{
    AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// The service's name.
pub const NAME: &[u8] = b"net";

/// The archive's file with the handler that answers in the kernel; without it the service does.
pub const HANDLER: &[u8] = b"net.handler";

/// Neighbours that there are at most.
pub const NEIGHBOURS: usize = 128;

/// Servers that are asked for names, at most.
pub const SERVERS: usize = 3;

/// Values of [`Page::state`].
pub mod state {
    /// There is no network.
    pub const NONE: u32 = 0;
    /// An address is asked for.
    pub const ASKS: u32 = 1;
    /// There is one.
    pub const HAS: u32 = 2;
    /// Somebody else has the address, too.
    pub const CONFLICT: u32 = 3;
}

/// Where [`Page::counters`] count what.
pub mod counter {
    /// Messages of ARP that came.
    pub const ARP: usize = 0;
    /// Questions that were sent for neighbours.
    pub const ASKED: usize = 1;
    /// Of those, without an answer.
    pub const SILENT: usize = 2;
    /// Messages of somebody who says that it has this machine's address.
    pub const CONFLICTS: usize = 3;
    /// Neighbours that have another address of Ethernet than before.
    pub const MOVED: usize = 4;
    /// Addresses that were had of a server, renewals among them.
    pub const LEASES: usize = 5;
    /// Frames that make no sense.
    pub const MALFORMED: usize = 6;
    /// Neighbours for whom there was no place.
    pub const REFUSED: usize = 7;
    /// Echoes that were answered.
    pub const ECHOES: usize = 8;
    /// Who was told that nobody is there.
    pub const CLOSED: usize = 9;
    /// Datagrams that came in pieces, and were put together.
    pub const JOINED: usize = 10;
    /// Frames that the service has looked at.
    pub const FRAMES: usize = 11;
    /// Echoes that a handler answered in the kernel.
    pub const HANDLER_ECHOES: usize = 12;
    /// Questions for this machine's address that a handler answered in the kernel.
    pub const HANDLER_ANSWERS: usize = 13;
    /// Answers that the handler had, and the device no room for.
    pub const HANDLER_UNSENT: usize = 14;
    /// How many there are.
    pub const COUNT: usize = 16;
}

/// A neighbour.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Neighbour {
    /// Its address, the first byte the highest of the lower half; 0: none.
    address: AtomicU64,
    /// Its address of Ethernet, the first byte the highest of 48 bits, below 16 bits of the
    /// address.
    hardware: AtomicU64,
}

impl Neighbour {
    /// Who it is: its addresses of IP and of Ethernet.
    pub fn get(&self) -> Option<(Ipv4Addr, [u8; 6])> {
        let address = self.address.load(Acquire) as u32;
        let hardware = self.hardware.load(Acquire);
        let fits = address as u16 == (hardware >> 48) as u16 && address != 0;
        let [_, _, bytes @ ..] = hardware.to_be_bytes();
        fits.then(|| (Ipv4Addr::from(address), bytes))
    }

    /// Another one, or nobody.
    pub fn set(&self, who: Option<(Ipv4Addr, [u8; 6])>) {
        if self.get() == who {
            return;
        }
        self.address.store(0, Release);
        if let Some((address, [a, b, c, d, e, f])) = who {
            let address = u32::from(address);
            let hardware = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
            let word = hardware | u64::from(address as u16) << 48;
            self.hardware.store(word, Release);
            self.address.store(address.into(), Release);
        }
    }
}

/// The page.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct Page {
    /// [`VERSION`](crate::VERSION) of who writes this.
    pub version: AtomicU32,
    /// [`state`].
    pub state: AtomicU32,
    /// How often what stands above the neighbours has begun to change or was changed: odd while it
    /// does.
    pub changes: AtomicU64,
    /// This machine's address; 0: none.
    pub address: AtomicU32,
    /// Bits of it that its network has in common.
    pub bits: AtomicU32,
    /// Who forwards to other networks; 0: nobody.
    pub gateway: AtomicU32,
    /// Unused.
    pub reserved: AtomicU32,
    /// Servers that are asked for names; 0: none.
    pub servers: [AtomicU32; 4],
    /// This machine's address of Ethernet, the first byte the highest of 48 bits.
    pub hardware: AtomicU64,
    /// When the address is to be given up, in cycles of the processors' counter; 0: never.
    pub until: AtomicU64,
    /// Counts: [`counter`].
    pub counters: [AtomicU64; counter::COUNT],
    /// Who is where.
    pub neighbours: [Neighbour; NEIGHBOURS],
    /// Unused.
    pub rest: [AtomicU64; 230],
}

const _: () = assert!(core::mem::size_of::<Page>() == 4096);

/// What the page says above the neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// [`state`].
    pub state: u32,
    /// This machine's address.
    pub address: Ipv4Addr,
    /// Bits of it that its network has in common.
    pub bits: u8,
    /// Who forwards to other networks.
    pub gateway: Option<Ipv4Addr>,
    /// Servers that are asked for names.
    pub servers: [Option<Ipv4Addr>; SERVERS],
    /// This machine's address of Ethernet.
    pub hardware: [u8; 6],
}

/// Looks at a page that changes meanwhile, before it is given up.
const LOOKS: u32 = 1 << 16;

fn some(word: u32) -> Option<Ipv4Addr> {
    (word != 0).then(|| Ipv4Addr::from(word))
}

impl Page {
    /// Where this machine is.
    pub fn place(&self) -> Option<Place> {
        for _ in 0..LOOKS {
            let before = self.changes.load(Acquire);
            let [_, _, hardware @ ..] = self.hardware.load(Relaxed).to_be_bytes();
            let server = |index: usize| some(self.servers[index].load(Relaxed));
            let place = Place {
                state: self.state.load(Relaxed),
                address: Ipv4Addr::from(self.address.load(Relaxed)),
                bits: self.bits.load(Relaxed) as u8,
                gateway: some(self.gateway.load(Relaxed)),
                servers: [server(0), server(1), server(2)],
                hardware,
            };
            core::sync::atomic::fence(Acquire);
            if before.is_multiple_of(2) && self.changes.load(Relaxed) == before {
                return Some(place);
            }
            core::hint::spin_loop();
        }
        None
    }

    /// This machine is there. For who writes the page.
    pub fn set_place(&self, place: &Place) {
        if self.place().as_ref() == Some(place) {
            return;
        }
        let word = |address: Option<Ipv4Addr>| address.map_or(0, u32::from);
        let [a, b, c, d, e, f] = place.hardware;
        self.changes.fetch_add(1, Relaxed);
        core::sync::atomic::fence(Release);
        self.state.store(place.state, Relaxed);
        self.address.store(place.address.into(), Relaxed);
        self.bits.store(place.bits.into(), Relaxed);
        self.gateway.store(word(place.gateway), Relaxed);
        for (to, server) in self.servers.iter().zip(place.servers) {
            to.store(word(server), Relaxed);
        }
        let hardware = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        self.hardware.store(hardware, Relaxed);
        self.changes.fetch_add(1, Release);
    }

    /// The address of Ethernet of a neighbour.
    pub fn find(&self, address: Ipv4Addr) -> Option<[u8; 6]> {
        let mut all = self.neighbours.iter().filter_map(Neighbour::get);
        all.find(|(other, _)| *other == address)
            .map(|(_, hardware)| hardware)
    }
}

/// What the service is asked: the first of five words, with the version in its upper half.
pub mod asks {
    /// Somebody is to be found: an address. The answer's first word is 0, and the page says who it
    /// is when it is known.
    pub const NEIGHBOUR: u64 = 1;
    /// The address is to be asked for anew.
    pub const AGAIN: u64 = 2;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_is_read_as_it_was_written() {
        let neighbour = Neighbour::default();
        assert_eq!(neighbour.get(), None);
        for last in [0, 1, 255] {
            let who = Some((Ipv4Addr::new(10, 0, 2, last), [0x52, 0x54, 0, 1, 2, last]));
            neighbour.set(who);
            assert_eq!(neighbour.get(), who);
        }
        neighbour.set(None);
        assert_eq!(neighbour.get(), None);
    }
}
