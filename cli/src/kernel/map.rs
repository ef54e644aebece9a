//! `postern kernel map`: maps that an extension and processes share.

use clap::{Args, Subcommand};
use postern_kernel::{Device, Entry, MapSizes};
use serde::Serialize;

use crate::number;
use crate::output::{self, Failure, Outcome, REFUSED, SUCCESS};

/// Make, read and write maps that an extension shares
///
/// Keys and values are bytes: an integer is written in as many as the map has, the machine's way
/// (the least significant first); `hex:0a000001` are these bytes, `=TEXT` these letters, filled up
/// with zeros.
#[derive(Subcommand)]
pub enum Map {
    /// Make a map
    Make(Make),
    /// Print the value of a key
    Get(Key),
    /// Give a key a value
    Set(Set),
    /// Remove a key
    Remove(Key),
    /// Print all keys and values
    Dump(Which),
}

#[derive(Args)]
pub struct Which {
    /// Name or number of the extension
    extension: String,
    /// The map's number, 0 to 15
    map: u32,
}

#[derive(Args)]
pub struct Make {
    #[command(flatten)]
    which: Which,
    /// Bytes of a key, 1 to 64
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=64))]
    key: u32,
    /// Bytes of a value, 1 to 4096
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=4096))]
    value: u32,
    /// Most entries
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    entries: u32,
}

#[derive(Args)]
pub struct Key {
    #[command(flatten)]
    which: Which,
    /// Key
    #[arg(allow_negative_numbers = true)]
    key: String,
}

#[derive(Args)]
pub struct Set {
    #[command(flatten)]
    which: Which,
    /// Key
    #[arg(allow_negative_numbers = true)]
    key: String,
    /// Value
    #[arg(allow_negative_numbers = true)]
    value: String,
}

#[derive(Serialize)]
struct Row {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
}

/// Does one of them.
pub fn run(device: &Device, map: &Map, json: bool) -> Outcome {
    let open = |which: &Which| {
        let id = device.find(&which.extension)?;
        device.map(id, which.map)
    };
    match map {
        Map::Make(make) => {
            let id = device.find(&make.which.extension)?;
            let sizes = MapSizes {
                key: make.key,
                value: make.value,
                entries: make.entries,
            };
            device.make_map(id, make.which.map, sizes)?;
        }
        Map::Get(get) => {
            let map = open(&get.which)?;
            match map.get(&bytes(&get.key, map.sizes().key)?)? {
                Some(value) if json => output::print_json(&row(None, &value))?,
                Some(value) => output::print(&(shown(&value) + "\n"))?,
                None => return absent(&get.key),
            }
        }
        Map::Set(set) => {
            let map = open(&set.which)?;
            let (key, value) = (map.sizes().key, map.sizes().value);
            map.set(&bytes(&set.key, key)?, &bytes(&set.value, value)?)?;
        }
        Map::Remove(remove) => {
            let map = open(&remove.which)?;
            if !map.remove(&bytes(&remove.key, map.sizes().key)?)? {
                return absent(&remove.key);
            }
        }
        Map::Dump(which) => {
            let entries: Vec<Entry> = open(which)?.iter().collect::<Result<_, _>>()?;
            if json {
                let rows = entries.iter().map(|(key, value)| row(Some(key), value));
                output::print_json(&rows.collect::<Vec<_>>())?;
            } else {
                let lines = entries
                    .iter()
                    .map(|(key, value)| format!("{} {}\n", shown(key), shown(value)));
                output::print(&lines.collect::<String>())?;
            }
        }
    }
    Ok(SUCCESS)
}

fn absent(key: &str) -> Outcome {
    output::complain(&format!("the map has no key {key}"));
    Ok(REFUSED)
}

fn row(key: Option<&[u8]>, value: &[u8]) -> Row {
    Row {
        key: key.map(hex),
        value: hex(value),
        number: word(value),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The number that so many bytes are, of 1, 2, 4 or 8.
fn word(bytes: &[u8]) -> Option<u64> {
    matches!(bytes.len(), 1 | 2 | 4 | 8).then(|| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    })
}

/// Bytes as they may be given again: a number where they are as long as one.
fn shown(bytes: &[u8]) -> String {
    match word(bytes) {
        Some(number) => number.to_string(),
        None => format!("hex:{}", hex(bytes)),
    }
}

/// The bytes that a word stands for, `size` of them.
fn bytes(word: &str, size: u32) -> Result<Vec<u8>, Failure> {
    let size = size as usize;
    let wrong = |why: String| Failure::unusable(format!("`{word}`: {why}"));
    let (mut bytes, fill) = if let Some(text) = word.strip_prefix('=') {
        (text.as_bytes().to_vec(), 0)
    } else if let Some(digits) = word.strip_prefix("hex:") {
        let pairs = digits.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair)
                .ok()
                .filter(|pair| pair.len() == 2);
            pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())
        });
        let pairs: Option<Vec<u8>> = pairs.collect();
        let pairs = pairs.filter(|pairs| pairs.len() == size);
        let why = || {
            wrong(format!(
                "{size} bytes are needed, two hexadecimal digits each"
            ))
        };
        (pairs.ok_or_else(why)?, 0)
    } else {
        let value = number::integer(word);
        let value = value.ok_or_else(|| wrong("no integer, and neither hex:… nor =TEXT".into()))?;
        let fill = if value < 0 { 0xff } else { 0 };
        let bits = (8 * size).min(64);
        if value >= 1 << bits || value < -(1 << (bits - 1)) {
            return Err(wrong(format!("it does not fit {size} bytes")));
        }
        let mut bytes = (value as u64).to_le_bytes().to_vec();
        bytes.truncate(size);
        (bytes, fill)
    };
    if bytes.len() > size {
        return Err(wrong(format!("there is room for {size} bytes")));
    }
    bytes.resize(size, fill);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_bytes() {
        for (word, size, wanted) in [
            ("1", 4, Some(vec![1, 0, 0, 0])),
            ("-1", 3, Some(vec![255; 3])),
            ("256", 1, None),
            ("255", 1, Some(vec![255])),
            ("-129", 1, None),
            ("-128", 1, Some(vec![0x80])),
            ("18446744073709551615", 8, Some(vec![255; 8])),
            ("7", 12, Some(vec![7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
            ("hex:0a00", 2, Some(vec![10, 0])),
            ("hex:0a0", 2, None),
            ("hex:0a", 2, None),
            ("hex:zz", 1, None),
            ("=ab", 3, Some(vec![b'a', b'b', 0])),
            ("=abcd", 3, None),
            ("x", 4, None),
        ] {
            assert_eq!(bytes(word, size).ok(), wanted, "{word}");
        }
        assert_eq!(shown(&[1, 1]), "257");
        assert_eq!(shown(&[1, 2, 3]), "hex:010203");
    }
}
