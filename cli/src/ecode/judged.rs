//! Sources as they are compiled, linked, and judged together.

use std::path::{Path, PathBuf};
use std::time::Instant;

use postern_ecode::{Compiler, Errors, Linked, Object};
use postern_image::ImageFile;
use postern_verifier::Profile;

use crate::judgement::{FactsView, Refusal, Subject};
use crate::output::{self, Failure};

/// A source, and what came of it.
pub struct Source {
    pub path: PathBuf,
    pub text: String,
    pub result: Result<Object, Errors>,
    /// How long the compiler took.
    pub seconds: f64,
}

/// What the sources are together.
pub enum Verdict {
    /// The extension, and what the verifier found. How long that took is in seconds.
    Accepted(Linked, FactsView, f64),
    /// A source has errors.
    Errors,
    /// The sources do not fit together.
    Apart(String),
    /// The compiler made what the verifier does not accept.
    Refused(Box<Refusal>),
}

/// Reads and compiles a source.
pub fn source(compiler: &mut Compiler, path: &Path) -> Result<Source, Failure> {
    let bytes = output::read(path)?;
    let start = Instant::now();
    let result = compiler.compile(&bytes);
    let seconds = start.elapsed().as_secs_f64();
    // To be shown; what is not UTF-8 stands in comments and strings.
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Source {
        path: path.to_owned(),
        text,
        result,
        seconds,
    })
}

/// Links what the sources became, and has the verifier judge it.
pub fn together(sources: &[Source], stack_log2: u32, kernel: bool) -> Verdict {
    let units: Vec<Object> = sources
        .iter()
        .filter_map(|source| source.result.as_ref().ok().cloned())
        .collect();
    if units.len() < sources.len() {
        return Verdict::Errors;
    }
    let names: Vec<_> = sources.iter().map(|s| s.path.to_string_lossy()).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let linked = match kernel {
        true => postern_ecode::link_for_kernel(&units, stack_log2),
        false => postern_ecode::link(&units, stack_log2),
    };
    let mut linked = match linked {
        Ok(linked) => linked,
        Err(error) => return Verdict::Apart(error.show(&names)),
    };
    linked.name_lines(&units, &names);
    let image = match ImageFile::parse(&linked.file) {
        Ok(image) => image,
        Err(error) => return Verdict::Apart(error.to_string()),
    };
    let subject = Subject::image(&image, &linked.file);
    let start = Instant::now();
    let profile = if kernel {
        Profile::Kernel
    } else {
        Profile::User
    };
    match subject.judge(profile) {
        Ok(facts) => {
            let seconds = start.elapsed().as_secs_f64();
            Verdict::Accepted(linked, FactsView::from(&facts), seconds)
        }
        Err(refusal) => Verdict::Refused(refusal),
    }
}
