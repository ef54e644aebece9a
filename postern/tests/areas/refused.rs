//! What cannot be: a named error each, and nobody else notices.
use super::*;
use postern::ShareError;
use std::fs::File;
use std::os::fd::OwnedFd;

/// An area and a domain that go on working whatever is refused to others.
struct Others {
    domain: Domain,
    area: Shared,
}

impl Others {
    fn new(image: &Image) -> Others {
        let (domain, area) = (named(image, "other"), Shared::new(P).unwrap());
        domain.share(&area, Prot::Read).unwrap();
        area.write(0, &[9; 4]).unwrap();
        Others { domain, area }
    }

    fn work(&self) {
        let at = self.area.offset().0;
        assert_eq!(load(&self.domain, at).unwrap(), 0x0909_0909);
        assert_eq!(tried(&self.domain, &self.area, 0), Prot::Read);
    }
}

#[test]
fn places_and_lengths() {
    let others = Others::new(&image());
    let other = others.area.offset().0;
    for len in [0, 0xf000_0000, usize::MAX] {
        assert!(
            matches!(Shared::new(len), Err(ShareError::Length(_))),
            "{len:#x}"
        );
    }
    let at = |offset: u32, len| Shared::builder().offset(Offset(offset)).zeroed(len);
    // Beyond the window, below the arena, not a page.
    for beyond in [
        0xffff_0000,
        0xffff_f000,
        0xfffe_f000,
        0x1000,
        0,
        0x4000_0001,
        u32::MAX,
    ] {
        let refused = at(beyond, P).unwrap_err();
        assert!(
            matches!(refused, ShareError::Place { .. }),
            "{beyond:#x}: {refused}"
        );
    }
    assert!(matches!(
        at(0xf000_0000, 0x1000_0000),
        Err(ShareError::Place { .. })
    ));
    // Over another area, over the page above it, and with its own page above over another.
    for (offset, len) in [
        (other, P),
        (other + PAGE, P),
        (other - PAGE, P),
        (other - 8 * PAGE, 20 * P),
    ] {
        let refused = at(offset, len).unwrap_err();
        let named = refused.to_string().contains(others.area.name());
        // The area is the highest of the process, perhaps.
        let beyond = matches!(refused, ShareError::Place { .. });
        assert!(named || beyond, "{offset:#x}: {refused}");
    }
    others.work();
    // Free again once the last one who sees it is gone.
    let chosen = at(0x4000_0000, 2 * P).unwrap();
    assert_eq!(chosen.offset(), Offset(0x4000_0000));
    let taken = at(0x4000_1000, P).unwrap_err();
    assert!(
        matches!(&taken, ShareError::Taken { other, .. } if other == chosen.name()),
        "{taken}"
    );
    let d = named(&image(), "d");
    d.share(&chosen, Prot::ReadWrite).unwrap();
    drop(chosen);
    assert!(at(0x4000_0000, P).is_err());
    drop(d);
    at(0x4000_0000, P).unwrap();
}

#[test]
fn low_areas_are_for_domains_that_end_below() {
    const LOW: u32 = 0x10_0000;
    let at = |offset| Shared::builder().offset(Offset(offset)).zeroed(P);
    assert!(matches!(at(LOW - PAGE), Err(ShareError::Place { .. })));
    let area = at(LOW).unwrap();
    area.write(0, &[5; 4]).unwrap();
    let (small, image) = (named(&image(), "small"), image());
    small.share(&area, Prot::ReadWrite).unwrap();
    assert_eq!(load(&small, LOW).unwrap(), 0x0505_0505);
    store(&small, LOW, 6).unwrap();
    // The heap of a large one is where the area is.
    let large = support::cold(&image).name("large").heap(1 << 20);
    let large = large.build().unwrap();
    let refused = large.share(&area, Prot::Read).unwrap_err();
    assert!(matches!(refused, ShareError::Overlap { .. }), "{refused}");
    assert_eq!(load(&large, LOW).unwrap(), 0);
    // Whoever does not choose is not given a place there.
    assert!(Shared::new(P).unwrap().offset().0 >= 0x1000_0000);
    let mut word = [0; 4];
    area.read(0, &mut word).unwrap();
    assert_eq!(word, 6i32.to_le_bytes());
}

#[test]
fn ranges_and_protections() {
    let i = image();
    let others = Others::new(&i);
    let d = named(&i, "d");
    let area = Shared::new(3 * P - 7).unwrap();
    area.protect(&d, P..2 * P, Prot::Read).unwrap();
    let unchanged = || {
        use Prot::{None, Read};
        let found = [0, P, 2 * P].map(|at| tried(&d, &area, at));
        assert_eq!(found, [None, Read, None]);
        others.work();
    };
    for bad in [1..P, P + 8..2 * P, 0..P + 8, 0..3 * P - 8, 0..2 * P + 1] {
        let refused = area.protect(&d, bad.clone(), Prot::ReadWrite).unwrap_err();
        assert!(
            matches!(refused, ShareError::Misaligned(_)),
            "{bad:?}: {refused}"
        );
    }
    #[allow(clippy::reversed_empty_ranges)]
    for bad in [
        0..3 * P,
        3 * P..3 * P,
        2 * P..P,
        0..usize::MAX,
        usize::MAX..usize::MAX,
    ] {
        let refused = area.protect(&d, bad.clone(), Prot::ReadWrite).unwrap_err();
        assert!(
            matches!(refused, ShareError::Beyond { .. }),
            "{bad:?}: {refused}"
        );
    }
    assert!(area.protect(&d, ..=usize::MAX, Prot::Read).is_err());
    // Once more with something else is asked for by another function.
    let refused = d.share(&area, Prot::Read).unwrap_err();
    assert!(
        matches!(&refused, ShareError::Already(name) if name == area.name()),
        "{refused}"
    );
    unchanged();
    // A heap that reaches over the area.
    let large = support::cold(&i).heap(0xc000_0000).build().unwrap();
    let low = Shared::builder()
        .offset(Offset(0x8000_0000))
        .zeroed(P)
        .unwrap();
    let refused = large.share(&low, Prot::Read).unwrap_err();
    assert!(matches!(refused, ShareError::Overlap { .. }), "{refused}");
    assert!(refused.to_string().contains(low.name()));
    low.protect(&large, .., Prot::None).unwrap();
    // Its own memory there stays its own, and faults there are not the area's.
    store(&large, 0x8000_0010, 3).unwrap();
    assert_eq!(load(&large, 0x8000_0010).unwrap(), 3);
    unchanged();
    // The end of an area that is no whole page.
    area.protect(&d, 2 * P.., Prot::ReadWrite).unwrap();
    area.protect(&d, 2 * P..3 * P - 7, Prot::Read).unwrap();
    assert_eq!(tried(&d, &area, 3 * P - 11), Prot::Read);
}

/// A file that can only be read gives an area that can only be read.
#[test]
fn what_the_file_does_not_allow() {
    let i = image();
    let others = Others::new(&i);
    let path = std::env::temp_dir().join(format!("postern-areas-{}", std::process::id()));
    std::fs::write(&path, vec![1; 2 * P]).unwrap();
    let file = || OwnedFd::from(File::open(&path).unwrap());
    let area = Shared::builder()
        .name("book")
        .file(file(), 0, 2 * P)
        .unwrap();
    let d = named(&i, "d");
    assert!(!area.is_writable() && area.write(0, &[1]).is_err());
    let refused = d.share(&area, Prot::ReadWrite).unwrap_err();
    assert!(
        matches!(&refused, ShareError::ReadOnly(name) if name == "book"),
        "{refused}"
    );
    assert_eq!(tried(&d, &area, 0), Prot::None);
    d.share(&area, Prot::Read).unwrap();
    assert!(area.protect(&d, P.., Prot::ReadWrite).is_err());
    assert_eq!([0, P].map(|at| tried(&d, &area, at)), [Prot::Read; 2]);
    // Ranges that are not the file's; things that are no files.
    assert!(matches!(
        Shared::from_file(file(), 5, P),
        Err(ShareError::Misaligned(5))
    ));
    for (at, len) in [(0, 2 * P + 1), (8192, 1), (u64::MAX - 4095, P)] {
        let refused = Shared::from_file(file(), at, len).unwrap_err();
        assert!(matches!(refused, ShareError::Range { .. }), "{refused}");
    }
    let folder = OwnedFd::from(File::open("/").unwrap());
    assert!(Shared::from_file(folder, 0, 1).is_err());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(load(&d, area.offset().0).unwrap(), 0x0101_0101);
    others.work();
}

/// The kernel says no, in the middle of things: the domain has what it had.
#[test]
fn no_more_mappings() {
    support::succeeds_in_child("refused::no_more_mappings", || {
        let i = image();
        let others = Others::new(&i);
        let d = named(&i, "d");
        let pages = 9;
        let area = Shared::new(pages * P).unwrap();
        let rights = |page: usize| [Prot::Read, Prot::None, Prot::ReadWrite][page / 3];
        for page in 0..pages {
            area.protect(&d, page * P..(page + 1) * P, rights(page))
                .unwrap();
        }
        // Calls first, so that nothing of them needs a mapping later.
        let unchanged = || {
            let kernel = support::protections();
            for page in 0..pages {
                let at = area.offset().0 + (page * P) as u32;
                let allowed = (rights(page) != Prot::None, rights(page) == Prot::ReadWrite);
                assert_eq!(kernel(d.base() + u64::from(at)), allowed, "page {page}");
                assert_eq!(area.protection(&d, page * P), rights(page));
                assert_eq!(d.read_vec(Offset(at), P).is_ok(), allowed.0);
            }
            others.work();
        };
        unchanged();
        let spare = Shared::new(P).unwrap();
        // The kernel shall refuse, and not the runtime before it.
        postern::without_reserve();
        let fill = support::fill_mappings();
        let mut refused = 0;
        for from in 0..pages {
            for to in [from + 1, from + 5] {
                let to = to.min(pages);
                for right in [Prot::None, Prot::Read, Prot::ReadWrite] {
                    match area.protect(&d, from * P..to * P, right) {
                        Err(error) => {
                            assert!(matches!(error, ShareError::Map(_)), "{error}");
                            refused += 1;
                        }
                        // It needed no more mappings: back again, which may need what was given up.
                        Ok(()) => {
                            fill.less(8);
                            for page in from..to {
                                area.protect(&d, page * P..(page + 1) * P, rights(page))
                                    .unwrap();
                            }
                            fill.again();
                        }
                    }
                    unchanged();
                }
            }
        }
        assert!(refused > 0);
        let error = d.share(&spare, Prot::Read).unwrap_err();
        assert!(matches!(error, ShareError::Map(_)), "{error}");
        assert!(Shared::new(P).is_err());
        unchanged();
        drop(fill);
        d.share(&spare, Prot::Read).unwrap();
        area.protect(&d, .., Prot::ReadWrite).unwrap();
        assert_eq!(tried(&d, &area, 3 * P), Prot::ReadWrite);
    });
}
