//! How a case of `tests/attacks` is read; the README there says how one is written.

use postern_verifier::{Layout, Profile, Segment};

/// One case of a file.
pub struct Case {
    pub name: String,
    pub expect: String,
    pub profile: Profile,
    pub layout: Layout,
    /// Text; `None` is a byte to draw at random.
    pub bytes: Vec<Option<u8>>,
}

/// The case that the lines between two of `---` are.
pub fn parse(text: &str) -> Result<Case, String> {
    let mut case = Case {
        name: String::new(),
        expect: String::new(),
        profile: Profile::User,
        layout: Layout::new(2),
        bytes: Vec::new(),
    };
    let (mut assembly, mut bare) = (String::new(), false);
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or("").trim();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "" => {}
            "case" => case.name = rest.into(),
            "expect" => case.expect = rest.into(),
            "bounded" => case.profile = Profile::Bounded,
            "kernel" => {
                case.profile = Profile::Kernel;
                case.layout.segment = Segment::Fs;
            }
            "fs" => case.layout.segment = Segment::Fs,
            "imports" => {
                case.layout = Layout {
                    imports: rest.parse().map_err(|_| line)?,
                    ..case.layout
                }
            }
            "bare" => bare = true,
            "hex" => {
                case.bytes.extend(
                    assemble(&std::mem::take(&mut assembly))?
                        .into_iter()
                        .map(Some),
                );
                for byte in rest.split_whitespace() {
                    case.bytes.push(match byte {
                        "??" => None,
                        _ => Some(u8::from_str_radix(byte, 16).map_err(|_| line)?),
                    });
                }
            }
            "asm" => assembly += &format!("{rest}\n"),
            _ => return Err(format!("unknown line: {line}")),
        }
    }
    case.bytes
        .extend(assemble(&assembly)?.into_iter().map(Some));
    if !bare {
        case.bytes.push(Some(0xc3));
    }
    match case.name.is_empty() || case.expect.is_empty() {
        true => Err("a case needs a name and an expectation".into()),
        false => Ok(case),
    }
}

/// What GNU as makes of the lines.
fn assemble(assembly: &str) -> Result<Vec<u8>, String> {
    use std::process::Command;
    if assembly.is_empty() {
        return Ok(Vec::new());
    }
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("case.s"), assembly).map_err(|error| error.to_string())?;
    let steps = [
        Command::new("as")
            .arg("-o")
            .args([path("case.o"), path("case.s")])
            .output(),
        Command::new("objcopy")
            .args(["-O", "binary", "-j", ".text"])
            .args([path("case.o"), path("case.bin")])
            .output(),
    ];
    for step in steps {
        let output = step.map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
    }
    std::fs::read(path("case.bin")).map_err(|error| error.to_string())
}
