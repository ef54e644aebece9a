//! From text to raw statements: comments, strings, `;`, line markers.
//!
//! GNU as on x86 begins a comment with `#`; a line that is `# 12 "file"` is the preprocessor's line
//! marker, which also frames inline assembly in gcc's output.

use super::expression::is_symbol_char;

/// One statement's text and the line (one-based) of the input that it begins on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Raw {
    /// A statement without its comments.
    Statement {
        /// Never empty.
        text: String,
        /// Line of the input.
        line: u32,
    },
    /// `# line "file"`: the next line is that one. An empty file name ends a marker's reach.
    Marker {
        /// The file's name.
        file: String,
        /// The number that the next line has in it.
        next: u32,
        /// Line of the input.
        line: u32,
    },
    /// `#NO_APP`: the end of inline assembly.
    EndOfInline,
}

/// Splits `source` into raw statements. A string that is not closed or a comment that does not end
/// is an error, given with its line.
pub fn scan(source: &str) -> Result<Vec<Raw>, (u32, String)> {
    let mut out = Vec::new();
    let mut in_comment: Option<u32> = None;
    for (index, line) in source.lines().enumerate() {
        let number = index as u32 + 1;
        if in_comment.is_none() && line.starts_with('#') {
            if line.starts_with("#NO_APP") {
                out.push(Raw::EndOfInline);
            } else if let Some((next, file)) = marker(line) {
                out.push(Raw::Marker {
                    file,
                    next,
                    line: number,
                });
            }
            continue;
        }
        let mut text = String::new();
        let mut chars = line.chars().peekable();
        let mut flush = |text: &mut String| {
            let trimmed = text.trim();
            if !trimmed.is_empty() {
                out.push(Raw::Statement {
                    text: trimmed.to_owned(),
                    line: number,
                });
            }
            text.clear();
        };
        while let Some(c) = chars.next() {
            if in_comment.is_some() {
                if c == '*' && chars.peek() == Some(&'/') {
                    chars.next();
                    in_comment = None;
                    text.push(' ');
                }
                continue;
            }
            match c {
                '#' => break,
                ';' => flush(&mut text),
                '/' if chars.peek() == Some(&'*') => {
                    chars.next();
                    in_comment = Some(number);
                }
                '\'' => {
                    text.push(c);
                    if let Some(next) = chars.next() {
                        text.push(next);
                    }
                }
                '"' => {
                    text.push('"');
                    let mut closed = false;
                    while let Some(c) = chars.next() {
                        text.push(c);
                        match c {
                            '\\' => text.extend(chars.next()),
                            '"' => {
                                closed = true;
                                break;
                            }
                            _ => {}
                        }
                    }
                    if !closed {
                        return Err((number, "a string is not closed".to_owned()));
                    }
                }
                _ => text.push(c),
            }
        }
        flush(&mut text);
    }
    match in_comment {
        Some(line) => Err((line, "a comment that begins here does not end".to_owned())),
        None => Ok(out),
    }
}

fn marker(line: &str) -> Option<(u32, String)> {
    let rest = line
        .strip_prefix("# ")
        .or_else(|| line.strip_prefix("#line "))?;
    let (number, rest) = rest.trim_start().split_once(' ')?;
    let next = number.parse().ok()?;
    let rest = rest.trim_start().strip_prefix('"')?;
    let (file, _) = rest.split_once('"')?;
    Some((next, file.to_owned()))
}

/// Splits `text` at commas that stand outside parentheses and strings.
pub fn split_commas(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start, mut quoted, mut escaped) = (0i32, 0, false, false);
    for (index, c) in text.char_indices() {
        if quoted {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => quoted = false,
                _ => {}
            }
            continue;
        }
        match c {
            '"' => quoted = true,
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() || !parts.is_empty() {
        parts.push(last);
    }
    parts
}

/// A label at the start of `text`, and what follows its colon.
pub(super) fn leading_label(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c| !is_symbol_char(c))?;
    let rest = text[end..].trim_start().strip_prefix(':')?;
    (end > 0).then_some((&text[..end], rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<String> {
        scan(source)
            .unwrap()
            .into_iter()
            .filter_map(|raw| match raw {
                Raw::Statement { text, .. } => Some(text),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn statements_and_comments() {
        assert_eq!(
            texts("a; b # c ; d\n e /* x\n y */ f"),
            ["a", "b", "e", "f"]
        );
        assert_eq!(texts(".string \"a;#\\\"b\" # c"), [".string \"a;#\\\"b\""]);
        assert_eq!(texts("cmpb $';, %al"), ["cmpb $';, %al"]);
        assert_eq!(scan("\n.ascii \"x").unwrap_err().0, 2);
        assert_eq!(scan("nop /* x").unwrap_err().0, 1);
    }

    #[test]
    fn markers() {
        assert_eq!(
            scan("# 12 \"a b.c\" 1\n#APP\n#NO_APP").unwrap(),
            [
                Raw::Marker {
                    file: "a b.c".into(),
                    next: 12,
                    line: 1
                },
                Raw::EndOfInline
            ]
        );
    }

    #[test]
    fn commas() {
        assert_eq!(
            split_commas("$1, 8(%rax,%rcx,2), %st(1)"),
            ["$1", "8(%rax,%rcx,2)", "%st(1)"]
        );
        assert_eq!(split_commas("\"a,b\", c"), ["\"a,b\"", "c"]);
        assert!(split_commas("").is_empty());
    }
}
