//! What hosts give to domains and to calls: sets of services, names that no image imports, state of
//! a call.
mod support;

use postern::{
    Caller, Domain, Image, InstantiateError, LoadError, Namespace, Placement, Recovery, Recycle,
    ServiceSet, with_state,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use support::{code, cold};

/// `f` passes its argument on to the service `s`.
fn forwarder() -> Image {
    code(&[("s", "i(i)")], &[("f", "i(i)")], "f: jmp s").image()
}

fn call(domain: &Domain, x: i32) -> i32 {
    let f = domain.func::<fn(i32) -> i32>("f").unwrap();
    f.call(x).unwrap()
}

#[test]
fn builders_take_a_set_and_leave_out_what_the_image_does_not_import() {
    let sum = std::sync::atomic::AtomicI32::new(0);
    let set = ServiceSet::new()
        .service("s", move |_: &Caller<'_>, x: i32| {
            sum.fetch_add(x, std::sync::atomic::Ordering::SeqCst) + x
        })
        .service("t", |_: &Caller<'_>, x: i32| x * 2);
    assert_eq!(set.names(), ["s", "t"]);
    let image = forwarder();
    let given = || cold(&image).services(&set).refuse_unused();
    assert!(given().unused().is_empty() && given().missing().is_empty());
    let (one, two) = (given().build().unwrap(), given().build().unwrap());
    // What the closure owns is one for both.
    assert_eq!((call(&one, 5), call(&two, 7), call(&one, 1)), (5, 12, 13));
    let own = |builder: postern::DomainBuilder| builder.service("s", |_: &Caller<'_>, x: i32| -x);
    assert_eq!(call(&own(given()).build().unwrap(), 5), -5);
    let other = ServiceSet::new().service("s", |_: &Caller<'_>, x: i32| x + 100);
    let both = set.clone().and(&other);
    let last = cold(&image).services(&both).build().unwrap();
    assert_eq!(call(&last, 5), 105);
    drop(set);
    assert_eq!(call(&one, 1), 14);
    // A namespace has all of it.
    let space = Namespace::builder().services(&both).build().unwrap();
    let source = "int s(int); int t(int); int f(int x) { return s(x) + t(x); }";
    space.create("a", source).unwrap();
    let f = space.func::<fn(i32) -> i32>("f").unwrap();
    assert_eq!(f.call(1).unwrap(), 103);
}

#[test]
fn names_that_no_import_has_are_told_or_refused() {
    let image = forwarder();
    let peer = cold(&code(&[], &[("g", "i(i)")], "g: mov %edi, %eax\nret").image());
    let export = peer.build().unwrap().peer_export("g").unwrap();
    let given = || {
        cold(&image)
            .service("s", |_: &Caller<'_>, x: i32| x)
            .service("ss", |_: &Caller<'_>, x: i32| x)
            .peer("elsewhere", &export)
    };
    assert_eq!(given().unused(), ["elsewhere", "ss"]);
    assert_eq!(call(&given().build().unwrap(), 3), 3);
    match given().refuse_unused().build().unwrap_err().cause() {
        InstantiateError::NotImported { name, nearest } => {
            assert_eq!((&**name, nearest), ("elsewhere", &None));
        }
        other => panic!("{other}"),
    }
    let misspelt = cold(&image).service("s", |_: &Caller<'_>, x: i32| x);
    let misspelt = misspelt.service("ss", |_: &Caller<'_>, x: i32| x);
    let error = misspelt.refuse_unused().build().unwrap_err().to_string();
    assert!(
        error.contains("`ss`") && error.contains("did you mean `s`?"),
        "{error}"
    );
}

#[test]
fn a_call_has_the_state_that_it_was_given() {
    type Seen = RefCell<Vec<i32>>;
    let image = forwarder();
    let inner = cold(&image)
        .service("s", |caller: &Caller<'_>, _: i32| {
            i32::from(caller.state::<Seen>().is_some())
        })
        .build()
        .unwrap();
    let nested = inner.func::<fn(i32) -> i32>("f").unwrap();
    let outer = cold(&image)
        .service("s", move |caller: &Caller<'_>, x: i32| {
            let Some(seen) = caller.state::<Seen>() else {
                return -1;
            };
            assert!(caller.state::<Cell<i32>>().is_none(), "another type");
            seen.borrow_mut().push(x);
            // Of the call that this service makes it is not, unless it says so.
            assert_eq!(nested.call(0).unwrap(), 0);
            assert_eq!(with_state(seen.clone(), || nested.call(0)).unwrap(), 1);
            assert!(caller.state::<Seen>().is_some());
            x
        })
        .build()
        .unwrap();
    assert_eq!(call(&outer, 1), -1);
    let (a, b) = (Rc::new(Seen::default()), Rc::new(Seen::default()));
    with_state(a.clone(), || {
        assert_eq!(call(&outer, 2), 2);
        with_state(b.clone(), || assert_eq!(call(&outer, 3), 3));
        assert_eq!(call(&outer, 4), 4);
        // Another thread's calls are others.
        std::thread::scope(|scope| {
            let elsewhere = scope.spawn(|| call(&outer, 5));
            assert_eq!(elsewhere.join().unwrap(), -1);
        });
    });
    assert_eq!((&*a.borrow(), &*b.borrow()), (&vec![2, 4], &vec![3]));
    // Nor has a peer's service what was given to its caller.
    let export = inner.peer_export("f").unwrap();
    let between = cold(&image).peer("s", &export).build().unwrap();
    let given = || with_state(a.clone(), || (call(&between, 1), call(&inner, 1)));
    assert_eq!(given(), (0, 1));
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        with_state(a.clone(), || panic!("the host's own"))
    }));
    assert!(panics.is_err());
    assert_eq!(call(&outer, 6), -1);
    assert_eq!((Rc::strong_count(&a), Rc::strong_count(&b)), (1, 1));
}

#[test]
fn errors_of_loading_name_the_file() {
    let folder = support::Directory::new();
    let file = folder.path("broken.px");
    std::fs::write(&file, "no image").unwrap();
    let error = Image::load(&file).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("broken.px: "), "{text}");
    assert!(matches!(error.cause(), LoadError::Image(_)), "{error:?}");
    assert!(
        matches!(&error, LoadError::File { path, source } if *path == file && text.ends_with(&source.to_string()))
    );
    let error = Image::from_named_bytes("plugin 7", b"no image").unwrap_err();
    assert!(error.to_string().starts_with("plugin 7: "), "{error}");
    let bytes = code(&[], &[("f", "v()")], "f: ret\nnop").builder;
    let image = Image::from_named_bytes("plugin 8", &bytes.build().unwrap()).unwrap();
    let domain = Domain::builder(&image).build().unwrap();
    assert!(domain.name().starts_with("plugin 8#"), "{}", domain.name());
}

#[test]
fn errors_of_making_a_domain_name_the_image() {
    let bytes = code(&[("nobody", "v()")], &[("f", "v()")], "f: ret").builder;
    let image = Image::from_named_bytes("plugin 9", &bytes.build().unwrap()).unwrap();
    let error = cold(&image).build().unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("plugin 9: the extension imports `nobody`"),
        "{text}"
    );
    assert!(matches!(error.cause(), InstantiateError::Unresolved(name) if name == "nobody"));
    let words = [Placement::Auto, Placement::Hot, Placement::Cold].map(|p| p.to_string());
    assert_eq!(words, ["auto", "hot", "cold"]);
    assert_eq!(Recycle::Reset.to_string(), "reset");
    assert_eq!(Recovery::Continue.to_string(), "continue");
}
