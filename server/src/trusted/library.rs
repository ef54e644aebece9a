//! Programs as shared objects, which are called without any protection.
//!
//! What they do they do to the server: a wrong pointer ends it, and nothing that [`crate::seat`] promises of a program binds them. They
//! are for measuring what protection costs, and for code that is trusted as the server is.

use crate::exchange::Functions;
use crate::seat::Seat;
use crate::trusted::loaded::{LibraryError, Loaded};
use std::ffi::c_void;
use std::path::Path;
use std::sync::Arc;

/// `long libcgi_serve(const struct libcgi_exchange *)`.
type Serve = unsafe extern "C" fn(*const c_void) -> i64;

/// A loaded shared object, and the seat of its one instance. Two need two files: the dynamic linker loads a file once.
pub struct Library {
    _loaded: Loaded,
    serve: Serve,
    seat: Arc<Seat>,
}

impl Library {
    /// Loads a file. Its constructors run.
    ///
    /// # Errors
    /// It cannot be loaded, or has no `libcgi_serve`.
    pub fn open(path: &Path, seat: Arc<Seat>) -> Result<Library, LibraryError> {
        let loaded = Loaded::open(path)?;
        let Some(symbol) = loaded.symbol(c"libcgi_serve") else {
            let text =
                "it has no libcgi_serve; compile it with -DLIBCGI_SHARED, and include libcgi.h";
            return Err(LibraryError(text.to_owned()));
        };
        Ok(Library {
            // SAFETY: a function of this name has this type: that is what libcgi.h says.
            serve: unsafe { std::mem::transmute::<*mut c_void, Serve>(symbol) },
            seat,
            _loaded: loaded,
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
        // SAFETY: the function is loaded as long as `self`, and called by whoever has the seat's loan, one at a time; the exchange was written for it and lives as long as the seat. That it
        // keeps to what is there is trusted.
        unsafe { (self.serve)(exchange) }
    }
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
