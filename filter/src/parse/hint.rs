//! What to say of a token that cannot stand where it does.

use super::Parser;
use crate::error::Error;
use crate::keyword::{self, Keyword};
use crate::token::Token;

/// What may follow a whole condition.
pub(super) const JOINED: &str = "`and`, `or` or the end";

impl Parser<'_> {
    /// The error that something else was wanted here.
    pub(super) fn unexpected(&self, wanted: &str) -> Error {
        let at = self.here();
        let text = &self.source[at.clone()];
        let error = match self.peek() {
            Token::End => {
                return Error::new(
                    at,
                    alloc::format!("the expression ends where {wanted} should follow"),
                );
            }
            Token::Keyword(Keyword::Elsewhere(subject)) => {
                let error = Error::new(at, alloc::format!("`{text}` is about {}", subject.what()));
                return match subject.instead() {
                    Some(instead) => error.suggest(instead),
                    None => error,
                };
            }
            _ => Error::new(at, alloc::format!("`{text}` stands where {wanted} should")),
        };
        match self.suggestion(text, wanted == JOINED) {
            Some(suggestion) => error.suggest(suggestion),
            None => error,
        }
    }

    /// `behind` is whether a whole condition stands before.
    fn suggestion(&self, text: &str, behind: bool) -> Option<alloc::string::String> {
        let near = match self.peek() {
            Token::Name(name) => keyword::suggestion(name),
            _ => None,
        };
        Some(match self.peek() {
            Token::Name(_) if near.is_some() => alloc::format!("did you mean `{}`?", near?),
            Token::Sign("/") => "write all four numbers, such as `10.0.0.0/8`".into(),
            Token::Sign(":") => {
                "a link address has six bytes, as in `ether host 2:0:0:0:0:1`; ports stand \
                 alone, as in `host 10.0.0.1 and port 80`"
                    .into()
            }
            Token::Sign("-") if behind => "a range has no spaces, as in `portrange 80-90`".into(),
            Token::Sign("-") => "a name begins with a letter or a digit".into(),
            Token::Sign("|" | "&") if behind => alloc::format!("write `{text}{text}`, or a word"),
            Token::Sign(_) | Token::End => return None,
            _ if behind => alloc::format!("conditions are joined: `and {text}`, `or {text}`"),
            Token::Name(_) => {
                alloc::format!("say what it is: `host {text}`, `net {text}`, `port {text}`")
            }
            Token::Dotted(_) | Token::Six(_) => {
                alloc::format!("say what it is: `host {text}`, `net {text}`")
            }
            Token::Ether(_) => alloc::format!("say what it is: `ether host {text}`"),
            Token::Number(_) => alloc::format!("say what it is: `port {text}`, `proto {text}`"),
            Token::Keyword(_) => return None,
        })
    }
}
