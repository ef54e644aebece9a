//! A line of the access log, in the combined format of Apache and nginx, which the usual programs
//! read: `CLIENT - - [TIME] "REQUEST" STATUS BYTES "REFERER" "USER-AGENT"`, and the seconds behind
//! it if the site wants them.
//!
//! Invariant: a client's bytes stand between quotation marks, and end them nowhere: what could is
//! written as `\xHH`.

use crate::each_second::{self, EachSecond};
use http::{Method, Version};
use std::cell::RefCell;
use std::fmt::Write;
use std::net::IpAddr;
use std::time::Duration;

/// What is known of a request when it comes; the rest is known at its end.
#[derive(Debug)]
pub struct AccessLine {
    /// Up to the request's end.
    text: String,
    /// Referer and user agent.
    client: String,
    /// Whether the time that it took stands at the end.
    seconds: bool,
}

impl AccessLine {
    /// Of a request that has just come; `said` is what it has for `Referer` and `User-Agent`.
    pub fn new(
        client: IpAddr,
        (method, target, version): (&Method, &str, Version),
        said: [Option<&[u8]>; 2],
        seconds: bool,
    ) -> AccessLine {
        let mut text = String::with_capacity(256);
        let _ = write!(text, "{} - - [", client.to_canonical());
        add_time(&mut text);
        text.push_str("] \"");
        escape(&mut text, method.as_str().as_bytes());
        text.push(' ');
        escape(&mut text, target.as_bytes());
        let _ = write!(text, " {version:?}\"");
        let mut line = AccessLine {
            text,
            client: String::with_capacity(128),
            seconds,
        };
        for value in said {
            line.header(value);
        }
        line
    }

    fn header(&mut self, value: Option<&[u8]>) {
        self.client.push_str(" \"");
        match value {
            Some(value) => escape(&mut self.client, value),
            None => self.client.push('-'),
        }
        self.client.push('"');
    }

    /// The whole line, when the answer is through.
    pub fn end(mut self, status: u16, bytes: u64, time: Duration) -> String {
        let _ = write!(self.text, " {status} {bytes}{}", self.client);
        if self.seconds {
            let _ = write!(self.text, " {:.6}", time.as_secs_f64());
        }
        self.text
    }
}

/// As nginx does it.
fn escape(to: &mut String, bytes: &[u8]) {
    for &byte in bytes {
        match byte {
            b'"' | b'\\' | 0..0x20 | 0x7f.. => drop(write!(to, "\\x{byte:02X}")),
            byte => to.push(byte.into()),
        }
    }
}

/// `22/Nov/2026:22:42:08 +0000`
fn add_time(to: &mut String) {
    thread_local! {
        static LAST: EachSecond = const { RefCell::new((u64::MAX, String::new())) };
    }
    let make = |now| {
        // `Sun, 22 Nov 2026 22:42:08 GMT`
        let date = httpdate::fmt_http_date(now);
        let words: Vec<&str> = date.split(' ').collect();
        match words[..] {
            [_, day, month, year, time, _] => format!("{day}/{month}/{year}:{time} +0000"),
            _ => date,
        }
    };
    each_second::with(&LAST, make, |text| to.push_str(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_client_ends_its_quotation_marks() {
        let agent = b"a\" 200 1 \"b\\\xff\tc";
        let request = (&Method::GET, "/a?\"b", Version::HTTP_11);
        let client = "::ffff:127.0.0.1".parse().unwrap();
        let line = AccessLine::new(client, request, [None, Some(agent)], true);
        let line = line.end(200, 28, Duration::from_millis(1500));
        let (before, rest) = line.split_once(" - - [").unwrap();
        let (time, rest) = rest.split_once("] ").unwrap();
        assert_eq!(before, "127.0.0.1");
        assert!(time.ends_with(" +0000") && time.len() == 26, "{time}");
        let expected =
            r#""GET /a?\x22b HTTP/1.1" 200 28 "-" "a\x22 200 1 \x22b\x5C\xFF\x09c" 1.500000"#;
        assert_eq!(rest, expected);
    }
}
