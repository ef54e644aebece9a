//! The service `net`: <exos/net.h>.

use core::ffi::c_int;

use postern_exos_abi::errno;

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
