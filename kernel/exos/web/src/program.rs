//! Programs behind paths, as `libcgi.h` has them: what is laid out for one in memory that it sees,
//! and what its answer begins with (RFC 3875, section 6).
//!
//! ```text
//! the area:   0   struct libcgi_exchange, and variables behind it
//!         BODY   the request's body
//!       ANSWER   where the program writes
//!         AREA   the end
//! ```

use alloc::vec::Vec;
use core::fmt::Write;

use crate::http::head::MORE;
use crate::http::request::{Request, number};
use crate::text::Words;

/// Where the body begins.
pub const BODY: usize = 16 << 10;
/// Bytes of a body at most.
pub const MOST: usize = 64 << 10;
/// Where the answer goes.
pub const ANSWER: usize = BODY + MOST;
/// Bytes that are handed over at a time.
pub const ROOM: usize = 128 << 10;
/// Bytes of it all.
pub const AREA: usize = ANSWER + ROOM;

/// Version of the structure, and its bytes.
const VERSION: u64 = 1;
const HEADER: usize = 12 * 8;
/// Bytes of a head at most.
const HEAD: usize = 4096;

/// Headers about the connection, which is the server's.
const RESERVED: [&[u8]; 9] = [
    b"connection",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
    b"date",
];

fn variable(to: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    to.extend_from_slice(name);
    to.push(b'=');
    // What ends a variable cannot be in one.
    to.extend(value.iter().filter(|byte| **byte != 0));
    to.push(0);
}

/// Who asks a program, and what for: the path of the program, what stands behind it, and the
/// client.
#[derive(Clone, Copy, Debug)]
pub struct Called<'a> {
    /// The request.
    pub request: &'a Request<'a>,
    /// Bytes of the path that name the program.
    pub name: usize,
    /// The client's address.
    pub client: u32,
}

/// What stands at the beginning of an area for a request with a body of so many bytes: the area
/// begins at `at` for the program. `None`: the variables do not fit.
pub fn lay_out(called: &Called<'_>, body: usize, at: u32) -> Option<Vec<u8>> {
    let request = called.request;
    let (script, info) = request.path.split_at_checked(called.name)?;
    let mut variables = Vec::new();
    let mut text = Words::default();
    variable(&mut variables, b"GATEWAY_INTERFACE", b"CGI/1.1");
    variable(&mut variables, b"SERVER_PROTOCOL", b"HTTP/1.1");
    variable(&mut variables, b"SERVER_SOFTWARE", b"ExOS");
    variable(
        &mut variables,
        b"REQUEST_METHOD",
        request.method.name().as_bytes(),
    );
    variable(&mut variables, b"SCRIPT_NAME", script);
    variable(&mut variables, b"PATH_INFO", info);
    variable(&mut variables, b"QUERY_STRING", request.query);
    let [a, b, c, d] = called.client.to_be_bytes();
    let _ = write!(text, "{a}.{b}.{c}.{d}");
    variable(&mut variables, b"REMOTE_ADDR", text.bytes());
    if body > 0 {
        let mut text = Words::default();
        let _ = write!(text, "{body}");
        variable(&mut variables, b"CONTENT_LENGTH", text.bytes());
    }
    for (name, value) in request.fields() {
        let mut own = Vec::new();
        // A header named so would be the environment's way to a proxy.
        match name {
            name if name.eq_ignore_ascii_case(b"proxy") => continue,
            name if name.eq_ignore_ascii_case(b"content-length") => continue,
            name if name.eq_ignore_ascii_case(b"content-type") => {}
            _ => own.extend_from_slice(b"HTTP_"),
        }
        own.extend(name.iter().map(|byte| match byte {
            b'-' => b'_',
            byte => byte.to_ascii_uppercase(),
        }));
        variable(&mut variables, &own, value);
    }
    if HEADER + variables.len() > BODY || body > MOST {
        return None;
    }
    let at = u64::from(at);
    let words = [
        VERSION,
        at + HEADER as u64,
        variables.len() as u64,
        at + BODY as u64,
        body as u64,
        0,
        at + ANSWER as u64,
        ROOM as u64,
    ];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(HEADER, 0);
    bytes.extend_from_slice(&variables);
    Some(bytes)
}

/// What an answer's head says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status.
    pub status: u16,
    /// Lines for the head that is sent, each with its end.
    pub more: Vec<u8>,
    /// Where the body begins.
    pub body: usize,
}

fn is_token(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte)
}

/// The head of a program's answer, of which all is there.
///
/// # Errors
/// Why it cannot be sent.
pub fn head(answer: &[u8]) -> Result<Head, &'static str> {
    let (mut status, mut said, mut more) = (None, None, Vec::new());
    let mut rest = answer;
    loop {
        let end = rest.iter().take(HEAD).position(|byte| *byte == b'\n');
        let end = end.ok_or("the answer ends before its head does")?;
        let (line, behind) = rest.split_at(end);
        rest = behind.get(1..).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            break;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let colon = colon.ok_or("a line of the answer's head is no header")?;
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        let bad = |byte: &u8| *byte < b' ' && *byte != b'\t' || *byte == 0x7f;
        if name.is_empty() || !name.iter().all(is_token) || value.iter().any(bad) {
            return Err("a line of the answer's head is no header");
        }
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        if RESERVED.into_iter().any(is) {
            return Err("the answer has a header that is the server's to set");
        }
        if is(b"status") {
            let digits = value.get(..3).and_then(number);
            let found = digits.filter(|number| (200..600).contains(number));
            status = Some(found.ok_or("the answer's status is none from 200 to 599")? as u16);
        } else if is(b"content-length") {
            said = Some(number(value).ok_or("the answer's length is no number")?);
        } else {
            for part in [name, b": ", value, b"\r\n"] {
                more.extend_from_slice(part);
            }
        }
    }
    if status.is_none() && more.is_empty() {
        return Err("the answer has neither Content-Type nor Status");
    }
    if more.len() > MORE {
        return Err("the answer's headers are too long");
    }
    if said.is_some_and(|said| said != rest.len() as u64) {
        return Err("the answer is of another length than it says");
    }
    Ok(Head {
        status: status.unwrap_or(200),
        more,
        body: answer.len() - rest.len(),
    })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::http::request;
    use std::vec::Vec;

    #[test]
    fn a_program_is_told_what_is_asked() {
        let text = b"POST /cgi/guest/a%20b?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nX-Own: a, b\r\nProxy: p\r\nContent-Type: t/x\r\n\r\n";
        let request = request::read(text).expect("fine").expect("whole");
        let called = Called {
            request: &request,
            name: 10,
            client: 0x0a00_0202,
        };
        let bytes = lay_out(&called, 5, 0x10_0000).expect("room");
        let word = |at: usize| u64::from_le_bytes(*bytes[at * 8..].first_chunk().expect("words"));
        assert_eq!((word(0), word(1)), (1, 0x10_0000 + 96));
        assert_eq!((word(3), word(4)), (0x10_0000 + BODY as u64, 5));
        assert_eq!(word(2) as usize, bytes.len() - HEADER);
        let variables: Vec<&[u8]> = bytes[HEADER..].split(|byte| *byte == 0).collect();
        for wanted in [
            &b"SCRIPT_NAME=/cgi/guest"[..],
            b"PATH_INFO=/a%20b",
            b"QUERY_STRING=x=1",
            b"REMOTE_ADDR=10.0.2.2",
            b"CONTENT_LENGTH=5",
            b"CONTENT_TYPE=t/x",
            b"HTTP_X_OWN=a, b",
            b"HTTP_HOST=h",
        ] {
            assert!(variables.contains(&wanted), "{wanted:?}");
        }
        assert!(!variables.iter().any(|text| text.starts_with(b"HTTP_PROXY")));
        assert!(lay_out(&called, MOST + 1, 0).is_none());
    }

    #[test]
    fn heads_of_answers() {
        let fine = head(b"Status: 404\nContent-Type: a/b\r\nX: y\n\nbody").expect("fine");
        assert_eq!((fine.status, fine.body), (404, 37));
        assert_eq!(fine.more, b"Content-Type: a/b\r\nX: y\r\n");
        assert!(head(b"Content-Type: a/b\nContent-Length: 2\n\nab").is_ok());
        for wrong in [
            &b""[..],
            b"Content-Type: a",
            b"no header\n\n",
            b"\n",
            b"Status: 100\n\n",
            b"Status: 1\n\n",
            b"Date: x\n\n",
            b"A b: c\n\n",
            b"A: b\x01c\n\n",
            b"Content-Type: a/b\nContent-Length: 3\n\nab",
            &[b'x'; 5000],
        ] {
            assert!(head(wrong).is_err(), "{wrong:?}");
        }
        let long = [&b"Long: "[..], &[b'x'; MORE], b"\n\n"].concat();
        assert!(head(&long).is_err());
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..random.usize(..40))
                .map(|_| {
                    random
                        .choice(b"Status: 20\r\n\0ab;".iter())
                        .copied()
                        .unwrap_or(0)
                })
                .collect();
            let _ = head(&bytes);
        }
    }
}
