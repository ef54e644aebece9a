//! Declarations at file scope and in blocks.

use alloc::format;
use alloc::string::String;

use super::declarator::{Declarator, NO_VARIABLE, VARIABLE_HELP};
use super::specifier::Specifiers;
use super::{Meaning, Parser};
use crate::building::Global;
use crate::diagnostics::Rule;
use crate::limits;
use crate::names::Name;
use crate::token::TokenKind;
use crate::tree::{Arithmetic, Expression, Local, LocalId, NodeId, Statement};
use crate::types::*;

/// The largest alignment that frames keep.
const FRAME_ALIGNMENT: u32 = 16;

impl Parser<'_> {
    pub(crate) fn external_declaration(&mut self) {
        if self.accept(TokenKind::Semi) {
            return;
        }
        if self.peek() == TokenKind::StaticAssert {
            return self.static_assert();
        }
        if self.peek() == TokenKind::Asm {
            let message = "E-code has no `asm` outside of functions".into();
            return self.fail(
                Rule::Unsupported,
                self.at(),
                3,
                message,
                "write it in C".into(),
            );
        }
        let Some(specifiers) = self.declaration_start() else {
            return;
        };
        if !self.declarators(&specifiers) {
            return;
        }
        if self.peek() == TokenKind::LBrace && !self.panic {
            self.missing(TokenKind::Semi, "`;`");
        }
        self.expect(TokenKind::Semi, "`;`");
    }

    /// The specifiers, unless there is nothing behind them or something wrong.
    fn declaration_start(&mut self) -> Option<Specifiers> {
        let specifiers = self.specifiers();
        self.variable = None;
        (!self.panic && !self.accept(TokenKind::Semi)).then_some(specifiers)
    }

    /// The declarators behind specifiers, or at file scope a function definition; false if the
    /// declaration ends with them.
    fn declarators(&mut self, specifiers: &Specifiers) -> bool {
        loop {
            let declarator = self.declarator(specifiers.ty, true);
            let Some(name) = declarator.name else {
                return false;
            };
            if self.panic {
                return false;
            }
            if self.depth == 1 && self.types.kind(declarator.ty) == TypeKind::Function {
                if self.peek() == TokenKind::LBrace {
                    self.function_definition(specifiers, declarator, name);
                    return false;
                }
                if !matches!(self.peek(), TokenKind::Attribute | TokenKind::Asm)
                    && self.is_declaration()
                {
                    self.old_parameters();
                    return false;
                }
            }
            self.declare(specifiers, declarator, name);
            if self.panic || !self.accept(TokenKind::Comma) {
                return true;
            }
        }
    }

    /// Parameters as C had them before it was standardised.
    #[cold]
    pub(crate) fn old_parameters(&mut self) {
        let help = "write the types of the parameters inside the parentheses";
        let message = "E-code has no parameter declarations outside the parentheses";
        self.fail(Rule::Unsupported, self.at(), 1, message.into(), help.into());
    }

    #[cold]
    pub(crate) fn redeclared(&mut self, name: Name, at: u32) {
        let message = format!("`{}` is declared already", self.spelling(name));
        let other = self.lookup(name).filter(|_| self.wants(at));
        let line = other.map(|symbol| {
            1 + self.source[..symbol.at as usize]
                .iter()
                .filter(|b| **b == b'\n')
                .count()
        });
        let help = line.map_or(String::new(), |line| {
            format!("the other declaration is in line {line}")
        });
        self.error(Rule::Redeclared, at, message, &help);
    }

    /// A declaration inside a function, with its `;`.
    pub(crate) fn local_declaration(&mut self) {
        if self.peek() == TokenKind::StaticAssert {
            return self.static_assert();
        }
        let Some(specifiers) = self.declaration_start() else {
            return;
        };
        if !self.declarators(&specifiers) {
            return;
        }
        if self.peek() == TokenKind::LBrace && !self.panic {
            let help = "define it outside of this function".into();
            self.fail(
                Rule::Unsupported,
                self.at(),
                1,
                "E-code has no functions inside functions".into(),
                help,
            );
        }
        self.expect(TokenKind::Semi, "`;`");
    }

    /// One declarator of a declaration, with its initialiser.
    fn declare(&mut self, specifiers: &Specifiers, declarator: Declarator, name: Name) {
        let Declarator { ty, at, .. } = declarator;
        let length = self.variable.take();
        let array = self.types.kind(ty) == TypeKind::Array;
        let block =
            self.depth > 1 && !specifiers.external && !specifiers.is_static && !specifiers.typedef;
        if length.is_some() && !(array && block) {
            self.error(Rule::Unsupported, at, NO_VARIABLE.into(), VARIABLE_HELP);
            return;
        }
        let align = specifiers.attributes.align.max(declarator.attributes.align);
        let here = self
            .lookup(name)
            .filter(|symbol| symbol.depth == self.depth)
            .copied();
        if specifiers.typedef {
            match here {
                Some(symbol)
                    if symbol.meaning != Meaning::Typedef || !self.types.same(symbol.ty, ty) =>
                {
                    self.redeclared(name, at)
                }
                Some(_) => {}
                None => {
                    self.bind(name, Meaning::Typedef, ty, at);
                    if let Some(symbol) = self.symbols.last_mut() {
                        symbol.align = align;
                    }
                }
            }
            return;
        }
        let function = self.types.kind(ty) == TypeKind::Function;
        if self.depth == 1 || specifiers.external || function {
            self.declare_global(specifiers, declarator, name);
            return;
        }
        if here.is_some() {
            self.redeclared(name, at);
            return;
        }
        if specifiers.is_static {
            self.static_local(declarator, name, align);
            return;
        }
        self.check_alignment(align, declarator.at);
        let first = self.tree.locals.len();
        match length {
            Some(length) => self.variable_array(declarator, name, length),
            None => self.automatic(declarator, name),
        }
        if let Some(local) = self.tree.locals.get_mut(first) {
            local.align = align;
        }
    }

    /// An array whose length is known when its declaration is reached.
    fn variable_array(&mut self, declarator: Declarator, name: Name, length: NodeId) {
        let Declarator { ty, at, .. } = declarator;
        let of = self.types.get(ty).of;
        let to = self.types.pointer(of);
        let local = |ty| Local {
            ty,
            at,
            memory: false,
            align: 0,
        };
        let (size, pointer) = (
            self.tree.declare(local(ULONG)),
            self.tree.declare(local(to)),
        );
        let length = self.convert_node(length, ULONG);
        let element = self.integer(ULONG, self.types.size(of).into(), at);
        let bytes = self.arithmetic(Arithmetic::Mul, ULONG, (length, element), at);
        let target = self.leaf(Expression::Register(size), ULONG, at);
        let assign = Expression::Assign {
            to: target,
            value: bytes,
        };
        let assign = self.binary(assign, ULONG, (target, bytes), at);
        self.tree.add(Statement::Expression(assign), at);
        let before = self.variables.last().map(|(pointer, _)| *pointer);
        let allocate = Statement::Allocate {
            pointer,
            size,
            before,
        };
        self.tree.add(allocate, 0);
        self.variables.push((pointer, self.depth));
        self.sizes.push((pointer, size));
        self.bind(name, Meaning::Variable(pointer), ty, at);
        if self.peek() == TokenKind::Assign {
            let message = "an array of variable length has no initialiser".into();
            self.error(Rule::Initializer, self.at(), message, "");
            self.panic = true;
        }
    }

    fn complete(&mut self, ty: Type, at: u32) -> bool {
        let complete = ty == ERROR || self.types.is_complete(ty);
        if !complete {
            let message = format!(
                "an object cannot have the type `{}`",
                self.spell(ty.plain())
            );
            let array = self.types.kind(ty) == TypeKind::Array;
            self.error(
                Rule::Incomplete,
                at,
                message,
                if array {
                    "give its length or an initialiser"
                } else {
                    ""
                },
            );
        }
        complete && ty != ERROR
    }

    /// A variable of a block.
    fn automatic(&mut self, declarator: Declarator, name: Name) {
        let Declarator { mut ty, at, .. } = declarator;
        let scalar = self.types.is_scalar(ty);
        let in_register = scalar && !self.lives_in_memory(name, ty);
        if self.peek() == TokenKind::Assign && !scalar {
            // An array's length may come from its initialiser.
            self.advance();
            let unknown = self.types.kind(ty) == TypeKind::Array && !self.types.is_complete(ty);
            if !unknown && !self.complete(ty, at) {
                self.panic = true;
                return;
            }
            let local = self.tree.declare(Local {
                ty,
                at,
                memory: true,
                align: 0,
            });
            self.bind(name, Meaning::Memory(local), ty, at);
            let first = self.values.len();
            ty = self.initializer(ty);
            let symbol = self.names.get(name).symbol as usize;
            self.symbols[symbol].ty = ty;
            self.tree.locals[local as usize].ty = ty;
            self.count_frame(ty, at);
            let (first, count) = self.keep_values(first);
            let initialize = Statement::Initialize {
                local,
                first,
                count,
            };
            self.tree.add(initialize, 0);
            return;
        }
        if !self.complete(ty, at) {
            self.bind(name, Meaning::Constant(0), ERROR, at);
            if self.accept(TokenKind::Assign) {
                self.assignment_expression();
            }
            return;
        }
        let node = if in_register {
            let local = self.tree.declare(Local {
                ty,
                at,
                memory: false,
                align: 0,
            });
            self.bind(name, Meaning::Register(local), ty, at);
            self.leaf(Expression::Register(local), ty.plain(), at)
        } else {
            let local = self.local_in_memory(ty, at);
            self.bind(name, Meaning::Memory(local), ty, at);
            let ty = ty.plain().with(ty.qualifiers() & VOLATILE);
            self.leaf(Expression::Memory(local), ty, at)
        };
        if !self.accept(TokenKind::Assign) {
            return;
        }
        let value = self.scalar_initializer(ty);
        let assign = Expression::Assign { to: node, value };
        let assign = self.binary(assign, ty.plain(), (node, value), at);
        self.tree.add(Statement::Expression(assign), 0);
    }

    /// A new local in memory, declared here.
    pub(crate) fn local_in_memory(&mut self, ty: Type, at: u32) -> LocalId {
        self.count_frame(ty, at);
        self.tree.declare(Local {
            ty,
            at,
            memory: true,
            align: 0,
        })
    }

    /// Counts a local in memory; an error if they get too large.
    pub(crate) fn count_frame(&mut self, ty: Type, at: u32) {
        self.check_alignment(self.types.get(ty).align, at);
        let size = u64::from(self.types.size(ty));
        if self.frame + size > u64::from(self.limits.frame) {
            self.limit(at, limits::FRAME, "frame");
            return;
        }
        self.frame += size;
    }

    /// Frames begin at multiples of 16 bytes, and so do not what asks for more in them.
    pub(crate) fn check_alignment(&mut self, align: u32, at: u32) {
        if align > FRAME_ALIGNMENT {
            let message = "E-code aligns variables of functions to at most 16 bytes".into();
            self.error(Rule::Unsupported, at, message, "make it static");
        }
    }

    fn static_local(&mut self, declarator: Declarator, name: Name, align: u32) {
        let Declarator { mut ty, at, .. } = declarator;
        let global = self.unit.add(Global {
            name,
            ty,
            at,
            function: false,
            is_static: true,
            in_block: true,
            align,
            ..Global::default()
        });
        self.bind(name, Meaning::Global(global), ty, at);
        if self.accept(TokenKind::Assign) {
            let first = self.values.len();
            ty = self.initializer(ty);
            self.place_initialized(global, ty, first, at);
        } else if self.complete(ty, at) {
            self.place_zeroed(global, ty, at);
        }
        let symbol = self.names.get(name).symbol as usize;
        self.symbols[symbol].ty = ty;
        self.unit.globals[global as usize].ty = ty;
    }

    /// An object or function of file scope; its number.
    pub(crate) fn declare_global(
        &mut self,
        specifiers: &Specifiers,
        declarator: Declarator,
        name: Name,
    ) -> Option<u32> {
        let Declarator { mut ty, at, .. } = declarator;
        let function = self.types.kind(ty) == TypeKind::Function;
        if ty == ERROR {
            self.skip_initializer();
            if self.lookup(name).is_none() {
                self.bind(name, Meaning::Constant(0), ERROR, at);
            }
            return None;
        }
        let global = match self.names.get(name).global.checked_sub(1) {
            Some(global) => {
                let old = self.unit.globals[global as usize];
                let clash = !self.types.same(old.ty, ty) || old.function != function;
                if clash || old.ty.qualifiers() != ty.qualifiers() {
                    self.redeclared(name, at);
                    self.skip_initializer();
                    return None;
                }
                // The more complete of both types is the one that counts.
                let old_info = self.types.get(old.ty);
                let keep = if function {
                    !(old_info.open && old_info.count == 0)
                } else {
                    self.types.is_complete(old.ty)
                };
                if keep && !(function && self.peek() == TokenKind::LBrace) {
                    ty = old.ty;
                }
                global
            }
            None => {
                if self
                    .lookup(name)
                    .is_some_and(|symbol| symbol.depth == self.depth && self.depth == 1)
                {
                    self.redeclared(name, at);
                    self.skip_initializer();
                    return None;
                }
                let is_static = specifiers.is_static || specifiers.inline && !specifiers.external;
                let global = self.unit.add(Global {
                    name,
                    ty,
                    at,
                    function,
                    is_static,
                    ..Global::default()
                });
                self.names.get_mut(name).global = global + 1;
                global
            }
        };
        let entry = &mut self.unit.globals[global as usize];
        entry.ty = ty;
        let asked = specifiers.attributes.align.max(declarator.attributes.align);
        entry.align = entry.align.max(asked);
        entry.label = declarator.label.unwrap_or(entry.label);
        match self.lookup(name).copied() {
            Some(symbol) if symbol.meaning == Meaning::Global(global) => {
                let index = self.names.get(name).symbol as usize;
                self.symbols[index].ty = ty;
            }
            Some(symbol) if symbol.depth == self.depth && self.depth > 1 => {
                self.redeclared(name, at)
            }
            _ => self.bind(name, Meaning::Global(global), ty, at),
        }
        if function {
            if self.peek() == TokenKind::Assign {
                self.error(
                    Rule::Initializer,
                    self.at(),
                    "a function has no initialiser".into(),
                    "",
                );
                self.panic = true;
            }
            return Some(global);
        }
        if self.accept(TokenKind::Assign) {
            if self.unit.globals[global as usize].section.is_some() {
                let message = format!("`{}` has a value already", self.spelling(name));
                self.error(Rule::Redeclared, at, message, "initialise it once");
                self.panic = true;
                return None;
            }
            let first = self.values.len();
            ty = self.initializer(ty);
            let symbol = self.names.get(name).symbol as usize;
            self.symbols[symbol].ty = ty;
            self.unit.globals[global as usize].ty = ty;
            self.place_initialized(global, ty, first, at);
        } else if !specifiers.external {
            self.unit.globals[global as usize].tentative = true;
        }
        Some(global)
    }

    fn skip_initializer(&mut self) {
        if self.peek() == TokenKind::Assign {
            self.panic = true;
        }
    }

    /// `_Static_assert(constant, "why");`
    pub(crate) fn static_assert(&mut self) {
        let at = self.advance().at;
        self.expect(TokenKind::LParen, "`(`");
        let value = self.constant_expression();
        if self.accept(TokenKind::Comma) {
            self.expect(TokenKind::Text, "a string");
            while self.accept(TokenKind::Text) {}
        }
        self.expect(TokenKind::RParen, "`)`");
        self.expect(TokenKind::Semi, "`;`");
        if value == Some(0) {
            self.error(
                Rule::Assertion,
                at,
                "this assertion does not hold".into(),
                "",
            );
        }
    }

    /// Places the objects that were only declared with `int x;`, when all of the source has been
    /// read.
    pub(crate) fn finish_unit(&mut self) {
        for index in 0..self.unit.globals.len() {
            let global = self.unit.globals[index];
            if !global.tentative || global.section.is_some() || global.function {
                continue;
            }
            let mut ty = global.ty;
            if self.types.kind(ty) == TypeKind::Array && self.types.get(ty).count == UNKNOWN {
                let of = self.types.get(ty).of;
                ty = self.types.array(of, 1).unwrap_or(ERROR);
                self.unit.globals[index].ty = ty;
            }
            if self.complete(ty, global.at) {
                self.place_zeroed(index as u32, ty, global.at);
            }
        }
        for index in 0..self.unit.globals.len() {
            let global = self.unit.globals[index];
            if global.is_static && global.used && global.section.is_none() && !self.report.any() {
                let message = format!(
                    "`{}` is static, but nothing defines it",
                    self.spelling(global.name)
                );
                self.error(
                    Rule::UnknownName,
                    global.at,
                    message,
                    "define it, or declare it without static",
                );
            }
        }
    }
}
