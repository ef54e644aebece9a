//! Plugins by HTTP: clients bring E-code, which is compiled here and judged, or extension files, and
//! pictures pass through them on their way.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use postern_ecode::{Compiler, Errors, Limits};
use postern_exos_web::http::request::Method;
use postern_exos_web::json;
use postern_exos_web::objects::Objects;
use postern_exos_web::picture::{self, Format, Picture};
use postern_exos_web::plugin::{self, AREA, HEADER, Kind, Outcome, PICTURE, ROOM, SIZE};
use postern_exos_web::server::{Answer, Asked};
use postern_exos_web::through::{Step, Through, is_name};
use postern_image::Signature;

use crate::extension::{Domain, Image, Options};
use crate::net::own::now;
use crate::web::answers::{made, problem};
use crate::web::calls;
use crate::web::memory::Memories;

/// Where they are.
pub const PATH: &[u8] = b"/plugins/";
/// Plugins at most, and bytes of each that is brought.
const MOST: usize = 16;
/// Bytes of a source, or of a file, at most.
pub const SOURCE: u64 = 128 << 10;
/// Bytes of variables.
const VARIABLES: u32 = 64 << 10;
/// Nanoseconds of a call.
const DEADLINE: u64 = 200_000_000;
/// The data stack has two to the power of this.
const STACK: u32 = 18;

struct Plugin {
    name: Vec<u8>,
    /// Its source, if it is E-code.
    source: Option<Vec<u8>>,
    domain: Domain,
    facts: String,
    calls: u64,
    faults: u64,
}

impl Plugin {
    fn describe(&self) -> String {
        let name = json::string(&String::from_utf8_lossy(&self.name));
        let (facts, calls, faults) = (&self.facts, self.calls, self.faults);
        format!("{{\"name\":{name},{facts},\"calls\":{calls},\"faults\":{faults}}}")
    }
}

/// All of them.
#[derive(Default)]
pub struct Plugins {
    all: Vec<Plugin>,
}

/// Why there is none: a status, words, and members of the problem.
type Refused = (u16, String, String);

/// The function of a plugin.
fn function(name: &[u8]) -> String {
    String::from_utf8_lossy(name).replace('-', "_")
}

fn wrong(errors: &Errors) -> Refused {
    let list: Vec<String> = errors
        .list
        .iter()
        .map(|error| {
            format!(
                "{{\"line\":{},\"column\":{},\"end_column\":{},\"severity\":\"error\",\
                 \"message\":{},\"remedy\":{}}}",
                error.line,
                error.column,
                error.column.saturating_add(error.length),
                json::string(&error.message),
                json::string(&error.help)
            )
        })
        .collect();
    let first = errors.list.first();
    let first = first.map_or_else(String::new, |error| {
        format!(": {}:{}: {}", error.line, error.column, error.message)
    });
    let detail = format!("the source has {} errors{first}", list.len());
    (
        422,
        detail,
        format!(",\"diagnostics\":[{}]", list.join(",")),
    )
}

/// Compiles E-code to an extension file: its bytes, and those of its machine code.
fn compile(name: &[u8], source: &[u8]) -> Result<(Vec<u8>, usize), Refused> {
    let limits = Limits {
        source: SOURCE as u32 + 4096,
        tokens: 64 << 10,
        data: VARIABLES,
        bss: VARIABLES,
        function: 32 << 10,
        liveness: 4 << 20,
        ..Limits::default()
    };
    let mut compiler = Compiler::new(postern_ecode::Options {
        limits,
        ..postern_ecode::Options::default()
    });
    compiler.header("picture.h", HEADER);
    let unit = compiler.compile(source).map_err(|errors| wrong(&errors))?;
    let wanted = function(name);
    let found = unit.symbol(&wanted).map(|symbol| symbol.signature.clone());
    if found.as_deref() != Some("i(p)") {
        let words = format!("a plugin's function is `int {wanted}(struct picture *)`");
        return Err((422, words, String::new()));
    }
    let code = unit.text.len();
    let linked = postern_ecode::link(&[unit], STACK);
    let linked = linked.map_err(|error| (422, error.to_string(), String::new()))?;
    Ok((linked.file, code))
}

fn make(name: &[u8], bytes: &[u8]) -> Result<Plugin, Refused> {
    let is_image = bytes.starts_with(b"\x7fELF");
    let began = now();
    let (file, code) = match is_image {
        true => (None, 0),
        false => {
            let (file, code) = compile(name, bytes)?;
            (Some(file), code)
        }
    };
    let compiled = now();
    let refused =
        |error: crate::extension::ExtensionError| (422, format!("{error}"), String::new());
    let image: Arc<Image> = Image::load(file.as_deref().unwrap_or(bytes)).map_err(refused)?;
    let judged = now();
    let mut options = Options::default();
    options.name = Some(String::from_utf8_lossy(name).into_owned());
    options.heap = Some(4096);
    options.area = AREA as u32;
    options.deadline = DEADLINE;
    let facts = image.facts();
    let facts = format!(
        "\"kind\":\"{}\",\"compile_ns\":{},\"verify_ns\":{},\"source_bytes\":{},\"code_bytes\":{code},\
         \"facts\":{{\"instructions\":{},\"indirect\":{},\"gates\":{}}}",
        if is_image { "image" } else { "ecode" },
        compiled.saturating_sub(began) * 1000,
        judged.saturating_sub(compiled) * 1000,
        bytes.len(),
        facts.instructions,
        facts.indirect,
        facts.gates
    );
    Ok(Plugin {
        name: name.to_vec(),
        source: (!is_image).then(|| bytes.to_vec()),
        domain: Domain::new(&image, &options).map_err(refused)?,
        facts,
        calls: 0,
        faults: 0,
    })
}

/// What came of a picture.
enum Passed {
    Picture(Picture),
    Bytes(Vec<u8>, Kind),
}

impl Plugins {
    fn position(&self, name: &[u8]) -> Option<usize> {
        self.all.iter().position(|plugin| plugin.name == name)
    }

    /// The answer to a request below `/plugins/`.
    pub fn answer(&mut self, asked: &Asked<'_>, objects: &mut Objects<Memories>) -> Answer {
        let request = asked.request;
        let name = request.path.get(PATH.len()..).unwrap_or_default();
        let known = self.position(name);
        match (request.method, known) {
            (Method::Get | Method::Head, _) if name.is_empty() => {
                let all: Vec<String> = self.all.iter().map(Plugin::describe).collect();
                let text = format!("[{}]\n", all.join(","));
                made(objects, (200, "application/json"), text.as_bytes())
            }
            (Method::Put, _) if is_name(name) => match self.put(name, asked.body, known) {
                Ok((status, text)) => made(objects, (status, "application/json"), text.as_bytes()),
                Err((status, detail, more)) => problem(objects, status, &detail, &more),
            },
            (Method::Put, _) => problem(objects, 400, "a name is 1 to 64 letters and digits", ""),
            (_, None) => problem(objects, 404, "there is no plugin of this name", ""),
            (Method::Get | Method::Head, Some(at)) => {
                let plugin = self.all.get(at);
                match plugin.and_then(|plugin| plugin.source.as_deref()) {
                    Some(source) => made(objects, (200, "text/plain; charset=utf-8"), source),
                    None => problem(objects, 404, "it was brought without a source", ""),
                }
            }
            (Method::Delete, Some(at)) => {
                self.all.remove(at);
                Answer {
                    kind: "",
                    ..Answer::words(204, "")
                }
            }
            (Method::Post, Some(_)) => Answer {
                allows: "GET, HEAD, PUT, DELETE",
                ..Answer::refusal(405)
            },
        }
    }

    fn put(
        &mut self,
        name: &[u8],
        bytes: &[u8],
        known: Option<usize>,
    ) -> Result<(u16, String), Refused> {
        if known.is_none() && self.all.len() == MOST {
            let words = format!("there are {MOST} plugins already: delete one");
            return Err((429, words, String::new()));
        }
        let plugin = make(name, bytes)?;
        let text = plugin.describe() + "\n";
        match known.and_then(|at| self.all.get_mut(at)) {
            Some(place) => {
                *place = plugin;
                Ok((200, text))
            }
            None => {
                self.all.push(plugin);
                Ok((201, text))
            }
        }
    }

    /// A picture's file, as plugins leave it.
    pub fn pass(
        &mut self,
        through: &Through,
        file: &[u8],
        objects: &mut Objects<Memories>,
    ) -> Answer {
        let (mut picture, format) = match picture::read(file) {
            Ok(read) => read,
            Err((status, words)) => return problem(objects, status, words, ""),
        };
        let began = now();
        let mut left = None;
        for (index, step) in through.steps.iter().enumerate() {
            match self.step(step, &picture) {
                Ok(Passed::Picture(changed)) => picture = changed,
                Ok(Passed::Bytes(bytes, kind)) if index + 1 == through.steps.len() => {
                    left = Some((bytes, kind));
                }
                Ok(Passed::Bytes(..)) => {
                    let words = "a plugin made no picture, and another one comes behind it";
                    return problem(objects, 422, words, "");
                }
                Err((status, words, more)) => return problem(objects, status, &words, &more),
            }
        }
        let took = now().saturating_sub(began);
        let shape = picture.shape;
        let mut more = format!(
            "Server-Timing: plugins;dur={}.{:03}\r\n",
            took / 1000,
            took % 1000
        );
        let answer = match left {
            None => {
                let format = through.format.unwrap_or(format);
                more += &format!(
                    "Postern-Picture: {}x{}x{}\r\n",
                    shape.width, shape.height, shape.channels
                );
                made(objects, (200, format.kind()), &picture.write(format))
            }
            Some((bytes, Kind::Own)) => made(objects, (200, "application/octet-stream"), &bytes),
            Some((bytes, kind)) => {
                if kind == Kind::Deflated {
                    more += "Content-Encoding: deflate\r\n";
                }
                made(objects, (200, Format::Ppm.kind()), &bytes)
            }
        };
        Answer {
            more: more.into_bytes(),
            ..answer
        }
    }

    fn step(&mut self, step: &Step, picture: &Picture) -> Result<Passed, Refused> {
        let name = String::from_utf8_lossy(&step.name).into_owned();
        let known = self.position(&step.name);
        let Some(plugin) = known.and_then(|at| self.all.get_mut(at)) else {
            let words = format!("there is no plugin `{name}`");
            return Err((404, words, String::new()));
        };
        plugin.calls += 1;
        let result = plugin.call(step, picture);
        if matches!(&result, Err((500 | 504, ..))) {
            plugin.faults += 1;
        }
        result.map_err(|(status, words, more)| (status, format!("{name}: {words}"), more))
    }
}

impl Plugin {
    fn call(&self, step: &Step, picture: &Picture) -> Result<Passed, Refused> {
        let own = |status: u16, words: &str| (status, String::from(words), String::new());
        let domain = &self.domain;
        let start = domain.area().start;
        let at = |place: usize| start + place as u32;
        let structure = plugin::describe(&picture.shape, &step.arguments, start);
        let types: Option<Signature> = "i(p)".parse().ok();
        let written = domain.write(start, &structure) && domain.write(at(PICTURE), &picture.pixels);
        let types = types.filter(|_| written);
        let types = types.ok_or_else(|| own(503, "there is no memory for the picture"))?;
        let result = domain.call(&function(&self.name), &types, [start.into(), 0, 0, 0, 0, 0]);
        let place = match result {
            Err(error) => return Err((422, format!("{error}"), String::new())),
            Ok(None) => {
                let failed = calls::failed(domain);
                let more = format!(
                    ",\"id\":\"{}\",\"fault\":{{\"kind\":\"{}\"}}",
                    failed.id, failed.kind
                );
                return Err((failed.status, failed.words, more));
            }
            Ok(Some(returned)) => match returned as u32 {
                0 => PICTURE + ROOM,
                1 => PICTURE,
                2 => return Err(own(422, "the arguments make no sense for this picture")),
                other => return Err((422, format!("it returned {}", other as i32), String::new())),
            },
        };
        let mut left = [0; SIZE];
        let outcome = domain
            .read(start, &mut left)
            .then(|| plugin::outcome(&left));
        let outcome = outcome.flatten();
        let none = || own(502, "it left no picture that fits its room");
        let length = match outcome.ok_or_else(none)? {
            Outcome::Picture(shape) => shape.bytes().ok_or_else(none)?,
            Outcome::Bytes(length, _) => length,
        };
        let mut bytes = Vec::new();
        let room = bytes.try_reserve_exact(length);
        room.map_err(|_| own(503, "there is no memory for the picture"))?;
        bytes.resize(length, 0);
        if !domain.read(at(place), &mut bytes) {
            return Err(none());
        }
        match outcome.ok_or_else(none)? {
            Outcome::Picture(shape) => Ok(Passed::Picture(Picture {
                shape,
                pixels: bytes,
            })),
            Outcome::Bytes(_, kind) => Ok(Passed::Bytes(bytes, kind)),
        }
    }
}
