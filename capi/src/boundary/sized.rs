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
    pub fn put(self, counters: CCounters) -> Result<(), Failure> {
        if self.0.is_null() {
            return Err(null("counters"));
        }
        // SAFETY: the host's structure, of integers, which begins with its size.
        unsafe { put(self.0, counters, "pt_counters") }
    }
}

/// `pt_source_error *`, as `pt_counters *`.
#[repr(transparent)]
pub struct SourceErrorOut<'call>(*mut CSourceError, PhantomData<&'call ()>);

impl SourceErrorOut<'_> {
    /// Fills what the host knows of the structure. False for NULL, or a size that no version has.
    pub fn put(self, error: CSourceError) -> bool {
        // SAFETY: not null, so a structure of the host's, which begins with its size.
        !self.0.is_null() && unsafe { put(self.0, error, "pt_source_error") }.is_ok()
    }
}

/// Fills as much of a structure as its host knows.
///
/// # Errors
/// A size that no version has.
///
/// # Safety
/// `to` is not null, and has as many bytes as its first word says. `T` begins with such a word, and
/// all bytes are valid for what the host makes of it.
unsafe fn put<T>(to: *mut T, mut from: T, name: &str) -> Result<(), Failure> {
    // SAFETY: the caller's promise; no more is copied than is there at either place.
    unsafe {
        let size = to.cast::<usize>().read();
        check_size(size, name)?;
        let from = (&raw mut from).cast::<u8>();
        from.cast::<usize>().write(size);
        std::ptr::copy_nonoverlapping(from, to.cast::<u8>(), size.min(size_of::<T>()));
    }
    Ok(())
}
