//! What a call from one extension to another costs, beside what it replaces: two processes that
//! hand something over.
//!
//! The calling extension loops over the call in its own text, so nothing but the peer gate and the
//! called null function is measured: each call's argument is the result of the one before.

use crate::clock::best_of;
use crate::figure::{Figure, Goal};
use crate::trusted::{cycle, process};
use postern::{Domain, Image, Placement, Signature};
use postern_image::ImageBuilder;
use postern_verifier::window;
use std::hint::black_box;

const CALLS: u32 = 50_000;
const ROUNDS: usize = 60;
/// Round trips between processes in one round.
const TRIPS: u32 = 500;

/// Images by the state that they can read, where the called function lies, and the goal in cycles
/// over a plain call, where there is one. A caller and a function at the same offset of their
/// windows disturb each other's branch prediction on processors that tell branches apart by low
/// address bits only.
const CASES: [(&str, &[u8], u32, Option<f64>); 4] = [
    ("integer", &[], 512, Some(45.0)),
    ("integer-same-offset", &[], 0, None),
    ("sse", &[0x0f, 0x57, 0xc0], 512, None), // xorps %xmm0, %xmm0
    ("avx", &[0xc5, 0xfc, 0x57, 0xc0], 512, None), // vxorps %ymm0, %ymm0, %ymm0
];

fn signature() -> Signature {
    Signature::new(Some(postern::Type::I32), &[postern::Type::I32]).expect("one parameter is few")
}

fn load(builder: &ImageBuilder) -> Result<Image, String> {
    let file = builder.build().map_err(|e| e.to_string())?;
    Image::from_bytes(&file).map_err(|e| e.to_string())
}

/// `null`, which adds one, so far into the text.
fn called(touch: &[u8], at: u32) -> Result<Image, String> {
    let mut text = vec![window::FILL; at as usize];
    text.extend([0x8d, 0x47, 0x01, 0xc3]); // lea 1(%rdi), %eax; ret
    text.extend(touch);
    text.push(0xc3);
    let mut builder = ImageBuilder::new(text);
    builder.export("null", at, Some(signature()));
    load(&builder)
}

/// `repeat`, which calls the import as often as its argument says.
fn calling(touch: &[u8]) -> Result<Image, String> {
    let text_offset = window::text_start(1);
    let mut text = vec![
        0x89, 0xfb, // mov %edi, %ebx
        0x31, 0xc0, // xor %eax, %eax
        0x89, 0xc7, // mov %eax, %edi
    ];
    let next = text_offset + text.len() as u32 + 5;
    text.push(0xe8); // call the slot
    text.extend(window::slot(0).wrapping_sub(next).to_le_bytes());
    text.extend([0xff, 0xcb, 0x75, 0xf5, 0xc3]); // dec %ebx; jne to mov; ret
    text.extend(touch);
    text.push(0xc3);
    let mut builder = ImageBuilder::new(text);
    builder.import("null", Some(signature()));
    builder.export("repeat", 0, Some(signature()));
    load(&builder)
}

/// The figures, which belong to the group `gates`.
pub fn figures() -> Result<Vec<Figure>, String> {
    let mut figures = Vec::new();
    let mut integer = f64::NAN;
    let mut clock = f64::NAN;
    for (class, touch, at, goal) in CASES {
        let error = |e: &dyn std::error::Error| e.to_string();
        let cold = |image: &Image| {
            Domain::builder(image)
                .placement(Placement::Cold)
                .deadline(None)
        };
        let callee = cold(&called(touch, at)?).build().map_err(|e| error(&e))?;
        let export = callee.peer_export("null").map_err(|e| error(&e))?;
        let caller = cold(&calling(touch)?)
            .peer("null", &export)
            .build()
            .map_err(|e| error(&e))?;
        let repeat = caller
            .func::<fn(i32) -> i32>("repeat")
            .map_err(|e| error(&e))?;
        let plain = black_box(cycle::add_one as extern "C" fn(i32) -> i32);
        let mut sum = 0;
        let [chain, call, peer] = best_of(
            ROUNDS,
            [
                &mut || cycle::chain(10 * u64::from(CALLS)),
                &mut || {
                    black_box((0..CALLS).fold(0, |x, _| black_box(plain)(x)));
                },
                &mut || sum = repeat.call(CALLS as i32).unwrap_or(-1),
            ],
        );
        if sum != CALLS as i32 {
            return Err(format!("{CALLS} calls of a peer counted to {sum}"));
        }
        let one = chain / 10.0;
        let (call, peer) = (call / one, peer / one);
        let figure = Figure::plain(
            format!("gates.peer.{class}"),
            peer - call,
            "cycles",
            "one extension calls another, over a plain indirect call",
        )
        .on_top_of(call);
        figures.push(match goal {
            Some(goal) => figure.goal(Goal::AtMost(goal)),
            None => figure,
        });
        if class == "integer" {
            integer = peer - call;
            clock = one / f64::from(CALLS);
        }
    }
    for (name, seconds, how) in [
        (
            "pipe",
            process::pipe_round_trip(20, TRIPS)?,
            "one byte to another process on the same core and back",
        ),
        (
            "futex",
            process::futex_round_trip(20, TRIPS)?,
            "a word handed to another process on the same core and back",
        ),
    ] {
        let how = format!("{how}, over the call of a peer");
        let figure = Figure::plain(
            format!("gates.between-processes.{name}"),
            seconds / clock,
            "cycles",
            how,
        );
        figures.push(figure.against(integer));
    }
    Ok(figures)
}
