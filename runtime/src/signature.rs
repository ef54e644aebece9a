//! Types of functions, compared: what a host says against what a file says, which is an allegation;
//! and names that are nearly right.
//!
//! Invariant: no call is made by a type that only a file says.

use crate::error::SymbolError;
use postern_image::{Signature, Type};

/// Whether a function of type `found` can be called as `wanted`: the same classes and widths; signs
/// do not matter to registers of 32 bits and more, a pointer is a `uint32_t` to C hosts
/// (`pt_offset`), and a caller may ignore a result.
pub fn compatible(found: &Signature, wanted: &Signature) -> bool {
    let offset = |t: Type| matches!(t, Type::Pointer | Type::U32);
    let same = |a: Type, b: Type| {
        a == b
            || (a.is_integer() && b.is_integer() && a.size() == b.size() && a.size() >= 4)
            || (offset(a) && offset(b))
    };
    let results = match (found.result(), wanted.result()) {
        (_, None) => true,
        (Some(a), Some(b)) => same(a, b),
        (None, Some(_)) => false,
    };
    results
        && found.parameters().len() == wanted.parameters().len()
        && found
            .parameters()
            .iter()
            .zip(wanted.parameters())
            .all(|(&a, &b)| same(a, b))
}

/// Whether the function `name` may be called by the types `wanted`, as far as the file says
/// anything of them: what it says is an allegation and is compared, no call is ever made by it.
///
/// # Errors
/// It says that they are others.
pub fn agrees(name: &str, found: Option<Signature>, wanted: &Signature) -> Result<(), SymbolError> {
    match found {
        Some(found) if !compatible(&found, wanted) => Err(SymbolError::Signature {
            name: name.to_owned(),
            found,
            wanted: *wanted,
        }),
        _ => Ok(()),
    }
}

/// What the file says of the types of `name`, where that must be known.
///
/// # Errors
/// It does not.
pub fn alleged(name: &str, found: Option<Signature>) -> Result<Signature, SymbolError> {
    found.ok_or_else(|| SymbolError::Untyped(name.to_owned()))
}

/// Whether all parameters are passed in registers, as the service gate has them: of services at
/// most six in all.
pub fn in_registers(signature: &Signature, peer: bool) -> bool {
    let parameters = signature.parameters();
    let floats = parameters.iter().filter(|t| t.is_float()).count();
    let integers = parameters.len() - floats;
    match peer {
        true => integers <= 6 && floats <= 8,
        false => parameters.len() <= 6,
    }
}

/// The name that is spelt most like `name`, if any is close.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    names
        .map(|n| (distance(name, n), n))
        .min()
        .filter(|&(d, _)| d <= name.len().div_ceil(3))
        .map(|(_, n)| n.to_owned())
}

/// Edit distance (Levenshtein), bounded in time by looking at the first 64 bytes only.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let (a, b) = (&a[..a.len().min(64)], &b[..b.len().min(64)]);
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replace = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
