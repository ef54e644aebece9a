//! What names lead to: functions of other sources, services, variables, others' functions, or none.

use crate::empty;
use postern::{Caller, CreateError, FaultKind, IdCallError, Namespace, Offset, RegisterUse};

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
fn c_pointers_follow_replacement_and_outlive_deletion() {
    let space = empty();
    space
        .create("a", "short f(short x) { return x + 1; }")
        .unwrap();
    let pointer = space
        .function_pointer("f", &"h(h)".parse().unwrap())
        .unwrap();
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
