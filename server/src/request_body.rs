//! A request's body, taken piece by piece and never beyond its limits. What is not taken stays with
//! the client.

use crate::failure::Failure;
use crate::timeouts::{Timeouts, Waited};
use bytes::Bytes;
use http_body::Body;
use hyper::body::Incoming;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Instant;

/// What is left of a body.
#[derive(Debug)]
pub struct RequestBody {
    body: Incoming,
    left: Bytes,
    taken: u64,
    allowed: u64,
    waited: Waited,
}

impl RequestBody {
    /// A body of at most `allowed` bytes, which comes as fast as `timeouts` wants.
    ///
    /// # Errors
    /// Its head promises more.
    pub fn new(body: Incoming, allowed: u64, timeouts: Timeouts) -> Result<RequestBody, Failure> {
        if body.size_hint().lower() > allowed {
            return Err(Failure::TooLarge(allowed));
        }
        Ok(RequestBody {
            body,
            left: Bytes::new(),
            taken: 0,
            allowed,
            waited: timeouts.begin(),
        })
    }

    /// Whether nothing comes any more.
    pub fn is_end(&self) -> bool {
        self.left.is_empty() && self.body.is_end_stream()
    }

    /// How long it will be, if the head said so.
    pub fn length(&self) -> Option<u64> {
        let rest = self.body.size_hint().exact()?;
        Some(self.taken + rest)
    }

    /// The next bytes, at most `most`; `None` at the end.
    ///
    /// # Errors
    /// They do not come, are too many, or the client breaks off.
    pub async fn next(&mut self, most: usize) -> Result<Option<Bytes>, Failure> {
        while self.left.is_empty() {
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context));
            let began = Instant::now();
            let frame = tokio::time::timeout(self.waited.left(), frame).await;
            self.waited.waited(began.elapsed());
            let Some(frame) = frame.map_err(|_| Failure::Slow(self.waited.time()))? else {
                return Ok(None);
            };
            // Trailers mean nothing to a program.
            self.left = frame
                .map_err(|_| Failure::Broken)?
                .into_data()
                .unwrap_or_default();
            self.taken += self.left.len() as u64;
            self.waited.moved(self.left.len());
            if self.taken > self.allowed {
                return Err(Failure::TooLarge(self.allowed));
            }
        }
        Ok(Some(self.left.split_to(self.left.len().min(most))))
    }

    /// What the program shall find when it begins: all of it, if it is known to be `most` bytes at
    /// most; else what comes first.
    ///
    /// # Errors
    /// As [`RequestBody::next`].
    pub async fn first(&mut self, most: usize) -> Result<Vec<Bytes>, Failure> {
        let mut pieces = Vec::new();
        let (mut size, all) = (0, self.length().is_some_and(|length| length <= most as u64));
        while !self.is_end() && (all || pieces.is_empty()) {
            let Some(piece) = self.next(most - size).await? else {
                break;
            };
            size += piece.len();
            pieces.push(piece);
        }
        Ok(pieces)
    }
}
