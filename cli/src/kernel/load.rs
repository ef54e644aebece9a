//! `postern kernel load` and `replace`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use postern_image::ImageFile;
use postern_kernel::{
    Device, Error, Image, LoadOptions, Loaded, OnFault, Refusal, Rights, SharedArea,
};
use postern_verifier::Profile;
use serde::Serialize;

use crate::judgement::{self, Subject};
use crate::number::{self, TimeLimit};
use crate::output::{self, Failure, Outcome, REFUSED, SUCCESS, Style};

/// Load an image, and print its number
#[derive(Args)]
pub struct Load {
    /// Image, as `postern cc --kernel` makes it
    file: PathBuf,
    /// What it is called (default: the file's name without folder and ending)
    #[arg(long, default_value = "", hide_default_value = true)]
    name: String,
    #[command(flatten)]
    how: How,
}

/// Put another image in an extension's place, whose hooks, maps and ring stay
#[derive(Args)]
pub struct Replace {
    /// Name or number of the extension
    extension: String,
    /// Image
    file: PathBuf,
    #[command(flatten)]
    how: How,
}

/// How an image is loaded.
#[derive(Args)]
struct How {
    /// What it may do: several, with commas between
    #[arg(long, value_enum, value_delimiter = ',', value_name = "RIGHT")]
    allow: Vec<Right>,
    /// What becomes of it after a fault or a timeout (default: restart)
    #[arg(long, value_enum, value_name = "POLICY")]
    on_fault: Option<Policy>,
    /// The extension whose windows and stack it shares
    #[arg(long, value_name = "EXTENSION")]
    segment: Option<String>,
    /// One window for all processors: a call while it is in use is skipped
    #[arg(long)]
    one_window: bool,
    /// Bytes of heap in each window
    #[arg(long, value_parser = number::size, value_name = "SIZE", default_value = "0", hide_default_value = true)]
    heap: u64,
    /// Longest time of a call, such as 5ms (default: the module's)
    #[arg(long, value_parser = number::time, value_name = "TIME")]
    limit: Option<TimeLimit>,
    /// Share no memory with processes, though the image has a variable `postern_shared`
    #[arg(long)]
    no_shared: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Right {
    SeePackets,
    ChangePackets,
    Observe,
    Log,
}

#[derive(Clone, Copy, ValueEnum)]
enum Policy {
    Keep,
    Restart,
    End,
}

impl How {
    fn options(&self, device: &Device) -> Result<LoadOptions, Failure> {
        let rights = self.allow.iter().map(|right| match right {
            Right::SeePackets => Rights::SEE_PACKETS,
            Right::ChangePackets => Rights::CHANGE_PACKETS,
            Right::Observe => Rights::OBSERVE,
            Right::Log => Rights::LOG,
        });
        let limit = match self.limit {
            Some(TimeLimit(None)) => {
                let message =
                    "a call in the kernel has a time limit; give one, or none for the module's";
                return Err(Failure::unusable(message));
            }
            Some(TimeLimit(limit)) => limit,
            None => None,
        };
        let heap = u32::try_from(self.heap)
            .map_err(|_| Failure::unusable("a heap has less than 4 GiB; give a smaller --heap"))?;
        Ok(LoadOptions {
            segment: self
                .segment
                .as_deref()
                .map(|name| device.find(name))
                .transpose()?,
            rights: rights.fold(Rights::default(), |all, right| all | right),
            on_fault: match self.on_fault {
                Some(Policy::Keep) => OnFault::Keep,
                Some(Policy::Restart) | None => OnFault::Restart,
                Some(Policy::End) => OnFault::End,
            },
            one_window: self.one_window,
            heap,
            limit,
            shared: match self.no_shared {
                true => SharedArea::None,
                false => SharedArea::BySymbol,
            },
            ..LoadOptions::default()
        })
    }
}

/// Loads.
pub fn load(device: &Device, arguments: &Load, json: bool) -> Outcome {
    let image = Image::read(&arguments.file)?;
    let options = LoadOptions {
        name: arguments.name.clone(),
        ..arguments.how.options(device)?
    };
    report(&image, device.load(&image, &options), json)
}

/// Replaces. What is not said stays, as far as the device tells it.
pub fn replace(device: &Device, arguments: &Replace, json: bool) -> Outcome {
    let id = device.find(&arguments.extension)?;
    let before = device.statistics(id)?;
    let image = Image::read(&arguments.file)?;
    let mut options = arguments.how.options(device)?;
    options.name = before.name;
    if arguments.how.allow.is_empty() {
        options.rights = before.rights;
    }
    if arguments.how.on_fault.is_none() {
        options.on_fault = before.on_fault;
    }
    options.segment = options.segment.or(before.segment);
    report(&image, device.replace(id, &image, &options), json)
}

/// What a load says.
#[derive(Serialize)]
struct Report {
    id: u32,
    instructions: u32,
    call_depth: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_path: Option<u32>,
}

/// What a refusal says.
#[derive(Serialize)]
struct RefusalReport<'a> {
    verdict: &'static str,
    rule: Option<&'a str>,
    place: Option<&'a str>,
    reason: &'a str,
}

fn report(image: &Image, result: Result<Loaded, Error>, json: bool) -> Outcome {
    let verdict = match result {
        Ok(loaded) if !json => {
            output::print(&format!("{}\n", loaded.id))?;
            return Ok(SUCCESS);
        }
        Ok(loaded) => {
            output::print_json(&Report {
                id: loaded.id.0,
                instructions: loaded.verdict.instructions,
                call_depth: loaded.verdict.depth,
                longest_path: Some(loaded.verdict.longest_path).filter(|path| *path != 0),
            })?;
            return Ok(SUCCESS);
        }
        Err(Error::Refused(refusal)) => refusal,
        Err(error) => return Err(error.into()),
    };
    if json {
        output::print_json(&RefusalReport {
            verdict: "refused",
            rule: verdict.rule,
            place: verdict.place.as_deref(),
            reason: &verdict.reason,
        })?;
        return Ok(REFUSED);
    }
    match explained(image, &verdict) {
        Some(refusal) => {
            let style = Style::stdout();
            output::print(&format!(
                "{}: {} at {}\n{}",
                image.name(),
                style.red("refused"),
                refusal.place(),
                refusal.explanation(style)
            ))?;
        }
        None => output::complain(&verdict.to_string()),
    }
    Ok(REFUSED)
}

/// The refusal with its code, as `postern verify --kernel` shows it, if this process's judge says
/// the same as the kernel's.
fn explained(image: &Image, refusal: &Refusal) -> Option<Box<judgement::Refusal>> {
    let file = ImageFile::parse(image.bytes()).ok()?;
    let here = Subject::image(&file, image.bytes())
        .judge(Profile::Kernel)
        .err()?;
    (Some(here.rule) == refusal.rule && Some(here.place()) == refusal.place).then_some(here)
}
