//! `.if` and its kin, and the values that they ask for.

use super::{Condition, Expander, unquoted};
use crate::assembly::Expression;
use crate::assembly::expression::is_symbol_char;
use crate::assembly::scan::split_commas;

/// An operator, and whether it holds.
type Comparison = (&'static str, fn(i64, i64) -> bool);

/// Longer ones first.
const COMPARISONS: [Comparison; 7] = [
    ("==", |a, b| a == b),
    ("!=", |a, b| a != b),
    ("<>", |a, b| a != b),
    ("<=", |a, b| a <= b),
    (">=", |a, b| a >= b),
    ("<", |a, b| a < b),
    (">", |a, b| a > b),
];

impl Expander {
    /// Follows a conditional directive; whether it was one.
    pub(super) fn condition(
        &mut self,
        name: &str,
        arguments: &str,
        line: u32,
    ) -> Result<bool, String> {
        let outer = self.active();
        match name {
            ".else" | ".elseif" => {
                let Some(mut condition) = self.conditions.pop() else {
                    return Err(format!("`{name}` without `.if`"));
                };
                // What was read once is over; nothing is asked where nothing is read.
                condition.active =
                    !condition.done && (name == ".else" || self.holds(".if", arguments)?);
                condition.done |= condition.active;
                self.conditions.push(condition);
            }
            ".endif" => {
                if self.conditions.pop().is_none() {
                    return Err("`.endif` without `.if`".to_owned());
                }
            }
            _ if name.starts_with(".if") => {
                let active = outer && self.holds(name, arguments)?;
                self.conditions.push(Condition {
                    line,
                    active,
                    done: active || !outer,
                });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn holds(&self, name: &str, arguments: &str) -> Result<bool, String> {
        let equal = || match split_commas(arguments).as_slice() {
            [a, b] => Ok(unquoted(a) == unquoted(b)),
            _ => Err(format!("`{name} {arguments}`: two texts are compared")),
        };
        Ok(match name {
            ".if" | ".ifne" => self.value(arguments)? != 0,
            ".ifeq" => self.value(arguments)? == 0,
            ".ifgt" => self.value(arguments)? > 0,
            ".ifge" => self.value(arguments)? >= 0,
            ".iflt" => self.value(arguments)? < 0,
            ".ifle" => self.value(arguments)? <= 0,
            ".ifdef" => self.symbols.contains_key(arguments),
            ".ifndef" | ".ifnotdef" => !self.symbols.contains_key(arguments),
            ".ifb" => unquoted(arguments).is_empty(),
            ".ifnb" => !unquoted(arguments).is_empty(),
            ".ifc" | ".ifeqs" => equal()?,
            ".ifnc" | ".ifnes" => !equal()?,
            _ => return Err(format!("`{name}` is not understood")),
        })
    }

    /// The value of an expression of numbers and symbols that are numbers here. Comparisons are -1
    /// or 0, as gas has it.
    pub(super) fn value(&self, text: &str) -> Result<i64, String> {
        let text = text.trim();
        let truth = |holds| if holds { -1 } else { 0 };
        for (operator, and) in [("||", false), ("&&", true)] {
            if let Some((left, right)) = split(text, operator) {
                let (left, right) = (self.value(left)? != 0, self.value(right)? != 0);
                return Ok(truth(if and { left && right } else { left || right }));
            }
        }
        for (operator, holds) in COMPARISONS {
            if let Some((left, right)) = split(text, operator) {
                return Ok(truth(holds(self.value(left)?, self.value(right)?)));
            }
        }
        if let Some(inner) = text.strip_prefix('!') {
            return Ok(truth(self.value(inner)? == 0));
        }
        let inner = text
            .strip_prefix('(')
            .and_then(|text| text.strip_suffix(')'));
        if let Some(inner) = inner.filter(|inner| balanced(inner)) {
            return self.value(inner);
        }
        let numbers = self.numbers(text);
        let expression = Expression::parse(&numbers)?;
        match expression.value() {
            Some(value) if !text.is_empty() => Ok(value),
            _ => Err(format!("`{text}` is not a number when this line is read")),
        }
    }

    /// `text` with the values of symbols in their places.
    fn numbers(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let end = rest
                .find(|c| !is_symbol_char(c))
                .unwrap_or(rest.len())
                .max(c.len_utf8());
            let (word, after) = rest.split_at(end);
            match self.symbols.get(word) {
                Some(Some(value)) => out.push_str(&format!("({value})")),
                _ => out.push_str(word),
            }
            rest = after;
        }
        out
    }
}

/// Whether each `)` has its `(` before it.
fn balanced(text: &str) -> bool {
    let mut depth = 0;
    text.chars().all(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth >= 0
    })
}

/// The parts of `text` before and after the last `operator` that stands outside parentheses and is
/// not a part of a longer one.
fn split<'t>(text: &'t str, operator: &str) -> Option<(&'t str, &'t str)> {
    let mut found = None;
    let mut depth = 0;
    for (index, c) in text.char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        let (before, after) = (text[..index].chars().next_back(), &text[index..]);
        if depth != 0 || !after.starts_with(operator) {
            continue;
        }
        let beside = |c: Option<char>| c.is_some_and(|c| "<>=!".contains(c));
        let next = after[operator.len()..].chars().next();
        if operator.len() == 1 && (beside(before) || beside(next)) || index == 0 {
            continue;
        }
        found = Some((&text[..index], &text[index + operator.len()..]));
    }
    found
}
