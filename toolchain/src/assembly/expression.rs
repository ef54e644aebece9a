//! Assembler expressions: checked text, with the value or the symbol and offset where they are that
//! simple.

use std::fmt;

/// An expression, as text that the assembler will read again, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Expression {
    text: String,
    form: Form,
}

/// What an expression amounts to.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Form {
    /// Nothing is written.
    #[default]
    Empty,
    /// A number.
    Constant(i64),
    /// A symbol and a constant.
    Symbol(String, i64),
    /// Anything else (a difference of symbols, say).
    Other,
}

impl Expression {
    /// The number `value`.
    pub fn constant(value: i64) -> Self {
        Self {
            text: value.to_string(),
            form: Form::Constant(value),
        }
    }

    /// The address of `name`.
    pub fn symbol(name: &str) -> Self {
        Self {
            text: name.to_owned(),
            form: Form::Symbol(name.to_owned(), 0),
        }
    }

    /// Reads `text`, which must be one expression.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        let mut parser = Parser { rest: text };
        let form = parser.sum()?;
        if !parser.rest.trim_start().is_empty() {
            return Err(format!("junk `{}` in the expression `{text}`", parser.rest));
        }
        Ok(Self {
            text: text.to_owned(),
            form,
        })
    }

    /// What it amounts to.
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// Nothing is written.
    pub fn is_empty(&self) -> bool {
        self.form == Form::Empty
    }

    /// Its value, if it is a number (an empty one is 0).
    pub fn value(&self) -> Option<i64> {
        match self.form {
            Form::Empty => Some(0),
            Form::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The symbol, if it is one and nothing else.
    pub fn as_symbol(&self) -> Option<&str> {
        match &self.form {
            Form::Symbol(name, 0) => Some(name),
            _ => None,
        }
    }

    /// The same expression, `delta` added.
    pub fn plus(&self, delta: i64) -> Self {
        match &self.form {
            _ if delta == 0 => self.clone(),
            Form::Empty => Self::constant(delta),
            Form::Constant(value) => match value.wrapping_add(delta) {
                0 => Self::default(),
                sum => Self::constant(sum),
            },
            Form::Symbol(name, offset) => {
                let offset = offset.wrapping_add(delta);
                let text = if offset == 0 {
                    name.clone()
                } else {
                    format!("{name}{offset:+}")
                };
                Self {
                    text,
                    form: Form::Symbol(name.clone(), offset),
                }
            }
            Form::Other => Self {
                text: format!("({}){delta:+}", self.text),
                form: Form::Other,
            },
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether `c` may stand in a symbol's name.
pub fn is_symbol_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '@') || !c.is_ascii()
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn take(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// term { (+ | - | the binary operators) term }. All operators bind alike except `+` and `-`,
    /// which bind weakest: enough to know the value of what compilers write, and anything else
    /// stays text.
    fn sum(&mut self) -> Result<Form, String> {
        let mut left = self.product()?;
        loop {
            if self.take("+") {
                let right = self.product()?;
                left = add(left, right, 1);
            } else if self.take("-") {
                let right = self.product()?;
                left = add(left, right, -1);
            } else {
                return Ok(left);
            }
        }
    }

    fn product(&mut self) -> Result<Form, String> {
        let mut left = self.term()?;
        loop {
            let operation: fn(i64, i64) -> Option<i64> = if self.take("<<") {
                |a, b| u32::try_from(b).ok().and_then(|b| a.checked_shl(b))
            } else if self.take(">>") {
                |a, b| {
                    u32::try_from(b)
                        .ok()
                        .and_then(|b| (a as u64).checked_shr(b))
                        .map(|v| v as i64)
                }
            } else if self.take("*") {
                |a, b| Some(a.wrapping_mul(b))
            } else if self.take("/") {
                i64::checked_div
            } else if self.take("|") {
                |a, b| Some(a | b)
            } else if self.take("&") {
                |a, b| Some(a & b)
            } else if self.take("^") {
                |a, b| Some(a ^ b)
            } else {
                return Ok(left);
            };
            let right = self.term()?;
            left = match (left, right) {
                (Form::Constant(a), Form::Constant(b)) => {
                    operation(a, b).map_or(Form::Other, Form::Constant)
                }
                _ => Form::Other,
            };
        }
    }

    fn term(&mut self) -> Result<Form, String> {
        if self.take("-") {
            return Ok(match self.term()? {
                Form::Constant(value) => Form::Constant(value.wrapping_neg()),
                _ => Form::Other,
            });
        }
        if self.take("~") {
            return Ok(match self.term()? {
                Form::Constant(value) => Form::Constant(!value),
                _ => Form::Other,
            });
        }
        if self.take("+") {
            return self.term();
        }
        if self.take("(") {
            let inner = self.sum()?;
            return if self.take(")") {
                Ok(inner)
            } else {
                Err("a `)` is missing in an expression".to_owned())
            };
        }
        match self.peek() {
            Some(c) if c.is_ascii_digit() => self.number(),
            Some('\'') => {
                let mut chars = self.rest.chars();
                chars.next();
                match chars.next() {
                    Some(c) if c.is_ascii() && c != '\\' => {
                        self.rest = chars.as_str();
                        let _ = self.take("'");
                        Ok(Form::Constant(i64::from(c as u32)))
                    }
                    _ => Err("this character constant is not understood".to_owned()),
                }
            }
            Some(c) if is_symbol_char(c) => {
                let end = self
                    .rest
                    .find(|c| !is_symbol_char(c))
                    .unwrap_or(self.rest.len());
                let (name, rest) = self.rest.split_at(end);
                self.rest = rest;
                Ok(match name {
                    "." => Form::Other,
                    _ => Form::Symbol(name.to_owned(), 0),
                })
            }
            Some(c) => Err(format!("`{c}` cannot begin an operand or expression")),
            None => Err("an expression is missing".to_owned()),
        }
    }

    fn number(&mut self) -> Result<Form, String> {
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        let lower = digits.to_ascii_lowercase();
        let value = if let Some(hex) = lower.strip_prefix("0x") {
            u64::from_str_radix(hex, 16)
        } else if let Some(binary) = lower.strip_prefix("0b") {
            u64::from_str_radix(binary, 2)
        } else if lower.len() > 1 && lower.starts_with('0') {
            u64::from_str_radix(&lower, 8)
        } else {
            lower.parse()
        };
        match value {
            Ok(value) => Ok(Form::Constant(value as i64)),
            Err(_) => Err(format!(
                "`{digits}` is neither a number nor a numeric label that is defined"
            )),
        }
    }
}

fn add(left: Form, right: Form, sign: i64) -> Form {
    match (left, right) {
        (Form::Constant(a), Form::Constant(b)) => {
            Form::Constant(a.wrapping_add(b.wrapping_mul(sign)))
        }
        (Form::Symbol(name, a), Form::Constant(b)) => {
            Form::Symbol(name, a.wrapping_add(b.wrapping_mul(sign)))
        }
        (Form::Constant(a), Form::Symbol(name, b)) if sign == 1 => {
            Form::Symbol(name, a.wrapping_add(b))
        }
        _ => Form::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> Form {
        Expression::parse(text).unwrap().form
    }

    #[test]
    fn values_and_symbols() {
        assert_eq!(form("-8"), Form::Constant(-8));
        assert_eq!(form("0x10+2*3"), Form::Constant(22));
        assert_eq!(form("1<<4|1"), Form::Constant(17));
        assert_eq!(form("18446744073709551615"), Form::Constant(-1));
        assert_eq!(form("sym+8-4"), Form::Symbol("sym".into(), 4));
        assert_eq!(form("4+sym"), Form::Symbol("sym".into(), 4));
        assert_eq!(form(".L3-.L2"), Form::Other);
        assert_eq!(form("'a'"), Form::Constant(97));
        assert_eq!(form(""), Form::Empty);
    }

    #[test]
    fn malformed() {
        for text in ["1+", "(1", "0xg", "%eax", "a b", "09"] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addition() {
        let plus = |text: &str, delta| Expression::parse(text).unwrap().plus(delta).to_string();
        assert_eq!(plus("sym+8", -8), "sym");
        assert_eq!(plus("8", -8), "");
        assert_eq!(plus("", 4), "4");
        assert_eq!(plus("a-b", -4), "(a-b)-4");
    }
}
