//! The tests that cannot pass, each with its reason: `exclusions.txt`.
//!
//! A line is `test | option sets or * | class | reason`. `#` begins a comment.

/// Why one test is not expected to pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exclusion {
    /// The test's name.
    pub test: String,
    /// Names of option sets; empty is all.
    pub sets: Vec<String>,
    /// One word for the table.
    pub class: String,
    /// The reason.
    pub reason: String,
}

/// A line that is not understood.
#[derive(Debug, thiserror::Error)]
#[error("exclusions, line {line}: {reason}")]
pub struct Malformed {
    line: usize,
    reason: &'static str,
}

/// All of the file.
#[derive(Clone, Debug, Default)]
pub struct Exclusions(Vec<Exclusion>);

impl Exclusions {
    /// Those that ship with this crate.
    ///
    /// # Errors
    /// A line that is not understood.
    pub fn ours() -> Result<Self, Malformed> {
        Self::parse(include_str!("../exclusions.txt"))
    }

    /// Reads the file's text.
    ///
    /// # Errors
    /// A line that is not understood.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let mut all: Vec<Exclusion> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let malformed = |reason| Malformed {
                line: index + 1,
                reason,
            };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let parts: Vec<&str> = line.splitn(4, '|').map(str::trim).collect();
            let &[test, sets, class, reason] = parts.as_slice() else {
                return Err(malformed("expected `test | option sets | class | reason`"));
            };
            if reason.is_empty() || class.is_empty() || class.contains(' ') {
                return Err(malformed("a class is one word, a reason some"));
            }
            let sets = match sets {
                "*" => Vec::new(),
                _ => sets.split_whitespace().map(str::to_owned).collect(),
            };
            all.push(Exclusion {
                test: test.to_owned(),
                sets,
                class: class.to_owned(),
                reason: reason.to_owned(),
            });
        }
        Ok(Self(all))
    }

    /// Why `test` is excluded from the option set `set`.
    pub fn find(&self, test: &str, set: &str) -> Option<&Exclusion> {
        self.0.iter().find(|exclusion| {
            exclusion.test == test
                && (exclusion.sets.is_empty() || exclusion.sets.iter().any(|s| s == set))
        })
    }

    /// Those that name no test of `names`.
    pub fn unknown<'a>(&'a self, names: &[&str]) -> Vec<&'a str> {
        let known = |exclusion: &&Exclusion| !names.contains(&exclusion.test.as_str());
        self.0
            .iter()
            .filter(known)
            .map(|e| e.test.as_str())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let text =
            "# why\n\na | * | signals | needs kill\nieee/b | O0 O2 | x87 | control word | bits\n";
        let all = Exclusions::parse(text).unwrap();
        assert_eq!(all.find("a", "O3").unwrap().class, "signals");
        assert_eq!(
            all.find("ieee/b", "O2").unwrap().reason,
            "control word | bits"
        );
        assert!(all.find("ieee/b", "O3").is_none());
        assert_eq!(all.unknown(&["a"]), ["ieee/b"]);
        assert!(Exclusions::parse("a | * | no reason").is_err());
        assert!(Exclusions::parse("a | * | two words | reason").is_err());
    }

    #[test]
    fn ours_are_understood() {
        Exclusions::ours().unwrap();
    }
}
