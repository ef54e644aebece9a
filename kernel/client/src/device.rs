//! The device, and all that it is asked.

use std::fmt;
use std::io;
use std::path::Path;

use postern_kernel_judge::{self as judge, Verdict};

use crate::abi;
use crate::ended::Ended;
use crate::error::{self, Error};
use crate::hook::{Attachment, Hook};
use crate::id::{AttachmentId, Id};
use crate::image::Image;
use crate::load::LoadOptions;
use crate::map::{Map, MapSizes};
use crate::opened::Opened;
use crate::refusal::Refusal;
use crate::request::{Request, Requests};
use crate::statistics::{Listed, Statistics};
use crate::trusted::DeviceFile;

/// Where the device is.
pub const PATH: &str = "/dev/postern";

/// The module's device. While it is open the module is not unloaded.
pub struct Device {
    requests: Box<dyn Requests>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Device")
    }
}

/// An extension that was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loaded {
    /// Its number.
    pub id: Id,
    /// What the judge found.
    pub verdict: Verdict,
}

impl Device {
    /// Opens the device.
    ///
    /// # Errors
    /// The module is not loaded, or this process may not use it.
    pub fn open() -> Result<Device, Error> {
        Device::open_at(PATH)
    }

    /// Opens a device at another place.
    ///
    /// # Errors
    /// As [`Device::open`].
    pub fn open_at(path: impl AsRef<Path>) -> Result<Device, Error> {
        let path = path.as_ref();
        let what = || format!("opening {}", path.display());
        match DeviceFile::open(path) {
            Ok(file) => Ok(Device::with(file)),
            Err(error) => Err(match (error.kind(), error.raw_os_error()) {
                (io::ErrorKind::NotFound, _) | (_, Some(libc::ENXIO | libc::ENODEV)) => {
                    Error::NoModule {
                        path: path.to_owned(),
                    }
                }
                (io::ErrorKind::PermissionDenied, _) => Error::NotPermitted { what: what() },
                _ => error::from_device(what(), String::new, error),
            }),
        }
    }

    /// A device whose requests somebody else answers.
    pub fn with(requests: impl Requests + 'static) -> Device {
        Device {
            requests: Box::new(requests),
        }
    }

    /// Loads an extension.
    ///
    /// # Errors
    /// [`Error::Refused`] if the kernel's judge refuses it; what the options ask for is not to be
    /// had.
    pub fn load(&self, image: &Image, options: &LoadOptions) -> Result<Loaded, Error> {
        let mut load = options.asked(image)?;
        let asked = self.requests.ask(Request::Load(&mut load, image.bytes()));
        let what = || format!("loading {}", image.name());
        asked.map_err(|error| about_segment(what(), options, error))?;
        accepted(image, &load, what)
    }

    /// Puts another image in an extension's place. Hooks, maps and ring stay; it must have the
    /// functions that are attached.
    ///
    /// # Errors
    /// As [`Device::load`]; the extension stays as it was then.
    pub fn replace(&self, id: Id, image: &Image, options: &LoadOptions) -> Result<Loaded, Error> {
        let mut load = options.asked(image)?;
        load.id = id.0;
        let asked = self
            .requests
            .ask(Request::Replace(&mut load, image.bytes()));
        let what = || format!("replacing extension {id} by {}", image.name());
        let which = || {
            format!(
                "extension {id}, the segment, or a function in {} that is attached",
                image.name()
            )
        };
        asked.map_err(|error| error::from_device(what(), which, error))?;
        accepted(image, &load, what)
    }

    /// Unloads an extension, once no call of it is under way.
    ///
    /// # Errors
    /// It is not there.
    pub fn unload(&self, id: Id) -> Result<(), Error> {
        let asked = self.requests.ask(Request::Unload(id.0));
        asked.map_err(|error| about(format!("unloading extension {id}"), id, error))
    }

    /// What the kernel's judge says of code alone, as the text of an image with so many imports.
    ///
    /// # Errors
    /// The device's.
    pub fn judge_text(&self, code: &[u8], imports: u32) -> Result<Verdict, Error> {
        let mut text = abi::Text {
            imports,
            ..abi::Text::default()
        };
        let asked = self.requests.ask(Request::JudgeText(&mut text, code));
        asked.map_err(|error| error::from_device("judging a text".into(), String::new, error))?;
        Ok(text.verdict)
    }

    /// Calls a function of an extension and waits for it.
    ///
    /// # Errors
    /// It is not there, or the arguments are too many. How the call itself ended is no error.
    pub fn call(&self, id: Id, function: &str, arguments: &[u64]) -> Result<Ended, Error> {
        let call = self.request_call(id, function, arguments, false)?;
        Ended::new(&call.outcome, call.value).ok_or_else(|| Error::Answer {
            what: format!("calling {function} of extension {id}"),
            answer: format!("kind {}", call.outcome.kind),
        })
    }

    /// Asks for a call, which is done to its end later.
    ///
    /// # Errors
    /// [`Error::Busy`] while the one before is not done; as [`Device::call`].
    pub fn queue(&self, id: Id, function: &str, arguments: &[u64]) -> Result<(), Error> {
        self.request_call(id, function, arguments, true).map(|_| ())
    }

    fn request_call(
        &self,
        id: Id,
        function: &str,
        arguments: &[u64],
        queued: bool,
    ) -> Result<abi::Call, Error> {
        let mut call = abi::Call {
            id: id.0,
            queued: queued.into(),
            function: abi::Name::new(function).ok_or_else(|| Error::Name {
                name: function.into(),
            })?,
            ..abi::Call::default()
        };
        let places = call.arguments.get_mut(..arguments.len());
        places
            .ok_or(Error::Arguments {
                count: arguments.len(),
            })?
            .copy_from_slice(arguments);
        let asked = self.requests.ask(Request::Call(&mut call));
        asked.map_err(|error| about(format!("calling {function} of extension {id}"), id, error))?;
        Ok(call)
    }

    /// What is known of an extension.
    ///
    /// # Errors
    /// It is not there.
    pub fn statistics(&self, id: Id) -> Result<Statistics, Error> {
        let mut answer = abi::Statistics {
            id: id.0,
            ..abi::Statistics::default()
        };
        let what = || format!("asking about extension {id}");
        let asked = self.requests.ask(Request::Statistics(&mut answer));
        asked.map_err(|error| about(what(), id, error))?;
        Statistics::new(&answer).ok_or_else(|| Error::Answer {
            what: what(),
            answer: format!("{answer:?}"),
        })
    }

    /// The extensions that are loaded.
    ///
    /// # Errors
    /// The device's.
    pub fn list(&self) -> Result<Vec<Listed>, Error> {
        let what = || "listing extensions".to_owned();
        let text = self.requests.list();
        let text = text.map_err(|error| error::from_device(what(), String::new, error))?;
        let read = |line: &str| {
            Listed::parse(line).ok_or_else(|| Error::Answer {
                what: what(),
                answer: line.escape_debug().to_string(),
            })
        };
        text.lines().map(read).collect()
    }

    /// The extension with a name, or with a number if nothing has that name. Of several with the
    /// name, the one that was loaded first.
    ///
    /// # Errors
    /// There is none, or the device's.
    pub fn find(&self, name: &str) -> Result<Id, Error> {
        let list = self.list()?;
        let number = name.parse().ok().map(Id);
        let named = list.iter().find(|listed| listed.name == name);
        let numbered = || list.iter().find(|listed| Some(listed.id) == number);
        match named.or_else(numbered) {
            Some(listed) => Ok(listed.id),
            None => Err(Error::Absent {
                what: format!("looking for `{name}`"),
                which: "an extension of this name or number".into(),
            }),
        }
    }

    /// Has a function called at a hook.
    ///
    /// # Errors
    /// The extension, the function or the hook is not there, or not for this extension.
    pub fn attach(&self, id: Id, function: &str, hook: &Hook) -> Result<AttachmentId, Error> {
        let mut attach = hook.asked(id, function)?;
        let asked = self.requests.ask(Request::Attach(&mut attach));
        let which = || format!("extension {id}, its function {function}, or the hook");
        let what = format!("attaching {function} of extension {id} to {hook}");
        asked.map_err(|error| error::from_device(what, which, error))?;
        Ok(AttachmentId(attach.attachment))
    }

    /// Leaves a hook, once no call from it is under way.
    ///
    /// # Errors
    /// It is not there.
    pub fn detach(&self, attachment: AttachmentId) -> Result<(), Error> {
        let what = format!("detaching {attachment}");
        let which = || format!("attachment {attachment}");
        let asked = self.requests.ask(Request::Detach(attachment.0));
        asked.map_err(|error| error::from_device(what, which, error))
    }

    /// What is known of an attachment.
    ///
    /// # Errors
    /// It is not there.
    pub fn attachment(&self, number: AttachmentId) -> Result<Attachment, Error> {
        match self.attachment_from(number.0, false)? {
            Some(attachment) => Ok(attachment),
            None => Err(Error::Absent {
                what: format!("asking about attachment {number}"),
                which: "it".into(),
            }),
        }
    }

    /// All attachments of all extensions, in the order of their numbers.
    ///
    /// # Errors
    /// The device's.
    pub fn attachments(&self) -> Result<Vec<Attachment>, Error> {
        let mut all: Vec<Attachment> = Vec::new();
        loop {
            let last = all.last().map_or(0, |attachment| attachment.number.0);
            match self.attachment_from(last, true)? {
                // Numbers only grow, or this would not end.
                Some(next) if next.number.0 > last => all.push(next),
                _ => return Ok(all),
            }
        }
    }

    fn attachment_from(&self, number: u32, next: bool) -> Result<Option<Attachment>, Error> {
        let mut answer = abi::Attachment {
            attachment: number,
            next: next.into(),
            ..abi::Attachment::default()
        };
        let what = || "asking about attachments".to_owned();
        match self.requests.ask(Request::Attachment(&mut answer)) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error::from_device(what(), String::new, error)),
            Ok(()) => match Attachment::new(&answer) {
                Some(attachment) => Ok(Some(attachment)),
                None => Err(Error::Answer {
                    what: what(),
                    answer: format!("{answer:?}"),
                }),
            },
        }
    }

    /// Makes a map of an extension, under a number below 16.
    ///
    /// # Errors
    /// The extension is not there, the map is there already, or the sizes are none.
    pub fn make_map(&self, id: Id, number: u32, sizes: MapSizes) -> Result<Map<'_>, Error> {
        Map::make(&*self.requests, id, number, sizes)
    }

    /// A map that is there.
    ///
    /// # Errors
    /// It is not.
    pub fn map(&self, id: Id, number: u32) -> Result<Map<'_>, Error> {
        Map::open(&*self.requests, id, number)
    }

    /// Opens an extension: its shared area, and its ring.
    ///
    /// # Errors
    /// It is not there, or its area cannot be mapped.
    pub fn opened(&self, id: Id) -> Result<Opened, Error> {
        let what = || format!("opening extension {id}");
        let size = self.statistics(id)?.shared_size;
        let opened = self.requests.open(id.0);
        let opened = opened.and_then(|descriptor| Opened::new(descriptor, size as usize));
        opened.map_err(|error| about(what(), id, error))
    }
}

/// The error of a request about an extension.
fn about(what: String, id: Id, error: io::Error) -> Error {
    error::from_device(what, || format!("extension {id}"), error)
}

fn about_segment(what: String, options: &LoadOptions, error: io::Error) -> Error {
    let which = || match options.segment {
        Some(id) => format!("extension {id}, whose segment is asked for,"),
        None => "what the options name".into(),
    };
    error::from_device(what, which, error)
}

fn accepted(image: &Image, load: &abi::Load, what: impl Fn() -> String) -> Result<Loaded, Error> {
    match (load.verdict.verdict, load.id) {
        (judge::ACCEPTED, 0) => Err(Error::Answer {
            what: what(),
            answer: "accepted without a number".into(),
        }),
        (judge::ACCEPTED, id) => Ok(Loaded {
            id: Id(id),
            verdict: load.verdict,
        }),
        _ => Err(Error::Refused(Box::new(Refusal::new(image, load.verdict)))),
    }
}
