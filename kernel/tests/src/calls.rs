//! Calls of extensions: values, faults with kind, offset and address, services.

use std::fs::File;

use postern_image::{ImageBuilder, Segment};
use postern_kernel::abi::{self, Name, Outcome};

use crate::checks::request;
use crate::trusted::{self, Call, Load, Statistics, ask, replace};

/// Code for an image: functions one after the other, each named.
#[derive(Default)]
pub struct Code {
    text: Vec<u8>,
    functions: Vec<(String, u32)>,
}

impl Code {
    /// Adds a function; calls and jumps to slot 0 are `e8` and `e9` with four zeros.
    pub fn function(&mut self, name: &str, bytes: &[u8]) -> &mut Code {
        self.text.resize(
            self.text.len().next_multiple_of(16),
            postern_verifier::window::FILL,
        );
        self.functions.push((name.into(), self.text.len() as u32));
        self.text.extend_from_slice(bytes);
        self
    }

    /// The image, which imports these services.
    pub fn image(&self, services: &[&str], data: usize) -> Result<Vec<u8>, String> {
        self.image_above(0, services, data)
    }

    /// The same so many pages higher.
    fn image_above(&self, pages: u32, services: &[&str], data: usize) -> Result<Vec<u8>, String> {
        let mut builder = ImageBuilder::new(Vec::new());
        builder.segment(Segment::Fs).stack_log2(12).shift(pages);
        for service in services {
            builder.import(*service, None);
        }
        let mut text = self.text.clone();
        let slot = builder.slot_offset(0) as i32 - builder.text_offset() as i32;
        for at in 0..text.len().saturating_sub(4) {
            if matches!(text[at], 0xe8 | 0xe9) && text[at + 1..at + 5] == [0; 4] {
                let displacement = slot - (at as i32 + 5);
                text[at + 1..at + 5].copy_from_slice(&displacement.to_le_bytes());
            }
        }
        builder.text(text).data(vec![7; data], 100);
        for (name, at) in &self.functions {
            builder.export(name.clone(), *at, None);
        }
        builder.build().map_err(|error| error.to_string())
    }

    /// Where text begins in the window.
    pub fn offset(&self, services: &[&str]) -> u32 {
        postern_verifier::window::text_start(services.len() as u32)
    }

    /// Where a function lies in text.
    pub fn position(&self, name: &str) -> u32 {
        let found = self.functions.iter().find(|(known, _)| known == name);
        found.map_or(u32::MAX, |(_, at)| *at)
    }
}

/// Calls a function; what it returned, or how it ended.
pub fn call(
    device: &File,
    id: u32,
    function: &str,
    arguments: [u64; 6],
) -> Result<(Outcome, u64), String> {
    let mut asked = Call {
        id,
        function: Name::new(function).unwrap_or_default(),
        arguments,
        ..Call::default()
    };
    ask(device, &mut asked).map_err(|error| format!("calling {function}: {error}"))?;
    Ok((asked.outcome, asked.value))
}

/// Accesses of 8 bytes through edi.
const LOAD: [u8; 6] = [0x64, 0x67, 0x48, 0x8b, 0x07, 0xc3];
const STORE: [u8; 6] = [0x64, 0x67, 0x48, 0x89, 0x37, 0xc3];

/// Functions for every way in which a call can end.
fn functions_code() -> Code {
    let mut code = Code::default();
    // All six arguments, each with its weight.
    code.function(
        "sum",
        &[
            0x48, 0x8d, 0x04, 0x77, // lea (%rdi,%rsi,2), %rax
            0x48, 0x8d, 0x04, 0x90, // lea (%rax,%rdx,4), %rax
            0x48, 0x8d, 0x04, 0xc8, // lea (%rax,%rcx,8), %rax
            0x4c, 0x01, 0xc0, // add %r8, %rax
            0x4c, 0x29, 0xc8, // sub %r9, %rax
            0xc3,
        ],
    );
    code.function("load", &LOAD).function("store", &STORE);
    code.function(
        "divide",
        &[0x48, 0x89, 0xf8, 0x31, 0xd2, 0x48, 0xf7, 0xf6, 0xc3],
    );
    code.function("ud2", &[0x90, 0x0f, 0x0b]);
    code.function("int3", &[0x90, 0x90, 0xcc]);
    code.function("loop", &[0xeb, 0xfe]);
    code.function("serve", &[0xe9, 0, 0, 0, 0]);
    // Calls, and faults behind the call: two return addresses are on the stack then.
    code.function("deep", &[0xe8, 0x0b, 0, 0, 0, 0xc3]);
    code.function("deeper", &[0x64, 0x67, 0x8b, 0x47, 0x10, 0xc3]);
    // All that no argument is in: rax rbx rbp r10 to r14.
    code.function(
        "left",
        &[
            0x48, 0x09, 0xd8, 0x48, 0x09, 0xe8, 0x4c, 0x09, 0xd0, 0x4c, 0x09, 0xd8, 0x4c, 0x09,
            0xe0, 0x4c, 0x09, 0xe8, 0x4c, 0x09, 0xf0, 0xc3,
        ],
    );
    // What a service leaves: rcx rdx rsi rdi r8 to r11.
    code.function(
        "left_by_service",
        &[
            0xe8, 0, 0, 0, 0, 0x31, 0xc0, 0x48, 0x09, 0xc8, 0x48, 0x09, 0xd0, 0x48, 0x09, 0xf0,
            0x48, 0x09, 0xf8, 0x4c, 0x09, 0xc0, 0x4c, 0x09, 0xc8, 0x4c, 0x09, 0xd0, 0x4c, 0x09,
            0xd8, 0xc3,
        ],
    );
    code.function("stack", &[0x4c, 0x89, 0xf8, 0xc3]);
    // Registers that the kernel's C expects to find as they were, and then a fault.
    code.function(
        "spoil",
        &[
            0xbb, 1, 0, 0, 0, 0xbd, 1, 0, 0, 0, 0x41, 0xbc, 1, 0, 0, 0, 0x41, 0xbd, 1, 0, 0, 0,
            0x41, 0xbe, 1, 0, 0, 0, 0x41, 0xbf, 1, 0, 0, 0, 0xc3,
        ],
    );
    // Cut off by the end of the file's text: what fills the page completes the address.
    code.function("cut", &[0x64, 0x67, 0x8b, 0x04, 0x25]);
    code
}

/// What a call has to come to.
fn expect(
    device: &File,
    id: u32,
    (function, arguments): (&str, [u64; 6]),
    wanted: (Outcome, Option<u64>),
) -> Result<(), String> {
    let (outcome, value) = call(device, id, function, arguments)?;
    match outcome == wanted.0 && wanted.1.is_none_or(|wanted| wanted == value) {
        true => Ok(()),
        false => Err(format!(
            "{function}({arguments:x?}): {value:#x}, {outcome:x?}, not {wanted:x?}"
        )),
    }
}

/// Every way for a call to end, with what is told about it.
pub fn functions(device: &File) -> Result<(), String> {
    let code = functions_code();
    let file = code.image(&["postern_time"], 100)?;
    let parsed = postern_image::ImageFile::parse(&file).map_err(|error| error.to_string())?;
    let layout = parsed.layout();
    let mut asked = request(&file);
    ask(device, &mut asked).map_err(|error| format!("loading: {error}"))?;
    let id = asked.id;
    if id == 0 {
        return Err(format!("the image with functions: {:?}", asked.verdict));
    }
    let none = [0; 6];
    let returned = (Outcome::default(), None);
    let value = |value: u64| (Outcome::default(), Some(value));
    let fault = |kind, function: &str, into: u32, address: u32| {
        let offset = layout.text + code.position(function) + into;
        let outcome = Outcome {
            kind,
            offset,
            address,
            service: 0,
        };
        (outcome, Some(0))
    };
    let check = |what: (&str, [u64; 6]), wanted| expect(device, id, what, wanted);
    check(("sum", [1, 2, 3, 4, 5, 6]), value(1 + 4 + 12 + 32 + 5 - 6))?;
    let data = u64::from(layout.data);
    check(
        ("load", [data, 0, 0, 0, 0, 0]),
        value(0x0707_0707_0707_0707),
    )?;
    check(
        ("load", [data | 5 << 32, 0, 0, 0, 0, 0]),
        value(0x0707_0707_0707_0707),
    )?;
    check(("store", [data, 99, 0, 0, 0, 0]), returned)?;
    for address in [0, 8, 0xfff8, layout.text, layout.heap_start, 0xffff_0000] {
        let what = ("load", [address.into(), 0, 0, 0, 0, 0]);
        check(what, fault(abi::PAGE_FAULT, "load", 0, address))?;
    }
    // The tail of an access at the end of the window lies behind it: told is the window's last byte
    // or nothing.
    let (outcome, _) = call(device, id, "load", [0xffff_ffff, 0, 0, 0, 0, 0])?;
    if outcome.kind != abi::PAGE_FAULT {
        return Err(format!("at the end of the window: {outcome:x?}"));
    }
    let info = 0x1_0000;
    check(("load", [info, 0, 0, 0, 0, 0]), value(0))?;
    check(
        ("store", [info, 1, 0, 0, 0, 0]),
        fault(abi::PAGE_FAULT, "store", 0, info as u32),
    )?;
    check(("divide", [42, 5, 0, 0, 0, 0]), value(8))?;
    check(
        ("divide", [42, 0, 0, 0, 0, 0]),
        fault(abi::DIVISION, "divide", 5, 0),
    )?;
    check(("ud2", none), fault(abi::TRAP, "ud2", 1, 0))?;
    check(("int3", none), fault(abi::TRAP, "int3", 2, 0))?;
    check(
        ("deep", [0x100, 0, 0, 0, 0, 0]),
        fault(abi::PAGE_FAULT, "deeper", 0, 0x110),
    )?;
    check(("cut", none), fault(abi::PAGE_FAULT, "cut", 0, 0xcccc_cccc))?;
    check(("loop", none), fault(abi::TIMEOUT, "loop", 0, 0))?;
    check(("left", none), value(0))?;
    check(("left_by_service", [!0; 6]), value(0))?;
    check(("spoil", none), returned)?;
    check(
        ("stack", none),
        value((layout.stack + layout.stack_size).into()),
    )?;
    let (before, after) = (
        call(device, id, "serve", none)?,
        call(device, id, "serve", none)?,
    );
    if before.0.kind != abi::RETURNED || before.1 >= after.1 {
        return Err(format!("the service for time: {before:?}, {after:?}"));
    }
    let absent = Outcome {
        kind: abi::ABSENT,
        ..Outcome::default()
    };
    check(("nothing", none), (absent, Some(0)))?;
    ask(device, &mut asked.id).map_err(|error| format!("unloading: {error}"))?;
    match call(device, id, "sum", none) {
        Err(_) => Ok(()),
        Ok(answer) => Err(format!("unloaded, and called all the same: {answer:?}")),
    }
}

/// Loads an image that has to be accepted.
fn accepted(device: &File, mut asked: Load) -> Result<u32, String> {
    ask(device, &mut asked).map_err(|error| format!("loading: {error}"))?;
    match asked.id {
        0 => Err(format!("refused: {:?}", asked.verdict)),
        id => Ok(id),
    }
}

fn unload(device: &File, id: u32) -> Result<(), String> {
    ask(device, &mut id.clone()).map_err(|error| format!("unloading: {error}"))
}

fn statistics(device: &File, id: u32) -> Result<Statistics, String> {
    let mut asked = Statistics {
        id,
        ..Statistics::default()
    };
    ask(device, &mut asked).map_err(|error| format!("statistics: {error}"))?;
    Ok(asked)
}

/// What becomes of an extension that faulted, and what its statistics say.
pub fn policies(device: &File) -> Result<(), String> {
    let file = functions_code().image(&["postern_time"], 100)?;
    let parsed = postern_image::ImageFile::parse(&file).map_err(|error| error.to_string())?;
    let data = u64::from(parsed.layout().data);
    let (store, load) = ([data, 99, 0, 0, 0, 0], [data, 0, 0, 0, 0, 0]);
    let fresh = 0x0707_0707_0707_0707;
    for on_fault in [abi::FAULT_KEEPS, abi::FAULT_RESTARTS, abi::FAULT_ENDS] {
        let id = accepted(
            device,
            Load {
                on_fault,
                // One window, or the next call could be made in another.
                flags: abi::ONE_WINDOW,
                ..request(&file)
            },
        )?;
        call(device, id, "store", store)?;
        if call(device, id, "load", load)?.1 != 99 {
            return Err("what was stored is not there at the next call".into());
        }
        call(device, id, "ud2", [0; 6])?;
        let (outcome, value) = call(device, id, "load", load)?;
        let told = statistics(device, id)?;
        let as_wanted = match on_fault {
            abi::FAULT_KEEPS => value == 99 && told.restarts == 0,
            abi::FAULT_RESTARTS => value == fresh && told.restarts == 1,
            _ => outcome.kind == abi::ENDED && told.ended[abi::ENDED as usize] == 1,
        };
        let last = told.last.kind == abi::TRAP && told.ended[abi::TRAP as usize] == 1;
        if !as_wanted || !last || told.memory == 0 || told.size != file.len() as u64 {
            return Err(format!(
                "policy {on_fault}: {outcome:?}, {value:#x}, {told:?}"
            ));
        }
        unload(device, id)?;
    }
    Ok(())
}

/// Memory: the heap, the shared area, and what windows of several extensions have in common.
pub fn memory(device: &File) -> Result<(), String> {
    let file = functions_code().image(&["postern_time"], 5000)?;
    let parsed = postern_image::ImageFile::parse(&file).map_err(|error| error.to_string())?;
    let layout = parsed.layout();
    let heap = u64::from(layout.heap_start);
    let id = accepted(
        device,
        Load {
            heap: 8192,
            flags: abi::ONE_WINDOW,
            shared: layout.data + 4096,
            shared_size: 4096,
            ..request(&file)
        },
    )?;
    let check = |what: (&str, [u64; 6]), kind, value| {
        let (outcome, found) = call(device, id, what.0, what.1)?;
        match outcome.kind == kind && (kind != abi::RETURNED || found == value) {
            true => Ok(()),
            false => Err(format!("{what:x?}: {found:#x}, {outcome:x?}")),
        }
    };
    check(("load", [heap, 0, 0, 0, 0, 0]), abi::RETURNED, 0)?;
    let last = heap + 8184;
    check(
        ("store", [last, 5, 0, 0, 0, 0]),
        abi::RETURNED,
        last + 5 - last,
    )
    .or_else(|_| check(("load", [last, 0, 0, 0, 0, 0]), abi::RETURNED, 5))?;
    check(("load", [heap + 8192, 0, 0, 0, 0, 0]), abi::PAGE_FAULT, 0)?;
    let shared = u64::from(layout.data) + 4096;
    let bytes = 0x0707_0707_0707_0707;
    check(("load", [shared, 0, 0, 0, 0, 0]), abi::RETURNED, bytes)?;
    check(("load", [shared - 4, 0, 0, 0, 0, 0]), abi::RETURNED, bytes)?;
    if statistics(device, id)?.shared_size != 4096 {
        return Err("the shared area has another size".into());
    }
    unload(device, id)?;
    for (shared, shared_size) in [
        (layout.data + 1, 4096),
        (layout.data, 1),
        (layout.data, 12288),
        (layout.stack, 4096),
        (layout.data, u32::MAX - 4095),
        (layout.data, 0),
    ] {
        let mut asked = Load {
            shared,
            shared_size,
            ..request(&file)
        };
        if ask(device, &mut asked).is_ok() {
            return Err(format!("a shared area of {shared_size} at {shared:#x}"));
        }
    }
    Ok(())
}

/// A function that returns a number.
fn number(value: u8) -> Result<Vec<u8>, String> {
    let mut code = Code::default();
    code.function("other", &[0xc3]);
    if value > 1 {
        code.function("more", &[0xc3]);
    }
    code.function("number", &[0xb8, value, 0, 0, 0, 0xc3]);
    code.image(&[], 0)
}

/// An image is replaced by another, again and again, while it is called; then it is unloaded.
pub fn replaced(device: &File, turns: u32) -> Result<(), String> {
    let files = [number(1)?, number(2)?];
    let id = accepted(device, request(&files[0]))?;
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| {
            let mut seen = [0u64; 3];
            loop {
                let mut asked = Call {
                    id,
                    function: Name::new("number").unwrap_or_default(),
                    ..Call::default()
                };
                match ask(device, &mut asked).map_err(|error| error.raw_os_error()) {
                    Err(Some(libc::ENOENT)) => return Ok(seen),
                    Ok(()) if asked.outcome.kind == abi::ENDED => {}
                    Ok(()) if asked.outcome.kind == abi::RETURNED && asked.value < 3 => {
                        seen[asked.value as usize] += 1;
                    }
                    other => return Err(format!("while it is replaced: {other:?}, {asked:?}")),
                }
            }
        });
        for turn in 0..turns {
            let mut asked = Load {
                id,
                ..request(&files[(turn as usize + 1) % 2])
            };
            replace(device, &mut asked).map_err(|error| format!("replacing: {error}"))?;
            let now = u64::from((turn + 1) % 2 + 1);
            let (outcome, value) = call(device, id, "number", [0; 6])?;
            if asked.id != id || outcome.kind != abi::RETURNED || value != now {
                return Err(format!("replaced by {now}: {outcome:?}, {value}"));
            }
        }
        unload(device, id)?;
        let seen = caller.join().map_err(|_| "the caller panicked")??;
        println!(
            "guest: {turns} replacements within {} calls",
            seen[1] + seen[2]
        );
        match seen[0] == 0 && seen[1] > 0 && (turns < 10 || seen[2] > 0) {
            true => Ok(()),
            false => Err(format!("called while replaced: {seen:?}")),
        }
    })
}

/// Extensions are loaded, called and unloaded by several at once.
pub fn in_turns(device: &File, turns: u32) -> Result<(), String> {
    let file = functions_code().image(&["postern_time"], 100)?;
    let one = || {
        for turn in 0..turns {
            let id = accepted(device, request(&file))?;
            let (outcome, value) = call(device, id, "sum", [turn.into(), 0, 0, 0, 0, 0])?;
            let trap = call(device, id, "ud2", [0; 6])?.0;
            if outcome.kind != abi::RETURNED || value != turn.into() || trap.kind != abi::TRAP {
                return Err(format!("one of several: {outcome:?}, {value}, {trap:?}"));
            }
            unload(device, id)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads = [scope.spawn(one), scope.spawn(one), scope.spawn(one)];
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })
}

/// Two extensions in one segment: one's memory is the other's, and stays while either is there.
pub fn segments(device: &File) -> Result<(), String> {
    let code = functions_code();
    let services = ["postern_time"];
    let (first, second) = (
        code.image(&services, 100)?,
        code.image_above(64, &services, 100)?,
    );
    let parsed = postern_image::ImageFile::parse(&first).map_err(|error| error.to_string())?;
    let data = u64::from(parsed.layout().data);
    let one = accepted(
        device,
        Load {
            flags: abi::ONE_WINDOW,
            ..request(&first)
        },
    )?;
    let within = |file: &[u8]| Load {
        segment: one,
        ..request(file)
    };
    let taken = ask(device, &mut within(&first)).err();
    if taken.and_then(|error| error.raw_os_error()) != Some(libc::EADDRINUSE) {
        return Err("two images lie at the same place of a segment".into());
    }
    let two = accepted(device, within(&second))?;
    let (load, returned) = (("load", [data, 0, 0, 0, 0, 0]), Outcome::default());
    call(device, one, "store", [data, 5, 0, 0, 0, 0])?;
    expect(device, two, load, (returned, Some(5)))?;
    let (stack, other) = (
        call(device, one, "stack", [0; 6])?,
        call(device, two, "stack", [0; 6])?,
    );
    if stack != other || statistics(device, two)?.segment != one {
        return Err(format!("stacks of one segment: {stack:x?}, {other:x?}"));
    }
    unload(device, one)?;
    let (outcome, _) = call(device, two, "load", load.1)?;
    if outcome.kind != abi::PAGE_FAULT {
        return Err(format!("memory of one that is gone: {outcome:?}"));
    }
    expect(
        device,
        two,
        ("sum", [1, 0, 0, 0, 0, 0]),
        (returned, Some(1)),
    )?;
    unload(device, two)
}

/// A fault is a line of the kernel's log, but not each of many.
pub fn told(device: &File) -> Result<(), String> {
    let id = accepted(
        device,
        request(&functions_code().image(&["postern_time"], 100)?),
    )?;
    for _ in 0..100 {
        call(device, id, "int3", [0; 6])?;
    }
    unload(device, id)?;
    let log = trusted::kernel_log().map_err(|error| format!("the kernel's log: {error}"))?;
    let line = "postern: case: trap at int3+0x2 (";
    match log.matches(line).count() {
        1..=10 => Ok(()),
        count => Err(format!("{count} lines of 100 faults in {log}")),
    }
}

/// Calls take as long as they may, by the module's parameter, and not much longer.
pub fn limits(device: &File) -> Result<(), String> {
    let path = "/sys/module/postern/parameters/limit";
    let file = functions_code().image(&["postern_time"], 100)?;
    let before = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    for limit in [1u64, 5, 40] {
        std::fs::write(path, limit.to_string()).map_err(|error| error.to_string())?;
        let id = accepted(device, request(&file))?;
        let began = std::time::Instant::now();
        let (outcome, _) = call(device, id, "loop", [0; 6])?;
        let took = began.elapsed().as_millis() as u64;
        unload(device, id)?;
        // How much longer, an emulator on a busy machine cannot tell.
        if outcome.kind != abi::TIMEOUT || took + 1 < limit {
            return Err(format!(
                "a limit of {limit} ms: {outcome:?} after {took} ms"
            ));
        }
    }
    std::fs::write(path, before.trim()).map_err(|error| error.to_string())
}

/// Each allocation of a replacement is refused in turn; what was there is called all the same.
pub fn replaced_without_memory(device: &File) -> Result<(), String> {
    let files = [number(1)?, number(2)?];
    let switch = "/sys/module/postern/parameters/fail_after";
    let id = accepted(device, request(&files[0]))?;
    for allocation in 0..1000 {
        std::fs::write(switch, allocation.to_string()).map_err(|error| error.to_string())?;
        let mut asked = Load {
            id,
            ..request(&files[1])
        };
        let result = replace(device, &mut asked);
        let left = std::fs::read_to_string(switch).map_err(|error| error.to_string())?;
        std::fs::write(switch, "-1").map_err(|error| error.to_string())?;
        let (outcome, value) = call(device, id, "number", [0; 6])?;
        let failed = left.trim() == "-1";
        // The old text's pages in the arena are filled again after the new image is in place.
        let done = result.is_ok() && asked.id == id;
        if outcome.kind != abi::RETURNED || value != 1 + u64::from(done) || !(failed || done) {
            return Err(format!(
                "{allocation}: {result:?}, {asked:?}, {outcome:?}, {value}"
            ));
        }
        if !failed {
            println!("guest: {allocation} allocations of a replacement refused");
            return unload(device, id);
        }
        if done {
            replace(
                device,
                &mut Load {
                    id,
                    ..request(&files[0])
                },
            )
            .map_err(|error| format!("back: {error}"))?;
        }
    }
    Err("replacing allocates without end".into())
}
