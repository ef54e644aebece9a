//! What a file says about types copies nothing of anybody's.

use crate::support::{code, cold, domain};
use crate::{call_with, limits, types};
use postern::{BindError, Caller, Domain, InstantiateError, Module, Offset, SymbolError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const KEY: u64 = 0x6b65_792d_6b65_7921;

/// Stores what it finds in `xmm0` to `xmm7`, in the integer argument registers and in ten words of
/// the data stack.
fn dump(name: &str) -> String {
    let mut text = format!(".bss\nroom: .skip 512\n.text\n{name}: movq %r15,%rax\n");
    for (i, register) in ["rdi", "rsi", "rdx", "rcx", "r8", "r9"].iter().enumerate() {
        text += &format!("movq %{register},%gs:room+{}(,%eiz,1)\n", 8 * i);
    }
    for i in 0..8 {
        text += &format!("movups %xmm{i},%gs:room+{}(,%eiz,1)\n", 64 + 16 * i);
    }
    for i in 0..10 {
        text += &format!(
            "movq %gs:{}(%r15d),%rcx\nmovq %rcx,%gs:room+{}(,%eiz,1)\n",
            8 * i,
            256 + 8 * i
        );
    }
    text + "leal (%rdi,%rsi),%eax\nret\n"
}

fn found(domain: &Domain, room: u32) -> Vec<u64> {
    let bytes = domain.read_vec(Offset(room), 512).unwrap();
    let words = bytes
        .chunks(8)
        .map(|c| u64::from_le_bytes(c.try_into().unwrap()));
    words.collect()
}

const GREEDY: &str = "i(lllllldddddddddd)";

/// The image claims all registers and ten words of the caller's stack for a function of two
/// numbers. Who names its own types is told; a file that says nothing gets what those types are.
#[test]
fn a_claim_of_more_parameters_is_refused_and_copies_nothing() {
    for claim in [GREEDY, ""] {
        let code = code(&[], &[("add", claim)], &dump("add"));
        let d = cold(&code.image()).build().unwrap();
        let module = Module::new(&code.image(), |b| b).unwrap();
        let two = types("i(ii)");
        let room = code.at("room");
        let (plain, switched) = (
            d.function_pointer("add", &two),
            module.function_pointer("add", &two),
        );
        if !claim.is_empty() {
            assert!(matches!(plain, Err(SymbolError::Signature { .. })));
            assert!(matches!(switched, Err(SymbolError::Signature { .. })));
            assert_eq!(d.signature("add").unwrap().to_string(), claim);
            continue;
        }
        for (p, d) in [
            (plain.unwrap(), d.clone()),
            (switched.unwrap(), module.domain()),
        ] {
            assert_eq!(
                call_with(p, KEY, KEY),
                u64::from((KEY as u32).wrapping_mul(2))
            );
            let found = found(&d, room);
            assert_eq!(found[..2], [KEY & 0xffff_ffff; 2]);
            assert!(found[2..].iter().all(|&word| word != KEY), "{found:x?}");
        }
        assert!(matches!(d.signature("add"), Err(SymbolError::Untyped(_))));
    }
}

#[cfg(feature = "ecode")]
#[test]
fn a_namespaces_functions_are_called_by_the_hosts_types() {
    // An import makes room for a namespace's own.
    let image = code(
        &[("__postern_exit", "v(i)")],
        &[("add", GREEDY)],
        &dump("add"),
    )
    .image();
    let space = postern::Namespace::over(&image).build().unwrap();
    let refused = space.function_pointer("add", &types("i(ii)"));
    assert!(matches!(refused, Err(SymbolError::Signature { .. })));
    assert_eq!(space.signature("add").unwrap(), types(GREEDY));
    space
        .create("a", "int twice(int x) { return 2 * x; }")
        .unwrap();
    assert!(space.function_pointer("twice", &types("i(il)")).is_err());
    assert_eq!(space.signature("twice").unwrap(), types("i(i)"));
    assert!(matches!(
        space.signature("none"),
        Err(SymbolError::Missing { .. })
    ));
}

/// Two extensions that agree on a lie get each other's registers, never the host's: neither has an
/// instruction that touches vectors until the other one reads them. Through the peer gate and, with
/// a limit of the call depth, around it.
#[test]
fn what_peers_claim_shows_them_nothing_of_the_host() {
    let nine = "v(dddddddd)";
    for limited in [false, true] {
        let reader = code(&[], &[("read", nine)], &dump("read"));
        let b = cold(&reader.image())
            .limits(limits(limited))
            .build()
            .unwrap();
        let a = code(&[("read", nine)], &[("f", "v()")], "f: call read\nret");
        let a = cold(&a.image())
            .peer("read", &b.peer_export("read").unwrap())
            .build()
            .unwrap();
        call_with(a.function_pointer("f", &types("v()")).unwrap(), KEY, KEY);
        let seen = found(&b, reader.at("room"));
        assert!(
            seen.iter().all(|&word| word != KEY),
            "limited: {limited}: {seen:x?}"
        );

        // And what the host left in xmm0 in a service is not the result of a peer that says that it
        // has one there.
        extern "C" fn leave() -> f64 {
            f64::from_bits(KEY)
        }
        let giver = code(&[("s", "v()")], &[("give", "d()")], "give: call s\nret");
        let b = cold(&giver.image()).limits(limits(limited));
        // SAFETY: who calls it as `v()` leaves its result alone.
        let b = unsafe { b.service_c("s", leave as *const (), types("v()"), 4096) };
        let b = b.build().unwrap();
        let taker = code(
            &[("give", "d()")],
            &[("f", "v()")],
            &("f: call give\n".to_owned() + &dump("g")),
        );
        let a = cold(&taker.image())
            .peer("give", &b.peer_export("give").unwrap())
            .build()
            .unwrap();
        a.func::<fn()>("f").unwrap().call().unwrap();
        let seen = found(&a, taker.at("room"));
        assert!(
            seen.iter().all(|&word| word != KEY),
            "limited: {limited}: {seen:x?}"
        );
    }
}

/// A service that takes a number in a vector register does not get the host's from an image that
/// could not have put one there.
#[test]
fn what_an_extension_cannot_pass_is_not_the_hosts() {
    let a = code(
        &[("log", ""), ("s", "")],
        &[("f", "v()"), ("g", "v()")],
        "f: call log\nret\ng: call s\ncall log\nret",
    );
    extern "C" fn leave() -> f64 {
        f64::from_bits(KEY)
    }
    let heard = Arc::new(AtomicU64::new(1));
    let note = heard.clone();
    let a = cold(&a.image()).service("log", move |_: &Caller<'_>, x: f64| {
        note.store(x.to_bits(), Ordering::Relaxed)
    });
    // SAFETY: who calls it as `v()` leaves its result alone.
    let a = unsafe { a.service_c("s", leave as *const (), types("v()"), 4096) };
    let a = a.build().unwrap();
    for name in ["f", "g"] {
        heard.store(1, Ordering::Relaxed);
        call_with(a.function_pointer(name, &types("v()")).unwrap(), KEY, KEY);
        assert_eq!(heard.load(Ordering::Relaxed), 0, "{name}");
    }
}

/// What a peer reads of its caller's registers is what the caller says, too.
#[test]
fn an_import_without_types_gets_no_peer() {
    let b = domain(&[("read", "v(llllll)")], &dump("read"));
    let export = b.peer_export("read").unwrap();
    let a = image_that_calls("read");
    let built = cold(&a).peer("read", &export).build();
    let error = built.unwrap_err();
    assert!(matches!(error.cause(), InstantiateError::Untyped(name) if name == "read"));
    let a = cold(&a).peer_open("read").build().unwrap();
    assert!(
        matches!(a.bind_peer("read", &export), Err(BindError::Untyped(name)) if name == "read")
    );
}

fn image_that_calls(name: &str) -> postern::Image {
    code(
        &[(name, "")],
        &[("f", "v()")],
        &format!("f: call {name}\nret"),
    )
    .image()
}
