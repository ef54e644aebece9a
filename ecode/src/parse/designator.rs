//! Designators: which part of an object a value is for, by name, by index, or by a range of them.

use alloc::format;
use alloc::vec::Vec;

use super::Parser;
use super::initializer::Part;
use crate::diagnostics::Rule;
use crate::names::Name;
use crate::token::TokenKind;
use crate::types::*;

/// How many values ranges may stand for in one compilation: source text of a few bytes must not
/// become gigabytes.
const RANGES: u32 = 1 << 16;

impl Parser<'_> {
    /// Whether a designator stands so many tokens ahead: `[`, `.`, or a name with a colon, as gcc
    /// had it before C did.
    pub(super) fn designator_at(&self, ahead: usize) -> bool {
        match self.peek_at(ahead) {
            TokenKind::Dot | TokenKind::LBracket => true,
            TokenKind::Name => self.peek_at(ahead + 1) == TokenKind::Colon,
            _ => false,
        }
    }

    /// `[3] = …` or `.x = …`, also several in a row; the index behind the part. What follows
    /// without designators belongs to the innermost of them that has parts left.
    pub(super) fn designated(&mut self, ty: Type, offset: u32) -> Option<u32> {
        let mut part = Part {
            ty,
            offset,
            bits: Bits::NONE,
        };
        // Types and places of what is gone into, and the index behind the part of each.
        let mut levels: Vec<(Type, u32, u32)> = Vec::new();
        // The elements of a range before its last, of which the designators go into, and how far
        // they are from each other.
        let mut range: Option<(u32, u32)> = None;
        let old = self.peek() == TokenKind::Name;
        if old {
            part = self.old_designator(part, &mut levels)?;
        }
        while !old && matches!(self.peek(), TokenKind::Dot | TokenKind::LBracket) && !self.panic {
            let at = self.at();
            let found = if self.advance().kind == TokenKind::LBracket {
                let first = self.constant_expression()?;
                let last = match self.accept(TokenKind::Ellipsis) {
                    true => self.constant_expression()?,
                    false => first,
                };
                self.expect(TokenKind::RBracket, "`]`");
                let array = self.types.kind(part.ty) == TypeKind::Array;
                let ends = u32::try_from(first).ok().zip(u32::try_from(last).ok());
                let ends = ends.filter(|(first, last)| array && first <= last);
                let found = ends.and_then(|(_, last)| self.enter(part, last, &mut levels));
                if let (Some(inner), Some((first, last))) = (found, ends)
                    && first < last
                {
                    let earlier = range.replace((last - first, self.types.size(inner.ty)));
                    self.one_range(earlier.is_none(), at);
                }
                found
            } else {
                let name = self.token();
                self.expect(TokenKind::Name, "the name of a member");
                self.enter_member(part, Name(name.value), &mut levels)
            };
            let Some(inner) = found else {
                self.no_part(part.ty, at);
                return None;
            };
            part = inner;
            let union = self.types.kind(part.ty) == TypeKind::Union;
            self.one_range(
                range.is_none() || !union || self.peek() == TokenKind::Assign,
                at,
            );
        }
        if !old {
            self.expect(TokenKind::Assign, "`=`");
        }
        // Another member of a union than before takes all of its place.
        for (number, &(around, offset, next)) in levels.iter().enumerate() {
            if self.types.kind(around) == TypeKind::Union {
                let earlier = self.chosen.get(&(offset, around.plain().0));
                let other = *earlier.unwrap_or(&1) != next;
                if other || number + 1 == levels.len() {
                    self.replaces(around, offset);
                }
            }
        }
        let before = self.values.len();
        self.part_object(part, 0, None);
        if let Some((elements, size)) = range {
            self.repeat(before, part, elements, size);
        }
        for &(around, offset, next) in &levels {
            if self.types.kind(around) == TypeKind::Union {
                self.chosen.insert((offset, around.plain().0), next);
            }
        }
        for (ty, offset, next) in levels.drain(1..).rev() {
            self.rest(ty, offset, next);
        }
        levels.first().map(|level| level.2)
    }

    fn one_range(&mut self, fits: bool, at: u32) {
        if !fits {
            let message = "E-code has one range in a designator, and no union behind it".into();
            self.error(
                Rule::Unsupported,
                at,
                message,
                "name the elements one by one",
            );
        }
    }

    /// Gives the values from `before` on, which are those of `last` in the last element of a range,
    /// to so many elements of `size` before it.
    fn repeat(&mut self, before: usize, last: Part, elements: u32, size: u32) {
        let Some(at) = self.values.get(before).map(|v| self.tree.get(v.node).at) else {
            return;
        };
        if self.values[before..]
            .iter()
            .any(|value| self.tree.get(value.node).effects)
        {
            let message = "E-code would compute this value for each element of the range".into();
            let remedy = "keep it in a variable first";
            return self.error(Rule::Unsupported, at, message, remedy);
        }
        let count = self.values.len() - before;
        let room = RANGES.saturating_sub(self.repeated) as usize;
        if (elements as usize).saturating_mul(count) > room {
            let message = format!("the ranges of all initialisers stand for over {RANGES} values");
            return self.error(Rule::Limit, at, message, "fill the array in a loop");
        }
        self.repeated += elements * count as u32;
        for element in 1..=elements {
            let back = element * size;
            if !self.types.is_scalar(last.ty) {
                self.replaces(last.ty, last.offset.wrapping_sub(back));
            }
            for index in before..before + count {
                let mut value = self.values[index];
                value.offset = value.offset.wrapping_sub(back);
                self.values.push(value);
            }
        }
    }

    /// `x:`, which goes one part deep.
    fn old_designator(&mut self, part: Part, levels: &mut Vec<(Type, u32, u32)>) -> Option<Part> {
        let token = self.advance();
        self.advance();
        let inner = self.enter_member(part, Name(token.value), levels);
        if inner.is_none() {
            self.no_part(part.ty, token.at);
        }
        inner
    }

    fn no_part(&mut self, ty: Type, at: u32) {
        if !self.panic {
            let message = format!("`{}` has no such part", self.spell(ty.plain()));
            self.fail(Rule::Initializer, at, 1, message, "".into());
        }
    }

    /// A part of an element, which it goes into.
    fn enter(&self, part: Part, index: u32, levels: &mut Vec<(Type, u32, u32)>) -> Option<Part> {
        let inner = self.part_of(part.ty, index)?;
        levels.push((part.ty, part.offset, index + 1));
        Some(Part {
            offset: part.offset.wrapping_add(inner.offset),
            ..inner
        })
    }

    /// The same of a member, through those without names that it is in. Each member is looked at
    /// once.
    fn enter_member(
        &self,
        part: Part,
        name: Name,
        levels: &mut Vec<(Type, u32, u32)>,
    ) -> Option<Part> {
        if !self.types.is_struct(part.ty) {
            return None;
        }
        for (member, index) in self.types.members(part.ty).iter().zip(0..) {
            if !member.anonymous && member.name != name {
                continue;
            }
            let inner = self.enter(part, index, levels)?;
            if !member.anonymous {
                return Some(inner);
            }
            let found = self.enter_member(inner, name, levels);
            if found.is_some() {
                return found;
            }
            levels.pop();
        }
        None
    }

    /// What is left of an object without braces, from a part on. The comma before what belongs to
    /// others is theirs.
    fn rest(&mut self, ty: Type, offset: u32, mut index: u32) {
        while self.peek() == TokenKind::Comma
            && !matches!(
                self.peek_at(1),
                TokenKind::RBrace | TokenKind::Dot | TokenKind::LBracket
            )
            && !self.panic
            && !self.report.full()
        {
            let Some(part) = self.part(ty, index) else {
                return;
            };
            self.advance();
            self.part_object(part, offset, None);
            index += 1;
        }
    }
}
