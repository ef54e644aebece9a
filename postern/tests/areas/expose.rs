//! Memory that the host has already, and files that somebody truncates.
use super::*;
use postern::{FaultKind, MemoryError, ShareError};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A mapping of the host's own.
struct Mapped(*mut u8, usize);

impl Mapped {
    fn new(len: usize, protection: i32, flags: i32, file: Option<&File>) -> Mapped {
        let fd = file.map_or(-1, |f| f.as_raw_fd());
        let p = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, fd, 0) };
        assert_ne!(p, libc::MAP_FAILED);
        Mapped(p.cast(), len)
    }

    fn expose(&self, from: usize, len: usize) -> Result<Shared, ShareError> {
        unsafe { Shared::expose(self.0.wrapping_add(from), len) }
    }

    fn write(&self, at: usize, value: u32) {
        unsafe { self.0.add(at).cast::<u32>().write_volatile(value) }
    }

    fn read(&self, at: usize) -> u32 {
        unsafe { self.0.add(at).cast::<u32>().read_volatile() }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        unsafe { libc::munmap(self.0.cast(), self.1) };
    }
}

pub(crate) fn memory_file(len: usize) -> File {
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"host".as_ptr(), 0)) };
    file.set_len(len as u64).unwrap();
    file
}

const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;

#[test]
fn what_the_host_shares_already() {
    let i = image();
    let d = named(&i, "d");
    let file = memory_file(4 * P);
    let anonymous = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let mappings = [
        Mapped::new(4 * P, RW, libc::MAP_SHARED, Some(&file)),
        Mapped::new(4 * P, RW, anonymous, None),
    ];
    for host in mappings {
        host.write(P + 4, 11);
        // A part of it, and in pieces with protections of the host's own.
        unsafe { libc::mprotect(host.0.add(2 * P).cast(), P, libc::PROT_READ) };
        let area = host.expose(P, 3 * P).unwrap();
        assert!(area.is_writable() && area.len() == 3 * P);
        let at = d.share(&area, Prot::ReadWrite).unwrap().0;
        assert_eq!(load(&d, at + 4).unwrap(), 11);
        store(&d, at + 8, 12).unwrap();
        store(&d, at + PAGE, 13).unwrap();
        assert_eq!((host.read(P + 8), host.read(2 * P)), (12, 13));
        host.write(3 * P, 14);
        assert_eq!(load(&d, at + 2 * PAGE).unwrap(), 14);
        // The host's own mapping may go.
        drop(host);
        assert_eq!(load(&d, at + 8).unwrap(), 12);
        let mut bytes = [0; 4];
        area.read(2 * P, &mut bytes).unwrap();
        assert_eq!(u32::from_ne_bytes(bytes), 14);
    }
}

#[test]
fn a_file_is_seen_without_a_copy() {
    let path = std::env::temp_dir().join(format!("postern-exposed-{}", std::process::id()));
    std::fs::write(&path, vec![b'x'; 2 * P]).unwrap();
    let i = image();
    let d = named(&i, "d");
    // Opened for reading, so nobody can be given more.
    let file = File::open(&path).unwrap();
    let host = Mapped::new(2 * P, libc::PROT_READ, libc::MAP_SHARED, Some(&file));
    let area = host.expose(0, 2 * P).unwrap();
    assert!(!area.is_writable());
    assert!(matches!(
        d.share(&area, Prot::ReadWrite),
        Err(ShareError::ReadOnly(_))
    ));
    let at = d.share(&area, Prot::Read).unwrap().0;
    assert_eq!(load(&d, at + PAGE).unwrap(), 0x7878_7878);
    let mut writer = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    writer.write_all(b"abcd").unwrap();
    assert_eq!(load(&d, at).unwrap().to_le_bytes(), *b"abcd");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn what_cannot_be_exposed() {
    let private = Mapped::new(4 * P, RW, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, None);
    private.write(0, 77);
    let refused = private.expose(0, P).unwrap_err();
    assert!(matches!(refused, ShareError::Private { address } if address == private.0 as usize));
    let text = refused.to_string();
    assert!(
        text.contains("Shared::new") && text.contains("memfd_create"),
        "{text}"
    );
    let local = [0u8; 3 * P];
    let page = local.as_ptr().wrapping_add(local.as_ptr().align_offset(P));
    let refused = unsafe { Shared::expose(page.cast_mut(), P) };
    assert!(matches!(refused, Err(ShareError::Private { .. })));
    // A private mapping of a file is private, too: its pages become the process's own when it
    // writes them.
    let file = memory_file(4 * P);
    let copy = Mapped::new(4 * P, RW, libc::MAP_PRIVATE, Some(&file));
    assert!(matches!(copy.expose(0, P), Err(ShareError::Private { .. })));

    let host = Mapped::new(4 * P, RW, libc::MAP_SHARED, Some(&file));
    for (from, len) in [(1, P), (0, P + 1), (8, 8)] {
        assert!(matches!(
            host.expose(from, len),
            Err(ShareError::Misaligned(_))
        ));
    }
    assert!(matches!(host.expose(0, 0), Err(ShareError::Length(0))));
    // A hole; two files side by side; the end of the address space.
    let page = |at: usize| host.0.wrapping_add(at).cast();
    unsafe { libc::munmap(page(2 * P), P) };
    let hole = host.expose(0, 4 * P).unwrap_err();
    let hole_is_there = |address| address == host.0 as usize + 2 * P;
    assert!(
        matches!(hole, ShareError::NotMapped { address } if hole_is_there(address)),
        "{hole}"
    );
    let other = memory_file(P);
    let (fixed, fd) = (libc::MAP_SHARED | libc::MAP_FIXED, other.as_raw_fd());
    assert_eq!(
        unsafe { libc::mmap(page(2 * P), P, RW, fixed, fd, 0) },
        page(2 * P)
    );
    assert!(matches!(
        host.expose(0, 4 * P),
        Err(ShareError::Several { .. })
    ));
    let last = unsafe { Shared::expose(0xffff_ffff_ffff_f000usize as *mut u8, P) };
    assert!(last.is_err());
    let wild = unsafe { Shared::expose(0x7fff_ffff_e000 as *mut u8, P) };
    assert!(matches!(wild, Err(ShareError::NotMapped { .. })));
    // Nothing happened to any of them.
    assert_eq!(private.read(0), 77);
    host.write(0, 5);
    assert!(host.expose(0, 2 * P).is_ok());
}

/// A descriptor that every view maps by itself: all see the same pages, with protections of their
/// own, and nothing of it is left when the area goes.
#[test]
fn a_descriptor_is_mapped_by_every_view() {
    let i = image();
    let [writer, reader] = ["writer", "reader"].map(|name| named(&i, name));
    let file = memory_file(4 * P);
    let own = OwnedFd::from(file.try_clone().unwrap());
    let area = Shared::builder().name("ring").device(own, 3 * P).unwrap();
    assert_eq!((area.len(), area.is_writable()), (3 * P, true));
    let at = writer.share(&area, Prot::ReadWrite).unwrap().0;
    assert_eq!(reader.share(&area, Prot::Read).unwrap().0, at);
    store(&writer, at + 8, 17).unwrap();
    area.write(2 * P, &[5]).unwrap();
    let host = Mapped::new(4 * P, RW, libc::MAP_SHARED, Some(&file));
    assert_eq!((host.read(8), host.read(2 * P)), (17, 5));
    host.write(P, 6);
    for d in [&writer, &reader] {
        let values = [8, PAGE, 2 * PAGE].map(|byte| load(d, at + byte).unwrap());
        assert_eq!(values, [17, 6, 5], "{}", d.name());
    }
    let f = fault(&reader, store(&reader, at, 1));
    assert_eq!(f.kind, FaultKind::ReadOnly);
    assert_eq!(&*f.shared.as_ref().unwrap().area, "ring");
    area.protect(&reader, P.., Prot::None).unwrap();
    let rights = [0, P, 2 * P].map(|byte| tried(&reader, &area, byte));
    assert_eq!(rights, [Prot::Read, Prot::None, Prot::None]);
    area.protect(&reader, .., Prot::ReadWrite).unwrap();
    store(&reader, at + 8, 18).unwrap();
    assert_eq!(host.read(8), 18);
    reader.unshare(&area).unwrap();
    assert_eq!(fault(&reader, load(&reader, at)).kind, FaultKind::Read);
    // The kernel cuts it short like a file's.
    file.set_len(P as u64).unwrap();
    assert_eq!(
        fault(&writer, load(&writer, at + PAGE)).kind,
        FaultKind::Bus
    );
    let gone = area.read(P, &mut [0]);
    assert!(matches!(gone, Err(MemoryError::Gone { .. })), "{gone:?}");
    let written = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
    let own = OwnedFd::from(written);
    let fixed = Shared::builder().device(own, P).unwrap();
    assert!(!fixed.is_writable());
    let refused = writer.share(&fixed, Prot::ReadWrite);
    assert!(
        matches!(refused, Err(ShareError::ReadOnly(_))),
        "{refused:?}"
    );
}

/// What cannot be mapped so: parts of pages, nothing, and descriptors of things that have no
/// memory.
#[test]
fn descriptors_that_map_nothing() {
    let device = |len: usize| {
        let own = OwnedFd::from(memory_file(4 * P));
        Shared::builder().device(own, len)
    };
    assert!(matches!(device(0), Err(ShareError::Length(0))));
    let odd = device(P + 1);
    assert!(matches!(odd, Err(ShareError::Misaligned(_))), "{odd:?}");
    let (pipe, _other) = std::io::pipe().unwrap();
    let refused = Shared::builder().device(pipe.into(), P).unwrap_err();
    assert!(matches!(refused, ShareError::Map(_)), "{refused:?}");
}

/// Somebody truncates the file: a fault with a name in the domain, an error in the host's own
/// copies, and life goes on.
#[test]
fn truncated_files_end_nobody() {
    let i = image();
    let [d, neighbour] = ["d", "neighbour"].map(|name| named(&i, name));
    let file = memory_file(4 * P);
    let own = OwnedFd::from(file.try_clone().unwrap());
    let area = Shared::builder().name("log").file(own, 0, 4 * P).unwrap();
    let at = d.share(&area, Prot::ReadWrite).unwrap().0;
    neighbour.share(&area, Prot::Read).unwrap();
    store(&d, at + 3 * PAGE, 5).unwrap();
    file.set_len(2 * P as u64).unwrap();
    for write in [false, true] {
        let f = match write {
            false => fault(&d, load(&d, at + 3 * PAGE + 12)),
            true => fault(&d, store(&d, at + 3 * PAGE + 12, 1)),
        };
        assert_eq!(
            (f.kind, f.address),
            (FaultKind::Bus, Some(Offset(at + 3 * PAGE + 12)))
        );
        let page = f.shared.as_ref().unwrap();
        assert_eq!((&*page.area, page.page), ("log", 3));
        assert!(
            f.to_string().contains("page 3 of area `log`, domain `d`"),
            "{f}"
        );
    }
    let gone = |result: Result<(), MemoryError>| {
        assert!(
            matches!(result, Err(MemoryError::Gone { .. })),
            "{result:?}"
        );
    };
    let mut bytes = vec![0; 2 * P];
    gone(area.read(P, &mut bytes));
    gone(area.write(2 * P, &[1]));
    gone(d.read(Offset(at + 2 * PAGE), &mut bytes));
    gone(d.write(Offset(at + 2 * PAGE - 1), &[1, 2]));
    gone(d.clear(Offset(at), 4 * P));
    gone(d.read_c_string(Offset(at + 3 * PAGE), 10).map(drop));
    assert!(!d.is_poisoned());
    assert_eq!(load(&neighbour, at).unwrap(), 0);
    area.read(P, &mut bytes[..P]).unwrap();
    // The file grows again.
    file.set_len(4 * P as u64).unwrap();
    assert_eq!(load(&d, at + 3 * PAGE).unwrap(), 0);
    store(&d, at + 3 * PAGE, 6).unwrap();
    assert_eq!(load(&neighbour, at + 3 * PAGE).unwrap(), 6);
}

/// Services and system calls that copy from a truncated file get errors, and the call goes on.
#[test]
fn services_survive_truncation() {
    let exports = [("ask", "i(p)"), ("print", "l(p)")];
    let source = "
        ask: call look
             ret
        print: movl %edi,%edx
             movl $1,%edi
             movl $1,%esi
             movl $4,%ecx
             call sys
             ret";
    let code = support::code(&[("look", "i(p)"), ("sys", "l(llllll)")], &exports, source);
    let d = support::cold(&code.image())
        .service("look", |caller: &postern::Caller<'_>, at: Offset| {
            let mut byte = [0];
            match caller.domain().read(at, &mut byte) {
                Ok(()) => 0,
                Err(MemoryError::Gone { .. }) => 1,
                Err(_) => 2,
            }
        })
        .policy(postern::Policy::compute())
        .build()
        .unwrap();
    let file = memory_file(2 * P);
    let own = OwnedFd::from(file.try_clone().unwrap());
    let area = Shared::from_file(own, 0, 2 * P).unwrap();
    let at = d.share(&area, Prot::ReadWrite).unwrap().0;
    file.set_len(P as u64).unwrap();
    let ask = d.func::<fn(Offset) -> i32>("ask").unwrap();
    let print = d.func::<fn(Offset) -> i64>("print").unwrap();
    assert_eq!(
        (
            ask.call(Offset(at)).unwrap(),
            ask.call(Offset(at + PAGE)).unwrap()
        ),
        (0, 1)
    );
    assert_eq!(ask.call(Offset(at - PAGE)).unwrap(), 2);
    assert_eq!(
        print.call(Offset(at + PAGE)).unwrap(),
        -i64::from(libc::EFAULT)
    );
    assert!(!d.is_poisoned());
}
