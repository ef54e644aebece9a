//! Bodies of answers: bytes that are there, or a stream with back-pressure.

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use thiserror::Error;
use tokio::sync::mpsc;

/// Why an answer goes no further: the connection is closed, so that nobody takes it for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Cut {
    /// The program that made it failed on the way.
    #[error("the answer was cut off")]
    Program,
    /// The client broke off what the program needed of it.
    #[error("the request was broken off")]
    Client,
}

/// What is sent behind the head.
#[derive(Debug)]
pub enum Body {
    /// All of it; `None` once it was taken.
    Whole(Option<Bytes>),
    /// Piece by piece. Whoever sends them waits until there is room.
    Stream {
        /// Where they come from.
        pieces: mpsc::Receiver<Result<Bytes, Cut>>,
        /// Why there are no more, if that was met.
        cut: Option<Cut>,
    },
}

impl Body {
    /// Nothing.
    pub fn empty() -> Body {
        Body::Whole(None)
    }

    /// All of it.
    pub fn whole(bytes: impl Into<Bytes>) -> Body {
        Body::Whole(Some(bytes.into()).filter(|bytes: &Bytes| !bytes.is_empty()))
    }

    /// A stream, and where its pieces come from.
    pub fn stream() -> (mpsc::Sender<Result<Bytes, Cut>>, Body) {
        let (sender, receiver) = mpsc::channel(1);
        let pieces = receiver;
        (sender, Body::Stream { pieces, cut: None })
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        Poll::Ready(match &mut *self {
            Body::Whole(bytes) => bytes.take().map(|bytes| Ok(Frame::data(bytes))),
            Body::Stream { pieces, cut } => {
                if let Some(cut) = cut {
                    return Poll::Ready(Some(Err(*cut)));
                }
                match ready!(pieces.poll_recv(context)) {
                    Some(Err(met)) => {
                        // What came before goes out first: the connection is closed at once when
                        // this is told.
                        *cut = Some(met);
                        context.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    piece => piece.map(|piece| piece.map(Frame::data)),
                }
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Body::Stream { .. } => SizeHint::default(),
        }
    }
}

impl From<Infallible> for Cut {
    fn from(never: Infallible) -> Cut {
        match never {}
    }
}
