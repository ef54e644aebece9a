//! Source text to tokens. As in the language's own scanner, the longest match counts: `len-14` is
//! one name.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::ops::Range;

use crate::error::Error;
use crate::keyword::{self, Keyword};

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Keyword(Keyword),
    Number(u32),
    /// One to three dots between numbers; 0 to 255 each is not checked yet. `1` to `4` numbers, as
    /// they were written.
    Dotted(String),
    Six(Ipv6Addr),
    Ether([u8; 6]),
    Name(String),
    /// An operator or a parenthesis of one or two characters; `==` is `=`.
    Sign(&'static str),
    End,
}

/// A token and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Spanned {
    pub token: Token,
    pub at: Range<usize>,
}

const SIGNS: &[(&str, &str)] = &[
    (">=", ">="),
    ("<=", "<="),
    ("!=", "!="),
    ("==", "="),
    ("<<", "<<"),
    (">>", ">>"),
    ("+", "+"),
    ("-", "-"),
    ("*", "*"),
    ("/", "/"),
    ("%", "%"),
    (":", ":"),
    ("[", "["),
    ("]", "]"),
    ("<", "<"),
    (">", ">"),
    ("(", "("),
    (")", ")"),
    ("&", "&"),
    ("|", "|"),
    ("^", "^"),
    ("=", "="),
];

/// The tokens of a source, ending with [`Token::End`].
pub(crate) fn scan(source: &str) -> Result<Vec<Spanned>, Error> {
    let bytes = source.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if matches!(bytes[at], b' ' | b'\t' | b'\r' | b'\n') {
            at += 1;
            continue;
        }
        let (token, length) = one(source, at)?;
        tokens.push(Spanned {
            token,
            at: at..at + length,
        });
        at += length;
    }
    let end = source.len();
    tokens.push(Spanned {
        token: Token::End,
        at: end..end,
    });
    Ok(tokens)
}

fn one(source: &str, at: usize) -> Result<(Token, usize), Error> {
    let rest = &source[at..];
    let bytes = rest.as_bytes();
    if let Some(escaped) = rest.strip_prefix('\\') {
        let length = escaped
            .find([' ', '!', '(', ')', '\n', '\t'])
            .unwrap_or(escaped.len());
        if length > 0 {
            return Ok((Token::Name(escaped[..length].to_owned()), length + 1));
        }
    }
    for (text, word) in [("&&", Keyword::And), ("||", Keyword::Or)] {
        if rest.starts_with(text) {
            return Ok((Token::Keyword(word), 2));
        }
    }
    // Addresses, numbers and names overlap; the longest wins, and of two equally long the first
    // here.
    let mut best: (usize, Option<Token>) = (0, None);
    let mut offer = |length: usize, token: &mut dyn FnMut() -> Result<Token, Error>| {
        if length > best.0 {
            best = (length, Some(token()?));
        }
        Ok::<(), Error>(())
    };
    if let Some((length, address)) = ether(bytes) {
        offer(length, &mut || Ok(Token::Ether(address)))?;
    }
    let digits = number_length(bytes);
    if digits > 0 && name_length(bytes) <= digits {
        offer(digits, &mut || {
            parse_number(&rest[..digits])
                .map(Token::Number)
                .map_err(|message| Error::new(at..at + digits, message))
        })?;
    }
    let dotted = dotted_length(bytes);
    offer(dotted, &mut || Ok(Token::Dotted(rest[..dotted].to_owned())))?;
    if let Some((length, address)) = six(rest) {
        offer(length, &mut || Ok(Token::Six(address)))?;
    }
    let name = name_length(bytes);
    offer(name, &mut || {
        let text = &rest[..name];
        Ok(if let Some(word) = keyword::keyword(text) {
            Token::Keyword(word)
        } else if let Some(number) = keyword::number(text) {
            Token::Number(number)
        } else {
            Token::Name(text.to_owned())
        })
    })?;
    if let (length, Some(token)) = best {
        return Ok((token, length));
    }
    for (text, sign) in SIGNS {
        if rest.starts_with(text) {
            return Ok((Token::Sign(sign), text.len()));
        }
    }
    if rest.starts_with('!') {
        return Ok((Token::Keyword(Keyword::Not), 1));
    }
    let character = rest.chars().next().map_or(1, char::len_utf8);
    Err(Error::new(
        at..at + character,
        alloc::format!("`{}` has no meaning here", &rest[..character]),
    ))
}

fn hex_run(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| b.is_ascii_hexdigit()).count()
}

fn hex(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |value, digit| {
        value << 4 | char::from(*digit).to_digit(16).unwrap_or(0)
    })
}

/// A link address at the beginning: six bytes with `:`, `-` or `.` between, three pairs with `.`,
/// or twelve digits.
fn ether(bytes: &[u8]) -> Option<(usize, [u8; 6])> {
    let groups = |count: usize, most: usize, separators: &[u8]| -> Option<(usize, [u8; 6])> {
        let (mut at, mut address, mut separator) = (0, [0; 6], 0);
        let each = 6 / count;
        for group in 0..count {
            if group > 0 {
                let found = *bytes.get(at)?;
                if !separators.contains(&found) || group > 1 && found != separator {
                    return None;
                }
                separator = found;
                at += 1;
            }
            let run = hex_run(bytes.get(at..)?).min(most);
            if run == 0 || count == 3 && run != 4 {
                return None;
            }
            let value = hex(&bytes[at..at + run]);
            for (index, byte) in address[group * each..][..each].iter_mut().enumerate() {
                *byte = (value >> (8 * (each - 1 - index))) as u8;
            }
            at += run;
        }
        Some((at, address))
    };
    let whole = (hex_run(bytes) >= 12).then(|| {
        let mut address = [0; 6];
        for (index, byte) in address.iter_mut().enumerate() {
            *byte = hex(&bytes[2 * index..2 * index + 2]) as u8;
        }
        (12, address)
    });
    [groups(6, 2, b":-."), groups(3, 4, b"."), whole]
        .into_iter()
        .flatten()
        .max_by_key(|(length, _)| *length)
}

fn number_length(bytes: &[u8]) -> usize {
    if let [b'0', b'x' | b'X', rest @ ..] = bytes {
        let run = hex_run(rest);
        if run > 0 {
            return run + 2;
        }
    }
    bytes.iter().take_while(|b| b.is_ascii_digit()).count()
}

fn parse_number(text: &str) -> Result<u32, String> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    if let (8, Some(at)) = (radix, digits.find(['8', '9'])) {
        let digit = &digits[at..at + 1];
        return Err(alloc::format!(
            "`{text}` begins with 0 and so is octal, where {digit} is no digit"
        ));
    }
    u32::from_str_radix(digits, radix)
        .map_err(|_| alloc::format!("`{text}` does not fit in 32 bits"))
}

/// Two to four numbers with dots between.
fn dotted_length(bytes: &[u8]) -> usize {
    let mut at = number_length(bytes);
    let mut numbers = usize::from(at > 0);
    while numbers > 0 && numbers < 4 && bytes.get(at) == Some(&b'.') {
        let next = number_length(&bytes[at + 1..]);
        if next == 0 {
            break;
        }
        at += 1 + next;
        numbers += 1;
    }
    if numbers > 1 { at } else { 0 }
}

/// The longest IPv6 address at the beginning.
fn six(text: &str) -> Option<(usize, Ipv6Addr)> {
    let run = text
        .bytes()
        .take_while(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.'))
        .count();
    if !text[..run].contains(':') {
        return None;
    }
    // No address is longer than eight groups of four, or six and a dotted one.
    (2..=run.min(45))
        .rev()
        .find_map(|length| Some((length, text[..length].parse().ok()?)))
}

/// A name: letters, digits, and inside of it also `-` and `_`.
fn name_length(bytes: &[u8]) -> usize {
    if !bytes.first().is_some_and(u8::is_ascii_alphanumeric) {
        return 0;
    }
    let run = bytes
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        .count();
    let end = bytes[..run]
        .iter()
        .rposition(|b| b.is_ascii_alphanumeric() || *b == b'.');
    end.map_or(0, |end| end + 1)
}
