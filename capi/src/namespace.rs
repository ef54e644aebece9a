//! Namespaces: `pt_namespace_…`.

use crate::boundary::{Out, Source, SourceErrorOut, Target, Text, TextTarget, Words};
use crate::domain::{self, DomainKind, Opened};
use crate::failure::{self, Code, Failure, Place};
use crate::handle::{Handle, kind};
use crate::image::ImageKind;
use crate::options::{self, OptionsKind};
use crate::pointers::Pointers;
use postern::{
    CreateError, FunctionId, IdCallError, Image, Namespace, NamespaceError, Recovery, RegisterUse,
};
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::time::Duration;

/// A namespace with what the C host holds of it.
pub struct Named {
    space: Namespace,
    domain: Handle<DomainKind>,
    pointers: Pointers,
}

kind!(NamespaceKind: Arc<Named>, b'N', "pt_namespace");

/// Names in C and values, for the test that the header agrees.
pub const RECOVERIES: [(&str, i32); 4] = [
    ("PT_RECOVER_DEFAULT", 0),
    ("PT_RECOVER_TERMINATE", 1),
    ("PT_RECOVER_CONTINUE", 2),
    ("PT_RECOVER_RESTART", 3),
];
/// Names in C and values of what functions may use.
pub const USES: [(&str, i32); 4] = [
    ("PT_USE_GENERAL", 0),
    ("PT_USE_VECTORS", 1),
    ("PT_USE_WIDE_VECTORS", 2),
    ("PT_USE_ALL", 3),
];
/// Names in C and values of what can be counted.
pub const COUNTS: [(&str, i32); 7] = [
    ("PT_NAMESPACE_CREATED", 0),
    ("PT_NAMESPACE_LINKED", 1),
    ("PT_NAMESPACE_UNLINKED", 2),
    ("PT_NAMESPACE_FREED", 3),
    ("PT_NAMESPACE_NAMES", 4),
    ("PT_NAMESPACE_UNITS", 5),
    ("PT_NAMESPACE_CODE_LEFT", 6),
];

impl From<NamespaceError> for Failure {
    fn from(error: NamespaceError) -> Failure {
        let code = match error {
            NamespaceError::Load(inner) => return inner.into(),
            NamespaceError::Instantiate(inner) => return inner.into(),
            _ => Code::Limit,
        };
        Failure::new(code, error.to_string())
    }
}

impl From<CreateError> for Failure {
    fn from(error: CreateError) -> Failure {
        let code = match &error {
            CreateError::Source(_) => Code::Source,
            CreateError::Unresolved(_) | CreateError::Link(_) => Code::Unresolved,
            CreateError::Signature { .. } => Code::Signature,
            CreateError::Refused { .. } | CreateError::Registers { .. } => Code::Refused,
            CreateError::Room { .. } => Code::Limit,
            CreateError::Map(_) => Code::Memory,
            CreateError::Barrier(_) => Code::System,
            CreateError::Defined { .. } | CreateError::Twice(_) => Code::Argument,
            _ => Code::Image,
        };
        let mut failure = Failure::new(code, error.to_string());
        if let CreateError::Source(errors) = &error {
            let places = errors.list.iter().map(|error| Place {
                at: [error.line, error.column, error.length],
                texts: [
                    error.rule.name(),
                    &error.file,
                    &error.message,
                    &error.help,
                    &error.source_line,
                ]
                .map(failure::text),
            });
            failure.places = places.collect();
        }
        failure
    }
}

/// `pt_error_source`
#[unsafe(no_mangle)]
pub extern "C" fn pt_error_source(number: u32, to: SourceErrorOut<'_>) -> c_int {
    c_int::from(failure::place(number).is_some_and(|place| to.put(place)))
}

impl From<IdCallError> for Failure {
    fn from(error: IdCallError) -> Failure {
        let code = match error {
            IdCallError::Symbol(inner) => return inner.into(),
            IdCallError::Call(inner) => return inner.into(),
            IdCallError::Arguments { .. } => Code::Argument,
            _ => Code::Missing,
        };
        Failure::new(code, error.to_string())
    }
}

fn recovery(wanted: c_int) -> Result<Option<Recovery>, Failure> {
    let all = [
        None,
        Some(Recovery::Terminate),
        Some(Recovery::Continue),
        Some(Recovery::Restart),
    ];
    options::pick(&all, wanted)
}

/// `pt_namespace_new`
#[unsafe(no_mangle)]
pub extern "C" fn pt_namespace_new(
    image: Handle<ImageKind>,
    options: Handle<OptionsKind>,
    recover: c_int,
    uses: c_int,
) -> Handle<NamespaceKind> {
    failure::or(Handle::NULL, || {
        let options = options::get(options)?;
        let uses = options::pick(
            &[
                RegisterUse::General,
                RegisterUse::Vectors,
                RegisterUse::WideVectors,
                RegisterUse::All,
            ],
            uses,
        )?;
        let mut builder = match image.0 {
            0 => Namespace::builder(),
            _ => Namespace::over(&image.get()?),
        };
        if let Some(back_off) = options.back_off() {
            builder = builder.back_off(back_off);
        }
        let user = options.user;
        let space = builder
            .room(options.capacity.clone())
            .registers(uses)
            .recovery(recovery(recover)?.unwrap_or_default())
            .domain(move |builder| options.apply_without_restart(builder))
            .build()?;
        let domain = domain::enter(Arc::new(Opened::new(space.domain().clone(), user)));
        Ok(Handle::make(Arc::new(Named {
            space,
            domain,
            pointers: Pointers::default(),
        })))
    })
}

/// `pt_namespace_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_namespace_free(namespace: Handle<NamespaceKind>) -> c_int {
    failure::code(|| {
        let named = namespace.take()?;
        let _ = domain::leave(named.domain);
        named.space.domain().close();
        Ok(())
    })
}

/// `pt_namespace_domain`
#[unsafe(no_mangle)]
pub extern "C" fn pt_namespace_domain(namespace: Handle<NamespaceKind>) -> Handle<DomainKind> {
    failure::or(Handle::NULL, || Ok(namespace.get()?.domain))
}

/// `pt_namespace_create`
#[unsafe(no_mangle)]
pub extern "C" fn pt_namespace_create(
    namespace: Handle<NamespaceKind>,
    unit: Text<'_>,
    source: Text<'_>,
) -> c_int {
    failure::code(|| {
        let named = namespace.get()?;
        named
            .space
            .create(unit.get("unit's name")?, source.get("source")?)?;
        Ok(())
    })
}

/// `pt_namespace_create_object`
#[unsafe(no_mangle)]
pub extern "C" fn pt_namespace_create_object(
    namespace: Handle<NamespaceKind>,
    unit: Text<'_>,
    object: Source<'_>,
    len: usize,
) -> c_int {
    failure::code(|| {
        let named = namespace.get()?;
        let (unit, object) = (unit.get("unit's name")?, object.get(len, "object")?);
        named.space.create_object(unit, object, &[])?;
        Ok(())
    })
}

/// `pt_ecode_image`
#[unsafe(no_mangle)]
pub extern "C" fn pt_ecode_image(
    unit: Text<'_>,
    source: Text<'_>,
    to: Target<'_>,
    size: usize,
) -> i64 {
    failure::number(|| {
        let (unit, source) = (unit.get("unit's name")?, source.get("source")?);
        let file = postern::compile_image(unit, source)?;
        // Judged here, too, so that what is stored can be loaded.
        Image::from_bytes(&file)?;
        if file.len() <= size {
            to.get(file.len(), "buffer")?.copy_from_slice(&file);
        }
        Ok(file.len() as i64)
    })
}

/// `pt_namespace_link`
#[unsafe(no_mangle)]
pub extern "C" fn pt_namespace_link(
    namespace: Handle<NamespaceKind>,
    name: Text<'_>,
    other: Text<'_>,
) -> c_int {
    failure::code(|| {
        let named = namespace.get()?;
        let (name, other) = (name.get("name")?, other.get("function's name")?);
        named.space.link(name, other)?;
        Ok(())
    })
}

/// `pt_namespace_delete`
#[unsafe(no_mangle)]
pub extern "C" fn pt_namespace_delete(namespace: Handle<NamespaceKind>, name: Text<'_>) -> c_int {
    failure::code(|| {
        let (named, name) = (namespace.get()?, name.get("name")?);
        match named.space.delete(name) {
            true => Ok(()),
            false => Err(missing(name)),
        }
    })
}

fn missing(name: &str) -> Failure {
    Failure::new(Code::Missing, format!("the namespace has no `{name}`"))
}

/// `pt_namespace_collect`
#[unsafe(no_mangle)]
pub extern "C" fn pt_namespace_collect(namespace: Handle<NamespaceKind>) -> c_int {
    failure::code(|| match namespace.get()?.space.collect() {
        true => Ok(()),
        false => Err(Failure::new(
            Code::Busy,
            "somebody is inside of what was deleted or replaced",
        )),
    })
}

/// `pt_namespace_lookup`
#[unsafe(no_mangle)]
pub extern "C" fn pt_namespace_lookup(namespace: Handle<NamespaceKind>, name: Text<'_>) -> u64 {
    failure::or(0, || {
        let (named, name) = (namespace.get()?, name.get("function's name")?);
        let id = named.space.lookup(name).ok_or_else(|| missing(name))?;
        Ok(id.number())
    })
}

/// `pt_namespace_call`
#[unsafe(no_mangle)]
pub extern "C" fn pt_namespace_call(
    namespace: Handle<NamespaceKind>,
    id: u64,
    arguments: Words<'_>,
    count: usize,
    result: Out<'_, u64>,
) -> c_int {
    let mut ended = None;
    let code = failure::code(|| {
        let named = namespace.get()?;
        let arguments = arguments.get(count, "arguments")?;
        match named.space.call(FunctionId::from_number(id), &arguments) {
            Ok(value) => result.put(value),
            // The runtime has it, with its fault, for `pt_fault_last`.
            Err(IdCallError::Call(error)) => ended = Some(failure::call(&error)),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    });
    ended.map_or(code, |code| code as c_int)
}

/// `pt_namespace_sym`
#[unsafe(no_mangle)]
pub extern "C" fn pt_namespace_sym(
    namespace: Handle<NamespaceKind>,
    name: Text<'_>,
    signature: Text<'_>,
) -> *mut c_void {
    failure::or(0, || {
        let named = namespace.get()?;
        let make = |name: &str, signature: &_| named.space.function_pointer(name, signature);
        named.pointers.by_name(name, signature, make)
    }) as *mut c_void
}

/// `pt_namespace_signature`
#[unsafe(no_mangle)]
pub extern "C" fn pt_namespace_signature(
    namespace: Handle<NamespaceKind>,
    name: Text<'_>,
    to: TextTarget<'_>,
    size: usize,
) -> i64 {
    failure::number(|| {
        let signature = namespace
            .get()?
            .space
            .signature(name.get("function's name")?)?;
        to.fill(size, &signature.to_string())
    })
}

/// `pt_namespace_variable`
#[unsafe(no_mangle)]
pub extern "C" fn pt_namespace_variable(namespace: Handle<NamespaceKind>, name: Text<'_>) -> u32 {
    failure::or(0, || {
        let (named, name) = (namespace.get()?, name.get("variable's name")?);
        let offset = named.space.variable(name).ok_or_else(|| missing(name))?;
        Ok(offset.0)
    })
}

fn of_function(
    namespace: Handle<NamespaceKind>,
    id: u64,
    set: impl FnOnce(&Namespace, FunctionId) -> Result<bool, Failure>,
) -> c_int {
    failure::code(|| {
        let named = namespace.get()?;
        match set(&named.space, FunctionId::from_number(id))? {
            true => Ok(()),
            false => Err(Failure::new(Code::Missing, "the function was deleted")),
        }
    })
}

/// `pt_namespace_quantum`
#[unsafe(no_mangle)]
pub extern "C" fn pt_namespace_quantum(
    namespace: Handle<NamespaceKind>,
    id: u64,
    microseconds: u64,
) -> c_int {
    of_function(namespace, id, |space, id| {
        let quantum = (microseconds != 0).then(|| Duration::from_micros(microseconds));
        Ok(space.set_quantum(id, quantum))
    })
}

/// `pt_namespace_recovery`
#[unsafe(no_mangle)]
pub extern "C" fn pt_namespace_recovery(
    namespace: Handle<NamespaceKind>,
    id: u64,
    recover: c_int,
) -> c_int {
    of_function(namespace, id, |space, id| {
        Ok(space.set_recovery(id, recovery(recover)?))
    })
}

/// `pt_namespace_count`
#[unsafe(no_mangle)]
pub extern "C" fn pt_namespace_count(
    namespace: Handle<NamespaceKind>,
    what: c_int,
    value: Out<'_, u64>,
) -> c_int {
    failure::code(|| {
        let c = namespace.get()?.space.counters();
        let all = [
            c.created,
            c.linked,
            c.unlinked,
            c.freed,
            c.names as u64,
            c.units as u64,
            c.code_left,
        ];
        value.put(options::pick(&all, what)?);
        Ok(())
    })
}
