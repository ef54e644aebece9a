//! Bytes at addresses that no reference of Rust covers, and functions that programs call.

use core::ptr;

use postern_aegis::memory::FIRST;
use postern_aegis::{PAGE, println};
use postern_exos_abi::errno;
use postern_gates::callee::Callee;
use postern_gates::{outcome, shim};
use postern_image::Signature;

use crate::extension;
use crate::web::calls;

/// Whether a range is what [`postern_aegis::memory::reserve`] gave, in one page.
fn serves(at: u64, length: usize) -> bool {
    at >= FIRST && (at % PAGE as u64) as usize + length <= PAGE
}

/// Copies bytes to where a page of the server's own is bound. Nothing, if they are not in one page.
pub fn copy_in(at: u64, from: &[u8]) {
    if serves(at, from.len()) {
        // SAFETY: addresses that were reserved are no image's and no reference's, and the range is in one
        // page, which the caller has bound to be written. A device may read it meanwhile.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), at as *mut u8, from.len()) }
    }
}

/// Copies bytes from where a page is bound, whoever writes it meanwhile. Nothing, if they are not in
/// one page.
pub fn copy_out(to: &mut [u8], at: u64) {
    if serves(at, to.len()) {
        // SAFETY: as above; the page is bound to be read. What another process stores there meanwhile
        // makes other bytes of these, and nothing else.
        unsafe { ptr::copy_nonoverlapping(at as *const u8, to.as_mut_ptr(), to.len()) }
    }
}

extern "C" fn hand_over(size: u64) -> i64 {
    if calls::hand_over(size) { 0 } else { -1 }
}

extern "C" fn more() -> i64 {
    0
}

extern "C" fn log(text: u32, size: u64) {
    let mut bytes = [0; 256];
    let length = size.min(bytes.len() as u64) as usize;
    let bytes = bytes.get_mut(..length).unwrap_or_default();
    if extension::read_caller(text, bytes) {
        println!("www: {}", bytes.escape_ascii());
    }
}

/// Nobody else is in a domain that could be waited for, or that waits.
extern "C" fn wait(_: u32, _: u32, _: i64) -> i32 {
    0
}

extern "C" fn wake(_: u32, _: u32) -> i32 {
    0
}

extern "C" fn thread_start(_: u32, _: u32) -> i32 {
    -errno::AGAIN.0
}

extern "C" fn thread_exit(_: u32, _: u32) {
    shim::end_when_back(outcome::ABORT, 0, Some("it ended its thread".into()));
}

/// System calls: there are none.
extern "C" fn system(number: i64, _: u64, _: u64, _: u64, _: u64, _: u64) -> i64 {
    const EXIT: [i64; 2] = [60, 231];
    if EXIT.contains(&number) {
        shim::end_when_back(outcome::ABORT, 0, Some("it ended itself".into()));
    }
    -i64::from(errno::NOSYS.0)
}

/// What programs behind paths may call: names, functions, types.
pub fn services() -> [(&'static str, Callee, &'static str); 8] {
    let of = |function: *const (), types: &str| {
        let types: Option<Signature> = types.parse().ok();
        let parameters = types.map_or([].as_slice().to_vec(), |types| types.parameters().to_vec());
        // SAFETY: functions of this file of just these types, which take any words, return, and panic
        // into the end of the process.
        unsafe { extension::service(function.cast(), &parameters) }
    };
    [
        ("libcgi_hand_over", hand_over as *const (), "l(L)"),
        ("libcgi_more", more as *const (), "l()"),
        ("libcgi_log", log as *const (), "v(pL)"),
        ("__postern_wait", wait as *const (), "i(pIl)"),
        ("__postern_wake", wake as *const (), "i(pI)"),
        ("__postern_thread_start", thread_start as *const (), "i(pp)"),
        ("__postern_thread_exit", thread_exit as *const (), "v(pI)"),
        ("sys", system as *const (), "l(lLLLLL)"),
    ]
    .map(|(name, function, types)| (name, of(function, types), types))
}
