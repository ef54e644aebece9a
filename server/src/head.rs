//! The head that a program puts before its answer (RFC 3875, section 6): one parser for all ways to
//! run a program.
//!
//! Invariant: what comes out of here can be sent. Names are tokens, values have no line ends and no
//! control characters, and nothing in it says where the message ends, except a length that is a
//! number: an answer cannot be split in two.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use http::{Response, StatusCode};
use thiserror::Error;

/// Longest head that is read.
pub const HEAD_LIMIT: usize = 16 << 10;
/// Most headers.
const HEADERS: usize = 100;

/// Headers about the connection, which is the server's.
const RESERVED: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "date",
];

/// Why an answer cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HeadError {
    /// No end of it.
    #[error("the answer ends before its head does; an empty line belongs behind the headers")]
    Unfinished,
    /// More than anybody would send on purpose.
    #[error(
        "the answer's head is longer than {HEAD_LIMIT} bytes or has more than {HEADERS} headers"
    )]
    TooLong,
    /// Not `Name: value`.
    #[error("line {line} of the answer's head is no header: {text:?}")]
    Line {
        /// From 1.
        line: usize,
        /// How it begins.
        text: String,
    },
    /// A header that is not a program's to set.
    #[error("the answer has the header `{0}`, which is the server's to set")]
    Reserved(String),
    /// A header that must not be there twice.
    #[error("the answer has `{0}` twice")]
    Twice(HeaderName),
    /// The value of `Status`.
    #[error("the answer has status {0:?}; a number from 200 to 599 is expected")]
    Status(String),
    /// The value of `Content-Length`.
    #[error("the answer says that it is {said} bytes long, and is {is}")]
    Length {
        /// The header's value.
        said: String,
        /// What it should be.
        is: String,
    },
    /// No header that says what the answer is.
    #[error("the answer has none of Content-Type, Location and Status")]
    Nothing,
}

/// A head that can be sent.
#[derive(Debug)]
pub struct Head {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// What `Content-Length` says.
    pub length: Option<u64>,
    /// No body follows, whatever the length says: it is that of what a GET would get (RFC 9110,
    /// section 8.6).
    pub bare: bool,
    /// Bytes that the head took.
    pub size: usize,
}

impl Head {
    /// A response with a body of `size` bytes, or of a size that is not known yet.
    ///
    /// # Errors
    /// The head promises another size.
    pub fn response<B>(self, body: B, size: Option<u64>) -> Result<Response<B>, HeadError> {
        if let (Some(said), Some(is)) = (self.length, size)
            && said != is
            && !self.bare
        {
            return Err(HeadError::Length {
                said: said.to_string(),
                is: is.to_string(),
            });
        }
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        Ok(response)
    }
}

/// What a head promised of a body that is sent piece by piece.
#[derive(Debug, Clone, Copy, Default)]
pub struct Promise {
    said: Option<u64>,
    sent: u64,
}

impl Promise {
    /// Of a head.
    pub fn of(head: &Head) -> Promise {
        Promise {
            said: head.length.filter(|_| !head.bare),
            sent: 0,
        }
    }

    /// So many bytes more are about to be sent.
    ///
    /// # Errors
    /// They are more than was promised.
    pub fn send(&mut self, bytes: usize) -> Result<(), HeadError> {
        self.sent += bytes as u64;
        self.check(|said, sent| sent <= said, "longer")
    }

    /// There is no more.
    ///
    /// # Errors
    /// It is less than was promised.
    pub fn end(&self) -> Result<(), HeadError> {
        self.check(|said, sent| sent == said, "shorter")
    }

    fn check(&self, fine: impl Fn(u64, u64) -> bool, is: &str) -> Result<(), HeadError> {
        match self.said {
            Some(said) if !fine(said, self.sent) => Err(HeadError::Length {
                said: said.to_string(),
                is: is.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// Reads the head of an answer that begins with `bytes`. `None` if it goes on behind them.
///
/// # Errors
/// See [`HeadError`].
pub fn parse(bytes: &[u8]) -> Result<Option<Head>, HeadError> {
    let mut head = Head {
        status: StatusCode::OK,
        headers: HeaderMap::new(),
        length: None,
        bare: false,
        size: 0,
    };
    let (mut says, mut status) = (false, None);
    for number in 1.. {
        let rest = &bytes[head.size..];
        let Some(end) = rest.iter().take(HEAD_LIMIT + 1).position(|&b| b == b'\n') else {
            return match rest.len() + head.size > HEAD_LIMIT {
                true => Err(HeadError::TooLong),
                false => Ok(None),
            };
        };
        head.size += end + 1;
        if head.size > HEAD_LIMIT || number > HEADERS {
            return Err(HeadError::TooLong);
        }
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        if line.is_empty() {
            break;
        }
        let (name, value) = header(line).ok_or_else(|| HeadError::Line {
            line: number,
            text: String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned(),
        })?;
        if RESERVED.contains(&name.as_str()) {
            return Err(HeadError::Reserved(name.to_string()));
        }
        says |= name == CONTENT_TYPE || name == LOCATION || name == "status";
        if name == "status" {
            if status.replace(read_status(&value)?).is_some() {
                return Err(HeadError::Twice(name));
            }
            continue;
        }
        if name == CONTENT_LENGTH {
            head.length = Some(read_length(&value)?);
        }
        let once = [CONTENT_LENGTH, CONTENT_TYPE, LOCATION].contains(&name);
        if once && head.headers.contains_key(&name) {
            return Err(HeadError::Twice(name));
        }
        head.headers.append(name, value);
    }
    if !says {
        return Err(HeadError::Nothing);
    }
    let moved = head.headers.contains_key(LOCATION);
    head.status = status.unwrap_or(if moved {
        StatusCode::FOUND
    } else {
        StatusCode::OK
    });
    head.bare = head.status == StatusCode::NOT_MODIFIED;
    Ok(Some(head))
}

fn header(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|&b| b == b':')?;
    let name = HeaderName::from_bytes(&line[..colon]).ok()?;
    let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
    Some((name, value))
}

fn read_status(value: &HeaderValue) -> Result<StatusCode, HeadError> {
    let text = value.as_bytes();
    let number = text.get(..3).and_then(|n| StatusCode::from_bytes(n).ok());
    let alone = matches!(text.get(3), None | Some(b' '));
    number
        .filter(|n| alone && (200..600).contains(&n.as_u16()))
        .ok_or_else(|| HeadError::Status(String::from_utf8_lossy(text).into_owned()))
}

fn read_length(value: &HeaderValue) -> Result<u64, HeadError> {
    let digits = value.as_bytes().iter().all(u8::is_ascii_digit);
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    number.filter(|_| digits).ok_or_else(|| HeadError::Length {
        said: String::from_utf8_lossy(value.as_bytes()).into_owned(),
        is: "no number".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str) -> Head {
        parse(text.as_bytes()).unwrap().unwrap()
    }

    fn error(text: &str) -> HeadError {
        parse(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn heads_that_can_be_sent() {
        let head = ok("Content-Type: text/html\r\nX-A: b c \n\nbody");
        assert_eq!((head.status.as_u16(), head.size), (200, 36));
        assert_eq!(head.headers["x-a"], "b c");
        assert_eq!(ok("Status: 404 Not Found\n\n").status.as_u16(), 404);
        assert_eq!(ok("Location: /there\n\n").status.as_u16(), 302);
        assert_eq!(ok("Location: /there\nStatus: 201\n\n").status.as_u16(), 201);
        assert_eq!(
            ok("Set-Cookie: a\nSet-Cookie: b\nStatus: 200\n\n")
                .headers
                .len(),
            2
        );
        assert!(parse(b"Content-Type: text/html\r\n").unwrap().is_none());
        assert!(parse(b"").unwrap().is_none());
    }

    #[test]
    fn heads_that_cannot() {
        assert_eq!(error("\r\nbody"), HeadError::Nothing);
        assert_eq!(error("X-A: b\n\n"), HeadError::Nothing);
        for line in [
            "no colon",
            ": empty",
            "Sp ace: a",
            "X-A: a\rSet-Cookie: b",
            "X-A: \x01",
            " folded: a",
        ] {
            let text = format!("Content-Type: a/b\n{line}\n\n");
            assert!(
                matches!(error(&text), HeadError::Line { line: 2, .. }),
                "{line}"
            );
        }
        for status in ["100", "600", "20", "2000", "abc", "", "200OK"] {
            assert!(
                matches!(
                    error(&format!("Status: {status}\n\n")),
                    HeadError::Status(_)
                ),
                "{status}"
            );
        }
        assert!(matches!(
            error("Transfer-Encoding: chunked\n\n"),
            HeadError::Reserved(_)
        ));
        assert!(matches!(
            error("Content-Length: +3\n\n"),
            HeadError::Length { .. }
        ));
        assert!(matches!(
            error("Content-Length: 3\nContent-Length: 3\n\n"),
            HeadError::Twice(_)
        ));
        assert!(matches!(
            error("Status: 200\nStatus: 200\n\n"),
            HeadError::Twice(_)
        ));
        assert_eq!(error(&"X-A: b\n".repeat(HEADERS + 1)), HeadError::TooLong);
        assert_eq!(error(&"x".repeat(HEAD_LIMIT + 1)), HeadError::TooLong);
        let mut promise = Promise::of(&ok("Content-Length: 4\nStatus: 200\n\n"));
        assert!(promise.send(3).is_ok() && promise.end().is_err());
        assert!(promise.send(1).is_ok() && promise.end().is_ok());
        assert!(promise.send(1).is_err());
        let promise = Promise::of(&ok("Content-Length: 4\nStatus: 304\n\n"));
        assert!(promise.end().is_ok());
        assert!(
            ok("Content-Length: 4\nStatus: 200\n\n")
                .response((), Some(3))
                .is_err()
        );
    }
}
