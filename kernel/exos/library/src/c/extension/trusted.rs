//! The functions of `<exos/extension.h>`. Handles are pointers that the host got here and has not
//! given back; whatever else it gives is used before a function returns.

mod faults;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{null, null_mut};
use core::slice;
use core::sync::atomic::Ordering::Relaxed;

use postern_gates::{outcome, shim};
use postern_image::Signature;

use super::{CODE, SENTENCE, code, fail, wrong};
use crate::extension::{self, Domain, Image, Options};

unsafe extern "C" {
    fn open(name: *const c_char, flags: c_int, ...) -> c_int;
    fn read(descriptor: c_int, to: *mut c_void, length: usize) -> isize;
    fn close(descriptor: c_int) -> c_int;
}

/// Text of the host's; `None` for NULL and for what is not UTF-8.
///
/// # Safety
/// NULL, or a string that stays for as long as the caller uses it.
unsafe fn text<'a>(string: *const c_char) -> Option<&'a str> {
    if string.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(string) }.to_str().ok()
}

fn argument() -> c_int {
    fail(
        code::ARGUMENT,
        "an argument is NULL, not UTF-8, out of range, or no signature",
    )
}

/// The last error's sentence, or "".
#[unsafe(no_mangle)]
extern "C" fn pt_error_message() -> *const c_char {
    let kept = SENTENCE.lock().unwrap_or_else(|never| never.into_inner());
    kept.as_ref()
        .map_or(c"".as_ptr(), |sentence| sentence.as_ptr())
}

/// Its code.
#[unsafe(no_mangle)]
extern "C" fn pt_error_code() -> c_int {
    CODE.load(Relaxed)
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_image_from_memory(bytes: *const u8, length: usize) -> *const Image {
    if bytes.is_null() {
        argument();
        return null();
    }
    // SAFETY: the caller's bytes.
    let bytes = unsafe { slice::from_raw_parts(bytes, length) };
    image(bytes)
}

fn image(bytes: &[u8]) -> *const Image {
    match Image::load(bytes) {
        Ok(image) => Arc::into_raw(image),
        Err(error) => {
            wrong(&error);
            null()
        }
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_image_load(path: *const c_char) -> *const Image {
    const STEP: usize = 4096;
    if path.is_null() {
        argument();
        return null();
    }
    // SAFETY: C's functions, with a string of the caller's and memory of our own.
    unsafe {
        let file = open(path, 0);
        if file < 0 {
            fail(code::FILE, "the file cannot be opened");
            return null();
        }
        let mut bytes = alloc::vec::Vec::new();
        let done = loop {
            let at = bytes.len();
            bytes.resize(at + STEP, 0);
            let count = read(file, bytes[at..].as_mut_ptr().cast(), STEP);
            bytes.truncate(at + count.max(0) as usize);
            if count <= 0 {
                break count == 0;
            }
        };
        close(file);
        if !done {
            fail(code::FILE, "the file cannot be read");
            return null();
        }
        image(&bytes)
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_image_free(image: *const Image) -> c_int {
    if image.is_null() {
        return argument();
    }
    // SAFETY: a handle.
    drop(unsafe { Arc::from_raw(image) });
    0
}

#[unsafe(no_mangle)]
extern "C" fn pt_options_new() -> *mut Options {
    Box::into_raw(Box::default())
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_options_free(options: *mut Options) -> c_int {
    if options.is_null() {
        return argument();
    }
    // SAFETY: a handle.
    drop(unsafe { Box::from_raw(options) });
    0
}

/// Does something with options.
///
/// # Safety
/// NULL, or a handle.
unsafe fn with(options: *mut Options, work: impl FnOnce(&mut Options) -> Option<()>) -> c_int {
    // SAFETY: the caller's promise; nobody else has it meanwhile.
    match unsafe { options.as_mut() }.and_then(work) {
        Some(()) => 0,
        None => argument(),
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_options_name(options: *mut Options, name: *const c_char) -> c_int {
    // SAFETY: as the header says.
    unsafe {
        with(options, |options| {
            options.name = Some(text(name)?.into());
            Some(())
        })
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_options_deadline(options: *mut Options, microseconds: u64) -> c_int {
    // SAFETY: as the header says.
    unsafe {
        with(options, |options| {
            options.deadline = microseconds.saturating_mul(1000);
            Some(())
        })
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_options_heap(options: *mut Options, bytes: u64) -> c_int {
    // SAFETY: as the header says.
    unsafe {
        with(options, |options| {
            options.heap = (bytes != 0).then_some(bytes);
            Some(())
        })
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_options_call_depth(options: *mut Options, calls: u32) -> c_int {
    // SAFETY: as the header says.
    unsafe {
        with(options, |options| {
            options.call_depth = calls.into();
            Some(())
        })
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_options_service(
    options: *mut Options,
    name: *const c_char,
    function: *const c_void,
    signature: *const c_char,
) -> c_int {
    // SAFETY: the same with the default.
    unsafe { pt_options_service_stack(options, name, function, signature, shim::DEFAULT_STACK) }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_options_service_stack(
    options: *mut Options,
    name: *const c_char,
    function: *const c_void,
    signature: *const c_char,
    stack: usize,
) -> c_int {
    // SAFETY: as the header says: the function takes any values of these types.
    unsafe {
        with(options, |options| {
            let signature: Signature = text(signature)?.parse().ok()?;
            let few = signature.parameters().len() <= 6 && !function.is_null();
            let callee = few.then(|| extension::service(function, signature.parameters()))?;
            options.service(text(name)?, callee, signature, stack);
            Some(())
        })
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_options_peer(
    options: *mut Options,
    import: *const c_char,
    domain: *const Domain,
    export: *const c_char,
    microseconds: u64,
    stack: usize,
) -> c_int {
    // SAFETY: as the header says.
    unsafe {
        with(options, |options| {
            let limit = microseconds.saturating_mul(1000);
            options.peer(
                text(import)?,
                domain.as_ref()?,
                text(export)?,
                limit,
                stack as u64,
            );
            Some(())
        })
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_options_peer_open(options: *mut Options, import: *const c_char) -> c_int {
    // SAFETY: as the header says.
    unsafe {
        with(options, |options| {
            options.peer_open(text(import)?);
            Some(())
        })
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_domain_bind_peer(
    caller: *const Domain,
    import: *const c_char,
    domain: *const Domain,
    export: *const c_char,
    microseconds: u64,
    stack: usize,
) -> c_int {
    // SAFETY: as the header says.
    let given = unsafe {
        (|| {
            Some((
                caller.as_ref()?,
                text(import)?,
                domain.as_ref()?,
                text(export)?,
            ))
        })()
    };
    let Some((caller, import, domain, export)) = given else {
        return argument();
    };
    let limit = microseconds.saturating_mul(1000);
    let bound = caller.bind_peer(import, domain, export, limit, stack as u64);
    bound.map_or_else(|error| wrong(&error), |()| 0)
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_domain_new(image: *const Image, options: *const Options) -> *mut Domain {
    if image.is_null() {
        argument();
        return null_mut();
    }
    // SAFETY: a handle, which stays the caller's; options as the header says.
    let (image, options) = unsafe {
        Arc::increment_strong_count(image);
        (Arc::from_raw(image), options.as_ref())
    };
    let default = Options::default();
    match Domain::new(&image, options.unwrap_or(&default)) {
        Ok(domain) => Box::into_raw(Box::new(domain)),
        Err(error) => {
            wrong(&error);
            null_mut()
        }
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_domain_free(domain: *mut Domain) -> c_int {
    if domain.is_null() {
        return argument();
    }
    // SAFETY: a handle.
    drop(unsafe { Box::from_raw(domain) });
    0
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_domain_reset(domain: *const Domain) -> c_int {
    // SAFETY: NULL, or a handle.
    match unsafe { domain.as_ref() } {
        None => argument(),
        Some(domain) => domain.reset().map_or_else(|error| wrong(&error), |()| 0),
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_domain_poisoned(domain: *const Domain) -> c_int {
    // SAFETY: NULL, or a handle.
    match unsafe { domain.as_ref() } {
        None => argument(),
        Some(domain) => domain.poisoned().into(),
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_domain_sym(
    domain: *const Domain,
    name: *const c_char,
    signature: *const c_char,
) -> *const c_void {
    // SAFETY: as the header says.
    let given = unsafe {
        (|| {
            Some((
                domain.as_ref()?,
                text(name)?,
                text(signature)?.parse().ok()?,
            ))
        })()
    };
    let Some((domain, name, signature)) = given else {
        argument();
        return null();
    };
    pointer(domain.symbol(name, &signature))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_domain_sym_at(
    domain: *const Domain,
    function: u32,
    signature: *const c_char,
) -> *const c_void {
    // SAFETY: as the header says.
    let given = unsafe { (|| Some((domain.as_ref()?, text(signature)?.parse().ok()?)))() };
    let Some((domain, signature)) = given else {
        argument();
        return null();
    };
    pointer(domain.symbol_at(function, &signature))
}

fn pointer(found: Result<usize, extension::ExtensionError>) -> *const c_void {
    match found {
        Ok(address) => core::ptr::with_exposed_provenance(address),
        Err(error) => {
            wrong(&error);
            null()
        }
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_domain_read(
    domain: *const Domain,
    from: u32,
    to: *mut u8,
    length: usize,
) -> c_int {
    // SAFETY: a handle, and memory of the caller's.
    let done = unsafe {
        let to = (!to.is_null()).then(|| slice::from_raw_parts_mut(to, length));
        domain
            .as_ref()
            .zip(to)
            .map(|(domain, to)| domain.read(from, to))
    };
    moved(done)
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_domain_write(
    domain: *const Domain,
    to: u32,
    from: *const u8,
    length: usize,
) -> c_int {
    // SAFETY: a handle, and memory of the caller's.
    let done = unsafe {
        let from = (!from.is_null()).then(|| slice::from_raw_parts(from, length));
        domain
            .as_ref()
            .zip(from)
            .map(|(domain, from)| domain.write(to, from))
    };
    moved(done)
}

fn moved(done: Option<bool>) -> c_int {
    match done {
        Some(true) => 0,
        Some(false) => fail(code::RANGE, "not all of the range is mapped in the domain"),
        None => argument(),
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn pt_service_abort(message: *const c_char) -> c_int {
    // SAFETY: as the header says.
    match unsafe { text(message) } {
        None => argument(),
        Some(message) => ends(outcome::ABORT, 0, Some(message.into())),
    }
}

#[unsafe(no_mangle)]
extern "C" fn pt_service_exit(status: c_int) -> c_int {
    ends(outcome::EXIT, u64::from(status as u32), None)
}

fn ends(kind: u32, detail: u64, words: Option<alloc::string::String>) -> c_int {
    if !extension::in_service() {
        return fail(code::OUTSIDE, "no service that an extension called");
    }
    shim::end_when_back(kind, detail, words);
    0
}
