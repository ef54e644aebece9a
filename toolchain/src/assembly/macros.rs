//! What the assembler does to text before it reads it: macros, repetitions, conditions.
//!
//! Expansion is between [`scan`](super::scan) and [`parse`](super::parse): what comes out are
//! statements that were written or expanded, each with the line of what was written. Text without
//! these directives passes untouched. A value is known only if it is a number when the line is read
//! (gas: an absolute expression); a condition on anything else is an error.

mod condition;

use std::collections::HashMap;

use super::expression::is_symbol_char;
use super::scan::{Raw, leading_label, split_commas};

/// Statements that one source may expand to, and how deep macros may call each other: the text
/// decides both.
const MOST: usize = 1 << 18;
const DEEPEST: usize = 200;

/// A line and what is wrong there.
type Error = (u32, String);

/// Expands `raws`.
///
/// # Errors
/// The first that is not understood, or goes on for ever, with its line.
pub fn expand(raws: Vec<Raw>) -> Result<Vec<Raw>, Error> {
    let begins = |raw: &Raw| match raw {
        Raw::Statement { text, .. } => {
            let mut text = text.as_str();
            while let Some((_, rest)) = leading_label(text) {
                text = rest;
            }
            let word = first_word(text.trim_start()).to_ascii_lowercase();
            matches!(word.as_str(), ".macro" | ".rept" | ".irp" | ".irpc")
                || word.starts_with(".if")
        }
        _ => false,
    };
    if !raws.iter().any(begins) {
        return Ok(raws);
    }
    let mut expander = Expander::default();
    expander.run(&raws, 0)?;
    match expander.conditions.last() {
        Some(condition) => Err((condition.line, "`.if` without `.endif`".to_owned())),
        None => Ok(expander.out),
    }
}

struct Macro {
    parameters: Vec<Parameter>,
    body: Vec<Raw>,
}

struct Parameter {
    name: String,
    default: String,
    required: bool,
    /// It takes the rest of the arguments.
    rest: bool,
}

struct Condition {
    line: u32,
    /// The present part is read.
    active: bool,
    /// A part was read, or none is to be.
    done: bool,
}

#[derive(Default)]
struct Expander {
    out: Vec<Raw>,
    macros: HashMap<String, Macro>,
    /// What is defined so far, with its value if that is a number.
    symbols: HashMap<String, Option<i64>>,
    conditions: Vec<Condition>,
    /// Macros expanded so far: `\@`.
    count: u32,
}

fn first_word(text: &str) -> &str {
    text.split(|c: char| c.is_whitespace()).next().unwrap_or("")
}

impl Expander {
    /// Whether `.exitm` ended it.
    fn run(&mut self, raws: &[Raw], depth: usize) -> Result<bool, Error> {
        let mut index = 0;
        while let Some(raw) = raws.get(index) {
            index += 1;
            let Raw::Statement { text, line } = raw else {
                self.out.push(raw.clone());
                continue;
            };
            let at = |message: String| (*line, message);
            if depth > DEEPEST || self.out.len() > MOST {
                return Err(at("macros and repetitions expand without end".to_owned()));
            }
            let mut text = text.as_str();
            if self.active() {
                while let Some((label, rest)) = leading_label(text) {
                    self.symbols.insert(label.to_owned(), None);
                    self.push(format!("{label}:"), *line);
                    text = rest.trim_start();
                }
            }
            let word = first_word(text);
            let (name, arguments) = (word.to_ascii_lowercase(), text[word.len()..].trim());
            if self.condition(&name, arguments, *line).map_err(at)?
                || !self.active()
                || text.is_empty()
            {
                continue;
            }
            match name.as_str() {
                ".macro" => {
                    let body = body(raws, &mut index, *line, &[".macro"], ".endm")?;
                    self.define(arguments, body).map_err(at)?;
                }
                ".rept" | ".irp" | ".irpc" => {
                    let body = body(
                        raws,
                        &mut index,
                        *line,
                        &[".rept", ".irp", ".irpc"],
                        ".endr",
                    )?;
                    for body in self.repetitions(&name, arguments, &body).map_err(at)? {
                        if self.run(&body, depth + 1)? {
                            return Ok(true);
                        }
                    }
                }
                ".exitm" => return Ok(true),
                ".purgem" => drop(self.macros.remove(&arguments.to_ascii_lowercase())),
                ".err" | ".error" => return Err(at(format!("{text}: the source refuses itself"))),
                _ if self.macros.contains_key(&name) => {
                    self.call(&name, arguments, *line, depth)?
                }
                _ => {
                    self.note(&name, text, arguments);
                    self.push(text.to_owned(), *line);
                }
            }
        }
        Ok(false)
    }

    fn push(&mut self, text: String, line: u32) {
        self.out.push(Raw::Statement { text, line });
    }

    fn active(&self) -> bool {
        self.conditions.iter().all(|condition| condition.active)
    }

    /// Remembers what a `.set` defines.
    fn note(&mut self, name: &str, text: &str, arguments: &str) {
        let (symbol, value) = match name {
            ".set" | ".equ" => match arguments.split_once(',') {
                Some(parts) => parts,
                None => return,
            },
            _ => match text.split_once('=') {
                Some(parts) if parts.0.trim().chars().all(is_symbol_char) => parts,
                _ => return,
            },
        };
        let value = self.value(value.trim_start_matches('=')).ok();
        self.symbols.insert(symbol.trim().to_owned(), value);
    }

    fn define(&mut self, head: &str, body: Vec<Raw>) -> Result<(), String> {
        let end = head.find(|c| !is_symbol_char(c)).unwrap_or(head.len());
        let (name, parameters) = head.split_at(end);
        if name.is_empty() {
            return Err("a macro has a name".to_owned());
        }
        let parameters =
            words(parameters.trim_start_matches(|c: char| c == ',' || c.is_whitespace()));
        let parameter = |text: &String| {
            let (text, default) = text.split_once('=').unwrap_or((text, ""));
            let (name, kind) = text.split_once(':').unwrap_or((text, ""));
            Parameter {
                name: name.trim().to_owned(),
                default: unquoted(default).to_owned(),
                required: kind == "req",
                rest: kind == "vararg",
            }
        };
        let parameters = parameters.iter().map(parameter).collect();
        let name = name.to_ascii_lowercase();
        self.macros.insert(name, Macro { parameters, body });
        Ok(())
    }

    fn call(&mut self, name: &str, arguments: &str, line: u32, depth: usize) -> Result<(), Error> {
        let Some(called) = self.macros.get(name) else {
            return Ok(());
        };
        let values = called
            .arguments(arguments)
            .map_err(|what| (line, format!("`{name}`: {what}")))?;
        let count = self.count;
        self.count += 1;
        let body: Vec<Raw> = called
            .body
            .iter()
            .map(|raw| substituted(raw, &values, Some(count), Some(line)))
            .collect();
        let conditions = self.conditions.len();
        if self.run(&body, depth + 1)? {
            self.conditions.truncate(conditions);
        }
        match self.conditions.len() == conditions {
            true => Ok(()),
            false => Err((
                line,
                format!("`{name}`: a condition and its `.endif` are not in the same macro"),
            )),
        }
    }

    /// The bodies of `.rept`, `.irp` or `.irpc`.
    fn repetitions(
        &self,
        name: &str,
        arguments: &str,
        body: &[Raw],
    ) -> Result<Vec<Vec<Raw>>, String> {
        let with = |values: &[(String, String)]| {
            body.iter()
                .map(|raw| substituted(raw, values, None, None))
                .collect()
        };
        if name == ".rept" {
            let count = usize::try_from(self.value(arguments)?.max(0)).unwrap_or(usize::MAX);
            if count.saturating_mul(body.len().max(1)) > MOST {
                return Err(format!("`.rept {arguments}` is too long"));
            }
            return Ok(vec![with(&[]); count]);
        }
        let split = arguments.split_once(|c: char| c == ',' || c.is_whitespace());
        let (symbol, values) = split.unwrap_or((arguments, ""));
        let values: Vec<String> = match name {
            ".irpc" => values.trim().chars().map(String::from).collect(),
            _ => words(values.trim_start_matches(','))
                .iter()
                .map(|w| unquoted(w).to_owned())
                .collect(),
        };
        let each = values
            .into_iter()
            .map(|value| with(&[(symbol.trim().to_owned(), value)]));
        Ok(each.collect())
    }
}

impl Macro {
    /// The values of the parameters in a call.
    fn arguments(&self, text: &str) -> Result<Vec<(String, String)>, String> {
        let mut values: Vec<Option<String>> = self.parameters.iter().map(|_| None).collect();
        let mut given = words(text).into_iter();
        let mut next = 0;
        while let Some(word) = given.next() {
            let named = word.split_once('=').and_then(|(name, value)| {
                let index = self.parameters.iter().position(|p| p.name == name.trim())?;
                Some((index, value.trim().to_owned()))
            });
            let (index, value) = match named {
                Some(named) => named,
                None => (next, word),
            };
            let Some(parameter) = self.parameters.get(index) else {
                return Err("there are more arguments than parameters".to_owned());
            };
            next = index + 1;
            values[index] = Some(if parameter.rest {
                std::iter::once(value)
                    .chain(given.by_ref())
                    .collect::<Vec<_>>()
                    .join(", ")
            } else {
                unquoted(&value).to_owned()
            });
        }
        let pairs = self
            .parameters
            .iter()
            .zip(values)
            .map(|(parameter, value)| {
                let value = value.filter(|value| !value.is_empty());
                if value.is_none() && parameter.required {
                    return Err(format!("the argument `{}` is missing", parameter.name));
                }
                Ok((
                    parameter.name.clone(),
                    value.unwrap_or_else(|| parameter.default.clone()),
                ))
            });
        pairs.collect()
    }
}

/// Arguments: separated by commas or, where there is none, by spaces that do not stand beside an
/// operator.
fn words(text: &str) -> Vec<String> {
    let parts = split_commas(text);
    let [whole] = parts.as_slice() else {
        return parts.into_iter().map(str::to_owned).collect();
    };
    if whole.contains(['"', '(']) {
        return vec![(*whole).to_owned()];
    }
    let operator = |c: char| "+-*/|&^<>=!".contains(c);
    let mut words: Vec<String> = Vec::new();
    for word in whole.split_whitespace() {
        match words.last_mut() {
            Some(last) if last.ends_with(operator) || word.starts_with(operator) => {
                last.push_str(word)
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

fn unquoted(text: &str) -> &str {
    let inner = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or(text)
}

/// The statements up to `end`, behind which `index` then is.
fn body(
    raws: &[Raw],
    index: &mut usize,
    line: u32,
    begin: &[&str],
    end: &str,
) -> Result<Vec<Raw>, Error> {
    let (start, mut depth) = (*index, 0);
    while let Some(raw) = raws.get(*index) {
        *index += 1;
        if let Raw::Statement { text, .. } = raw {
            let word = first_word(text).to_ascii_lowercase();
            if begin.contains(&word.as_str()) {
                depth += 1;
            } else if word == end && depth == 0 {
                return Ok(raws[start..*index - 1].to_vec());
            } else if word == end {
                depth -= 1;
            }
        }
    }
    Err((line, format!("`{}` without `{end}`", begin[0])))
}

/// A statement of a body: `\name` is the parameter's value, `\@` the number of the macro's call,
/// `\()` nothing. In a macro it stands on the line of the call.
fn substituted(
    raw: &Raw,
    values: &[(String, String)],
    count: Option<u32>,
    called: Option<u32>,
) -> Raw {
    let Raw::Statement { text, line } = raw else {
        return raw.clone();
    };
    let line = called.unwrap_or(*line);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let end = after
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(after.len());
        let value = values.iter().find(|(name, _)| *name == after[..end]);
        rest = if let Some((_, value)) = value {
            out.push_str(value);
            &after[end..]
        } else if let (Some(rest), Some(count)) = (after.strip_prefix('@'), count) {
            out.push_str(&count.to_string());
            rest
        } else if let (Some(rest), false) = (
            after.strip_prefix("()"),
            values.is_empty() && count.is_none(),
        ) {
            rest
        } else {
            out.push('\\');
            after
        };
    }
    out.push_str(rest);
    Raw::Statement { text: out, line }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembly::scan::scan;
    use std::process::Command;

    fn expanded(source: &str) -> Result<String, Error> {
        let texts = expand(scan(source)?)?.into_iter().map(|raw| match raw {
            Raw::Statement { text, .. } => text + "\n",
            _ => String::new(),
        });
        Ok(texts.collect())
    }

    /// What gas makes of a source.
    fn bytes(name: &str, source: &str) -> Vec<u8> {
        let folder =
            std::env::temp_dir().join(format!("postern-macros-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [text, object, raw] = ["s", "o", "bin"].map(|end| folder.join(format!("a.{end}")));
        std::fs::write(&text, source).unwrap();
        let run = |command: &mut Command| assert!(command.status().unwrap().success(), "{source}");
        run(Command::new("as").arg("-o").arg(&object).arg(&text));
        run(Command::new("objcopy")
            .args(["-O", "binary", "-j", ".text"])
            .arg(&object)
            .arg(&raw));
        let bytes = std::fs::read(&raw).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        bytes
    }

    #[test]
    fn expansions_are_those_of_gas() {
        let sources = [
            ".macro add_all to, first=%rax, rest:vararg\n addq \\first, \\to\n .ifnb \\rest\n add_all \\to, \\rest\n .endif\n.endm\n\
             add_all %rbx, %rcx, %rdx, %rsi\nadd_all %rbx\nadd_all to=%rdi, first=%r8\n",
            ".macro spin count:req\n movl $\\count, %ecx\n.Lspin\\@:\n decl %ecx\n jnz .Lspin\\@\n.endm\nspin 3; spin 4+1\n",
            ".macro x a b\n.byte \\a, \\b\n.endm\nx 1 2\nx 3,4\n.macro twice t\nx \\t, \\t\n1: jmp 1b\n.endm\nTWICE 7\n",
            ".set n, 3\n.rept n * 2\nnop\n.rept 2\ncltd\n.endr\n.endr\n.irp r, ax, bx, cx\nincl %e\\r\n.endr\n.irpc d,0123\n.byte 0x1\\d\n.endr\n",
            "w = 8\n.if w == 8 && w < 9\n.byte 1\n.elseif w\n.byte 2\n.else\n.byte 3\n.endif\n.ifdef w\n.byte 4\n.endif\n.ifndef v\n.byte 5\n\
             .if 0\n.byte 9\n.else\n.byte 6\n.endif\n.endif\n.ifeq w-8\n.byte 7\n.endif\n.ifc a b,a b\n.byte 8\n.endif\n.if !(w != 8) || 0\n.byte 10\n.endif\n",
            ".macro down n\n.byte \\n\n.if \\n == 0\n.exitm\n.endif\ndown (\\n-1)\n.endm\ndown 3\n.macro late\n.macro inner v\n.byte \\v\n.endm\n.endm\nlate\ninner 5\n",
            ".macro op name, size\n\\name\\()\\size %eax, %ebx\n.endm\nop add, l\nop mov l\n.purgem op\n",
        ];
        for (index, source) in sources.iter().enumerate() {
            let text = expanded(source).unwrap();
            assert!(!text.contains(".macro") && !text.contains(".if"), "{text}");
            let name = index.to_string();
            assert_eq!(
                bytes(&name, &text),
                bytes(&name, source),
                "{source}\n{text}"
            );
        }
    }

    #[test]
    fn what_cannot_be_expanded_has_its_line() {
        let line = |source: &str| expanded(source).unwrap_err().0;
        assert_eq!(line("nop\n.macro f\n nop"), 2);
        assert_eq!(line(".if 1\nnop"), 1);
        assert_eq!(line(".if 1\n.endif\n.endif"), 3);
        assert_eq!(line("nop\na:\n.if . - a\n.endif"), 3);
        assert_eq!(line(".rept 1000000000\nnop\nnop\n.endr"), 1);
        assert_eq!(line(".macro f\nf\n.endm\n\nf"), 5);
        assert_eq!(line(".macro f a:req\n.endm\nf"), 3);
        assert_eq!(line(".macro f a\n.endm\nf 1, 2"), 3);
        assert_eq!(line(".macro f\n.if 1\n.endm\nf"), 4);
    }

    #[test]
    fn doubling_ends() {
        // Each macro calls the one before twice: 2^40 statements.
        let mut source = ".macro m0\nnop\n.endm\n".to_owned();
        for k in 1..=40 {
            source.push_str(&format!(".macro m{k}\nm{0}\nm{0}\n.endm\n", k - 1));
        }
        assert!(expanded(&(source + "m40\n")).is_err());
    }
}
