//! Signatures: the C types of an import or export, spelled as the extension ABI (section 7) does.
//!
//! In a file a signature is an allegation of whoever made the file. It is compared with the types
//! of whoever calls or serves, and told to people; nothing copies memory or registers because of
//! it.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use thiserror::Error;

/// Most parameters that a signature may name.
pub const MAX_PARAMETERS: usize = 16;

/// A C type that travels through a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `int8_t`, letter `b`.
    I8,
    /// `uint8_t`, letter `B`.
    U8,
    /// `int16_t`, letter `h`.
    I16,
    /// `uint16_t`, letter `H`.
    U16,
    /// `int32_t`, letter `i`.
    I32,
    /// `uint32_t`, letter `I`.
    U32,
    /// `int64_t`, letter `l`.
    I64,
    /// `uint64_t`, letter `L`.
    U64,
    /// `float`, letter `f`.
    F32,
    /// `double`, letter `d`.
    F64,
    /// A pointer, that is, an offset in the window; letter `p`.
    Pointer,
    /// `_Bool`, letter `z`. Its value is its lowest bit, as the psABI has it; all others are cut
    /// off on the way, in both directions.
    Bool,
}

/// Each type with its letter in the notes and its name in C.
const TYPES: [(Type, char, &str); 12] = [
    (Type::I8, 'b', "int8_t"),
    (Type::U8, 'B', "uint8_t"),
    (Type::I16, 'h', "int16_t"),
    (Type::U16, 'H', "uint16_t"),
    (Type::I32, 'i', "int32_t"),
    (Type::U32, 'I', "uint32_t"),
    (Type::I64, 'l', "int64_t"),
    (Type::U64, 'L', "uint64_t"),
    (Type::F32, 'f', "float"),
    (Type::F64, 'd', "double"),
    (Type::Pointer, 'p', "void *"),
    (Type::Bool, 'z', "_Bool"),
];

impl Type {
    /// The letter that stands for the type in a signature.
    pub fn letter(self) -> char {
        TYPES[self as usize].1
    }

    /// The type that a letter stands for; `v` is none, it is not a type.
    pub fn from_letter(letter: char) -> Option<Type> {
        TYPES.iter().find(|row| row.1 == letter).map(|row| row.0)
    }

    /// The type as C spells it.
    pub fn c_name(self) -> &'static str {
        TYPES[self as usize].2
    }

    /// Whether values travel in `xmm` registers.
    pub fn is_float(self) -> bool {
        matches!(self, Type::F32 | Type::F64)
    }

    /// Whether it is an integer type; a pointer and `_Bool` are not.
    pub fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, Type::Pointer | Type::Bool)
    }

    /// Size of a value in bytes. A pointer has four: an offset.
    pub fn size(self) -> u32 {
        match self {
            Type::I8 | Type::U8 | Type::Bool => 1,
            Type::I16 | Type::U16 => 2,
            Type::I32 | Type::U32 | Type::F32 | Type::Pointer => 4,
            Type::I64 | Type::U64 | Type::F64 => 8,
        }
    }
}

/// The types of a function's result and parameters.
///
/// `"l(ii)".parse()` reads the letters of the ABI and [`Display`](fmt::Display) writes them;
/// [`Signature::c`] writes a C prototype.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature {
    result: Option<Type>,
    count: u8,
    // Those from `count` on stay I8, so that equality may look at all of them.
    parameters: [Type; MAX_PARAMETERS],
}

/// Why a text is not a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SignatureError {
    /// A letter that stands for no type, or for none at this place.
    #[error("`{letter}` at position {position} is not the letter of a type")]
    UnknownType {
        /// The letter.
        letter: char,
        /// Its position in bytes.
        position: usize,
    },
    /// The form is not `r(ppp)`.
    #[error(
        "the form is one letter for the result, then the parameters' in parentheses, as in `l(ii)`"
    )]
    Form,
    /// More than [`MAX_PARAMETERS`] parameters.
    #[error("more than {MAX_PARAMETERS} parameters")]
    TooManyParameters,
}

impl Signature {
    /// A signature from its parts. `result` is `None` for `void`.
    pub fn new(result: Option<Type>, parameters: &[Type]) -> Result<Signature, SignatureError> {
        let mut all = [Type::I8; MAX_PARAMETERS];
        all.get_mut(..parameters.len())
            .ok_or(SignatureError::TooManyParameters)?
            .copy_from_slice(parameters);
        Ok(Signature {
            result,
            count: parameters.len() as u8,
            parameters: all,
        })
    }

    /// The result's type, `None` for `void`.
    pub fn result(&self) -> Option<Type> {
        self.result
    }

    /// The parameters' types in order.
    pub fn parameters(&self) -> &[Type] {
        &self.parameters[..usize::from(self.count)]
    }

    /// The signature that the letters spell.
    pub(crate) fn from_letters(
        letters: impl Iterator<Item = char>,
    ) -> Result<Signature, SignatureError> {
        let typed = |(position, letter): (usize, char)| {
            Type::from_letter(letter).ok_or(SignatureError::UnknownType { letter, position })
        };
        let mut letters = letters.scan(0, |position, letter| {
            let at = *position;
            *position += letter.len_utf8();
            Some((at, letter))
        });
        let result = match letters.next().ok_or(SignatureError::Form)? {
            (_, 'v') => None,
            first => Some(typed(first)?),
        };
        if !matches!(letters.next(), Some((_, '('))) {
            return Err(SignatureError::Form);
        }
        let mut parameters = [Type::I8; MAX_PARAMETERS];
        let mut count = 0;
        while let Some(next) = letters.next() {
            if next.1 == ')' {
                return match (letters.next(), parameters.get(..count)) {
                    (None, Some(parameters)) => Signature::new(result, parameters),
                    _ => Err(SignatureError::Form),
                };
            }
            let place = parameters.get_mut(count);
            *place.ok_or(SignatureError::TooManyParameters)? = typed(next)?;
            count += 1;
        }
        Err(SignatureError::Form)
    }

    /// A C prototype of a function with this signature: `int64_t add(int32_t, int32_t)`.
    pub fn c(&self, name: &str) -> String {
        let result = self.result.map_or("void", Type::c_name);
        let space = if result.ends_with('*') { "" } else { " " };
        let parameters = match self.parameters() {
            [] => "void".to_owned(),
            list => list
                .iter()
                .map(|t| t.c_name())
                .collect::<Vec<_>>()
                .join(", "),
        };
        format!("{result}{space}{name}({parameters})")
    }
}

impl FromStr for Signature {
    type Err = SignatureError;

    fn from_str(text: &str) -> Result<Signature, SignatureError> {
        Signature::from_letters(text.chars())
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.result.map_or('v', Type::letter))?;
        self.parameters()
            .iter()
            .try_for_each(|t| write!(f, "{}", t.letter()))?;
        write!(f, ")")
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, (kind, letter, _)) in TYPES.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
            assert_eq!(Type::from_letter(letter), Some(kind));
            assert_eq!(kind.letter(), letter);
        }
    }

    #[test]
    fn letters_and_c_prototypes() {
        for (text, c) in [
            ("v()", "void f(void)"),
            ("l(ii)", "int64_t f(int32_t, int32_t)"),
            ("p(pL)", "void *f(void *, uint64_t)"),
            ("z(z)", "_Bool f(_Bool)"),
            (
                "d(fdbBhHIl)",
                "double f(float, double, int8_t, uint8_t, int16_t, uint16_t, uint32_t, int64_t)",
            ),
        ] {
            let signature: Signature = text.parse().unwrap();
            assert_eq!(signature.to_string(), text);
            assert_eq!(signature.c("f"), c);
        }
    }

    #[test]
    fn what_is_no_signature_says_why() {
        use SignatureError::*;
        for (text, error) in [
            ("", Form),
            ("v", Form),
            ("v(", Form),
            ("v(i", Form),
            ("i)i", Form),
            ("v()i", Form),
            (
                "v(v)",
                UnknownType {
                    letter: 'v',
                    position: 2,
                },
            ),
            (
                "x()",
                UnknownType {
                    letter: 'x',
                    position: 0,
                },
            ),
            (
                "v(é)",
                UnknownType {
                    letter: 'é',
                    position: 2,
                },
            ),
            ("v(iiiiiiiiiiiiiiiii)", TooManyParameters),
        ] {
            assert_eq!(text.parse::<Signature>(), Err(error), "{text}");
        }
        assert!("v(iiiiiiiiiiiiiiii)".parse::<Signature>().is_ok());
    }
}
