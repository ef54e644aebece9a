//! Programs as shared objects, which are called without any protection.
//!
//! What they do they do to the server: a wrong pointer ends it, and nothing that [`crate::seat`] promises of a program binds them. They
//! are for measuring what protection costs, and for code that is trusted as the server is.

use crate::exchange::Functions;
use crate::seat::Seat;
use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// `long libcgi_serve(const struct libcgi_exchange *)`.
type Serve = unsafe extern "C" fn(*const c_void) -> i64;

/// A shared object could not be used; what the dynamic linker says.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub struct LibraryError(String);

/// A loaded shared object, and the seat of its one instance. Two need two files: the dynamic linker loads a file once.
pub struct Library {
    handle: *mut c_void,
    serve: Serve,
    seat: Arc<Seat>,
}

// SAFETY: the handle is only given to dlclose, once; the function may be called from any thread, one at a time.
unsafe impl Send for Library {}
// SAFETY: as above; `call` is made by whoever has the seat's loan, one at a time.
unsafe impl Sync for Library {}

impl Library {
    /// Loads a file. Its constructors run.
    ///
    /// # Errors
    /// It cannot be loaded, or has no `libcgi_serve`.
    pub fn open(path: &Path, seat: Arc<Seat>) -> Result<Library, LibraryError> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| LibraryError("the name has a NUL in it".to_owned()))?;
        // SAFETY: the name is a C string. The constructors do what they do: that is what this way to run a program means.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(last_error());
        }
        // SAFETY: the handle was just returned; the name is a C string.
        let symbol = unsafe { libc::dlsym(handle, c"libcgi_serve".as_ptr()) };
        if symbol.is_null() {
            // SAFETY: the handle is closed once, and nothing of the object is used.
            unsafe { libc::dlclose(handle) };
            let text =
                "it has no libcgi_serve; compile it with -DLIBCGI_SHARED, and include libcgi.h";
            return Err(LibraryError(text.to_owned()));
        }
        Ok(Library {
            handle,
            // SAFETY: a function of this name has this type: that is what libcgi.h says.
            serve: unsafe { std::mem::transmute::<*mut c_void, Serve>(symbol) },
            seat,
        })
    }

    /// The seat.
    pub fn seat(&self) -> &Arc<Seat> {
        &self.seat
    }

    /// What the exchange has for it.
    pub fn functions(&self) -> Functions {
        [
            Arc::as_ptr(&self.seat) as u64,
            hand_over as *const () as u64,
            more as *const () as u64,
            log as *const () as u64,
        ]
    }

    /// Calls it.
    pub fn call(&self) -> i64 {
        let exchange = self.seat.exchange.place() as *const c_void;
        // SAFETY: the function is loaded as long as `self`; the exchange was written for it and lives as long as the seat. That it
        // keeps to what is there is trusted.
        unsafe { (self.serve)(exchange) }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once; calls are made with a reference.
        unsafe { libc::dlclose(self.handle) };
    }
}

fn last_error() -> LibraryError {
    // SAFETY: dlerror returns null or a C string, which is copied before the next call of this thread.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            return LibraryError("it cannot be loaded".to_owned());
        }
        CStr::from_ptr(text)
    };
    LibraryError(text.to_string_lossy().into_owned())
}

/// The seat that the exchange names.
///
/// # Safety
/// `call` is the word of [`Library::functions`], and the library lives.
unsafe fn seat<'a>(call: *const c_void) -> &'a Seat {
    // SAFETY: it is the address of the library's own seat.
    unsafe { &*call.cast::<Seat>() }
}

unsafe extern "C" fn hand_over(call: *const c_void, size: u64) -> i64 {
    // SAFETY: the program passes what the exchange has.
    unsafe { seat(call) }.hand_over(size, None)
}

unsafe extern "C" fn more(call: *const c_void) -> i64 {
    // SAFETY: as above.
    unsafe { seat(call) }.more()
}

unsafe extern "C" fn log(call: *const c_void, text: *const u8, size: u64) {
    // SAFETY: the program says that so many bytes are there.
    let text = unsafe { std::slice::from_raw_parts(text, size.min(4096) as usize) };
    // SAFETY: as above.
    unsafe { seat(call) }.say(&String::from_utf8_lossy(text));
}
