//! Initialisers: which value goes where, with designators and with braces left out, as C has it.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use super::Parser;
use crate::diagnostics::Rule;
use crate::token::TokenKind;
use crate::tree::{Expression, Initializer, NodeId};
use crate::types::*;

/// A part of an array, structure or union.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub ty: Type,
    pub offset: u32,
    pub bits: Bits,
}

impl Parser<'_> {
    /// The initialiser of a scalar, braces allowed.
    pub(crate) fn scalar_initializer(&mut self, ty: Type) -> NodeId {
        let braces = self.accept(TokenKind::LBrace);
        let n = self.assignment_expression();
        if braces {
            self.accept(TokenKind::Comma);
            self.expect(TokenKind::RBrace, "`}`");
        }
        self.assigned(n, ty, "this initialiser")
    }

    /// Parses the initialiser of an object; what it says is appended to `values`. Returns the
    /// object's type, in which an array has the length that the initialiser gives it.
    pub(crate) fn initializer(&mut self, ty: Type) -> Type {
        let at = self.at();
        let info = *self.types.get(ty);
        let unknown = info.kind == TypeKind::Array && info.count == UNKNOWN;
        let array = info.kind == TypeKind::Array;
        let plain_text = self.peek() == TokenKind::Text
            && matches!(
                self.peek_at(1),
                TokenKind::Semi | TokenKind::Comma | TokenKind::Text
            );
        if array
            && self.peek() != TokenKind::LBrace
            && !(plain_text && self.types.is_integer(info.of))
        {
            self.fail(
                Rule::Initializer,
                at,
                1,
                "an array is initialised by a list in braces".into(),
                "write { … }".into(),
            );
            return ty;
        }
        // It may stand inside another object's.
        let around = core::mem::take(&mut self.reach);
        let chosen = core::mem::take(&mut self.chosen);
        let (first, earlier) = (self.values.len(), self.replaced.len());
        let count = self.object(ty, 0, None);
        if self.replaced.len() > earlier {
            self.drop_replaced(first, earlier);
        }
        self.reach = around;
        self.chosen = chosen;
        if !unknown {
            return ty;
        }
        match self.types.array(info.of, count) {
            Some(array) => array.with(ty.qualifiers()),
            None => {
                self.error(Rule::Initializer, at, "this array is too large".into(), "");
                ERROR
            }
        }
    }

    fn put(&mut self, offset: u32, ty: Type, node: NodeId) {
        let bits = Bits::NONE;
        self.reach = self.reach.max(offset.saturating_add(self.types.size(ty)));
        self.values.push(Initializer {
            offset,
            ty,
            bits,
            node,
        });
    }

    /// What follows gives values to all of the object at `offset`, also to what it does not name.
    pub(super) fn replaces(&mut self, ty: Type, offset: u32) {
        let end = offset.saturating_add(self.types.size(ty));
        if offset < self.reach {
            self.replaced.push((self.values.len(), offset, end));
        }
        while let Some(key) = self.chosen.range((offset, 0)..(end, 0)).next() {
            let key = *key.0;
            self.chosen.remove(&key);
        }
    }

    /// Takes out the values from `first` on whose bytes all belong to objects that have got others
    /// since.
    #[cold]
    fn drop_replaced(&mut self, first: usize, earlier: usize) {
        let mut replaced = self.replaced.split_off(earlier);
        // Disjoint ranges: begin and end.
        let mut ranges: BTreeMap<u32, u32> = BTreeMap::new();
        let (mut kept, mut partly) = (Vec::new(), None);
        for (index, value) in self.values.drain(first..).enumerate().rev() {
            while let Some((_, start, end)) = replaced.pop_if(|(count, ..)| *count > first + index)
            {
                add_range(&mut ranges, start, end);
            }
            let (start, end) = match value.bits.any() {
                true => {
                    let last = u32::from(value.bits.first) + u32::from(value.bits.width);
                    let first = u32::from(value.bits.first);
                    (value.offset + first / 8, value.offset + last.div_ceil(8))
                }
                false => (value.offset, value.offset + self.types.size(value.ty)),
            };
            match ranges.range(..end).next_back() {
                Some((from, to)) if *from <= start && *to >= end => {}
                Some((_, to)) if *to > start => partly = Some(self.tree.get(value.node).at),
                _ => kept.push(value),
            }
        }
        self.values.extend(kept.into_iter().rev());
        if let Some(at) = partly {
            let message = "E-code cannot take a part of this value's place".into();
            self.error(Rule::Unsupported, at, message, "assign the part afterwards");
        }
    }

    /// A part of an object: a bit-field, or an object of its own.
    pub(super) fn part_object(&mut self, part: Part, offset: u32, first: Option<NodeId>) {
        let before = self.values.len();
        self.object(part.ty, offset.wrapping_add(part.offset), first);
        if part.bits.any()
            && let Some(value) = self.values.get_mut(before)
        {
            value.bits = part.bits;
        }
    }

    /// An object at `offset`, whose first expression may have been parsed already. Returns the
    /// number of elements of an array.
    fn object(&mut self, ty: Type, offset: u32, first: Option<NodeId>) -> u32 {
        if self.panic || ty == ERROR {
            self.panic |= ty == ERROR;
            return 0;
        }
        if !self.nest() {
            self.nested -= 1;
            return 0;
        }
        let count = self.object_inner(ty, offset, first);
        self.nested -= 1;
        count
    }

    fn object_inner(&mut self, ty: Type, offset: u32, mut first: Option<NodeId>) -> u32 {
        let info = *self.types.get(ty);
        match info.kind {
            TypeKind::Array if self.types.is_integer(info.of) => {
                let braced_text = first.is_none()
                    && self.peek() == TokenKind::LBrace
                    && self.peek_at(1) == TokenKind::Text
                    && matches!(self.peek_at(2), TokenKind::RBrace | TokenKind::Text);
                if braced_text {
                    self.advance();
                }
                if first.is_none() && self.peek() == TokenKind::Text {
                    first = Some(self.assignment_expression());
                }
                if braced_text {
                    self.expect(TokenKind::RBrace, "`}`");
                }
                if let Some(text) = first
                    && matches!(self.tree.get(text).expression, Expression::Text(_))
                    && self.types.size(self.types.get(self.tree.get(text).ty).of)
                        == self.types.size(info.of)
                {
                    return self.text_object(ty, offset, text);
                }
                self.list(ty, offset, first)
            }
            TypeKind::Array => self.list(ty, offset, first),
            TypeKind::Struct | TypeKind::Union => {
                if first.is_none() && self.peek() != TokenKind::LBrace {
                    first = Some(self.assignment_expression());
                }
                if let Some(n) = first
                    && self.types.same(self.tree.get(n).ty, ty)
                {
                    self.put(offset, ty.plain(), n);
                    return 0;
                }
                self.list(ty, offset, first)
            }
            _ => {
                let n = match first {
                    Some(n) => self.assigned(n, ty, "this initialiser"),
                    None => self.scalar_initializer(ty),
                };
                self.put(offset, ty.plain(), n);
                0
            }
        }
    }

    fn text_object(&mut self, ty: Type, offset: u32, text: NodeId) -> u32 {
        let info = *self.types.get(ty);
        let length = self.types.get(self.tree.get(text).ty).count;
        if info.count == UNKNOWN {
            let whole = self.tree.get(text).ty;
            self.put(offset, whole, text);
            return length;
        }
        if length > info.count + 1 {
            let message = format!(
                "this string has {} bytes, the array {}",
                length - 1,
                info.count
            );
            let at = self.tree.get(text).at;
            self.error(Rule::Initializer, at, message, "make the array longer");
        }
        self.replaces(ty, offset);
        self.put(offset, ty.plain(), text);
        info.count
    }

    /// The parts of an array, structure or union, in braces or, if `first` is given or there are
    /// none, without.
    fn list(&mut self, ty: Type, offset: u32, mut first: Option<NodeId>) -> u32 {
        let at = self.at();
        let braces = first.is_none() && self.accept(TokenKind::LBrace);
        if braces {
            self.replaces(ty, offset);
        }
        let (mut index, mut most) = (0u32, 0u32);
        let mut begun = false;
        loop {
            if self.panic || self.report.full() {
                return most;
            }
            if first.is_none() && matches!(self.peek(), TokenKind::RBrace | TokenKind::End) {
                break;
            }
            if first.is_none() && self.designator_at(0) {
                if !braces {
                    return most; // it belongs to what is around this
                }
                match self.designated(ty, offset) {
                    Some(next) => index = next,
                    None => return most,
                }
            } else {
                let Some(part) = self.part(ty, index) else {
                    if !braces {
                        return most;
                    }
                    let at = first.map_or(self.at(), |n| self.tree.get(n).at);
                    self.fail(
                        Rule::Initializer,
                        at,
                        1,
                        format!(
                            "there are more values than `{}` has parts",
                            self.spell(ty.plain())
                        ),
                        "".into(),
                    );
                    return most;
                };
                self.part_object(part, offset, first.take());
                index += 1;
            }
            begun = true;
            most = most.max(index);
            if !braces && self.part(ty, index).is_none() {
                return most;
            }
            // Without braces the comma before what belongs to others is theirs.
            if self.peek() != TokenKind::Comma {
                break;
            }
            if !braces && (self.peek_at(1) == TokenKind::RBrace || self.designator_at(1)) {
                return most;
            }
            self.advance();
        }
        if braces {
            self.expect(TokenKind::RBrace, "`}`");
        } else if !begun {
            self.error(Rule::Initializer, at, "a value is missing".into(), "");
        }
        most
    }

    /// The part that values without designators come to: of a union only the first.
    pub(super) fn part(&self, ty: Type, index: u32) -> Option<Part> {
        let union = self.types.kind(ty) == TypeKind::Union;
        self.part_of(ty, index).filter(|_| !union || index == 0)
    }

    /// Type and offset of a part.
    pub(super) fn part_of(&self, ty: Type, index: u32) -> Option<Part> {
        let info = self.types.get(ty);
        match info.kind {
            TypeKind::Array if info.count == UNKNOWN || index < info.count => {
                let size = self.types.size(info.of);
                let offset = size.checked_mul(index).filter(|offset| *offset < 1 << 30)?;
                Some(Part {
                    ty: info.of,
                    offset,
                    bits: Bits::NONE,
                })
            }
            TypeKind::Struct | TypeKind::Union => {
                let member = self.types.members(ty).get(index as usize)?;
                Some(Part {
                    ty: member.ty,
                    offset: member.offset,
                    bits: member.bits,
                })
            }
            _ => None,
        }
    }

    /// `(type){ … }`: an object of the enclosing block.
    pub(crate) fn compound_literal(&mut self, ty: Type, at: u32) -> NodeId {
        if self.depth == 1 || self.functions == 0 {
            self.fail(
                Rule::Unsupported,
                at,
                1,
                "E-code has compound literals in functions only".into(),
                "declare an object".into(),
            );
            return self.error_node(at);
        }
        // It may stand inside another initialiser, so that there may be values already.
        let before = self.values.len();
        let ty = if self.types.is_scalar(ty) {
            let n = self.scalar_initializer(ty);
            self.put(0, ty.plain(), n);
            ty
        } else {
            self.initializer(ty)
        };
        let (first, count) = self.keep_values(before);
        if ty == ERROR || self.panic || !self.types.is_complete(ty) {
            return self.error_node(at);
        }
        let local = self.local_in_memory(ty, at);
        let literal = Expression::Literal {
            local,
            first,
            count,
        };
        let n = self.leaf(literal, ty, at);
        let node = self.tree.get_mut(n);
        (node.effects, node.weight) = (true, 100);
        n
    }

    /// Moves the values from the index on to the tree: where they begin there, and how many they
    /// are.
    pub(crate) fn keep_values(&mut self, from: usize) -> (u32, u32) {
        let first = self.tree.initializers.len() as u32;
        self.tree.initializers.extend(self.values.drain(from..));
        (first, self.tree.initializers.len() as u32 - first)
    }
}

/// Adds bytes to disjoint ranges (begin and end), which stay disjoint.
fn add_range(ranges: &mut BTreeMap<u32, u32>, mut start: u32, mut end: u32) {
    while let Some((&from, &to)) = ranges.range(..=end).next_back() {
        if to < start {
            break;
        }
        ranges.remove(&from);
        (start, end) = (start.min(from), end.max(to));
    }
    ranges.insert(start, end);
}
