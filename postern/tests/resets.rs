//! A reset, and the window of a domain that is gone, leave nothing behind: whatever was written,
//! wherever, by whichever way pages are put back.
#![allow(clippy::undocumented_unsafe_blocks)]
mod support;

use postern::{Domain, Image, Offset};
use postern_verifier::window::PAGE;
use support::{code, cold, fork, succeeds_in_child};

const HEAP: u32 = 1 << 20;

/// Data of several pages, a word of it that is not zero in each; and a function that fills the page
/// of an address.
fn image() -> Image {
    code(
        &[],
        &[("fill", "v(pi)"), ("look", "i(p)")],
        ".data
         .rept 3
         .long 0x11223344
         .zero 4092
         .endr
         .text
         fill: andl $-4096,%edi
            movl $1024,%ecx
         1: movl %esi,%gs:(%edi)
            leal 4(%edi),%edi
            decl %ecx
            jnz 1b
            ret
         look: movl %gs:(%edi),%eax
            ret",
    )
    .image()
}

fn make(image: &Image) -> Domain {
    cold(image).heap(HEAP.into()).build().unwrap()
}

fn fill(d: &Domain, at: u32) {
    let fill = d.func::<fn(Offset, i32)>("fill").unwrap();
    fill.call(Offset(at), -1).unwrap();
}

/// Begin and end of what the domain can write.
fn writable(d: &Domain) -> (u32, u32) {
    let layout = d.image().tables().layout;
    (layout.stack, layout.heap_start + HEAP)
}

fn everything(d: &Domain) -> Vec<u8> {
    let (start, end) = writable(d);
    d.read_vec(Offset(start), (end - start) as usize).unwrap()
}

/// Pages in memory that are the process's own, in what the domain can write.
fn resident(d: &Domain) -> usize {
    let (start, end) = writable(d);
    let page = u64::from(PAGE);
    let (first, count) = ((d.base() + u64::from(start)) / page, (end - start) / PAGE);
    let mut entries = vec![0u8; 8 * count as usize];
    let file = std::fs::File::open("/proc/self/pagemap").unwrap();
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut entries, 8 * first).unwrap();
    let entries = entries
        .chunks(8)
        .map(|e| u64::from_ne_bytes(e.try_into().unwrap()));
    // Present, and not the file's own page.
    entries.filter(|e| e >> 63 == 1 && e >> 61 & 1 == 0).count()
}

/// Writes `pages` pages at random, resets, and compares everything.
fn rounds(d: &Domain, random: &mut fastrand::Rng, pages: usize) {
    let first = everything(&make(&d.image()));
    let (start, end) = writable(d);
    for _ in 0..8 {
        // The lowest pages of the stack, the ends of everything, and what lies between.
        for at in [start, end - 1, start + 2 * PAGE] {
            fill(d, at);
        }
        for _ in 0..pages {
            fill(d, random.u32(start..end));
        }
        for _ in 0..4 {
            let look = d.func::<fn(Offset) -> i32>("look").unwrap();
            look.call(Offset(random.u32(start..end - 4))).unwrap();
        }
        assert_ne!(everything(d), first);
        d.reset().unwrap();
        assert_eq!(everything(d), first, "{pages} pages");
    }
}

#[test]
fn every_page_is_put_back() {
    let i = image();
    let d = make(&i);
    let mut random = fastrand::Rng::with_seed(7);
    for pages in [0, 1, 3, 10, 30, 61, 62, 70, 300] {
        rounds(&d, &mut random, pages);
    }
    // In a forked child, whose pages are others.
    fill(&d, writable(&d).0);
    assert_eq!(
        fork(|| {
            rounds(&d, &mut fastrand::Rng::with_seed(8), 5);
            rounds(&make(&i), &mut fastrand::Rng::with_seed(9), 5);
            true
        }),
        0
    );
    rounds(&d, &mut random, 5);
}

#[test]
fn few_pages_stay_and_many_are_given_back() {
    let d = make(&image());
    let (start, end) = writable(&d);
    fill(&d, end - 1);
    fill(&d, start);
    d.reset().unwrap();
    if resident(&d) != 0 {
        // This kernel tells which pages were written.
        assert_eq!(resident(&d), 2);
    }
    (start..end)
        .step_by(PAGE as usize)
        .for_each(|at| fill(&d, at));
    d.reset().unwrap();
    assert_eq!(resident(&d), 0);
}

/// Pages that the host has locked, merged or made huge are put back, too.
#[test]
fn pages_in_other_states() {
    let i = image();
    for (name, change) in [
        (
            "locked",
            (|at, len| unsafe { libc::mlock(at, len) }) as fn(*mut libc::c_void, usize) -> i32,
        ),
        ("merged", |at, len| unsafe {
            libc::madvise(at, len, libc::MADV_MERGEABLE)
        }),
        ("huge", |at, len| unsafe {
            libc::madvise(at, len, libc::MADV_HUGEPAGE)
        }),
        ("cold", |at, len| unsafe {
            libc::madvise(at, len, libc::MADV_PAGEOUT)
        }),
        ("free", |at, len| unsafe {
            libc::madvise(at, len, libc::MADV_FREE)
        }),
    ] {
        let d = make(&i);
        let (start, end) = writable(&d);
        let mut random = fastrand::Rng::with_seed(3);
        rounds(&d, &mut random, 2);
        fill(&d, end - 1);
        let at = (d.base() + u64::from(start)) as *mut libc::c_void;
        // Where the kernel has no such thing, nothing changes.
        let done = change(at, (end - start) as usize);
        fill(&d, start);
        println!("{name}: {done}");
        d.reset().unwrap();
        rounds(&d, &mut random, 5);
        rounds(&d, &mut random, 200);
    }
}

/// A thread that has the domain for itself from one reset to the next leaves no data stack behind:
/// there is room for one, and two live threads have it in turns.
#[test]
fn threads_that_take_turns_share_a_data_stack() {
    let mut limits = postern::Limits::default();
    limits.threads = 1;
    limits.heap = Some(HEAP.into());
    let d = cold(&image()).limits(limits).build().unwrap();
    let turn = || {
        fill(&d, writable(&d).0);
        d.reset().unwrap();
    };
    for _ in 0..3 {
        turn();
        std::thread::scope(|scope| scope.spawn(turn).join()).unwrap();
    }
    fill(&d, writable(&d).0);
    let other = || {
        d.func::<fn(Offset, i32)>("fill")
            .unwrap()
            .call(Offset(writable(&d).0), 1)
    };
    let refused = std::thread::scope(|scope| scope.spawn(other).join()).unwrap();
    assert!(refused.is_err());
}

#[test]
fn a_window_is_clean_for_the_next_domain() {
    let i = image();
    let first = everything(&make(&i));
    let mut random = fastrand::Rng::with_seed(5);
    let mut again = 0;
    let mut last = 0;
    for pages in [1, 5, 40, 2] {
        let d = make(&i);
        again += usize::from(d.base() == last);
        last = d.base();
        assert_eq!(everything(&d), first);
        let (start, end) = writable(&d);
        (0..pages).for_each(|_| fill(&d, random.u32(start..end)));
    }
    assert_eq!(again, 3, "windows are used again");
}

#[test]
fn without_the_kernels_word() {
    succeeds_in_child("without_the_kernels_word", || {
        let d = make(&image());
        let mut random = fastrand::Rng::with_seed(11);
        rounds(&d, &mut random, 3);
        // As of a host that closes all descriptors, and opens others.
        let mut exchanged = 0;
        for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
            let number: i32 = entry.file_name().to_str().unwrap().parse().unwrap();
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            if target.to_string_lossy().ends_with("/pagemap") {
                let null = std::fs::File::open("/dev/null").unwrap();
                let null = std::os::fd::AsRawFd::as_raw_fd(&null);
                exchanged += unsafe { libc::dup2(null, number) };
            }
        }
        assert_ne!(exchanged, 0, "the descriptor was found");
        // What the host has by that number now stays its own in a forked child.
        let open = || unsafe { libc::fcntl(exchanged, libc::F_GETFD) } >= 0;
        assert_eq!(fork(open), 0);
        rounds(&d, &mut random, 3);
        fill(&d, writable(&d).0);
        d.reset().unwrap();
        assert_eq!(resident(&d), 0);
    });
}
