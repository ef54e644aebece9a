//! Another user than root, for the rest of the process.

use std::ffi::CString;
use std::io::{self, Error};
use std::mem::MaybeUninit;
use std::ptr;

/// Bytes for a user's entry in the system's database.
const ENTRY: usize = 1 << 16;

/// The number of a user, and of the user's group.
fn numbers(name: &CString) -> io::Result<(libc::uid_t, libc::gid_t)> {
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let (mut text, mut found) = (vec![0; ENTRY], ptr::null_mut());
    // SAFETY: all pointers are to values that live through the call, and the text is as long as the
    // call is told. The entry is read only where the call says that it filled it, and only its
    // numbers are.
    unsafe {
        let room = text.as_mut_ptr();
        let error = libc::getpwnam_r(name.as_ptr(), entry.as_mut_ptr(), room, ENTRY, &mut found);
        match (error, found.is_null()) {
            (0, false) => {
                let entry = entry.assume_init();
                Ok((entry.pw_uid, entry.pw_gid))
            }
            (0, true) => Err(Error::new(io::ErrorKind::NotFound, "there is no such user")),
            (error, _) => Err(Error::from_raw_os_error(error)),
        }
    }
}

/// Makes a process of root's one of this user's, with the user's groups, for good: no thread can
/// go back. False, and nothing is changed, if it is not root's.
///
/// # Errors
/// There is no such user, or the kernel refuses; then the process should end, for some of it may
/// be changed.
pub fn become_user(name: &str) -> io::Result<bool> {
    let name = CString::new(name).map_err(|_| Error::from(io::ErrorKind::InvalidInput))?;
    let (user, group) = numbers(&name)?;
    // SAFETY: the calls take numbers, and a name that lives through them. The C library makes them
    // for all threads. Groups first: afterwards nothing would be allowed to change them.
    unsafe {
        if libc::getuid() != 0 && libc::geteuid() != 0 {
            return Ok(false);
        }
        let done = libc::initgroups(name.as_ptr(), group) == 0
            && libc::setgid(group) == 0
            && libc::setuid(user) == 0;
        if !done {
            return Err(Error::last_os_error());
        }
        if user != 0 && libc::setuid(0) == 0 {
            return Err(Error::other("root's rights could not be given up"));
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users() {
        let root = CString::new("root").unwrap();
        assert_eq!(numbers(&root).unwrap(), (0, 0));
        let error = become_user("nobody-of-this-name").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(become_user("a\0b").is_err());
    }
}
