//! Whether a command printed what a page shows.
//!
//! Compared line by line: `…` in a line stands for anything, a line that is `…` alone for any
//! number of lines. Numbers that differ from machine to machine or from compiler to compiler
//! (hexadecimal numbers; numbers with a unit of time or speed) are compared as "some number", and
//! columns of source lines are not compared.

/// Why `found` is not what the page shows as `expected`; `None` if it is.
pub fn difference(expected: &str, found: &str) -> Option<String> {
    let expected: Vec<String> = expected.lines().map(normal).collect();
    let found: Vec<String> = found.lines().map(normal).collect();
    if matches(&expected, &found) {
        return None;
    }
    Some(format!(
        "the page shows\n    {}\nbut the command printed\n    {}",
        expected.join("\n    "),
        found.join("\n    ")
    ))
}

fn matches(expected: &[String], found: &[String]) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((line, rest)) if line == "…" => {
            (0..=found.len()).any(|skip| matches(rest, &found[skip..]))
        }
        Some((line, rest)) => found
            .split_first()
            .is_some_and(|(first, others)| line_matches(line, first) && matches(rest, others)),
    }
}

fn line_matches(expected: &str, found: &str) -> bool {
    let mut pieces = expected.split('…');
    let first = pieces.next().unwrap_or("");
    let Some(mut rest) = found.strip_prefix(first) else {
        return false;
    };
    let mut last = None;
    for piece in pieces {
        last = Some(piece);
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    match last {
        None => rest.is_empty(),
        // The last piece must stand at the end.
        Some(piece) => found.ends_with(piece),
    }
}

/// A line without what varies: runs of spaces, hexadecimal numbers, measurements.
fn normal(line: &str) -> String {
    const UNITS: [&str; 7] = ["ns", "us", "µs", "ms", "s", "MB/s", "cycles"];
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut out = Vec::with_capacity(words.len());
    for (i, word) in words.iter().enumerate() {
        let unit = words
            .get(i + 1)
            .is_some_and(|next| UNITS.contains(&next.trim_end_matches([',', '.', ';', ')'])));
        let number = word.starts_with(|c: char| c.is_ascii_digit()) && word.parse::<f64>().is_ok();
        out.push(if unit && number {
            "#".to_owned()
        } else {
            without_column(&without_hex(word))
        });
    }
    out.join(" ")
}

fn without_hex(word: &str) -> String {
    let Some(at) = word.find("0x") else {
        return word.to_owned();
    };
    let (before, rest) = word.split_at(at);
    let rest = rest[2..].trim_start_matches(|c: char| c.is_ascii_hexdigit() || c == '_');
    format!("{before}0x#{}", without_hex(rest))
}

/// `file.c:12:9` as `file.c:12`.
fn without_column(word: &str) -> String {
    let mut parts = word.splitn(3, ':');
    let (Some(file), Some(line), Some(column)) = (parts.next(), parts.next(), parts.next()) else {
        return word.to_owned();
    };
    let rest = column.trim_start_matches(|c: char| c.is_ascii_digit());
    if line.parse::<u32>().is_err() || rest.len() == column.len() {
        return word.to_owned();
    }
    format!("{file}:{line}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_does_not_count() {
        for (expected, found) in [
            ("5", "5\n"),
            ("at 0x10, in f (0x12)", "at 0x20, in f (0xabc)"),
            ("took 1.5 ms", "took 22 ms"),
            ("a … z", "a b c z"),
            ("a\n…\nz", "a\nb\nc\nz"),
            ("a\n…", "a"),
            ("x   y", "x y"),
            ("(a.c:3:9)", "(a.c:3:12)"),
        ] {
            assert_eq!(difference(expected, found), None, "{expected}");
        }
        for (expected, found) in [
            ("5", "6"),
            ("a … z", "a b"),
            ("a\nb", "a"),
            ("a", "a\nb"),
            ("3 bytes", "4 bytes"),
            ("a … bb", "a b"),
            ("a.c:3:9", "a.c:4:9"),
        ] {
            assert!(difference(expected, found).is_some(), "{expected}");
        }
    }
}
