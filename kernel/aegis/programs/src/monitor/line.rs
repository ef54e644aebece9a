//! A line from the console, with what people expect of one: it is shown as it is typed, and can be
//! mended.

use postern_aegis::{Error, calls, console, entry, print};

/// Characters of a line.
const LENGTH: usize = 120;

/// A line.
pub struct Line {
    bytes: [u8; LENGTH],
    length: usize,
}

impl Line {
    pub const fn new() -> Line {
        Line {
            bytes: [0; LENGTH],
            length: 0,
        }
    }

    /// Reads up to the end of a line. Nothing is typed: other environments run.
    pub fn read(&mut self) -> &str {
        self.length = 0;
        loop {
            let byte = match calls::read() {
                Ok(byte) => byte,
                Err(Error::Again) => {
                    entry::yield_slice();
                    continue;
                }
                Err(error) => {
                    print!("no console: {error}\n");
                    postern_aegis::start::exit()
                }
            };
            match byte {
                b'\r' | b'\n' => break,
                // Backspace, as both kinds of terminals send it.
                8 | 127 if self.length > 0 => {
                    self.length -= 1;
                    print!("\u{8} \u{8}");
                }
                // The whole line (Ctrl-U).
                21 => {
                    for _ in 0..self.length {
                        print!("\u{8} \u{8}");
                    }
                    self.length = 0;
                }
                b' '..=b'~' if self.length < LENGTH => {
                    self.bytes[self.length] = byte;
                    self.length += 1;
                    console::write(format_args!("{}", byte as char));
                }
                _ => {}
            }
        }
        print!("\n");
        core::str::from_utf8(&self.bytes[..self.length]).unwrap_or("")
    }
}
