//! Extensions of the Linux kernel: `pt_kernel_…` but for maps, and `pt_kernel_options_…`.
//!
//! Numbers of extensions and attachments are the kernel's, which checks them.

use crate::boundary::{Out, Target, Text, TextTarget, Words};
use crate::failure::{self, Code, Failure};
use crate::handle::{Handle, kind};
use crate::object::{Draft, Object};
use crate::structures::{CKernelAttachment, CKernelStatistics};
use postern_kernel::{
    Attachment, AttachmentId, Device, Error, Family, Hook, Id, Image, LoadOptions, OnFault, Opened,
    Otherwise, Rights, Unreadable, abi,
};
use std::ffi::{OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

kind!(KernelKind: Arc<Device>, b'K', "pt_kernel");
kind!(KernelOptionsKind: Draft<LoadOptions>, b'E', "pt_kernel_options");
kind!(KernelOpenedKind: Arc<Object<Opened>>, b'G', "pt_kernel_opened");

/// Names in C and values, for the test that the header agrees.
pub const ENDS: [(&str, i32); 11] = [
    ("PT_KERNEL_RETURNED", abi::RETURNED as i32),
    ("PT_KERNEL_PAGE_FAULT", abi::PAGE_FAULT as i32),
    ("PT_KERNEL_DIVISION", abi::DIVISION as i32),
    ("PT_KERNEL_TRAP", abi::TRAP as i32),
    ("PT_KERNEL_TIMEOUT", abi::TIMEOUT as i32),
    ("PT_KERNEL_BAD_ARGUMENT", abi::BAD_ARGUMENT as i32),
    ("PT_KERNEL_SKIPPED", abi::SKIPPED as i32),
    ("PT_KERNEL_ENDED", abi::ENDED as i32),
    ("PT_KERNEL_ABSENT", abi::ABSENT as i32),
    ("PT_KERNEL_UNSUITABLE", abi::UNSUITABLE as i32),
    ("PT_KERNEL_KINDS", abi::KINDS as i32),
];
/// Likewise.
pub const RIGHTS: [(&str, i32); 4] = [
    ("PT_KERNEL_SEE_PACKETS", abi::MAY_SEE_PACKETS as i32),
    ("PT_KERNEL_CHANGE_PACKETS", abi::MAY_CHANGE_PACKETS as i32),
    ("PT_KERNEL_OBSERVE", abi::MAY_OBSERVE as i32),
    ("PT_KERNEL_LOG", abi::MAY_LOG as i32),
];
/// Likewise.
pub const POLICIES: [(&str, i32); 3] = [
    ("PT_KERNEL_KEEP", abi::FAULT_KEEPS as i32),
    ("PT_KERNEL_RESTART", abi::FAULT_RESTARTS as i32),
    ("PT_KERNEL_END", abi::FAULT_ENDS as i32),
];
/// Likewise.
pub const FAMILIES: [(&str, i32); 3] = [
    ("PT_KERNEL_INET", 1),
    ("PT_KERNEL_IPV4", 2),
    ("PT_KERNEL_IPV6", 10),
];

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match &error {
            Error::NoModule { .. } | Error::OtherVersion { .. } | Error::Answer { .. } => {
                Code::Machine
            }
            Error::Read(_) => Code::File,
            Error::Name { .. } | Error::Arguments { .. } | Error::Size { .. } => Code::Argument,
            Error::Shared { .. } => Code::Image,
            Error::Refused(refusal) if refusal.rule.is_none() => Code::Image,
            Error::Refused(_) => Code::Refused,
            Error::Absent { .. } => Code::Missing,
            Error::Busy { .. } => Code::Busy,
            Error::Memory { .. } => Code::Memory,
            _ => Code::System,
        };
        Failure::new(code, error.to_string())
    }
}

impl From<Unreadable> for Failure {
    fn from(error: Unreadable) -> Failure {
        Error::from(error).into()
    }
}

/// `pt_kernel_new`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_new(device: Text<'_>) -> Handle<KernelKind> {
    failure::or(Handle::NULL, || {
        let device = match device.optional("device")? {
            Some(path) => Device::open_at(path),
            None => Device::open(),
        };
        Ok(Handle::make(Arc::new(device?)))
    })
}

/// `pt_kernel_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_free(kernel: Handle<KernelKind>) -> c_int {
    failure::code(|| kernel.take().map(drop))
}

/// `pt_kernel_options_new`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_options_new() -> Handle<KernelOptionsKind> {
    failure::or(Handle::NULL, || Ok(Handle::draft(LoadOptions::default())))
}

/// `pt_kernel_options_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_options_free(options: Handle<KernelOptionsKind>) -> c_int {
    failure::code(|| options.take().map(drop))
}

/// `pt_kernel_options_name`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_options_name(
    options: Handle<KernelOptionsKind>,
    name: Text<'_>,
) -> c_int {
    failure::code(|| {
        let name = name.get("name")?;
        options.change(|options| {
            options.name = name.into();
            Ok(())
        })
    })
}

/// `pt_kernel_options_rights`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_options_rights(
    options: Handle<KernelOptionsKind>,
    rights: u32,
) -> c_int {
    failure::code(|| {
        options.change(|options| {
            options.rights = Rights(rights);
            Ok(())
        })
    })
}

/// `pt_kernel_options_on_fault`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_options_on_fault(
    options: Handle<KernelOptionsKind>,
    policy: c_int,
) -> c_int {
    failure::code(|| {
        let policy = match policy {
            0 => OnFault::Keep,
            1 => OnFault::Restart,
            2 => OnFault::End,
            _ => {
                let wrong = format!("{policy} is no policy; PT_KERNEL_KEEP, _RESTART and _END are");
                return Err(Failure::new(Code::Argument, wrong));
            }
        };
        options.change(|options| {
            options.on_fault = policy;
            Ok(())
        })
    })
}

/// `pt_kernel_options_segment`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_options_segment(
    options: Handle<KernelOptionsKind>,
    extension: u32,
) -> c_int {
    failure::code(|| {
        options.change(|options| {
            options.segment = (extension != 0).then_some(Id(extension));
            Ok(())
        })
    })
}

/// `pt_kernel_options_memory`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_options_memory(
    options: Handle<KernelOptionsKind>,
    heap: u32,
    one_window: c_int,
) -> c_int {
    failure::code(|| {
        options.change(|options| {
            (options.heap, options.one_window) = (heap, one_window != 0);
            Ok(())
        })
    })
}

/// `pt_kernel_options_limit`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_options_limit(
    options: Handle<KernelOptionsKind>,
    milliseconds: u32,
) -> c_int {
    failure::code(|| {
        let limit = Duration::from_millis(milliseconds.into());
        options.change(|options| {
            options.limit = (milliseconds != 0).then_some(limit);
            Ok(())
        })
    })
}

fn image(path: Text<'_>) -> Result<Image, Failure> {
    let path = Path::new(OsStr::from_bytes(path.bytes("image")?));
    Ok(Image::read(path)?)
}

/// The options, or for NULL those that a new handle has.
fn options(handle: Handle<KernelOptionsKind>) -> Result<Arc<LoadOptions>, Failure> {
    match handle.0 {
        0 => Ok(Arc::default()),
        _ => handle.as_it_is(),
    }
}

/// `pt_kernel_load`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_load(
    kernel: Handle<KernelKind>,
    path: Text<'_>,
    with: Handle<KernelOptionsKind>,
) -> i64 {
    failure::number(|| {
        let loaded = kernel.get()?.load(&image(path)?, &*options(with)?)?;
        Ok(loaded.id.0.into())
    })
}

/// `pt_kernel_replace`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_replace(
    kernel: Handle<KernelKind>,
    extension: u32,
    path: Text<'_>,
    with: Handle<KernelOptionsKind>,
) -> c_int {
    failure::code(|| {
        let (image, options) = (image(path)?, options(with)?);
        kernel.get()?.replace(Id(extension), &image, &options)?;
        Ok(())
    })
}

/// `pt_kernel_unload`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_unload(kernel: Handle<KernelKind>, extension: u32) -> c_int {
    failure::code(|| Ok(kernel.get()?.unload(Id(extension))?))
}

/// `pt_kernel_find`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_find(kernel: Handle<KernelKind>, name: Text<'_>) -> i64 {
    failure::number(|| Ok(kernel.get()?.find(name.get("name")?)?.0.into()))
}

/// `pt_kernel_next`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_next(kernel: Handle<KernelKind>, extension: u32) -> i64 {
    failure::number(|| {
        let list = kernel.get()?.list()?;
        let behind = list
            .iter()
            .map(|listed| listed.id.0)
            .filter(|id| *id > extension);
        Ok(behind.min().unwrap_or(0).into())
    })
}

/// `pt_kernel_statistics_of`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_statistics_of(
    kernel: Handle<KernelKind>,
    extension: u32,
    statistics: Out<'_, CKernelStatistics>,
) -> c_int {
    failure::code(|| {
        let to = statistics.needed("statistics")?;
        let found = kernel.get()?.statistics(Id(extension))?;
        let policy = match found.on_fault {
            OnFault::Keep => abi::FAULT_KEEPS,
            OnFault::Restart => abi::FAULT_RESTARTS,
            OnFault::End => abi::FAULT_ENDS,
        };
        to.put(CKernelStatistics {
            extension,
            rights: found.rights.0,
            policy,
            segment: found.segment.map_or(0, |id| id.0),
            image: found.size,
            memory: found.memory,
            ended: found.ended,
            queued: found.queued,
            lost: found.lost,
            restarts: found.restarts,
            hooks: found.hooks,
            instructions: found.verdict.instructions,
            depth: found.verdict.depth,
            longest_path: found.verdict.longest_path,
            shared: found.shared_size,
            reserved: [0; 7],
        });
        Ok(())
    })
}

/// `pt_kernel_last_fault`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_last_fault(
    kernel: Handle<KernelKind>,
    extension: u32,
    path: Text<'_>,
    text: TextTarget<'_>,
    size: usize,
) -> i64 {
    failure::number(|| {
        let image = match path.optional("image")? {
            Some(path) => Some(Image::read(path)?),
            None => None,
        };
        let last = kernel.get()?.statistics(Id(extension))?.last;
        let told = last.map_or_else(String::new, |ended| ended.told(image.as_ref()));
        text.fill(size, &told)
    })
}

/// `pt_kernel_call`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_call(
    kernel: Handle<KernelKind>,
    extension: u32,
    function: Text<'_>,
    arguments: Words<'_>,
    count: usize,
    value: Out<'_, i64>,
) -> c_int {
    let ended = failure::number(|| {
        let (function, arguments) = (
            function.get("function")?,
            arguments.get(count, "arguments")?,
        );
        let ended = kernel.get()?.call(Id(extension), function, &arguments)?;
        if let postern_kernel::Ended::Returned(returned) = ended {
            value.put(returned as i64);
        }
        Ok(ended.number().into())
    });
    // Kinds and codes are small.
    ended as c_int
}

/// `pt_kernel_queue`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_queue(
    kernel: Handle<KernelKind>,
    extension: u32,
    function: Text<'_>,
    arguments: Words<'_>,
    count: usize,
) -> c_int {
    failure::code(|| {
        let (function, arguments) = (
            function.get("function")?,
            arguments.get(count, "arguments")?,
        );
        Ok(kernel.get()?.queue(Id(extension), function, &arguments)?)
    })
}

fn attach(
    kernel: Handle<KernelKind>,
    extension: u32,
    function: Text<'_>,
    hook: &Hook,
) -> Result<i64, Failure> {
    let function = function.get("function")?;
    let attached = kernel.get()?.attach(Id(extension), function, hook)?;
    Ok(attached.0.into())
}

/// `pt_kernel_attach_netfilter`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_attach_netfilter(
    kernel: Handle<KernelKind>,
    extension: u32,
    function: Text<'_>,
    hook: u32,
    family: u32,
    priority: c_int,
    capture: u32,
    otherwise: c_int,
) -> i64 {
    failure::number(|| {
        let family = match family {
            1 => Family::Inet,
            2 => Family::Ipv4,
            10 => Family::Ipv6,
            _ => {
                let wrong = format!("{family} is no family; PT_KERNEL_INET, _IPV4 and _IPV6 are");
                return Err(Failure::new(Code::Argument, wrong));
            }
        };
        let otherwise = match otherwise {
            0 => Otherwise::Drop,
            _ => Otherwise::Accept,
        };
        let hook = Hook::Netfilter {
            hook,
            family,
            priority,
            capture,
            otherwise,
        };
        attach(kernel, extension, function, &hook)
    })
}

/// `pt_kernel_attach_tracepoint`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_attach_tracepoint(
    kernel: Handle<KernelKind>,
    extension: u32,
    function: Text<'_>,
    name: Text<'_>,
) -> i64 {
    failure::number(|| {
        let hook = Hook::Tracepoint(name.get("name")?.into());
        attach(kernel, extension, function, &hook)
    })
}

/// `pt_kernel_attach_kprobe`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_attach_kprobe(
    kernel: Handle<KernelKind>,
    extension: u32,
    function: Text<'_>,
    symbol: Text<'_>,
    offset: u32,
) -> i64 {
    failure::number(|| {
        let symbol = symbol.get("symbol")?.into();
        attach(
            kernel,
            extension,
            function,
            &Hook::Kprobe { symbol, offset },
        )
    })
}

/// `pt_kernel_attach_timer`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_attach_timer(
    kernel: Handle<KernelKind>,
    extension: u32,
    function: Text<'_>,
    microseconds: u32,
) -> i64 {
    failure::number(|| {
        let hook = Hook::Timer(Duration::from_micros(microseconds.into()));
        attach(kernel, extension, function, &hook)
    })
}

/// `pt_kernel_detach`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_detach(kernel: Handle<KernelKind>, attachment: u32) -> c_int {
    failure::code(|| Ok(kernel.get()?.detach(AttachmentId(attachment))?))
}

/// A text in a field, cut where it is too long.
fn field<const SIZE: usize>(text: &str) -> [c_char; SIZE] {
    let mut field = [0; SIZE];
    for (to, byte) in field.iter_mut().zip(text.bytes().take(SIZE - 1)) {
        *to = byte as c_char;
    }
    field
}

/// `pt_kernel_attachment_next`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_attachment_next(
    kernel: Handle<KernelKind>,
    attachment: u32,
    found: Out<'_, CKernelAttachment>,
) -> i64 {
    failure::number(|| {
        let all = kernel.get()?.attachments()?;
        let behind = |one: &&Attachment| one.number.0 > attachment;
        let Some(next) = all.iter().find(behind) else {
            return Ok(0);
        };
        found.put(CKernelAttachment {
            attachment: next.number.0,
            extension: next.extension.0,
            calls: next.calls,
            passed: next.passed,
            function: field(&next.function),
            hook: field(&next.hook.to_string()),
        });
        Ok(next.number.0.into())
    })
}

/// `pt_kernel_opened_new`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_opened_new(
    kernel: Handle<KernelKind>,
    extension: u32,
) -> Handle<KernelOpenedKind> {
    failure::or(Handle::NULL, || {
        let opened = kernel.get()?.opened(Id(extension))?;
        Ok(Handle::make(Arc::new(Object::new(opened))))
    })
}

/// `pt_kernel_opened_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_opened_free(opened: Handle<KernelOpenedKind>) -> c_int {
    failure::code(|| opened.take().map(drop))
}

/// `pt_kernel_opened_area`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_opened_area(
    opened: Handle<KernelOpenedKind>,
    size: Out<'_, usize>,
) -> *mut c_void {
    failure::or(std::ptr::null_mut(), || {
        let opened = opened.get()?;
        let opened = opened.lock()?;
        let area = opened.area();
        size.put(area.map_or(0, |area| area.size()));
        let first = area.and_then(|area| area.words().first());
        Ok(first.map_or(std::ptr::null_mut(), |word| word.as_ptr().cast()))
    })
}

/// `pt_kernel_opened_read`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_opened_read(
    opened: Handle<KernelOpenedKind>,
    entry: Target<'_>,
    size: usize,
    milliseconds: c_int,
) -> i64 {
    failure::number(|| {
        let to = entry.get(size, "entry")?;
        let longest = u64::try_from(milliseconds).ok().map(Duration::from_millis);
        let opened = opened.get()?;
        let mut opened = opened.lock()?;
        let next = opened.events(longest).next();
        match next {
            Some(Ok(bytes)) => {
                let count = bytes.len().min(to.len());
                to[..count].copy_from_slice(&bytes[..count]);
                Ok(bytes.len() as i64)
            }
            Some(Err(error)) => Err(Failure::new(
                Code::System,
                format!("reading the ring: {error}"),
            )),
            None if opened.is_over() => Err(Failure::new(
                Code::End,
                "the extension was unloaded: no more entries come",
            )),
            None => Err(Failure::new(
                Code::Busy,
                "no entry came in this time; ask again",
            )),
        }
    })
}
