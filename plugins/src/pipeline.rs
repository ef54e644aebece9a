//! From a picture to a picture: decoded, passed through plugins, encoded.

use crate::area::{Encoding, Outcome, PictureArea};
use crate::picture::{Format, Picture, Shape};
use crate::plugin::Plugin;
use crate::plugin_host::{PluginEntry, PluginHost};
use crate::problem::Problem;
use crate::source::function;
use bytes::Bytes;
use http::StatusCode;
use postern::{CallError, FaultKind};
use postern_server::RegisteredDomain;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A plugin to pass.
pub struct Stage {
    /// The plugin.
    pub plugin: Arc<Plugin>,
    /// Where it runs.
    pub host: Arc<PluginHost>,
    /// What it is called by.
    pub entry: PluginEntry,
    /// With what.
    pub arguments: Vec<i32>,
}

/// What comes out.
pub struct Transcoded {
    /// The bytes.
    pub body: Bytes,
    /// Their media type.
    pub media: &'static str,
    /// Whether they are deflated.
    pub deflated: bool,
    /// The picture's size.
    pub shape: Shape,
    /// What took how many nanoseconds.
    pub times: Vec<(String, u64)>,
}

/// What all of them did.
#[derive(Debug, Default)]
pub struct PictureCounters {
    /// Pictures that were answered.
    pub done: AtomicU64,
    /// Those that could not be used.
    pub refused: AtomicU64,
    /// Calls that ended in a fault, those that took too long among them.
    pub faults: AtomicU64,
    /// Nanoseconds of decoding.
    pub decode: AtomicU64,
    /// In plugins.
    pub inside: AtomicU64,
    /// Of encoding.
    pub encode: AtomicU64,
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Bytes that a picture needs at most, from its file to the answer.
pub fn most(pixels: u64, decoded: u64) -> usize {
    let [pixels, decoded] = [pixels, decoded].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let decoding = pixels.saturating_add(decoded);
    decoding.max(PictureArea::most(pixels))
}

/// Does it.
///
/// # Errors
/// The picture is none, or a plugin fails.
pub fn transcode(
    file: &Bytes,
    stages: &[Stage],
    format: Option<Format>,
    most: u64,
    pictures: &PictureCounters,
) -> Result<Transcoded, Problem> {
    let add = |counter: &AtomicU64, n: u64| {
        counter.fetch_add(n, Ordering::Relaxed);
    };
    let began = Instant::now();
    let (picture, found) = Picture::decode(file, most)?;
    let mut times = vec![("decode".to_owned(), nanoseconds(began))];
    add(&pictures.decode, times[0].1);
    let passed = pass(picture, stages, &mut times)?;
    add(
        &pictures.inside,
        times[1..].iter().map(|(_, time)| time).sum(),
    );
    let began = Instant::now();
    let (body, media, deflated, shape) = match passed {
        Passed::Picture(picture) => {
            let format = format.unwrap_or(found);
            let media = format.media(picture.shape.channels);
            (picture.encode(format)?.into(), media, false, picture.shape)
        }
        Passed::Answer(encoding, bytes, shape) => {
            let media = match encoding {
                Encoding::Bytes => "application/octet-stream",
                _ if format.is_some_and(|format| format != Format::Ppm) => {
                    let text = "the last plugin makes a PPM file, not what `format` says";
                    return Err(Problem::new(StatusCode::BAD_REQUEST, text));
                }
                _ => Format::Ppm.media(shape.channels),
            };
            (bytes, media, encoding == Encoding::Deflated, shape)
        }
    };
    let time = nanoseconds(began);
    add(&pictures.encode, time);
    times.push(("encode".to_owned(), time));
    add(&pictures.done, 1);
    Ok(Transcoded {
        body,
        media,
        deflated,
        shape,
        times,
    })
}

/// What the last plugin left.
enum Passed {
    Picture(Picture),
    Answer(Encoding, Bytes, Shape),
}

fn gone(error: postern::MemoryError) -> Problem {
    Problem::room(error.to_string())
}

fn pass(
    picture: Picture,
    stages: &[Stage],
    times: &mut Vec<(String, u64)>,
) -> Result<Passed, Problem> {
    let Some(first) = stages.first() else {
        return Ok(Passed::Picture(picture));
    };
    let mut area = first.host.area(picture.pixels.len())?;
    area.put(&picture).map_err(gone)?;
    let mut shape = picture.shape;
    drop(picture);
    let mut answer = None;
    for stage in stages {
        let name = &stage.plugin.name;
        if answer.is_some() {
            let text = format!("`{name}` cannot come after a plugin that makes the answer");
            return Err(Problem::new(StatusCode::BAD_REQUEST, text));
        }
        let shown = area.show(stage.host.isolation.domain());
        shown.map_err(|e| Problem::room(e.to_string()))?;
        let confined = matches!(stage.entry, PluginEntry::Confined(_));
        let described = area.describe(shape, &stage.arguments, confined);
        described.map_err(gone)?;
        let began = Instant::now();
        let calling = stage.host.registered.as_deref().map(RegisteredDomain::call);
        let returned = stage.entry.call(&area);
        drop(calling);
        let time = nanoseconds(began);
        times.push((name.clone(), time));
        stage.plugin.calls.fetch_add(1, Ordering::Relaxed);
        stage.plugin.busy.fetch_add(time, Ordering::Relaxed);
        let in_place = match returned {
            Ok(0) => false,
            Ok(1) => true,
            Ok(number) => {
                let text = match number {
                    2 => {
                        format!("`{name}` cannot do that with this picture and these arguments (2)")
                    }
                    _ => format!("`{name}` refuses: {number}"),
                };
                return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, text));
            }
            Err(error) => return Err(failed(stage, &error)),
        };
        match area.outcome(in_place).map_err(gone)? {
            Some(Outcome::Picture(left)) => shape = left,
            Some(Outcome::Answer(encoding, size)) => answer = Some((encoding, size)),
            None => {
                let text = format!(
                    "`{name}` left a picture that is none: its size is 0, or larger than there is room for"
                );
                return Err(Problem::new(StatusCode::BAD_GATEWAY, text).with_id());
            }
        }
    }
    let size = match answer {
        Some((_, size)) => size,
        None => shape.bytes().unwrap_or_default(),
    };
    let bytes = area.take(size).map_err(gone)?;
    if stages.last().is_some_and(|last| last.host.is(&first.host)) {
        first.host.keep(area);
    }
    Ok(match answer {
        Some((encoding, _)) => Passed::Answer(encoding, bytes, shape),
        None => Passed::Picture(Picture {
            shape,
            pixels: bytes,
        }),
    })
}

/// A call that did not return.
fn failed(stage: &Stage, error: &CallError) -> Problem {
    let plugin = &stage.plugin;
    let Some(fault) = error.fault() else {
        if let CallError::Exited(status) = error {
            if let Some(domain) = stage.host.isolation.domain() {
                // It left its variables as they were in the middle of it. Whoever is inside
                // meanwhile finds them so.
                let _ = domain.reset();
            }
            let text = format!("`{}` ended itself with status {status}", plugin.name);
            return Problem::new(StatusCode::BAD_GATEWAY, text).with_id();
        }
        return Problem::busy(format!("`{}`: {error}", plugin.name)).with_id();
    };
    let own = function(&plugin.name);
    if fault.kind == FaultKind::Deleted && fault.message.as_deref() == Some(&own) {
        // Its client did that.
        return Problem::missing(format!("`{}` was deleted meanwhile", plugin.name));
    }
    let status = match fault.kind {
        FaultKind::Deadline => StatusCode::GATEWAY_TIMEOUT,
        // It was another one of the client's that failed.
        FaultKind::AnotherThread => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    plugin.faults.fetch_add(1, Ordering::Relaxed);
    Problem::fault(status, &plugin.name, fault)
}
