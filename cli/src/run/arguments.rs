//! From the words of a command line to the arguments of a call, by the function's signature.
//!
//! Nothing here touches a domain: buffers are named by their number, and get their place later.

use std::path::PathBuf;

use postern_image::{Signature, Type};

use crate::number;

/// What a buffer holds before the call.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The bytes of a file.
    File(PathBuf),
    /// So many zero bytes.
    Zeros(u64),
    /// A text and its NUL.
    Text(String),
}

/// An argument of the call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument {
    /// In an integer register, extended to 64 bits.
    Integer(u64),
    /// In a vector register: the bits of a `float` or `double`.
    Float(u64),
    /// The place of the buffer with this number.
    Place(usize),
    /// The length of the buffer with this number.
    Length(usize),
}

/// All arguments of a call and the buffers that they name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The arguments in order.
    pub arguments: Vec<Argument>,
    /// The buffers in order.
    pub buffers: Vec<Source>,
}

/// Reads words as the arguments of function `name`.
///
/// `@FILE`, `@:SIZE` and `=TEXT` become buffers. While fewer words are given than the signature has
/// parameters, a buffer that is followed by an integer parameter fills that one, too, with its
/// length. Without a signature, words with a point or exponent are `double`s, other numbers 64-bit
/// integers, and no length is filled in.
pub fn plan(name: &str, signature: Option<&Signature>, words: &[String]) -> Result<Plan, String> {
    let Some(signature) = signature else {
        return words.iter().try_fold(Plan::default(), |mut plan, word| {
            let argument = match (plan.buffer(word)?, number::integer(word)) {
                (Some(place), _) => place,
                (None, Some(value)) => Argument::Integer(value as u64),
                (None, None) => Argument::Float(float(word)?.to_bits()),
            };
            plan.arguments.push(argument);
            Ok(plan)
        });
    };
    let prototype = signature.c(name);
    let parameters = signature.parameters();
    let arity = || {
        format!(
            "`{prototype}` takes {} arguments, {} are given",
            parameters.len(),
            words.len()
        )
    };
    let mut missing = parameters
        .len()
        .checked_sub(words.len())
        .ok_or_else(arity)?;
    let mut plan = Plan::default();
    for word in words {
        let kind = *parameters.get(plan.arguments.len()).ok_or_else(arity)?;
        let wrong = |what: String| format!("argument `{word}` of `{prototype}`: {what}");
        if let Some(place) = plan.buffer(word).map_err(wrong)? {
            if kind != Type::Pointer {
                return Err(wrong(format!(
                    "a buffer is a pointer, and this parameter is {}",
                    kind.c_name()
                )));
            }
            let number = plan.buffers.len() - 1;
            plan.arguments.push(place);
            let next = parameters.get(plan.arguments.len());
            if missing > 0 && next.is_some_and(|t| t.is_integer()) {
                missing -= 1;
                plan.arguments.push(Argument::Length(number));
            }
        } else {
            plan.arguments.push(value(kind, word).map_err(wrong)?);
        }
    }
    if plan.arguments.len() != parameters.len() {
        return Err(arity());
    }
    Ok(plan)
}

impl Plan {
    /// Adds the buffer that a word stands for, if it stands for one.
    fn buffer(&mut self, word: &str) -> Result<Option<Argument>, String> {
        let source = if let Some(size) = word.strip_prefix("@:") {
            Source::Zeros(number::size(size)?)
        } else if let Some(path) = word.strip_prefix('@') {
            Source::File(path.into())
        } else if let Some(text) = word.strip_prefix('=') {
            Source::Text(text.to_owned())
        } else {
            return Ok(None);
        };
        self.buffers.push(source);
        Ok(Some(Argument::Place(self.buffers.len() - 1)))
    }
}

fn float(word: &str) -> Result<f64, String> {
    word.parse()
        .map_err(|_| "not a number; buffers are written @FILE, @:SIZE or =TEXT".to_owned())
}

/// A number as a value of a type. Integers may be written signed or unsigned, whichever the type
/// is.
fn value(kind: Type, word: &str) -> Result<Argument, String> {
    match kind {
        Type::F64 => return Ok(Argument::Float(float(word)?.to_bits())),
        Type::F32 => return Ok(Argument::Float(u64::from((float(word)? as f32).to_bits()))),
        _ => {}
    }
    let value =
        number::integer(word).ok_or_else(|| format!("not {} {}", article(kind), kind.c_name()))?;
    let bits = match kind {
        Type::Bool => 1,
        other => 8 * other.size(),
    };
    if value < -(1i128 << (bits - 1)) || value >= 1i128 << bits {
        return Err(format!("does not fit {bits} bits"));
    }
    // To the width of the type, then as the type extends it.
    let cut = (value as u64) << (64 - bits);
    let signed = matches!(kind, Type::I8 | Type::I16 | Type::I32 | Type::I64);
    let extended = if signed {
        ((cut as i64) >> (64 - bits)) as u64
    } else {
        cut >> (64 - bits)
    };
    Ok(Argument::Integer(extended))
}

fn article(kind: Type) -> &'static str {
    if kind.c_name().starts_with('i') {
        "an"
    } else {
        "a"
    }
}

/// A result as people read it. Without a type it is a 64-bit integer.
pub fn shown(kind: Type, bits: u64) -> String {
    match kind {
        Type::I8 => (bits as i8).to_string(),
        Type::U8 => (bits as u8).to_string(),
        Type::I16 => (bits as i16).to_string(),
        Type::U16 => (bits as u16).to_string(),
        Type::I32 => (bits as i32).to_string(),
        Type::U32 => (bits as u32).to_string(),
        Type::I64 => (bits as i64).to_string(),
        Type::U64 => bits.to_string(),
        Type::F32 => f32::from_bits(bits as u32).to_string(),
        Type::F64 => f64::from_bits(bits).to_string(),
        Type::Pointer => format!("{:#x}", bits as u32),
        Type::Bool => (bits & 1).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::Argument::*;
    use super::*;

    fn planned(signature: &str, words: &[&str]) -> Result<Plan, String> {
        let words: Vec<String> = words.iter().map(|w| w.to_string()).collect();
        let signature: Option<Signature> =
            (!signature.is_empty()).then(|| signature.parse().unwrap());
        plan("f", signature.as_ref(), &words)
    }

    #[test]
    fn numbers_take_the_parameters_types() {
        let plan = planned(
            "v(iIbBfdp)",
            &["-1", "0xffffffff", "0xff", "-1", "1.5", "-2", "0"],
        )
        .unwrap();
        let f32_bits = u64::from(1.5f32.to_bits());
        let all = [
            Integer(u64::MAX),
            Integer(0xffff_ffff),
            Integer(u64::MAX),
            Integer(0xff),
            Float(f32_bits),
            Float((-2f64).to_bits()),
            Integer(0),
        ];
        assert_eq!(plan.arguments, all);
        let plan = planned("", &["7", "1.0", "-1"]).unwrap();
        assert_eq!(
            plan.arguments,
            [Integer(7), Float(1f64.to_bits()), Integer(u64::MAX)]
        );
    }

    #[test]
    fn buffers_bring_their_lengths_where_words_are_missing() {
        let plan = planned("v(pLp)", &["@in", "@:32"]).unwrap();
        assert_eq!(plan.arguments, [Place(0), Length(0), Place(1)]);
        assert_eq!(plan.buffers, [Source::File("in".into()), Source::Zeros(32)]);
        let plan = planned("v(pLp)", &["@in", "5", "@:32"]).unwrap();
        assert_eq!(plan.arguments, [Place(0), Integer(5), Place(1)]);
        let plan = planned("v(pIpi)", &["=a", "@b"]).unwrap();
        assert_eq!(plan.arguments, [Place(0), Length(0), Place(1), Length(1)]);
        // The first may have it, the second need not.
        let plan = planned("v(pIpI)", &["=a", "@b", "9"]).unwrap();
        assert_eq!(plan.arguments, [Place(0), Length(0), Place(1), Integer(9)]);
    }

    #[test]
    fn wrong_words_say_what_is_wrong() {
        for (signature, words, message) in [
            (
                "i(ii)",
                &["1"][..],
                "`int32_t f(int32_t, int32_t)` takes 2 arguments, 1 are given",
            ),
            ("i(ii)", &["1", "2", "3"], "takes 2 arguments, 3 are given"),
            ("i(i)", &["4294967296"], "does not fit 32 bits"),
            ("i(b)", &["-129"], "does not fit 8 bits"),
            ("i(i)", &["1.5"], "not an int32_t"),
            (
                "i(i)",
                &["@file"],
                "a buffer is a pointer, and this parameter is int32_t",
            ),
            ("d(d)", &["x"], "not a number"),
            ("v(p)", &["@:x"], "not a size"),
            ("v(pd)", &["@file"], "takes 2 arguments, 1 are given"),
        ] {
            let error = planned(signature, words).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn results_by_type() {
        assert_eq!(shown(Type::I32, 0xffff_ffff), "-1");
        assert_eq!(shown(Type::U8, 0x1ff), "255");
        assert_eq!(shown(Type::Bool, 0x81), "1");
        assert_eq!(shown(Type::Pointer, 0x1_0001_2000), "0x12000");
        assert_eq!(shown(Type::F32, 1.5f32.to_bits().into()), "1.5");
        assert_eq!(shown(Type::F64, 0.1f64.to_bits()), "0.1");
    }
}
