//! What is known of a request when it is through: it is counted and has a line in the access log,
//! however it ends.
//!
//! Invariant: each request has one account, and each account one end.

use crate::access_line::AccessLine;
use crate::admission::ClientPermit;
use crate::body::{Body, Cut};
use crate::counters::Counters;
use crate::half_closed::Due;
use crate::log::Log;
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Method, Response, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// What the access log has of a request whose client left before it had a status: the number that
/// nginx's logs have for it.
const LEFT: StatusCode = match StatusCode::from_u16(499) {
    Ok(status) => status,
    Err(_) => StatusCode::BAD_REQUEST,
};

/// How an answer ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// It did not: nobody wanted the rest.
    Left,
    /// It went out whole.
    Whole,
    /// Its program failed on the way.
    Cut,
}

/// One request's.
pub struct Account {
    began: Instant,
    counters: Option<Arc<Counters>>,
    line: Option<(AccessLine, Arc<Log>)>,
    share: Option<ClientPermit>,
    /// A request for the head of an answer only.
    brief: bool,
    status: StatusCode,
    /// How long the body will be, if the head says so.
    due: Option<u64>,
    sent: u64,
    end: End,
}

impl Account {
    /// Of a request that has just come, with what it will have in the access log.
    pub fn new(method: &Method, line: Option<(AccessLine, Arc<Log>)>) -> Account {
        Account {
            began: Instant::now(),
            counters: None,
            line,
            share: None,
            brief: method == Method::HEAD,
            status: LEFT,
            due: None,
            sent: 0,
            end: End::Left,
        }
    }

    /// Who counts it.
    pub fn count(&mut self, counters: &Arc<Counters>) {
        self.counters = Some(counters.clone());
    }

    /// Who counts it, if somebody does.
    pub fn counters(&self) -> Option<&Arc<Counters>> {
        self.counters.as_ref()
    }

    /// The client's right to it is given back at its end.
    pub fn hold(&mut self, share: ClientPermit) {
        self.share = Some(share);
    }

    /// The answer was a file, of which so many bytes went: all of them, or the client left.
    pub fn sent(mut self, bytes: u64, whole: bool) {
        (self.status, self.sent) = (StatusCode::OK, bytes);
        if whole {
            self.end = End::Whole;
        }
    }

    /// From now on the answer decides.
    pub fn answer(mut self, response: Response<Body>) -> Response<Tracked> {
        self.status = response.status();
        let due = response.headers().get(CONTENT_LENGTH);
        self.due = due.and_then(|due| due.to_str().ok()?.parse().ok());
        let empty = self.brief
            || self.due == Some(0)
            || response.body().is_end_stream()
            || [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&self.status);
        if empty {
            self.end = End::Whole;
        }
        response.map(|body| Tracked {
            body,
            account: self,
            due: None,
        })
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let time = self.began.elapsed();
        if let Some(counters) = &self.counters {
            counters.answer(self.status, self.sent, time);
            if self.end == End::Left {
                counters.left();
            }
        }
        if let Some((line, log)) = self.line.take() {
            log.access(&line.end(self.status.as_u16(), self.sent, time));
        }
    }
}

/// An answer on its way.
pub struct Tracked {
    body: Body,
    account: Account,
    due: Option<Due>,
}

impl Tracked {
    /// An answer that is due until it is through.
    pub fn until(mut self, due: Due) -> Tracked {
        self.due = Some(due);
        self
    }
}

impl HttpBody for Tracked {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        let ended = self.body.is_end_stream();
        let account = &mut self.account;
        match &frame {
            Poll::Ready(Some(Ok(frame))) => {
                account.sent += frame.data_ref().map_or(0, |data| data.len() as u64);
                if ended || account.due == Some(account.sent) {
                    account.end = End::Whole;
                }
            }
            Poll::Ready(Some(Err(Cut::Program))) => account.end = End::Cut,
            Poll::Ready(Some(Err(Cut::Client))) => {}
            Poll::Ready(None) if account.end == End::Left => account.end = End::Whole,
            Poll::Ready(None) | Poll::Pending => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
