//! Hooks, services, maps, the ring, requests and the shared area, with images that the tests
//! compile and put beside this program.

mod expect;
mod nested;
mod probes;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use postern_kernel::{
    AttachmentId, Device, Ended, Error, Hook, Id, Image, Kind, LoadOptions, Map, MapSizes, Opened,
    Otherwise, Rights,
};

use crate::hooks::expect::{
    called, ensure, eventually, image, input, load, options, packets, probes, refused, ring_entry,
    told,
};
use crate::network::{received, send_summed, sent, socket};
use crate::trusted;

const PORTS: MapSizes = MapSizes {
    key: 2,
    value: 8,
    entries: 100,
};

fn counted(ports: &Map<'_>, port: u16) -> Result<u64, String> {
    let value = ports.get(&port.to_be_bytes()).map_err(told)?;
    let bytes = value.and_then(|bytes| bytes.try_into().ok());
    Ok(bytes.map_or(0, u64::from_ne_bytes))
}

/// Datagrams are dropped, let through, changed; faults do what the policy says.
fn filters(device: &Device) -> Result<(), String> {
    let id = packets(device)?;
    let ports = device.make_map(id, 0, PORTS).map_err(told)?;
    let mut opened = device.opened(id).map_err(told)?;
    let attached = device.attach(id, "filter", &input(Otherwise::Accept, 0));
    let attached = attached.map_err(told)?;
    let expect = |port: u16, wanted: Option<&[u8]>| {
        let answer = sent(&socket(port)?, b"unchanged")?;
        ensure(answer.as_deref() == wanted, || {
            format!("port {port}: {answer:?}, not {wanted:?}")
        })
    };
    expect(7000, Some(b"unchanged"))?;
    expect(7001, None)?;
    expect(7002, Some(b"uCHANGEDd"))?;
    expect(7003, Some(b"unchanged"))?;
    expect(7004, Some(b"unchanged"))?;
    let allowed = ring_entry(&mut opened)?;
    ensure(allowed == [0x10, 0x10, 0x10, 0x10, 1, 0], || {
        format!("changes that are none: {allowed:02x?}")
    })?;
    expect(7007, Some(b"unchanged"))?;
    // With checksums that the kernel looks at: of an even and of an odd number of bytes.
    for text in [&b"even number."[..], b"an odd number"] {
        for (port, other, wanted) in [(7002, 7002, true), (7005, 7006, true), (7001, 7001, false)] {
            let at = socket(other)?;
            send_summed(port, text)?;
            let answer = received(&at)?;
            let mut changed = text.to_vec();
            if port == 7002 {
                changed[1..8].copy_from_slice(b"CHANGED");
            }
            ensure(answer.as_ref() == wanted.then_some(&changed), || {
                format!("port {port} with checksums: {answer:?}")
            })?;
        }
    }
    ensure(
        counted(&ports, 7001)? == 3 && counted(&ports, 7000)? == 1,
        || "the map does not count".into(),
    )?;
    let known = device.attachment(attached).map_err(told)?;
    ensure(known.calls > known.passed && known.passed > 5, || {
        format!("{known:?}")
    })?;
    device.detach(attached).map_err(told)?;
    expect(7001, Some(b"unchanged"))?;
    let attached = device.attach(id, "filter", &input(Otherwise::Drop, 0));
    expect(7003, None)?;
    expect(7000, Some(b"unchanged"))?;
    device.detach(attached.map_err(told)?).map_err(told)?;
    many_at_one_hook(device, id, &mut opened)?;
    device.unload(id).map_err(told)?;
    ensure(opened.next_entry().map_err(told)?.is_none(), || {
        "the ring goes on after the unload".into()
    })
}

/// The same function nine times; each sees the packet.
fn many_at_one_hook(device: &Device, id: Id, opened: &mut Opened) -> Result<(), String> {
    let at = (0..9).map(|number| device.attach(id, "pass", &input(Otherwise::Drop, number - 100)));
    let at: Vec<AttachmentId> = at.collect::<Result<_, _>>().map_err(told)?;
    ensure(sent(&socket(7010)?, b"seen")?.is_some(), || {
        "nine hooks do not let it pass".into()
    })?;
    for _ in &at {
        let entry = ring_entry(opened)?;
        ensure(entry.get(28..) == Some(b"seen"), || format!("{entry:?}"))?;
    }
    let listed = device.attachments().map_err(told)?;
    ensure(listed.len() == 9, || format!("{listed:?}"))
    // They are left by the unload.
}

/// Network namespaces: what is attached in one is not in others, and ends with it.
fn namespaces(device: &Device) -> Result<(), String> {
    let id = packets(device)?;
    let inside = || {
        trusted::own_network().map_err(told)?;
        trusted::loopback_up().map_err(told)?;
        device
            .attach(id, "filter", &input(Otherwise::Drop, 0))
            .map_err(told)?;
        let answer = sent(&socket(7001)?, b"inside")?;
        ensure(answer.is_none(), || "it is not dropped inside".into())
    };
    std::thread::scope(|scope| scope.spawn(inside).join().map_err(|_| "it panicked")?)?;
    ensure(sent(&socket(7001)?, b"outside")?.is_some(), || {
        "it is dropped outside".into()
    })?;
    eventually("the end of the namespace", || {
        device.attachments().ok()?.is_empty().then_some(())
    })?;
    device.unload(id).map_err(told)
}

/// Each service does what it says, and ends calls whose arguments it does not take.
fn services(device: &Device) -> Result<(), String> {
    let id = packets(device)?;
    device.make_map(id, 0, PORTS).map_err(told)?;
    for which in 0..8 {
        let ended = device.call(id, "bad", &[which]).map_err(told)?;
        ensure(
            matches!(&ended, Ended::Fault(fault) if fault.kind == Kind::BadArgument),
            || format!("bad({which}): {ended:?}"),
        )?;
    }
    ensure(called(device, id, "bad", &[8])? == 0, || "bad(8)".into())?;
    ensure(called(device, id, "clock", &[1])? == 1, || "clock".into())?;
    // Each processor has a window of its own, so all of it on one.
    let heap = || {
        trusted::stay(0).map_err(told)?;
        for (more, wanted) in [(8192, 1), (1, 0), (-8193, 0), (-4096, 1), (4096, 1)] {
            let fits = called(device, id, "grow", &[more as u64])?;
            ensure(fits == wanted, || format!("grow({more}): {fits}"))?;
        }
        Ok::<(), String>(())
    };
    std::thread::scope(|scope| scope.spawn(heap).join().map_err(|_| "it panicked")?)?;
    device.unload(id).map_err(told)
}

/// Lines of the kernel's log: with the name, escaped, few.
fn log(device: &Device) -> Result<(), String> {
    let id = packets(device)?;
    for _ in 0..30 {
        called(device, id, "shout", &[0])?;
    }
    let wanted = "postern: packets: one\\ntwo \\e[1m and so on";
    let lines = eventually("lines of the log", || {
        let lines = trusted::kernel_log().ok()?;
        lines.contains(wanted).then_some(lines)
    })?;
    let shown = lines.matches(wanted).count();
    ensure((1..=25).contains(&shown), || {
        format!("{shown} lines of 30 are shown")
    })?;
    device.unload(id).map_err(told)
}

/// The ring loses what it has no room for; entries are whole.
fn ring(device: &Device) -> Result<(), String> {
    let id = packets(device)?;
    let mut opened = device.opened(id).map_err(told)?;
    for round in 0..3 {
        let written = called(device, id, "fill", &[4096, 40])?;
        // 64 KiB, of entries of 4,104 bytes.
        ensure(written == 15, || format!("{written} entries fit"))?;
        for number in 0..written {
            let entry = ring_entry(&mut opened)?;
            ensure(entry.len() == 4096 && u64::from(entry[0]) == number, || {
                format!("round {round}, entry {number}: {} bytes", entry.len())
            })?;
        }
    }
    ensure(opened.next_entry().map_err(told)?.is_none(), || {
        "an entry too many".into()
    })?;
    device.unload(id).map_err(told)
}

/// Maps from both sides: full, iterated, removed.
fn maps(device: &Device) -> Result<(), String> {
    let id = packets(device)?;
    let sizes = |key, value, entries| MapSizes {
        key,
        value,
        entries,
    };
    for (number, wrong) in [
        (16, sizes(2, 8, 1)),
        (1, sizes(0, 8, 1)),
        (1, sizes(65, 8, 1)),
        (1, sizes(2, 0, 1)),
        (1, sizes(2, 4097, 1)),
        (1, sizes(2, 8, 0)),
        (1, sizes(2, 8, (1 << 20) + 1)),
    ] {
        refused("a map", device.make_map(id, number, wrong), libc::EINVAL)?;
    }
    let large = sizes(64, 4096, 1 << 20);
    refused("a large map", device.make_map(id, 1, large), libc::E2BIG)?;
    let map = device.make_map(id, 1, sizes(4, 4, 1000)).map_err(told)?;
    refused("another", device.make_map(id, 1, large), libc::E2BIG)?;
    refused("again", device.make_map(id, 1, PORTS), libc::EEXIST)?;
    refused("none", device.map(id, 2), libc::ENOENT)?;
    for number in 0..1000u32 {
        let value = number.wrapping_mul(7).to_ne_bytes();
        map.set(&number.to_ne_bytes(), &value).map_err(told)?;
    }
    refused("a full map", map.set(&[255; 4], &[0; 4]), libc::ENOSPC)?;
    let mut seen = vec![false; 1000];
    for entry in map.iter() {
        let (key, value) = entry.map_err(told)?;
        let number = |bytes: Vec<u8>| bytes.try_into().map_or(u32::MAX, u32::from_ne_bytes);
        let (key, value) = (number(key), number(value));
        ensure(value == key.wrapping_mul(7), || format!("{key}: {value}"))?;
        let place = seen.get_mut(key as usize).ok_or("a key that was not set")?;
        ensure(!std::mem::replace(place, true), || format!("{key} twice"))?;
    }
    ensure(seen.iter().all(|seen| *seen), || "a key is missing".into())?;
    // Who removes what he is given sees all.
    let mut removed = 0;
    while let Some((key, _)) = map.next(None).map_err(told)? {
        removed += usize::from(map.remove(&key).map_err(told)?);
    }
    ensure(removed == 1000, || format!("{removed} were removed"))?;
    map.set(&[1; 4], &[2; 4]).map_err(told)?;
    device.unload(id).map_err(told)?;
    refused("gone", map.set(&[1; 4], &[2; 4]), libc::ENOENT)
}

/// The shared area is the same in all windows and here, and outlives an unload.
fn shared(device: &Device) -> Result<(), String> {
    let id = packets(device)?;
    let opened = device.opened(id).map_err(told)?;
    let area = opened.area().ok_or("no shared area")?;
    let mut bytes = [0; 6];
    ensure(area.size() == 8192 && area.read(0, &mut bytes), || {
        format!("{} bytes", area.size())
    })?;
    let sum = bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    ensure(
        &bytes == b"shared" && called(device, id, "sum", &[])? == sum,
        || format!("{bytes:?}"),
    )?;
    ensure(area.write(100, &[200]), || "no room".into())?;
    let now = called(device, id, "sum", &[])?;
    ensure(now == sum + 200 + 83 - 115, || {
        format!("{now}, not {sum} + 168")
    })?;
    device.unload(id).map_err(told)?;
    let there = area.write(8191, &[1]) && area.read(0, &mut bytes);
    ensure(there && &bytes == b"Shared", || {
        format!("{bytes:?} after the unload")
    })
}

/// A timer goes on until it says so.
fn timer(device: &Device) -> Result<(), String> {
    let id = packets(device)?;
    let opened = device.opened(id).map_err(told)?;
    let words = opened.area().ok_or("no shared area")?.words();
    let period = |microseconds| Hook::Timer(Duration::from_micros(microseconds));
    refused(
        "99 µs",
        device.attach(id, "tick", &period(99)),
        libc::EINVAL,
    )?;
    let attached = device.attach(id, "tick", &period(2000)).map_err(told)?;
    eventually("five ticks", || {
        (words[512].load(Relaxed) == 5).then_some(())
    })?;
    std::thread::sleep(Duration::from_millis(20));
    let known = device.attachment(attached).map_err(told)?;
    ensure((known.calls, known.passed) == (5, 4), || {
        format!("{known:?}")
    })?;
    // One that never stops is left by the unload.
    device.attach(id, "clock", &period(100)).map_err(told)?;
    device.unload(id).map_err(told)
}

/// Requests are done in their order, whatever becomes of one of them.
fn queue(device: &Device) -> Result<(), String> {
    let id = packets(device)?;
    let mut opened = device.opened(id).map_err(told)?;
    let mut expect = |wanted: [u64; 3]| {
        let entry = ring_entry(&mut opened)?;
        let bytes: Vec<u8> = wanted.iter().flat_map(|word| word.to_ne_bytes()).collect();
        ensure(entry == bytes, || format!("{entry:?}, not {wanted:?}"))
    };
    for number in 0..10 {
        device.queue(id, "later", &[number, 1, 2]).map_err(told)?;
    }
    device.queue(id, "later", &[666]).map_err(told)?;
    device.queue(id, "absent", &[]).map_err(told)?;
    device.queue(id, "later", &[11, 3, 4]).map_err(told)?;
    for number in 0..10 {
        expect([number, 1, 2])?;
    }
    expect([11, 3, 4])?;
    let taken = called(device, id, "post", &[20])?;
    ensure(taken == 20, || format!("{taken} requests of 20 were taken"))?;
    for number in 0..20 {
        expect([number, number * number, 3])?;
    }
    // More than wait: on one processor the worker does not come in between.
    let taken = called(device, id, "post", &[80])?;
    ensure(taken >= 64, || format!("{taken} requests were taken"))?;
    for number in 0..64 {
        expect([number, number * number, 3])?;
    }
    device.unload(id).map_err(told)
}

/// Attaching, detaching and unloading while packets come on all processors.
fn under_traffic(device: &Device) -> Result<(), String> {
    // The hook's first and last functions change the kernel's code, which is no matter of this
    // test, and which the emulator does not always do right for processors that execute it
    // meanwhile.
    let all = LoadOptions {
        rights: Rights(15),
        ..options()
    };
    let keeper = load(device, "packets.pst", all.clone())?;
    device
        .attach(keeper, "sum", &input(Otherwise::Accept, 1000))
        .map_err(told)?;
    let image = image("packets.pst")?;
    // It has none of the functions that are attached.
    let other = Image::read("/images/probes.pst").map_err(told)?;
    refused(
        "another",
        device.replace(keeper, &other, &all),
        libc::ENOENT,
    )?;
    let over = AtomicBool::new(false);
    let came = AtomicU64::new(0);
    let traffic = |port: u16| {
        let at = socket(port)?;
        while !over.load(Relaxed) {
            if sent(&at, b"traffic")?.is_some() {
                came.fetch_add(1, Relaxed);
            }
        }
        Ok::<(), String>(())
    };
    std::thread::scope(|scope| {
        let senders: Vec<_> = (7020..7022)
            .map(|port| scope.spawn(move || traffic(port)))
            .collect();
        let changes = (0..10).try_for_each(|round| {
            let id = packets(device)?;
            device.make_map(id, 0, PORTS).map_err(told)?;
            let first = device.attach(id, "filter", &input(Otherwise::Accept, round));
            device
                .attach(id, "pass", &input(Otherwise::Accept, -round))
                .map_err(told)?;
            device
                .attach(id, "clock", &Hook::Timer(Duration::from_micros(200)))
                .map_err(told)?;
            let before = came.load(Relaxed);
            eventually("packets", || {
                (came.load(Relaxed) > before + 4).then_some(())
            })?;
            if round % 2 == 0 {
                device.detach(first.map_err(told)?).map_err(told)?;
            }
            called(device, id, "post", &[100])?;
            device.replace(id, &image, &options()).map_err(told)?;
            let before = came.load(Relaxed);
            eventually("packets", || {
                (came.load(Relaxed) > before + 4).then_some(())
            })?;
            device.unload(id).map_err(told)
        });
        over.store(true, Relaxed);
        for sender in senders {
            sender.join().map_err(|_| "a sender panicked")??;
        }
        changes
    })?;
    device.unload(keeper).map_err(told)
}

/// Each allocation of what attaches and makes maps fails in turn, and nothing is left.
fn refused_memory(device: &Device) -> Result<(), String> {
    let (id, watcher) = (packets(device)?, probes(device)?);
    let refused_each = |what: &str, attempt: &mut dyn FnMut() -> Result<(), Error>| {
        for allocation in 0..20 {
            trusted::fail_after(allocation).map_err(told)?;
            let result = attempt();
            let left = trusted::fail_after(-1).map_err(told)?;
            if left >= 0 {
                result.map_err(told)?;
                return ensure(allocation > 0, || format!("{what} allocates nothing"));
            }
            refused(what, result, libc::ENOMEM)?;
        }
        Err(format!("{what} allocates without end"))
    };
    let hooks = [
        (id, "pass", input(Otherwise::Drop, 0)),
        (id, "clock", Hook::Timer(Duration::from_secs(1))),
        (watcher, "entered", Hook::Tracepoint("sys_enter".into())),
        (
            watcher,
            "asked",
            Hook::Kprobe {
                symbol: "__x64_sys_getsid".into(),
                offset: 0,
            },
        ),
    ];
    for (id, function, hook) in &hooks {
        refused_each("attaching", &mut || {
            let attached = device.attach(*id, function, hook)?;
            device.detach(attached)
        })?;
    }
    let mut number = 0;
    refused_each("making a map", &mut || {
        number += 1;
        device.make_map(id, number % 16, PORTS).map(drop)
    })?;
    let map = device.map(id, number % 16).map_err(told)?;
    refused_each("a map's value", &mut || map.set(&[1; 2], &[2; 8]))?;
    device.unload(id).map_err(told)?;
    device.unload(watcher).map_err(told)
}

type Part = fn(&Device) -> Result<(), String>;

/// All of it.
pub fn all() -> Result<(), String> {
    trusted::loopback_up().map_err(|error| format!("lo: {error}"))?;
    let device = Device::open().map_err(told)?;
    let parts: [(&str, Part); 14] = [
        ("services", services),
        ("maps", maps),
        ("ring", ring),
        ("shared", shared),
        ("queue", queue),
        ("timer", timer),
        ("calls in calls", nested::timers_in_calls),
        ("filters", filters),
        ("namespaces", namespaces),
        ("probes", probes::observed),
        ("log", log),
        ("under traffic", under_traffic),
        ("refused memory", refused_memory),
        ("services again", services),
    ];
    for (name, part) in parts {
        part(&device).map_err(|error| format!("{name}: {error}"))?;
    }
    let left = device.list().map_err(told)?;
    ensure(left.is_empty(), || format!("left: {left:?}"))?;
    println!("guest: hooks, maps, ring, queue");
    Ok(())
}
