//! Requests (RFC 9112). A head is read when all of it is there; a body has a length. What is not
//! clear is refused: two readings of one request are how others are made to misread it.

/// Bytes of a head at most.
pub const HEAD: usize = 8 << 10;
/// Bytes of a target at most.
pub const TARGET: usize = 1024;
/// Fields of a head at most.
const FIELDS: usize = 64;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// What is there.
    Get,
    /// The same without its bytes.
    Head,
    /// Something with these bytes.
    Post,
    /// These bytes are to be there.
    Put,
    /// It is to go.
    Delete,
}

impl Method {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        }
    }
}

/// Bytes that are asked for (RFC 9110, section 14.1.2): one range, the last byte included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// From a byte on, to another one if it is there.
    From(u64, Option<u64>),
    /// The last so many.
    Last(u64),
}

impl Range {
    /// The first byte and how many, of so many that there are. `None`: there are none such.
    pub fn of(self, length: u64) -> Option<(u64, u64)> {
        let (from, end) = match self {
            Range::From(from, last) => (from, last.map_or(length, |last| last.saturating_add(1))),
            Range::Last(count) => (length.saturating_sub(count), length),
        };
        let end = end.min(length);
        (from < end).then(|| (from, end - from))
    }
}

/// A request's head.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What is asked for.
    pub method: Method,
    /// Of what: it begins with `/`, as it was sent.
    pub path: &'a [u8],
    /// Behind `?`.
    pub query: &'a [u8],
    /// Whether the connection ends behind the answer.
    pub closes: bool,
    /// Bytes behind the head.
    pub body: u64,
    /// The client waits for a word before it sends them.
    pub expects: bool,
    /// Bytes that are asked for.
    pub range: Option<Range>,
    /// Tags of what the client has.
    pub has: Option<&'a [u8]>,
    /// Bytes of the head.
    pub length: usize,
    /// The first line.
    pub line: &'a [u8],
    /// The other lines, up to the empty one.
    pub rest: &'a [u8],
}

impl<'a> Request<'a> {
    /// Names and values of all fields, in their order.
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.rest.split(|byte| *byte == b'\n').filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let (name, value) = line.split_at(colon);
            Some((name, trimmed(value.get(1..)?)))
        })
    }
}

/// Why a request is not answered as it wishes: the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal(pub u16);

const BAD: Refusal = Refusal(400);

/// Reads a head, if all of it is there.
///
/// # Errors
/// The status that refuses it. The connection cannot go on then.
pub fn read(bytes: &[u8]) -> Result<Option<Request<'_>>, Refusal> {
    // Empty lines before a request are nothing (RFC 9112, section 2.2).
    let empty = bytes
        .iter()
        .take_while(|b| matches!(b, b'\r' | b'\n'))
        .count();
    let (mut rest, mut length) = (bytes.get(empty..).unwrap_or_default(), empty);
    if empty > 8 {
        return Err(BAD);
    }
    let Some((line, behind)) = next_line(rest)? else {
        return match rest.len() {
            0..=TARGET => Ok(None),
            _ => Err(Refusal(414)),
        };
    };
    length += rest.len() - behind.len();
    rest = behind;
    let (mut request, is_old) = first(line)?;
    let lines = rest;
    let mut fields = Fields::default();
    let mut count = 0;
    loop {
        let Some((line, behind)) = next_line(rest)? else {
            return match bytes.len() {
                0..HEAD => Ok(None),
                _ => Err(Refusal(431)),
            };
        };
        length += rest.len() - behind.len();
        rest = behind;
        if length > HEAD {
            return Err(Refusal(431));
        }
        if line.is_empty() {
            break;
        }
        count += 1;
        if count > FIELDS {
            return Err(Refusal(431));
        }
        fields.field(line, &mut request)?;
    }
    // Section 3.2: exactly one, since HTTP/1.1.
    if fields.hosts > 1 || fields.hosts == 0 && !is_old {
        return Err(BAD);
    }
    if fields.encoded {
        // Section 6.1: with a length, somebody means to be misread.
        return Err(if fields.length.is_some() {
            BAD
        } else {
            Refusal(501)
        });
    }
    request.body = fields.length.unwrap_or(0);
    request.closes = fields.closes || is_old && !fields.keeps;
    request.expects &= !is_old && request.body > 0;
    request.length = length;
    request.rest = lines.get(..lines.len() - rest.len()).unwrap_or_default();
    Ok(Some(request))
}

/// A line without its end, and what is behind it.
type Line<'a> = (&'a [u8], &'a [u8]);

/// Where the first control character is that is no tab.
fn control(bytes: &[u8]) -> Option<usize> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // Eight at a time: the upper bit of a byte is set where it is below a space, or 0x7f, and
    // perhaps above the first such one.
    let below = |word: u64, most: u64| word.wrapping_sub(EACH * most) & !word & (EACH << 7);
    let (words, _) = bytes.as_chunks::<8>();
    let has_some = |word: &[u8; 8]| {
        let word = u64::from_ne_bytes(*word);
        below(word, 0x20) | below(word ^ (EACH * 0x7f), 1) != 0
    };
    let from = 8 * words.iter().position(has_some).unwrap_or(words.len());
    let mut rest = bytes.get(from..)?.iter();
    let found = rest.position(|byte| *byte < b' ' && *byte != b'\t' || *byte == 0x7f)?;
    Some(from + found)
}

/// The next line, if its end is there: no other control characters but tabs are in it.
fn next_line(bytes: &[u8]) -> Result<Option<Line<'_>>, Refusal> {
    let Some(end) = control(bytes) else {
        return Ok(None);
    };
    let (line, behind) = bytes.split_at(end);
    match behind {
        [b'\n', behind @ ..] | [b'\r', b'\n', behind @ ..] => Ok(Some((line, behind))),
        [b'\r'] => Ok(None),
        _ => Err(BAD),
    }
}

/// What characters may stand in, as bits.
const TOKEN: u8 = 1;
const HOST: u8 = 2;
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let letter = (byte as u8).is_ascii_alphanumeric();
        let token = letter || is_one_of(byte as u8, b"!#$%&'*+-.^_`|~");
        let host = letter || is_one_of(byte as u8, b"-._~:[]%");
        classes[byte] = if token { TOKEN } else { 0 } | if host { HOST } else { 0 };
        byte += 1;
    }
    classes
};

const fn is_one_of(byte: u8, bytes: &[u8]) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == byte {
            return true;
        }
        at += 1;
    }
    false
}

/// Whether all of these may stand there.
fn are(bytes: &[u8], class: u8) -> bool {
    bytes
        .iter()
        .all(|byte| CLASSES[usize::from(*byte)] & class != 0)
}

/// The request line, and whether it is HTTP/1.0.
fn first(line: &[u8]) -> Result<(Request<'_>, bool), Refusal> {
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        // A line too long for a target may be anything.
        return Err(if line.len() > TARGET + 32 {
            Refusal(414)
        } else {
            BAD
        });
    };
    if method.is_empty() || !are(method, TOKEN) {
        return Err(BAD);
    }
    let is_old = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', digit] if digit.is_ascii_digit() => false,
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            return Err(Refusal(505));
        }
        _ => return Err(BAD),
    };
    let method = match method {
        b"GET" => Method::Get,
        b"HEAD" => Method::Head,
        b"POST" => Method::Post,
        b"PUT" => Method::Put,
        b"DELETE" => Method::Delete,
        _ => return Err(Refusal(501)),
    };
    if target.len() > TARGET {
        return Err(Refusal(414));
    }
    if target.iter().any(|byte| *byte <= b' ' || *byte >= 0x7f) {
        return Err(BAD);
    }
    let target = match target.strip_prefix(b"http://") {
        // Absolute form (section 3.2.2).
        Some(rest) => match rest.iter().position(|byte| *byte == b'/') {
            Some(at) => rest.get(at..).unwrap_or_default(),
            None => b"/",
        },
        None => target,
    };
    if target.first() != Some(&b'/') || target.contains(&b'#') {
        return Err(BAD);
    }
    let (path, query) = match target.iter().position(|byte| *byte == b'?') {
        Some(at) => (
            target.get(..at).unwrap_or_default(),
            target.get(at + 1..).unwrap_or_default(),
        ),
        None => (target, &[][..]),
    };
    let request = Request {
        method,
        path,
        query,
        closes: false,
        body: 0,
        expects: false,
        range: None,
        has: None,
        length: 0,
        line,
        rest: &[],
    };
    Ok((request, is_old))
}

/// What fields say of how a request is read.
#[derive(Default)]
struct Fields {
    hosts: usize,
    length: Option<u64>,
    encoded: bool,
    closes: bool,
    keeps: bool,
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii()
}

impl Fields {
    fn field<'a>(&mut self, line: &'a [u8], request: &mut Request<'a>) -> Result<(), Refusal> {
        let colon = line.iter().position(|byte| *byte == b':').ok_or(BAD)?;
        let (name, value) = line.split_at(colon);
        // No space before the colon, and no line that goes on (sections 5.1 and 5.2).
        if name.is_empty() || !are(name, TOKEN) {
            return Err(BAD);
        }
        let value = trimmed(value.get(1..).unwrap_or_default());
        // By length first: most fields are none of these.
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => {
                self.hosts += 1;
                if !are(value, HOST) {
                    return Err(BAD);
                }
            }
            5 if name.eq_ignore_ascii_case(b"range") => request.range = range(value),
            6 if name.eq_ignore_ascii_case(b"expect") => {
                request.expects = value.eq_ignore_ascii_case(b"100-continue");
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                for option in value.split(|byte| *byte == b',') {
                    self.closes |= trimmed(option).eq_ignore_ascii_case(b"close");
                    self.keeps |= trimmed(option).eq_ignore_ascii_case(b"keep-alive");
                }
            }
            13 if name.eq_ignore_ascii_case(b"if-none-match") => request.has = Some(value),
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length = number(value).ok_or(BAD)?;
                if self.length.is_some_and(|before| before != length) {
                    return Err(BAD);
                }
                self.length = Some(length);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.encoded = true,
            _ => {}
        }
        Ok(())
    }
}

/// Digits, and nothing else.
pub fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |sum: u64, digit: &u8| sum * 10 + u64::from(digit - b'0');
    Some(digits.iter().fold(0, digit))
}

/// One range of bytes; others are ignored, as one may (RFC 9110, section 14.2).
fn range(value: &[u8]) -> Option<Range> {
    let range = value.strip_prefix(b"bytes=")?;
    let dash = range.iter().position(|byte| *byte == b'-')?;
    let (from, last) = (range.get(..dash)?, range.get(dash + 1..)?);
    match (from, last) {
        ([], last) => Some(Range::Last(number(last)?)),
        (from, []) => Some(Range::From(number(from)?, None)),
        (from, last) => {
            let (from, last) = (number(from)?, number(last)?);
            (from <= last).then_some(Range::From(from, Some(last)))
        }
    }
}

/// A path without its percent signs. `None`: it leads out of the root, or has what no name has.
pub fn decoded<'a>(path: &[u8], to: &'a mut [u8; TARGET]) -> Option<&'a [u8]> {
    let (mut at, mut length) = (0, 0);
    while let Some(byte) = path.get(at) {
        let byte = match byte {
            b'%' => {
                let digit = |at: usize| (*path.get(at)? as char).to_digit(16);
                let byte = (digit(at + 1)? << 4 | digit(at + 2)?) as u8;
                at += 2;
                byte
            }
            byte => *byte,
        };
        if byte == 0 {
            return None;
        }
        *to.get_mut(length)? = byte;
        length += 1;
        at += 1;
    }
    let path = to.get(..length)?;
    let leaves = path.split(|byte| *byte == b'/').any(|part| part == b"..");
    (!leaves).then_some(path)
}

#[cfg(test)]
mod tests;
