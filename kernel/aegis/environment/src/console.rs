//! Printing to the machine's console. Lines are put together in memory and written by one call
//! each, so that lines of several environments do not mix.

use core::fmt::{self, Write};

use crate::calls;

/// Bytes of a line that are written at once; longer ones come in pieces.
const LINE: usize = 256;

/// A line that is being put together.
#[derive(Debug)]
pub struct Line {
    bytes: [u8; LINE],
    length: usize,
}

impl Line {
    /// An empty line.
    pub const fn new() -> Line {
        Line {
            bytes: [0; LINE],
            length: 0,
        }
    }

    /// Writes what there is.
    pub fn flush(&mut self) {
        let mut rest = &self.bytes[..self.length];
        while !rest.is_empty() {
            match calls::write(rest) {
                Ok(done) if done > 0 => rest = rest.get(done as usize..).unwrap_or(&[]),
                _ => break,
            }
        }
        self.length = 0;
    }
}

impl Default for Line {
    fn default() -> Line {
        Line::new()
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if self.length == LINE {
                self.flush();
            }
            self.bytes[self.length] = byte;
            self.length += 1;
        }
        Ok(())
    }
}

/// Prints what a format says. [`crate::print`] calls it.
pub fn write(arguments: fmt::Arguments<'_>) {
    let mut line = Line::new();
    // A line takes everything.
    let _ = line.write_fmt(arguments);
    line.flush();
}

/// The same, and ends the line. [`crate::println`] calls it.
pub fn write_line(arguments: fmt::Arguments<'_>) {
    let mut line = Line::new();
    let _ = line.write_fmt(arguments);
    let _ = line.write_char('\n');
    line.flush();
}

/// Prints to the console, as the macro of the same name in `std`.
#[macro_export]
macro_rules! print {
    ($($argument:tt)*) => { $crate::console::write(format_args!($($argument)*)) };
}

/// Prints a line to the console.
#[macro_export]
macro_rules! println {
    () => { $crate::print!("\n") };
    ($($argument:tt)*) => { $crate::console::write_line(format_args!($($argument)*)) };
}
