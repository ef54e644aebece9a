//! An allocator that gives no block twice, so that a use after the end is seen: what is freed holds
//! no address from then on, and whatever is written to it is found.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// An address of this is none: following it faults.
const POISON: u8 = 0xdd;
/// Larger blocks go back to the system: their owners are the tests' own and the kernel's files.
const LARGEST: usize = 64 << 10;

struct Guarding;

#[global_allocator]
static ALLOCATOR: Guarding = Guarding;

/// Blocks are kept from now on.
static ON: AtomicBool = AtomicBool::new(false);
/// The freed blocks, each with the address of the next one, and its size, in front.
static FREED: AtomicPtr<Head> = AtomicPtr::new(std::ptr::null_mut());
static COUNT: AtomicUsize = AtomicUsize::new(0);

struct Head {
    next: *mut Head,
    size: usize,
}

/// Room for the head, and what aligns the block behind it.
fn room(layout: Layout) -> usize {
    size_of::<Head>().next_multiple_of(layout.align())
}

fn whole(layout: Layout) -> Layout {
    let size = layout.size() + room(layout);
    Layout::from_size_align(size, layout.align().max(align_of::<Head>())).unwrap()
}

unsafe impl GlobalAlloc for Guarding {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = unsafe { System.alloc(whole(layout)) };
        match block.is_null() {
            true => block,
            false => unsafe { block.add(room(layout)) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !ON.load(Ordering::Relaxed) || layout.size() > LARGEST {
            return unsafe { System.dealloc(block.sub(room(layout)), whole(layout)) };
        }
        unsafe {
            block.write_bytes(POISON, layout.size());
            let head = block.cast::<Head>().sub(1);
            let size = layout.size();
            (*head).size = size;
            let mut next = FREED.load(Ordering::Relaxed);
            loop {
                (*head).next = next;
                let (order, none) = (Ordering::SeqCst, Ordering::SeqCst);
                match FREED.compare_exchange(next, head, order, none) {
                    Ok(_) => break,
                    Err(other) => next = other,
                }
            }
        }
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs `body` with every block kept that it frees; nothing may have been written to them.
pub fn guarded(body: impl FnOnce()) {
    ON.store(true, Ordering::SeqCst);
    body();
    assert!(COUNT.load(Ordering::SeqCst) > 100);
    let mut head = FREED.load(Ordering::SeqCst);
    while let Some(freed) = unsafe { head.as_ref() } {
        let start = unsafe { head.add(1) }.cast::<u8>();
        let bytes = unsafe { std::slice::from_raw_parts(start, freed.size) };
        let written = bytes.iter().position(|&byte| byte != POISON);
        assert_eq!(written, None, "in a freed block of {} bytes", freed.size);
        head = freed.next;
    }
}

#[test]
#[should_panic(expected = "in a freed block of 40 bytes")]
fn a_write_to_a_freed_block_is_found() {
    guarded(|| {
        let kept: Vec<Vec<u8>> = (0..200).map(|n| vec![1; 8 + n]).collect();
        let place = kept[32].as_ptr().cast_mut();
        drop(kept);
        unsafe { *place.add(3) = 1 };
    });
}
