//! Accepted code, whatever it does, run in ring 0: the attack corpus, and instructions at random.
//!
//! There is nothing to expect of it but that each call ends, and that the kernel is as it was.

use std::fs::File;

use fastrand::Rng;
use postern_kernel::abi;
use postern_kernel_judge as judge;
use postern_verifier::{InstructionKind, Segment};

use crate::calls::{Code, call};
use crate::checks::{Case, request};
use crate::trusted::{Load, ask};

/// Pieces of code in one image.
const TOGETHER: usize = 100;

/// Instructions at random, of those that are accepted, and a return.
fn random_code(random: &mut Rng) -> Vec<u8> {
    let mut code = Vec::new();
    let count = random.usize(1..24);
    let mut tries = 0;
    while code.len() < 5 * count && tries < 10_000 {
        tries += 1;
        let mut bytes = Vec::with_capacity(24);
        let memory = random.u8(..7) == 0;
        if memory {
            bytes.extend([0x64, 0x67]);
        }
        if random.u8(..6) == 0 {
            bytes.push(*random.choice(&[0x66, 0xf2, 0xf3, 0xf0]).unwrap_or(&0x66));
        }
        if random.bool() {
            bytes.push(0x40 | random.u8(..16));
        }
        if random.u8(..4) == 0 {
            bytes.push(0x0f);
        }
        bytes.extend((0..16).map(|_| random.u8(..)));
        let Ok(instruction) = postern_verifier::next(&bytes, 0, Segment::Fs) else {
            continue;
        };
        if instruction.xmm || instruction.x87 {
            continue;
        }
        match instruction.kind {
            InstructionKind::Plain | InstructionKind::Address | InstructionKind::Nop => {}
            // Most branches go nowhere; those that stay may loop.
            InstructionKind::Conditional if random.u8(..4) == 0 => {
                let back = random.usize(..=code.len().min(20));
                code.extend([bytes[0] & 0x0f | 0x70, (-(back as i8) - 2) as u8]);
                continue;
            }
            _ => continue,
        }
        code.extend_from_slice(&bytes[..instruction.length]);
    }
    code.push(0xc3);
    code
}

/// An argument at random: a number, or an address where something is.
fn argument(random: &mut Rng, image: &[u8]) -> u64 {
    let layout = postern_image::ImageFile::parse(image).map(|file| file.layout());
    let (data, stack) = layout.map_or((0, 0), |layout| (layout.data, layout.stack));
    match random.u8(..6) {
        0 => random.u64(..),
        1 => random.u64(..100),
        2 => u64::from(stack) + random.u64(..4096),
        3 => 0x1_0000 + random.u64(..4096),
        _ => u64::from(data) + random.u64(..4096),
    }
}

/// An image, the numbers of the pieces in it, and of those that are not.
type PiecesImage = (Vec<u8>, Vec<usize>, Vec<usize>);

/// An image with pieces of code as functions, and those that are not accepted beside the others.
fn image_of(pieces: &[Vec<u8>]) -> Result<PiecesImage, String> {
    let (mut inside, mut alone) = ((0..pieces.len()).collect::<Vec<_>>(), Vec::new());
    loop {
        let mut code = Code::default();
        for &number in &inside {
            code.function(&format!("f{number}"), &pieces[number]);
        }
        let image = code.image(&[], 4000)?;
        let verdict = judge::image(&image);
        if verdict.verdict == judge::ACCEPTED {
            return Ok((image, inside, alone));
        }
        let into = verdict.at as u32 - code.offset(&[]);
        let worst = inside
            .iter()
            .rposition(|number| code.position(&format!("f{number}")) <= into)
            .filter(|_| inside.len() > 1)
            .ok_or_else(|| format!("refused: {verdict:?}"))?;
        alone.push(inside.remove(worst));
    }
}

/// Loads pieces of code as functions of one image, calls each, and counts the calls by their end.
fn run(
    device: &File,
    pieces: &[Vec<u8>],
    random: &mut Rng,
    ended: &mut [u64; abi::KINDS],
) -> Result<(), String> {
    let (image, inside, alone) = image_of(pieces)?;
    let mut asked = Load {
        limit: 1,
        on_fault: random.u32(..2),
        ..request(&image)
    };
    ask(device, &mut asked).map_err(|error| format!("loading: {error}"))?;
    if asked.id == 0 {
        return Err(format!("refused all together: {:?}", asked.verdict));
    }
    for number in inside {
        let arguments = std::array::from_fn(|_| argument(random, &image));
        let (outcome, _) = call(device, asked.id, &format!("f{number}"), arguments)?;
        match ended.get_mut(outcome.kind as usize) {
            Some(count) => *count += 1,
            None => return Err(format!("f{number}: {outcome:?}, {:02x?}", pieces[number])),
        }
    }
    ask(device, &mut asked.id).map_err(|error| format!("unloading: {error}"))?;
    for number in alone {
        run(device, &pieces[number..=number], random, ended)?;
    }
    Ok(())
}

/// Whether it is accepted wherever it lies: it goes to no slot.
fn stands_alone(code: &[u8]) -> bool {
    judge::text(code, 0).verdict == judge::ACCEPTED
}

/// Runs what is accepted of the corpus, and so many pieces of random code.
pub fn accepted_code(device: &File, cases: &[Case], seed: u64, count: u64) -> Result<(), String> {
    let mut random = Rng::with_seed(seed);
    let mut pieces: Vec<Vec<u8>> = cases
        .iter()
        .map(|case| case.text().to_vec())
        .filter(|text| stands_alone(text))
        .collect();
    // jmp to itself: random pieces are endless so seldom that some thousands may have none.
    pieces.push(vec![0xeb, 0xfe]);
    let attacks = pieces.len();
    while pieces.len() < attacks + count as usize {
        let code = random_code(&mut random);
        if stands_alone(&code) {
            pieces.push(code);
        }
    }
    let mut ended = [0; abi::KINDS];
    for together in pieces.chunks(TOGETHER) {
        run(device, together, &mut random, &mut ended)?;
    }
    println!("guest: {attacks} attacks and {count} random pieces ran, and ended {ended:?}");
    let whole = [
        abi::RETURNED,
        abi::PAGE_FAULT,
        abi::DIVISION,
        abi::TIMEOUT,
        abi::TRAP,
    ];
    let seen = |kind: &u32| ended[*kind as usize] > 0;
    match count < 1000 || whole.iter().all(seen) {
        true => Ok(()),
        false => Err("too few kinds of ends to say much".into()),
    }
}

/// What the page tables say while something is loaded: nothing can be written and executed.
pub fn rights(device: &File) -> Result<(), String> {
    let mut code = Code::default();
    code.function("f", &[0xc3]);
    let image = code.image(&[], 4000)?;
    let mut asked = request(&image);
    ask(device, &mut asked).map_err(|error| format!("loading: {error}"))?;
    let read = std::fs::read_to_string("/sys/module/postern/parameters/rights");
    let told = read.map_err(|error| error.to_string())?;
    let numbers: Vec<u32> = told
        .split_whitespace()
        .filter_map(|n| n.parse().ok())
        .collect();
    ask(device, &mut asked.id).map_err(|error| format!("unloading: {error}"))?;
    match numbers[..] {
        [0, 1024, 0, pages] if pages > 3 => Ok(()),
        _ => Err(format!("rights of pages: {told}")),
    }
}

/// How many windows the kernel has, and how much memory is free, in KiB.
pub fn held() -> Result<(usize, u64), String> {
    let read = |path| std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
    let areas = read("/proc/vmallocinfo")?;
    let window = (4u64 << 30) + (64 << 10);
    // What is freed and only waits to be forgotten is told, too.
    let lines = areas.lines().filter(|line| !line.contains("unpurged"));
    let windows = lines.filter(|line| {
        let size = line
            .split_whitespace()
            .nth(1)
            .and_then(|size| size.parse().ok());
        size.is_some_and(|size: u64| (window..window + 65536).contains(&size))
    });
    let memory = read("/proc/meminfo")?;
    let line = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemFree:"));
    let free = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    Ok((windows.count(), free.ok_or("no MemFree")?))
}

/// Whether there are as many windows, and about as much free memory, after some time at most: the
/// kernel frees areas and their page tables behind everybody's back.
pub fn as_before(before: (usize, u64)) -> Result<(), String> {
    /// KiB that come and go with everything else.
    const SLACK: u64 = 8 << 10;
    const TRIES: u32 = 100;
    let mut after = held()?;
    for _ in 0..TRIES {
        if after.0 == before.0 && after.1 + SLACK >= before.1 {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        after = held()?;
    }
    Err(format!(
        "windows, free memory: {before:?} before, {after:?} after"
    ))
}
