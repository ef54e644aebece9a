//! Names that C programs use without declaring them: `__func__`, and gcc's functions `__builtin_…`,
//! of which those are here that are an instruction or a few, or that the parser can answer itself.
//! Others that a C library has under the rest of the name are calls of that.

use alloc::format;
use alloc::vec::Vec;

use super::Parser;
use super::declarator::Declarator;
use super::specifier::Specifiers;
use crate::diagnostics::Rule;
use crate::names::Name;
use crate::token::TokenKind;
use crate::tree::{Arithmetic, Builtin, Expression, Node, NodeId};
use crate::types::*;

/// Functions of the C library that have a builtin name: result and parameters, `p` pointer to void,
/// `c` to char, `k` to const void, `s` to const char, `l` size.
const LIBRARY: &[(&str, &str)] = &[
    ("abort", "v"),
    ("exit", "vi"),
    ("memcpy", "ppkl"),
    ("memmove", "ppkl"),
    ("memset", "ppil"),
    ("memcmp", "ikkl"),
    ("strlen", "ls"),
    ("strcmp", "iss"),
    ("strncmp", "issl"),
    ("strcpy", "ccs"),
    ("strncpy", "ccsl"),
    ("strcat", "ccs"),
    ("strchr", "csi"),
    ("strrchr", "csi"),
    ("memchr", "pkil"),
    ("malloc", "pl"),
    ("calloc", "pll"),
    ("realloc", "ppl"),
    ("free", "vp"),
    ("puts", "is"),
    ("putchar", "ii"),
    ("printf", "is."),
    ("sprintf", "ics."),
    ("snprintf", "icls."),
    ("fabs", "dd"),
    ("fabsf", "ff"),
    ("sqrt", "dd"),
    ("sqrtf", "ff"),
    ("floor", "dd"),
    ("ceil", "dd"),
    ("copysign", "ddd"),
    ("copysignf", "fff"),
];

/// Functions of integers: `l` and `ll` may stand behind the name.
const NUMBERS: &[(&str, Builtin)] = &[
    ("popcount", Builtin::Popcount),
    ("parity", Builtin::Parity),
    ("clz", Builtin::LeadingZeros),
    ("ctz", Builtin::TrailingZeros),
    ("ffs", Builtin::FirstSet),
    ("clrsb", Builtin::SignBits),
    ("abs", Builtin::Absolute),
];

impl Parser<'_> {
    /// What a name means that nothing declares, if it is one of these.
    #[cold]
    pub(crate) fn builtin_name(&mut self, name: Name, at: u32) -> Option<NodeId> {
        let text = self.spelling(name);
        if matches!(&*text, "__func__" | "__FUNCTION__" | "__PRETTY_FUNCTION__") && self.depth > 1 {
            let mut bytes = Vec::from(self.spelling(self.function).as_bytes());
            bytes.push(0);
            let n = self.bytes_node(&bytes, CHAR, at);
            return Some(n);
        }
        let called = self.peek() == TokenKind::LParen;
        let name = match text.strip_prefix("__builtin_") {
            Some(rest) => rest,
            None if text == "alloca" && called => "alloca",
            None => return None,
        };
        if called && let Some(n) = self.builtin_of_types(name, at) {
            return Some(n);
        }
        if let Some((known, letters)) = LIBRARY.iter().find(|(known, _)| *known == name) {
            return Some(self.library_function(known, letters, at));
        }
        if !called {
            return None;
        }
        let before = self.pos;
        self.advance();
        let mut arguments = Vec::new();
        while self.peek() != TokenKind::RParen && !self.panic {
            let n = self.assignment_expression();
            arguments.push(self.decay(n));
            if !self.accept(TokenKind::Comma) {
                break;
            }
        }
        self.expect(TokenKind::RParen, "`)`");
        if arguments.iter().any(|n| self.tree.get(*n).ty == ERROR) || self.panic {
            return Some(self.error_node(at));
        }
        if let Some(n) = self.builtin_call(name, &arguments, at) {
            return Some(n);
        }
        self.pos = before;
        let message = format!("E-code does not have `{text}` with these arguments");
        let length = text.len() as u32;
        self.fail(Rule::Unsupported, at, length, message, "".into());
        Some(self.error_node(at))
    }

    /// The type of lists of arguments, as the System V ABI has it.
    pub(crate) fn va_list(&mut self) -> Type {
        if self.argument_list != VOID {
            return self.argument_list;
        }
        let pointer = self.types.pointer(VOID);
        let tag = self.types.structure(TypeKind::Struct, Name(0));
        // Its members have names that no program can write.
        let member = |ty| Member {
            name: Name(1),
            ty,
            offset: 0,
            bits: Bits::NONE,
            align: 0,
            packed: false,
            anonymous: false,
        };
        let mut members: Vec<Member> = [UINT, UINT, pointer, pointer]
            .into_iter()
            .map(member)
            .collect();
        self.types.complete(tag, &mut members, Layout::default());
        self.argument_list = self.types.array(tag, 1).unwrap_or(ERROR);
        self.argument_list
    }

    /// Whether a node is a pointer to a list of arguments; says so if not.
    fn is_argument_list(&mut self, n: NodeId) -> bool {
        let list = self.va_list();
        let (tag, ty) = (self.types.get(list).of, self.tree.get(n).ty);
        let good = self.types.is_pointer(ty) && self.types.same(self.types.get(ty).of.plain(), tag);
        if !good && ty != ERROR {
            let at = self.tree.get(n).at;
            self.error(Rule::Mismatch, at, "this is no va_list".into(), "");
        }
        good
    }

    /// `va_arg`
    pub(super) fn next_argument(&mut self, list: NodeId, ty: Type, at: u32) -> NodeId {
        if !self.is_argument_list(list) || ty == ERROR {
            return self.error_node(at);
        }
        if !self.types.is_complete(ty) || self.types.kind(ty) == TypeKind::Array {
            let message = format!(
                "an argument cannot have the type `{}`",
                self.spell(ty.plain())
            );
            self.error(Rule::Incomplete, at, message, "");
            return self.error_node(at);
        }
        let builtin = if self.types.is_float(ty) {
            Builtin::NextFloat
        } else {
            Builtin::NextInteger
        };
        let mut to = self.types.pointer(ty);
        // A structure travels as its address.
        let structure = self.types.is_struct(ty);
        if structure {
            to = self.types.pointer(to);
        }
        let n = self.builtin(builtin, to, &[list], at);
        let n = self.deref_node(n, at);
        if structure { self.deref_node(n, at) } else { n }
    }

    /// A function of the C library by its own name, declared here if it is not yet.
    fn library_function(&mut self, name: &str, letters: &str, at: u32) -> NodeId {
        let name = self.names.make(self.source, name.as_bytes());
        if self.names.get(name).global == 0 {
            let (mut types, mut open) = (Vec::new(), false);
            for letter in letters.chars() {
                let ty = match letter {
                    'v' => VOID,
                    'i' => INT,
                    'l' => ULONG,
                    'd' => DOUBLE,
                    'f' => FLOAT,
                    'p' => self.types.pointer(VOID),
                    'k' => self.types.pointer(VOID.with(CONST)),
                    'c' => self.types.pointer(CHAR),
                    's' => self.types.pointer(CHAR.with(CONST)),
                    _ => {
                        open = true;
                        continue;
                    }
                };
                types.push(ty);
            }
            let ty = self.types.function(types[0], &types[1..], open);
            let declarator = Declarator {
                name: Some(name),
                at,
                ty,
                ..Declarator::default()
            };
            let (depth, panic) = (self.depth, self.panic);
            self.depth = 1;
            let specifiers = Specifiers::external(ty);
            if self.lookup(name).is_none() {
                self.declare_global(&specifiers, declarator, name);
            }
            (self.depth, self.panic) = (depth, panic);
        }
        match self.names.get(name).global.checked_sub(1) {
            Some(global) => {
                let ty = self.unit.globals[global as usize].ty;
                self.unit.globals[global as usize].used |= self.unevaluated == 0;
                self.leaf(Expression::Global(global), ty, at)
            }
            None => self.error_node(at),
        }
    }

    fn builtin(&mut self, builtin: Builtin, ty: Type, arguments: &[NodeId], at: u32) -> NodeId {
        let first = self.tree.args.len() as u32;
        let (mut depth, mut weight) = (0, 8u16);
        for n in arguments {
            depth = depth.max(self.tree.get(*n).depth);
            weight = weight.saturating_add(self.tree.get(*n).weight);
        }
        let pure = arguments.iter().all(|n| !self.tree.get(*n).effects) && builtin.is_pure();
        self.tree.args.extend_from_slice(arguments);
        self.tree.push(Node {
            expression: Expression::Builtin {
                builtin,
                first,
                count: arguments.len() as u32,
            },
            ty,
            at,
            weight,
            depth: depth.saturating_add(1),
            effects: !pure,
        })
    }

    /// The node of a call, unless nothing here has this name and these arguments.
    fn builtin_call(&mut self, name: &str, arguments: &[NodeId], at: u32) -> Option<NodeId> {
        let ty = |parser: &Self, index: usize| {
            arguments
                .get(index)
                .map_or(VOID, |n| parser.tree.get(*n).ty.plain())
        };
        let count = arguments.len();
        Some(match (name, count) {
            ("expect", 2) | ("expect_with_probability", 3) | ("assume_aligned", 2 | 3) => {
                let value = match name {
                    "assume_aligned" => arguments[0],
                    _ => self.convert_node(arguments[0], LONG),
                };
                self.after(&arguments[1..], value, at)
            }
            ("unreachable" | "trap", 0) => self.builtin(Builtin::Trap, VOID, &[], at),
            ("prefetch", 1..=3) => {
                let nothing = self.integer(INT, 0, at);
                let nothing = self.unary(Expression::Cast(nothing), VOID, nothing, at);
                self.after(arguments, nothing, at)
            }
            ("object_size", 2) => self.integer(ULONG, u64::MAX, at),
            ("inf" | "huge_val", 0) => self.float(DOUBLE, f64::INFINITY.to_bits(), at),
            ("inff" | "huge_valf", 0) => self.float(FLOAT, f64::INFINITY.to_bits(), at),
            ("nan", 1) => self.float(DOUBLE, f64::NAN.to_bits(), at),
            ("nanf", 1) => self.float(FLOAT, f64::NAN.to_bits(), at),
            ("bswap16", 1) => self.swapped(USHORT, arguments[0], at),
            ("bswap32", 1) => self.swapped(UINT, arguments[0], at),
            ("bswap64", 1) => self.swapped(ULONG, arguments[0], at),
            ("alloca", 1) => {
                let size = self.convert_node(arguments[0], ULONG);
                self.allocates = true;
                let pointer = self.types.pointer(VOID);
                self.builtin(Builtin::Allocate, pointer, &[size], at)
            }
            ("va_start", 1 | 2) => {
                if !self.is_argument_list(arguments[0]) || !self.variadic {
                    let message = "va_start stands in functions with `...` only".into();
                    self.error(Rule::Misplaced, at, message, "");
                }
                self.builtin(Builtin::StartArguments, VOID, &arguments[..1], at)
            }
            ("va_end", 1) => {
                self.is_argument_list(arguments[0]);
                let nothing = self.integer(INT, 0, at);
                let nothing = self.unary(Expression::Cast(nothing), VOID, nothing, at);
                self.after(arguments, nothing, at)
            }
            ("va_copy", 2) => {
                if !self.is_argument_list(arguments[0]) || !self.is_argument_list(arguments[1]) {
                    return Some(self.error_node(at));
                }
                let (to, value) = (
                    self.deref_node(arguments[0], at),
                    self.deref_node(arguments[1], at),
                );
                let ty = self.tree.get(to).ty.plain();
                let assign = self.binary(Expression::Assign { to, value }, ty, (to, value), at);
                self.unary(Expression::Cast(assign), VOID, assign, at)
            }
            _ if name.contains("_overflow") => return self.overflow(name, arguments, at),
            _ => {
                let (name, wide) = match name.strip_prefix("ll").or(name.strip_prefix('l')) {
                    Some("abs") => ("abs", true),
                    _ => match name.strip_suffix("ll").or(name.strip_suffix('l')) {
                        Some(rest) => (rest, true),
                        None => (name, false),
                    },
                };
                let (_, builtin) = NUMBERS.iter().find(|(known, _)| *known == name)?;
                if count != 1 || !self.types.is_arithmetic(ty(self, 0)) {
                    return None;
                }
                let signed = matches!(
                    builtin,
                    Builtin::Absolute | Builtin::SignBits | Builtin::FirstSet
                );
                let operand = match (wide, signed) {
                    (true, true) => LONG,
                    (true, false) => ULONG,
                    (false, true) => INT,
                    (false, false) => UINT,
                };
                let value = self.convert_node(arguments[0], operand);
                let result = if *builtin == Builtin::Absolute {
                    operand
                } else {
                    INT
                };
                if let Some(constant) = self.constant_of(value) {
                    let bits = if wide { 64 } else { 32 };
                    let known = builtin.of_constant(constant, bits);
                    if let Some(known) = known {
                        return Some(self.integer(result, known, at));
                    }
                }
                self.builtin(*builtin, result, &[value], at)
            }
        })
    }

    /// `value`, after everything that the others do.
    fn after(&mut self, others: &[NodeId], value: NodeId, at: u32) -> NodeId {
        let mut n = value;
        for other in others.iter().rev().copied() {
            if self.tree.get(other).effects {
                let ty = self.tree.get(n).ty;
                n = self.binary(Expression::Comma(other, n), ty, (other, n), at);
            }
        }
        n
    }

    fn swapped(&mut self, ty: Type, n: NodeId, at: u32) -> NodeId {
        let n = self.convert_node(n, ty);
        match self.constant_of(n) {
            Some(value) => {
                let unused = 64 - 8 * self.types.size(ty);
                self.integer(ty, value.swap_bytes() >> unused, at)
            }
            None => self.builtin(Builtin::SwapBytes, ty, &[n], at),
        }
    }

    /// `add_overflow` and its kin: of any types, or of those that the name says.
    fn overflow(&mut self, name: &str, arguments: &[NodeId], at: u32) -> Option<NodeId> {
        let (name, tests) = match name.strip_suffix("_p") {
            Some(name) => (name, true),
            None => (name, false),
        };
        let name = name.strip_suffix("_overflow")?;
        let (operation, rest) = ["add", "sub", "mul"].iter().find_map(|operation| {
            let at = name.find(operation)?;
            Some((*operation, (&name[..at], &name[at + 3..])))
        })?;
        let kind = match operation {
            "add" => Arithmetic::Add,
            "sub" => Arithmetic::Sub,
            _ => Arithmetic::Mul,
        };
        let [a, b, to] = arguments else {
            return None;
        };
        let fixed = match rest {
            ("", "") => None,
            ("s", "") => Some(INT),
            ("u", "") => Some(UINT),
            ("s", "l" | "ll") => Some(LONG),
            ("u", "l" | "ll") => Some(ULONG),
            _ => return None,
        };
        let (mut a, mut b) = (*a, *b);
        if let Some(ty) = fixed {
            (a, b) = (self.convert_node(a, ty), self.convert_node(b, ty));
        }
        let integer = |parser: &Self, n| parser.types.is_integer(parser.tree.get(n).ty);
        let of = self.tree.get(*to).ty;
        let result = match (tests, self.types.is_pointer(of)) {
            (true, false) => of,
            (false, true) => self.types.get(of).of,
            _ => return None,
        };
        if !integer(self, a) || !integer(self, b) || !self.types.is_integer(result) {
            return None;
        }
        let builtin = if tests {
            Builtin::TestOverflow(kind)
        } else {
            Builtin::Overflow(kind)
        };
        Some(self.builtin(builtin, BOOL, &[a, b, *to], at))
    }

    /// The alignment that the declaration of an object asks for.
    pub(crate) fn least_alignment(&self, n: NodeId) -> Option<u32> {
        match self.tree.get(n).expression {
            Expression::Global(global) => {
                let global = &self.unit.globals[global as usize];
                (global.align > 0).then(|| global.align.max(self.types.get(global.ty).align))
            }
            Expression::Memory(local) => {
                let local = &self.tree.locals[local as usize];
                (local.align > 0).then(|| local.align.max(self.types.get(local.ty).align))
            }
            _ => None,
        }
    }

    /// The local that holds the size of an array of variable length, whose address the node is.
    pub(crate) fn variable_size(&self, pointer: NodeId) -> Option<u32> {
        let Expression::Register(local) = self.tree.get(pointer).expression else {
            return None;
        };
        let found = self
            .sizes
            .iter()
            .rev()
            .find(|(pointer, _)| *pointer == local);
        found.map(|(_, size)| *size)
    }

    /// `&&label`: a small number, which `goto *` finds among those of the function.
    pub(crate) fn label_address(&mut self, at: u32) -> NodeId {
        let name = self.token();
        let pointer = self.types.pointer(VOID);
        if !self.expect(TokenKind::Name, "a label") || self.depth <= 1 {
            return self.error_node(at);
        }
        let label = self.label(Name(name.value), name.at);
        if !self.tree.taken.contains(&label) {
            self.tree.taken.push(label);
        }
        self.leaf(Expression::Integer(u64::from(label) + 1), pointer, at)
    }

    /// `({ … })`
    pub(crate) fn statement_expression(&mut self, at: u32) -> NodeId {
        if self.depth <= 1 || self.functions == 0 {
            let message = "E-code has statements as expressions in functions only".into();
            self.fail(Rule::Unsupported, at, 1, message, "".into());
            return self.error_node(at);
        }
        let scope = self.open_scope();
        let around = self.tree.open();
        self.block();
        let (body, last) = self.tree.close_with_value(around);
        self.close_scope(scope);
        let value = last.map(|n| self.decay(n));
        let ty = value.map_or(VOID, |n| self.tree.get(n).ty.plain());
        let depth = value.map_or(0, |n| self.tree.get(n).depth);
        self.tree.push(Node {
            expression: Expression::Statements { body, value },
            ty,
            at,
            weight: 1000,
            depth: depth.saturating_add(8),
            effects: true,
        })
    }
}
