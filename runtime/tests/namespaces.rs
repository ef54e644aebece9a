//! Namespaces: functions that come, are replaced and go while others run.
#![cfg(feature = "ecode")]

use postern::{
    CallError, Caller, CreateError, FaultKind, IdCallError, Image, Namespace, Offset, Recovery,
    RegisterUse, Room,
};
use postern_image::ImageBuilder;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

fn empty() -> Namespace {
    Namespace::builder().build().unwrap()
}

#[test]
fn functions_call_each_other_by_name_across_sources() {
    let space = empty();
    let made = space
        .create(
            "a",
            "int square(int x) { return x * x; } int other(int x) { return square(x); }",
        )
        .unwrap();
    assert_eq!(made.new, ["square", "other"]);
    space
        .create(
            "b",
            "int square(int); int sum(int a, int b) { return square(a) + square(b); }",
        )
        .unwrap();
    let sum = space.func::<fn(i32, i32) -> i32>("sum").unwrap();
    let other = space.func::<fn(i32) -> i32>("other").unwrap();
    assert_eq!(sum.call(3, 4).unwrap(), 25);
    let made = space
        .create("c", "int square(int x) { return x * x + 1; }")
        .unwrap();
    assert_eq!(made.replaced, ["square"]);
    // Also for who was compiled together with the former one.
    assert_eq!((sum.call(3, 4).unwrap(), other.call(2).unwrap()), (27, 5));
    let id = space.lookup("sum").unwrap();
    assert_eq!(space.call(id, &[1, 2]).unwrap(), 7);
}

#[test]
fn who_calls_a_deleted_function_is_told_its_name() {
    let space = empty();
    space.create("a", "int f(int x) { return x; }").unwrap();
    space
        .create("b", "int f(int); int g(int x) { return f(x) + 1; }")
        .unwrap();
    let f = space.func::<fn(i32) -> i32>("f").unwrap();
    let g = space.func::<fn(i32) -> i32>("g").unwrap();
    let id = space.lookup("f").unwrap();
    assert!(space.delete("f") && !space.delete("f"));
    assert!(space.lookup("f").is_none());
    let error = f.call(1).unwrap_err();
    let fault = error.fault().unwrap();
    assert_eq!(fault.kind, FaultKind::Deleted);
    assert_eq!(fault.message.as_deref(), Some("f"));
    assert!(space.call(id, &[1]).is_err());
    assert!(!space.domain().is_poisoned(), "only the gate called it");
    let error = g.call(1).unwrap_err();
    let fault = error.fault().unwrap();
    assert_eq!(fault.kind, FaultKind::Deleted);
    assert_eq!(fault.describe(Offset(fault.backtrace[0].0 - 1)), "g at b:1");
    assert!(space.domain().is_poisoned());
    space.reset().unwrap();
    // It comes back under its old id.
    space.create("a", "int f(int x) { return 2 * x; }").unwrap();
    assert_eq!((f.call(5).unwrap(), g.call(5).unwrap()), (10, 11));
    assert_eq!(space.call(id, &[4]).unwrap(), 8);
}

#[test]
fn services_globals_strings_and_pointers() {
    let space = Namespace::builder()
        .service("twice", |_: &Caller<'_>, x: i32| 2 * x)
        .build()
        .unwrap();
    space
        .create(
            "a",
            "int twice(int); int count; int table[3] = {1, 2, 3}; const char *name = \"abc\";
             int bump(void) { count = count + 1; return count; }
             int letter(int i) { return name[i] + twice(table[i]); }
             int add(int a, int b) { return a + b; } static int sub(int a, int b) { return a - b; }
             int (*choose(int which))(int, int) { return which ? add : sub; }
             int apply(int which, int a, int b) { return choose(which)(a, b); }",
        )
        .unwrap();
    let bump = space.func::<fn() -> i32>("bump").unwrap();
    assert_eq!((bump.call().unwrap(), bump.call().unwrap()), (1, 2));
    let letter = space.func::<fn(i32) -> i32>("letter").unwrap();
    assert_eq!(letter.call(1).unwrap(), i32::from(b'b') + 4);
    let apply = space.func::<fn(i32, i32, i32) -> i32>("apply").unwrap();
    assert_eq!(
        (apply.call(1, 7, 2).unwrap(), apply.call(0, 7, 2).unwrap()),
        (9, 5)
    );
    // A pointer to a function follows when that is replaced.
    space
        .create("b", "int add(int a, int b) { return 100 + a + b; }")
        .unwrap();
    assert_eq!(apply.call(1, 7, 2).unwrap(), 109);
    assert_eq!(bump.call().unwrap(), 3);
    space.reset().unwrap();
    assert_eq!(bump.call().unwrap(), 1);
    assert_eq!(letter.call(0).unwrap(), i32::from(b'a') + 2);
    let table = space.variable("table").unwrap();
    let mut bytes = [0; 12];
    space.domain().read(table, &mut bytes).unwrap();
    assert_eq!(bytes, [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
}

/// Calls of `f` by other threads while `work` runs in this one; their results.
fn meanwhile(space: &Namespace, name: &str, work: impl FnOnce()) -> Vec<(i32, u64)> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let f = space.func::<fn(i32) -> i32>(name).unwrap();
                    let mut seen = std::collections::BTreeMap::new();
                    while !stop.load(Ordering::Relaxed) {
                        *seen.entry(f.call(1).unwrap()).or_insert(0u64) += 1;
                    }
                    seen
                })
            })
            .collect();
        work();
        stop.store(true, Ordering::Relaxed);
        let all = threads.into_iter().flat_map(|t| t.join().unwrap());
        let mut sums = std::collections::BTreeMap::new();
        all.for_each(|(value, count)| *sums.entry(value).or_insert(0) += count);
        sums.into_iter().collect()
    })
}

#[test]
fn callers_see_the_old_function_or_the_new_one_whole() {
    let space = empty();
    // Bodies of many lengths, each with a value that is computed all over it.
    let body = |n: i32| {
        let steps: String = (0..n % 37)
            .map(|i| format!("x = x * 3 + {i}; y = y + x - x;"))
            .collect();
        format!("int f(int a) {{ int x = a, y = {n}; {steps} return y + 7 * y; }}")
    };
    space.create("f", &body(0)).unwrap();
    space
        .create("g", "int f(int); int g(int a) { int s = 0; for (int i = 0; i < 5; i++) s += f(a) % 8; return s; }")
        .unwrap();
    let seen = meanwhile(&space, "f", || {
        for n in 1..400 {
            space.create("f", &body(n)).unwrap();
        }
    });
    for (value, _) in &seen {
        assert!(*value % 8 == 0 && (0..8 * 400).contains(value), "{value}");
    }
    // Also where the caller is a function of the namespace.
    let seen = meanwhile(&space, "g", || {
        for n in 1..200 {
            space.create("f", &body(n)).unwrap();
        }
    });
    assert!(seen.iter().all(|(value, _)| *value == 0), "{seen:?}");
    assert!(space.collect());
    let counters = space.counters();
    assert_eq!((counters.names, counters.units), (2, 2));
    assert_eq!(counters.freed, 598);
}

/// A namespace whose `f` says that it is inside, and stays there until it is told to leave.
fn one_that_waits() -> (Namespace, Receiver<()>, Sender<()>) {
    let (entered, is_in) = channel();
    let (leave, may_leave) = channel::<()>();
    let channels = std::sync::Mutex::new((entered, may_leave));
    let space = Namespace::builder()
        .quantum(None)
        .service("wait", move |_: &Caller<'_>| {
            let channels = channels.lock().unwrap();
            channels.0.send(()).unwrap();
            channels.1.recv().unwrap();
        })
        .build()
        .unwrap();
    space
        .create(
            "a",
            "void wait(void); int f(int x) { wait(); return x + 1; }",
        )
        .unwrap();
    (space, is_in, leave)
}

#[test]
fn a_body_is_freed_when_who_was_inside_has_left() {
    let (space, is_in, leave) = one_that_waits();
    let f = space.func::<fn(i32) -> i32>("f").unwrap();
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| f.call(41).unwrap());
        is_in.recv().unwrap();
        space.create("a", "int f(int x) { return x; }").unwrap();
        assert!(!space.collect(), "somebody is in the old body");
        assert_eq!(space.counters().units, 2);
        // Who comes later is not waited for.
        assert_eq!(f.call(5).unwrap(), 5);
        leave.send(()).unwrap();
        assert_eq!(inside.join().unwrap(), 42);
        assert!(space.collect());
    });
    assert_eq!(space.counters().units, 1);
    assert!(space.delete("f") && space.collect());
    assert_eq!(space.counters().units, 0);
}

#[test]
fn variables_stay_if_they_are_the_same() {
    let space = empty();
    let source = |by: i32| {
        format!(
            "static int hidden = 5; int count; int next(void) {{ count += {by}; hidden++; return count * 100 + hidden; }}"
        )
    };
    space.create("a", &source(1)).unwrap();
    let next = space.func::<fn() -> i32>("next").unwrap();
    assert_eq!(next.call().unwrap(), 106);
    assert!(space.create("a", &source(10)).unwrap().kept_variables);
    assert_eq!(next.call().unwrap(), 1107);
    // Another variable: all begin anew.
    let made = space
        .create(
            "a",
            "int count; int more = 3; int next(void) { count += more; return count; }",
        )
        .unwrap();
    assert!(!made.kept_variables);
    assert_eq!(next.call().unwrap(), 3);
    assert!(space.collect());
    assert_eq!(space.counters().units, 1);
}

#[test]
fn what_is_wrong_is_said_and_changes_nothing() {
    let space = Namespace::builder()
        .service("log", |_: &Caller<'_>, _: i32| ())
        .build()
        .unwrap();
    space
        .create("a", "int f(int x) { return x; } int v;")
        .unwrap();
    let before = space.counters();
    let wrong = |source: &str| space.create("b", source).unwrap_err();
    assert!(matches!(
        wrong("int g(void) { return y; }"),
        CreateError::Source(_)
    ));
    assert!(
        matches!(wrong("int h(void); int g(void) { return h(); }"), CreateError::Unresolved(n) if n == "h")
    );
    assert!(matches!(
        wrong("int f(int x, int y) { return x; }"),
        CreateError::Signature { .. }
    ));
    assert!(matches!(
        wrong("int f(int, int); int g(void) { return f(1, 2); }"),
        CreateError::Signature { .. }
    ));
    assert!(matches!(
        wrong("int log(long); int g(void) { return log(1); }"),
        CreateError::Signature { .. }
    ));
    assert!(matches!(
        wrong("int log(int x) { return x; }"),
        CreateError::Defined { .. }
    ));
    assert!(matches!(
        wrong("int v; int g(void) { return v; }"),
        CreateError::Defined { .. }
    ));
    assert!(matches!(
        wrong("int v(void) { return 1; }"),
        CreateError::Defined { .. }
    ));
    assert!(matches!(wrong("static int v2;"), CreateError::Empty));
    let integers = Namespace::builder()
        .registers(RegisterUse::General)
        .build()
        .unwrap();
    let error = integers
        .create("a", "double half(double x) { return x / 2; }")
        .unwrap_err();
    assert!(matches!(error, CreateError::Registers { .. }), "{error}");
    integers
        .create("a", "int f(int x) { return x / 2; }")
        .unwrap();
    assert_eq!(space.counters(), before);
    let f = space.func::<fn(i32) -> i32>("f").unwrap();
    assert_eq!(f.call(3).unwrap(), 3);
    let id = space.lookup("f").unwrap();
    assert!(matches!(
        space.call(id, &[]),
        Err(IdCallError::Arguments {
            wanted: 1,
            given: 0,
            ..
        })
    ));
    assert!(space.func::<fn(f64) -> i32>("f").is_err());
    assert!(
        space
            .func::<fn(i32) -> i32>("ff")
            .unwrap_err()
            .to_string()
            .contains("`f`")
    );
}

#[test]
fn room_is_given_back() {
    let mut room = Room::default();
    room.functions = 1;
    (room.code, room.constants, room.variables) = (8192, 8192, 8192);
    let space = Namespace::builder().room(room).build().unwrap();
    for round in 0..300 {
        // Always another name: slots, too, serve again.
        let source = format!(
            "int data_{round}[100]; const char *text_{round} = \"{round} {round}\"; int f_{round}(int x) {{ return x + {round} + text_{round}[0] - '0'; }}"
        );
        let made = space.create("a", &source).unwrap();
        assert_eq!(made.new.len(), 1);
        let f = space.func::<fn(i32) -> i32>(&format!("f_{round}")).unwrap();
        let digit: i32 = round.to_string()[..1].parse().unwrap();
        assert_eq!(f.call(1).unwrap(), 1 + round + digit);
        assert!(space.delete(&format!("f_{round}")));
    }
    let big = format!("const char *f(void) {{ return \"{}\"; }}", "x".repeat(9000));
    assert!(matches!(
        space.create("a", &big),
        Err(CreateError::Room {
            what: "constants",
            ..
        })
    ));
    assert!(space.collect());
    assert_eq!(space.counters().units, 0);
}

#[test]
fn namespaces_do_not_see_each_other() {
    let (one, two) = (empty(), empty());
    one.create("a", "int secret = 7; int get(void) { return secret; }")
        .unwrap();
    assert!(two.lookup("get").is_none() && two.variable("secret").is_none());
    assert!(matches!(
        two.create("b", "int get(void); int f(void) { return get(); }"),
        Err(CreateError::Unresolved(_))
    ));
    // Whatever address it makes up, it stays in its own window.
    let at = one.variable("secret").unwrap();
    two.create(
        "b",
        "int peek(unsigned at) { return *(int *)(unsigned long)at; }",
    )
    .unwrap();
    let peek = two.func::<fn(u32) -> i32>("peek").unwrap();
    if let Ok(found) = peek.call(at.0) {
        assert_eq!(found, 0);
    }
}

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
fn images_and_source_mix() {
    // int three(void) { return 3; } and a call of service 0.
    let mut builder = ImageBuilder::new([0xb8, 3, 0, 0, 0, 0xc3]);
    builder.import("s", "i(i)".parse().ok());
    builder.export("three", 0, "i()".parse().ok());
    let image = Image::from_bytes(&builder.build().unwrap()).unwrap();
    let space = Namespace::over(&image)
        .service("s", |_: &Caller<'_>, x: i32| x)
        .service("t", |_: &Caller<'_>, x: i32| 10 * x)
        .build()
        .unwrap();
    space
        .create("a", "int three(void); int s(int); int t(int); int sum(void) { return three() + s(20) + t(30); }")
        .unwrap();
    let sum = space.func::<fn() -> i32>("sum").unwrap();
    assert_eq!(sum.call().unwrap(), 323);
    let three = space.func::<fn() -> i32>("three").unwrap();
    space.create("b", "int three(void) { return 4; }").unwrap();
    assert_eq!((three.call().unwrap(), sum.call().unwrap()), (4, 324));
    assert_eq!(
        space
            .domain()
            .func::<fn() -> i32>("three")
            .unwrap()
            .call()
            .unwrap(),
        3
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

#[test]
fn c_pointers_follow_replacement_and_outlive_deletion() {
    let space = empty();
    space
        .create("a", "short f(short x) { return x + 1; }")
        .unwrap();
    let pointer = space.function_pointer("f", None).unwrap();
    // SAFETY: the pointer's type is f's.
    let f: extern "C" fn(i16) -> i16 = unsafe { std::mem::transmute(pointer) };
    assert_eq!(f(1), 2);
    space
        .create("a", "short f(short x) { return x - 1; }")
        .unwrap();
    assert_eq!(f(1), 0);
    assert!(space.delete("f"));
    postern::clear_last_error();
    assert_eq!(f(1), 0);
    let error = postern::last_error().unwrap();
    assert_eq!(error.fault().unwrap().kind, FaultKind::Deleted);
    drop(space);
    assert_eq!(f(1), 0);
}

#[test]
fn functions_call_services_of_an_image_whose_slots_begin_higher() {
    let mut builder = postern_image::ImageBuilder::new([0x89, 0xf8, 0xc3]);
    builder.shift(77);
    builder.import("twice", "i(i)".parse().ok());
    builder.export("same", 0, "i(i)".parse().ok());
    let image = postern::Image::from_bytes(&builder.build().unwrap()).unwrap();
    let space = Namespace::over(&image);
    let space = space.service("twice", |_: &Caller<'_>, x: i32| 2 * x);
    let space = space.build().unwrap();
    let source = "int twice(int); int f(int x) { return twice(x) + 1; }";
    space.create("a", source).unwrap();
    let f = space.func::<fn(i32) -> i32>("f").unwrap();
    assert_eq!(f.call(20).unwrap(), 41);
    let same = space.domain().func::<fn(i32) -> i32>("same").unwrap();
    assert_eq!(same.call(6).unwrap(), 6);
}

#[test]
fn names_can_lead_to_functions_of_other_names() {
    let space = empty();
    space
        .create(
            "a",
            "int one(void) { return 1; } int two(void) { return 2; } double d(void) { return 0; }",
        )
        .unwrap();
    space.link("f", "one").unwrap();
    let f = space.func::<fn() -> i32>("f").unwrap();
    assert_eq!(f.call().unwrap(), 1);
    let id = space.link("f", "two").unwrap();
    assert_eq!((f.call().unwrap(), space.call(id, &[]).unwrap()), (2, 2));
    assert!(matches!(
        space.link("f", "d"),
        Err(CreateError::Signature { .. })
    ));
    assert!(matches!(
        space.link("f", "nothing"),
        Err(CreateError::Unresolved(_))
    ));
    // The body stays while any name leads to it.
    for name in ["one", "two", "d"] {
        assert!(space.delete(name));
    }
    assert!(space.collect());
    assert_eq!((f.call().unwrap(), space.counters().units), (2, 1));
    assert!(space.link("f", "two").is_err());
    assert!(space.delete("f") && space.collect());
    assert_eq!(space.counters().units, 0);
    // More names than are made at once.
    space.create("a", "int one(void) { return 1; }").unwrap();
    for n in 0..300 {
        let id = space.link(&format!("n{n}"), "one").unwrap();
        assert_eq!(space.call(id, &[]).unwrap(), 1);
    }
}

#[test]
fn a_body_that_somebody_jumped_into_late_is_not_freed() {
    let (space, is_in, leave) = one_that_waits();
    space
        .create(
            "b",
            "int at(unsigned p) { return ((int (*)(int))(unsigned long)p)(41); }
             unsigned slot(void) { extern int f(int); return (unsigned)(unsigned long)f; }",
        )
        .unwrap();
    // Where the body is: the text behind the slots, whose table says it. Hostile code reads that, too.
    let slot = space.func::<fn() -> u32>("slot").unwrap().call().unwrap();
    let read = |at: u32| {
        let bytes = space.domain().read_vec(Offset(at), 8).unwrap();
        u64::from_le_bytes(bytes.try_into().unwrap())
    };
    let distance = (read(slot + 8) >> 16) as u32;
    let body = (read(slot + 14 + distance) - space.domain().base()) as u32;
    assert!(
        space
            .domain()
            .func_at::<fn(i32) -> i32>(Offset(body))
            .is_err()
    );
    assert!(space.delete("f"));
    let at = space.func::<fn(u32) -> i32>("at").unwrap();
    std::thread::scope(|scope| {
        // It comes when nothing leads there any more.
        let late = scope.spawn(|| at.call(body).unwrap());
        is_in.recv().unwrap();
        let before = read(body);
        assert!(!space.collect());
        space.create("c", "int g(int x) { return x * 3; }").unwrap();
        assert_eq!(read(body), before, "somebody is in there");
        leave.send(()).unwrap();
        assert_eq!(late.join().unwrap(), 42);
    });
    assert!(space.collect());
    assert_eq!(read(body), u64::from_le_bytes([0xcc; 8]));
    let error = at.call(body).unwrap_err();
    assert_eq!(error.fault().unwrap().kind, FaultKind::BadJump);
}
