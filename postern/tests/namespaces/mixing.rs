//! Images and source in one namespace.

use postern::{Caller, CreateError, Image, Namespace, RegisterUse};
use postern_image::ImageBuilder;

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

/// An image that only moves vectors has gates that leave MXCSR alone: nothing that computes with it
/// may come later.
#[test]
fn floating_point_does_not_come_in_by_an_image_that_moves_vectors() {
    let mut builder = ImageBuilder::new([0x0f, 0x28, 0xc1, 0xc3]); // movaps %xmm1, %xmm0; ret
    builder.import("s", "i(i)".parse().ok());
    builder.export("move", 0, "v()".parse().ok());
    let image = Image::from_bytes(&builder.build().unwrap()).unwrap();
    let half = "double half(double x) { return x / 2; }";
    for (registers, allowed) in [(RegisterUse::General, false), (RegisterUse::Vectors, true)] {
        let space = Namespace::over(&image)
            .service("s", |_: &Caller<'_>, x: i32| x)
            .registers(registers)
            .build()
            .unwrap();
        match space.create("a", half) {
            Ok(_) => assert!(allowed),
            Err(error) => {
                assert!(matches!(error, CreateError::Registers { .. }), "{error}");
                assert!(!allowed, "{error}");
            }
        }
    }
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
