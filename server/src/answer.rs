//! Where a program's answer goes.

use crate::body::Body;
use crate::failure::Failure;
use http::Response;
use tokio::sync::oneshot;

/// Takes an answer to who asked: first its head, or why there is none.
pub struct Answer {
    /// To whom.
    pub to: oneshot::Sender<Result<Response<Body>, Failure>>,
    /// The request was for the head only.
    pub brief: bool,
}

impl Answer {
    /// The answer's head. False if nobody wants it any more.
    pub fn send(self, response: Result<Response<Body>, Failure>) -> bool {
        self.to.send(response).is_ok()
    }
}
