//! What the module is asked, and what it has to answer: the same as the judge in this process.

use std::fs::File;

use fastrand::Rng;
use postern_image::{ImageBuilder, Segment};
use postern_kernel_judge as judge;
use postern_kernel_judge::Verdict;
use postern_verifier::Rule;

use postern_kernel::abi::{self, Name};

use crate::trusted::{self, Load, Text, ask, ask_anything};

/// Code of the attack corpus.
pub struct Case {
    name: String,
    /// What the corpus expects of the profile for kernels, or `-`.
    expect: String,
    imports: u32,
    text: Vec<u8>,
}

impl Case {
    /// The code.
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}

/// The cases that the tests put beside this program: a line each, of fields with tabs between.
pub fn cases() -> Result<Vec<Case>, String> {
    let lines = std::fs::read_to_string("/cases").map_err(|error| format!("/cases: {error}"))?;
    lines
        .lines()
        .map(|line| {
            let mut fields = line.split('\t');
            let mut field = || fields.next().ok_or_else(|| format!("/cases: {line}"));
            let (name, expect) = (field()?.to_owned(), field()?.to_owned());
            let imports = field()?.parse().map_err(|_| line)?;
            let bytes = field()?.split_whitespace();
            let text = bytes
                .map(|byte| u8::from_str_radix(byte, 16).map_err(|_| line.to_owned()))
                .collect::<Result<_, _>>()?;
            Ok(Case {
                name,
                expect,
                imports,
                text,
            })
        })
        .collect()
}

/// The verdict as the corpus writes it.
fn spelled(verdict: &Verdict) -> String {
    let rule = |verdict: &Verdict| Rule::ALL.get(verdict.rule as usize).map(|rule| rule.name());
    match (verdict.verdict, rule(verdict)) {
        (judge::ACCEPTED, _) => "accept".into(),
        (judge::REFUSED, Some(rule)) => format!("refuse {rule}"),
        _ => format!("{verdict:?}"),
    }
}

/// What the kernel says of a text; an error if this process says something else.
fn text_verdict(device: &File, text: &[u8], imports: u32) -> Result<Verdict, String> {
    let mut asked = Text {
        text: text.as_ptr() as u64,
        size: text.len() as u32,
        imports,
        ..Text::default()
    };
    ask(device, &mut asked).map_err(|error| format!("{text:02x?}: {error}"))?;
    let here = judge::text(text, imports);
    match asked.verdict == here {
        true => Ok(here),
        false => Err(format!(
            "{text:02x?}: {:?} in the kernel, {here:?} here",
            asked.verdict
        )),
    }
}

/// What the loaded images are called.
const NAME: &str = "case";

/// A request to load a file.
pub fn request(file: &[u8]) -> Load {
    Load {
        file: file.as_ptr() as u64,
        size: file.len() as u64,
        name: Name::new(NAME).unwrap_or_default(),
        ..Load::default()
    }
}

/// Loads a file; an error if this process judges it differently. Returns its number.
pub fn load(device: &File, file: &[u8], what: &str) -> Result<u32, String> {
    let mut asked = request(file);
    let answer = ask(device, &mut asked);
    let here = judge::image(file);
    // A damaged one may want more memory than windows have here, and be accepted all the same.
    let too_large = |error: &std::io::Error| error.raw_os_error() == Some(libc::E2BIG);
    if here.verdict == judge::ACCEPTED && answer.as_ref().is_err_and(too_large) {
        return Ok(0);
    }
    answer.map_err(|error| format!("{what}: {error}"))?;
    if asked.verdict.verdict == abi::NO_SERVICE && here.verdict == judge::ACCEPTED {
        return Ok(0);
    }
    if asked.verdict != here || (asked.id == 0) != (here.verdict != judge::ACCEPTED) {
        let there = asked.verdict;
        return Err(format!(
            "{what}: {there:?}, number {} in the kernel, {here:?} here",
            asked.id
        ));
    }
    Ok(asked.id)
}

/// Each case has the verdict that the corpus expects, with the place that it has here.
pub fn corpus(device: &File, cases: &[Case]) -> Result<(), String> {
    for case in cases {
        let verdict = text_verdict(device, &case.text, case.imports)?;
        if case.expect != "-" && spelled(&verdict) != case.expect {
            let said = spelled(&verdict);
            return Err(format!("{}: {said}, not {}", case.name, case.expect));
        }
    }
    println!("guest: {} cases", cases.len());
    Ok(())
}

/// Services that any extension may import. Behind them images import what there is not.
const SERVICES: [&str; 1] = ["postern_time"];

/// How many slots the code of an accepted case goes to. There is a page of them at least, so that
/// text is where it was.
fn wanted(case: &Case) -> u32 {
    let fewer = 1..case.imports;
    fewer
        .into_iter()
        .find(|&imports| judge::text(&case.text, imports).verdict == judge::ACCEPTED)
        .unwrap_or(case.imports)
}

/// Whether there are services for all that its image imports.
fn is_served(case: &&Case) -> bool {
    wanted(case) as usize <= SERVICES.len()
}

/// An image with everything, whose code is a case that is accepted.
fn image(case: &Case) -> Vec<u8> {
    let mut builder = ImageBuilder::new(case.text.clone());
    builder.segment(Segment::Fs).stack_log2(12);
    for import in 0..wanted(case) {
        let name = SERVICES.get(import as usize).copied();
        let name = name.map_or_else(|| format!("service_{import}"), str::to_owned);
        builder.import(name, "l(pI)".parse().ok());
    }
    builder
        .export("first", 0, "l(ii)".parse().ok())
        .export("again", 0, None)
        .rodata(*b"read-only data")
        .data([7; 100], 9000)
        .thread_locals(*b"values", 40, 16);
    builder.build().unwrap_or_default()
}

fn accepted(cases: &[Case]) -> impl Iterator<Item = &Case> {
    cases
        .iter()
        .filter(|case| judge::text(&case.text, case.imports).verdict == judge::ACCEPTED)
}

/// Images of the accepted cases load, are listed, and unload; what is cut off or has a byte changed
/// is judged as here.
pub fn images(device: &File, cases: &[Case], seed: u64, count: u64) -> Result<(), String> {
    let (mut loaded, mut damaged, mut random) = (0, 0, Rng::with_seed(seed));
    for case in accepted(cases) {
        let file = image(case);
        let id = load(device, &file, &case.name)?;
        if !is_served(&case) {
            match id {
                0 => continue,
                _ => return Err(format!("{}: it imports what there is not", case.name)),
            }
        }
        let list = std::fs::read_to_string("/dev/postern").map_err(|error| error.to_string())?;
        if id == 0 || !list.starts_with(&format!("{id} {NAME} ")) {
            return Err(format!("{}: number {id}, listed as {list:?}", case.name));
        }
        ask(device, &mut id.clone()).map_err(|error| format!("unloading: {error}"))?;
        if ask(device, &mut id.clone()).is_ok() {
            return Err(format!("{}: unloaded twice", case.name));
        }
        loaded += 1;
    }
    let files: Vec<_> = accepted(cases)
        .filter(is_served)
        .take(4)
        .map(image)
        .collect();
    for turn in 0..count as usize {
        let Some(file) = files.get(turn % files.len()) else {
            break;
        };
        let mut file = file.clone();
        // Most bytes are fill; those that say something are in front, and in the notes.
        let near = match random.u8(..3) {
            0 => file.len(),
            1 => 500,
            _ => file.len().min(4096 + 4096 + 400),
        };
        match random.u8(..4) {
            0 => file.truncate(random.usize(1..file.len())),
            _ => file[random.usize(..near)] = random.u8(..),
        }
        let id = load(device, &file, "a damaged file")?;
        if id != 0 {
            ask(device, &mut id.clone()).map_err(|error| format!("unloading: {error}"))?;
        }
        damaged += 1;
    }
    println!("guest: {loaded} images, {damaged} damaged ones");
    Ok(())
}

/// Each allocation of a load fails in turn: an error or a verdict that says so, and nothing is
/// loaded.
pub fn refused_memory(device: &File, cases: &[Case]) -> Result<(), String> {
    let switch = "/sys/module/postern/parameters/fail_after";
    let file = accepted(cases)
        .find(is_served)
        .map(image)
        .unwrap_or_default();
    for allocation in 0..1000 {
        std::fs::write(switch, allocation.to_string()).map_err(|error| error.to_string())?;
        let mut asked = request(&file);
        let result = ask(device, &mut asked);
        let left = std::fs::read_to_string(switch).map_err(|error| error.to_string())?;
        std::fs::write(switch, "-1").map_err(|error| error.to_string())?;
        let said = match &result {
            Ok(()) => asked.verdict.verdict == judge::OUT_OF_MEMORY && asked.id == 0,
            Err(error) => error.raw_os_error() == Some(libc::ENOMEM),
        };
        // Above 0, no allocation has failed.
        if left.trim() != "-1" {
            ask(device, &mut asked.id).map_err(|error| format!("unloading: {error}"))?;
            println!("guest: {allocation} allocations refused");
            return Ok(());
        }
        if !said {
            return Err(format!(
                "allocation {allocation} failed: {result:?}, {:?}",
                asked.verdict
            ));
        }
    }
    Err("loading allocates without end".into())
}

/// Requests that make no sense are errors.
pub fn bad_arguments(device: &File) -> Result<(), String> {
    let refused = |what: &str, result: std::io::Result<()>, wanted: i32| {
        let error = result.err().and_then(|error| error.raw_os_error());
        match error == Some(wanted) {
            true => Ok(()),
            false => Err(format!("{what}: {error:?}, not {wanted}")),
        }
    };
    let load = |file, size, reserved| {
        let mut asked = Load {
            file,
            size,
            reserved,
            ..Load::default()
        };
        ask(device, &mut asked)
    };
    let here = [0u8; 16].as_ptr() as u64;
    refused("no bytes", load(here, 0, 0), libc::EFBIG)?;
    refused("too many bytes", load(here, u64::MAX, 0), libc::EFBIG)?;
    refused("5 MiB", load(here, 5 << 20, 0), libc::EFBIG)?;
    refused("bytes at 0", load(0, 100, 0), libc::EFAULT)?;
    refused(
        "bytes of the kernel's",
        load(0xffff_8880_0000_0000, 100, 0),
        libc::EFAULT,
    )?;
    refused("reserved", load(here, 16, 1), libc::EINVAL)?;
    refused("unloading 0", ask(device, &mut 0), libc::ENOENT)?;
    refused("unloading -1", ask(device, &mut (1 << 31)), libc::ENOENT)?;
    for number in [
        <Load as trusted::Argument>::NUMBER,
        <Text as trusted::Argument>::NUMBER,
    ] {
        refused(
            "an argument at 8",
            ask_anything(device, number, 8),
            libc::EFAULT,
        )?;
        let kernel = 0xffff_8880_0000_0000;
        refused(
            "an argument of the kernel's",
            ask_anything(device, number, kernel),
            libc::EFAULT,
        )?;
    }
    refused(
        "no such request",
        ask_anything(device, 0x5055, 8),
        libc::ENOTTY,
    )
}

/// Other users than root cannot open the device, nor use it where it was opened for them.
///
/// Rights belong to threads, so one gives its own up.
pub fn strangers(device: &File) -> Result<(), String> {
    let stranger = || {
        trusted::become_user(1000).map_err(|error| error.to_string())?;
        let open = File::open("/dev/postern").map_err(|error| error.kind());
        let asked = ask(device, &mut 1).map_err(|error| error.raw_os_error());
        match (open, asked) {
            (Err(std::io::ErrorKind::PermissionDenied), Err(Some(libc::EPERM))) => Ok(()),
            other => Err(format!("another user's: {other:?}")),
        }
    };
    std::thread::scope(|scope| scope.spawn(stranger).join().map_err(|_| "it panicked")?)
}

/// Code at random, of which much is accepted: pieces of the corpus one after the other, with bytes
/// changed, and plain bytes. Verdicts are those of this process.
pub fn snippets(device: &File, cases: &[Case], seed: u64, count: u64) -> Result<(), String> {
    let pieces: Vec<&[u8]> = accepted(cases).map(|case| &*case.text).collect();
    let (mut random, mut good) = (Rng::with_seed(seed), 0);
    for _ in 0..count {
        let mut text = Vec::new();
        for _ in 0..random.usize(1..6) {
            match random.u8(..8) {
                0 => text.extend((0..random.usize(1..12)).map(|_| random.u8(..))),
                _ => text.extend_from_slice(random.choice(&pieces).copied().unwrap_or(&[])),
            }
        }
        if random.bool() {
            let at = random.usize(..text.len());
            text[at] = random.u8(..);
        }
        text.push(0xc3);
        let verdict = text_verdict(device, &text, random.u32(..4))?;
        good += u64::from(verdict.verdict == judge::ACCEPTED);
    }
    println!("guest: {count} snippets, {good} accepted");
    match good * 20 >= count {
        true => Ok(()),
        false => Err("too few of the snippets are accepted to say much".into()),
    }
}

/// Images stay loaded, for the module to free when it is unloaded.
pub fn left_loaded(device: &File, cases: &[Case]) -> Result<(), String> {
    let file = accepted(cases)
        .find(is_served)
        .map(image)
        .unwrap_or_default();
    for number in 0..256 {
        load(device, &file, &format!("image {number}"))?;
    }
    match load(device, &file, "one too many") {
        Ok(id) => Err(format!("more images than there may be: {id}")),
        Err(_) => Ok(()),
    }
}
