//! `_Bool`: its lowest bit, and nothing else of what the other side has put into the register or
//! the word.

use crate::support::{code, cold, image};
use crate::{call_with, limits, types};
use postern::{Asked, Caller, Decider, Domain, Module, Question, Verdict};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What a byte says that is none of `_Bool`'s, with rubbish above it.
const RUBBISH: [(u64, u64); 7] = [
    (0, 0),
    (1, 1),
    (0x80, 0),
    (0x81, 1),
    (0x1_0000_0000, 0),
    (u64::MAX, 1),
    (0x7fff_ff02, 0),
];

const EXPORTS: [(&str, &str); 4] = [
    ("make", "z(l)"),
    ("see", "l(z)"),
    ("seventh", "l(llllllz)"),
    ("fits", "z(llllllz)"),
];
const SOURCE: &str = "make: movq %rdi,%rax
            ret
     see: movq %rdi,%rax
            ret
     seventh: movq %gs:(%r15d),%rax
            ret
     fits: movq %gs:(%r15d),%rax
            notq %rax
            ret";

#[test]
fn results_and_arguments_of_entries() {
    let image = image(&EXPORTS, SOURCE);
    for slow in [false, true] {
        let d = cold(&image).limits(limits(slow)).build().unwrap();
        let module = Module::new(&image, move |b| b.limits(limits(slow))).unwrap();
        let make = d.func::<fn(i64) -> bool>("make").unwrap();
        let made = module.func::<fn(i64) -> bool>("make").unwrap();
        for (bits, value) in RUBBISH {
            assert_eq!(make.call(bits as i64).unwrap(), value == 1, "{bits:#x}");
            assert_eq!(made.call(bits as i64).unwrap(), value == 1, "{bits:#x}");
        }
        for value in [false, true] {
            assert_eq!(
                d.func::<fn(bool) -> i64>("see")
                    .unwrap()
                    .call(value)
                    .unwrap(),
                i64::from(value)
            );
            type Seventh<R> = fn(i64, i64, i64, i64, i64, i64, bool) -> R;
            let seventh = d.func::<Seventh<i64>>("seventh").unwrap();
            assert_eq!(
                seventh.call(9, 9, 9, 9, 9, 9, value).unwrap(),
                i64::from(value)
            );
            let fits = d.func::<Seventh<bool>>("fits").unwrap();
            assert_eq!(fits.call(9, 9, 9, 9, 9, 9, value).unwrap(), !value);
        }
        // Another type of the same size is another type.
        assert!(
            d.func::<fn(i64) -> u8>("make").is_err() && d.func::<fn(i8) -> i64>("see").is_err()
        );
        type Pointers = [*const (); 3];
        let of = |f: &dyn Fn(&str, &str) -> *const ()| -> Pointers {
            [
                f("make", "z(l)"),
                f("see", "l(z)"),
                f("seventh", "l(llllllz)"),
            ]
        };
        let own = of(&|name, t| d.function_pointer(name, &types(t)).unwrap());
        let switched = of(&|name, t| module.function_pointer(name, &types(t)).unwrap());
        for [make, see, seventh] in [own, switched] {
            // SAFETY: as the host of such a function would call it, with words for `_Bool`.
            let seventh: extern "C" fn(u64, u64, u64, u64, u64, u64, u64) -> u64 =
                unsafe { std::mem::transmute(seventh) };
            for (bits, value) in RUBBISH {
                assert_eq!(call_with(make, bits, 0), value, "all of rax, for {bits:#x}");
                assert_eq!(call_with(see, bits, 0), value, "{bits:#x}");
                assert_eq!(seventh(9, 9, 9, 9, 9, 9, bits), value, "{bits:#x}");
            }
        }
    }
}

static HEARD: AtomicU64 = AtomicU64::new(0);
static GIVEN: AtomicU64 = AtomicU64::new(0);
/// The test that uses them.
static USED: Mutex<()> = Mutex::new(());

/// A C function `_Bool s(long, _Bool)` as one that shows all of its register.
extern "C" fn hear(_: u64, x: u64) -> u64 {
    HEARD.store(x, Ordering::Relaxed);
    GIVEN.load(Ordering::Relaxed)
}

#[test]
fn arguments_and_results_of_services() {
    let _used = USED.lock().unwrap();
    let image = code(
        &[("s", "z(lz)"), ("c", "z(lz)")],
        &[("f", "l(ll)"), ("g", "l(ll)")],
        "f: jmp s\ng: jmp c",
    )
    .image();
    let heard = Arc::new(Mutex::new(None));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (note, seen) = (heard.clone(), asked.clone());
    let decider = Decider::closure(move |_: &Caller<'_>, question: &Question<'_>| {
        if let Asked::Service { integers, .. } = question.call {
            seen.lock().unwrap().push(integers[1]);
        }
        Verdict::Allow
    });
    let builder = cold(&image).service("s", move |_: &Caller<'_>, x: i64, b: bool| {
        *note.lock().unwrap() = Some(b);
        b == (x == 1)
    });
    // SAFETY: `hear` takes any words.
    let builder = unsafe { builder.service_c("c", hear as *const (), types("z(lz)"), 4096) };
    let d = builder.build().unwrap();
    let call = |name: &str, a: u64, b: u64| {
        d.func::<fn(i64, i64) -> i64>(name)
            .unwrap()
            .call(a as i64, b as i64)
            .unwrap()
    };
    for decided in [false, true] {
        if decided {
            d.set_decider(Some(decider.clone()));
        }
        for (bits, value) in RUBBISH {
            assert_eq!(call("f", 1, bits), value as i64, "{bits:#x}");
            assert_eq!(*heard.lock().unwrap(), Some(value == 1), "{bits:#x}");
            GIVEN.store(bits, Ordering::Relaxed);
            assert_eq!(call("g", 1, bits), value as i64, "{bits:#x}");
            assert_eq!(HEARD.load(Ordering::Relaxed), value, "{bits:#x}");
        }
    }
    let asked = asked.lock().unwrap();
    let expected: Vec<u64> = RUBBISH
        .iter()
        .flat_map(|&(_, value)| [value, value])
        .collect();
    assert_eq!(*asked, expected);
}

/// Neither of two extensions can make the other see a `_Bool` that is none.
#[test]
fn peers() {
    for slow in [false, true] {
        let b = code(
            &[],
            &[("p", "z(lz)")],
            ".bss
             seen: .skip 8
             .text
             p: movq %rsi,%gs:seen(,%eiz,1)
                movq %rdi,%rax
                ret",
        );
        let seen = b.at("seen");
        let b = cold(&b.image()).limits(limits(slow)).build().unwrap();
        let a = code(&[("p", "z(lz)")], &[("f", "l(ll)")], "f: jmp p").image();
        let a = cold(&a)
            .peer("p", &b.peer_export("p").unwrap())
            .build()
            .unwrap();
        let f = a.func::<fn(i64, i64) -> i64>("f").unwrap();
        for (bits, value) in RUBBISH {
            assert_eq!(
                f.call(bits as i64, bits as i64).unwrap(),
                value as i64,
                "{bits:#x}"
            );
            assert_eq!(
                b.read_vec(postern::Offset(seen), 8).unwrap(),
                value.to_le_bytes(),
                "{bits:#x}"
            );
        }
    }
}

#[cfg(feature = "ecode")]
#[test]
fn namespaces() {
    // An import makes room for a namespace's own.
    let image = code(&[("__postern_exit", "v(i)")], &EXPORTS, SOURCE).image();
    let space = postern::Namespace::over(&image).build().unwrap();
    space
        .create(
            "a",
            "_Bool is_odd(int x) { return x & 1; } _Bool not(_Bool x) { return !x; }",
        )
        .unwrap();
    assert_eq!(space.signature("not").unwrap(), types("z(z)"));
    assert!(
        space
            .func::<fn(i32) -> bool>("is_odd")
            .unwrap()
            .call(7)
            .unwrap()
    );
    let not = space.func::<fn(bool) -> bool>("not").unwrap();
    assert!(not.call(false).unwrap() && !not.call(true).unwrap());
    let id = |name: &str| space.lookup(name).unwrap();
    let make = space.function_pointer("make", &types("z(l)")).unwrap();
    for (bits, value) in RUBBISH {
        assert_eq!(space.call(id("make"), &[bits]).unwrap(), value, "{bits:#x}");
        assert_eq!(space.call(id("see"), &[bits]).unwrap(), value, "{bits:#x}");
        assert_eq!(call_with(make, bits, 0), value, "{bits:#x}");
    }
}

/// What the compiler says of a function in C, and calls both ways through it.
#[test]
fn compiled() {
    let source = "#include <stdbool.h>\n\
                  bool ask(bool);\n\
                  bool both(bool a, bool b) { return a && ask(b); }\n\
                  long pick(bool a) { static const long table[2] = {10, 20}; return table[a]; }\n";
    let image = crate::support::compile("bools.c", source, &["-O1", "-nolibc"]);
    let d: Domain = cold(&image)
        .service("ask", |_: &Caller<'_>, x: bool| !x)
        .build()
        .unwrap();
    assert_eq!(d.signature("both").unwrap().to_string(), "z(zz)");
    let both = d.func::<fn(bool, bool) -> bool>("both").unwrap();
    for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
        assert_eq!(both.call(a, b).unwrap(), a && !b);
    }
    let pick = d.func::<fn(bool) -> i64>("pick").unwrap();
    assert_eq!(
        (pick.call(false).unwrap(), pick.call(true).unwrap()),
        (10, 20)
    );
    let c = d.function_pointer("pick", &types("l(z)")).unwrap();
    for (bits, value) in RUBBISH {
        assert_eq!(call_with(c, bits, 0), 10 + 10 * value, "{bits:#x}");
    }
}
