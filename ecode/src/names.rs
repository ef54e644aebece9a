//! Names as small numbers: each spelling of an identifier is interned once.
//!
//! Invariant: two identifiers of one source have the same [`Name`] if and only if they are spelled
//! alike. What a name means now (in each of C's name spaces) is stored beside it, so looking it up
//! is an index.

use alloc::vec::Vec;

use crate::token::TokenKind;

/// An interned identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Name(pub u32);

/// What is kept for each name. Zero means nothing in all fields.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NameInfo {
    start: u32,
    length: u32,
    hash: u32,
    /// Innermost ordinary identifier: index of a symbol.
    pub symbol: u32,
    /// Innermost tag: index of a tag.
    pub tag: u32,
    /// Label of the present function: index of a label.
    pub label: u32,
    /// Macro of this name, index + 1.
    pub macro_: u32,
    /// It is being replaced, so that it is no macro within itself.
    pub active: bool,
    /// File-scope object or function of this name, index + 1.
    pub global: u32,
    /// Number of the last function in which the name's address is taken, as far as a look at its
    /// tokens tells.
    pub address_taken: u32,
}

/// All names of a compilation.
#[derive(Debug, Default)]
pub(crate) struct Names {
    list: Vec<NameInfo>,
    table: Vec<u32>,
    /// A name was found behind too many others: somebody chose them so.
    pub crowded: bool,
    /// Names that others were looked for behind.
    pub probes: u64,
    /// Spellings that the source does not have: `##` made them.
    made: Vec<u8>,
    /// The table with the keywords and the known names.
    first: Vec<u32>,
}

/// Set in the position of a spelling that lies in [`Names::made`].
const MADE: u32 = 1 << 31;

/// Most names that a name is looked for behind.
const PROBES: usize = 256;

/// Spellings that exist before the source: keywords, then names that C's usual headers define.
const KEYWORDS: &[(&str, TokenKind)] = &[
    ("auto", TokenKind::Auto),
    ("break", TokenKind::Break),
    ("case", TokenKind::Case),
    ("char", TokenKind::Char),
    ("const", TokenKind::Const),
    ("continue", TokenKind::Continue),
    ("default", TokenKind::Default),
    ("do", TokenKind::Do),
    ("double", TokenKind::Double),
    ("else", TokenKind::Else),
    ("enum", TokenKind::Enum),
    ("extern", TokenKind::Extern),
    ("float", TokenKind::Float),
    ("for", TokenKind::For),
    ("goto", TokenKind::Goto),
    ("if", TokenKind::If),
    ("inline", TokenKind::Inline),
    ("int", TokenKind::Int),
    ("long", TokenKind::Long),
    ("register", TokenKind::Register),
    ("restrict", TokenKind::Restrict),
    ("return", TokenKind::Return),
    ("short", TokenKind::Short),
    ("signed", TokenKind::Signed),
    ("sizeof", TokenKind::Sizeof),
    ("static", TokenKind::Static),
    ("struct", TokenKind::Struct),
    ("switch", TokenKind::Switch),
    ("typedef", TokenKind::Typedef),
    ("union", TokenKind::Union),
    ("unsigned", TokenKind::Unsigned),
    ("void", TokenKind::Void),
    ("volatile", TokenKind::Volatile),
    ("while", TokenKind::While),
    ("_Bool", TokenKind::Bool),
    ("_Alignof", TokenKind::Alignof),
    ("_Static_assert", TokenKind::StaticAssert),
    ("__attribute__", TokenKind::Attribute),
    ("__attribute", TokenKind::Attribute),
    ("__extension__", TokenKind::Extension),
    ("__inline", TokenKind::Inline),
    ("__inline__", TokenKind::Inline),
    ("__const", TokenKind::Const),
    ("__const__", TokenKind::Const),
    ("__volatile", TokenKind::Volatile),
    ("__volatile__", TokenKind::Volatile),
    ("__signed", TokenKind::Signed),
    ("__signed__", TokenKind::Signed),
    ("__restrict", TokenKind::Restrict),
    ("__restrict__", TokenKind::Restrict),
    ("__alignof", TokenKind::Alignof),
    ("__alignof__", TokenKind::Alignof),
    ("typeof", TokenKind::Typeof),
    ("__typeof", TokenKind::Typeof),
    ("__typeof__", TokenKind::Typeof),
    ("__builtin_va_list", TokenKind::VaList),
    ("_Alignas", TokenKind::Alignas),
    ("_Complex", TokenKind::Unsupported),
    ("__complex__", TokenKind::Unsupported),
    ("__int128", TokenKind::Unsupported),
    ("__int128_t", TokenKind::Unsupported),
    ("__uint128_t", TokenKind::Unsupported),
    ("_BitInt", TokenKind::Unsupported),
    ("_Decimal32", TokenKind::Unsupported),
    ("_Decimal64", TokenKind::Unsupported),
    ("_Decimal128", TokenKind::Unsupported),
    ("_Float128", TokenKind::Unsupported),
    ("__label__", TokenKind::LocalLabel),
    ("__auto_type", TokenKind::Unsupported),
    ("_Pragma", TokenKind::Unsupported),
    ("__thread", TokenKind::Unsupported),
    ("__asm", TokenKind::Asm),
    ("_Generic", TokenKind::Unsupported),
    ("_Atomic", TokenKind::Unsupported),
    ("_Thread_local", TokenKind::Unsupported),
    ("_Imaginary", TokenKind::Unsupported),
    ("_Noreturn", TokenKind::Inline),
    ("asm", TokenKind::Asm),
    ("__asm__", TokenKind::Asm),
];

/// Names that the compiler declares itself, in this order after the keywords.
pub(crate) const KNOWN: &[&str] = &[
    "boolean",
    "bool",
    "true",
    "false",
    "NULL",
    "size_t",
    "ptrdiff_t",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "intptr_t",
    "uintptr_t",
    "define",
    "undef",
    "include",
    "pragma",
    "ifdef",
    "ifndef",
    "elif",
    "endif",
    "error",
    "warning",
    "line",
    "ident",
    "defined",
    "__VA_ARGS__",
    // Macros that exist before the source; see `lex/predefined.rs`.
    "__LINE__",
    "__FILE__",
    "__STDC__",
    "__STDC_VERSION__",
    "__STDC_HOSTED__",
    "__x86_64__",
    "__LP64__",
    "__POSTERN_ECODE__",
];

/// Directive names among [`KNOWN`].
pub(crate) const DEFINE: Name = Name((KEYWORDS.len() + 17) as u32);
pub(crate) const UNDEF: Name = Name(DEFINE.0 + 1);
pub(crate) const INCLUDE: Name = Name(DEFINE.0 + 2);
pub(crate) const PRAGMA: Name = Name(DEFINE.0 + 3);
pub(crate) const IFDEF: Name = Name(DEFINE.0 + 4);
pub(crate) const IFNDEF: Name = Name(DEFINE.0 + 5);
pub(crate) const ELIF: Name = Name(DEFINE.0 + 6);
pub(crate) const ENDIF: Name = Name(DEFINE.0 + 7);
pub(crate) const ERROR: Name = Name(DEFINE.0 + 8);
pub(crate) const WARNING: Name = Name(DEFINE.0 + 9);
pub(crate) const LINE: Name = Name(DEFINE.0 + 10);
pub(crate) const IDENT: Name = Name(DEFINE.0 + 11);
pub(crate) const DEFINED: Name = Name(DEFINE.0 + 12);
pub(crate) const VA_ARGS: Name = Name(DEFINE.0 + 13);
/// The first of the macros that exist before the source, which are the last of [`KNOWN`].
pub(crate) const PREDEFINED: Name = Name(DEFINE.0 + 14);

const fn step(hash: u32, byte: u8) -> u32 {
    (hash ^ byte as u32).wrapping_mul(0x0100_0193)
}

fn hash_of(bytes: &[u8]) -> u32 {
    bytes.iter().fold(START, |hash, byte| step(hash, *byte))
}

const START: u32 = 0x811c_9dc5;

impl Names {
    /// Forgets all names but the keywords and the known ones.
    pub fn reset(&mut self) {
        self.crowded = false;
        self.probes = 0;
        self.made.clear();
        if !self.first.is_empty() {
            self.list.truncate(KEYWORDS.len() + KNOWN.len());
            for info in &mut self.list {
                *info = NameInfo {
                    hash: info.hash,
                    length: info.length,
                    ..NameInfo::default()
                };
            }
            self.table.clear();
            self.table.extend_from_slice(&self.first);
            self.predefine();
            return;
        }
        self.list.clear();
        self.table.clear();
        self.table.resize(1024, 0);
        let known = KEYWORDS
            .iter()
            .map(|(name, _)| *name)
            .chain(KNOWN.iter().copied());
        for (index, name) in known.enumerate() {
            let hash = hash_of(name.as_bytes());
            self.list.push(NameInfo {
                hash,
                length: name.len() as u32,
                ..NameInfo::default()
            });
            self.insert(hash, index as u32);
        }
        self.first.extend_from_slice(&self.table);
        self.predefine();
    }

    /// The macros that exist before the source have the numbers from [`u32::MAX`] down.
    fn predefine(&mut self) {
        for index in PREDEFINED.0..(KEYWORDS.len() + KNOWN.len()) as u32 {
            self.list[index as usize].macro_ = u32::MAX - (index - PREDEFINED.0);
        }
    }

    /// The number of the `index`th of [`KNOWN`].
    pub fn known(index: usize) -> Name {
        Name((KEYWORDS.len() + index) as u32)
    }

    /// The token of a keyword, or [`TokenKind::Name`].
    #[inline]
    pub fn token(name: Name) -> TokenKind {
        KEYWORDS
            .get(name.0 as usize)
            .map_or(TokenKind::Name, |(_, tok)| *tok)
    }

    fn insert(&mut self, hash: u32, index: u32) {
        let mask = self.table.len() - 1;
        let mut at = spread(hash) & mask;
        while self.table[at] != 0 {
            at = (at + 1) & mask;
        }
        self.table[at] = index + 1;
    }

    /// The name spelled by the identifier that begins at `start`, and the position behind it.
    #[inline]
    pub fn intern(&mut self, source: &[u8], start: usize) -> (Name, usize) {
        let mut hash = START;
        let mut end = start;
        while let Some(&byte) = source.get(end) {
            if !is_name(byte) {
                break;
            }
            hash = step(hash, byte);
            end += 1;
        }
        let name = self.find(source, start, &source[start..end], hash);
        (name, end)
    }

    /// The name of a spelling that the source need not have.
    pub fn make(&mut self, source: &[u8], text: &[u8]) -> Name {
        let start = self.made.len() | MADE as usize;
        let before = self.list.len();
        let name = self.find(source, start, text, hash_of(text));
        if self.list.len() > before {
            self.made.extend_from_slice(text);
        }
        name
    }

    fn find(&mut self, source: &[u8], start: usize, text: &[u8], hash: u32) -> Name {
        let mask = self.table.len() - 1;
        let first = spread(hash) & mask;
        let mut at = first;
        while let Some(index) = self.table[at].checked_sub(1) {
            let entry = &self.list[index as usize];
            if entry.hash == hash && self.spelling(source, Name(index)) == text {
                return Name(index);
            }
            at = (at + 1) & mask;
        }
        let probes = at.wrapping_sub(first) & mask;
        self.probes += probes as u64;
        self.crowded |= probes > PROBES;
        let name = self.list.len() as u32;
        let (start, length) = (start as u32, text.len() as u32);
        self.list.push(NameInfo {
            start,
            length,
            hash,
            ..NameInfo::default()
        });
        self.table[at] = name + 1;
        if self.list.len() * 2 > self.table.len() {
            let size = self.table.len() * 4;
            self.table.clear();
            self.table.resize(size, 0);
            for index in 0..self.list.len() {
                self.insert(self.list[index].hash, index as u32);
            }
        }
        Name(name)
    }

    /// How the name is spelled.
    #[inline]
    pub fn spelling<'a>(&'a self, source: &'a [u8], name: Name) -> &'a [u8] {
        let index = name.0 as usize;
        if let Some((keyword, _)) = KEYWORDS.get(index) {
            return keyword.as_bytes();
        }
        if let Some(known) = KNOWN.get(index - KEYWORDS.len()) {
            return known.as_bytes();
        }
        let entry = &self.list[index];
        let start = (entry.start & !MADE) as usize;
        let from = if entry.start & MADE != 0 {
            &self.made
        } else {
            source
        };
        &from[start..start + entry.length as usize]
    }

    #[inline]
    pub fn get(&self, name: Name) -> &NameInfo {
        &self.list[name.0 as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, name: Name) -> &mut NameInfo {
        &mut self.list[name.0 as usize]
    }

    /// The number of names.
    pub fn len(&self) -> usize {
        self.list.len()
    }
}

fn spread(hash: u32) -> usize {
    (hash ^ hash >> 15) as usize
}

/// Whether a byte continues an identifier.
#[inline]
pub(crate) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// How many edits turn one spelling into the other, or `limit` if there are as many or more.
pub(crate) fn distance(a: &[u8], b: &[u8], limit: usize) -> usize {
    if a.len().abs_diff(b.len()) >= limit || a.len() > 40 || b.len() > 40 {
        return limit;
    }
    let mut row: [usize; 41] = core::array::from_fn(|index| index);
    let mut before: [usize; 41] = row;
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        let above = row;
        for (j, y) in b.iter().enumerate() {
            let mut best = (diagonal + usize::from(x != y))
                .min(row[j] + 1)
                .min(above[j + 1] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                best = best.min(before[j - 1] + 1); // two letters in the wrong order
            }
            diagonal = above[j + 1];
            row[j + 1] = best;
        }
        before = above;
    }
    row[b.len()].min(limit)
}
