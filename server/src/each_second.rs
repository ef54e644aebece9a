//! Texts of the time that are made once a second, for each thread.

use std::cell::RefCell;
use std::thread::LocalKey;
use std::time::{SystemTime, UNIX_EPOCH};

/// The second of a text, and the text.
pub type EachSecond = RefCell<(u64, String)>;

/// Shows `then` the text of now, which `make` gives if it is another second's.
pub fn with(
    kept: &'static LocalKey<EachSecond>,
    make: impl FnOnce(SystemTime) -> String,
    then: impl FnOnce(&str),
) {
    let now = SystemTime::now();
    let second = now
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_secs());
    kept.with_borrow_mut(|(last, text)| {
        if *last != second {
            *text = make(now);
            *last = second;
        }
        then(text);
    });
}
