//! Which plugins a query asks for: `through=gray,roi(10,10,100,80)`, and in which format the answer
//! is to be.

use alloc::vec::Vec;

use crate::http::request::{TARGET, decoded};
use crate::picture::Format;

/// Arguments of a plugin at most.
pub const ARGUMENTS: usize = 8;
/// Plugins one behind the other at most.
pub const PLUGINS: usize = 8;
/// Bytes of a plugin's name at most.
pub const NAME: usize = 64;

/// A plugin with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The plugin.
    pub name: Vec<u8>,
    /// What stands in parentheses.
    pub arguments: Vec<i32>,
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Through {
    /// Plugins, in their order.
    pub steps: Vec<Step>,
    /// The answer's format; none: the picture's.
    pub format: Option<Format>,
}

/// Whether a name can be a plugin's.
pub fn is_name(name: &[u8]) -> bool {
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=NAME).contains(&name.len()) && name.iter().all(letter)
}

fn argument(text: &[u8]) -> Option<i32> {
    core::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}

fn step(text: &[u8]) -> Option<Step> {
    let (name, arguments) = match text.iter().position(|byte| *byte == b'(') {
        None => (text, None),
        Some(at) => (
            text.get(..at)?,
            Some(text.get(at + 1..)?.strip_suffix(b")")?),
        ),
    };
    let arguments = match arguments {
        None | Some([]) => Vec::new(),
        Some(list) => list
            .split(|byte| *byte == b',')
            .map(argument)
            .collect::<Option<_>>()?,
    };
    (is_name(name) && arguments.len() <= ARGUMENTS).then(|| Step {
        name: name.to_vec(),
        arguments,
    })
}

/// What is between commas that stand in no parentheses.
fn split(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut depth = 0u32;
    list.split(move |byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        *byte == b',' && depth == 0
    })
}

/// Reads a query; `None` if it asks for no plugins.
///
/// # Errors
/// What is wrong with it.
pub fn read(query: &[u8]) -> Result<Option<Through>, &'static str> {
    let (mut through, mut asks) = (Through::default(), false);
    for pair in query.split(|byte| *byte == b'&') {
        let Some(at) = pair.iter().position(|byte| *byte == b'=') else {
            continue;
        };
        let (name, value) = pair.split_at(at);
        let mut room = [0; TARGET];
        let value = decoded(value.get(1..).unwrap_or_default(), &mut room);
        let value = value.ok_or("the query is no text")?;
        match name {
            b"through" => {
                asks = true;
                let steps = split(value).map(step).collect::<Option<Vec<_>>>();
                through.steps = steps.ok_or("through= is names of plugins with commas between, and whole numbers in parentheses")?;
            }
            b"format" => {
                let format = Format::named(value);
                through.format = Some(format.ok_or("format= is bmp or ppm")?);
            }
            _ => {}
        }
    }
    match through.steps.len() {
        0..=PLUGINS => Ok(asks.then_some(through)),
        _ => Err("that are too many plugins"),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn plugins_in_their_order() {
        let found = read(b"a=b&through=roi(1,-2,3),gr%61y&format=ppm").expect("fine");
        let found = found.expect("plugins");
        let step = |name: &str, arguments: &[i32]| Step {
            name: name.as_bytes().to_vec(),
            arguments: arguments.to_vec(),
        };
        assert_eq!(
            found.steps,
            vec![step("roi", &[1, -2, 3]), step("gray", &[])]
        );
        assert_eq!(found.format, Some(Format::Ppm));
        assert_eq!(read(b"x=1"), Ok(None));
        for wrong in [
            "through=",
            "through=a,,b",
            "through=a(1",
            "through=a(x)",
            "through=a b",
            "through=a(1,2,3,4,5,6,7,8,9)",
            "through=a(99999999999)",
            "through=a,a,a,a,a,a,a,a,a",
            "through=a&format=gif",
        ] {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let mut text: Vec<u8> = b"through=".to_vec();
            text.extend((0..random.usize(..20)).map(|_| b"a(,)1-%&="[random.usize(..9)]));
            let _ = read(&text);
        }
    }
}
