//! The server: from the text of a request to that of the answer, by asking modules. Confined or
//! not, they are asked the same and get the same services.

use crate::exchange::{Exchange, Field, View};
use crate::modules::{Built, Phase};
use crate::native::{Function, Object};
use postern::{Caller, Domain, Func, Image, Offset, Placement};
use std::cell::RefCell;
use std::collections::HashMap;

/// Why there is no server.
pub type Error = Box<dyn std::error::Error>;

/// What a module's function says: it has nothing to say, it has done it, or a status of HTTP.
const DECLINED: i32 = 0;
const DONE: i32 = 1;

/// How much of a file modules see.
const HEAD: usize = 1024;

/// Whether modules are confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Shared objects in the server's own memory.
    Native,
    /// A domain for each.
    Confined,
}

enum Hook {
    Native(Function),
    Confined(Func<fn(Offset) -> i32>),
}

enum Loaded {
    Native { _object: Object },
    Confined(Domain),
}

struct Module {
    name: &'static str,
    view: View,
    loaded: Loaded,
    /// A function for each phase that it takes part in.
    hooks: HashMap<&'static str, usize>,
    /// It has faulted and is not asked any more.
    off: bool,
}

/// Files, by name.
pub type Files = HashMap<Vec<u8>, Vec<u8>>;

/// What services work on while a request is being served.
pub struct State {
    exchange: Exchange,
    files: Files,
    /// User, and salt and hash of the password.
    secrets: HashMap<Vec<u8>, Vec<u8>>,
    seconds: u64,
    taken: Vec<u8>,
    head: Vec<u8>,
    variables: Vec<(Vec<u8>, Vec<u8>)>,
    log: Vec<u8>,
    body: Option<Vec<u8>>,
    /// Calls of services.
    out: u64,
}

thread_local! {
    /// The request that this thread serves. A service finds it here, whoever calls.
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
}

fn with(work: impl FnOnce(&mut State) -> Option<i64>) -> i64 {
    STATE
        .with_borrow_mut(|state| {
            let state = state.as_mut()?;
            state.out += 1;
            work(state)
        })
        .unwrap_or(-1)
}

/// The service `server_put`.
pub fn put(place: i32, name: u32, value: u32) -> i64 {
    with(|state| {
        let all = (name as usize).checked_add(value as usize)?;
        state.exchange.take(all, &mut state.taken)?;
        let (name, value) = state.taken.split_at(name as usize);
        match place {
            0 => {
                // Whatever a module says, it stays one line.
                if [name, value].iter().any(|t| t.iter().any(|b| *b < 32)) {
                    return None;
                }
                for part in [name, b": ", value, b"\r\n"] {
                    state.head.extend_from_slice(part);
                }
            }
            1 => match state.variables.iter_mut().find(|v| v.0 == name) {
                Some(variable) => variable.1 = value.to_vec(),
                None => state.variables.push((name.to_vec(), value.to_vec())),
            },
            2 => state.exchange.set(Field::Uri, value)?,
            3 => state.exchange.set(Field::User, value)?,
            4 => {
                state.exchange.set(Field::File, value)?;
                let file = state.files.get(value);
                let head = file.map_or(&[][..], |f| &f[..f.len().min(HEAD)]);
                state.exchange.set(Field::Body, head)?;
            }
            5 => state.exchange.set(Field::Type, value)?,
            6 => {
                for part in [name, b"=", value, b" "] {
                    state.log.extend_from_slice(part);
                }
            }
            7 => state.body = Some(value.to_vec()),
            _ => return None,
        }
        Some(0)
    })
}

/// The service `server_variable`.
pub fn variable(name: u32) -> i64 {
    with(|state| {
        state.exchange.take(name as usize, &mut state.taken)?;
        let found = state.variables.iter().find(|v| v.0 == state.taken)?;
        state.exchange.answer(&found.1)
    })
}

/// The service `server_file_size`.
pub fn file_size(name: u32) -> i64 {
    with(|state| {
        state.exchange.take(name as usize, &mut state.taken)?;
        Some(state.files.get(&state.taken)?.len() as i64)
    })
}

/// The service `server_secret`.
pub fn secret(name: u32) -> i64 {
    with(|state| {
        state.exchange.take(name as usize, &mut state.taken)?;
        state.exchange.answer(state.secrets.get(&state.taken)?)
    })
}

/// The service `server_seconds`.
pub fn seconds() -> u64 {
    with(|state| Some(state.seconds as i64)) as u64
}

/// A server with its modules.
pub struct Server {
    state: Option<State>,
    modules: Vec<Module>,
    hooks: Vec<Hook>,
    /// For each phase, whom to ask: numbers of modules and of hooks.
    order: Vec<(Phase, Vec<(usize, usize)>)>,
    requests: u64,
    /// Calls of modules.
    into: u64,
}

impl Server {
    /// A server whose modules are `built`, on these files.
    ///
    /// # Errors
    /// A module cannot be loaded.
    pub fn new(
        way: Way,
        built: &[Built],
        files: Files,
        secrets: &[(&str, &str)],
    ) -> Result<Server, Error> {
        let exchange = match way {
            Way::Native => Exchange::plain(),
            Way::Confined => Exchange::shared()?,
        };
        let mut server = Server {
            state: None,
            modules: Vec::new(),
            hooks: Vec::new(),
            order: Vec::new(),
            requests: 0,
            into: 0,
        };
        for one in built {
            server.load(way, one, &exchange)?;
        }
        for phase in Phase::ALL {
            let asked = server.modules.iter().enumerate();
            let asked = asked.filter_map(|(k, m)| Some((k, *m.hooks.get(phase.function())?)));
            let asked = asked.collect();
            server.order.push((phase, asked));
        }
        let secrets = secrets.iter();
        server.state = Some(State {
            exchange,
            files,
            secrets: secrets
                .map(|(user, kept)| (user.as_bytes().to_vec(), kept.as_bytes().to_vec()))
                .collect(),
            seconds: 0,
            taken: Vec::new(),
            head: Vec::new(),
            variables: Vec::new(),
            log: Vec::new(),
            body: None,
            out: 0,
        });
        Ok(server)
    }

    fn load(&mut self, way: Way, built: &Built, exchange: &Exchange) -> Result<(), Error> {
        let mut hooks = HashMap::new();
        let phases = Phase::ALL.into_iter().chain([Phase::Handle]);
        let mut view = exchange.own_view();
        let loaded = match way {
            Way::Native => {
                let object = Object::open(&built.native)?;
                for phase in phases {
                    if let Some(function) = object.function(phase.function()) {
                        hooks.insert(phase.function(), self.hooks.len());
                        self.hooks.push(Hook::Native(function));
                    }
                }
                Loaded::Native { _object: object }
            }
            Way::Confined => {
                let image = Image::load(&built.extension)?;
                let domain = Domain::builder(&image)
                    // Where it is, it stays: the outbox is looked at through its window.
                    .placement(Placement::Cold)
                    .service(
                        "server_put",
                        |_: &Caller<'_>, place: i32, n: u32, v: u32| put(place, n, v),
                    )
                    .service("server_variable", |_: &Caller<'_>, n: u32| variable(n))
                    .service("server_file_size", |_: &Caller<'_>, n: u32| file_size(n))
                    .service("server_secret", |_: &Caller<'_>, n: u32| secret(n))
                    .service("server_seconds", |_: &Caller<'_>| seconds())
                    .build()?;
                view = exchange.share(&domain)?;
                for phase in phases {
                    if let Ok(function) = domain.func(phase.function()) {
                        hooks.insert(phase.function(), self.hooks.len());
                        self.hooks.push(Hook::Confined(function));
                    }
                }
                Loaded::Confined(domain)
            }
        };
        self.modules.push(Module {
            name: built.name,
            view,
            loaded,
            hooks,
            off: false,
        });
        Ok(())
    }

    /// Where the windows of modules' domains begin.
    pub fn windows(&self) -> Vec<u64> {
        let bases = self.modules.iter().map(|module| match &module.loaded {
            Loaded::Native { .. } => None,
            Loaded::Confined(domain) => Some(domain.base()),
        });
        bases.flatten().collect()
    }

    /// Calls into modules, and calls of theirs to the server, since the beginning.
    pub fn calls(&self) -> (u64, u64) {
        (self.into, self.state.as_ref().map_or(0, |s| s.out))
    }

    /// The modules that have faulted.
    pub fn off(&self) -> Vec<&'static str> {
        let off = self.modules.iter().filter(|m| m.off);
        off.map(|m| m.name).collect()
    }

    /// The log line of the last request.
    pub fn log(&self) -> &[u8] {
        self.state.as_ref().map_or(&[], |s| &s.log)
    }

    fn ask(&mut self, module: usize, hook: usize, request: *const crate::exchange::Request) -> i32 {
        if self.modules[module].off {
            return DECLINED;
        }
        self.into += 1;
        let view = self.modules[module].view;
        STATE.with_borrow_mut(|state| {
            if let Some(state) = state {
                // SAFETY: the server holds the domain, whose placement is `Cold`, so that it is
                // never moved; after `close` below nobody looks before the next call.
                unsafe { state.exchange.look(view) };
            }
        });
        let answer = match &self.hooks[hook] {
            Hook::Native(function) => Ok(function.call(request)),
            // The low half of an address in a shared area is its offset in every window.
            Hook::Confined(function) => function.call(Offset(request as u64 as u32)),
        };
        answer.unwrap_or_else(|_| {
            // What it did to the request so far counts; the rest goes on without it.
            self.modules[module].off = true;
            if let Loaded::Confined(domain) = &self.modules[module].loaded {
                domain.close();
            }
            500
        })
    }

    /// Answers a request from `address` at a time in seconds; the answer is appended to `to`.
    pub fn serve(&mut self, request: &[u8], address: &str, seconds: u64, to: &mut Vec<u8>) {
        self.requests += 1;
        let Some(mut state) = self.state.take() else {
            return;
        };
        state.seconds = seconds;
        state.head.clear();
        state.variables.clear();
        state.log.clear();
        state.body = None;
        state.exchange.begin(self.requests);
        let place = state.exchange.place();
        let read = read(request, address, &mut state.exchange);
        STATE.set(Some(state));
        let status = match read {
            Some(()) => self.phases(place),
            None => 400,
        };
        self.state = STATE.take();
        if let Some(state) = &self.state {
            answer(status, state, to);
        }
    }

    /// Asks all modules; the status.
    fn phases(&mut self, place: *const crate::exchange::Request) -> i32 {
        let mut status = 200;
        let order = std::mem::take(&mut self.order);
        for (phase, asked) in &order {
            let always = matches!(phase, Phase::RespondHeaders | Phase::Log | Phase::Configure);
            if status >= 300 && !always {
                continue;
            }
            if *phase == Phase::RespondHeaders && status == 200 {
                status = self.handle(place);
            }
            for &(module, hook) in asked {
                match self.ask(module, hook, place) {
                    DECLINED => {}
                    DONE if matches!(phase, Phase::Translate | Phase::CheckUser) => break,
                    found @ 300..=599 if status == 200 => {
                        status = found;
                        if !always {
                            break;
                        }
                    }
                    _ => {}
                }
            }
        }
        self.order = order;
        status
    }

    /// Lets the module answer whose type of file it is, if there is one.
    fn handle(&mut self, place: *const crate::exchange::Request) -> i32 {
        let name = STATE.with_borrow(|state| {
            let state = state.as_ref()?;
            let uri = state.exchange.get(Field::Uri);
            Some(match &*state.exchange.get(Field::Type) {
                b"server/cgi" => "cgi",
                b"server/asis" => "asis",
                b"server/imagemap" => "imap",
                _ if uri == b"/server-status" => "status",
                _ if uri == b"/server-info" => "info",
                _ if uri.starts_with(b"http://") => "proxy",
                _ if uri.ends_with(b"/")
                    && !state.files.contains_key(&state.exchange.get(Field::File)) =>
                {
                    "autoindex"
                }
                _ => return None,
            })
        });
        let found = name.and_then(|name| self.modules.iter().position(|m| m.name == name));
        let hook = found.and_then(|k| Some((k, *self.modules[k].hooks.get("handle")?)));
        match hook {
            Some((module, hook)) => match self.ask(module, hook, place) {
                status @ 300..=599 => status,
                _ => 200,
            },
            // No module's business: the file, if there is one.
            None if found.is_none() && missing() => 404,
            None => 200,
        }
    }
}

/// Whether the request's file is not there.
fn missing() -> bool {
    STATE.with_borrow(|state| {
        state.as_ref().is_some_and(|state| {
            let file = state.exchange.get(Field::File);
            !state.files.contains_key(&file)
        })
    })
}

/// The request's parts; `None` if it is none.
fn read(request: &[u8], address: &str, exchange: &mut Exchange) -> Option<()> {
    let mut lines = request.split(|b| *b == b'\n');
    let mut line = || Some(lines.next()?.strip_suffix(b"\r").unwrap_or(b""));
    let first = line()?;
    let mut words = first.split(|b| *b == b' ');
    let (method, uri, version) = (words.next()?, words.next()?, words.next()?);
    if !version.starts_with(b"HTTP/1.") || words.next().is_some() {
        return None;
    }
    exchange.set(Field::Method, method)?;
    exchange.set(Field::Uri, uri)?;
    exchange.set(Field::Address, address.as_bytes())?;
    loop {
        let header = line()?;
        if header.is_empty() {
            return Some(());
        }
        let colon = header.iter().position(|b| *b == b':')?;
        exchange.add_header(&header[..colon], header[colon + 1..].trim_ascii())?;
    }
}

fn answer(status: i32, state: &State, to: &mut Vec<u8>) {
    let reason = match status {
        200 => "OK",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        429 => "Too Many Requests",
        _ => "Internal Server Error",
    };
    let file = state.exchange.get(Field::File);
    let body = match status {
        200 => match (&state.body, state.files.get(&file)) {
            (Some(body), _) => body.as_slice(),
            (None, Some(file)) => file.as_slice(),
            (None, None) => b"",
        },
        304 => b"",
        _ => reason.as_bytes(),
    };
    to.extend_from_slice(format!("HTTP/1.1 {status} {reason}\r\n").as_bytes());
    to.extend_from_slice(&state.head);
    to.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
    to.extend_from_slice(body);
}
