//! What holds for a namespace's code and calls: who may write it, its quanta, its recovery, what a
//! forked child has.

use crate::empty;
use postern::{CallError, FaultKind, IdCallError, Namespace, Offset, Recovery};

#[test]
fn code_can_be_read_by_it_and_never_written() {
    let space = empty();
    space
        .create(
            "a",
            "int f(int x) { return x; }
             unsigned read(unsigned at) { return *(unsigned char *)(unsigned long)at; }
             void write(unsigned at) { *(unsigned char *)(unsigned long)at = 0xcc; }
             unsigned pointer(void) { return (unsigned)(unsigned long)f; }",
        )
        .unwrap();
    let pointer = space
        .func::<fn() -> u32>("pointer")
        .unwrap()
        .call()
        .unwrap();
    // A landing pad: it is a slot.
    let read = space.func::<fn(u32) -> u32>("read").unwrap();
    assert_eq!(read.call(pointer).unwrap(), 0x0f);
    let write = space.func::<fn(u32)>("write").unwrap();
    let error = write.call(pointer).unwrap_err();
    assert_eq!(error.fault().unwrap().kind, FaultKind::ReadOnly);
    space.reset().unwrap();
    assert!(space.domain().write(Offset(pointer), &[1]).is_err());
    let f = space
        .domain()
        .func_at::<fn(i32) -> i32>(Offset(pointer))
        .unwrap();
    assert_eq!(f.call(9).unwrap(), 9);
    assert!(space.domain().func_at::<fn()>(Offset(pointer + 8)).is_err());
}

#[test]
fn recoveries_differ_by_namespace_and_by_function() {
    let source = "int count; int bump(void) { return ++count; } int bad(int x) { count += 10; return *(int *)(long)x; }";
    let make = |recovery| {
        let space = Namespace::builder().recovery(recovery).build().unwrap();
        space.create("a", source).unwrap();
        let bump = space.func::<fn() -> i32>("bump").unwrap();
        let bad = space.func::<fn(i32) -> i32>("bad").unwrap();
        assert_eq!(bump.call().unwrap(), 1);
        let error = bad.call(0).unwrap_err();
        assert_eq!(error.fault().unwrap().kind, FaultKind::NullPointer);
        (space, bump)
    };
    let (space, bump) = make(Recovery::Terminate);
    assert!(matches!(bump.call(), Err(CallError::Poisoned)));
    assert_eq!(space.reason().unwrap().kind, FaultKind::NullPointer);
    assert!(space.reason().unwrap().place().starts_with("bad at a:1"));
    space.reset().unwrap();
    assert_eq!(bump.call().unwrap(), 1);
    let (space, bump) = make(Recovery::Continue);
    assert_eq!(bump.call().unwrap(), 12);
    // One function of it does not go on, and another one starts anew.
    let id = space.lookup("bad").unwrap();
    assert!(space.set_recovery(id, Some(Recovery::Restart)));
    assert!(space.call(id, &[0]).is_err());
    assert_eq!(bump.call().unwrap(), 1);
    assert!(space.set_recovery(id, Some(Recovery::Terminate)));
    assert!(space.call(id, &[0]).is_err());
    assert!(matches!(bump.call(), Err(CallError::Poisoned)));
    space.reset().unwrap();
    assert!(space.set_recovery(id, None));
    assert!(space.call(id, &[0]).is_err());
    assert_eq!(bump.call().unwrap(), 11);
    let (_, bump) = make(Recovery::Restart);
    assert_eq!(bump.call().unwrap(), 1);
}

#[test]
fn functions_have_quanta_of_their_own() {
    let space = Namespace::builder()
        .quantum(None)
        .recovery(Recovery::Continue)
        .build()
        .unwrap();
    space
        .create(
            "a",
            "int spin(int n) { volatile int x = 0; while (n) x++; return x; }",
        )
        .unwrap();
    let id = space.lookup("spin").unwrap();
    assert!(space.set_quantum(id, Some(std::time::Duration::from_millis(5))));
    for _ in 0..2 {
        let Err(IdCallError::Call(error)) = space.call(id, &[1]) else {
            panic!("it does not end by itself");
        };
        assert_eq!(error.fault().unwrap().kind, FaultKind::Deadline);
        assert_eq!(space.call(id, &[0]).unwrap(), 0);
    }
    let spin = space.func::<fn(i32) -> i32>("spin").unwrap();
    assert_eq!(
        spin.call(1).unwrap_err().fault().unwrap().kind,
        FaultKind::Deadline
    );
}

#[test]
fn a_forked_child_has_its_own_copy() {
    let space = empty();
    space
        .create("a", "int f(void) { return 1; } int g(void) { return f(); }")
        .unwrap();
    let g = space.func::<fn() -> i32>("g").unwrap();
    let (parent, child) = std::os::unix::net::UnixStream::pair().unwrap();
    use std::io::{Read, Write};
    // SAFETY: the child calls the namespace, writes and ends.
    match unsafe { libc::fork() } {
        0 => {
            let work = || -> Option<i32> {
                (&child).read_exact(&mut [0]).ok()?;
                // The parent has replaced f meanwhile.
                let before = g.call().ok()?;
                space.create("a", "int f(void) { return 3; }").ok()?;
                Some(10 * before + g.call().ok()?)
            };
            let result = work().unwrap_or(-1);
            let _ = (&child).write_all(&[result as u8]);
            // SAFETY: ends the child.
            unsafe { libc::_exit(0) }
        }
        pid => {
            assert!(pid > 0);
            space.create("a", "int f(void) { return 2; }").unwrap();
            assert_eq!(g.call().unwrap(), 2);
            (&parent).write_all(&[1]).unwrap();
            let mut answer = [0];
            (&parent).read_exact(&mut answer).unwrap();
            assert_eq!(answer[0], 13);
            assert_eq!(g.call().unwrap(), 2);
            // SAFETY: waits for the child.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        }
    }
}
