//! The plain build of a codec, by dlopen: what the confined one is compared with. `unsafe` lives
//! here.

use std::ffi::{CString, c_void};
use std::path::Path;

/// An opened shared object; it stays open.
pub struct Native(*mut c_void);

type Compress = unsafe extern "C" fn(*const u8, usize, *mut u8, usize, i32) -> i64;
type Decompress = unsafe extern "C" fn(*const u8, usize, *mut u8, usize) -> i64;
type Bound = unsafe extern "C" fn(usize) -> usize;

impl Native {
    /// Opens a shared object made by `postern build --native`.
    pub fn open(path: &Path) -> Native {
        let name = CString::new(path.as_os_str().as_encoded_bytes()).expect("no NUL");
        // SAFETY: opening runs the object's constructors; the codecs have none.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "cannot open {}", path.display());
        Native(handle)
    }

    fn symbol(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).expect("no NUL in a literal");
        // SAFETY: the handle is open and the name is a C string.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!address.is_null(), "the object lacks {name:?}");
        address
    }

    /// Compresses; an error is the codec's number.
    pub fn compress(&self, input: &[u8], level: i32) -> Result<Vec<u8>, i64> {
        // SAFETY: codec.h declares these types; the functions stay within their buffers.
        unsafe {
            let bound: Bound = std::mem::transmute(self.symbol("compress_bound"));
            let compress: Compress = std::mem::transmute(self.symbol("compress_buffer"));
            let mut room = vec![0; bound(input.len())];
            let (size, space) = (input.len(), room.len());
            let written = compress(input.as_ptr(), size, room.as_mut_ptr(), space, level);
            cut(room, written)
        }
    }

    /// Decompresses; an error is the codec's number.
    pub fn decompress(&self, input: &[u8], limit: usize) -> Result<Vec<u8>, i64> {
        // SAFETY: codec.h declares this type; the function stays within its buffers.
        unsafe {
            let decompress: Decompress = std::mem::transmute(self.symbol("decompress_buffer"));
            let mut room = vec![0; limit];
            let written = decompress(input.as_ptr(), input.len(), room.as_mut_ptr(), limit);
            cut(room, written)
        }
    }
}

fn cut(mut bytes: Vec<u8>, length: i64) -> Result<Vec<u8>, i64> {
    let length = usize::try_from(length).map_err(|_| length)?;
    bytes.truncate(length);
    Ok(bytes)
}
