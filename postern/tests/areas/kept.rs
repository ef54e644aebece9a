//! Windows that are kept for the next domain keep their areas, which nobody can touch there.
use super::*;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// A memory file, and the lines of /proc/self/maps that show it.
fn file(name: &std::ffi::CStr) -> (OwnedFd, impl Fn() -> usize + use<>) {
    let fd = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC)) };
    assert_eq!(unsafe { libc::ftruncate(fd.as_raw_fd(), 4 * P as i64) }, 0);
    let shown = format!("memfd:{}", name.to_str().unwrap());
    let lines = move || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| line.contains(&shown)).count()
    };
    (fd, lines)
}

#[test]
fn the_next_domain_sees_nothing_of_them() {
    let i = image();
    let (fd, mapped) = file(c"kept-one");
    let area = Shared::from_file(fd, 0, 4 * P).unwrap();
    let at = area.offset().0;
    let a = named(&i, "a");
    let base = a.base();
    a.share(&area, Prot::ReadWrite).unwrap();
    area.protect(&a, P..2 * P, Prot::Read).unwrap();
    store(&a, at, 17).unwrap();
    drop(a);
    assert!(mapped() > 1, "the window keeps it");

    let b = named(&i, "b");
    assert_eq!(b.base(), base);
    assert_eq!(tried(&b, &area, 0), Prot::None);
    assert_eq!(area.protection(&b, 0), Prot::None);
    assert!(b.read_vec(area.offset(), 4).is_err());
    // What it is given now is all that it has.
    b.share(&area, Prot::Read).unwrap();
    assert_eq!(load(&b, at).unwrap(), 17);
    for page in 0..4 {
        assert_eq!(tried(&b, &area, page * P), Prot::Read);
    }
    drop(b);
    let c = named(&i, "c");
    area.protect(&c, 2 * P.., Prot::ReadWrite).unwrap();
    use Prot::{None, ReadWrite};
    for (page, expected) in [None, None, ReadWrite, ReadWrite].into_iter().enumerate() {
        assert_eq!(tried(&c, &area, page * P), expected, "{page}");
    }
    drop(c);
    // It goes from the windows that nobody has …
    drop(area);
    assert_eq!(mapped(), 0);
    // … and from one that somebody has with the domain in it.
    let (fd, mapped) = file(c"kept-two");
    let area = Shared::from_file(fd, 0, 4 * P).unwrap();
    let a = named(&i, "a");
    a.share(&area, Prot::ReadWrite).unwrap();
    drop(a);
    let b = named(&i, "b");
    drop(area);
    drop(b);
    assert_eq!(mapped(), 0);
}

/// Another area at the place of one that is gone, in a window that still has that mapped.
#[test]
fn another_area_takes_its_place() {
    let i = image();
    let (fd, old) = file(c"kept-old");
    let area = Shared::from_file(fd, 0, 4 * P).unwrap();
    let at = area.offset();
    let a = named(&i, "a");
    a.share(&area, Prot::ReadWrite).unwrap();
    drop(a);
    let b = named(&i, "b");
    area.write(0, &[1; 4 * P]).unwrap();
    drop(area);
    let (fd, new) = file(c"kept-new");
    let builder = Shared::builder().offset(Offset(at.0 + PAGE));
    let smaller = builder.file(fd, 0, 2 * P).unwrap();
    b.share(&smaller, Prot::ReadWrite).unwrap();
    assert_eq!(old(), 0);
    store(&b, at.0 + PAGE, 5).unwrap();
    let mut word = [0; 4];
    smaller.read(0, &mut word).unwrap();
    assert_eq!(word, 5i32.to_le_bytes());
    for outside in [at.0, at.0 + 3 * PAGE] {
        assert!(load(&b, outside).is_err());
        b.reset().unwrap();
    }
    drop(b);
    let c = named(&i, "c");
    c.share(&smaller, Prot::ReadWrite).unwrap();
    assert_eq!(load(&c, at.0 + PAGE).unwrap(), 5);
    store(&c, at.0 + PAGE, 6).unwrap();
    smaller.read(0, &mut word).unwrap();
    assert_eq!(word, 6i32.to_le_bytes());
    drop((c, smaller));
    assert_eq!(new(), 0);
}

/// The mapping of a descriptor would keep its socket open.
#[test]
fn what_only_a_descriptor_maps_is_not_kept() {
    let i = image();
    let (fd, mapped) = file(c"kept-device");
    let copy = fd.as_fd().try_clone_to_owned().unwrap();
    let area = Shared::builder().device(copy, 2 * P).unwrap();
    let a = named(&i, "a");
    a.share(&area, Prot::ReadWrite).unwrap();
    let before = mapped();
    drop(a);
    assert_eq!(mapped(), before - 1);
    drop(area);
    assert_eq!(mapped(), 0);
}

#[test]
fn a_window_keeps_few() {
    let i = image();
    let before = crate::support::mappings();
    let areas: Vec<_> = (0..40).map(|_| Shared::new(P).unwrap()).collect();
    for _ in 0..3 {
        let a = named(&i, "a");
        for area in &areas {
            a.share(area, Prot::ReadWrite).unwrap();
            store(&a, area.offset().0, 1).unwrap();
        }
        drop(a);
        assert_eq!(
            areas
                .iter()
                .filter(|a| tried(&named(&i, "b"), a, 0) != Prot::None)
                .count(),
            0
        );
    }
    drop(areas);
    drop(i);
    // The window of the host's views, and what the pool of windows is made of.
    assert!(crate::support::mappings() < before + 40);
}

const STACKS: &str = "
    stack: movl %r15d,%eax
           ret
    store: movl %esi,%gs:(%edi)
           ret";

/// Low enough that data stacks come to lie there.
fn low_area() -> Shared {
    let builder = Shared::builder().name("low").offset(Offset(1 << 20));
    builder.zeroed(16 << 20).unwrap()
}

/// Threads write into their data stacks.
fn use_stacks(domain: &Domain) {
    let all = std::sync::Barrier::new(24);
    std::thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| {
                let stack = domain.func::<fn() -> Offset>("stack").unwrap();
                let top = stack.call().map(|top| store(domain, top.0 - 16, 5));
                // Each has a stack of its own as long as the others live.
                all.wait();
                assert!(matches!(top, Ok(Ok(()))), "{top:?}");
            });
        }
    });
}

/// The sum of its bytes.
fn sum(area: &Shared) -> u64 {
    let mut bytes = vec![0; area.len()];
    area.read(0, &mut bytes).unwrap();
    bytes.iter().map(|&b| u64::from(b)).sum()
}

/// Where the areas of a window's former domain lie, the data stacks of the next one may come to
/// lie.
#[test]
fn data_stacks_take_their_place() {
    let i = crate::support::image(&[("stack", "p()"), ("store", "v(pi)")], STACKS);
    let area = low_area();
    let a = named(&i, "a");
    let base = a.base();
    a.share(&area, Prot::ReadWrite).unwrap();
    store(&a, 1 << 20, 17).unwrap();
    drop(a);

    let b = named(&i, "b");
    assert_eq!(b.base(), base);
    use_stacks(&b);
    assert_eq!(sum(&area), 17);
    assert!(b.share(&area, Prot::Read).is_err());
    drop(b);
    let c = named(&i, "c");
    c.share(&area, Prot::ReadWrite).unwrap();
    store(&c, (1 << 20) + 4, 3).unwrap();
    assert_eq!(sum(&area), 20);
}

/// At its limit of mappings the kernel takes the access away, and leaves the mapping.
#[test]
fn an_area_that_could_not_be_unmapped_is_nobodys_stack() {
    let test = "kept::an_area_that_could_not_be_unmapped_is_nobodys_stack";
    crate::support::succeeds_in_child(test, || {
        let i = crate::support::image(&[("stack", "p()"), ("store", "v(pi)")], STACKS);
        let area = low_area();
        let a = named(&i, "a");
        a.share(&area, Prot::ReadWrite).unwrap();
        store(&a, 1 << 20, 17).unwrap();
        let fill = crate::support::fill_mappings();
        // What adds a mapping is refused one later than what splits one.
        let (shared, anonymous) = (libc::MAP_SHARED, libc::MAP_ANONYMOUS);
        let one = || unsafe { libc::mmap(std::ptr::null_mut(), P, 1, shared | anonymous, -1, 0) };
        while one() != libc::MAP_FAILED {}
        a.unshare(&area).unwrap();
        drop(fill);
        use_stacks(&a);
        assert_eq!(sum(&area), 17);
    });
}
