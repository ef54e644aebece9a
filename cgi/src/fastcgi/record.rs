//! Records of the FastCGI protocol, version 1, as far as a server needs them that sends one request
//! at a time over a connection.

use bytes::{Buf, Bytes, BytesMut};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

const VERSION: u8 = 1;
const HEADER: usize = 8;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// A piece of the answer; an empty one ends it.
    Stdout,
    /// A piece of what goes to the log.
    Stderr,
    /// The end of the request.
    End,
    /// Nothing that matters here.
    Other,
}

impl RecordKind {
    const BEGIN: u8 = 1;
    const END: u8 = 3;
    const PARAMETERS: u8 = 4;
    /// A piece of the body; an empty one ends it.
    pub const STDIN: u8 = 5;
    const STDOUT: u8 = 6;
    const STDERR: u8 = 7;
}

/// Which request of a connection a record belongs to; 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId(pub u16);

impl RequestId {
    /// Of a connection's first request.
    pub const FIRST: RequestId = RequestId(1);

    /// Of the next one.
    pub fn next(self) -> RequestId {
        RequestId(self.0.checked_add(1).unwrap_or(RequestId::FIRST.0))
    }
}

/// Adds a record; content of more than 65535 bytes becomes several.
pub fn record(to: &mut Vec<u8>, request: RequestId, kind: u8, content: &[u8]) {
    let mut pieces = content.chunks(0xfff8);
    let first = pieces.next().unwrap_or_default();
    for piece in std::iter::once(first).chain(pieces) {
        let [high, low] = (piece.len() as u16).to_be_bytes();
        let [first, second] = request.0.to_be_bytes();
        to.extend_from_slice(&[VERSION, kind, first, second, high, low, 0, 0]);
        to.extend_from_slice(piece);
    }
}

/// The record that begins a request, on a connection that is kept.
pub fn begin(request: RequestId) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(2048);
    let responder = [0, 1, 1, 0, 0, 0, 0, 0];
    record(&mut bytes, request, RecordKind::BEGIN, &responder);
    bytes
}

/// The records of the variables, and their end.
pub fn parameters<'a>(
    to: &mut Vec<u8>,
    request: RequestId,
    pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) {
    let mut content = Vec::with_capacity(1024);
    for (name, value) in pairs {
        for length in [name.len(), value.len()] {
            match u8::try_from(length) {
                Ok(short) if short < 128 => content.push(short),
                _ => content.extend_from_slice(&(length as u32 | 1 << 31).to_be_bytes()),
            }
        }
        content.extend_from_slice(name);
        content.extend_from_slice(value);
    }
    record(to, request, RecordKind::PARAMETERS, &content);
    record(to, request, RecordKind::PARAMETERS, &[]);
}

/// Reads records.
pub struct Reader<R> {
    from: R,
    bytes: BytesMut,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// From there.
    pub fn new(from: R) -> Reader<R> {
        Reader {
            from,
            bytes: BytesMut::with_capacity(64 << 10),
        }
    }

    /// The next record of a request; `None` at the end. May be dropped while it waits: nothing that
    /// came is lost.
    ///
    /// # Errors
    /// The connection fails, or what comes is not FastCGI or another request's.
    pub async fn next(&mut self, request: RequestId) -> io::Result<Option<(RecordKind, Bytes)>> {
        loop {
            if let Some(found) = self.split(request)? {
                return Ok(Some(found));
            }
            self.bytes.reserve(64 << 10);
            if self.from.read_buf(&mut self.bytes).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Whether nothing has come that nobody asked for.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Where it reads from.
    pub fn source(&self) -> &R {
        &self.from
    }

    fn split(&mut self, request: RequestId) -> io::Result<Option<(RecordKind, Bytes)>> {
        let Some(&[version, kind, first, second, high, low, padding, _]) =
            self.bytes.first_chunk::<HEADER>()
        else {
            return Ok(None);
        };
        if version != VERSION {
            return Err(io::Error::other("what came is no FastCGI record"));
        }
        let of = RequestId(u16::from_be_bytes([first, second]));
        if of != request && of != RequestId(0) {
            let RequestId(of) = of;
            let text = format!("a record of request {of}, which nobody made, came");
            return Err(io::Error::other(text));
        }
        let size = usize::from(u16::from_be_bytes([high, low]));
        if self.bytes.len() < HEADER + size + usize::from(padding) {
            return Ok(None);
        }
        self.bytes.advance(HEADER);
        let content = self.bytes.split_to(size).freeze();
        self.bytes.advance(usize::from(padding));
        let kind = match kind {
            // About the connection.
            _ if of == RequestId(0) => RecordKind::Other,
            RecordKind::STDOUT => RecordKind::Stdout,
            RecordKind::STDERR => RecordKind::Stderr,
            RecordKind::END => RecordKind::End,
            _ => RecordKind::Other,
        };
        Ok(Some((kind, content)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lengths_have_four_bytes() {
        let mut bytes = Vec::new();
        let value = [b'v'; 200];
        let pairs = [(&b"N"[..], &value[..])].into_iter();
        parameters(&mut bytes, RequestId::FIRST, pairs);
        assert_eq!(&bytes[..8], [1, 4, 0, 1, 0, 206, 0, 0]);
        assert_eq!(&bytes[8..14], [1, 0x80, 0, 0, 200, b'N']);
        assert_eq!(&bytes[bytes.len() - 8..], [1, 4, 0, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn records_come_in_any_pieces() {
        let mut reader = Reader::new(tokio::io::empty());
        let mut all = Vec::new();
        let request = RequestId(0x102);
        record(&mut all, RequestId(0), RecordKind::STDOUT, b"of nobody's");
        record(&mut all, request, RecordKind::STDOUT, b"hello");
        let last = all.len() - 13;
        all[last + 6] = 3;
        all.extend_from_slice(b"pad");
        record(&mut all, request, RecordKind::END, &[0; 8]);
        let mut found = Vec::new();
        for byte in all {
            reader.bytes.extend_from_slice(&[byte]);
            found.extend(reader.split(request).unwrap());
        }
        assert_eq!(
            found,
            [
                (RecordKind::Other, Bytes::from("of nobody's")),
                (RecordKind::Stdout, Bytes::from("hello")),
                (RecordKind::End, Bytes::from(vec![0; 8]))
            ]
        );
        for wrong in [&b"HTTP/1.1 200"[..], &[1, 6, 1, 3, 0, 0, 0, 0]] {
            let mut reader = Reader::new(tokio::io::empty());
            reader.bytes.extend_from_slice(wrong);
            assert!(reader.split(request).is_err());
        }
        assert_eq!(RequestId(u16::MAX).next(), RequestId::FIRST);
    }
}
