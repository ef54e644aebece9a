//! Function definitions: parameters, body, labels.

use alloc::format;

use super::declarator::Declarator;
use super::specifier::Specifiers;
use super::{Meaning, Parser};
use crate::diagnostics::Rule;
use crate::names::Name;
use crate::token::TokenKind;
use crate::tree::{Function, Local};
use crate::types::*;
use postern_verifier::relocation::Section;

impl Parser<'_> {
    pub(crate) fn function_definition(
        &mut self,
        specifiers: &Specifiers,
        declarator: Declarator,
        name: Name,
    ) {
        let at = declarator.at;
        let names = core::mem::take(&mut self.params);
        let mut ty = declarator.ty;
        let info = *self.types.get(ty);
        let variadic = info.open && info.count > 0;
        if info.open && !variadic {
            // `f() { … }` has no parameters.
            ty = self.types.function(info.of, &[], true);
        }
        let declared = self.declare_global(specifiers, Declarator { ty, ..declarator }, name);
        let Some(global) = declared else {
            self.panic = true;
            return;
        };
        if self.unit.globals[global as usize].section.is_some() {
            let message = format!("`{}` is defined already", self.spelling(name));
            self.error(Rule::Redeclared, at, message, "");
        }
        self.functions += 1;
        (self.function, self.variadic, self.allocates) = (name, variadic, false);
        self.sizes.clear();
        self.variables.clear();
        self.labels.clear();
        self.switches.clear();
        self.loops = 0;
        self.cases.clear();
        self.frame = 0;
        self.mark_addresses();
        let scope = self.open_scope();
        let result = self.types.get(ty).of;
        self.result = result;
        self.bind_parameters(ty, &names, at);
        let parameters = self.tree.locals.len() as u32;
        let around = self.tree.open();
        self.block();
        let body = self.tree.close(around);
        self.close_scope(scope);
        self.check_labels();
        self.unit.globals[global as usize].section = Some(Section::Text);
        let main = self.names.spelling(self.source, name) == b"main";
        self.defined = Some(Function {
            global,
            at,
            result,
            parameters,
            labels: self.labels.len() as u32,
            body,
            variadic,
            dynamic: self.allocates || !self.sizes.is_empty(),
            allocates: self.allocates,
            returns_zero: main && self.types.kind(result) != TypeKind::Void,
        });
    }

    fn bind_parameters(&mut self, ty: Type, names: &[(Name, u32)], at: u32) {
        if self.result != ERROR
            && self.types.kind(self.result) != TypeKind::Void
            && !self.types.is_complete(self.result)
        {
            self.error(
                Rule::Incomplete,
                at,
                "the result's type is not complete".into(),
                "",
            );
        }
        for index in 0..self.types.params(ty).len() {
            let param = self.types.params(ty)[index];
            let (name, at) = names.get(index).copied().unwrap_or_default();
            // One without a name comes, too; nobody asks for it.
            if name != Name(0)
                && self
                    .lookup(name)
                    .is_some_and(|symbol| symbol.depth == self.depth)
            {
                self.redeclared(name, at);
                continue;
            }
            if param == ERROR {
                self.bind(name, Meaning::Constant(0), ERROR, at);
                continue;
            }
            let structure = self.types.is_struct(param);
            let memory = !structure && self.lives_in_memory(name, param);
            if memory {
                self.count_frame(param, at);
            }
            let local = self.tree.parameter(Local {
                ty: param,
                at,
                memory,
                align: 0,
            });
            let meaning = match (structure, memory) {
                (true, _) => Meaning::Indirect(local),
                (_, true) => Meaning::Memory(local),
                _ => Meaning::Register(local),
            };
            if structure {
                self.check_alignment(self.types.get(param).align, at);
            }
            if name != Name(0) {
                self.bind(name, meaning, param, at);
            }
        }
    }

    /// Whether a scalar of this name lives in memory, since others may want to find it there.
    pub(crate) fn lives_in_memory(&self, name: Name, ty: Type) -> bool {
        self.names.get(name).address_taken == self.functions || ty.is_volatile()
    }

    /// Looks through the function's tokens for `&name`, and marks those names: their variables live
    /// in memory. Marking too many costs speed only.
    fn mark_addresses(&mut self) {
        let mut braces = 0;
        let mut index = self.pos;
        loop {
            let token = self.tokens.list[index];
            match token.kind {
                TokenKind::LBrace => braces += 1,
                TokenKind::RBrace => {
                    braces -= 1;
                    if braces == 0 {
                        return;
                    }
                }
                TokenKind::End => return,
                TokenKind::Amp if self.is_address_operator(index) => {
                    let mut next = index + 1;
                    while self.tokens.list[next].kind == TokenKind::LParen {
                        next += 1;
                    }
                    let name = self.tokens.list[next];
                    let after = self
                        .tokens
                        .list
                        .get(next + 1)
                        .map_or(TokenKind::End, |token| token.kind);
                    if name.kind == TokenKind::Name
                        && !matches!(
                            after,
                            TokenKind::Arrow | TokenKind::LBracket | TokenKind::Dot
                        )
                    {
                        self.names.get_mut(Name(name.value)).address_taken = self.functions;
                    }
                }
                _ => {}
            }
            index += 1;
        }
    }

    /// Whether the `&` at a token is the unary operator, as far as the tokens before it tell.
    fn is_address_operator(&self, index: usize) -> bool {
        let before = |n: usize| index.checked_sub(n).map(|at| self.tokens.list[at]);
        let Some(last) = before(1) else { return true };
        match last.kind {
            TokenKind::Name
            | TokenKind::Number
            | TokenKind::Text
            | TokenKind::RBracket
            | TokenKind::PlusPlus
            | TokenKind::MinusMinus => false,
            // The end of a cast, perhaps.
            TokenKind::RParen => before(2).is_some_and(|token| match token.kind {
                TokenKind::Name => {
                    self.lookup(Name(token.value))
                        .is_none_or(|symbol| symbol.meaning == Meaning::Typedef)
                        && before(3).is_some_and(|token| token.kind == TokenKind::LParen)
                }
                TokenKind::Star => true,
                kind => kind >= TokenKind::Auto && kind <= TokenKind::Unsupported,
            }),
            _ => true,
        }
    }

    /// At the end of the body all labels must be there.
    fn check_labels(&mut self) {
        for index in 0..self.labels.len() {
            let label = self.labels[index];
            self.names.get_mut(label.name).label = 0;
            if !label.defined && self.wants(label.at) {
                let near = self
                    .labels
                    .iter()
                    .filter(|l| l.defined)
                    .map(|l| l.name)
                    .find(|other| {
                        let (a, b) = (
                            self.names.spelling(self.source, label.name),
                            self.names.spelling(self.source, *other),
                        );
                        crate::names::distance(a, b, 3) < 3
                    });
                let help = near.map_or(alloc::string::String::new(), |near| {
                    format!("is `{}` meant?", self.spelling(near))
                });
                let message = format!(
                    "there is no label `{}` in this function",
                    self.spelling(label.name)
                );
                self.error(Rule::Label, label.at, message, &help);
            }
        }
    }
}
