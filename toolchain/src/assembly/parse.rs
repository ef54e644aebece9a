//! The parser: text to [`Statement`]s.
//!
//! Numeric labels (`1:`, `1b`, `1f`) are given unique names, so that statements can be moved
//! between them.

use std::collections::HashMap;
use std::rc::Rc;

use super::expression::is_symbol_char;
use super::macros;
use super::register::Register;
use super::scan::{Raw, leading_label, scan, split_commas};
use super::{Expression, Instruction, Memory, Operand, SourceLocation, Statement, StatementKind};

/// What is wrong with the text, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Where.
    pub place: SourceLocation,
    /// What.
    pub message: String,
}

const PREFIXES: [&str; 13] = [
    "lock", "rep", "repe", "repz", "repne", "repnz", "notrack", "bnd", "data16", "addr32", "rex64",
    "xacquire", "xrelease",
];

/// Parses assembly. `file` names it in messages where the text itself does not say better (`.loc`,
/// line markers).
pub fn parse(source: &str, file: &str) -> Result<Vec<Statement>, SyntaxError> {
    let mut parser = Parser {
        own_file: Rc::from(file),
        statements: Vec::new(),
        files: HashMap::new(),
        located: None,
        marked: None,
        numeric: HashMap::new(),
    };
    let raws = scan(source)
        .and_then(macros::expand)
        .map_err(|(line, message)| SyntaxError {
            place: SourceLocation {
                file: Rc::from(file),
                line,
            },
            message,
        })?;
    for raw in raws {
        match raw {
            Raw::Marker { file, next, line } => {
                parser.marked = (!file.is_empty() && !file.starts_with('<'))
                    .then(|| (Rc::from(file), next, line));
            }
            Raw::EndOfInline => parser.marked = None,
            Raw::Statement { text, line } => {
                let place = parser.place(line);
                parser
                    .statement(&text, &place)
                    .map_err(|message| SyntaxError {
                        place: place.clone(),
                        message,
                    })?;
            }
        }
    }
    Ok(parser.statements)
}

struct Parser {
    own_file: Rc<str>,
    statements: Vec<Statement>,
    /// `.file N` entries.
    files: HashMap<u32, Rc<str>>,
    /// The last `.loc`.
    located: Option<SourceLocation>,
    /// The last line marker: file, number of the line after it, and the marker's own line here.
    marked: Option<(Rc<str>, u32, u32)>,
    /// How often each numeric label was defined so far.
    numeric: HashMap<u32, u32>,
}

impl Parser {
    fn place(&self, line: u32) -> SourceLocation {
        if let Some((file, next, own)) = &self.marked {
            return SourceLocation {
                file: file.clone(),
                line: next.saturating_add(line.saturating_sub(own + 1)),
            };
        }
        self.located.clone().unwrap_or(SourceLocation {
            file: self.own_file.clone(),
            line,
        })
    }

    fn push(&mut self, place: &SourceLocation, kind: StatementKind) {
        self.statements.push(Statement {
            place: place.clone(),
            kind,
        });
    }

    fn statement(&mut self, text: &str, place: &SourceLocation) -> Result<(), String> {
        let mut text = text;
        while let Some((name, rest)) = leading_label(text) {
            let label = if name.bytes().all(|b| b.is_ascii_digit()) {
                let number: u32 = name
                    .parse()
                    .map_err(|_| format!("the label `{name}` is too large"))?;
                let count = self.numeric.entry(number).or_insert(0);
                *count += 1;
                numeric_label(number, *count)
            } else {
                name.to_owned()
            };
            self.push(place, StatementKind::Label(label));
            text = rest.trim_start();
        }
        if text.is_empty() {
            return Ok(());
        }
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        if text.starts_with('.') && !rest.trim_start().starts_with('=') {
            return self.directive(word, rest.trim(), place);
        }
        if let Some((name, value)) = text.split_once('=')
            && name.trim().chars().all(is_symbol_char)
        {
            let arguments = format!(
                "{}, {}",
                name.trim(),
                self.rename(value.trim_start_matches('=').trim())
            );
            let name = ".set".to_owned();
            self.push(place, StatementKind::Directive { name, arguments });
            return Ok(());
        }
        let instruction = self.instruction(text)?;
        self.push(place, StatementKind::Instruction(instruction));
        Ok(())
    }

    fn directive(
        &mut self,
        name: &str,
        arguments: &str,
        place: &SourceLocation,
    ) -> Result<(), String> {
        match name {
            ".file" => self.file(arguments),
            ".loc" => {
                let mut words = arguments.split_whitespace().map(str::parse::<u32>);
                if let (Some(Ok(file)), Some(Ok(line))) = (words.next(), words.next())
                    && let Some(file) = self.files.get(&file)
                {
                    self.located = Some(SourceLocation {
                        file: file.clone(),
                        line,
                    });
                }
            }
            _ => {}
        }
        let arguments = if arguments.contains('"') {
            arguments.to_owned()
        } else {
            self.rename(arguments)
        };
        let name = name.to_ascii_lowercase();
        self.push(place, StatementKind::Directive { name, arguments });
        Ok(())
    }

    /// `.file 1 "name"` or `.file 1 "directory" "name"`.
    fn file(&mut self, arguments: &str) {
        let Some((number, rest)) = arguments.split_once(char::is_whitespace) else {
            return;
        };
        let Ok(number) = number.parse() else { return };
        let strings: Vec<&str> = rest.split('"').skip(1).step_by(2).collect();
        // The directory is the compilation's own or one that the user named in an include: the name
        // alone reads as the user wrote it when it is relative to the former.
        if let Some(name) = strings.last() {
            self.files.insert(number, Rc::from(*name));
        }
    }

    /// Replaces `1b` and `1f` in `text`.
    fn rename(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|c| !is_symbol_char(c)).unwrap_or(rest.len());
            if end == 0 {
                let mut chars = rest.chars();
                out.extend(chars.next());
                rest = chars.as_str();
                continue;
            }
            let (word, after) = rest.split_at(end);
            out.push_str(&self.reference(word).unwrap_or_else(|| word.to_owned()));
            rest = after;
        }
        out
    }

    fn reference(&self, word: &str) -> Option<String> {
        let (digits, direction) = word.split_at_checked(word.len().checked_sub(1)?)?;
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let number: u32 = digits.parse().ok()?;
        let count = self.numeric.get(&number).copied().unwrap_or(0);
        match direction {
            "b" if count > 0 && !matches!(digits, "0" if word.len() > 2) => {
                Some(numeric_label(number, count))
            }
            "f" => Some(numeric_label(number, count + 1)),
            _ => None,
        }
    }

    fn instruction(&self, text: &str) -> Result<Instruction, String> {
        let mut prefixes = Vec::new();
        let mut rest = text;
        let mnemonic = loop {
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let word = word.to_ascii_lowercase();
            rest = after.trim_start();
            if PREFIXES.contains(&word.as_str()) && !rest.is_empty() {
                prefixes.push(word);
            } else {
                break word;
            }
        };
        if !mnemonic
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_'))
        {
            return Err(format!("`{text}` is not understood"));
        }
        let mut instruction = Instruction {
            prefixes,
            mnemonic,
            operands: Vec::new(),
            indirect: false,
        };
        for part in split_commas(rest) {
            let part = match part.strip_prefix('*') {
                Some(target) => {
                    instruction.indirect = true;
                    target.trim_start()
                }
                None => part,
            };
            instruction.operands.push(self.operand(part)?);
        }
        Ok(instruction)
    }

    fn operand(&self, text: &str) -> Result<Operand, String> {
        if text.is_empty() {
            return Err("an operand is missing".to_owned());
        }
        if let Some(value) = text.strip_prefix('$') {
            let value = Expression::parse(&self.rename(value))?;
            if value.is_empty() {
                return Err("a value is missing after `$`".to_owned());
            }
            return Ok(Operand::Immediate(value));
        }
        if text.starts_with('%') {
            let (register, rest) = register(text)?;
            let rest = rest.trim_start();
            if rest.is_empty() {
                return Ok(Operand::Register(register));
            }
            return match (register, rest.strip_prefix(':')) {
                (Register::Segment(_), Some(address)) => {
                    let mut memory = self.memory(address.trim_start())?;
                    memory.segment = Some(register);
                    Ok(Operand::Memory(memory))
                }
                _ => Err(format!("junk `{rest}` after {register}")),
            };
        }
        self.memory(text).map(Operand::Memory)
    }

    fn memory(&self, text: &str) -> Result<Memory, String> {
        let open = text
            .find('(')
            .into_iter()
            .chain(text.match_indices('(').skip(1).map(|(k, _)| k));
        let open = open
            .filter(|k| text[k + 1..].trim_start().starts_with(['%', ',']))
            .last();
        let Some(open) = open else {
            return Ok(Memory {
                displacement: Expression::parse(&self.rename(text))?,
                ..Memory::default()
            });
        };
        let inner = text[open + 1..]
            .trim_end()
            .strip_suffix(')')
            .ok_or_else(|| format!("a `)` is missing in `{text}`"))?;
        let mut memory = Memory {
            displacement: Expression::parse(&self.rename(&text[..open]))?,
            ..Memory::default()
        };
        let parts = split_commas(inner);
        if parts.len() > 3 {
            return Err(format!("too many parts in the address `{text}`"));
        }
        let whole = |part: &str| match register(part)? {
            (register, "") => Ok(register),
            (_, junk) => Err(format!("junk `{junk}` in the address `{text}`")),
        };
        if let Some(part) = parts.first().filter(|part| !part.is_empty()) {
            memory.base = Some(whole(part)?);
        }
        if let Some(part) = parts.get(1).filter(|part| !part.is_empty()) {
            // `(%rax,1)`, an old spelling of a scale without an index, is not accepted.
            memory.index = Some(whole(part)?);
        }
        if let Some(part) = parts.get(2).filter(|part| !part.is_empty()) {
            memory.scale = match Expression::parse(part)?.value() {
                Some(scale @ (1 | 2 | 4 | 8)) => scale as u8,
                _ => return Err(format!("the scale in `{text}` is not 1, 2, 4 or 8")),
            };
        }
        Ok(memory)
    }
}

fn numeric_label(number: u32, count: u32) -> String {
    format!(".Lpostern_{number}_{count}")
}

/// The register at the start of `text` and what follows it.
fn register(text: &str) -> Result<(Register, &str), String> {
    let name = text
        .strip_prefix('%')
        .ok_or_else(|| format!("`{text}` is not a register"))?
        .trim_start();
    let end = name
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(name.len());
    let (name, rest) = name.split_at(end);
    if name == "st"
        && let Some((number, rest)) = rest
            .trim_start()
            .strip_prefix('(')
            .and_then(|r| r.split_once(')'))
    {
        return match number.trim().parse() {
            Ok(number @ 0..=7) => Ok((Register::X87(number), rest)),
            _ => Err(format!("`%st({number})` is not a register")),
        };
    }
    match Register::from_name(&name.to_ascii_lowercase()) {
        Some(register) => Ok((register, rest)),
        None => Err(format!("`%{name}` is not a register")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &str) -> Vec<String> {
        parse(source, "t.s")
            .unwrap()
            .into_iter()
            .map(|statement| match statement.kind {
                StatementKind::Label(name) => format!("{name}:"),
                StatementKind::Directive { name, arguments } => format!("{name} {arguments}"),
                StatementKind::Instruction(instruction) => instruction.to_string(),
            })
            .collect()
    }

    #[test]
    fn operands() {
        assert_eq!(
            shown("f: movl 8+4(%rax , %rcx,4), %edx; lock; lock incl (8)(,%rdi,2)"),
            [
                "f:",
                "movl\t8+4(%rax,%rcx,4), %edx",
                "lock",
                "lock incl\t(8)(,%rdi,2)"
            ]
        );
        assert_eq!(shown("jmp *.L4(,%rdi,8)"), ["jmp\t*.L4(,%rdi,8)"]);
        assert_eq!(
            shown("fld %st(3); mov %fs:0, %rax"),
            ["fld\t%st(3)", "mov\t%fs:0, %rax"]
        );
        assert_eq!(shown("x = 4"), [".set x, 4"]);
    }

    #[test]
    fn numeric_labels() {
        assert_eq!(
            shown("1: jmp 1b; jmp 1f; 1: .long 1b-2, 1"),
            [
                ".Lpostern_1_1:",
                "jmp\t.Lpostern_1_1",
                "jmp\t.Lpostern_1_2",
                ".Lpostern_1_2:",
                ".long .Lpostern_1_2-2, 1"
            ]
        );
    }

    #[test]
    fn places() {
        let source = ".file 1 \"/d\" \"a.c\"\n.loc 1 7 3\nnop\n#APP\n# 9 \"b.h\" 1\nnop\nnop\n# 0 \"\" 2\n#NO_APP\nnop\n";
        let places: Vec<String> = parse(source, "t.s")
            .unwrap()
            .iter()
            .filter(|statement| matches!(statement.kind, StatementKind::Instruction(_)))
            .map(|statement| statement.place.to_string())
            .collect();
        assert_eq!(places, ["a.c:7", "b.h:9", "b.h:10", "a.c:7"]);
    }

    #[test]
    fn malformed() {
        for source in [
            "movl 8(%rax, %edx",
            "movl (%rax,%rcx,3), %eax",
            "movl %foo, %eax",
            "movl $, %eax",
            "movl (%rax,%rcx,2,1), %eax",
            "mov%l %eax, %eax",
            "movl %eax,, %edx",
            "fld %st(8)",
            "movl %eax:4, %edx",
        ] {
            assert!(parse(source, "t.s").is_err(), "{source}");
        }
    }
}
