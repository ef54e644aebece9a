//! Images that programs in the machine ask the kernel's judge about, each with what the same judge
//! says here: the kernel is to say the same.

use postern_image::builder::ImageBuilder;
use postern_kernel_judge::{Verdict, image};
use postern_verifier::Segment;
use thiserror::Error;

use crate::place;

/// The images by the names of their files in the archive.
pub fn all() -> Vec<(&'static str, Vec<u8>)> {
    let built = |text: &[u8]| {
        let mut builder = ImageBuilder::new(text);
        builder.segment(Segment::Fs).export("f", 0, None);
        builder.build().unwrap_or_default()
    };
    // lea 2(%rdi), %eax; ret
    let accepted = built(&[0x8d, 0x47, 0x02, 0xc3]);
    // mov (%rdi), %rax; ret: an address that nothing bounds
    let refused = built(&[0x48, 0x8b, 0x07, 0xc3]);
    // Something long, so that the judge has work: ten thousand additions.
    let mut long = [0x83, 0xc0, 0x01].repeat(10_000);
    long.push(0xc3);
    let long = built(&long);
    let mut broken = accepted.clone();
    broken.truncate(accepted.len() / 2);
    vec![
        ("judge.accepted", accepted),
        ("judge.long", long),
        ("judge.refused", refused),
        ("judge.broken", broken),
        ("judge.empty", Vec::new()),
    ]
}

/// Handlers for the network, of E-code in `programs/handlers`: the names of their files in the
/// archive and their images.
pub fn handlers() -> Result<Vec<(String, Vec<u8>)>, HandlerError> {
    let folder = place::sources().join("programs/handlers");
    let (mut sources, mut headers) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(&folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.into_owned();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("c") => sources.push((name, std::fs::read(&path)?)),
            Some("h") => headers.push((name, std::fs::read(&path)?)),
            _ => {}
        }
    }
    let mut handlers = Vec::new();
    for (name, source) in sources {
        let image = handler(&source, &headers);
        let image = image.map_err(|why| HandlerError::Source(name.clone(), why))?;
        let stem = name.trim_end_matches(".c");
        handlers.push((format!("handler.{stem}"), image));
    }
    handlers.sort();
    Ok(handlers)
}

/// The image of a handler's source, which may include headers by their names; what the compiler
/// says if there is none.
pub fn handler(source: &[u8], headers: &[(String, Vec<u8>)]) -> Result<Vec<u8>, String> {
    let options = postern_ecode::Options {
        kernel: true,
        ..postern_ecode::Options::default()
    };
    let mut compiler = postern_ecode::Compiler::new(options);
    for (name, text) in headers {
        compiler.header(name, text.as_slice());
    }
    let object = compiler.compile(source);
    let object = object.map_err(|errors| format!("{errors:?}"))?;
    let linked = postern_ecode::link_for_kernel(&[object], STACK_LOG2);
    Ok(linked.map_err(|error| error.to_string())?.file)
}

/// Handlers have a page of stack.
const STACK_LOG2: u32 = 12;

/// Why there are no images of handlers.
#[derive(Debug, Error)]
pub enum HandlerError {
    /// A source is not there.
    #[error("programs/handlers: {0}")]
    Read(#[from] std::io::Error),
    /// A source is wrong.
    #[error("programs/handlers/{0}: {1}")]
    Source(String, String),
}

/// What the judge says of an image, as the kernel stores it: four words.
pub fn verdict(file: &[u8]) -> Vec<u8> {
    let Verdict {
        verdict,
        rule,
        place,
        depth,
        at,
        instructions,
        longest_path,
    } = image(file);
    let halves = [verdict, rule, place, depth];
    let mut bytes: Vec<u8> = halves.into_iter().flat_map(u32::to_le_bytes).collect();
    bytes.extend(at.to_le_bytes());
    bytes.extend(instructions.to_le_bytes());
    bytes.extend(longest_path.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_are_accepted() {
        let all = handlers().unwrap();
        assert!(all.len() > 5);
        for (name, file) in all {
            let verdict = image(&file);
            let accepted = verdict.verdict == postern_kernel_judge::ACCEPTED;
            assert!(accepted, "{name}: {verdict:?}");
            // These run with interrupts off: neither loops nor long paths.
            let short = (1..=16_384).contains(&verdict.longest_path);
            let stem = name.trim_start_matches("handler.");
            let wanted = ["pong", "pong_told", "lock", "count", "pass", "vector"].contains(&stem);
            assert!(short || !wanted, "{name}: {verdict:?}");
        }
    }

    #[test]
    fn verdicts_are_what_the_names_say() {
        for (name, file) in all() {
            let accepted = image(&file).verdict == postern_kernel_judge::ACCEPTED;
            let named = matches!(name, "judge.accepted" | "judge.long");
            assert_eq!(accepted, named, "{name}: {:?}", image(&file));
            assert_eq!(verdict(&file).len(), 32);
        }
    }
}
