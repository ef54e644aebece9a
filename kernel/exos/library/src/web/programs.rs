//! Programs behind paths: extension files below `cgi/` of the served folder, made of the same sources as
//! the handlers of other servers (`libcgi.h`). Each has a domain of its own, is called by the server's own
//! thread, and begins anew when it did not return.

use alloc::string::String;
use alloc::vec::Vec;

use postern_exos_load::archive;
use postern_exos_web::objects::Objects;
use postern_exos_web::program::{self, AREA, Called};
use postern_exos_web::server::{Answer, Asked};
use postern_image::Signature;

use crate::extension::{Domain, Image, Options};
use crate::files::served;
use crate::web::calls::{self, Failed};
use crate::web::memory::Memories;
use crate::web::{answers, trusted};

/// Where they are.
pub const PATH: &[u8] = b"/cgi/";
/// Programs at most.
const MOST: usize = 32;
/// Nanoseconds of a call: it is looked at when slices end.
const DEADLINE: u64 = 100_000_000;
const STACK: usize = 64 << 10;
/// Bytes of a program's file in a folder of another process's, at most.
const LARGEST: usize = 16 << 20;

struct Program {
    name: Vec<u8>,
    domain: Domain,
}

/// All of them.
#[derive(Default)]
pub struct Programs {
    all: Vec<Program>,
}

/// Bytes of a path that name a program, and the name.
fn name(path: &[u8]) -> Option<(usize, &[u8])> {
    let rest = path.strip_prefix(PATH)?;
    let end = rest.iter().position(|byte| *byte == b'/');
    let name = rest.get(..end.unwrap_or(rest.len()))?;
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let good = !name.is_empty() && name.iter().all(letter);
    good.then_some((PATH.len() + name.len(), name))
}

fn load(folder: &[u8], name: &[u8]) -> Option<Result<Domain, Failed>> {
    let path = [folder, b"cgi/", name, b".px"].concat();
    let bytes = match path.first() {
        Some(b'/') => served::whole(&path, LARGEST).ok()?,
        _ => {
            let file = archive::nth(archive::index_of(&path)?)?;
            let mut bytes = alloc::vec![0; usize::try_from(file.length).ok()?];
            let read = file.read(0, &mut bytes).ok()?;
            bytes.truncate(read);
            bytes
        }
    };
    let name = String::from_utf8_lossy(name).into_owned();
    let mut options = Options::default();
    options.name = Some(name);
    options.area = AREA as u32;
    options.deadline = DEADLINE;
    for (name, callee, types) in trusted::services() {
        if let Ok(types) = types.parse() {
            options.service(name, callee, types, STACK);
        }
    }
    let domain = Image::load(&bytes).and_then(|image| Domain::new(&image, &options));
    Some(domain.map_err(|error| Failed::new(500, "", alloc::format!("{error}"))))
}

impl Programs {
    /// The answer of a program, if there is one of the path's name.
    pub fn answer(
        &mut self,
        folder: &[u8],
        asked: &Asked<'_>,
        objects: &mut Objects<Memories>,
    ) -> Answer {
        let path = asked.request.path;
        let Some((end, name)) = name(path) else {
            return Answer::refusal(404);
        };
        let known = self.all.iter().position(|program| program.name == name);
        let at = match known {
            Some(at) => at,
            None => match load(folder, name) {
                None => return Answer::refusal(404),
                Some(Err(failed)) => return answers::failed(&failed, objects),
                Some(Ok(domain)) => {
                    if self.all.len() == MOST {
                        self.all.remove(0);
                    }
                    self.all.push(Program {
                        name: name.to_vec(),
                        domain,
                    });
                    self.all.len() - 1
                }
            },
        };
        let Some(program) = self.all.get(at) else {
            return Answer::refusal(404);
        };
        match call(&program.domain, end, asked) {
            Ok((head, bytes)) => {
                let body = bytes.get(head.body..).unwrap_or_default();
                Answer {
                    more: head.more,
                    ..answers::made(objects, (head.status, ""), body)
                }
            }
            Err(Refused::Large) => Answer::refusal(413),
            Err(Refused::Failed(failed)) => answers::failed(&failed, objects),
        }
    }
}

enum Refused {
    Large,
    Failed(Failed),
}

fn call(
    domain: &Domain,
    end: usize,
    asked: &Asked<'_>,
) -> Result<(program::Head, Vec<u8>), Refused> {
    let own = |words: &str| Refused::Failed(Failed::new(502, "", String::from(words)));
    let start = domain.area().start;
    let called = Called {
        request: asked.request,
        name: end,
        client: asked.client,
    };
    let request = program::lay_out(&called, asked.body.len(), start).ok_or(Refused::Large)?;
    let written =
        domain.write(start, &request) && domain.write(start + program::BODY as u32, asked.body);
    let answer = start + program::ANSWER as u32;
    calls::begin(answer, program::ROOM);
    let types: Option<Signature> = "l(p)".parse().ok();
    let types = types.filter(|_| written);
    let types = types.ok_or_else(|| own("there is no memory for the request"))?;
    let result = domain.call("libcgi_serve", &types, [start.into(), 0, 0, 0, 0, 0]);
    let mut bytes = calls::end();
    let size = match result {
        Err(error) => return Err(own(&alloc::format!("{error}"))),
        Ok(None) => return Err(Refused::Failed(calls::failed(domain))),
        Ok(Some(size)) => size as i64,
    };
    let Ok(size) = usize::try_from(size) else {
        let words = alloc::format!("the program ended with status {}", -1 - size);
        return Err(Refused::Failed(Failed::new(500, "", words)));
    };
    if size > program::ROOM || bytes.len() + size > calls::ANSWER {
        return Err(own("it wrote more than there is room for"));
    }
    let before = bytes.len();
    bytes.resize(before + size, 0);
    if !domain.read(answer, bytes.get_mut(before..).unwrap_or_default()) {
        return Err(own("its answer is not there"));
    }
    let head = program::head(&bytes).map_err(own)?;
    Ok((head, bytes))
}
