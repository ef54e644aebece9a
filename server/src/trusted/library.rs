//! Programs as shared objects, which are called without any protection.
//!
//! What they do they do to the server: a wrong pointer ends it, and nothing that [`crate::session`]
//! promises of a program binds them. They are for measuring what protection costs, and for code
//! that is trusted as the server is.

use crate::session::Session;
use crate::shared_buffer::Functions;
use crate::trusted::loaded::{LibraryError, Loaded};
use std::ffi::c_void;
use std::path::Path;
use std::sync::Arc;

/// `long libcgi_serve(const struct libcgi_exchange *)`.
type Serve = unsafe extern "C" fn(*const c_void) -> i64;

/// A loaded shared object, and the session of its one instance. Two need two files: the dynamic
/// linker loads a file once.
pub struct Library {
    _loaded: Loaded,
    serve: Serve,
    session: Arc<Session>,
}

impl Library {
    /// Loads a file. Its constructors run.
    ///
    /// # Errors
    /// It cannot be loaded, or has no `libcgi_serve`.
    pub fn open(path: &Path, session: Arc<Session>) -> Result<Library, LibraryError> {
        // SAFETY: the site says `run = "unprotected"` of it: its owner trusts the file as the
        // server itself.
        let loaded = unsafe { Loaded::open(path)? };
        let Some(symbol) = loaded.symbol(c"libcgi_serve") else {
            let text =
                "it has no libcgi_serve; compile it with -DLIBCGI_SHARED, and include libcgi.h";
            return Err(LibraryError(text.to_owned()));
        };
        Ok(Library {
            // SAFETY: a function of this name has this type: that is what libcgi.h says.
            serve: unsafe { std::mem::transmute::<*mut c_void, Serve>(symbol) },
            session,
            _loaded: loaded,
        })
    }

    /// The session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// What the buffer has for it.
    pub fn functions(&self) -> Functions {
        [
            Arc::as_ptr(&self.session) as u64,
            hand_over as *const () as u64,
            more as *const () as u64,
            log as *const () as u64,
        ]
    }

    /// Calls it.
    pub fn call(&self) -> i64 {
        let buffer = self.session.buffer.address() as *const c_void;
        // SAFETY: the function is loaded as long as `self`, and called by whoever has the session's
        // lease, one at a time; the buffer was written for it and lives as long as the session.
        // That it keeps to what is there is trusted.
        unsafe { (self.serve)(buffer) }
    }
}

/// The session that the buffer names.
///
/// # Safety
/// `call` is the word of [`Library::functions`], and the library lives.
unsafe fn session<'a>(call: *const c_void) -> &'a Session {
    // SAFETY: it is the address of the library's own session.
    unsafe { &*call.cast::<Session>() }
}

unsafe extern "C" fn hand_over(call: *const c_void, size: u64) -> i64 {
    // SAFETY: the program passes what the buffer has.
    unsafe { session(call) }.hand_over(size, None)
}

unsafe extern "C" fn more(call: *const c_void) -> i64 {
    // SAFETY: as above.
    unsafe { session(call) }.more()
}

unsafe extern "C" fn log(call: *const c_void, text: *const u8, size: u64) {
    // SAFETY: the program says that so many bytes are there.
    let text = unsafe { std::slice::from_raw_parts(text, size.min(4096) as usize) };
    // SAFETY: as above.
    unsafe { session(call) }.say(&String::from_utf8_lossy(text));
}
