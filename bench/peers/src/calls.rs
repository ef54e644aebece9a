//! A typed call and a callback, through Postern's gates and through Wasmtime's.

use postern::{Caller, Domain, Image, Placement};
use postern_figures::clock::best_of;
use postern_figures::figure::Figure;
use postern_figures::trusted::cycle;
use postern_image::ImageBuilder;
use std::cell::RefCell;
use std::hint::black_box;
use wasmtime::{Config, Engine, Linker, Module, Store, TypedFunc};

const CALLS: u64 = 50_000;
const ROUNDS: usize = 60;

/// Offset of gate slot 0 and of text in an image with one import (`docs/src/internals/abi.md`).
const GATES: u32 = 0x1_1000;
const TEXT: u32 = 0x1_2000;

/// `(import "host" "callback" (func (param i32) (result i32)))`, a function `null` that adds one,
/// and `call`, which calls the import.
const MODULE: &[u8] = b"\0asm\x01\0\0\0\
    \x01\x06\x01\x60\x01\x7f\x01\x7f\
    \x02\x11\x01\x04host\x08callback\0\0\
    \x03\x03\x02\0\0\
    \x07\x0f\x02\x04null\0\x01\x04call\0\x02\
    \x0a\x10\x02\x07\0\x20\0\x41\x01\x6a\x0b\x06\0\x20\0\x10\0\x0b";

type Entry = TypedFunc<i32, i32>;

fn wasm(epochs: bool) -> Result<(Store<()>, Entry, Entry), wasmtime::Error> {
    let mut config = Config::new();
    config.epoch_interruption(epochs);
    let engine = Engine::new(&config)?;
    let module = Module::new(&engine, MODULE)?;
    let mut linker = Linker::new(&engine);
    linker.func_wrap("host", "callback", |x: i32| x.wrapping_add(1))?;
    let mut store = Store::new(&engine, ());
    if epochs {
        store.set_epoch_deadline(1_000_000);
    }
    let instance = linker.instantiate(&mut store, &module)?;
    let null = instance.get_typed_func(&mut store, "null")?;
    let call = instance.get_typed_func(&mut store, "call")?;
    Ok((store, null, call))
}

fn postern_domain() -> Result<Domain, String> {
    let mut text = vec![0x8d, 0x47, 0x01, 0xc3]; // lea 1(%rdi), %eax; ret
    text.resize(64, 0xcc);
    text.push(0xe8); // call slot 0
    text.extend(GATES.wrapping_sub(TEXT + 69).to_le_bytes());
    text.extend([0xc3, 0xcc]);
    let signature = || "i(i)".parse().map(Some).map_err(|e| format!("{e}"));
    let mut builder = ImageBuilder::new(text);
    builder.import("callback", signature()?);
    builder.export("null", 0, signature()?);
    builder.export("call", 64, signature()?);
    let file = builder.build().map_err(|e| e.to_string())?;
    let image = Image::from_bytes(&file).map_err(|e| e.to_string())?;
    Domain::builder(&image)
        .placement(Placement::Cold)
        .service("callback", |_: &Caller<'_>, x: i32| x.wrapping_add(1))
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

fn through(function: &Entry, store: &RefCell<Store<()>>) {
    let mut store = store.borrow_mut();
    repeat(|x| {
        function
            .call(&mut *store, x)
            .expect("neither function traps")
    });
}

/// The figures of calls.
pub fn figures() -> Result<Vec<Figure>, String> {
    // Wasmtime first: Postern's handlers then chain to its, and know that nobody came after them.
    let (mut store, null, call) = wasm(false).map_err(|e| e.to_string())?;
    let (epochs, null_epochs, call_epochs) = wasm(true).map_err(|e| e.to_string())?;
    null.call(&mut store, 1).map_err(|e| e.to_string())?;
    let (store, epochs) = (RefCell::new(store), RefCell::new(epochs));
    let domain = postern_domain()?;
    let func = |name| {
        domain
            .func::<fn(i32) -> i32>(name)
            .map_err(|e| e.to_string())
    };
    let (ours, ours_back) = (func("null")?, func("call")?);
    let plain = black_box(cycle::add_one as extern "C" fn(i32) -> i32);
    let times = best_of(
        ROUNDS,
        [
            &mut || cycle::chain(10 * CALLS),
            &mut || repeat(|x| black_box(plain)(x)),
            &mut || repeat(|x| ours.call(x).expect("the null function returns")),
            &mut || repeat(|x| ours_back.call(x).expect("the service returns")),
            &mut || through(&null, &store),
            &mut || through(&call, &store),
            &mut || through(&null_epochs, &epochs),
            &mut || through(&call_epochs, &epochs),
        ],
    );
    let cycle = times[0] / 10.0;
    let [plain, ours, ours_back, wasm, wasm_back, epochs, epochs_back] =
        [1, 2, 3, 4, 5, 6, 7].map(|i| times[i] / cycle);
    let over = |name: &str, cycles: f64, base: f64, how: &str| {
        Figure::plain(name, cycles, "cycles", how).against(base)
    };
    let back = ours_back - ours;
    Ok(vec![
        over(
            "peers.call.postern",
            ours,
            plain,
            "typed call, deadline on, over a plain indirect call",
        ),
        over(
            "peers.call.wasmtime",
            wasm,
            ours,
            "typed call, no interruption, over Postern's",
        ),
        over(
            "peers.call.wasmtime-epochs",
            epochs,
            ours,
            "typed call, epochs on, over Postern's",
        ),
        over(
            "peers.callback.postern",
            back,
            plain,
            "what a service call adds, over a plain indirect call",
        ),
        over(
            "peers.callback.wasmtime",
            wasm_back - wasm,
            back,
            "what a callback adds, over Postern's",
        ),
        over(
            "peers.callback.wasmtime-epochs",
            epochs_back - epochs,
            back,
            "what a callback adds, over Postern's",
        ),
    ])
}
