//! Lines that programs in a machine say for this side. All others are for people.
//!
//! | line | what |
//! |---|---|
//! | `figure NAME NUMBER` | a figure: instructions, if nothing else is said |
//! | `note TEXT` | what belongs to figures in words |

use std::collections::BTreeMap;

/// Figures by their names.
pub type Figures = BTreeMap<String, u64>;

/// The figures among lines; the last one of a name counts.
pub fn figures<'a>(lines: impl IntoIterator<Item = &'a str>) -> Figures {
    let found = lines.into_iter().filter_map(|line| {
        let mut words = line.strip_prefix("figure ")?.split_whitespace();
        let (name, number) = (words.next()?, words.next()?);
        Some((name.to_owned(), number.parse().ok()?))
    });
    found.collect()
}

/// The notes among lines.
pub fn notes<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let found = lines
        .into_iter()
        .filter_map(|line| line.strip_prefix("note "));
    found.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_told_from_prose() {
        let lines = [
            "figure null 30",
            "a figure null 31",
            "figure",
            "figure x",
            "figure y z",
            "figure map 7 each",
        ];
        let found = figures(lines);
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("map".into(), 7), ("null".into(), 30)]
        );
        assert_eq!(
            notes(["note retbleed: untrained", "noted"]),
            ["retbleed: untrained"]
        );
    }
}
