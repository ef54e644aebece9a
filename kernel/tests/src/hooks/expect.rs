//! What the tests of hooks ask for again and again, and how they say what they did not get.

use std::path::Path;
use std::time::Duration;

use postern_kernel::{
    Device, Ended, Error, Family, Hook, Id, Image, LoadOptions, OnFault, Opened, Otherwise, Rights,
};

/// Long enough for what comes within milliseconds.
pub const SOON: Duration = Duration::from_secs(10);

pub fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

pub fn image(name: &str) -> Result<Image, String> {
    Image::read(Path::new("/images").join(name)).map_err(told)
}

pub fn load(device: &Device, name: &str, options: LoadOptions) -> Result<Id, String> {
    let loaded = device.load(&image(name)?, &options).map_err(told)?;
    Ok(loaded.id)
}

pub fn options() -> LoadOptions {
    LoadOptions {
        rights: Rights::SEE_PACKETS | Rights::CHANGE_PACKETS | Rights::LOG,
        heap: 8192,
        limit: Some(Duration::from_millis(100)),
        ..LoadOptions::named("packets")
    }
}

pub fn packets(device: &Device) -> Result<Id, String> {
    load(device, "packets.pst", options())
}

pub fn probes(device: &Device) -> Result<Id, String> {
    let options = LoadOptions {
        rights: Rights::OBSERVE | Rights::LOG,
        on_fault: OnFault::End,
        ..LoadOptions::named("probes")
    };
    load(device, "probes.pst", options)
}

pub fn called(device: &Device, id: Id, function: &str, arguments: &[u64]) -> Result<u64, String> {
    match device.call(id, function, arguments).map_err(told)? {
        Ended::Returned(value) => Ok(value),
        other => Err(format!("{function}{arguments:?}: {}", other.told(None))),
    }
}

pub fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// What `wanted` returns, as soon as there is something.
pub fn eventually<T>(what: &str, mut wanted: impl FnMut() -> Option<T>) -> Result<T, String> {
    for _ in 0..SOON.as_millis() {
        if let Some(value) = wanted() {
            return Ok(value);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(format!("{what}: not within {SOON:?}"))
}

/// The number in the kernel's error.
pub fn refused(what: &str, result: Result<impl Sized, Error>, wanted: i32) -> Result<(), String> {
    let number = match result.as_ref().err() {
        Some(Error::Device { source, .. }) => source.raw_os_error(),
        Some(Error::Absent { .. }) => Some(libc::ENOENT),
        Some(Error::Memory { .. }) => Some(libc::ENOMEM),
        Some(Error::Busy { .. }) => Some(libc::EBUSY),
        _ => None,
    };
    ensure(number == Some(wanted), || {
        let error = result.err().map(|error| error.to_string());
        format!("{what}: {error:?}, not {wanted}")
    })
}

pub fn input(otherwise: Otherwise, priority: i32) -> Hook {
    Hook::Netfilter {
        hook: 1,
        family: Family::Ipv4,
        priority,
        capture: 0,
        otherwise,
    }
}

pub fn ring_entry(opened: &mut Opened) -> Result<Vec<u8>, String> {
    ensure(opened.wait(Some(SOON)).map_err(told)?, || {
        "no entry of the ring".into()
    })?;
    let entry = opened.next_entry().map_err(told)?;
    entry.ok_or_else(|| "no entry of the ring".into())
}
