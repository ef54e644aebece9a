//! What C passes, and what it becomes: the only module with `unsafe`.
//!
//! A parameter of one of these types has what `postern.h` demands of the host: pointers that are NULL or valid for the call.
//! NULL is refused here; the rest cannot be checked.

use crate::failure::{self, Code, Failure};
use crate::fault::CFault;
use postern::{DomainBuilder, Signature};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::{FromRawFd, OwnedFd};

fn null(what: &str) -> Failure {
    Failure::new(Code::Argument, format!("the {what} is NULL"))
}

/// `const char *`: a NUL-terminated string.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text(*const c_char);

impl Text {
    /// The string.
    ///
    /// # Errors
    /// NULL or not UTF-8.
    pub fn get<'a>(self, what: &str) -> Result<&'a str, Failure> {
        let bytes = self.bytes(what)?;
        std::str::from_utf8(bytes).map_err(|e| {
            Failure::new(
                Code::Argument,
                format!("the {what} is not UTF-8 from byte {}", e.valid_up_to()),
            )
        })
    }

    /// The string's bytes, for paths.
    ///
    /// # Errors
    /// NULL.
    pub fn bytes<'a>(self, what: &str) -> Result<&'a [u8], Failure> {
        if self.0.is_null() {
            return Err(null(what));
        }
        // SAFETY: not null, so a NUL-terminated string of the host that stays during the call; the result does not leave it.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }
}

/// `const void *` to bytes that are read.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Source(*const c_void);

impl Source {
    /// The bytes.
    ///
    /// # Errors
    /// NULL with a length that is not 0; a length that no object has.
    pub fn get<'a>(self, len: usize, what: &str) -> Result<&'a [u8], Failure> {
        if len == 0 {
            return Ok(&[]);
        }
        check(self.0.is_null(), len, what)?;
        // SAFETY: not null, so `len` readable bytes of the host during the call; the result does not leave it.
        Ok(unsafe { std::slice::from_raw_parts(self.0.cast(), len) })
    }
}

/// `void *` to bytes that are written.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Target(*mut c_void);

impl Target {
    /// The bytes.
    ///
    /// # Errors
    /// As [`Source::get`].
    pub fn get<'a>(self, len: usize, what: &str) -> Result<&'a mut [u8], Failure> {
        if len == 0 {
            return Ok(&mut []);
        }
        check(self.0.is_null(), len, what)?;
        // SAFETY: not null, so `len` writable bytes of the host that nothing else uses during the call. Whether C ever wrote
        // them cannot be seen from here: the host is compiled apart, and any byte is a u8.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.0.cast(), len) })
    }
}

/// `char *` to a buffer for text.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct TextTarget(*mut c_char);

impl TextTarget {
    /// Stores the text and a NUL; there must be room for both.
    ///
    /// # Errors
    /// NULL.
    pub fn put(self, text: &[u8]) -> Result<(), Failure> {
        let to = Target(self.0.cast()).get(text.len() + 1, "buffer")?;
        to[..text.len()].copy_from_slice(text);
        to[text.len()] = 0;
        Ok(())
    }
}

fn check(is_null: bool, len: usize, what: &str) -> Result<(), Failure> {
    if is_null {
        return Err(null(what));
    }
    if len > isize::MAX as usize {
        return Err(Failure::new(
            Code::Argument,
            format!("the {what} cannot have {len} bytes"),
        ));
    }
    Ok(())
}

/// A pointer through which one value goes out, or NULL.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Stores the value unless the pointer is NULL.
    pub fn put(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, so a place of the host for one value.
            unsafe { self.0.write(value) };
        }
    }
}

/// `const pt_config *`: a structure that says its size, and may be older or younger than this library.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct ConfigIn(*const crate::process::CConfig);

impl ConfigIn {
    /// The configuration; NULL is the default.
    ///
    /// # Errors
    /// A size that no version has, or fields that this version does not know.
    pub fn get(self) -> Result<crate::process::CConfig, Failure> {
        use crate::process::CConfig;
        let mut config = CConfig::default();
        if self.0.is_null() {
            return Ok(config);
        }
        // SAFETY: not null, so a structure that begins with its size.
        let size = unsafe { self.0.cast::<usize>().read() };
        let known = size_of::<CConfig>();
        if !(size_of::<usize>()..=4096).contains(&size) {
            return Err(Failure::new(
                Code::Argument,
                format!("pt_config.size is {size}; set it to sizeof(pt_config)"),
            ));
        }
        // SAFETY: `size` bytes are there, as the host says.
        let given = unsafe { std::slice::from_raw_parts(self.0.cast::<u8>(), size) };
        if given.iter().skip(known).any(|&b| b != 0) {
            return Err(Failure::new(
                Code::Argument,
                "the pt_config has fields of a later version of Postern; install that version",
            ));
        }
        // SAFETY: copies at most the structure's size over integers, for which all bytes are valid.
        unsafe {
            std::ptr::copy_nonoverlapping(
                given.as_ptr(),
                (&raw mut config).cast::<u8>(),
                size.min(known),
            );
        }
        config.size = known;
        Ok(config)
    }
}

/// `void *` to a function.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Function(*const c_void);

impl Function {
    /// The address.
    ///
    /// # Errors
    /// NULL.
    pub fn get(self, what: &str) -> Result<usize, Failure> {
        if self.0.is_null() {
            return Err(null(what));
        }
        Ok(self.0 as usize)
    }
}

/// `int`, a file descriptor.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Descriptor(c_int);

impl Descriptor {
    /// A descriptor of our own for the same file.
    ///
    /// # Errors
    /// It is not open.
    pub fn duplicate(self) -> Result<OwnedFd, Failure> {
        // SAFETY: fcntl takes any number; a result that is not negative is a new descriptor, and nobody else's.
        unsafe {
            match libc::fcntl(self.0, libc::F_DUPFD_CLOEXEC, 0) {
                fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
                _ => Err(Failure::new(
                    Code::Argument,
                    format!("descriptor {}: {}", self.0, std::io::Error::last_os_error()),
                )),
            }
        }
    }
}

/// Grants a service that the host promised to be a C function of this signature.
pub fn grant(
    builder: DomainBuilder,
    name: &str,
    function: usize,
    signature: Signature,
    stack: usize,
) -> DomainBuilder {
    // SAFETY: `pt_service` passes on its caller's promise: a C function of this type, for any arguments, from any thread.
    unsafe { builder.service_c(name, function as *const (), signature, stack) }
}

/// `void (*)(const pt_fault *, void *)`, or NULL.
pub type FaultHandler = Option<unsafe extern "C" fn(*const CFault, *mut c_void)>;

/// Calls a fault handler of the host.
pub fn call_handler(handler: FaultHandler, fault: &CFault, user: usize) {
    if let Some(handler) = handler {
        // SAFETY: the host gave a function of this type; the fault lives during the call.
        unsafe { handler(fault, user as *mut c_void) };
    }
}

/// Registers functions to run around fork, the second in both processes.
pub fn at_fork(before: extern "C" fn(), after: extern "C" fn()) {
    // SAFETY: the functions take nothing and do not unwind.
    unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
}

/// `pt_unwind`
#[unsafe(no_mangle)]
pub extern "C" fn pt_unwind(nesting: u32) -> c_int {
    failure::code(|| {
        // SAFETY: the host says that it has left the services of these calls for good.
        match unsafe { postern::unwind(nesting as usize) } {
            true => Ok(()),
            false => Err(Failure::new(
                Code::Inside,
                "a signal handler interrupted the extension; it cannot leave it",
            )),
        }
    })
}

/// `pt_handle_signal`
///
/// # Safety
/// As [`postern::handle_signal`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pt_handle_signal(
    signal: c_int,
    info: *mut c_void,
    context: *mut c_void,
) -> c_int {
    if info.is_null() || context.is_null() {
        return 0;
    }
    // SAFETY: the host passes what the system passed to its handler.
    c_int::from(unsafe { postern::handle_signal(signal, info.cast(), context) })
}
