//! What a Rust crate says to become an extension of Postern, by `cargo postern build`.
//!
//! ```ignore
//! #![no_std]
//!
//! postern::service! {
//!     fn log_number(number: u64);
//! }
//!
//! #[postern::export]
//! pub fn checksum(data: &[u8]) -> u32 {
//!     data.iter().fold(1, |sum, byte| sum.wrapping_mul(31) + u32::from(*byte))
//! }
//! ```
//!
//! A panic ends the call of the host with a fault that has its message and line. Memory comes from
//! the heap of the window. With the feature `std` both are std's own.
#![no_std]

pub mod trusted;

pub use postern_extension_macros::export;

/// Functions of the host, which the domain must be granted by name.
///
/// ```ignore
/// postern::service! {
///     fn clock_millis() -> u64;
///     fn log_line(text: *const u8, size: usize);
/// }
/// ```
#[macro_export]
macro_rules! service {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)+) => {
        unsafe extern "C" {
            $($(#[$meta])* pub safe fn $name($($argument: $type),*) $(-> $result)?;)+
        }
        $(
            // Where the link reads which functions are the host's.
            #[cfg(postern)]
            ::core::arch::global_asm!(
                ".pushsection .postern.services,\"e\",@progbits",
                ::core::concat!(".asciz \"", ::core::stringify!($name), "\""),
                ".popsection",
            );
        )+
    };
}
