//! Tracepoints and kprobes: whom they take, what they tell, and what a fault does.

use std::time::Duration;

use postern_kernel::{Device, Hook, LoadOptions, MapSizes, Otherwise, Rights};

use super::expect::{ensure, eventually, input, load, packets, probes, refused, ring_entry, told};
use crate::trusted;

/// All of it.
pub fn observed(device: &Device) -> Result<(), String> {
    let loops = packets(device)?;
    let tracepoint = |name: &str| Hook::Tracepoint(name.into());
    let kprobe = |symbol: &str| Hook::Kprobe {
        symbol: symbol.into(),
        offset: 0,
    };
    let getsid = kprobe("__x64_sys_getsid");
    let attach = |id, function: &str, hook: &Hook| device.attach(id, function, hook);
    let switch = tracepoint("sched_switch");
    refused("rights", attach(loops, "clock", &switch), libc::EACCES)?;
    device.unload(loops).map_err(told)?;
    let all = Rights(15);
    let options = || LoadOptions {
        rights: all,
        ..LoadOptions::named("loops")
    };
    let loops = load(device, "packets.pst", options())?;
    refused("loops", attach(loops, "clock", &switch), libc::ELOOP)?;
    refused("loops", attach(loops, "clock", &getsid), libc::ELOOP)?;
    device.unload(loops).map_err(told)?;

    let id = probes(device)?;
    refused(
        "no packets",
        attach(id, "entered", &input(Otherwise::Drop, 0)),
        libc::EACCES,
    )?;
    refused("no function", attach(id, "none", &switch), libc::ENOENT)?;
    refused(
        "no event",
        attach(id, "switched", &tracepoint("none")),
        libc::ENOENT,
    )?;
    refused(
        "no symbol",
        attach(id, "asked", &kprobe("none_such")),
        libc::ENOENT,
    )?;
    for own in ["postern_invoke_with", "postern_invoke"] {
        refused("its own", attach(id, "asked", &kprobe(own)), libc::EINVAL)?;
    }
    let map = device.make_map(
        id,
        0,
        MapSizes {
            key: 4,
            value: 8,
            entries: 1,
        },
    );
    let map = map.map_err(told)?;
    let switched = attach(id, "switched", &switch).map_err(told)?;
    eventually("switches of tasks", || {
        std::thread::sleep(Duration::from_millis(1));
        let value = map.get(&[0; 4]).ok()??;
        (u64::from_ne_bytes(value.try_into().ok()?) > 20).then_some(())
    })?;
    let known = device.attachment(switched).map_err(told)?;
    ensure(known.passed == known.calls, || format!("{known:?}"))?;
    device.detach(switched).map_err(told)?;

    let mut opened = device.opened(id).map_err(told)?;
    attach(id, "asked", &getsid).map_err(told)?;
    // The same place again, and tracepoints of each system call: all are called.
    let entered = attach(id, "entered", &tracepoint("sys_enter")).map_err(told)?;
    for _ in 0..5 {
        attach(id, "entered", &tracepoint("sys_enter")).map_err(told)?;
    }
    let answer = trusted::session(0x12345).map_err(|error| error.raw_os_error());
    ensure(answer == Err(Some(libc::ESRCH)), || format!("{answer:?}"))?;
    let entry = ring_entry(&mut opened)?;
    let words = entry.chunks_exact(8).flat_map(<[u8; 8]>::try_from);
    let words: Vec<u64> = words.map(u64::from_ne_bytes).collect();
    let known = matches!(*words, [0x12345, 1, address] if address >> 63 == 1);
    ensure(known, || format!("{words:x?}"))?;
    let known = device.attachment(entered).map_err(told)?;
    ensure(known.passed >= 1 && known.calls > known.passed, || {
        format!("{known:?}")
    })?;
    // A fault ends it: it leaves all its hooks.
    attach(id, "broken", &getsid).map_err(told)?;
    let answer = trusted::session(0x12345).map_err(|error| error.raw_os_error());
    ensure(answer == Err(Some(libc::ESRCH)), || format!("{answer:?}"))?;
    eventually("leaving all hooks", || {
        device.attachments().ok()?.is_empty().then_some(())
    })?;
    device.unload(id).map_err(told)
}
