//! `postern run`: load an extension, call one of its functions, show what comes back.

pub mod arguments;
mod buffers;
mod call;
mod policy;
mod services;

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, Parser};
use postern::{CallError, Domain, Image, Limits, LoadError};
use postern_image::{Signature, Type};
use serde::Serialize;

use crate::number;
use crate::output::{self, FAULT, Failure, Outcome, PROGRAM_FAULT, REFUSED, SUCCESS};
use arguments::{Argument, Plan};
use buffers::Buffer;

/// Run a program, or call a function of an extension.
#[derive(Args)]
#[command(after_long_help = after_help(), after_help = "See --help for the forms of arguments, the services, and examples.")]
pub struct Arguments {
    /// Extension file
    image: PathBuf,
    /// Exported function; without one the extension's main() is run
    function: Option<String>,
    /// Arguments: numbers, @FILE, @:SIZE or =TEXT
    #[arg(allow_negative_numbers = true, value_name = "ARG")]
    arguments: Vec<String>,
    /// The program's arguments, or further ones of the function
    #[arg(last = true, value_name = "ARG")]
    rest: Vec<String>,
    #[command(flatten)]
    policy: policy::Options,
    /// Write a buffer to this file after the call (`-` is stdout)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// With -o: which buffer, counted from 1 (default: the first @:SIZE, else the first)
    #[arg(long, requires = "output", value_name = "N")]
    out_buffer: Option<usize>,
    /// With -o: how many bytes, or `result` for as many as the function returned (default: all)
    #[arg(long, requires = "output", value_name = "SIZE")]
    out_length: Option<String>,
    /// Longest time of the call, such as 100ms, or none (default: 10s; none for a program)
    #[arg(long, value_parser = number::time, value_name = "TIME")]
    deadline: Option<number::TimeLimit>,
    /// Bytes of heap, such as 64M
    #[arg(long, value_parser = number::size, value_name = "SIZE")]
    heap: Option<u64>,
    /// Most bytes of heap, and of variables that begin as zero, that the extension gets by its own
    /// wish (default: 256M)
    #[arg(long, value_parser = number::size, value_name = "SIZE")]
    heap_ceiling: Option<u64>,
    /// Bytes of the stack for variables, 4K to 64M (default: as linked, 1M for most programs)
    #[arg(long, value_parser = number::size, value_name = "SIZE")]
    stack: Option<u64>,
    /// Most threads at once that the extension may start (default: none)
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    threads: u32,
    /// Run it although functions that it imports are missing; a call of one ends it
    #[arg(long)]
    stub_missing: bool,
    /// Call this many times and print how long a call took
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..), value_name = "N")]
    repeat: u32,
    /// Print registers and backtrace of a fault
    #[arg(short, long)]
    verbose: bool,
    /// Print result and buffers as JSON
    #[arg(long)]
    json: bool,
}

fn after_help() -> String {
    let mut text = "\
A program is an extension with a main(). Its arguments stand behind --, and standard input, output and error are
passed through. What else its system calls may do is the policy's decision:
  none      nothing; every call is refused
  compute   clocks, random bytes and the standard streams (the default)
  files     the same, and files below the directories given by --dir (which implies it)
With --policy-module another extension is asked first, about each call of a service, too (postern/policy.h).

Arguments, by the function's signature:
  12  -3  0x1f  0b101   integer (of either sign, if it fits)
  1.5  1e-9  inf        float or double
  @FILE                 pointer to a buffer with the file's bytes
  @:SIZE                pointer to a buffer of SIZE zero bytes (64K, 1M, ...)
  =TEXT                 pointer to the text and a NUL
If fewer arguments are given than the function has parameters, a buffer that is followed by an integer parameter
fills that one, too, with its length. Give -- before an argument that looks like an option.

The result is printed by its type; buffers made with @:SIZE of up to 256 bytes are printed in hexadecimal unless -o
writes them.

Services that the extension may import:
"
    .to_owned();
    for (name, prototype, what) in services::TABLE {
        let _ = writeln!(text, "  {name:<12} {prototype:<30} {what}");
    }
    text += "
Exit status: 0 if the function returned, 1 if the extension was refused, 2 if arguments or files cannot be used, 3 if it
faulted; an extension that exits by itself gives its own status. A program gives its own status, and 134 if it faulted.

Examples:
  postern run prog.px -- one two
  postern run prog.px --dir .:/work:rw --env HOME=/work -- one two
  postern run prog.px --policy-module judge.px --grants
  postern run calc.px add 2 3
  postern run photo.px gray @in.ppm -o out.ppm
  postern run hash.px sha256 @file @:32";
    text
}

/// What `--json` prints.
#[derive(Default, Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    buffers: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nanoseconds: Option<Timing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_status: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<FaultView>,
}

#[derive(Clone, Copy, Serialize)]
struct Timing {
    least: f64,
    median: f64,
    calls: u32,
}

#[derive(Serialize)]
struct FaultView {
    kind: &'static str,
    sentence: String,
    offset: Option<u32>,
    address: Option<u32>,
    place: String,
    message: Option<String>,
    domain: String,
    /// Name of the shared area that was accessed, and number of the page in it.
    area: Option<String>,
    page: Option<u32>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let file = arguments.image.display();
    let image = match Image::load(&arguments.image) {
        Ok(image) => image,
        Err(error) if matches!(error.cause(), LoadError::Refused { .. }) => {
            let hint = format!("see `postern verify {file}`");
            return Err(Failure::new(REFUSED, format!("{error} ({hint})")));
        }
        Err(error) => return Err(Failure::unusable(error.to_string())),
    };
    self::image(arguments, &image)
}

/// The arguments of a call in `words`, as if `file` were an extension file: function, arguments,
/// options.
pub fn words(file: &Path, words: &[String], json: bool) -> Result<Arguments, Failure> {
    #[derive(clap::Parser)]
    struct Words {
        #[command(flatten)]
        arguments: Arguments,
    }
    let all = [OsStr::new("postern run"), file.as_os_str()].into_iter();
    let mut words =
        Words::try_parse_from(all.chain(words.iter().map(OsStr::new))).map_err(|error| {
            let text = error.to_string();
            Failure::unusable(text.strip_prefix("error: ").unwrap_or(&text).trim_end())
        })?;
    words.arguments.json |= json;
    Ok(words.arguments)
}

/// Runs the command on an image.
pub fn image(arguments: &Arguments, image: &Image) -> Outcome {
    let Some(name) = &arguments.function else {
        return program(arguments, image);
    };
    let words = [&arguments.arguments[..], &arguments.rest].concat();
    let export = image.tables().export(name);
    let signature = export.and_then(|e| e.signature);
    let plan = match export {
        Some(_) => arguments::plan(name, signature.as_ref(), &words).map_err(Failure::unusable)?,
        None => Plan::default(),
    };
    let contents = plan
        .buffers
        .iter()
        .map(buffers::contents)
        .collect::<Result<Vec<_>, _>>()?;
    let domain = domain(arguments, image, &contents)?;
    let buffers = buffers::place(&domain, &plan.buffers, &contents)?;

    let (mut integers, mut floats) = (Vec::new(), Vec::new());
    for argument in &plan.arguments {
        match *argument {
            Argument::Integer(bits) => integers.push(bits),
            Argument::Float(bits) => floats.push(bits),
            Argument::Place(number) => integers.push(u64::from(buffers[number].at.0)),
            Argument::Length(number) => integers.push(buffers[number].length as u64),
        }
    }
    let kind = signature.map_or(Some(Type::I64), |s: Signature| s.result());
    let float_result = kind.is_some_and(Type::is_float);
    let call =
        call::Call::new(&domain, name, &integers, &floats, float_result).map_err(|error| {
            let hint = match (export, image.tables().export(MAIN)) {
                (None, Some(_)) => "; a program's arguments stand behind --",
                _ => "",
            };
            Failure::unusable(format!("{error}{hint}"))
        })?;
    // A wrong -o is found before the call, whose effects could not be had again.
    let written = match &arguments.output {
        Some(path) => Some((
            path.as_path(),
            buffers::chosen(arguments.out_buffer, &buffers)?,
        )),
        None => None,
    };
    match timed(&call, arguments.repeat) {
        Ok((bits, timing)) => {
            let result = kind.map(|kind| (kind, bits));
            finish(arguments, &domain, &buffers, written, result, timing)?;
            Ok(SUCCESS)
        }
        Err(error) => ended(arguments, &error, FAULT),
    }
}

/// What programs export.
const MAIN: &str = "__postern_main";

/// Runs an extension's `main`, as a shell runs a program.
fn program(arguments: &Arguments, image: &Image) -> Outcome {
    let file = arguments.image.display();
    if image.tables().export(MAIN).is_none() {
        return Err(Failure::unusable(format!(
            "{file}: it has no main(); name one of its functions (`postern inspect {file}` shows them)"
        )));
    }
    if arguments.output.is_some() || arguments.repeat != 1 {
        return Err(Failure::unusable("-o and --repeat are for functions"));
    }
    let domain = domain(arguments, image, &[])?;
    let words = std::iter::once(arguments.image.as_os_str().as_encoded_bytes())
        .chain(arguments.rest.iter().map(|word| word.as_bytes()));
    let words: Vec<&[u8]> = words.collect();
    match domain.run_main(&words, &arguments.policy.environment) {
        Ok(status) => ended(arguments, &CallError::Exited(status), PROGRAM_FAULT),
        Err(error) => ended(arguments, &error, PROGRAM_FAULT),
    }
}

fn domain(arguments: &Arguments, image: &Image, contents: &[Vec<u8>]) -> Result<Domain, Failure> {
    const ROOM: u64 = 64 << 20;
    const FUNCTION_DEADLINE: Duration = Duration::from_secs(10);
    let bytes: u64 = contents.iter().map(|c| c.len() as u64).sum();
    let mut limits = Limits::default();
    limits.deadline = match arguments.deadline {
        Some(limit) => limit.0,
        None => arguments.function.as_ref().map(|_| FUNCTION_DEADLINE),
    };
    limits.heap = arguments.heap;
    limits.data_stack = arguments.stack;
    limits.own_threads = arguments.threads;
    if let Some(ceiling) = arguments.heap_ceiling {
        limits.heap_ceiling = ceiling;
    }
    // What the buffers take shall not be missing from what the extension was promised.
    let wish = image.tables().header.heap_wish;
    if limits.heap.is_none() && bytes > 0 && wish <= limits.heap_ceiling {
        let promised = match wish {
            0 => ROOM,
            wish => wish,
        };
        limits.heap = Some(
            promised
                .saturating_add(bytes)
                .saturating_add(bytes / 8 + (1 << 16)),
        );
    }
    let mut builder = Domain::builder(image).limits(limits);
    if let Some(decider) = arguments.policy.decider()? {
        builder = builder.decider(decider);
    }
    let mut builder = services::offer(builder.policy(arguments.policy.policy()?));
    if arguments.stub_missing {
        let missing = builder.missing();
        if !missing.is_empty() {
            let file = arguments.image.display();
            output::complain(&format!(
                "{file}: a call of one of these ends the program: {}",
                missing.join(", ")
            ));
        }
        builder = builder.stand_in_for_missing();
    }
    let domain = builder
        .build()
        .map_err(|error| {
            let offered: Vec<&str> = services::TABLE.iter().map(|row| row.0).collect();
            let file = arguments.image.display();
            let error = error.cause();
            let hint = match error {
                postern::InstantiateError::Unresolved(_) => {
                    format!(
                        "; `postern run` offers {}; with --stub-missing it runs until the first call of a missing one",
                        offered.join(", ")
                    )
                }
                _ => String::new(),
            };
            Failure::unusable(format!("{file}: {error}{hint}"))
        })?;
    if arguments.policy.grants {
        eprint!("{}", domain.grants());
    }
    Ok(domain)
}

/// Calls `repeat` times; the last result, and the times. Many calls are timed in batches, for a
/// clock's reading takes longer than a short call.
fn timed(call: &call::Call, repeat: u32) -> Result<(u64, Timing), CallError> {
    let batch = repeat.div_ceil(100);
    let mut times = Vec::new();
    let (mut bits, mut left) = (0, repeat);
    while left > 0 {
        let calls = batch.min(left);
        let start = Instant::now();
        for _ in 0..calls {
            bits = call.make()?;
        }
        times.push(start.elapsed().as_nanos() as f64 / f64::from(calls));
        left -= calls;
    }
    times.sort_unstable_by(f64::total_cmp);
    let at = |index: usize| times.get(index).copied().unwrap_or(0.0);
    Ok((
        bits,
        Timing {
            least: at(0),
            median: at(times.len() / 2),
            calls: repeat,
        },
    ))
}

/// Shows what came back.
fn finish(
    arguments: &Arguments,
    domain: &Domain,
    buffers: &[Buffer],
    written: Option<(&Path, &Buffer)>,
    result: Option<(Type, u64)>,
    timing: Timing,
) -> Result<(), Failure> {
    const SHOWN: usize = 256;
    let timing = (timing.calls > 1).then_some(timing);
    let mut report = Report {
        result: result.map(|(kind, bits)| arguments::shown(kind, bits)),
        r#type: result.map(|(kind, _)| kind.c_name()),
        nanoseconds: timing,
        ..Report::default()
    };
    if let Some((path, buffer)) = written {
        let length = buffers::length(arguments.out_length.as_deref(), buffer, result)?;
        let bytes = buffer.read(domain, length)?;
        if path.as_os_str() == "-" {
            return output::print_bytes(&bytes);
        }
        let failed = |e| Failure::unusable(format!("cannot write {}: {e}", path.display()));
        std::fs::write(path, bytes).map_err(failed)?;
    } else {
        for buffer in buffers.iter().filter(|b| b.zeros && b.length <= SHOWN) {
            let bytes = buffer.read(domain, buffer.length)?;
            let digits = bytes.iter().map(|b| format!("{b:02x}"));
            report.buffers.push(digits.collect());
        }
    }
    if arguments.json {
        return output::print_json(&report);
    }
    let lines = report.result.iter().chain(&report.buffers);
    output::print(&lines.map(|line| format!("{line}\n")).collect::<String>())?;
    if let Some(timing) = timing {
        let shown = |nanoseconds: f64| number::duration(nanoseconds * 1e-9);
        let (median, least) = (shown(timing.median), shown(timing.least));
        eprintln!("{} calls: median {median}, least {least}", timing.calls);
    }
    Ok(())
}

/// Tells how a call ended that did not return.
fn ended(arguments: &Arguments, error: &CallError, fault_code: u8) -> Outcome {
    let mut report = Report::default();
    let code = match error {
        CallError::Exited(status) => {
            report.exit_status = Some(*status);
            *status as u8
        }
        CallError::Fault(fault) => {
            report.fault = Some(FaultView {
                kind: fault.kind.name(),
                sentence: fault.to_string(),
                offset: fault.offset.map(|o| o.0),
                address: fault.address.map(|o| o.0),
                place: fault.place(),
                message: fault.message.clone(),
                domain: fault.domain.to_string(),
                area: fault.shared.as_ref().map(|s| s.area.to_string()),
                page: fault.shared.as_ref().map(|s| s.page),
            });
            let text = if arguments.verbose || fault_code == PROGRAM_FAULT {
                fault.report()
            } else {
                fault.to_string()
            };
            output::complain(&format!(
                "fault ({}): {}",
                fault.kind.name(),
                text.trim_end()
            ));
            fault_code
        }
        other => return Err(Failure::unusable(other.to_string())),
    };
    if arguments.json {
        output::print_json(&report)?;
    }
    Ok(code)
}
