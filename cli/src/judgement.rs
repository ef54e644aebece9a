//! What the verifier says of a text, and how it is told: shared by `verify` and `inspect`.

use postern_image::ImageFile;
use postern_image::debug::{Lines, Symbols};
use postern_verifier::{Bounds, Facts, Layout, Profile, Starts, Violation};
use serde::Serialize;

use crate::output::Style;
use postern_toolchain::disassembly;

/// Text to be judged, with all that is known about it.
pub struct Subject<'a> {
    /// The text as it is mapped.
    pub text: Vec<u8>,
    /// Where it lies.
    pub layout: Layout,
    /// The file that it comes from, for names; empty for bare code.
    pub file: &'a [u8],
    /// Name and offset of each export.
    pub exports: Vec<(String, u32)>,
    /// What the bounded profile asks for.
    pub bounds: Bounds,
}

impl<'a> Subject<'a> {
    /// The text of an image.
    pub fn image(image: &ImageFile<'_>, file: &'a [u8]) -> Subject<'a> {
        let exports = image
            .exports()
            .iter()
            .map(|e| (e.name.to_owned(), e.offset))
            .collect();
        Subject {
            text: image.mapped_text(),
            layout: image.verifier_layout(),
            file,
            exports,
            bounds: Bounds::MAX,
        }
    }

    /// Bare machine code.
    pub fn raw(text: Vec<u8>, layout: Layout) -> Subject<'static> {
        Subject {
            text,
            layout,
            file: &[],
            exports: Vec::new(),
            bounds: Bounds::MAX,
        }
    }

    /// A buffer for [`Subject::judge_with`].
    pub fn buffer(&self, profile: Profile) -> Vec<u64> {
        let words = match profile {
            Profile::User => postern_verifier::buffer_len(self.text.len()),
            Profile::Bounded | Profile::Kernel => {
                postern_verifier::bounded_buffer_len(self.text.len())
            }
        };
        vec![0; words]
    }

    /// The verifier's judgement of the text alone.
    pub fn judge_with(&self, profile: Profile, buffer: &mut [u64]) -> Result<Facts, Violation> {
        let (text, layout) = (&self.text, &self.layout);
        match profile {
            Profile::User | Profile::Kernel => {
                postern_verifier::verify(text, layout, profile, buffer)
            }
            Profile::Bounded => postern_verifier::verify_within(text, layout, self.bounds, buffer),
        }
    }

    /// The judgement of text and exports, as the loader makes it.
    pub fn judge(&self, profile: Profile) -> Result<Facts, Box<Refusal>> {
        let mut buffer = self.buffer(profile);
        let facts = self
            .judge_with(profile, &mut buffer)
            .map_err(|violation| self.refusal(violation))?;
        let starts = Starts::new(&buffer, self.text.len(), self.layout.text);
        match self
            .exports
            .iter()
            .find(|(_, offset)| !starts.contains(*offset))
        {
            None => Ok(facts),
            Some((name, offset)) => {
                let why = format!(
                    "export `{name}` is not at the start of an instruction; export functions only."
                );
                Err(self.located(*offset, "export", why))
            }
        }
    }

    fn refusal(&self, violation: Violation) -> Box<Refusal> {
        self.located(
            violation.offset,
            violation.rule.name(),
            violation.rule.sentence().to_owned(),
        )
    }

    /// A refusal with all that can be said about its place.
    fn located(&self, offset: u32, rule: &'static str, sentence: String) -> Box<Refusal> {
        let symbols = Symbols::parse(self.file);
        let symbol = symbols.at(offset);
        let source = Lines::parse(self.file)
            .map(|lines| lines.at(offset))
            .unwrap_or_default();
        let start = symbol.as_ref().map_or(self.layout.text, |s| s.start);
        let around = disassembly::around(&self.text, self.layout.text, start, offset, 4, 3);
        let code = around.iter().map(|line| Code {
            offset: line.offset,
            bytes: line.bytes.iter().map(|b| format!("{b:02x}")).collect(),
            text: line.text.clone(),
        });
        Box::new(Refusal {
            offset,
            rule,
            sentence,
            symbol: symbol.map(|s| s.to_string()),
            source: source.iter().map(|line| line.to_string()).collect(),
            code: code.collect(),
            columns: around
                .iter()
                .map(|line| (line.offset, line.columns()))
                .collect(),
        })
    }
}

/// Why a text was refused, and where.
#[derive(Debug, Serialize)]
pub struct Refusal {
    /// Window offset of the instruction.
    pub offset: u32,
    /// The rule's identifier.
    pub rule: &'static str,
    /// What is wrong and what to do.
    pub sentence: String,
    /// Function and distance from its start.
    pub symbol: Option<String>,
    /// Source lines, innermost first.
    pub source: Vec<String>,
    /// The instructions around.
    pub code: Vec<Code>,
    #[serde(skip)]
    columns: Vec<(u32, String)>,
}

/// An instruction in a [`Refusal`].
#[derive(Debug, Serialize)]
pub struct Code {
    offset: u32,
    bytes: String,
    text: String,
}

impl Refusal {
    /// The place: offset, function, source line.
    pub fn place(&self) -> String {
        let mut place = format!("{:#x}", self.offset);
        if let Some(symbol) = &self.symbol {
            place += &format!(" in {symbol}");
        }
        if let Some(source) = self.source.first() {
            place += &format!(", {source}");
        }
        place
    }

    /// Rule, sentence and disassembly, in lines.
    pub fn explanation(&self, style: Style) -> String {
        let mut text = format!("  {}: {}\n", style.bold(self.rule), self.sentence);
        for (offset, columns) in &self.columns {
            if *offset == self.offset {
                text += &format!("{}\n", style.red(&format!("> {columns}")));
            } else {
                text += &format!("  {columns}\n");
            }
        }
        text
    }
}

/// The verifier's facts in a form for programs.
#[derive(Debug, Serialize)]
pub struct FactsView {
    instructions: u32,
    x87: bool,
    xmm: bool,
    float: bool,
    ymm: bool,
    indirect: bool,
    gates: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_path: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_depth: Option<u32>,
}

impl From<&Facts> for FactsView {
    fn from(facts: &Facts) -> FactsView {
        let &Facts {
            instructions,
            x87,
            xmm,
            float,
            ymm,
            indirect,
            gates,
            longest_path,
            call_depth,
            ..
        } = facts;
        FactsView {
            instructions,
            x87,
            xmm,
            float,
            ymm,
            indirect,
            gates,
            longest_path,
            call_depth,
        }
    }
}

impl FactsView {
    /// One line for people.
    pub fn sentence(&self) -> String {
        let state = [(self.x87, "x87"), (self.xmm, "xmm"), (self.ymm, "ymm")];
        let state: Vec<&str> = state
            .into_iter()
            .filter_map(|(used, name)| used.then_some(name))
            .collect();
        let state = if state.is_empty() {
            "general registers only".to_owned()
        } else {
            format!("uses {}", state.join(", "))
        };
        let mut text = format!("{} instructions, {state}", self.instructions);
        if self.indirect {
            text += ", indirect branches";
        }
        if self.gates {
            text += ", calls services";
        }
        if let Some(longest) = self.longest_path {
            text += &format!(", at most {longest} instructions a call");
        }
        match self.call_depth {
            Some(0) => text += ", which calls nothing",
            Some(depth) => text += &format!(", calls nested at most {depth} deep"),
            None => {}
        }
        text
    }
}
