//! What clients and sites bring as plugins becomes something that a namespace takes: E-code is
//! compiled, all is judged and measured.

use crate::problem::Problem;
use http::StatusCode;
use postern::{Facts, Image, Namespace};
use postern_ecode::{Compiler, Limits, Options, Section};
use postern_image::ImageFile;
use postern_verifier::window::STACK_LOG2;
use postern_verifier::{Profile, buffer_len, verify};
use serde_json::{Value, json};
use std::time::Instant;

/// The header for plugins.
pub const PICTURE_H: &str = include_str!("../include/picture.h");

/// The types of a plugin's function, as signatures have them.
pub const PICTURES: &str = "i(p)";

/// What a plugin is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginKind {
    /// E-code.
    Ecode,
    /// An object of `postern cc -c`.
    Object,
    /// An extension file.
    Image,
    /// A shared object, which nothing confines.
    Native,
}

impl PluginKind {
    /// What bytes are, by how they begin.
    pub fn of(bytes: &[u8]) -> PluginKind {
        let elf = bytes.starts_with(b"\x7fELF");
        // e_type 1 is a relocatable file.
        match elf {
            false => PluginKind::Ecode,
            true if bytes.get(16..18) == Some(&[1, 0]) => PluginKind::Object,
            true => PluginKind::Image,
        }
    }

    /// The name in answers.
    pub fn name(self) -> &'static str {
        match self {
            PluginKind::Ecode => "ecode",
            PluginKind::Object => "object",
            PluginKind::Image => "image",
            PluginKind::Native => "native",
        }
    }
}

/// E-code that compiles, or an image that is accepted.
#[derive(Debug)]
pub struct Artifact {
    /// What is created in the namespace: the source with the header in it.
    pub text: String,
    /// An extension file with the same functions, to show.
    pub file: Vec<u8>,
    /// Offsets of its functions, and their names.
    pub symbols: Vec<(u32, String)>,
    /// Offsets of its lines, and their numbers.
    pub lines: Vec<(u32, u32)>,
    /// Functions that are not static.
    pub functions: Vec<String>,
    /// Bytes of machine code.
    pub code_bytes: u64,
    /// What the verifier found.
    pub facts: Value,
    /// Time of the compiler.
    pub compile_ns: u64,
    /// Time of the verifier.
    pub verify_ns: u64,
}

/// The function that a plugin has for pictures.
pub fn function(name: &str) -> String {
    name.replace('-', "_")
}

/// Whether a name can be a plugin's.
pub fn is_name(name: &str) -> bool {
    let letter = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(letter)
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The facts as JSON.
pub fn facts(facts: &Facts) -> Value {
    json!({
        "instructions": facts.instructions,
        "x87": facts.x87,
        "xmm": facts.xmm,
        "float": facts.float,
        "ymm": facts.ymm,
        "indirect": facts.indirect,
        "gates": facts.gates,
        "links": facts.links,
    })
}

/// Compiles a plugin's E-code of at most so many bytes, with at most so many bytes of variables,
/// and has it judged.
///
/// # Errors
/// What is wrong with it.
pub fn compile(name: &str, source: &[u8], most: u64, variables: u64) -> Result<Artifact, Problem> {
    let limit = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    let text = std::str::from_utf8(source).map_err(|_| {
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "this is neither E-code, which is UTF-8, nor an ELF file",
        )
    })?;
    if text.len() as u64 > most {
        let text = format!("the source is longer than {most} bytes");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, text));
    }
    let text = with_header(text);
    let defaults = Limits::default();
    let limits = Limits {
        data: limit(variables).min(defaults.data),
        bss: limit(variables).min(defaults.bss),
        ..defaults
    };
    let mut compiler = Compiler::new(Options {
        limits,
        replaceable: true,
        ..Options::default()
    });
    let began = Instant::now();
    let unit = compiler.compile(&text).map_err(|e| Problem::source(&e))?;
    let compile_ns = nanoseconds(began);
    let functions = unit.symbols.iter();
    let functions = functions
        .filter(|s| s.exported && s.section == Section::Text)
        .map(|s| s.name.clone())
        .collect();
    let wrong = |e: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, e);
    if let Some(symbol) = unit.symbol(&function(name))
        && symbol.signature != PICTURES
    {
        let found = &symbol.signature;
        let text = format!(
            "`{0}` is `{found}`; a plugin's function is `int {0}(struct picture *)`",
            symbol.name
        );
        return Err(wrong(text));
    }
    let code_bytes = unit.text.len() as u64;
    let texts = unit.symbols.iter().filter(|s| s.section == Section::Text);
    let symbols: Vec<_> = texts.map(|s| (s.offset, s.name.clone())).collect();
    let lines = unit.lines.clone();
    let linked = postern_ecode::link(&[unit], STACK_LOG2.1).map_err(|e| wrong(e.to_string()))?;
    let image = ImageFile::parse(&linked.file).map_err(|e| wrong(e.to_string()))?;
    let start = linked.places.first().map_or(0, |place| place.text);
    let (mapped, layout) = (image.mapped_text(), image.verifier_layout());
    let mut buffer = vec![0; buffer_len(mapped.len())];
    let began = Instant::now();
    let judged = verify(&mapped, &layout, Profile::User, &mut buffer);
    let verify_ns = nanoseconds(began);
    let judged = judged.map_err(|violation| wrong(violation.to_string()))?;
    Ok(Artifact {
        functions,
        code_bytes,
        facts: facts(&judged),
        compile_ns,
        verify_ns,
        text,
        symbols: symbols
            .into_iter()
            .map(|(at, name)| (start + at, name))
            .collect(),
        lines: lines
            .into_iter()
            .map(|(at, line)| (start + at, line))
            .collect(),
        file: linked.file,
    })
}

/// Has an extension file judged.
///
/// # Errors
/// Why it is refused.
pub fn image(file: &[u8]) -> Result<(Artifact, Image), Problem> {
    let began = Instant::now();
    let image = Image::from_bytes(file);
    let verify_ns = nanoseconds(began);
    let image = image.map_err(|e| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, e.to_string()))?;
    let tables = image.tables();
    let artifact = Artifact {
        text: String::new(),
        file: file.to_vec(),
        symbols: Vec::new(),
        lines: Vec::new(),
        functions: tables.exports.iter().map(|e| e.name.to_string()).collect(),
        code_bytes: ImageFile::parse(file).map_or(0, |file| file.mapped_text().len() as u64),
        facts: facts(image.facts()),
        compile_ns: 0,
        verify_ns,
    };
    Ok((artifact, image))
}

/// Takes an object of `postern cc -c` into a namespace of its own.
///
/// # Errors
/// Why it is refused.
pub fn object(
    name: &str,
    file: &[u8],
    namespace: Namespace,
) -> Result<(Artifact, Namespace), Problem> {
    let left = namespace.counters().code_left;
    let began = Instant::now();
    let created = namespace.create_object(name, file, &[(&function(name), PICTURES)])?;
    let artifact = Artifact {
        text: String::new(),
        file: Vec::new(),
        symbols: Vec::new(),
        lines: Vec::new(),
        functions: created.new,
        code_bytes: left - namespace.counters().code_left,
        facts: Value::Null,
        compile_ns: 0,
        verify_ns: nanoseconds(began),
    };
    Ok((artifact, namespace))
}

/// The source with the header where it is included, in one line, so that all lines keep their
/// numbers.
fn with_header(source: &str) -> String {
    let mut text = String::with_capacity(source.len() + 1024);
    let mut there = false;
    for line in source.split_inclusive('\n') {
        if !includes(line) {
            text.push_str(line);
            continue;
        }
        if !there {
            text.push_str(&header());
            there = true;
        }
        if line.ends_with('\n') {
            text.push('\n');
        }
    }
    text
}

fn includes(line: &str) -> bool {
    let rest = line.trim_start().strip_prefix('#');
    let rest = rest.and_then(|rest| rest.trim_start().strip_prefix("include"));
    let name = rest.map(|rest| rest.trim_start());
    name.is_some_and(|name| name.starts_with("\"picture.h\"") || name.starts_with("<picture.h>"))
}

/// The header's declarations in one line.
fn header() -> String {
    let mut text = String::new();
    let mut rest = PICTURE_H;
    while let Some((code, comment)) = rest.split_once("/*") {
        text.push_str(code);
        rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

/// What a source says of its parameters, in the comment at its beginning.
pub fn parameters(source: &str) -> Option<String> {
    let comment = source.trim_start().strip_prefix("/*")?.split("*/").next()?;
    let line = comment.lines().find_map(|line| {
        line.trim_start_matches([' ', '\t', '*'])
            .strip_prefix("parameters:")
    })?;
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_takes_one_line() {
        let text = with_header("// one\n  # include \"picture.h\" // two\nint three;\n");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            (lines.len(), lines[0], lines[2]),
            (3, "// one", "int three;")
        );
        assert!(lines[1].contains("struct picture { unsigned width, height;"));
        assert_eq!(with_header("int a;"), "int a;");
        let artifact = compile("x", text.as_bytes(), 1 << 16, 1 << 16).unwrap();
        assert_eq!(artifact.functions, Vec::<String>::new());
    }

    #[test]
    fn parameters_are_in_the_first_comment() {
        let text = "/* Half.\n * parameters: scale(n)  \n */\nint x; /* parameters: no */";
        assert_eq!(parameters(text).as_deref(), Some("scale(n)"));
        assert_eq!(parameters("int x; /* parameters: no */"), None);
    }

    #[test]
    fn names() {
        for (name, fine) in [
            ("gray", true),
            ("a-b_9", true),
            ("", false),
            ("a/b", false),
            ("ä", false),
        ] {
            assert_eq!(is_name(name), fine, "{name}");
        }
        assert!(!is_name(&"x".repeat(65)));
        assert_eq!(function("a-b"), "a_b");
    }
}
