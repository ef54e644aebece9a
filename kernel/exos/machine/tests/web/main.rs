//! The web server of ExOS, asked by this machine through a forwarded port.

mod files;
mod guest;
mod hostile;
mod mounted;
mod others;
