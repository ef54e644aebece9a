//! Namespaces: functions that come, are replaced and go while others run.
#![cfg(feature = "ecode")]

use postern::{Caller, FaultKind, Namespace, Offset};

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
