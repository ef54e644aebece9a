//! What a process writes on its way to the client: the head first, then the rest as it comes, with
//! back-pressure.

use bytes::{Bytes, BytesMut};
use postern_server::Answer;
use postern_server::Failure;
use postern_server::head::{self, HEAD_LIMIT, HeadError, Promise};
use postern_server::{Body, Cut};
use tokio::sync::mpsc;

/// An answer that ends before it is longer than this, and soon, is sent in one piece.
const WHOLE: usize = 64 << 10;

/// One answer.
pub struct ResponseWriter {
    answer: Option<Answer>,
    kept: BytesMut,
    stream: Option<mpsc::Sender<Result<Bytes, Cut>>>,
    promise: Promise,
}

impl ResponseWriter {
    /// To there.
    pub fn new(answer: Answer) -> ResponseWriter {
        ResponseWriter {
            answer: Some(answer),
            kept: BytesMut::new(),
            stream: None,
            promise: Promise::default(),
        }
    }

    /// Whether something waits here that the client could have.
    pub fn holds(&self) -> bool {
        self.answer.is_some() && !self.kept.is_empty()
    }

    /// More of it. False if nobody wants it any more.
    ///
    /// # Errors
    /// It is no answer.
    pub async fn push(&mut self, bytes: Bytes) -> Result<bool, Failure> {
        if let Some(stream) = &self.stream {
            self.promise.send(bytes.len())?;
            return Ok(bytes.is_empty() || stream.send(Ok(bytes)).await.is_ok());
        }
        self.kept.extend_from_slice(&bytes);
        match self.kept.len() > WHOLE {
            true => self.begin().await,
            false => Ok(true),
        }
    }

    /// Sends what is there, if the head is.
    ///
    /// # Errors
    /// It is no head.
    pub async fn begin(&mut self) -> Result<bool, Failure> {
        if self.answer.is_none() {
            return Ok(self.stream.is_some());
        }
        let beginning = &self.kept[..self.kept.len().min(HEAD_LIMIT + 1)];
        let Some(mut head) = head::parse(beginning)? else {
            return Ok(true);
        };
        head.bare |= self.answer.as_ref().is_some_and(|answer| answer.brief);
        self.promise = Promise::of(&head);
        self.promise.send(self.kept.len() - head.size)?;
        let (stream, body) = Body::stream();
        let rest = self.kept.split_off(head.size).freeze();
        let response = head.response(body, None)?;
        let Some(answer) = self.answer.take() else {
            return Ok(false);
        };
        if !answer.send(Ok(response)) {
            return Ok(false);
        }
        let wanted = rest.is_empty() || stream.send(Ok(rest)).await.is_ok();
        self.stream = Some(stream);
        Ok(wanted)
    }

    /// The end: of the answer, or of the hope for one. Gives the failure, if nobody was told: the
    /// answer had begun.
    pub async fn finish(mut self, result: Result<(), Failure>) -> Option<Failure> {
        let result = match &self.stream {
            // Who is gone misses nothing.
            Some(stream) if !stream.is_closed() => result.and_then(|()| Ok(self.promise.end()?)),
            _ => result,
        };
        match (result, self.answer.take()) {
            (Ok(()), Some(answer)) => {
                let response = whole(self.kept, answer.brief);
                answer.send(response);
            }
            (Err(failure), Some(answer)) => {
                answer.send(Err(failure));
            }
            (Err(failure), None) => {
                if let Some(stream) = self.stream {
                    let _ = stream.send(Err(Cut::from(&failure))).await;
                }
                return Some(failure);
            }
            (Ok(()), None) => {}
        }
        None
    }
}

fn whole(kept: BytesMut, brief: bool) -> Result<http::Response<Body>, Failure> {
    let beginning = &kept[..kept.len().min(HEAD_LIMIT + 1)];
    let mut head = head::parse(beginning)?.ok_or(HeadError::Unfinished)?;
    head.bare |= brief;
    let body = kept.freeze().split_off(head.size);
    let size = body.len() as u64;
    Ok(head.response(Body::whole(body), Some(size))?)
}
