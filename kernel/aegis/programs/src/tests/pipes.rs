//! Pipes: pieces that are put together, compiled and run here do what plain code does.

use core::sync::atomic::Ordering::Relaxed;

use postern_aegis::abi::records::run;
use postern_aegis::{Error, Mapping, memory, pages};
use postern_aegis_pipes::{Pass, Piece, PipeError, SHARED, compile, compose, load};

use crate::handlers::{Line, ends, in_time, is_there, page};
use crate::scenario::{Named, Outcome, Why, check, same};

crate::scenarios! {
    "pipes.orders" orders;
    "pipes.lengths" lengths;
    "pipes.passes" passes;
    "pipes.put" put;
    "pipes.text" text;
    "pipes.bad" bad;
}

/// Where copies go, behind the results.
const COPY: u64 = 1024;
const KEY: u64 = 0x0123_4567_89ab_cdef;
/// Bytes of a frame, and where the words begin that its sender chose.
const FRAME: u64 = 1514;
const FROM: usize = 24;

/// What a piece does, in plain code.
#[derive(Clone, Copy)]
enum Layer {
    Sum,
    Swap,
    Key,
    Copy,
}

impl Layer {
    fn piece(self) -> Piece {
        match self {
            Layer::Sum => Piece::sum(),
            Layer::Swap => Piece::swap(),
            Layer::Key => Piece::key(KEY),
            Layer::Copy => Piece::copy(SHARED + COPY),
        }
    }
}

fn pipe(skip: usize, passes: &[&Pass]) -> Result<Line, Why> {
    let handler = load(skip, passes).map_err(|error| match error {
        PipeError::Text(..) => Why::Not("a pipe's text"),
        PipeError::Link => Why::Not("a pipe's functions"),
        PipeError::Call(error) => Why::Refused("a pipe", error),
    })?;
    Line::of(handler, "ether proto 0x88b5")
}

/// Fills the frame that goes out: bytes that look like chance.
fn fill(line: &Line, seed: u64) {
    for at in (FROM as u64..FRAME + 8).step_by(8) {
        let word = (at ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        memory::write(line.frame.0 + at, word ^ word >> 29);
    }
}

/// A word of the message from an offset on: behind the end are zeros.
fn word_at(line: &Line, from: usize, length: u64) -> u64 {
    let byte = |at: usize| {
        let word = memory::read(line.frame.0 + (at & !7) as u64);
        word.to_le_bytes()[at & 7]
    };
    u64::from_le_bytes(core::array::from_fn(|index| match from + index {
        at if (at as u64) < length => byte(at),
        _ => 0,
    }))
}

/// The Internet's sum, a half of a word after the other.
fn add(sum: u64, word: u64) -> u64 {
    (0..4).fold(sum, |sum, half| {
        let sum = sum + (word >> (16 * half) & 0xffff);
        (sum & 0xffff) + (sum >> 16)
    })
}

/// A message of this length passes layers, and what the handler made of it is what they make here.
fn compare(line: &Line, skip: usize, layers: &[Layer], length: u64) -> Outcome {
    line.message(length)?;
    same("ended", line.record().ended.load(Relaxed).into(), 0)?;
    let mut sum = None;
    let count = (length as usize).saturating_sub(skip).div_ceil(8);
    for index in 0..count {
        let mut word = word_at(line, skip + 8 * index, length);
        for (number, layer) in layers.iter().enumerate() {
            match layer {
                Layer::Sum => {
                    let (_, before) = sum.unwrap_or((number, 0));
                    sum = Some((number, add(before, word)));
                }
                Layer::Swap => {
                    let halves = [word as u32, (word >> 32) as u32].map(u32::swap_bytes);
                    word = u64::from(halves[0]) | u64::from(halves[1]) << 32;
                }
                Layer::Key => word ^= KEY,
                Layer::Copy => {
                    same("a copy", line.word(COPY / 8 + index as u64), word)?;
                }
            }
        }
    }
    if let Some((number, sum)) = sum {
        same("a sum", line.word(number as u64 + 1), sum)?;
    }
    // Nothing is stored behind a copy.
    same("behind", line.word(COPY / 8 + count as u64), 0)
}

fn pieces<const N: usize>(layers: [Layer; N]) -> [Piece; N] {
    layers.map(Layer::piece)
}

/// All four layers, in each of their orders.
fn orders() -> Outcome {
    use Layer::{Copy, Key, Sum, Swap};
    if !is_there() {
        return Ok(());
    }
    for number in 0..24 {
        let mut layers = [Sum, Swap, Key, Copy];
        layers.swap(0, number % 4);
        layers.swap(1, 1 + number / 4 % 3);
        layers.swap(2, 2 + number / 12);
        let act = |line: &Line| {
            fill(line, number as u64);
            for length in [60, 61 + number as u64, 200 + number as u64] {
                compare(line, FROM, &layers, length)?;
            }
            same("messages", line.word(0), 3)
        };
        in_time(|| pipe(FROM, &[&pieces(layers)]), act)?.end()?;
    }
    Ok(())
}

/// Messages of many lengths, from several bytes on.
fn lengths() -> Outcome {
    use Layer::{Copy, Key, Sum, Swap};
    if !is_there() {
        return Ok(());
    }
    let far = 600;
    for (layers, skip) in [
        ([Swap, Sum, Key, Copy], FROM),
        ([Copy, Key, Swap, Sum], FROM + 5),
        ([Key, Sum, Swap, Copy], far),
    ] {
        let act = |line: &Line| {
            fill(line, skip as u64);
            let short = (60..132).chain(far as u64 - 2..far as u64 + 10);
            for length in short.chain((132..FRAME).step_by(83)).chain([FRAME]) {
                // What an earlier one left.
                (0..190).for_each(|word| memory::write(line.shared + COPY + 8 * word, 0));
                compare(line, skip, &layers, length)?;
            }
            Ok(())
        };
        in_time(|| pipe(skip, &[&pieces(layers)]), act)?.end()?;
    }
    Ok(())
}

/// One pass after the other does the same as both at a time.
fn passes() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let (copy, sum) = (Piece::copy(SHARED + COPY), Piece::sum());
    for together in [true, false] {
        let both = [copy.clone(), sum.clone()];
        let (first, second) = both.split_at(1);
        let apart = [first, second];
        let line = || match together {
            true => pipe(FROM, &[&both]),
            false => pipe(FROM, &apart),
        };
        let act = |line: &Line| {
            fill(line, 3);
            [60, 333, 1456].into_iter().try_for_each(|length| {
                (0..190).for_each(|word| memory::write(line.shared + COPY + 8 * word, 0));
                compare(line, FROM, &[Layer::Copy, Layer::Sum], length)
            })
        };
        in_time(line, act)?.end()?;
    }
    // The same piece twice has two states.
    let twice = [Piece::sum(), Piece::key(KEY), Piece::sum()];
    let act = |line: &Line| {
        fill(line, 4);
        line.message(64)
    };
    let line = in_time(|| pipe(FROM, &[&twice]), act)?;
    let words = || (0..5).map(|index| word_at(&line, FROM + 8 * index, 64));
    same("the first", line.word(1), words().fold(0, add))?;
    let after = words().map(|word| word ^ KEY).fold(0, add);
    same("the other", line.word(3), after)?;
    line.end()
}

/// Words go into a page by its capability, and not without one.
fn put() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let to = page()?;
    let place = u64::from(to.1) << 12 | 256;
    let act = |line: &Line| {
        fill(line, 5);
        for length in [60, 1000, FRAME] {
            line.message(length)?;
            same("said", line.word(2), 0)?;
            for index in 0..(length - FROM as u64).div_ceil(8) {
                let word = word_at(line, FROM + 8 * index as usize, length) ^ KEY;
                same("a word", memory::read(to.0 + 256 + 8 * index), word)?;
            }
        }
        Ok(())
    };
    let key = || pipe(FROM, &[&[Piece::key(KEY), Piece::put(place, 0)]]);
    in_time(key, act)?.end()?;
    // The kernel's.
    let kernels = || pipe(FROM, &[&[Piece::put(256 << 12, 0)]]);
    let line = in_time(kernels, |line| line.message(60))?;
    check(line.word(1) as i64 != 0, "a page that is not its own")?;
    line.end()?;
    pages::free(to.1).named("a page")
}

fn step(text: &str) -> Piece {
    Piece {
        step: text.into(),
        ..Piece::default()
    }
}

/// Text that is wrong is nobody's handler, and whose it is is told.
fn text() -> Outcome {
    for wrong in [
        "word = nothing;",
        "word = ;",
        "word += 1.5;",
        "word = \"",
        "/* never closed",
        "} } }",
        "{ { {",
        "#error no",
        "#include \"other\"",
        "goto nowhere;",
        "return;",
        "break; }",
        "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((",
        "word = (long (*)(void))word;  ((long (*)(void))word)();",
    ] {
        let all = [Piece::sum(), step(wrong), Piece::swap()];
        let source = compose(FROM, &[&all]);
        match compile(&source) {
            // What is not closed shows behind it only.
            Err(PipeError::Text(of, _)) => {
                check(of != Some(0), "another piece")?;
                check(of == Some(1) || wrong.contains(['{', '}', '*']), "no piece")?;
            }
            Err(_) => {}
            Ok(_) => return Err(Why::Not("wrong text is compiled")),
        }
    }
    let long = step(&"word ^= 1;\n".repeat(10_000));
    let is_text = |made| matches!(made, Err(PipeError::Text(..)));
    check(is_text(compile(&compose(0, &[&[long]]))), "long text")?;
    let circle = Piece {
        outside: "long f$(long a) { return a ? f$(a - 1) : 0; }".into(),
        step: "word = f$(word);".into(),
        ..Piece::default()
    };
    let made = compile(&compose(0, &[&[circle]]));
    check(matches!(made, Err(PipeError::Link)), "a circle of calls")?;
    let foreign = Piece {
        outside: "long open$(long a);".into(),
        step: "word = open$(word);".into(),
        ..Piece::default()
    };
    let made = load(0, &[&[foreign]]);
    let refused = matches!(made, Err(PipeError::Call(Error::Argument)));
    check(refused, "what nobody offers")
}

/// What compiles, and does what it should not, ends as every handler does.
fn bad() -> Outcome {
    if !is_there() {
        return Ok(());
    }
    let page_fault = run::EXCEPTION + 14;
    for (text, how) in [
        ("for (;;) result[8]++;", run::LONG),
        ("word = from[AT + 4096];", page_fault),
        ("((unsigned long *)in)[AT] = word;", page_fault),
        ("word = word / (result[8] - 1);", run::EXCEPTION),
        ("put(0, 0, (void *)0x150000, 64);", run::SERVICE),
    ] {
        // The sum needs the word: what nobody needs is not even computed.
        let mut line = pipe(FROM, &[&[Piece::swap(), step(text), Piece::sum()]])?;
        memory::write(line.shared + 64, 1);
        let result = ends(&mut line, &[0], how, false);
        same(text, line.word(0), 0)?;
        line.end()?;
        result?;
    }
    // Where its owner binds nothing, it stores nothing; what is bound later is there.
    let line = pipe(FROM, &[&[Piece::copy(0x15_0000)]])?;
    let own = page()?;
    let write = Mapping::new(own.1, Mapping::WRITE);
    line.handler.bind(0x15_0000, write, 0).named("binding")?;
    line.message(60)?;
    same("it returned", line.word(0), 1)?;
    same("a copy", memory::read(own.0), word_at(&line, FROM, 60))?;
    line.end()?;
    pages::free(own.1).named("a page")
}
