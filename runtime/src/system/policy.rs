//! What a policy for system calls is to a domain: a policy makes one service for each domain that
//! it is given to, and that service grants calls, does them, and keeps what they leave open.

use super::request::Request;
use crate::service::Caller;
use rustix::io::Errno;
use std::any::Any;
use std::sync::Arc;

/// What the system calls of a domain's extension may do: `postern::Policy`.
pub trait SystemPolicy: Any + Send + Sync {
    /// The service of one domain, with nothing open yet.
    fn service(&self) -> Arc<dyn SystemService>;
}

/// Grants and does the system calls of one domain.
pub trait SystemService: Send + Sync {
    /// Whether every call is refused, so that none needs to be decoded.
    fn refuses_all(&self) -> bool;

    /// Does a call that no decider refused, or says why not.
    ///
    /// # Errors
    /// The call fails, or is not granted.
    fn call(&self, caller: &Caller<'_>, request: &Request) -> Answer;

    /// Another policy from now on; open files are closed, and calls that are being done end as they
    /// began. After a policy of another kind than that which made this service, nothing is granted.
    fn set_policy(&self, policy: Box<dyn Any>);

    /// The domain begins anew: closes all files. The policy stays.
    fn reset(&self);

    /// What is granted now.
    fn granted(&self) -> Granted;

    /// Takes a granted directory away, and closes what is open below it. Calls that are being done
    /// end as they began. `None` if nothing is granted there; whether anything was open.
    fn take_directory(&self, guest: &str) -> Option<bool>;

    /// Whether anything is open below a granted directory. `None` if nothing is granted there.
    fn is_open_below(&self, guest: &str) -> Option<bool>;

    /// Closes a descriptor and all that are duplicates of it. False if it is not open.
    fn take_descriptor(&self, number: i32) -> bool;

    /// Whether a descriptor is open.
    fn is_open(&self, number: i32) -> bool;
}

/// What an extension may do with a granted directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read.
    Read,
    /// Read and write.
    ReadWrite,
}

/// What a policy grants.
pub struct Granted {
    /// The policy's name.
    pub policy: &'static str,
    /// Whether a closure of the host is asked, too.
    pub custom: bool,
    /// Directories, by their paths in the extension's eyes.
    pub directories: Vec<(String, Access)>,
}

impl Default for Granted {
    /// Nothing: what a domain without a policy has.
    fn default() -> Granted {
        Granted {
            policy: "none",
            custom: false,
            directories: Vec::new(),
        }
    }
}

/// What was done: the result, and what goes into the extension's output buffer.
pub struct Done {
    /// The result.
    pub value: i64,
    /// As much as there is room for is written.
    pub bytes: Vec<u8>,
}

impl Done {
    /// A result alone.
    pub fn value(value: i64) -> Done {
        Done {
            value,
            bytes: Vec::new(),
        }
    }

    /// The result 0, and bytes.
    pub fn bytes(bytes: Vec<u8>) -> Done {
        Done { value: 0, bytes }
    }

    /// The result is how many bytes there are.
    pub fn counted(bytes: Vec<u8>) -> Done {
        Done {
            value: bytes.len() as i64,
            bytes,
        }
    }
}

/// Why a call was not done.
pub enum Failure {
    /// It went wrong, as calls do.
    Error(Errno),
    /// The policy does not grant it.
    Refused(Errno),
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Failure {
        Failure::Error(error)
    }
}

/// What comes of a call.
pub type Answer = Result<Done, Failure>;
