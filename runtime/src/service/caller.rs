//! Who calls a service, and how the running service ends that call.

use postern_gates::control::Control;
use postern_gates::outcome;
use postern_gates::shim;

/// Stack that a service gets when it declares nothing.
pub const DEFAULT_STACK: usize = shim::DEFAULT_STACK;

/// Who calls a service: a handle that costs nothing until it is used.
pub struct Caller<'a> {
    pub(crate) control: &'a Control,
}

impl<'a> Caller<'a> {
    pub(crate) fn new(control: &'a Control) -> Caller<'a> {
        Caller { control }
    }

    /// Ends the call when the service returns: the host's call becomes a fault of kind `Aborted`
    /// with this message.
    pub fn abort(&self, message: impl Into<String>) {
        abort(message.into());
    }

    /// Ends the call when the service returns: the host's call becomes
    /// [`crate::CallError::Exited`].
    pub fn exit(&self, status: i32) {
        exit(status);
    }
}

/// Ends the running service's call with a message.
pub(crate) fn abort(message: String) {
    shim::end_when_back(outcome::ABORT, 0, Some(message));
}

/// Ends the running service's call in the name of the policy.
pub(crate) fn kill(reason: String) {
    shim::end_when_back(outcome::KILL, 0, Some(reason));
}

/// Whether the running service's call ends as soon as the service returns.
pub fn ending() -> bool {
    shim::ending()
}

/// Tells a call that ended by itself from one that was ended with its program.
const BY_ITSELF: u64 = 1 << 32;

/// Ends the running service's call with a status.
pub(crate) fn exit(status: i32) {
    let detail = u64::from(status as u32) | BY_ITSELF;
    shim::end_when_back(outcome::EXIT, detail, None);
}

/// The status with which a call ended that had this detail, if it ended by itself.
pub(crate) fn status_of(detail: u64) -> Option<i32> {
    (detail & BY_ITSELF != 0).then_some(detail as i32)
}
