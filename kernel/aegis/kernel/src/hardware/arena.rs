//! Memory for the judge, the only part of the kernel that allocates: taken piece by piece, and
//! given back all at once when the judge is done.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes of an image at most.
pub const IMAGE: usize = 64 << 10;
/// Bytes that the judge may take: several times what it takes for the greatest image.
const ROOM: usize = 512 << 10;

#[repr(C, align(4096))]
struct Memory(UnsafeCell<[u8; IMAGE + ROOM]>);
// SAFETY: the image's part is lent to who holds the arena; of the rest each piece is lent once.
unsafe impl Sync for Memory {}
static MEMORY: Memory = Memory(UnsafeCell::new([0; IMAGE + ROOM]));
static HELD: AtomicBool = AtomicBool::new(false);
/// The first byte that is not taken.
static NEXT: AtomicUsize = AtomicUsize::new(IMAGE);

/// The arena, held until dropped. Everything taken from it must be gone by then.
pub struct Held(());

/// Waits for the arena; `poll` is called meanwhile.
pub fn hold(poll: impl Fn()) -> Held {
    while HELD.swap(true, Ordering::Acquire) {
        poll();
        core::hint::spin_loop();
    }
    NEXT.store(IMAGE, Ordering::Relaxed);
    Held(())
}

impl Held {
    /// Room for an image of so many bytes; `None` if that is too many.
    pub fn image(&mut self, length: usize) -> Option<&mut [u8]> {
        // SAFETY: the part is this holder's, and `self` is borrowed as long as it is used.
        let image = unsafe { core::slice::from_raw_parts_mut(MEMORY.0.get().cast::<u8>(), IMAGE) };
        image.get_mut(..length)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.store(false, Ordering::Release);
    }
}

/// What the judge's vectors ask.
struct Arena;

#[global_allocator]
static ARENA: Arena = Arena;

// SAFETY: each piece lies within the arena, behind all that were given since it was held, aligned
// as asked. It is used again only when the arena is held anew: only the judge allocates, and it has
// dropped everything when it lets go.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let piece = |next: usize| {
            let from = next.checked_next_multiple_of(layout.align())?;
            from.checked_add(layout.size())
                .filter(|&end| end <= IMAGE + ROOM)
        };
        match NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, piece) {
            Err(_) => core::ptr::null_mut(),
            Ok(next) => {
                let from = next.next_multiple_of(layout.align());
                // SAFETY: below the arena's end, as `piece` found. The arena is aligned to a page.
                unsafe { MEMORY.0.get().cast::<u8>().add(from) }
            }
        }
    }

    unsafe fn dealloc(&self, _piece: *mut u8, _layout: Layout) {}
}
