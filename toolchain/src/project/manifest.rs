//! The description of an extension, `postern.toml`: its keys, and the line of what is wrong.
//!
//! The structures here are the reference: the book's table is compared with their fields.

use std::collections::BTreeMap;
use std::path::Path;

use postern_image::input;
use serde::Deserialize;

use super::ProjectError;

/// The name of the description in its folder.
pub const FILE_NAME: &str = "postern.toml";

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub extension: Extension,
    #[serde(default)]
    pub source: Vec<Source>,
    #[serde(default)]
    pub crates: BTreeMap<String, String>,
}

/// `[extension]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extension {
    pub name: String,
    #[serde(default)]
    pub sources: Vec<String>,
    #[serde(default)]
    pub include: Vec<String>,
    pub flags: Option<Vec<String>>,
    pub cxx: Option<bool>,
    pub stack: Option<Size>,
    pub heap: Option<Size>,
    pub exports: Option<Vec<String>>,
    #[serde(default)]
    pub link: Vec<String>,
    pub output: Option<String>,
}

/// `[[source]]`: more sources, with options of their own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    pub files: Vec<String>,
    #[serde(default)]
    pub include: Vec<String>,
    #[serde(default)]
    pub flags: Vec<String>,
}

/// A number of bytes: an integer, or text such as `"256K"`.
#[derive(Clone, Debug)]
pub struct Size(pub String);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Number(u64),
            Text(String),
        }
        let wrong = "a size is a number of bytes, or a text such as \"256K\" or \"16M\"";
        match Form::deserialize(deserializer) {
            Ok(Form::Number(bytes)) => Ok(Size(bytes.to_string())),
            Ok(Form::Text(text)) if is_size(&text) => Ok(Size(text)),
            _ => Err(serde::de::Error::custom(wrong)),
        }
    }
}

fn is_size(text: &str) -> bool {
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    !digits.is_empty()
        && text.len() - digits.len() <= 1
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads the description of `folder`.
pub fn read(folder: &Path) -> Result<Manifest, ProjectError> {
    let path = folder.join(FILE_NAME);
    let text = match input::read_text(&path, input::MAX_TEXT).map_err(std::io::Error::from) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(ProjectError::Missing(folder.to_owned()));
        }
        Err(source) => return Err(ProjectError::File { path, source }),
    };
    parse(&text).map_err(|(line, message)| ProjectError::Manifest {
        path,
        line,
        message,
    })
}

/// The description in `text`, or a line and what is wrong there.
fn parse(text: &str) -> Result<Manifest, (usize, String)> {
    let manifest: Manifest = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = 1 + text.as_bytes()[..at]
            .iter()
            .filter(|b| **b == b'\n')
            .count();
        (line, error.message().to_owned())
    })?;
    let name = &manifest.extension.name;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        let message = format!("`{name}`: a name has letters, digits, `-`, `_`, `.` and `+`");
        return Err((line_of(text, "name"), message));
    }
    for (name, version) in &manifest.crates {
        let numbers = version.split(['+', '-']).next().unwrap_or_default();
        let exact = numbers.split('.').count() == 3
            && numbers.split('.').all(|n| n.parse::<u64>().is_ok())
            && version.chars().all(plain);
        if !exact || !name.chars().all(plain) {
            let message = format!(
                "`{name} = \"{version}\"`: a crate is named with an exact version, such as \"1.2.3\""
            );
            return Err((line_of(text, name), message));
        }
    }
    if manifest.extension.sources.is_empty() && manifest.source.is_empty() {
        let message = "`sources` is missing: the C and C++ files, such as [\"*.c\"]".to_owned();
        return Err((line_of(text, "[extension]"), message));
    }
    Ok(manifest)
}

/// The line on which `key` stands first, for errors that the parser cannot see.
pub fn line_of(text: &str, key: &str) -> usize {
    let found = text.lines().position(|line| line.trim().starts_with(key));
    found.map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn error(text: &str) -> (usize, String) {
        parse(text).expect_err("an error")
    }

    #[test]
    fn errors_name_their_line() {
        let (line, message) = error("[extension]\nname = \"a\"\nsauces = [\"a.c\"]\n");
        assert_eq!(line, 3);
        assert!(
            message.contains("sauces") && message.contains("sources"),
            "{message}"
        );
        let (line, _) = error("[extension]\nname = \"a\"\n\nflags = 3\n");
        assert_eq!(line, 4);
        let (line, message) =
            error("[extension]\nname = \"a\"\nsources = [\"a.c\"]\nheap = \"12Q\"\n");
        assert_eq!(line, 4);
        assert!(message.contains("256K"), "{message}");
        let (line, _) = error("[extension]\nname = \"../a\"\nsources = [\"a.c\"]\n");
        assert_eq!(line, 2);
        let (line, message) = error(
            "[extension]\nname = \"a\"\nsources = [\"a.c\"]\n[crates]\nx = \"1.2.3\"\ny = \"1\"\n",
        );
        assert_eq!(line, 6);
        assert!(message.contains("exact"), "{message}");
        assert_eq!(error("[extension]\nname = \"a\"\n").0, 1);
    }

    #[test]
    fn a_whole_description() {
        let manifest = parse(
            "[extension]\nname = \"a\"\nsources = [\"*.c\"]\nstack = 4096\nheap = \"1M\"\n\
             [[source]]\nfiles = [\"b/*.c\"]\nflags = [\"-O3\"]\n[crates]\nx = \"1.2.3+4\"\n",
        )
        .expect("it is right");
        assert_eq!(manifest.extension.stack.expect("given").0, "4096");
        assert_eq!(manifest.source[0].flags, ["-O3"]);
    }
}
