//! `postern kernel list` and `stats`.

use std::path::PathBuf;

use clap::Args;
use postern_kernel::{Device, KINDS, Statistics};
use serde::Serialize;
use serde_json::{Map, Value};

use super::fault::FaultView;
use crate::number;
use crate::output::{self, Outcome, SUCCESS, Style};

/// Show what is known of an extension
#[derive(Args)]
pub struct Stats {
    /// Name or number of the extension
    extension: String,
    /// The image that is loaded, for name and line of its last fault
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
}

#[derive(Serialize)]
struct Row {
    id: u32,
    name: String,
    instructions: u32,
    call_depth: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_path: Option<u32>,
    calls: u64,
}

/// Lists what is loaded.
pub fn list(device: &Device, json: bool) -> Outcome {
    let list = device.list()?;
    if json {
        let rows = list.into_iter().map(|listed| Row {
            id: listed.id.0,
            name: listed.name,
            instructions: listed.instructions,
            call_depth: listed.depth,
            longest_path: listed.longest_path,
            calls: listed.calls,
        });
        output::print_json(&rows.collect::<Vec<_>>())?;
        return Ok(SUCCESS);
    }
    let width = list.iter().map(|listed| listed.name.chars().count()).max();
    let width = width.unwrap_or(0).max(4);
    let head = format!(
        "{:>4}  {:width$}  {:>12}  {:>5}  {:>7}  {:>12}",
        "ID", "NAME", "INSTRUCTIONS", "DEPTH", "LONGEST", "CALLS"
    );
    let mut text = Style::stdout().bold(&head) + "\n";
    for listed in list {
        let longest = listed
            .longest_path
            .map_or("loops".into(), |path| path.to_string());
        text += &format!(
            "{:>4}  {:width$}  {:>12}  {:>5}  {longest:>7}  {:>12}\n",
            listed.id.0,
            listed.name.escape_debug().to_string(),
            listed.instructions,
            listed.depth,
            listed.calls
        );
    }
    output::print(&text)?;
    Ok(SUCCESS)
}

#[derive(Serialize)]
struct View {
    id: u32,
    name: String,
    rights: Vec<&'static str>,
    on_fault: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    segment: Option<u32>,
    image_bytes: u64,
    memory_bytes: u64,
    shared_bytes: u32,
    instructions: u32,
    call_depth: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_path: Option<u32>,
    ended: Map<String, Value>,
    queued: u64,
    lost: u64,
    log_left_out: u64,
    restarts: u64,
    hooks: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_fault: Option<FaultView>,
}

/// Shows what is known of one.
pub fn stats(device: &Device, arguments: &Stats, json: bool) -> Outcome {
    let id = device.find(&arguments.extension)?;
    let image = super::image::loaded(device, id, arguments.image.as_deref())?;
    let statistics = device.statistics(id)?;
    let last = statistics.last.as_ref();
    let last_fault = last.and_then(|ended| FaultView::new(ended, image.as_ref()));
    if json {
        let ended = KINDS.iter().zip(statistics.ended);
        output::print_json(&View {
            id: statistics.id.0,
            name: statistics.name,
            rights: statistics.rights.names(),
            on_fault: statistics.on_fault.name(),
            segment: statistics.segment.map(|id| id.0),
            image_bytes: statistics.size,
            memory_bytes: statistics.memory,
            shared_bytes: statistics.shared_size,
            instructions: statistics.verdict.instructions,
            call_depth: statistics.verdict.depth,
            longest_path: Some(statistics.verdict.longest_path).filter(|path| *path != 0),
            ended: ended
                .map(|(kind, count)| ((*kind).to_owned(), count.into()))
                .collect(),
            queued: statistics.queued,
            lost: statistics.lost,
            log_left_out: statistics.log_left_out,
            restarts: statistics.restarts,
            hooks: statistics.hooks,
            last_fault,
        })?;
        return Ok(SUCCESS);
    }
    let last = last.map(|ended| ended.told(image.as_ref()));
    output::print(&told(&statistics, last))?;
    Ok(SUCCESS)
}

/// The same for people. Counters of what never happened are left out.
fn told(statistics: &Statistics, last: Option<String>) -> String {
    let verdict = &statistics.verdict;
    let rights = match &*statistics.rights.names() {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    let mut text = format!("{}: {}\n", statistics.id, statistics.name.escape_debug());
    let mut row = |what: &str, value: String| text += &format!("  {what:<14}{value}\n");
    row("image", number::bytes(statistics.size));
    row("memory", number::bytes(statistics.memory));
    if statistics.shared_size != 0 {
        row("shared", number::bytes(statistics.shared_size.into()));
    }
    let path = match verdict.longest_path {
        0 => "with loops".to_owned(),
        path => format!("at most {path} a call"),
    };
    let depth = verdict.depth;
    row(
        "instructions",
        format!("{}, {path}, calls {depth} deep", verdict.instructions),
    );
    row("rights", rights);
    row("on fault", statistics.on_fault.name().to_owned());
    if let Some(id) = statistics.segment {
        row("segment", format!("of extension {id}"));
    }
    row("hooks", statistics.hooks.to_string());
    for (kind, count) in KINDS.iter().zip(statistics.ended) {
        if count != 0 || *kind == "returned" {
            row(kind, count.to_string());
        }
    }
    for (what, count) in [
        ("queued", statistics.queued),
        ("lost", statistics.lost),
        ("log left out", statistics.log_left_out),
        ("restarts", statistics.restarts),
    ] {
        if count != 0 {
            row(what, count.to_string());
        }
    }
    if let Some(last) = last {
        row("last fault", last);
    }
    text
}
