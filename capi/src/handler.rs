//! Extensions that run on packets: `pt_handler_…`.

use crate::boundary::{Out, PacketIn, Text, User};
use crate::domain::{self, DomainKind, Opened};
use crate::failure::{self, Failure};
use crate::handle::{Handle, kind};
use crate::image::ImageKind;
use crate::object::Object;
use crate::share::SharedKind;
use postern_capture::{Answers, ExtensionError, Handler};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// A handler with what the C host holds of it.
pub struct Attached {
    running: Object<Running>,
    domain: Handle<DomainKind>,
}

struct Running {
    handler: Handler,
    /// What the last call answered; the host has pointers into it until the next one.
    answers: Answers,
}

kind!(HandlerKind: Arc<Attached>, b'H', "pt_handler");

impl From<ExtensionError> for Failure {
    fn from(error: ExtensionError) -> Failure {
        match error {
            ExtensionError::Filter(error) => error.into(),
            ExtensionError::Instantiate(error) => error.into(),
            ExtensionError::Share(error) => error.into(),
            ExtensionError::Export(ref inner, _) => {
                Failure::new(failure::symbol(inner), error.to_string())
            }
            _ => Failure::new(failure::Code::Limit, error.to_string()),
        }
    }
}

/// `pt_handler_new`
#[unsafe(no_mangle)]
pub extern "C" fn pt_handler_new(
    image: Handle<ImageKind>,
    name: Text<'_>,
    area: Handle<SharedKind>,
) -> Handle<HandlerKind> {
    failure::or(Handle::NULL, || {
        let (image, name) = (image.get()?, name.optional("name")?);
        let area = match area.0 {
            0 => None,
            _ => Some(area.get()?.shared),
        };
        let handler = Handler::new(&image, name.unwrap_or("handler"), area.as_ref())?;
        let domain = domain::enter(Arc::new(Opened::new(
            handler.domain().clone(),
            User::default(),
        )));
        let answers = Answers::default();
        Ok(Handle::make(Arc::new(Attached {
            running: Object::new(Running { handler, answers }),
            domain,
        })))
    })
}

/// `pt_handler_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_handler_free(handler: Handle<HandlerKind>) -> c_int {
    failure::code(|| {
        let attached = handler.take()?;
        if let Ok(opened) = domain::leave(attached.domain) {
            opened.domain.close();
        }
        Ok(())
    })
}

/// `pt_handler_domain`
#[unsafe(no_mangle)]
pub extern "C" fn pt_handler_domain(handler: Handle<HandlerKind>) -> Handle<DomainKind> {
    failure::or(Handle::NULL, || Ok(handler.get()?.domain))
}

/// `pt_handler_run`
#[unsafe(no_mangle)]
pub extern "C" fn pt_handler_run(handler: Handle<HandlerKind>, packet: PacketIn<'_>) -> c_int {
    failure::number(|| {
        let (attached, seen) = (handler.get()?, packet.get()?.seen()?);
        let mut running = attached.running.lock()?;
        running.answers = Answers::default();
        let (taken, answers) = running.handler.run(&seen)?;
        running.answers = answers;
        Ok(i64::from(taken))
    }) as c_int
}

/// `pt_handler_answer`
#[unsafe(no_mangle)]
pub extern "C" fn pt_handler_answer(
    handler: Handle<HandlerKind>,
    index: usize,
    length: Out<'_, usize>,
) -> *const c_void {
    failure::or(std::ptr::null(), || {
        let attached = handler.get()?;
        let running = attached.running.lock()?;
        let frame = running.answers.frames().nth(index);
        length.put(frame.map_or(0, <[u8]>::len));
        Ok(frame.map_or(std::ptr::null(), |frame| frame.as_ptr().cast()))
    })
}

/// `pt_handler_counters`
#[unsafe(no_mangle)]
pub extern "C" fn pt_handler_counters(
    handler: Handle<HandlerKind>,
    calls: Out<'_, u64>,
    faults: Out<'_, u64>,
) -> c_int {
    failure::code(|| {
        let attached = handler.get()?;
        let running = attached.running.lock()?;
        calls.put(running.handler.calls());
        faults.put(running.handler.faults());
        Ok(())
    })
}
