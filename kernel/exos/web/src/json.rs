//! Texts as JSON has them (RFC 8259, section 7).

use alloc::string::String;
use core::fmt::Write;

/// A string with its quotation marks.
pub fn string(text: &str) -> String {
    let mut to = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => to.push_str("\\\""),
            '\\' => to.push_str("\\\\"),
            '\n' => to.push_str("\\n"),
            letter if letter < ' ' => _ = write!(to, "\\u{:04x}", u32::from(letter)),
            letter => to.push(letter),
        }
    }
    to.push('"');
    to
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_special_is_escaped() {
        assert_eq!(super::string("a\"\\\n\u{1}ä"), "\"a\\\"\\\\\\n\\u0001ä\"");
    }
}
