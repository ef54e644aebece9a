//! What crossing a gate costs, in cycles over a plain indirect call.
//!
//! All calls depend on the one before through argument and result, so nothing overlaps. A null
//! function adds one. The images are made here from machine code, in the three classes of state
//! that a gate must clear.

mod peers;

use crate::clock::best_of;
use crate::figure::{Figure, Goal};
use crate::trusted::cycle;
use postern::{Caller, Domain, Func, Image, Placement};
use postern_image::{ImageBuilder, Signature};
use postern_verifier::window;
use std::hint::black_box;

/// Calls in one round: a fraction of a millisecond, so that many rounds pass undisturbed.
const CALLS: u64 = 50_000;
const ROUNDS: usize = 60;

/// Classes of images by the state that they can read, with the goal in cycles over a plain call.
const CLASSES: [(&str, &[u8], f64); 3] = [
    ("integer", &[], 12.0),
    ("sse", &[0x0f, 0x57, 0xc0, 0xc3], 16.0), // xorps %xmm0, %xmm0; ret
    ("avx", &[0xc5, 0xfc, 0x57, 0xc0, 0xc3], 30.0), // vxorps %ymm0, %ymm0, %ymm0; ret
];

/// `call` and its target's distance, from `at` in text to gate slot 0 or 1.
fn call_slot(text: &mut Vec<u8>, slot: u32, text_offset: u32) {
    let next = text_offset + text.len() as u32 + 5;
    text.push(0xe8);
    text.extend(window::slot(slot).wrapping_sub(next).to_le_bytes());
}

/// An image with `null`, and two functions that call a service: one made from a Rust closure, one a
/// C function.
fn image(touch: &[u8]) -> Result<Image, String> {
    let text_offset = window::text_start(2);
    let mut text = vec![0x8d, 0x47, 0x01, 0xc3]; // lea 1(%rdi), %eax; ret
    text.resize(64, window::FILL);
    call_slot(&mut text, 0, text_offset);
    text.push(0xc3);
    text.resize(128, window::FILL);
    call_slot(&mut text, 1, text_offset);
    text.push(0xc3);
    text.extend(touch);
    text.push(window::FILL);
    let mut builder = ImageBuilder::new(text);
    builder.import("closure", Some(signature()));
    builder.import("function", Some(signature()));
    builder.export("null", 0, Some(signature()));
    builder.export("call_closure", 64, Some(signature()));
    builder.export("call_function", 128, Some(signature()));
    let file = builder.build().map_err(|e| e.to_string())?;
    Image::from_bytes(&file).map_err(|e| e.to_string())
}

fn signature() -> Signature {
    Signature::new(Some(postern::Type::I32), &[postern::Type::I32]).expect("one parameter is few")
}

fn domain(image: &Image, placement: Placement) -> Result<Domain, String> {
    let builder = Domain::builder(image)
        .placement(placement)
        .service("closure", |_: &Caller<'_>, x: i32| x.wrapping_add(1));
    cycle::with_c_service(builder, "function")
        .build()
        .map_err(|e| e.to_string())
}

fn repeat(mut call: impl FnMut(i32) -> i32) {
    let mut x = 0;
    for _ in 0..CALLS {
        x = call(x);
    }
    black_box(x);
}

fn typed(function: &Func<fn(i32) -> i32>) -> impl FnMut(i32) -> i32 + '_ {
    |x| function.call(x).expect("the null function returns")
}

/// The figures of the group.
pub fn figures() -> Result<Vec<Figure>, String> {
    let mut figures = Vec::new();
    for (class, touch, goal) in CLASSES {
        let image = image(touch)?;
        for (place, placement) in [("hot", Placement::Hot), ("window", Placement::Cold)] {
            let domain = domain(&image, placement)?;
            if placement == Placement::Hot && !domain.is_hot() {
                eprintln!(
                    "postern bench: the hot window is not free, so its gates are not measured"
                );
                continue;
            }
            figures.extend(one_domain(&domain, &format!("{class}.{place}"), goal)?);
        }
        figures.extend(switching(&image, class, goal)?);
    }
    figures.extend(peers::figures()?);
    Ok(figures)
}

fn one_domain(domain: &Domain, name: &str, goal: f64) -> Result<Vec<Figure>, String> {
    let func = |name| {
        domain
            .func::<fn(i32) -> i32>(name)
            .map_err(|e| e.to_string())
    };
    let (null, closure, function) = (func("null")?, func("call_closure")?, func("call_function")?);
    let stub = cycle::c_function(domain, "null").map_err(|e| e.to_string())?;
    let plain = black_box(cycle::add_one as extern "C" fn(i32) -> i32);
    let times = best_of(
        ROUNDS,
        [
            &mut || cycle::chain(10 * CALLS),
            &mut || repeat(|x| black_box(plain)(x)),
            &mut || repeat(typed(&null)),
            &mut || repeat(|x| stub(x)),
            &mut || repeat(typed(&closure)),
            &mut || repeat(typed(&function)),
        ],
    );
    let cycle = times[0] / 10.0;
    let [plain, typed, stub, closure, function] = [1, 2, 3, 4, 5].map(|i| times[i] / cycle);
    let row = |what: &str, cycles: f64, how: &str| {
        Figure::plain(
            format!("gates.{what}.{name}"),
            cycles - plain,
            "cycles",
            how,
        )
        .on_top_of(plain)
        .goal(Goal::AtMost(goal))
    };
    Ok(vec![
        row(
            "entry",
            typed,
            "typed call from Rust, over a plain indirect call",
        ),
        row(
            "pointer",
            stub,
            "C function pointer, over a plain indirect call",
        ),
        row(
            "service",
            closure - typed,
            "service that is a Rust closure, over a plain indirect call",
        ),
        row(
            "service-c",
            function - typed,
            "service that is a C function, over a plain indirect call",
        ),
    ])
}

/// The goal for integer images, in cycles over a plain call.
const SWITCH: f64 = 30.0;

/// Calls that alternate between two domains, so that each writes the gs base.
fn switching(image: &Image, class: &str, goal: f64) -> Result<Vec<Figure>, String> {
    let (a, b) = (
        domain(image, Placement::Cold)?,
        domain(image, Placement::Cold)?,
    );
    let func = |d: &Domain| d.func::<fn(i32) -> i32>("null").map_err(|e| e.to_string());
    let (a, b) = (func(&a)?, func(&b)?);
    let (mut call_a, mut call_b) = (typed(&a), typed(&b));
    let plain = black_box(cycle::add_one as extern "C" fn(i32) -> i32);
    let times = best_of(
        ROUNDS,
        [
            &mut || cycle::chain(10 * CALLS),
            &mut || repeat(|x| black_box(plain)(x)),
            &mut || {
                let mut x = 0;
                for _ in 0..CALLS / 2 {
                    x = call_b(call_a(x));
                }
                black_box(x);
            },
            &mut || cycle::write_gs_base(CALLS, || ()),
            &mut || {
                let mut x = 0;
                cycle::write_gs_base(CALLS, || x = black_box(plain)(x));
                black_box(x);
            },
            &mut || cycle::read_gs_base(CALLS),
        ],
    );
    let cycle = times[0] / 10.0;
    let [plain, switch, write, within, read] = [1, 2, 3, 4, 5].map(|i| times[i] / cycle);
    let integer = class == "integer";
    // For the other classes nothing is laid down but what such a call consists of.
    let (goal, how) = match integer {
        true => (SWITCH, "another domain each call".to_owned()),
        false => (
            goal + write,
            format!("another domain each call; the goal is {goal} + one wrgsbase"),
        ),
    };
    let mut figures = vec![
        Figure::plain(
            format!("gates.switch.{class}"),
            switch - plain,
            "cycles",
            how,
        )
        .on_top_of(plain)
        .goal(Goal::AtMost(goal)),
    ];
    if integer {
        figures.insert(
            0,
            Figure::plain(
                "gates.wrgsbase",
                write,
                "cycles",
                "the instruction, again and again",
            ),
        );
        let added = Figure::plain(
            "gates.wrgsbase-within",
            within - plain,
            "cycles",
            "what it adds to a plain indirect call",
        );
        figures.insert(1, added.on_top_of(plain));
        figures.insert(
            2,
            Figure::plain(
                "gates.rdgsbase",
                read,
                "cycles",
                "the instruction, again and again",
            ),
        );
    }
    Ok(figures)
}
