//! Where errors are collected while a source is compiled.
//!
//! Invariant: no more errors are kept than the limit; when it is reached, [`Report::full`] says so
//! and everybody stops.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::diagnostics::{Diagnostic, Errors, Rule};
use crate::lex::File;

#[derive(Debug, Default)]
pub(crate) struct Report {
    list: Vec<Diagnostic>,
    most: usize,
    /// Errors that were consequences of others.
    dropped: u32,
    full: bool,
    /// There was one for which there was no room.
    more: bool,
}

/// More consequences than this, and it is time to stop.
const CONSEQUENCES: u32 = 1000;

impl Report {
    pub fn reset(&mut self, most: u32) {
        self.list.clear();
        self.most = most.max(1) as usize;
        self.dropped = 0;
        self.full = false;
        self.more = false;
    }

    /// Whether there is any error.
    pub fn any(&self) -> bool {
        !self.list.is_empty()
    }

    /// Whether it is time to stop.
    #[inline]
    pub fn full(&self) -> bool {
        self.full
    }

    /// Whether an error at this place would be kept: a second one there is almost always a
    /// consequence of the first.
    pub fn wants(&self, at: u32) -> bool {
        !self.full && self.list.iter().all(|error| error.at != at)
    }

    /// Counts an error that is not kept.
    #[cold]
    pub fn drop_one(&mut self) {
        self.dropped += 1;
        self.full |= self.dropped > CONSEQUENCES;
    }

    #[cold]
    pub fn error(&mut self, rule: Rule, at: u32, length: u32, message: String, help: String) {
        if !self.wants(at) {
            self.drop_one();
            return;
        }
        if self.list.len() >= self.most {
            (self.more, self.full) = (true, true);
            return;
        }
        self.list.push(Diagnostic {
            rule,
            at,
            file: String::new(),
            line: 0,
            column: 0,
            length,
            message,
            help,
            source_line: String::new(),
        });
    }

    /// A limit was met: nothing after it makes sense. `option` is the field of [`crate::Limits`]
    /// that says it, or empty if nothing does.
    #[cold]
    pub fn limit(&mut self, at: u32, what: &str, option: &str) {
        self.list.retain(|error| error.at != at);
        self.list.truncate(self.most - 1); // this one is worth more than the last
        self.full = false;
        let help = match option {
            "" => "make the source smaller".into(),
            option => format!("make the source smaller, or raise `Limits::{option}`"),
        };
        let message = format!("too many or too large: {what}");
        self.error(Rule::Limit, at, 1, message, help);
        self.full = true;
    }

    /// The errors with their places, if there are any.
    #[cold]
    pub fn take(&mut self, source: &[u8], files: &[File]) -> Errors {
        for error in &mut self.list {
            error.locate(source, files);
        }
        Errors {
            list: core::mem::take(&mut self.list),
            more: self.more,
        }
    }
}
