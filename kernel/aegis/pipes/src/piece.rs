//! What one layer does with the words of a message.
//!
//! Its text finds in `word` what the piece before it left there, in `AT` the word's number, in
//! `result` the words of the page that is shared. `$` becomes the piece's number, so that names
//! with it are this piece's own, and `result[$ + 1]` is its word.

use alloc::format;
use alloc::string::String;

/// What the kernel offers handlers.
pub(crate) const SERVICES: &str = "long put(unsigned long place, unsigned long capability, const void *from, unsigned long length);";

/// A piece of a pipe: E-code.
#[derive(Clone, Debug, Default)]
pub struct Piece {
    /// What is declared outside of the function.
    pub outside: String,
    /// What it keeps, declared before the loop.
    pub before: String,
    /// What it does with a word.
    pub step: String,
    /// What is to be done behind the loop.
    pub end: String,
}

impl Piece {
    /// The Internet's sum of all words, not inverted, in the order of bytes in which messages have
    /// it: to its word of the page.
    pub fn sum() -> Piece {
        Piece {
            before: "unsigned long low$ = 0, high$ = 0;".into(),
            step: "low$ += (unsigned)word; high$ += word >> 32;".into(),
            end: "low$ += high$; low$ = (low$ & 0xffff) + (low$ >> 16 & 0xffff) + (low$ >> 32);\
                  low$ = (low$ & 0xffff) + (low$ >> 16); low$ = (low$ & 0xffff) + (low$ >> 16);\
                  result[$ + 1] = low$;"
                .into(),
            ..Piece::default()
        }
    }

    /// The bytes of each half of a word change their order.
    pub fn swap() -> Piece {
        Piece {
            step: "word = __builtin_bswap64(word); word = word >> 32 | word << 32;".into(),
            ..Piece::default()
        }
    }

    /// Each word is combined with a key.
    pub fn key(key: u64) -> Piece {
        Piece {
            before: format!("const unsigned long key$ = {key:#x};"),
            step: "word ^= key$;".into(),
            ..Piece::default()
        }
    }

    /// Words go to an offset of the window, a multiple of 8, where the owner has bound pages. A
    /// further pass reads them there.
    pub fn copy(to: u64) -> Piece {
        Piece {
            before: format!("unsigned long *to$ = (unsigned long *){to:#x};"),
            step: "to$[AT] = word;".into(),
            end: "from = to$;".into(),
            ..Piece::default()
        }
    }

    /// Words go to a place in a page by its capability: collected in the handler's memory, and put
    /// there at the end. What the kernel says goes to its word of the page.
    pub fn put(place: u64, capability: u64) -> Piece {
        Piece {
            outside: "static unsigned long put$[192];".into(),
            step: "put$[AT] = word;".into(),
            end: format!("result[$ + 1] = put({place:#x}, {capability:#x}, put$, 8 * words);"),
            ..Piece::default()
        }
    }
}
