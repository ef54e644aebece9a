//! Maps of extensions of the kernel: `pt_kernel_map_…`.

use crate::boundary::{Source, Target};
use crate::failure::{self, Code, Failure};
use crate::handle::Handle;
use crate::kernel::KernelKind;
use postern_kernel::{Id, MapSizes};
use std::ffi::c_int;

/// `pt_kernel_map_make`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_map_make(
    kernel: Handle<KernelKind>,
    extension: u32,
    map: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
) -> c_int {
    failure::code(|| {
        let sizes = MapSizes {
            key: key_size,
            value: value_size,
            entries,
        };
        kernel.get()?.make_map(Id(extension), map, sizes)?;
        Ok(())
    })
}

/// Copies a key or value out, if the room is as long.
fn put(to: &mut [u8], bytes: &[u8], what: &str) -> Result<(), Failure> {
    if to.len() != bytes.len() {
        let (given, wanted) = (to.len(), bytes.len());
        let wrong = format!("room for a {what} of {given} bytes; this map's have {wanted}");
        return Err(Failure::new(Code::Argument, wrong));
    }
    to.copy_from_slice(bytes);
    Ok(())
}

/// `pt_kernel_map_get`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_map_get(
    kernel: Handle<KernelKind>,
    extension: u32,
    map: u32,
    key: Source<'_>,
    key_size: usize,
    value: Target<'_>,
    value_size: usize,
) -> c_int {
    let found = failure::number(|| {
        let (key, to) = (key.get(key_size, "key")?, value.get(value_size, "value")?);
        let device = kernel.get()?;
        match device.map(Id(extension), map)?.get(key)? {
            Some(value) => put(to, &value, "value").map(|()| 1),
            None => Ok(0),
        }
    });
    // 0, 1 or a code.
    found as c_int
}

/// `pt_kernel_map_set`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_map_set(
    kernel: Handle<KernelKind>,
    extension: u32,
    map: u32,
    key: Source<'_>,
    key_size: usize,
    value: Source<'_>,
    value_size: usize,
) -> c_int {
    failure::code(|| {
        let (key, value) = (key.get(key_size, "key")?, value.get(value_size, "value")?);
        let device = kernel.get()?;
        Ok(device.map(Id(extension), map)?.set(key, value)?)
    })
}

/// `pt_kernel_map_remove`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_map_remove(
    kernel: Handle<KernelKind>,
    extension: u32,
    map: u32,
    key: Source<'_>,
    key_size: usize,
) -> c_int {
    let removed = failure::number(|| {
        let key = key.get(key_size, "key")?;
        let device = kernel.get()?;
        Ok(device.map(Id(extension), map)?.remove(key)?.into())
    });
    removed as c_int
}

/// `pt_kernel_map_next`
#[unsafe(no_mangle)]
pub extern "C" fn pt_kernel_map_next(
    kernel: Handle<KernelKind>,
    extension: u32,
    map: u32,
    key: Source<'_>,
    key_size: usize,
    next: Target<'_>,
    next_size: usize,
    value: Target<'_>,
    value_size: usize,
) -> c_int {
    let found = failure::number(|| {
        // Apart from each other: the host may read on where it wrote.
        let key = key.get(key_size, "key")?.to_vec();
        let device = kernel.get()?;
        let map = device.map(Id(extension), map)?;
        match map.next((!key.is_empty()).then_some(&*key))? {
            Some((behind, its)) => {
                put(next.get(next_size, "next key")?, &behind, "key")?;
                put(value.get(value_size, "value")?, &its, "value")?;
                Ok(1)
            }
            None => Ok(0),
        }
    });
    found as c_int
}
