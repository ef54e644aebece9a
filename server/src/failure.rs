//! Why a request got no answer of its program, and what the client is told instead.

use crate::body::{Body, Cut};
use crate::head::HeadError;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use rustix::io::Errno;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// A request that failed. Whose fault it is shows in the status.
#[derive(Debug, Clone, Error)]
pub enum Failure {
    /// Nothing is there.
    #[error("nothing is there")]
    NotFound,
    /// It is there, and the server may not read it.
    #[error("it may not be read")]
    Forbidden,
    /// The system has no more of something now: descriptors, memory.
    #[error("the server has no room now: {0}")]
    Exhausted(String),
    /// The system says something else.
    #[error("the system says: {0}")]
    System(String),
    /// A path that leads nowhere, or out.
    #[error("the path cannot be one")]
    Path,
    /// No host, two, or none that can be one.
    #[error("the request must say one host, which can be one")]
    Host,
    /// Another method.
    #[error("only GET and HEAD are possible here")]
    Method,
    /// The body is too large.
    #[error("the request's body is larger than {0} bytes")]
    TooLarge(u64),
    /// The headers do not fit the program's variables.
    #[error("the request's headers are too long for a program")]
    Headers,
    /// The body did not come.
    #[error("the request's body did not come in time: it was waited for {0:?}")]
    Slow(Duration),
    /// The body came to a wrong end.
    #[error("the request's body is not what its head says")]
    Broken,
    /// One client wants too much at once.
    #[error("more than {0} requests of one client at a time")]
    Greedy(usize),
    /// All instances are busy and enough wait already.
    #[error("all instances of the program are busy, and {0} requests wait already")]
    Full(usize),
    /// All instances were busy for too long.
    #[error("all instances of the program were busy for {0:?}")]
    Busy(Duration),
    /// The program failed too often.
    #[error("the program failed, and rests for another {0:?}")]
    Resting(Duration),
    /// The program's domain is shared, and was closed by what another process did, or is not open
    /// again yet.
    #[error("the program is shared, and was closed elsewhere: {0}")]
    Shared(String),
    /// The server ends.
    #[error("the server ends")]
    Ending,
    /// The program did not answer in time.
    #[error("no answer within {0:?}: {1}")]
    Late(Duration, String),
    /// The program's answer cannot be sent.
    #[error("{0}")]
    Head(#[from] HeadError),
    /// The program broke a rule; the text has the place.
    #[error("{0}")]
    Fault(String),
    /// The program itself says that it failed.
    #[error("the program ended with status {0}")]
    Status(i64),
    /// The program could not be run.
    #[error("the program could not be run: {0}")]
    Run(String),
}

impl Failure {
    /// What the file system says of a file that was asked for. What is in the way of the path is
    /// nothing that is there.
    pub fn of_file(error: &io::Error) -> Failure {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(
                Errno::NOENT
                | Errno::NOTDIR
                | Errno::ISDIR
                | Errno::LOOP
                | Errno::XDEV
                | Errno::NAMETOOLONG
                | Errno::NXIO,
            ) => Failure::NotFound,
            Some(Errno::ACCESS | Errno::PERM) => Failure::Forbidden,
            _ => Failure::exhausted(error).unwrap_or_else(|| Failure::System(error.to_string())),
        }
    }

    /// Why a program could not be run.
    pub fn of_run(error: &io::Error) -> Failure {
        Failure::exhausted(error).unwrap_or_else(|| Failure::Run(error.to_string()))
    }

    /// If it is that the system has no more of something, of which there may be more later.
    fn exhausted(error: &io::Error) -> Option<Failure> {
        let errno = error.raw_os_error().map(Errno::from_raw_os_error)?;
        let room = [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOMEM,
            Errno::NOBUFS,
            Errno::AGAIN,
        ];
        room.contains(&errno)
            .then(|| Failure::Exhausted(error.to_string()))
    }

    /// What HTTP calls it.
    pub fn status(&self) -> StatusCode {
        match self {
            Failure::NotFound => StatusCode::NOT_FOUND,
            Failure::Forbidden => StatusCode::FORBIDDEN,
            Failure::Path | Failure::Host | Failure::Broken => StatusCode::BAD_REQUEST,
            Failure::Method => StatusCode::METHOD_NOT_ALLOWED,
            Failure::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Failure::Headers => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Failure::Slow(_) => StatusCode::REQUEST_TIMEOUT,
            Failure::Greedy(_) => StatusCode::TOO_MANY_REQUESTS,
            Failure::Full(_)
            | Failure::Busy(_)
            | Failure::Resting(_)
            | Failure::Exhausted(_)
            | Failure::Shared(_)
            | Failure::Ending => StatusCode::SERVICE_UNAVAILABLE,
            Failure::Late(..) => StatusCode::GATEWAY_TIMEOUT,
            Failure::Head(_) => StatusCode::BAD_GATEWAY,
            Failure::Fault(_) | Failure::Status(_) | Failure::Run(_) | Failure::System(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }

    /// Whether the operator must hear of it: the program or the server is to blame.
    pub fn is_ours(&self) -> bool {
        self.status().is_server_error()
    }

    /// The answer. What the client is told of the server's own failures is a number that stands in
    /// the log.
    pub fn response(&self, id: Option<FailureId>) -> Response<Body> {
        let status = self.status();
        let reason = status.canonical_reason().unwrap_or_default();
        let text = match id {
            Some(id) => format!("{} {reason}\nid {id}\n", status.as_u16()),
            None => format!("{} {reason}: {self}\n", status.as_u16()),
        };
        let mut response = Response::new(Body::whole(text));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        );
        let rest = match self {
            Failure::Full(_)
            | Failure::Busy(_)
            | Failure::Greedy(_)
            | Failure::Exhausted(_)
            | Failure::Shared(_)
            | Failure::Ending => Some(1),
            Failure::Resting(rest) => Some(rest.as_secs() + 1),
            _ => None,
        };
        if let Some(seconds) = rest {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

impl From<&Failure> for Cut {
    fn from(failure: &Failure) -> Cut {
        match failure.is_ours() {
            true => Cut::Program,
            false => Cut::Client,
        }
    }
}

/// Names a failure in the log and to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureId(u64);

impl FailureId {
    /// A new one. Those of two runs of the server differ, too.
    pub fn new() -> FailureId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if NEXT.load(Ordering::Relaxed) == 0 {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let seed = now.map_or(1, |now| now.as_millis() as u64) << 16 | 1;
            let _ = NEXT.compare_exchange(0, seed, Ordering::Relaxed, Ordering::Relaxed);
        }
        FailureId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Default for FailureId {
    fn default() -> FailureId {
        FailureId::new()
    }
}

impl std::fmt::Display for FailureId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
