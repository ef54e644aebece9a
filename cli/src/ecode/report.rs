//! What is said about sources: errors as gcc shows them, or how much code they became; for people
//! and as JSON.

use postern_ecode::{Diagnostic, Section};
use postern_image::Signature;
use serde::Serialize;

use super::judged::{Source, Verdict};
use crate::judgement::{FactsView, Refusal};
use crate::number;
use crate::output::{self, Failure, Style};

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    /// `accepted`, `errors` (in a source, or between them) or `refused` (by the verifier).
    verdict: &'static str,
    files: Vec<FileView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<&'a FactsView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    violation: Option<&'a Refusal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verify_microseconds: Option<f64>,
}

#[derive(Serialize)]
struct FileView<'a> {
    file: String,
    lines: usize,
    compile_microseconds: f64,
    text: usize,
    rodata: usize,
    data: usize,
    bss: u32,
    functions: Vec<FunctionView<'a>>,
    errors: Vec<ErrorView<'a>>,
    /// There may be more errors.
    more: bool,
}

#[derive(Serialize)]
struct FunctionView<'a> {
    name: &'a str,
    exported: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    c: Option<String>,
    bytes: u32,
}

#[derive(Serialize)]
struct ErrorView<'a> {
    rule: &'static str,
    line: u32,
    column: u32,
    length: u32,
    message: &'a str,
    help: &'a str,
    source_line: &'a str,
}

/// Says why there is no code.
pub fn refused(sources: &[Source], verdict: &Verdict, json: bool) -> Result<(), Failure> {
    if json {
        return print_json(sources, verdict);
    }
    let style = Style::stderr();
    for source in sources {
        let Err(errors) = &source.result else {
            continue;
        };
        for error in &errors.list {
            eprintln!(
                "{}",
                shown(error, &source.path.display().to_string(), style)
            );
        }
        if errors.more {
            eprintln!(
                "{}: too many errors; the rest is not shown",
                source.path.display()
            );
        }
    }
    match verdict {
        Verdict::Apart(error) => output::complain(error),
        Verdict::Refused(refusal) => {
            output::complain(&format!(
                "the verifier refuses what the compiler made, which is a bug of the compiler; please report it: {}",
                refusal.place()
            ));
            eprint!("{}", refusal.explanation(style));
        }
        Verdict::Errors | Verdict::Accepted(..) => {}
    }
    Ok(())
}

/// An error as it prints itself, with its file and, for a terminal, in gcc's colours.
fn shown(error: &Diagnostic, file: &str, style: Style) -> String {
    let text = error.to_string();
    let place = format!("{}:{}:", error.line, error.column);
    let rest = text.strip_prefix(&place).unwrap_or(&text);
    let rest = rest.strip_prefix(" error:").unwrap_or(rest);
    let mut lines: Vec<String> = rest.split('\n').map(str::to_owned).collect();
    let message = lines.remove(0);
    // Behind the source line stands what points into it.
    if let Some((margin, marks)) = lines.get(1).and_then(|line| line.split_once('^')) {
        lines[1] = format!("{margin}{}", style.red(&format!("^{marks}")));
    }
    lines.insert(
        0,
        format!(
            "{} {}{message}",
            style.bold(&format!("{file}:{place}")),
            style.red("error:")
        ),
    );
    lines.join("\n")
}

/// Says how much code it is.
pub fn accepted(sources: &[Source], verdict: &Verdict, json: bool) -> Result<(), Failure> {
    if json {
        return print_json(sources, verdict);
    }
    let mut text = String::new();
    for source in sources {
        let Ok(unit) = &source.result else { continue };
        let functions = unit.symbols.iter().filter(|s| s.section == Section::Text);
        text += &format!(
            "{}: {} lines, {} functions, {} of code, compiled in {}\n",
            source.path.display(),
            source.text.lines().count(),
            functions.count(),
            number::bytes(unit.text.len() as u64),
            number::duration(source.seconds),
        );
    }
    if let Verdict::Accepted(_, facts, seconds) = verdict {
        let word = Style::stdout().green("accepted");
        let time = number::duration(*seconds);
        text += &format!("{word} in {time}: {}\n", facts.sentence());
    }
    output::print(&text)
}

fn print_json(sources: &[Source], verdict: &Verdict) -> Result<(), Failure> {
    let mut report = Report {
        verdict: "errors",
        files: sources.iter().map(file_view).collect(),
        facts: None,
        error: None,
        violation: None,
        verify_microseconds: None,
    };
    match verdict {
        Verdict::Accepted(_, facts, seconds) => {
            report.verdict = "accepted";
            report.facts = Some(facts);
            report.verify_microseconds = Some(seconds * 1e6);
        }
        Verdict::Errors => {}
        Verdict::Apart(error) => report.error = Some(error),
        Verdict::Refused(refusal) => {
            report.verdict = "refused";
            report.violation = Some(refusal);
        }
    }
    output::print_json(&report)
}

fn file_view(source: &Source) -> FileView<'_> {
    let mut view = FileView {
        file: source.path.display().to_string(),
        lines: source.text.lines().count(),
        compile_microseconds: source.seconds * 1e6,
        text: 0,
        rodata: 0,
        data: 0,
        bss: 0,
        functions: Vec::new(),
        errors: Vec::new(),
        more: false,
    };
    match &source.result {
        Ok(unit) => {
            (view.text, view.rodata, view.data) =
                (unit.text.len(), unit.rodata.len(), unit.data.len());
            view.bss = unit.bss;
            let functions = unit.symbols.iter().filter(|s| s.section == Section::Text);
            view.functions = functions
                .map(|symbol| FunctionView {
                    name: &symbol.name,
                    exported: symbol.exported,
                    c: prototype(&symbol.name, &symbol.signature),
                    bytes: symbol.size,
                })
                .collect();
        }
        Err(errors) => {
            view.more = errors.more;
            view.errors = errors
                .list
                .iter()
                .map(|error| ErrorView {
                    rule: error.rule.name(),
                    line: error.line,
                    column: error.column,
                    length: error.length,
                    message: &error.message,
                    help: &error.help,
                    source_line: &error.source_line,
                })
                .collect();
        }
    }
    view
}

/// A function's declaration, if its signature says all of it.
pub fn prototype(name: &str, signature: &str) -> Option<String> {
    let signature: Signature = signature.parse().ok()?;
    Some(signature.c(name))
}
