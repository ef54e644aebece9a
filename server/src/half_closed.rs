//! Clients that close their sending side behind a request and wait for its answer, as programs do
//! that read it to the end (`nc -N`). What comes in is at its end for hyper then, which takes that
//! for a client that has left.
//!
//! Invariant: an end is told when no answer is due, or nothing of one went for [`PATIENCE`] and
//! nothing wants to go: so who has left costs no more than that.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// How long an answer may take whose client sends no more.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether an answer is due on a connection.
#[derive(Debug, Clone, Default)]
pub struct Answering(Arc<AtomicBool>);

/// An answer that is due, until this is dropped.
#[derive(Debug)]
pub struct Due(Answering);

impl Answering {
    /// A request has come. Whether all of its body has, the stream cannot know: it may have been
    /// read right before the end. A client that broke off in the middle costs no more, either.
    pub fn begin(&self) -> Due {
        self.0.store(true, Ordering::Relaxed);
        Due(self.clone())
    }
}

impl Drop for Due {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
}

/// A stream whose end waits for answers.
pub struct HalfClosed<S> {
    stream: S,
    answering: Answering,
    /// Since the end came.
    ended: Option<Pin<Box<Sleep>>>,
    /// When something went last.
    wrote: Option<Instant>,
    /// Something wants to go.
    writing: bool,
}

impl<S> HalfClosed<S> {
    /// Says the end when `answering` lets it.
    pub fn new(stream: S, answering: Answering) -> HalfClosed<S> {
        HalfClosed {
            stream,
            answering,
            ended: None,
            wrote: None,
            writing: false,
        }
    }

    /// Ready when the end may be told.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let due = self.answering.0.load(Ordering::Relaxed);
        let Some(timer) = self.ended.as_mut().filter(|_| due || self.writing) else {
            return Poll::Ready(());
        };
        loop {
            ready!(timer.as_mut().poll(context));
            let until = match (self.writing, self.wrote) {
                (true, _) => Instant::now() + PATIENCE,
                (false, Some(wrote)) => wrote + PATIENCE,
                (false, None) => return Poll::Ready(()),
            };
            if until <= Instant::now() {
                return Poll::Ready(());
            }
            timer.as_mut().reset(until);
        }
    }

    fn note(&mut self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.writing = result.is_pending();
        if let Poll::Ready(Ok(1..)) = result
            && self.ended.is_some()
        {
            self.wrote = Some(Instant::now());
        }
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HalfClosed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ended.is_none() {
            let before = to.remaining();
            ready!(Pin::new(&mut self.stream).poll_read(context, to))?;
            if to.remaining() != before || before == 0 {
                return Poll::Ready(Ok(()));
            }
            self.ended = Some(Box::pin(sleep(PATIENCE)));
        }
        self.poll_end(context).map(Ok)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HalfClosed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, from);
        self.note(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, from);
        self.note(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
