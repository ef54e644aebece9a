//! The crate for processes, and the command, at the device: everything that they do.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use postern_kernel::{Device, Ended, Error, Hook, Id, Image, Kind, LoadOptions, MapSizes};

/// Compiled from `images/client.c`, with lines.
const IMAGE: &str = "/client.pst";

fn said(error: Error) -> String {
    format!("as a process: {error}")
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Result<(), String> {
    match found == wanted {
        true => Ok(()),
        false => Err(format!("as a process: {what}: {found:?}, not {wanted:?}")),
    }
}

/// Waits for what comes soon.
fn soon(what: &str, mut comes: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(60);
    while !comes()? {
        if Instant::now() > end {
            return Err(format!("as a process: {what} does not come"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// All of it.
pub fn everything() -> Result<(), String> {
    let device = Device::open().map_err(said)?;
    if let Err(Error::OtherVersion { .. }) = device.map(Id(0), 0) {
        println!("guest: this module has no maps, and processes are not tried");
        return Ok(());
    }
    let image = Image::read(IMAGE).map_err(|error| error.to_string())?;
    let options = LoadOptions {
        limit: Some(Duration::from_millis(10)),
        ..LoadOptions::named("client")
    };
    let id = device.load(&image, &options).map_err(said)?.id;
    expect("the name", device.find("client").map_err(said)?, id)?;
    calls(&device, id, &image)?;
    area(&device, id)?;
    maps(&device, id)?;
    ring(&device, id)?;
    hooks(&device, id)?;
    replaced(&device, id, &image, &options)?;
    refused(&device, &image)?;
    command(&device)?;
    let mut opened = device.opened(id).map_err(said)?;
    device.unload(id).map_err(said)?;
    // A reader sees the end, and the area stays.
    let last = opened.events(Some(Duration::from_secs(60))).next();
    expect(
        "an entry of what is unloaded",
        last.is_none() && opened.is_over(),
        true,
    )?;
    expect(
        "the area",
        opened
            .area()
            .is_some_and(|area| area.read(0, &mut [0; 4096])),
        true,
    )?;
    expect("unloaded", device.unload(id).is_err(), true)?;
    println!("guest: the crate and the command for processes");
    Ok(())
}

fn returned(device: &Device, id: Id, function: &str, arguments: &[u64]) -> Result<u64, String> {
    match device.call(id, function, arguments).map_err(said)? {
        Ended::Returned(value) => Ok(value),
        other => Err(format!("as a process: {function}: {}", other.told(None))),
    }
}

fn calls(device: &Device, id: Id, image: &Image) -> Result<(), String> {
    expect("a sum", returned(device, id, "add", &[2, 3])?, 5)?;
    expect(
        "absent",
        device.call(id, "absent", &[]).map_err(said)?,
        Ended::Absent,
    )?;
    let fault = |function: &str, arguments: &[u64]| -> Result<_, String> {
        match device
            .call(id, function, arguments)
            .map_err(said)?
            .located(image)
        {
            Ended::Fault(fault) => Ok(fault),
            other => Err(format!("as a process: {function}: {}", other.told(None))),
        }
    };
    let source = std::fs::read_to_string("/client.c").map_err(|error| error.to_string())?;
    let line = |text: &str| {
        source
            .lines()
            .position(|line| line.contains(text))
            .map(|at| at as u64 + 1)
    };
    for (function, arguments, kind, text) in [
        ("peek", &[0x10][..], Kind::PageFault, "return *where"),
        ("half", &[1, 0], Kind::Division, "return a / b"),
    ] {
        let fault = fault(function, arguments)?;
        expect(function, fault.kind, kind)?;
        expect(function, fault.line, line(text))?;
        let symbol = fault.symbol.as_deref().unwrap_or_default();
        expect(function, symbol.starts_with(function), true)?;
        if kind == Kind::PageFault {
            expect("the address", fault.address, 0x10)?;
        }
    }
    expect("spin", fault("spin", &[])?.kind, Kind::Timeout)?;
    let known = device.statistics(id).map_err(said)?;
    expect(
        "statistics",
        (known.id, known.size),
        (id, image.bytes().len() as u64),
    )?;
    expect(
        "ended",
        (
            known.ended[0],
            known.ended[1],
            known.ended[2],
            known.ended[4],
        ),
        (1, 1, 1, 1),
    )?;
    let last = known.last.map(|ended| ended.number());
    expect("the last fault", last, Some(postern_kernel::abi::TIMEOUT))
}

fn area(device: &Device, id: Id) -> Result<(), String> {
    let opened = device.opened(id).map_err(said)?;
    let area = opened.area().ok_or("as a process: no area")?;
    expect("the area", area.size(), 4096)?;
    expect(
        "written",
        area.write(4, &7_u32.to_ne_bytes()) && area.write(4000, &9_u32.to_ne_bytes()),
        true,
    )?;
    expect("what is seen", returned(device, id, "sum", &[])?, 16)?;
    returned(device, id, "store", &[5, 77])?;
    let mut word = [0; 4];
    expect("read", area.read(20, &mut word), true)?;
    expect("what was stored", u32::from_ne_bytes(word), 77)?;
    expect("beyond", area.read(4096, &mut word), false)
}

fn maps(device: &Device, id: Id) -> Result<(), String> {
    expect("no map", device.map(id, 0).is_err(), true)?;
    let sizes = MapSizes {
        key: 4,
        value: 8,
        entries: 50,
    };
    let map = device.make_map(id, 0, sizes).map_err(said)?;
    expect("sizes", device.map(id, 0).map_err(said)?.sizes(), sizes)?;
    expect("made twice", device.make_map(id, 0, sizes).is_err(), true)?;
    for number in 0..50_u32 {
        map.set(&number.to_ne_bytes(), &u64::from(number).to_ne_bytes())
            .map_err(said)?;
    }
    expect("full", map.set(&[0xff; 4], &[0; 8]).is_err(), true)?;
    expect(
        "removed",
        map.remove(&3_u32.to_ne_bytes()).map_err(said)?,
        true,
    )?;
    expect(
        "removed twice",
        map.remove(&3_u32.to_ne_bytes()).map_err(said)?,
        false,
    )?;
    expect("absent", map.get(&3_u32.to_ne_bytes()).map_err(said)?, None)?;
    let all = map.iter().collect::<Result<Vec<_>, _>>().map_err(said)?;
    let whole = all.iter().all(|(key, value)| key[..] == value[..4]);
    expect("entries", (all.len(), whole), (49, true))
}

fn ring(device: &Device, id: Id) -> Result<(), String> {
    let mut opened = device.opened(id).map_err(said)?;
    for number in 0..20 {
        expect("told", returned(device, id, "tell", &[number])?, 1)?;
    }
    for number in 0..20_u64 {
        let entry = opened.next_entry().map_err(|error| error.to_string())?;
        expect(
            "an entry",
            entry,
            Some((10 * number).to_ne_bytes().to_vec()),
        )?;
    }
    expect(
        "no more",
        opened.next_entry().map_err(|error| error.to_string())?,
        None,
    )?;
    let value = device
        .map(id, 0)
        .map_err(said)?
        .get(&7_u32.to_ne_bytes())
        .map_err(said)?;
    expect("the map", value, Some(70_u64.to_ne_bytes().to_vec()))?;
    // A queued call is waited for by its entry.
    device.queue(id, "tell", &[4]).map_err(said)?;
    let entry = opened.events(Some(Duration::from_secs(60))).next();
    let entry = entry.ok_or("as a process: a queued call does not come")?;
    expect(
        "queued",
        entry.map_err(|error| error.to_string())?,
        40_u64.to_ne_bytes().to_vec(),
    )
}

fn hooks(device: &Device, id: Id) -> Result<(), String> {
    let hook = Hook::Timer(Duration::from_millis(2));
    let number = device.attach(id, "tick", &hook).map_err(said)?;
    soon("a tick", || {
        Ok(device.attachment(number).map_err(said)?.passed > 3)
    })?;
    let all = device.attachments().map_err(said)?;
    expect(
        "attachments",
        (all.len(), all[0].extension, &all[0].hook),
        (1, id, &hook),
    )?;
    device.detach(number).map_err(said)?;
    expect("detached", device.attachments().map_err(said)?.len(), 0)?;
    expect("detached twice", device.detach(number).is_err(), true)?;
    let nowhere = Hook::Tracepoint("no_such_tracepoint".into());
    expect(
        "no such hook",
        device.attach(id, "tick", &nowhere).is_err(),
        true,
    )
}

fn replaced(device: &Device, id: Id, image: &Image, options: &LoadOptions) -> Result<(), String> {
    returned(device, id, "count", &[])?;
    let same = device.replace(id, image, options).map_err(said)?.id;
    expect("its number", same, id)?;
    expect("memory anew", returned(device, id, "count", &[])?, 1)?;
    // Maps stay.
    let value = device
        .map(id, 0)
        .map_err(said)?
        .get(&7_u32.to_ne_bytes())
        .map_err(said)?;
    expect("the map", value.is_some(), true)
}

/// What the kernel refuses is told in the words of this process's judge.
fn refused(device: &Device, image: &Image) -> Result<(), String> {
    let mut bytes = image.bytes().to_vec();
    let at = image.place_of_text().ok_or("no text")?;
    // A system call as the first instruction.
    bytes[at..at + 2].copy_from_slice(&[0x0f, 0x05]);
    let damaged = Image::new(bytes, "damaged");
    match device.load(&damaged, &LoadOptions::default()) {
        Err(Error::Refused(refusal)) => {
            expect("the rule", refusal.rule, Some("not-allowed"))?;
            expect("the verdict", refusal.verdict, damaged.judged())
        }
        other => Err(format!("as a process: a system call is loaded: {other:?}")),
    }
}

/// The command, where the machine has it.
fn command(device: &Device) -> Result<(), String> {
    let program = "/postern";
    if !Path::new(program).exists() {
        return Ok(());
    }
    let run = |words: &str, code: i32| -> Result<String, String> {
        let output = Command::new(program)
            .arg("kernel")
            .args(words.split(' '))
            .output();
        let output = output.map_err(|error| format!("{program}: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        match output.status.code() == Some(code) {
            true => Ok(text + &errors),
            false => Err(format!(
                "postern kernel {words}: {:?}: {text}{errors}",
                output.status
            )),
        }
    };
    let id = run("load /client.pst --name by-command --limit 10ms", 0)?;
    let id = id.trim();
    let contains = |what: &str, text: &str, part: &str| match text.contains(part) {
        true => Ok(()),
        false => Err(format!("postern kernel {what}: {part} is not in {text}")),
    };
    contains("list", &run("list", 0)?, "by-command")?;
    contains("call", &run("call by-command add -3 5", 0)?, "2\n")?;
    let fault = run("call by-command peek 16 --image /client.pst", 3)?;
    contains(
        "call",
        &fault,
        "postern: fault (page-fault): access to 0x10, which is not there, in peek",
    )?;
    contains("call", &fault, "client.c:")?;
    let stats = run("stats by-command --image /client.pst --json", 0)?;
    contains("stats", &stats, "\"page-fault\": 1")?;
    run("map make by-command 0 --key 4 --value 8 --entries 10", 0)?;
    run("map set by-command 0 7 hex:0102030405060708", 0)?;
    contains(
        "map",
        &run("map get by-command 0 7", 0)?,
        "578437695752307201\n",
    )?;
    contains(
        "map",
        &run("map dump by-command 0 --json", 0)?,
        "\"key\": \"07000000\"",
    )?;
    run("map remove by-command 0 7", 0)?;
    run("map get by-command 0 7", 1)?;
    let number = run("attach by-command tick --timer 5ms", 0)?;
    contains("attachments", &run("attachments", 0)?, "timer 5000 us")?;
    run(&format!("detach {}", number.trim()), 0)?;
    run("call by-command tell 5", 0)?;
    contains(
        "events",
        &run("events by-command -c 1 --timeout 30s", 0)?,
        "3200000000000000\n",
    )?;
    contains(
        "replace",
        &run(&format!("replace {id} /client.pst"), 0)?,
        id,
    )?;
    run("unload by-command", 0)?;
    run("unload by-command", 2)?;
    expect("unloaded", device.find("by-command").is_err(), true)
}
