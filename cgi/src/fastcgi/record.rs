//! Records of the FastCGI protocol, version 1, as far as a server needs them that sends one request
//! at a time over a connection.

use bytes::{Buf, Bytes, BytesMut};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

const VERSION: u8 = 1;
const REQUEST: u8 = 1;
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

/// Adds a record; content of more than 65535 bytes becomes several.
pub fn record(to: &mut Vec<u8>, kind: u8, content: &[u8]) {
    let mut pieces = content.chunks(0xfff8);
    let first = pieces.next().unwrap_or_default();
    for piece in std::iter::once(first).chain(pieces) {
        let [high, low] = (piece.len() as u16).to_be_bytes();
        to.extend_from_slice(&[VERSION, kind, 0, REQUEST, high, low, 0, 0]);
        to.extend_from_slice(piece);
    }
}

/// The record that begins a request, on a connection that is kept.
pub fn begin() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(2048);
    record(&mut bytes, RecordKind::BEGIN, &[0, 1, 1, 0, 0, 0, 0, 0]);
    bytes
}

/// The records of the variables, and their end.
pub fn parameters<'a>(to: &mut Vec<u8>, pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>) {
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
    record(to, RecordKind::PARAMETERS, &content);
    record(to, RecordKind::PARAMETERS, &[]);
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

    /// The next record; `None` at the end. May be dropped while it waits: nothing that came is
    /// lost.
    ///
    /// # Errors
    /// The connection fails, or what comes is not FastCGI.
    pub async fn next(&mut self) -> io::Result<Option<(RecordKind, Bytes)>> {
        loop {
            if let Some(found) = self.split()? {
                return Ok(Some(found));
            }
            self.bytes.reserve(64 << 10);
            if self.from.read_buf(&mut self.bytes).await? == 0 {
                return Ok(None);
            }
        }
    }

    fn split(&mut self) -> io::Result<Option<(RecordKind, Bytes)>> {
        let Some(&[version, kind, _, _, high, low, padding, _]) =
            self.bytes.first_chunk::<HEADER>()
        else {
            return Ok(None);
        };
        if version != VERSION {
            return Err(io::Error::other("not a FastCGI record"));
        }
        let size = usize::from(u16::from_be_bytes([high, low]));
        if self.bytes.len() < HEADER + size + usize::from(padding) {
            return Ok(None);
        }
        self.bytes.advance(HEADER);
        let content = self.bytes.split_to(size).freeze();
        self.bytes.advance(usize::from(padding));
        let kind = match kind {
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
        parameters(&mut bytes, [(&b"N"[..], &value[..])].into_iter());
        assert_eq!(&bytes[..8], [1, 4, 0, 1, 0, 206, 0, 0]);
        assert_eq!(&bytes[8..14], [1, 0x80, 0, 0, 200, b'N']);
        assert_eq!(&bytes[bytes.len() - 8..], [1, 4, 0, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn records_come_in_any_pieces() {
        let mut reader = Reader::new(tokio::io::empty());
        let mut all = Vec::new();
        record(&mut all, RecordKind::STDOUT, b"hello");
        all[6] = 3;
        all.extend_from_slice(b"pad");
        record(&mut all, RecordKind::END, &[0; 8]);
        let mut found = Vec::new();
        for byte in all {
            reader.bytes.extend_from_slice(&[byte]);
            found.extend(reader.split().unwrap());
        }
        assert_eq!(
            found,
            [
                (RecordKind::Stdout, Bytes::from("hello")),
                (RecordKind::End, Bytes::from(vec![0; 8]))
            ]
        );
        reader.bytes.extend_from_slice(b"HTTP/1.1 200");
        assert!(reader.split().is_err());
    }
}
