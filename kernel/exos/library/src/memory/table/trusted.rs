//! The piece behind its interface of C (`exos/page-table.h`), and the two that the library has.

use core::ffi::{c_int, c_void};
use core::ptr::NonNull;

use postern_exos_pages::entry::Entry;
use postern_exos_pages::{Full, inverted, linear};

type Change = extern "C" fn(u64, u64, *mut c_void) -> u64;

/// As `struct exos_page_table`.
#[repr(C)]
pub struct Piece {
    clear: extern "C" fn(*mut u64, usize),
    find: extern "C" fn(*mut u64, usize, u64) -> Option<NonNull<u64>>,
    insert: extern "C" fn(*mut u64, usize, u64, u64) -> c_int,
    remove: extern "C" fn(*mut u64, usize, u64) -> u64,
    each: extern "C" fn(*mut u64, usize, u64, u64, Change, *mut c_void),
}

unsafe extern "C" {
    #[link_name = "exos_page_table"]
    safe static PIECE: Piece;
}

/// Where a table is, and how many words it has.
type Words = (u64, usize);

fn pointer((at, count): Words) -> (*mut u64, usize) {
    (at as *mut u64, count)
}

pub fn clear(words: Words) {
    let (words, count) = pointer(words);
    (PIECE.clear)(words, count);
}

#[inline]
pub fn find(words: Words, page: u64) -> Option<NonNull<u64>> {
    let (words, count) = pointer(words);
    // Without a table there is no word.
    if count == 0 {
        return None;
    }
    (PIECE.find)(words, count, page)
}

pub fn insert(words: Words, page: u64, entry: Entry) -> Result<(), Full> {
    let (words, count) = pointer(words);
    match (PIECE.insert)(words, count, page, entry.0) {
        0 => Ok(()),
        _ => Err(Full),
    }
}

pub fn remove(words: Words, page: u64) -> Option<Entry> {
    let (words, count) = pointer(words);
    match (PIECE.remove)(words, count, page) {
        0 => None,
        entry => Some(Entry(entry)),
    }
}

pub fn each<F: FnMut(u64, Entry) -> Option<Entry>>(
    words: Words,
    first: u64,
    end: u64,
    mut change: F,
) {
    extern "C" fn call<F: FnMut(u64, Entry) -> Option<Entry>>(
        page: u64,
        entry: u64,
        argument: *mut c_void,
    ) -> u64 {
        // SAFETY: the argument is what `each` gave, which waits meanwhile.
        let change = unsafe { &mut *argument.cast::<F>() };
        change(page, Entry(entry)).map_or(0, |entry| entry.0)
    }
    let (words, count) = pointer(words);
    if count != 0 {
        let argument = (&raw mut change).cast();
        (PIECE.each)(words, count, first, end, call::<F>, argument);
    }
}

/// A word of the table.
#[inline]
pub fn load(word: NonNull<u64>) -> u64 {
    // SAFETY: `find` has given it, and nothing was made or taken away since: callers use it at
    // once.
    unsafe { word.as_ptr().read_volatile() }
}

/// Changes a word of the table.
#[inline]
pub fn store(word: NonNull<u64>, entry: u64) {
    // SAFETY: as above.
    unsafe { word.as_ptr().write_volatile(entry) }
}

macro_rules! piece {
    ($module:ident, $symbol:ident, $name:literal, $table:ident) => {
        mod $module {
            use super::*;

            fn words<'a>(words: *mut u64, count: usize) -> &'a mut [u64] {
                // SAFETY: the library's own words, bound, which are used by one call at a time;
                // calls of `change` do not touch them.
                unsafe { core::slice::from_raw_parts_mut(words, count) }
            }
            extern "C" fn clear(at: *mut u64, count: usize) {
                $table::clear(words(at, count));
            }
            extern "C" fn find(at: *mut u64, count: usize, page: u64) -> Option<NonNull<u64>> {
                let words = words(at, count);
                $table::find(words, page).map(|word| NonNull::from(&mut words[word]))
            }
            extern "C" fn insert(at: *mut u64, count: usize, page: u64, entry: u64) -> c_int {
                match $table::insert(words(at, count), page, Entry(entry)) {
                    Ok(()) => 0,
                    Err(Full) => -1,
                }
            }
            extern "C" fn remove(at: *mut u64, count: usize, page: u64) -> u64 {
                $table::remove(words(at, count), page).map_or(0, |entry| entry.0)
            }
            extern "C" fn each(
                at: *mut u64,
                count: usize,
                first: u64,
                end: u64,
                change: Change,
                argument: *mut c_void,
            ) {
                $table::each(words(at, count), first, end, |page, entry| {
                    match change(page, entry.0, argument) {
                        0 => None,
                        entry => Some(Entry(entry)),
                    }
                });
            }
            #[unsafe(export_name = $name)]
            pub static $symbol: Piece = Piece {
                clear,
                find,
                insert,
                remove,
                each,
            };
        }
    };
}

piece!(sorted, LINEAR, "exos_page_table_linear", linear);
piece!(hashed, INVERTED, "exos_page_table_inverted", inverted);
