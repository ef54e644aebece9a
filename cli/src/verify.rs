//! `postern verify`: the verifier's judgement of files, with the place and reason when it refuses.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use postern_image::{ImageFile, input};
use postern_verifier::window::{GATES, MAX_IMPORTS, text_start};
use postern_verifier::{Bounds, Layout, Links, Profile, Segment};
use serde::Serialize;

use crate::judgement::{FactsView, Refusal, Subject};
use crate::number;
use crate::output::{self, Outcome, REFUSED, SUCCESS, Style, UNUSABLE};

/// Judge extension files, or bare machine code.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 if all are accepted, 1 if one is refused, 2 if one cannot be read or is no extension file.

Examples:
  postern verify filter.px
  postern verify --raw code.bin --imports 2 --bounded")]
pub struct Arguments {
    /// Extension files (or, with --raw, files of machine code)
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The files are bare machine code
    #[arg(long)]
    raw: bool,
    /// With --raw: window offset of the first byte (default: after the gate slots)
    #[arg(long, value_parser = number::offset, requires = "raw", value_name = "OFFSET")]
    offset: Option<u32>,
    /// With --raw: number of gate slots that the code may call
    #[arg(long, value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_IMPORTS)), default_value_t = 0, requires = "raw", value_name = "N")]
    imports: u32,
    /// With --raw: segment register of memory operands (default: gs, with --kernel fs)
    #[arg(long, value_enum, requires = "raw")]
    segment: Option<SegmentName>,
    /// Ask for more: no loops and no indirect branches, so that every call ends by itself
    #[arg(long)]
    bounded: bool,
    /// Ask for what ring 0 needs: general registers only, memory through fs, no recursion and no
    /// indirect branches
    #[arg(long, conflicts_with = "bounded")]
    kernel: bool,
    /// With --bounded: refuse calls that could run more instructions
    #[arg(long, requires = "bounded", value_name = "N", default_value_t = Bounds::MAX.instructions, hide_default_value = true)]
    most_instructions: u32,
    /// With --bounded: refuse calls that nest deeper
    #[arg(long, requires = "bounded", value_name = "N", default_value_t = Bounds::MAX.call_depth, hide_default_value = true)]
    most_depth: u32,
    /// Print how fast the verifier was, too
    #[arg(long)]
    time: bool,
    /// Print an array of results as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SegmentName {
    Gs,
    Fs,
}

/// The result for one file.
#[derive(Serialize)]
struct Report {
    file: String,
    verdict: &'static str,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<FactsView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    violation: Option<Box<Refusal>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    megabytes_per_second: Option<f64>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let reports: Vec<Report> = arguments
        .files
        .iter()
        .map(|file| report(arguments, file))
        .collect();
    if arguments.json {
        output::print_json(&reports)?;
    } else {
        for report in &reports {
            show(report)?;
        }
    }
    let code = |report: &Report| match report.verdict {
        "accepted" => SUCCESS,
        "refused" => REFUSED,
        _ => UNUSABLE,
    };
    Ok(reports.iter().map(code).max().unwrap_or(SUCCESS))
}

fn report(arguments: &Arguments, path: &Path) -> Report {
    let mut report = Report {
        file: path.display().to_string(),
        verdict: "unreadable",
        bytes: 0,
        facts: None,
        violation: None,
        error: None,
        megabytes_per_second: None,
    };
    let file = match input::read(path, input::MAX_FILE) {
        Ok(file) => file,
        Err(error) => {
            report.error = Some(format!("cannot read it: {error}"));
            return report;
        }
    };
    let mut subject = if arguments.raw {
        let segment = match arguments.segment {
            None if arguments.kernel => Segment::Fs,
            None | Some(SegmentName::Gs) => Segment::Gs,
            Some(SegmentName::Fs) => Segment::Fs,
        };
        let imports = arguments.imports;
        let text = arguments.offset.unwrap_or(text_start(imports));
        Subject::raw(
            file.clone(),
            Layout {
                text,
                gates: GATES,
                imports,
                links: Links::NONE,
                segment,
            },
        )
    } else {
        match ImageFile::parse(&file) {
            Ok(image) => Subject::image(&image, &file),
            Err(error) => {
                report.error = Some(error.to_string());
                return report;
            }
        }
    };
    subject.bounds = Bounds {
        instructions: arguments.most_instructions,
        call_depth: arguments.most_depth,
    };
    report.bytes = subject.text.len();
    let profile = match (arguments.bounded, arguments.kernel) {
        (true, _) => Profile::Bounded,
        (_, true) => Profile::Kernel,
        _ => Profile::User,
    };
    match subject.judge(profile) {
        Ok(facts) => {
            report.verdict = "accepted";
            report.facts = Some(FactsView::from(&facts));
        }
        Err(refusal) => {
            report.verdict = "refused";
            report.violation = Some(refusal);
        }
    }
    if arguments.time {
        report.megabytes_per_second = Some(speed(&subject, profile));
    }
    report
}

/// The verifier's best speed over a third of a second, in 10^6 bytes per second.
fn speed(subject: &Subject<'_>, profile: Profile) -> f64 {
    let mut buffer = subject.buffer(profile);
    let begin = Instant::now();
    let mut best = Duration::MAX;
    while begin.elapsed() < Duration::from_millis(333) {
        let start = Instant::now();
        // The judgement is known; only the time counts here.
        let _ = std::hint::black_box(subject.judge_with(profile, &mut buffer));
        best = best.min(start.elapsed());
    }
    subject.text.len() as f64 / best.as_secs_f64() / 1e6
}

fn show(report: &Report) -> Result<(), output::Failure> {
    if let Some(error) = &report.error {
        output::complain(&format!("{}: {error}", report.file));
        return Ok(());
    }
    let style = Style::stdout();
    let mut text = match (&report.facts, &report.violation) {
        (Some(facts), _) => format!(
            "{}: {}: {}\n",
            report.file,
            style.green("accepted"),
            facts.sentence()
        ),
        (_, Some(refusal)) => {
            let refused = style.red("refused");
            format!(
                "{}: {refused} at {}\n{}",
                report.file,
                refusal.place(),
                refusal.explanation(style)
            )
        }
        _ => String::new(),
    };
    if let Some(speed) = report.megabytes_per_second {
        text += &format!(
            "  {} of text in {:.2} ms, {speed:.0} MB/s\n",
            number::bytes(report.bytes as u64),
            report.bytes as f64 / speed / 1e3
        );
    }
    output::print(&text)
}
