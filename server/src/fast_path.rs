//! The plain case, before hyper hears of a connection: `GET` of a static file, with nothing that
//! makes a difference.
//!
//! All else is handed over to hyper with every byte that came since the last answer, and stays
//! there. Invariant: only a request whose head is whole, which has no body, and whose answer is a
//! whole file with status 200 is answered here; whoever looks at the same bytes elsewhere finds the
//! same requests.

use crate::access_line::AccessLine;
use crate::account::Account;
use crate::each_second::{self, EachSecond};
use crate::host::is_host;
use crate::router::Router;
use crate::settings::Limits;
use crate::static_files::{Content, StaticFile};
use crate::timeouts::Waited;
use crate::variables::Peers;
use bytes::{Buf, BytesMut};
use http::{Method, Version};
use httparse::{EMPTY_HEADER, Status};
use rustix::fs::sendfile;
use std::cell::RefCell;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

/// More headers are for hyper.
const HEADERS: usize = 48;
/// Bytes that are read at once.
const READ: usize = 4096;
/// Bytes of a large file that are sent before others have their turn.
const PIECE: usize = 1 << 20;

/// What becomes of a connection.
pub enum Next {
    /// Somebody else goes on, with these bytes first.
    HandOver(BytesMut),
    /// It is at its end.
    Close,
}

/// One connection.
struct FastPath<'a> {
    stream: &'a mut TcpStream,
    router: &'a Router,
    peers: Peers,
    limits: &'a Limits,
    waited: Waited,
    timer: Pin<Box<Sleep>>,
    bytes: BytesMut,
    /// Head and date of an answer.
    out: Vec<u8>,
}

/// Answers what is plain, until something is not.
pub async fn serve(
    stream: &mut TcpStream,
    router: &Router,
    peers: Peers,
    limits: &Limits,
    ending: &watch::Receiver<bool>,
) -> Next {
    let mut path = FastPath {
        stream,
        router,
        peers,
        limits,
        waited: limits.send.begin(),
        timer: Box::pin(sleep_until(Instant::now() + limits.header)),
        bytes: BytesMut::with_capacity(READ),
        out: Vec::with_capacity(512),
    };
    let mut ended = ending.clone();
    let mut ended = std::pin::pin!(ended.wait_for(|ending| *ending));
    loop {
        tokio::select! {
            biased;
            whole = path.head() => match whole {
                Some(true) => {}
                Some(false) => return Next::HandOver(path.bytes),
                None => return Next::Close,
            },
            _ = &mut ended => return Next::HandOver(path.bytes),
        }
        let Some((length, file, account)) = path.plain() else {
            return Next::HandOver(path.bytes);
        };
        path.bytes.advance(length);
        let mut body = 0;
        let sent = path.send(&file, &mut body).await;
        account.sent(body, sent.is_ok());
        if sent.is_err() {
            return Next::Close;
        }
    }
}

impl FastPath<'_> {
    /// Waits for a head, or what looks like one. False if it looks like nothing that is answered
    /// here; `None` at the end.
    async fn head(&mut self) -> Option<bool> {
        let deadline = Instant::now() + self.limits.header;
        let mut seen = 0;
        loop {
            let plain = self.bytes.starts_with(&b"GET /"[..self.bytes.len().min(5)]);
            if !plain || self.bytes.len() >= self.limits.header_bytes {
                return Some(false);
            }
            if has_empty_line(&self.bytes[seen..]) {
                return Some(true);
            }
            // An end may begin in what came.
            seen = self.bytes.len().saturating_sub(2);
            if self.read(deadline).await? == 0 {
                return None;
            }
        }
    }

    /// Reads more; `None` if it does not come in time.
    async fn read(&mut self, deadline: Instant) -> Option<usize> {
        self.bytes.reserve(READ);
        poll_fn(|context| {
            while let Poll::Ready(ready) = self.stream.poll_read_ready(context) {
                match ready.and_then(|()| self.stream.try_read_buf(&mut self.bytes)) {
                    Ok(read) => return Poll::Ready(Some(read)),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => return Poll::Ready(None),
                }
            }
            // One timer for the connection: it is set again when it has run down, and not for each
            // request.
            loop {
                ready!(self.timer.as_mut().poll(context));
                if Instant::now() >= deadline {
                    return Poll::Ready(None);
                }
                self.timer.as_mut().reset(deadline);
            }
        })
        .await
    }

    /// The request at the beginning of what came, if it is a plain one: its length, and its file.
    fn plain(&self) -> Option<(usize, Arc<StaticFile>, Account)> {
        let mut headers = [EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let Ok(Status::Complete(length)) = request.parse(&self.bytes) else {
            return None;
        };
        let (Some("GET"), Some(1), Some(target)) = (request.method, request.version, request.path)
        else {
            return None;
        };
        let (mut hosts, mut referer, mut agent) = (0, None, None);
        for header in &*request.headers {
            match Header::of(header.name) {
                Header::Host if is_host(header.value) => hosts += 1,
                Header::Connection if header.value.eq_ignore_ascii_case(b"keep-alive") => {}
                Header::Referer => referer = referer.or(Some(header.value)),
                Header::Agent => agent = agent.or(Some(header.value)),
                Header::Other => {}
                _ => return None,
            }
        }
        let fits =
            request.headers.len() <= self.limits.headers && length <= self.limits.header_bytes;
        if hosts != 1 || !fits {
            return None;
        }
        let (path, asks) = match target.split_once('?') {
            Some((path, _)) => (path, true),
            None => (target, false),
        };
        let file = self.router.static_file(path, asks)?;
        let share = self.router.enter(&self.peers).ok()?;
        let line = self.router.log_access(|seconds| {
            let asked = (&Method::GET, target, Version::HTTP_11);
            AccessLine::new(self.peers.client.ip(), asked, [referer, agent], seconds)
        });
        let mut account = Account::new(&Method::GET, line);
        account.count(self.router.public());
        account.hold(share);
        Some((length, file, account))
    }

    /// Sends an answer; `sent` is how much of its body went, also where it did not come to its end.
    async fn send(&mut self, file: &StaticFile, sent: &mut u64) -> io::Result<()> {
        self.out.clear();
        self.out.extend_from_slice(&file.head);
        add_date(&mut self.out);
        self.out.extend_from_slice(b"\r\n\r\n");
        match &file.content {
            Content::Small(bytes) => self.write(bytes, sent).await,
            Content::Large(content) => {
                self.write(&[], sent).await?;
                self.send_file(content, file.size, sent).await
            }
        }
    }

    /// Sends the head, and a body behind it.
    async fn write(&mut self, body: &[u8], sent: &mut u64) -> io::Result<()> {
        let all = self.out.len() + body.len();
        let mut done = 0;
        while done < all {
            let head = &self.out[done.min(self.out.len())..];
            let body = &body[done.saturating_sub(self.out.len())..];
            let parts = [IoSlice::new(head), IoSlice::new(body)];
            match self.stream.try_write_vectored(&parts) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.waited.moved(written);
                    done += written;
                    *sent = done.saturating_sub(self.out.len()) as u64;
                }
                Err(error) => self.again(error).await?,
            }
        }
        Ok(())
    }

    /// Sends a file's first `size` bytes, `done` of which have gone.
    async fn send_file(&mut self, file: &File, size: u64, done: &mut u64) -> io::Result<()> {
        while *done < size {
            let most = PIECE.min((size - *done) as usize);
            let stream = &*self.stream;
            let sent = stream.try_io(Interest::WRITABLE, || {
                Ok(sendfile(stream, file, Some(done), most)?)
            });
            match sent {
                // Shorter than it was: what was promised does not come.
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(sent) => {
                    self.waited.moved(sent);
                    tokio::task::yield_now().await;
                }
                Err(error) => self.again(error).await?,
            }
        }
        Ok(())
    }

    /// Waits until more can be sent, as long as a client may take.
    async fn again(&mut self, error: io::Error) -> io::Result<()> {
        match error.kind() {
            ErrorKind::Interrupted => Ok(()),
            ErrorKind::WouldBlock => {
                let began = Instant::now();
                let writable = timeout(self.waited.left(), self.stream.writable()).await;
                self.waited.waited(began.elapsed());
                writable.map_err(|_| io::Error::from(ErrorKind::TimedOut))?
            }
            _ => Err(error),
        }
    }
}

/// Whether a head may end here. Lines that end without a carriage return are lines (RFC 9112,
/// section 2.2), and hyper takes them.
fn has_empty_line(bytes: &[u8]) -> bool {
    let lines = bytes.split_inclusive(|&byte| byte == b'\n');
    lines
        .skip(1)
        .any(|line| [&b"\n"[..], b"\r\n"].contains(&line))
}

/// What a header means here.
enum Header {
    Host,
    Connection,
    Referer,
    Agent,
    /// It makes a difference, or a body.
    Special,
    Other,
}

impl Header {
    fn of(name: &str) -> Header {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match name.len() {
            2 if is("te") => Header::Special,
            4 if is("host") => Header::Host,
            5 if is("range") => Header::Special,
            6 if is("expect") => Header::Special,
            7 if is("referer") => Header::Referer,
            7 if is("upgrade") || is("trailer") => Header::Special,
            10 if is("connection") => Header::Connection,
            10 if is("user-agent") => Header::Agent,
            14 if is("content-length") => Header::Special,
            17 if is("transfer-encoding") => Header::Special,
            _ if name.len() > 3 && name.as_bytes()[..3].eq_ignore_ascii_case(b"if-") => {
                Header::Special
            }
            _ => Header::Other,
        }
    }
}

/// `Sun, 22 Nov 2026 22:42:08 GMT`
fn add_date(to: &mut Vec<u8>) {
    thread_local! {
        static LAST: EachSecond = const { RefCell::new((u64::MAX, String::new())) };
    }
    each_second::with(&LAST, httpdate::fmt_http_date, |text| {
        to.extend_from_slice(text.as_bytes());
    });
}
