//! C's types, by the rules of LP64: `int` has 32 bits, `long` and pointers 64.
//!
//! Invariant: a [`Type`] is an index into a table that only grows, with two bits for `const` and
//! `volatile` on top; types with the same structure may have different indices, so [`Types::same`]
//! compares them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::names::Name;

/// A type with its qualifiers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Type(pub u32);

pub(crate) const CONST: u32 = 1 << 31;
pub(crate) const VOLATILE: u32 = 1 << 30;

pub(crate) const VOID: Type = Type(0);
pub(crate) const BOOL: Type = Type(1);
pub(crate) const CHAR: Type = Type(2);
pub(crate) const SCHAR: Type = Type(3);
pub(crate) const UCHAR: Type = Type(4);
pub(crate) const SHORT: Type = Type(5);
pub(crate) const USHORT: Type = Type(6);
pub(crate) const INT: Type = Type(7);
pub(crate) const UINT: Type = Type(8);
pub(crate) const LONG: Type = Type(9);
pub(crate) const ULONG: Type = Type(10);
pub(crate) const LLONG: Type = Type(11);
pub(crate) const ULLONG: Type = Type(12);
pub(crate) const FLOAT: Type = Type(13);
pub(crate) const DOUBLE: Type = Type(14);
/// The type of an expression that has an error: fits everywhere.
pub(crate) const ERROR: Type = Type(15);

/// Names and sizes of the basic types.
const BASIC: [(&str, TypeKind, u32); 16] = [
    ("void", TypeKind::Void, 1),
    ("_Bool", TypeKind::Bool, 1),
    ("char", TypeKind::Int, 1),
    ("signed char", TypeKind::Int, 1),
    ("unsigned char", TypeKind::Unsigned, 1),
    ("short", TypeKind::Int, 2),
    ("unsigned short", TypeKind::Unsigned, 2),
    ("int", TypeKind::Int, 4),
    ("unsigned int", TypeKind::Unsigned, 4),
    ("long", TypeKind::Int, 8),
    ("unsigned long", TypeKind::Unsigned, 8),
    ("long long", TypeKind::Int, 8),
    ("unsigned long long", TypeKind::Unsigned, 8),
    ("float", TypeKind::Float, 4),
    ("double", TypeKind::Float, 8),
    ("?", TypeKind::Error, 1),
];

impl Type {
    /// Without `const` and `volatile`.
    pub fn plain(self) -> Type {
        Type(self.0 & !(CONST | VOLATILE))
    }
    pub fn is_const(self) -> bool {
        self.0 & CONST != 0
    }
    pub fn is_volatile(self) -> bool {
        self.0 & VOLATILE != 0
    }
    /// With the qualifiers `bits`, too.
    pub fn with(self, bits: u32) -> Type {
        Type(self.0 | bits)
    }
    /// Its qualifiers.
    pub fn qualifiers(self) -> u32 {
        self.0 & (CONST | VOLATILE)
    }
}

/// What a type is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TypeKind {
    Void,
    Bool,
    Int,
    Unsigned,
    Float,
    Pointer,
    Array,
    Function,
    Struct,
    Union,
    Error,
}

/// Number of elements of an array of unknown length.
pub(crate) const UNKNOWN: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeInfo {
    pub kind: TypeKind,
    /// In bytes; of arrays and structures only if complete.
    pub size: u32,
    pub align: u32,
    /// What it points to, the element, or the result.
    pub of: Type,
    /// First parameter, or first member.
    pub first: u32,
    /// Number of elements, parameters or members.
    pub count: u32,
    /// Of a function: it has no prototype (if it has no parameters), or `...`.
    pub open: bool,
    /// Of a structure: its members are known.
    pub complete: bool,
    /// Tag of a structure, or name + 1 of what an enumeration was called.
    pub tag: Name,
    /// Number of types that it is made of, with repetition.
    weight: u16,
    pointer: Type,
}

/// A member of a structure or union.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub name: Name,
    pub ty: Type,
    pub offset: u32,
    /// Of a bit-field: which bits, counted from the offset.
    pub bits: Bits,
    /// What the declaration asks for beyond the type's alignment, or 0.
    pub align: u32,
    /// It begins at any byte, or bit.
    pub packed: bool,
    /// It has no name, and its members count as members of what it is in.
    pub anonymous: bool,
}

/// Bits of a bit-field: so many from this one on, or none, if it is no bit-field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Bits {
    pub first: u8,
    pub width: u8,
    /// It lies in its type's bytes at the offset, all of which belong to the structure.
    pub whole: bool,
    /// It is a bit-field, be it one without bits, which ends the unit before it.
    pub is_field: bool,
}

impl Bits {
    pub const NONE: Bits = Bits {
        first: 0,
        width: 0,
        whole: false,
        is_field: false,
    };
    pub fn any(self) -> bool {
        self.is_field
    }
}

/// How a structure asks to be laid out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Layout {
    pub packed: bool,
    /// Its alignment at least, or 0.
    pub align: u32,
    /// What `#pragma pack` says: the alignment of members at most, or 0.
    pub most: u32,
}

/// All types of a compilation.
#[derive(Debug, Default)]
pub(crate) struct Types {
    list: Vec<TypeInfo>,
    pub params: Vec<Type>,
    pub members: Vec<Member>,
}

impl Types {
    pub fn reset(&mut self) {
        self.list.clear();
        self.params.clear();
        self.members.clear();
        for (_, kind, size) in BASIC {
            self.list.push(TypeInfo {
                size,
                align: size,
                ..info(kind)
            });
        }
    }

    #[inline]
    pub fn get(&self, ty: Type) -> &TypeInfo {
        &self.list[ty.plain().0 as usize]
    }
    pub fn kind(&self, ty: Type) -> TypeKind {
        self.get(ty).kind
    }
    pub fn size(&self, ty: Type) -> u32 {
        self.get(ty).size
    }

    /// Number of types that it is made of, with repetition: how long comparing or spelling it
    /// takes.
    pub fn weight(&self, ty: Type) -> u16 {
        self.get(ty).weight
    }

    fn push(&mut self, info: TypeInfo) -> Type {
        self.list.push(info);
        Type(self.list.len() as u32 - 1)
    }

    pub fn pointer(&mut self, of: Type) -> Type {
        if of.qualifiers() == 0 && self.get(of).pointer != Type(0) {
            return self.get(of).pointer;
        }
        let ty = self.push(TypeInfo {
            size: 8,
            align: 8,
            of,
            weight: self.weight(of).saturating_add(1),
            ..info(TypeKind::Pointer)
        });
        if of.qualifiers() == 0 {
            self.list[of.0 as usize].pointer = ty;
        }
        ty
    }

    /// An array, or `None` if it is too large.
    pub fn array(&mut self, of: Type, count: u32) -> Option<Type> {
        let TypeInfo { size, align, .. } = *self.get(of);
        let size = if count == UNKNOWN {
            0
        } else {
            size.checked_mul(count).filter(|s| *s < 1 << 30)?
        };
        Some(self.push(TypeInfo {
            size,
            align,
            of,
            count,
            weight: self.weight(of).saturating_add(1),
            ..info(TypeKind::Array)
        }))
    }

    pub fn function(&mut self, of: Type, params: &[Type], open: bool) -> Type {
        let first = self.params.len() as u32;
        self.params.extend_from_slice(params);
        let weight = params
            .iter()
            .fold(self.weight(of).saturating_add(1), |sum, param| {
                sum.saturating_add(self.weight(*param))
            });
        self.push(TypeInfo {
            of,
            weight,
            first,
            count: params.len() as u32,
            open,
            ..info(TypeKind::Function)
        })
    }

    /// A structure or union without members so far.
    pub fn structure(&mut self, kind: TypeKind, tag: Name) -> Type {
        self.push(TypeInfo {
            tag,
            size: 0,
            align: 1,
            ..info(kind)
        })
    }

    /// Gives a structure its members, laid out as the System V ABI does; false if it is too large.
    pub fn complete(&mut self, ty: Type, members: &mut Vec<Member>, layout: Layout) -> bool {
        // In bits.
        let (mut size, mut end, mut align) = (0u64, 0u64, 1u32);
        let union = self.kind(ty) == TypeKind::Union;
        for member in members.iter_mut() {
            let info = self.get(member.ty);
            let packed = layout.packed || member.packed;
            let most = |align: u32| match layout.most {
                0 => align,
                most => align.min(most),
            };
            // What `: 0` asks for, neither `packed` nor `#pragma pack` takes away.
            let natural = match (member.bits.any() && member.bits.width == 0, packed) {
                (true, _) => info.align.max(1),
                (false, true) => 1,
                (false, false) => most(info.align.max(1)),
            };
            // `#pragma pack` goes before a member's own `aligned`.
            let asked = most(member.align);
            let wanted = natural.max(asked);
            if union {
                end = 0;
            }
            let width = if member.bits.any() {
                let (width, unit) = (
                    u64::from(member.bits.width),
                    u64::from(info.size.max(1)) * 8,
                );
                if width == 0 {
                    end = end.next_multiple_of(u64::from(natural.max(member.align)) * 8);
                } else {
                    if asked > 0 {
                        end = end.next_multiple_of(u64::from(asked) * 8);
                    }
                    let spans = end % unit + width > unit;
                    if spans && !packed && layout.most == 0 {
                        end = end.next_multiple_of(u64::from(natural) * 8);
                    }
                    // One without a name aligns nothing. Under `#pragma pack` its type counts even
                    // if it is packed.
                    if member.name != Name(0) {
                        let by_type = if layout.most > 0 {
                            most(info.align)
                        } else {
                            natural
                        };
                        align = align.max(asked).max(by_type);
                    }
                }
                member.offset = (end / 8) as u32;
                member.bits.first = (end % 8) as u8;
                // All of it at its natural place if it lies there, so that it is read in one go.
                let from = end % unit;
                if !packed && layout.most == 0 && from + width <= unit {
                    member.offset = (end / unit * unit / 8) as u32;
                    member.bits.first = from as u8;
                    member.bits.whole = true;
                }
                width
            } else {
                align = align.max(wanted);
                end = end.next_multiple_of(u64::from(wanted) * 8);
                member.offset = (end / 8) as u32;
                u64::from(info.size) * 8
            };
            end += width;
            size = size.max(end);
            if size >= 1 << 33 {
                return false;
            }
        }
        // What nobody can name is there no more.
        members.retain(|member| member.anonymous || member.name != Name(0));
        let first = self.members.len() as u32;
        self.members.extend_from_slice(members);
        let align = align.max(layout.align);
        let size = size.div_ceil(8).next_multiple_of(align.into());
        if size >= 1 << 30 {
            return false;
        }
        let info = &mut self.list[ty.plain().0 as usize];
        info.size = size as u32;
        info.align = align;
        info.first = first;
        info.count = members.len() as u32;
        info.complete = true;
        true
    }

    pub fn members(&self, ty: Type) -> &[Member] {
        let info = self.get(ty);
        &self.members[info.first as usize..(info.first + info.count) as usize]
    }

    /// The member of this name and its offset, looked for in anonymous members, too.
    pub fn member(&self, ty: Type, name: Name) -> Option<Member> {
        for member in self.members(ty) {
            if member.anonymous {
                if let Some(inner) = self.member(member.ty, name) {
                    let offset = inner.offset + member.offset;
                    return Some(Member { offset, ..inner });
                }
            } else if member.name == name {
                return Some(*member);
            }
        }
        None
    }

    /// The type that a bit-field of this type has in an expression: `int` if that holds all its
    /// values, as gcc and clang have it for those of 64-bit types, too.
    pub fn promoted_bits(&self, ty: Type, bits: Bits) -> Type {
        match bits.width {
            _ if !bits.any() || bits.width > 32 => self.promoted(ty),
            32 if self.is_unsigned(ty) => UINT,
            _ => INT,
        }
    }

    pub fn params(&self, ty: Type) -> &[Type] {
        let info = self.get(ty);
        &self.params[info.first as usize..(info.first + info.count) as usize]
    }

    /// Whether objects of the type can be made.
    pub fn is_complete(&self, ty: Type) -> bool {
        let info = self.get(ty);
        match info.kind {
            TypeKind::Void | TypeKind::Function => false,
            TypeKind::Array => info.count != UNKNOWN && self.is_complete(info.of),
            TypeKind::Struct | TypeKind::Union => info.complete,
            _ => true,
        }
    }

    pub fn is_integer(&self, ty: Type) -> bool {
        matches!(
            self.kind(ty),
            TypeKind::Bool | TypeKind::Int | TypeKind::Unsigned
        )
    }
    pub fn is_float(&self, ty: Type) -> bool {
        self.kind(ty) == TypeKind::Float
    }
    pub fn is_arithmetic(&self, ty: Type) -> bool {
        self.is_integer(ty) || self.is_float(ty)
    }
    pub fn is_pointer(&self, ty: Type) -> bool {
        self.kind(ty) == TypeKind::Pointer
    }
    pub fn is_scalar(&self, ty: Type) -> bool {
        self.is_arithmetic(ty) || self.is_pointer(ty)
    }
    pub fn is_struct(&self, ty: Type) -> bool {
        matches!(self.kind(ty), TypeKind::Struct | TypeKind::Union)
    }
    /// Whether the integer type is unsigned once it is promoted or is as wide as `int`.
    pub fn is_unsigned(&self, ty: Type) -> bool {
        !matches!(self.kind(ty), TypeKind::Int)
    }

    /// The type that an operand of this integer type has in an expression.
    pub fn promoted(&self, ty: Type) -> Type {
        if self.is_integer(ty) && self.size(ty) < 4 {
            INT
        } else {
            ty.plain()
        }
    }

    /// The common type of the usual arithmetic conversions.
    pub fn usual(&self, a: Type, b: Type) -> Type {
        let (a, b) = (a.plain(), b.plain());
        if a == DOUBLE || b == DOUBLE {
            return DOUBLE;
        }
        if a == FLOAT || b == FLOAT {
            return FLOAT;
        }
        let (a, b) = (self.promoted(a), self.promoted(b));
        let rank = |ty: Type| (self.size(ty), ty == LLONG || ty == ULLONG);
        let wide = if rank(a) >= rank(b) { a } else { b };
        let unsigned = |ty: Type| self.is_unsigned(ty) && self.size(ty) == self.size(wide);
        match (unsigned(a) || unsigned(b), wide) {
            (true, INT) => UINT,
            (true, LONG) => ULONG,
            (true, LLONG) => ULLONG,
            _ => wide,
        }
    }

    /// Whether two types are compatible, qualifiers on top aside.
    pub fn same(&self, a: Type, b: Type) -> bool {
        let (a, b) = (a.plain(), b.plain());
        if a == b || a == ERROR || b == ERROR {
            return true;
        }
        let (x, y) = (*self.get(a), *self.get(b));
        if x.kind != y.kind {
            return false;
        }
        match x.kind {
            TypeKind::Pointer => x.of.qualifiers() == y.of.qualifiers() && self.same(x.of, y.of),
            TypeKind::Array => {
                (x.count == y.count || x.count == UNKNOWN || y.count == UNKNOWN)
                    && self.same(x.of, y.of)
            }
            TypeKind::Function => {
                let open = x.open && x.count == 0 || y.open && y.count == 0;
                self.same(x.of, y.of)
                    && (open
                        || x.open == y.open
                            && x.count == y.count
                            && self
                                .params(a)
                                .iter()
                                .zip(self.params(b))
                                .all(|(a, b)| self.same(*a, *b)))
            }
            _ => false,
        }
    }

    /// The type as C spells it.
    pub fn spell(&self, source: &[u8], names: &crate::names::Names, ty: Type) -> String {
        self.declare(source, names, ty, String::new())
    }

    fn declare(
        &self,
        source: &[u8],
        names: &crate::names::Names,
        ty: Type,
        inner: String,
    ) -> String {
        if inner.len() > 200 {
            return "…".to_string();
        }
        let info = self.get(ty);
        let qualifier = match (ty.is_const(), ty.is_volatile()) {
            (false, false) => "",
            (true, false) => "const ",
            (false, true) => "volatile ",
            (true, true) => "const volatile ",
        };
        let space = if inner.is_empty() || inner.starts_with('[') {
            ""
        } else {
            " "
        };
        match info.kind {
            TypeKind::Pointer => {
                let nested = matches!(self.kind(info.of), TypeKind::Array | TypeKind::Function);
                let inner = format!("*{qualifier}{inner}");
                self.declare(
                    source,
                    names,
                    info.of,
                    if nested { format!("({inner})") } else { inner },
                )
            }
            TypeKind::Array => {
                let count = if info.count == UNKNOWN {
                    String::new()
                } else {
                    info.count.to_string()
                };
                self.declare(source, names, info.of, format!("{inner}[{count}]"))
            }
            TypeKind::Function => {
                let mut list = String::new();
                for param in self.params(ty) {
                    if !list.is_empty() {
                        list.push_str(", ");
                    }
                    list.push_str(&self.declare(source, names, *param, String::new()));
                }
                if info.open && info.count > 0 {
                    list.push_str(", ...");
                } else if info.count == 0 && !info.open {
                    list.push_str("void");
                }
                self.declare(source, names, info.of, format!("{inner}({list})"))
            }
            TypeKind::Struct | TypeKind::Union => {
                let word = if info.kind == TypeKind::Struct {
                    "struct"
                } else {
                    "union"
                };
                let tag = String::from_utf8_lossy(names.spelling(source, info.tag)).into_owned();
                let tag = if info.tag == Name(0) {
                    "{…}".to_string()
                } else {
                    tag
                };
                format!("{qualifier}{word} {tag}{space}{inner}")
            }
            _ => {
                let name = BASIC
                    .get(ty.plain().0 as usize)
                    .map_or("?", |basic| basic.0);
                format!("{qualifier}{name}{space}{inner}")
            }
        }
    }
}

fn info(kind: TypeKind) -> TypeInfo {
    TypeInfo {
        kind,
        size: 1,
        align: 1,
        of: VOID,
        first: 0,
        count: 0,
        open: false,
        complete: false,
        tag: Name(0),
        weight: 1,
        pointer: Type(0),
    }
}
