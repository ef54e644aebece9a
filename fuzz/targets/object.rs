//! Any bytes as an object for a namespace: an error that can be printed, or names that lead
//! somewhere; and never more memory than some times the file's length.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern::{Caller, CreateError, Namespace};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the bytes that are in use.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: each call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(used, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes for each byte of the file, and beside them what any creation takes.
const FACTOR: usize = 64;
const BASE: usize = 1 << 20;

thread_local! {
    /// One for many inputs: to make it costs more than to fill it.
    static SPACE: RefCell<Option<(Namespace, u32)>> = const { RefCell::new(None) };
}

fn fresh() -> Namespace {
    let space = Namespace::builder().service("host", |_: &Caller<'_>, x: i32| x);
    space.build().expect("a namespace")
}

fuzz_target!(|bytes: &[u8]| {
    SPACE.with_borrow_mut(|place| {
        let (space, times) = place.get_or_insert_with(|| (fresh(), 0));
        *times += 1;
        let before = USED.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let made = space.create_object("unit", bytes, &[("f", "i(i)")]);
        let grown = MOST.load(Ordering::Relaxed).saturating_sub(before);
        assert!(
            grown <= BASE + FACTOR * bytes.len(),
            "{grown} bytes for {}",
            bytes.len()
        );
        let full = match made {
            Ok(made) => {
                for name in made.new.iter().chain(&made.replaced) {
                    assert!(space.lookup(name).is_some(), "{name}");
                    space.delete(name);
                }
                false
            }
            Err(error) => {
                assert!(
                    !error.to_string().contains(|c: char| c.is_control()),
                    "{error:?}"
                );
                matches!(
                    error,
                    CreateError::Room { .. } | CreateError::Defined { .. }
                )
            }
        };
        space.collect();
        if full || *times == 1000 {
            *place = None;
        }
    });
});
