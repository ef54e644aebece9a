//! Structures that say their size, and may be older or younger than this library.

use super::null;
use crate::failure::{Code, Failure};
use crate::structures::{CConfig, CCounters, CSourceError};
use std::marker::PhantomData;

/// What the host says about the size of one of its structures.
///
/// # Errors
/// A size that no version has.
fn check_size(size: usize, name: &str) -> Result<(), Failure> {
    match size {
        8..=4096 => Ok(()),
        _ => Err(Failure::new(
            Code::Argument,
            format!("{name}.size is {size}; set it to sizeof({name})"),
        )),
    }
}

/// `const pt_config *`: a structure that says its size, and may be older or younger than this
/// library.
#[repr(transparent)]
pub struct ConfigIn<'call>(*const CConfig, PhantomData<&'call ()>);

impl ConfigIn<'_> {
    /// The configuration; NULL is the default.
    ///
    /// # Errors
    /// A size that no version has, or fields that this version does not know.
    pub fn get(self) -> Result<CConfig, Failure> {
        let mut config = CConfig::default();
        if self.0.is_null() {
            return Ok(config);
        }
        // SAFETY: not null, so a structure that begins with its size.
        let size = unsafe { self.0.cast::<usize>().read() };
        let known = size_of::<CConfig>();
        check_size(size, "pt_config")?;
        // SAFETY: `size` bytes are there, as the host says.
        let given = unsafe { std::slice::from_raw_parts(self.0.cast::<u8>(), size) };
        if given.iter().skip(known).any(|&b| b != 0) {
            return Err(Failure::new(
                Code::Argument,
                "the pt_config has fields of a later version of Postern; install that version",
            ));
        }
        // SAFETY: copies at most the structure's size over integers, for which all bytes are valid.
        unsafe {
            std::ptr::copy_nonoverlapping(
                given.as_ptr(),
                (&raw mut config).cast::<u8>(),
                size.min(known),
            );
        }
        config.size = known;
        Ok(config)
    }
}

/// `pt_counters *`: a structure that says its size, and may be older or younger than this library.
#[repr(transparent)]
pub struct CountersOut<'call>(*mut CCounters, PhantomData<&'call ()>);

impl CountersOut<'_> {
    /// Fills what the host knows of the structure; fields of a later version stay as they are.
    ///
    /// # Errors
    /// NULL, or a size that no version has.
    pub fn put(self, mut counters: CCounters) -> Result<(), Failure> {
        if self.0.is_null() {
            return Err(null("counters"));
        }
        // SAFETY: not null, so a structure that begins with its size.
        let size = unsafe { self.0.cast::<usize>().read() };
        check_size(size, "pt_counters")?;
        counters.size = size;
        // SAFETY: `size` bytes are there, as the host says; at most the structure's are copied, all
        // integers.
        unsafe { put_sized(self.0, &counters, size) };
        Ok(())
    }
}

/// `pt_source_error *`, as `pt_counters *`.
#[repr(transparent)]
pub struct SourceErrorOut<'call>(*mut CSourceError, PhantomData<&'call ()>);

impl SourceErrorOut<'_> {
    /// Fills what the host knows of the structure. False for NULL, or a size that no version has.
    pub fn put(self, mut error: CSourceError) -> bool {
        if self.0.is_null() {
            return false;
        }
        // SAFETY: not null, so a structure that begins with its size.
        let size = unsafe { self.0.cast::<usize>().read() };
        if check_size(size, "pt_source_error").is_err() {
            return false;
        }
        error.size = size;
        // SAFETY: `size` bytes are there, as the host says.
        unsafe { put_sized(self.0, &error, size) };
        true
    }
}

/// Copies as much of a structure as its host knows.
///
/// # Safety
/// `to` has `size` bytes.
unsafe fn put_sized<T>(to: *mut T, from: &T, size: usize) {
    let from = std::ptr::from_ref(from).cast::<u8>();
    // SAFETY: no more than is there at either place.
    unsafe { std::ptr::copy_nonoverlapping(from, to.cast::<u8>(), size.min(size_of::<T>())) };
}
