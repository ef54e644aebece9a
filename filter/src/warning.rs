//! Expressions that are right, and say something else than most people mean by them.
//!
//! `vlan`, `mpls`, `pppoes` and `geneve` move the headers for all that follows in the expression,
//! not only for what `and` joins to them: `geneve or port 80` looks for the port inside of a tunnel
//! that need not be there.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::error::Error;
use crate::parse::parse;
use crate::tree::{Leaf, Step};

/// A condition with its place in the source.
struct Part {
    at: Range<usize>,
    /// The first condition in it that moves the headers.
    moves: Option<Range<usize>>,
    /// Something in it is looked for in headers.
    looks: bool,
    /// What `or` joins, if it is that.
    either: Vec<Part>,
}

/// Steps of an expression that is looked at, for each looks at the text before it.
const STEPS: usize = 1000;

/// What in an expression may mean something else than it says. None for one that is wrong, or that
/// nobody wrote by hand.
pub fn warnings(source: &str) -> Vec<Error> {
    let mut found = Vec::new();
    let mut stack: Vec<Part> = Vec::new();
    let steps = parse(source).unwrap_or_default();
    let moves = |step: &Step| matches!(step, Step::Leaf(leaf, _) if moves(leaf));
    if steps.len() > STEPS || !steps.iter().any(moves) {
        return found;
    }
    for step in steps {
        let made = match step {
            Step::Leaf(leaf, at) => Some(Part::of(&leaf, at)),
            Step::Not => stack.pop().map(|part| part.not(source)),
            Step::And | Step::Or => stack.pop().zip(stack.pop()).map(|(b, a)| {
                // Whoever is joined to them by `and` ends alternatives.
                let (a, b) = match step {
                    Step::And => (a.told(source, &mut found), b.told(source, &mut found)),
                    _ => (a, b),
                };
                a.join(b, matches!(step, Step::Or), source)
            }),
        };
        stack.extend(made);
    }
    for part in stack {
        part.told(source, &mut found);
    }
    found
}

/// Whether the condition moves the headers for those behind it.
fn moves(leaf: &Leaf) -> bool {
    use Leaf::{Geneve, Mpls, Pppoes, Vlan};
    matches!(leaf, Vlan(_) | Mpls(_) | Pppoes(_) | Geneve(_))
}

impl Part {
    fn of(leaf: &Leaf, at: Range<usize>) -> Part {
        Part {
            moves: moves(leaf).then(|| at.clone()),
            looks: !matches!(leaf, Leaf::Less(_) | Leaf::Greater(_)),
            at,
            either: Vec::new(),
        }
    }

    fn not(self, source: &str) -> Part {
        let before = source.get(..self.at.start).unwrap_or_default();
        let bare = before.trim_end_matches(|c: char| c.is_whitespace() || c == '(');
        let start = ["not", "!"].iter().find_map(|word| bare.strip_suffix(word));
        let start = start.map_or(self.at.start, str::len);
        Part {
            at: closed(source, start..self.at.end),
            either: Vec::new(),
            ..self
        }
    }

    fn join(self, other: Part, or: bool, source: &str) -> Part {
        let mut at = closed(source, self.at.start..other.at.end);
        let before = source.get(..at.start).unwrap_or_default().trim_end();
        let behind = source.get(at.end..).unwrap_or_default();
        let close = behind.trim_start().starts_with(')');
        if let (false, true, Some(close)) = (or, before.ends_with('(') && close, behind.find(')')) {
            at = before.len() - 1..at.end + close + 1;
        }
        let moves = self.moves.clone().or_else(|| other.moves.clone());
        let looks = self.looks || other.looks;
        let either = match (or, self.either.is_empty()) {
            (false, _) => Vec::new(),
            (true, true) => Vec::from([self, other]),
            (true, false) => {
                let mut either = self.either;
                either.push(other);
                either
            }
        };
        Part {
            at,
            moves,
            looks,
            either,
        }
    }

    /// Says what is to be said of these alternatives. They are not asked again.
    fn told(mut self, source: &str, found: &mut Vec<Error>) -> Part {
        let either = core::mem::take(&mut self.either);
        found.extend(self.warning(&either, source));
        for part in either {
            part.told(source, found);
        }
        self
    }

    fn warning(&self, either: &[Part], source: &str) -> Option<Error> {
        let index = either.iter().position(|part| part.moves.is_some())?;
        let (before, rest) = either.split_at(index);
        let ((mover, behind), moves) = (rest.split_first()?, self.moves.as_ref()?);
        let seen = behind.iter().find(|part| part.looks)?;
        let what = source.get(moves.clone()).unwrap_or_default();
        let message = alloc::format!(
            "this is looked for inside of `{what}`: all that follows is, behind `or`, too"
        );
        let warning = Error::new(seen.at.clone(), message);
        let text = |parts: &[Part]| {
            let (first, last) = (parts.first()?, parts.last()?);
            source.get(first.at.start..last.at.end)
        };
        let own = behind.iter().all(|part| part.moves.is_none());
        let outside = text(behind).filter(|text| own && parse(text).is_ok());
        let shown = outside.and_then(|outside| {
            let before = text(before).map_or(String::new(), |text| alloc::format!("{text} or "));
            let inside = source.get(mover.at.clone())?;
            let bare = mover.at == *moves || enclosed(inside);
            Some(match bare {
                true => alloc::format!("{before}{outside} or {inside}"),
                false => alloc::format!("{before}{outside} or ({inside})"),
            })
        });
        Some(warning.suggest(match shown {
            Some(shown) => alloc::format!("if the packet itself is meant, write `{shown}`"),
            None => "if the packet itself is meant, make it a filter of its own".into(),
        }))
    }
}

/// Whether a parenthesis that the text begins with is closed at its end only.
fn enclosed(text: &str) -> bool {
    let mut depth = 0;
    let closes = text.char_indices().find_map(|(at, sign)| {
        depth += i32::from(sign == '(') - i32::from(sign == ')');
        (depth == 0).then_some(at)
    });
    closes.is_some_and(|at| at > 0 && at + 1 == text.len())
}

/// A piece of the source and the parentheses around it that it needs.
fn closed(source: &str, at: Range<usize>) -> Range<usize> {
    let Range { mut start, mut end } = at;
    let inside = source.get(start..end).unwrap_or_default();
    let (mut open, mut unopened) = (0usize, 0usize);
    for sign in inside.chars() {
        match sign {
            '(' => open += 1,
            ')' if open > 0 => open -= 1,
            ')' => unopened += 1,
            _ => {}
        }
    }
    for _ in 0..open {
        let close = source.get(end..).and_then(|rest| rest.find(')'));
        end += close.map_or(0, |at| at + 1);
    }
    for _ in 0..unopened {
        let opening = source.get(..start).and_then(|rest| rest.rfind('('));
        start = opening.unwrap_or(start);
    }
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn what_stands_behind_an_encapsulation() {
        for (source, shown) in [
            ("geneve or port 80", "port 80 or geneve"),
            (
                "geneve and tcp or port 80 or 443",
                "port 80 or 443 or (geneve and tcp)",
            ),
            ("arp or vlan 5 or ip6", "arp or ip6 or vlan 5"),
            (
                "(vlan and (tcp or udp)) or port 80",
                "port 80 or (vlan and (tcp or udp))",
            ),
            ("mpls or not (tcp or udp)", "not (tcp or udp) or mpls"),
            (
                "pppoes 7 or (host 10.0.0.1 and tcp)",
                "(host 10.0.0.1 and tcp) or pppoes 7",
            ),
            ("(geneve or tcp) and len > 5", "tcp or geneve"),
            (
                "arp or (mpls or less 9) and tcp or (udp and ip)",
                "(udp and ip) or (arp or (mpls or less 9) and tcp)",
            ),
        ] {
            let found = warnings(source);
            assert_eq!(found.len(), 1, "{source}");
            let said = found[0].show(source);
            assert!(
                said.contains(&std::format!("write `{shown}`")),
                "{source}: {said}"
            );
            assert!(
                parse(shown).is_ok() && warnings(shown).is_empty(),
                "{shown}"
            );
        }
        for source in [
            "vlan 1 or vlan 2",
            "vlan and port 80 or 443",
            "not vlan or not ip",
        ] {
            let said = warnings(source)[0].to_string();
            let own = source.starts_with("not");
            assert_eq!(said.contains("a filter of its own"), !own, "{said}");
        }
        assert_eq!(warnings("arp or (mpls or ip6)").len(), 1);
        for source in [
            "",
            "geneve",
            "geneve and tcp port 80",
            "port 80 or geneve",
            "vlan and (tcp or udp)",
            "vlan or greater 100",
            "tcp or udp or arp",
            "pppoed or ip",
            "vlan or",
            "((",
        ] {
            assert!(warnings(source).is_empty(), "{source}");
        }
    }
}
