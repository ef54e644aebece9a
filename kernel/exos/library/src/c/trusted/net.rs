//! The service `net`: <exos/net.h>.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::books;
use postern_exos_abi::errno;
use postern_exos_abi::network::counter;

use crate::c::trusted::answer;
use crate::net::{place, service};

/// `struct exos_network`.
#[repr(C)]
struct Network {
    state: u32,
    bits: u32,
    address: [u8; 4],
    gateway: [u8; 4],
    servers: [[u8; 4]; 3],
    hardware: [u8; 6],
    reserved: [u8; 2],
}

#[unsafe(no_mangle)]
extern "C" fn exos_net_serve() -> c_int {
    answer(service::run().map(|()| 0))
}

#[unsafe(no_mangle)]
extern "C" fn exos_net(to: &mut Network) -> c_int {
    let place = place::page().and_then(|page| page.place().ok_or(errno::AGAIN));
    answer(place.map(|place| {
        *to = Network {
            state: place.state,
            bits: place.bits.into(),
            address: place.address.octets(),
            gateway: place.gateway.map_or([0; 4], |gateway| gateway.octets()),
            servers: place
                .servers
                .map(|server| server.map_or([0; 4], |server| server.octets())),
            hardware: place.hardware,
            reserved: [0; 2],
        };
        0
    }))
}

/// Counts of the kernel's.
const KERNELS: [&CStr; 4] = [
    c"frames that arrived",
    c"frames that nobody wanted",
    c"frames that were sent",
    c"nonsense of the device",
];

/// What the service counts, as [`counter`] has it.
const SERVICES: [(usize, &CStr); 15] = [
    (counter::FRAMES, c"frames that the service looked at"),
    (counter::MALFORMED, c"of those, malformed"),
    (counter::ARP, c"messages of ARP"),
    (counter::ASKED, c"questions for neighbours"),
    (counter::SILENT, c"questions without an answer"),
    (counter::REFUSED, c"neighbours without a place"),
    (counter::MOVED, c"neighbours that moved"),
    (counter::CONFLICTS, c"claims of this address"),
    (counter::LEASES, c"leases"),
    (counter::ECHOES, c"echoes answered by the service"),
    (counter::HANDLER_ECHOES, c"echoes answered in the kernel"),
    (
        counter::HANDLER_ANSWERS,
        c"questions answered in the kernel",
    ),
    (
        counter::HANDLER_UNSENT,
        c"answers without room in the kernel",
    ),
    (counter::CLOSED, c"told that nobody is there"),
    (counter::JOINED, c"datagrams put together"),
];

#[unsafe(no_mangle)]
extern "C" fn exos_net_count(index: c_int, count: &mut u64) -> *const c_char {
    let found = usize::try_from(index).ok().and_then(|index| {
        let network = &books::machine().network;
        let kernels = [
            &network.arrived,
            &network.unclaimed,
            &network.sent,
            &network.nonsense,
        ];
        if let (Some(name), Some(word)) = (KERNELS.get(index), kernels.get(index)) {
            return Some((*name, word.load(Relaxed)));
        }
        let (at, name) = SERVICES.get(index - KERNELS.len())?;
        let word = place::page().ok()?.counters.get(*at)?;
        Some((*name, word.load(Relaxed)))
    });
    let Some((name, value)) = found else {
        return ptr::null();
    };
    *count = value;
    name.as_ptr()
}
