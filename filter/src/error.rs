//! What can be wrong with an expression: where, what, and what to write instead.

use alloc::string::String;
use core::fmt;
use core::ops::Range;

/// An expression, or a classic program, that is not a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// The bytes of the source that are wrong; of a classic program, the lines.
    pub at: Range<usize>,
    /// What is wrong with them.
    pub message: String,
    /// What to write instead, if that can be said.
    pub suggestion: Option<String>,
}

/// Characters of a line that are shown.
const LONG: usize = 200;

impl Error {
    pub(crate) fn new(at: Range<usize>, message: impl Into<String>) -> Error {
        Error {
            at,
            message: message.into(),
            suggestion: None,
        }
    }

    pub(crate) fn suggest(mut self, suggestion: impl Into<String>) -> Error {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// The message with the source and a mark under the place, for a terminal.
    pub fn show(&self, source: &str) -> String {
        let before = source.get(..self.at.start).unwrap_or(source);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = source[line_start..].lines().next().unwrap_or("");
        let mut column = before[line_start..].chars().count();
        let marked = source.get(self.at.clone()).unwrap_or("");
        let mut width = marked.lines().next().unwrap_or("").chars().count().max(1);
        // Of a long line what is around the place.
        let skipped = match line.chars().count() > LONG {
            true => column.saturating_sub(LONG / 2),
            false => 0,
        };
        let mut shown: String = line.chars().skip(skipped).take(LONG).collect();
        if skipped > 0 {
            shown.insert(0, '…');
            column = column - skipped + 1;
        }
        if line.chars().count() > skipped + LONG {
            shown.push('…');
        }
        width = width.min((shown.chars().count() + 1).saturating_sub(column).max(1));
        let mut text = alloc::format!(
            "{}\n  {shown}\n  {:column$}{:^<width$}",
            self.message,
            "",
            ""
        );
        if let Some(suggestion) = &self.suggestion {
            text.push_str("\n  ");
            text.push_str(suggestion);
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {}", self.at.start, self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; {suggestion}"),
            None => Ok(()),
        }
    }
}
