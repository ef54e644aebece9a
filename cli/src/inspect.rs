//! `postern inspect`: what is in an extension file, without running any of it; or what a running
//! process has made of such files.

mod live;

use std::collections::HashMap;
use std::path::PathBuf;

use clap::Args;
use iced_x86::{Formatter, OpKind};
use postern_image::{ImageFile, Segment, Signature};
use postern_verifier::Profile;
use postern_verifier::window::{FILL, INFO, PAGE};
use serde::Serialize;

use crate::judgement::{FactsView, Refusal, Subject};
use crate::number;
use crate::output::{self, Failure, Outcome, SUCCESS, Style};
use postern_toolchain::disassembly;

/// Show an extension file: memory, functions, services wanted, instructions. Or a process: which
/// domain may do what where
#[derive(Args)]
#[command(after_help = "\
With --live: rows are ranges of offsets, columns are domains (those of an image that may do the same are one column), and
a cell is what a domain may do there: r, rw, x (execute, and read), or - for nothing. The column `host` is what the host
may do through its views of shared areas. The process is not disturbed.

Exit status: 0, or 2 if the file cannot be read or is no extension file, or the process is not there, not yours, or has no
extensions. What the verifier says of the code is shown, and does not change the status.

Examples:
  postern inspect filter.px
  postern inspect --live 4242")]
pub struct Arguments {
    /// Extension file
    #[arg(value_name = "FILE", required_unless_present = "live")]
    file: Option<PathBuf>,
    /// Show the protection table of this running process instead
    #[arg(long, value_name = "PID", conflicts_with = "file")]
    live: Option<u32>,
    /// With --live: only the domains of this name (may be repeated)
    #[arg(long, value_name = "NAME", requires = "live")]
    domain: Vec<String>,
    /// Rows of the table of instructions
    #[arg(long, default_value_t = 16, value_name = "N")]
    top: usize,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    file: String,
    bytes: usize,
    header: HeaderView,
    memory: Vec<Range>,
    exports: Vec<Function>,
    imports: Vec<Function>,
    accepted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<FactsView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    violation: Option<Box<Refusal>>,
    instructions: Mix,
}

#[derive(Serialize)]
struct HeaderView {
    abi: u32,
    segment: &'static str,
    data_stack: u32,
    x87: bool,
    heap_wish: u64,
    /// Features of the processor, by the names of the compiler's options.
    needs: Vec<String>,
}

/// A row of the memory table.
#[derive(Serialize)]
struct Range {
    start: u32,
    end: u64,
    protection: &'static str,
    what: String,
}

/// An import or export.
#[derive(Serialize)]
struct Function {
    name: String,
    /// Exports only.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u32>,
    signature: Option<String>,
    c: String,
}

/// How often each instruction occurs in text.
#[derive(Default, Serialize)]
struct Mix {
    total: u64,
    with_memory_operand: u64,
    by_mnemonic: Vec<(String, u64)>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    if let Some(process) = arguments.live {
        return live::run(process, &arguments.domain, arguments.json);
    }
    let Some(file) = &arguments.file else {
        return Err(Failure::unusable("give a FILE, or --live and a PID"));
    };
    let bytes = output::read(file)?;
    let name = file.display().to_string();
    let image = ImageFile::parse(&bytes).map_err(|e| Failure::unusable(format!("{name}: {e}")))?;
    let subject = Subject::image(&image, &bytes);
    let header = image.header();
    let judgement = subject.judge(match header.segment {
        Segment::Gs => Profile::User,
        Segment::Fs => Profile::Kernel,
    });
    let report = Report {
        file: name,
        bytes: bytes.len(),
        header: HeaderView {
            abi: header.abi,
            segment: match header.segment {
                Segment::Gs => "gs",
                Segment::Fs => "fs",
            },
            data_stack: image.layout().stack_size,
            x87: header.x87,
            heap_wish: header.heap_wish,
            needs: image.needs().iter().map(|&name| name.to_owned()).collect(),
        },
        memory: memory(&image),
        exports: image
            .exports()
            .iter()
            .map(|e| function(e.name, Some(e.offset), e.signature))
            .collect(),
        imports: image
            .imports()
            .iter()
            .map(|i| function(i.name, None, i.signature))
            .collect(),
        accepted: judgement.is_ok(),
        facts: judgement.as_ref().ok().map(FactsView::from),
        violation: judgement.err(),
        instructions: mix(
            &image,
            if arguments.json {
                usize::MAX
            } else {
                arguments.top
            },
        ),
    };
    if arguments.json {
        output::print_json(&report)?;
    } else {
        output::print(&text(&report))?;
    }
    Ok(SUCCESS)
}

fn function(name: &str, offset: Option<u32>, signature: Option<Signature>) -> Function {
    let c = signature.map_or_else(|| format!("{name}(?)"), |s| s.c(name));
    Function {
        name: name.to_owned(),
        offset,
        signature: signature.map(|s| s.to_string()),
        c,
    }
}

/// The window as one domain of the image sees it, in ascending order and without gaps up to the
/// heap.
fn memory(image: &ImageFile<'_>) -> Vec<Range> {
    let l = image.layout();
    let slots = format!("gate slots ({})", image.imports().len());
    let rodata = image.rodata().map_or(0, |r| r.memory_size);
    let rodata_end = l.text_end + rodata.next_multiple_of(PAGE);
    let heap_end = match image.header().heap_wish {
        0 => u64::from(l.heap_start),
        wish => u64::from(l.heap_start).saturating_add(wish),
    };
    let heap = match image.header().heap_wish {
        0 => "heap, as large as the host allows".to_owned(),
        wish => format!("heap, {} wished for", number::bytes(wish)),
    };
    let data_bytes = image.data().map_or(0, |d| d.bytes.len());
    let bss = l.bss_end.saturating_sub(l.data + data_bytes as u32);
    let (reserved, thread_locals) = image
        .thread_locals()
        .map_or((0, String::new()), |variables| {
            let (size, alignment) = (variables.memory_size, variables.alignment);
            let what = format!(
                "thread block, thread-local variables ({size} bytes, aligned to {alignment})"
            );
            (variables.reserved(), what)
        });
    let first = l.data - reserved;
    let rows = [
        (0, INFO.into(), "---", "null guard".to_owned()),
        (
            INFO,
            l.gates.into(),
            "r--",
            "info page, and zeros up to the gate slots".to_owned(),
        ),
        (l.gates, l.text.into(), "r-x", slots),
        (
            l.text,
            l.text_end.into(),
            "r-x",
            format!("text ({} bytes)", image.text().bytes.len()),
        ),
        (
            l.text_end,
            rodata_end.into(),
            "r--",
            format!("read-only data and notes ({rodata} bytes)"),
        ),
        (
            rodata_end,
            l.stack.into(),
            "r--",
            "zero pages below the data stack".to_owned(),
        ),
        (l.stack, first.into(), "rw-", "data stack".to_owned()),
        (first, l.data.into(), "rw-", thread_locals),
        (
            l.data,
            l.data_file_end.into(),
            "rw-",
            format!("data ({data_bytes} bytes)"),
        ),
        (
            l.data_file_end,
            l.heap_start.into(),
            "rw-",
            format!("zeroed data ({bss} bytes in all)"),
        ),
    ];
    let mut rows: Vec<Range> = rows
        .into_iter()
        .map(|(start, end, protection, what)| Range {
            start,
            end,
            protection,
            what,
        })
        .filter(|row| u64::from(row.start) < row.end)
        .collect();
    rows.push(Range {
        start: l.heap_start,
        end: heap_end,
        protection: "rw-",
        what: heap,
    });
    rows
}

fn mix(image: &ImageFile<'_>, top: usize) -> Mix {
    let text = image.text();
    let mut formatter = disassembly::formatter();
    let mut mix = Mix::default();
    let mut counts: HashMap<iced_x86::Code, u64> = HashMap::new();
    let mut samples: HashMap<iced_x86::Code, iced_x86::Instruction> = HashMap::new();
    // The linker fills text up to a page; that is none of the extension's code.
    let code = text
        .bytes
        .iter()
        .rposition(|&b| b != FILL)
        .map_or(0, |last| last + 1);
    let code = &text.bytes[..code];
    for instruction in disassembly::walk(code, text.offset, text.offset) {
        mix.total += 1;
        let memory = (0..instruction.op_count()).any(|i| instruction.op_kind(i) == OpKind::Memory);
        // lea and the multi-byte NOP compute an address and touch nothing.
        let touches = !matches!(
            instruction.mnemonic(),
            iced_x86::Mnemonic::Lea | iced_x86::Mnemonic::Nop
        );
        mix.with_memory_operand += u64::from(memory && touches);
        *counts.entry(instruction.code()).or_default() += 1;
        samples.entry(instruction.code()).or_insert(instruction);
    }
    let mut by_name: HashMap<String, u64> = HashMap::new();
    for (code, count) in counts {
        let mut name = String::new();
        match &samples[&code] {
            bad if bad.is_invalid() => name.push_str("(bad)"),
            good => formatter.format_mnemonic_options(
                good,
                &mut name,
                iced_x86::FormatMnemonicOptions::NO_PREFIXES,
            ),
        }
        *by_name.entry(name).or_default() += count;
    }
    let mut rows: Vec<(String, u64)> = by_name.into_iter().collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    rows.truncate(top);
    mix.by_mnemonic = rows;
    mix
}

fn text(report: &Report) -> String {
    let style = Style::stdout();
    let mut text = format!(
        "{}: extension, ABI {}, {} bytes\n",
        report.file, report.header.abi, report.bytes
    );
    let header = &report.header;
    let stack = number::bytes(header.data_stack.into());
    let x87 = if header.x87 { ", may use x87" } else { "" };
    text += &format!(
        "operands through {}, data stack {stack}{x87}\n",
        header.segment
    );
    if !header.needs.is_empty() {
        text += &format!("needs of the processor: {}\n", header.needs.join(" "));
    }
    match (&report.facts, &report.violation) {
        (Some(facts), _) => {
            text += &format!(
                "verifier: {}: {}\n",
                style.green("accepted"),
                facts.sentence()
            )
        }
        (_, Some(refusal)) => {
            text += &format!(
                "verifier: {} at {}\n",
                style.red("refused"),
                refusal.place()
            );
            text += &refusal.explanation(style);
        }
        _ => {}
    }

    text += &format!("\n{}\n", style.bold("Memory"));
    for row in &report.memory {
        let size = row.end - u64::from(row.start);
        let (end, size) = match size {
            0 => (String::new(), String::new()),
            size => (format!("{:#010x}", row.end), number::bytes(size)),
        };
        text += &format!(
            "  {:#010x} {end:10}  {}  {size:>10}  {}\n",
            row.start, row.protection, row.what
        );
    }

    text += &format!("\n{} ({})\n", style.bold("Functions"), report.exports.len());
    for export in &report.exports {
        text += &format!("  {:#010x}  {}\n", export.offset.unwrap_or(0), export.c);
    }
    let slots = report.imports.iter().enumerate();
    let (granted, wanted): (Vec<_>, Vec<_>) =
        slots.partition(|(_, import)| import.name.starts_with("__postern_"));
    text += &format!("\n{} ({})\n", style.bold("Services wanted"), wanted.len());
    for (slot, import) in wanted {
        // The one service whose meaning is the policy's, and which is always there.
        let note = match &*import.name {
            "sys" => "  (system calls: give the domain a policy)",
            _ => "",
        };
        text += &format!("  {slot:4}  {}{}\n", import.c, style.dim(note));
    }
    if !granted.is_empty() {
        let title = style.bold("Services that every domain has");
        text += &format!("\n{title} ({})\n", granted.len());
        for (slot, import) in granted {
            text += &format!("  {slot:4}  {}\n", import.c);
        }
    }

    let mix = &report.instructions;
    let share = |count: u64| 100.0 * count as f64 / mix.total.max(1) as f64;
    text += &format!(
        "\n{} ({}, {:.0} % with a memory operand)\n",
        style.bold("Instructions"),
        mix.total,
        share(mix.with_memory_operand)
    );
    let most = mix.by_mnemonic.first().map_or(1, |row| row.1);
    for (name, count) in &mix.by_mnemonic {
        let bar = "#".repeat((count * 40).div_ceil(most) as usize);
        text += &format!(
            "  {name:<12} {count:>8}  {:>5.1} %  {}\n",
            share(*count),
            style.dim(&bar)
        );
    }
    text
}
