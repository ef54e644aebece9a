//! Why the kernel refused an image, in the words that this process has for it.

use std::fmt;

use postern_image::ImageFile;
use postern_kernel_judge::{self as judge, Verdict};
use postern_verifier::Rule;

use crate::abi;
use crate::image::Image;

/// Why the kernel refused an image, in the words of `postern verify --kernel`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What the image is called.
    pub name: String,
    /// The verdict as the module gave it.
    pub verdict: Verdict,
    /// Where: offset, function and source line, or what of the file.
    pub place: Option<String>,
    /// The rule's identifier, if one of the verifier's is broken.
    pub rule: Option<&'static str>,
    /// What is wrong, and what to do.
    pub reason: String,
}

impl Refusal {
    /// The words for a verdict about an image.
    pub fn new(image: &Image, verdict: Verdict) -> Refusal {
        let offset = u32::try_from(verdict.at).unwrap_or(u32::MAX);
        let (place, rule, reason) = match verdict.verdict {
            judge::NO_IMAGE => no_image(image, &verdict),
            judge::REFUSED => match Rule::ALL.get(verdict.rule as usize) {
                Some(rule) => (
                    Some(image.place(offset)),
                    Some(rule.name()),
                    rule.sentence().to_owned(),
                ),
                None => (Some(image.place(offset)), None, unknown("rule", &verdict)),
            },
            judge::EXPORT_MISPLACED => {
                let (name, offset) = image.export(verdict.at).unwrap_or_default();
                let reason = format!(
                    "export `{name}` is not at the start of an instruction; export functions only."
                );
                (Some(image.place(offset)), Some("export"), reason)
            }
            judge::OUT_OF_MEMORY => {
                let reason = "the kernel had no memory to judge it; unload something";
                (None, None, reason.to_owned())
            }
            abi::NO_SERVICE => {
                let name = image.import(offset).unwrap_or_default();
                let reason = format!(
                    "import {offset} `{name}`: the kernel has no such service for these rights; see its table for the right that it needs, and give it when you load"
                );
                (None, None, reason)
            }
            _ => (None, None, unknown("verdict", &verdict)),
        };
        Refusal {
            name: image.name().to_owned(),
            verdict,
            place,
            rule,
            reason,
        }
    }
}

/// What the parser of this process says, if it says the same.
fn no_image(image: &Image, verdict: &Verdict) -> (Option<String>, Option<&'static str>, String) {
    let here = ImageFile::parse(image.bytes()).err();
    match here.filter(|error| Verdict::from(error.clone()) == *verdict) {
        Some(error) => (None, None, error.to_string()),
        None => (None, None, unknown("problem", verdict)),
    }
}

fn unknown(what: &str, verdict: &Verdict) -> String {
    format!(
        "{what} {} at {:#x}, which this program does not know: the module is of another version",
        match what {
            "verdict" => verdict.verdict,
            _ => verdict.rule,
        },
        verdict.at
    )
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        if let Some(place) = &self.place {
            write!(f, "refused at {place}: ")?;
        }
        if let Some(rule) = self.rule {
            write!(f, "{rule}: ")?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Refusal {}
