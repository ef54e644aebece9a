//! What a program says in the error log: so many lines in a second, so that none fills the disk or
//! drowns the others.

use crate::log::Log;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest line, in bytes.
const LINE: usize = 4096;
/// In which lines are counted.
const WINDOW: Duration = Duration::from_secs(1);

/// A program's voice: all its instances have it together.
pub struct ProgramLog {
    log: Arc<Log>,
    name: String,
    most: u64,
    said: Mutex<Said>,
}

struct Said {
    since: Instant,
    lines: u64,
}

impl ProgramLog {
    /// For the program of this name, with at most so many lines in a second.
    pub fn new(log: &Arc<Log>, name: &str, most: u64) -> ProgramLog {
        ProgramLog {
            log: log.clone(),
            name: name.to_owned(),
            most,
            said: Mutex::new(Said {
                since: Instant::now(),
                lines: 0,
            }),
        }
    }

    /// One line, whatever is in it.
    pub fn say(&self, text: &str) {
        self.say_at(text, Instant::now());
    }

    fn say_at(&self, text: &str, now: Instant) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let mut missed = 0;
        if now.saturating_duration_since(said.since) >= WINDOW {
            missed = said.lines.saturating_sub(self.most);
            *said = Said {
                since: now,
                lines: 0,
            };
        }
        said.lines += 1;
        let enough = said.lines > self.most;
        drop(said);
        if missed > 0 {
            let name = &self.name;
            self.log.error(&format!("{name}: {missed} lines of the program were left out: it may say {} in a second (log_lines)", self.most));
        }
        match enough {
            true => self.log.leave_out(),
            false => {
                let line = cut(text).replace('\n', "\\n");
                self.log.error(&format!("{}: {line}", self.name));
            }
        }
    }
}

/// The beginning of a text that is too long for a line.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(LINE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_lines_in_a_second() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = Arc::new(Log::open("".as_ref(), &path).unwrap());
        let program = ProgramLog::new(&log, "/p", 3);
        let now = Instant::now();
        for number in 0..10 {
            program.say_at(&format!("line {number}\nof /q: nobody"), now);
        }
        program.say_at(&"x".repeat(2 * LINE), now + WINDOW);
        log.flush();
        let text = std::fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "postern: /p: line 2\\nof /q: nobody");
        assert!(lines[3].starts_with("postern: /p: 7 lines of the program were left out"));
        assert_eq!(
            (lines.len(), lines[4].len()),
            (5, LINE + "postern: /p: ".len())
        );
        assert_eq!(log.left_out(), 7);
    }
}
