//! `postern kernel call`.

use std::path::PathBuf;

use clap::Args;
use postern_image::{ImageFile, Type};
use postern_kernel::{Device, Ended, Image};
use serde::Serialize;

use super::fault::FaultView;
use crate::number;
use crate::output::{self, FAULT, Failure, Outcome, SUCCESS};
use crate::run::arguments::shown;

/// Call a function of an extension, and print what it returns
#[derive(Args)]
pub struct Call {
    /// Name or number of the extension
    extension: String,
    /// Function
    function: String,
    /// Integers, at most six
    #[arg(value_name = "ARGUMENT", allow_negative_numbers = true)]
    arguments: Vec<String>,
    /// Ask for the call, and do not wait for it
    #[arg(long)]
    queue: bool,
    /// The image that is loaded, for names and lines of a fault and the type of the result
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    ended: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<FaultView>,
}

/// Calls.
pub fn call(device: &Device, arguments: &Call, json: bool) -> Outcome {
    let id = device.find(&arguments.extension)?;
    let image = super::image::loaded(device, id, arguments.image.as_deref())?;
    let words = arguments.arguments.iter().map(|word| {
        let value = number::integer(word).map(|value| value as u64);
        value.ok_or_else(|| Failure::unusable(format!("`{word}` is no integer, such as 7 or 0x1f")))
    });
    let words: Vec<u64> = words.collect::<Result<_, _>>()?;
    let function = &arguments.function;
    if arguments.queue {
        device.queue(id, function, &words)?;
        return Ok(SUCCESS);
    }
    let ended = device.call(id, function, &words)?;
    let returned = match ended {
        Ended::Returned(value) => Some(value),
        _ => None,
    };
    match (json, returned) {
        (true, value) => output::print_json(&Report {
            ended: ended.name(),
            value,
            fault: FaultView::new(&ended, image.as_ref()),
        })?,
        (false, Some(value)) => output::print(&result(image.as_ref(), function, value))?,
        (false, None) => {
            let told = ended.told(image.as_ref());
            let told = match ended {
                Ended::Fault(_) => format!("fault ({}): {told}", ended.name()),
                _ => told,
            };
            output::complain(&told);
        }
    }
    Ok(match returned {
        Some(_) => SUCCESS,
        None => FAULT,
    })
}

/// A line with the value by the type that the image claims for it, else as C's `long`.
fn result(image: Option<&Image>, function: &str, value: u64) -> String {
    let file = image.and_then(|image| ImageFile::parse(image.bytes()).ok());
    let signature = file.as_ref().and_then(|file| {
        let mut exports = file.exports().iter();
        exports.find(|export| export.name == function)?.signature
    });
    match signature {
        None => format!("{}\n", value as i64),
        Some(signature) => signature
            .result()
            .filter(|kind: &Type| !kind.is_float())
            .map_or(String::new(), |kind| format!("{}\n", shown(kind, value))),
    }
}
