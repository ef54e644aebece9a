//! What a domain costs to make, to reset and to keep.

mod footprint;
mod lending;

use crate::clock::{best_mean, best_of, time};
use crate::figure::{Figure, Goal};
use crate::touching::touching;
use crate::trusted::memory::{MemoryFile, Reservation};
use postern::{Domain, Func, Image, Placement, Prot, Shared};
use postern_image::MemoryLayout;
use postern_verifier::window::{INFO, PAGE, WINDOW_SIZE};

/// Domains alive at once.
const ALIVE: usize = 10_000;
const HEAP: u64 = 1 << 20;

type Touch = Func<fn(i32) -> i32>;

fn instance(image: &Image) -> Result<Domain, String> {
    Domain::builder(image)
        .placement(Placement::Cold)
        .heap(HEAP)
        .build()
        .map_err(|e| e.to_string())
}

fn entry(domain: &Domain) -> Result<Touch, String> {
    domain.func("touch").map_err(|e| e.to_string())
}

fn call(function: &Touch, x: i32) -> Result<(), String> {
    match function.call(x) {
        Ok(y) if y == x + 1 => Ok(()),
        Ok(y) => Err(format!("the domain returned {y} for {x}")),
        Err(error) => Err(error.to_string()),
    }
}

/// The figures of the group.
pub fn figures() -> Result<Vec<Figure>, String> {
    let (image, layout) = touching(2)?;
    let mut figures = vec![
        instantiate(&image, &layout)?,
        reset(&image, &layout)?,
        faults(&image, &layout)?,
    ];
    figures.extend(open_and_close(&image)?);
    figures.push(idle(&image)?);
    figures.extend(footprint::figures()?);
    figures.extend(lending::figures(&image)?);
    figures.extend(alive(&image)?);
    Ok(figures)
}

/// The mappings of a domain made by bare system calls.
fn map_bare(window: &Reservation, file: &MemoryFile, layout: &MemoryLayout) {
    use libc::{PROT_EXEC, PROT_READ, PROT_WRITE};
    let place = |start: u32, end: u32, protection, file: Option<&MemoryFile>| {
        window.place(start as usize, (end - start) as usize, protection, file);
    };
    place(INFO, INFO + PAGE, PROT_READ | PROT_WRITE, None);
    window.touch(INFO as usize);
    window.protect(INFO as usize, PAGE as usize, PROT_READ);
    place(
        layout.gates,
        layout.text_end,
        PROT_READ | PROT_EXEC,
        Some(file),
    );
    place(layout.text_end, layout.stack, PROT_READ, Some(file));
    place(
        layout.stack,
        layout.data_file_end,
        PROT_READ | PROT_WRITE,
        Some(file),
    );
    let heap_end = layout.heap_start + HEAP as u32;
    place(layout.data_file_end, heap_end, PROT_READ | PROT_WRITE, None);
}

fn bare_file(layout: &MemoryLayout) -> Result<MemoryFile, String> {
    MemoryFile::new((layout.data_file_end - layout.gates) as usize).map_err(|e| e.to_string())
}

fn instantiate(image: &Image, layout: &MemoryLayout) -> Result<Figure, String> {
    const MADE: usize = 40;
    let mut failed = None;
    let file = bare_file(layout)?;
    let mut windows = Vec::new();
    let mut domains = Vec::new();
    let (mut ours, mut bare) = (f64::INFINITY, f64::INFINITY);
    // What was made in a round goes before the next, outside the time.
    for _ in 0..40 {
        domains.clear();
        windows.clear();
        windows.extend((0..MADE).map(|_| Reservation::new(WINDOW_SIZE as usize)));
        let (one, ()) = time(|| {
            for _ in 0..MADE {
                match instance(image) {
                    Ok(domain) => domains.push(domain),
                    Err(error) => failed = Some(error),
                }
            }
        });
        let (other, ()) = time(|| {
            windows
                .iter()
                .for_each(|window| map_bare(window, &file, layout))
        });
        ours = ours.min(one.as_secs_f64());
        bare = bare.min(other.as_secs_f64());
    }
    if let Some(error) = failed {
        return Err(error);
    }
    let us = |seconds: f64| seconds * 1e6 / MADE as f64;
    Ok(Figure::plain(
        "domains.instantiate",
        us(ours),
        "us",
        "from a cached image, over the bare system calls for the same mappings",
    )
    .against(us(bare))
    .goal(Goal::AtMost(20.0)))
}

fn reset(image: &Image, layout: &MemoryLayout) -> Result<Figure, String> {
    let domain = instance(image)?;
    let touch = entry(&domain)?;
    let window = Reservation::new(WINDOW_SIZE as usize);
    map_bare(&window, &bare_file(layout)?, layout);
    let (mut ours, mut bare) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..60 {
        let one = best_mean(1, 100, || {
            call(&touch, 1)?;
            let (spent, result) = time(|| domain.reset());
            result.map_err(|e| e.to_string()).map(|()| spent)
        })?;
        let other = best_mean(1, 100, || {
            window.touch(layout.data as usize);
            window.touch((layout.data + PAGE) as usize);
            let from = layout.stack as usize;
            let to = (layout.heap_start as usize) + HEAP as usize;
            Ok::<_, String>(time(|| window.discard(from, to - from)).0)
        })?;
        ours = ours.min(one);
        bare = bare.min(other);
    }
    Ok(Figure::plain(
        "domains.reset",
        ours * 1e6,
        "us",
        "with two dirty pages, over one bare madvise that drops as many",
    )
    .against(bare * 1e6)
    .goal(Goal::AtMost(5.0)))
}

/// A reset together with what it does to the call after it: the pages that have to be faulted in
/// again.
fn faults(image: &Image, layout: &MemoryLayout) -> Result<Figure, String> {
    let domain = instance(image)?;
    let touch = entry(&domain)?;
    let window = Reservation::new(WINDOW_SIZE as usize);
    map_bare(&window, &bare_file(layout)?, layout);
    let pages = [layout.data, layout.data + PAGE];
    let (mut ours, mut bare) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..60 {
        let one = best_mean(1, 100, || {
            let (spent, result) = time(|| {
                let reset = domain.reset();
                reset.map_err(|e| e.to_string())?;
                call(&touch, 1)
            });
            result.map(|()| spent)
        })?;
        let other = best_mean(1, 100, || {
            let (from, to) = (
                layout.stack as usize,
                layout.heap_start as usize + HEAP as usize,
            );
            let drop_and_touch = || {
                window.discard(from, to - from);
                pages.iter().for_each(|&page| window.touch(page as usize));
            };
            Ok::<_, String>(time(drop_and_touch).0)
        })?;
        ours = ours.min(one);
        bare = bare.min(other);
    }
    Ok(Figure::plain(
        "domains.reset-faults",
        ours * 1e6,
        "us",
        "a reset and a call that writes two pages after it, over a bare madvise and two touched pages",
    )
    .against(bare * 1e6)
    .goal(Goal::AtMost(2.0)))
}

/// A domain from a cached image and back, alone and with a shared area that it is given.
fn open_and_close(image: &Image) -> Result<Vec<Figure>, String> {
    let area = Shared::new(PAGE as usize).map_err(|e| e.to_string())?;
    let once = |area: Option<&Shared>| {
        let (spent, result) = time(|| {
            let domain = instance(image)?;
            match area {
                Some(area) => domain.share(area, Prot::ReadWrite).map(drop),
                None => Ok(()),
            }
            .map_err(|e| e.to_string())
        });
        result.map(|()| spent)
    };
    let alone = best_mean(30, 100, || once(None))?;
    let shared = best_mean(30, 100, || once(Some(&area)))?;
    Ok(vec![
        Figure::plain(
            "domains.open-close",
            alone * 1e6,
            "us",
            "a domain from a cached image, made and dropped",
        ),
        Figure::plain(
            "domains.open-close-area",
            shared * 1e6,
            "us",
            "the same with a shared area that it is given, over the same without",
        )
        .against(alone * 1e6)
        .goal(Goal::AtMost(5.0)),
    ])
}

/// How often a host that calls nobody is woken: switches of all its threads but this one, in a
/// second.
fn idle(image: &Image) -> Result<Figure, String> {
    let switches = || -> Result<u64, String> {
        let text = |e: std::io::Error| e.to_string();
        let me = std::process::id().to_string();
        let mut sum = 0;
        for task in std::fs::read_dir("/proc/self/task").map_err(text)? {
            let task = task.map_err(text)?;
            if task.file_name().to_str() == Some(&me) {
                continue;
            }
            let status = std::fs::read_to_string(task.path().join("status")).map_err(text)?;
            let line = status
                .lines()
                .find_map(|l| l.strip_prefix("voluntary_ctxt_switches:"));
            sum += line.and_then(|n| n.trim().parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(sum)
    };
    call(&entry(&instance(image)?)?, 1)?;
    std::thread::sleep(std::time::Duration::from_millis(500));
    let before = switches()?;
    std::thread::sleep(std::time::Duration::from_secs(1));
    Ok(Figure::plain(
        "domains.idle-wakeups",
        (switches()? - before) as f64,
        "/s",
        "of a host that has made a call and makes no more",
    )
    .goal(Goal::AtMost(0.0)))
}

/// Lines of /proc/self/maps.
fn mappings() -> Result<usize, String> {
    let maps = std::fs::read_to_string("/proc/self/maps").map_err(|e| e.to_string())?;
    Ok(maps.lines().count())
}

fn resident_kib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn alive(image: &Image) -> Result<Vec<Figure>, String> {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    let before = mappings()?;
    let resident = resident_kib();
    let mut domains = Vec::with_capacity(ALIVE);
    let mut reason = String::new();
    let (spent, ()) = time(|| {
        for i in 0..ALIVE as i32 {
            let made = instance(image).and_then(|domain| {
                let touch = entry(&domain)?;
                call(&touch, i)?;
                Ok(touch)
            });
            match made {
                Ok(touch) => domains.push(touch),
                Err(error) => {
                    reason = format!("; then: {error}");
                    break;
                }
            }
        }
    });
    let count = domains.len() as f64;
    let each = (mappings()? - before) as f64 / count;
    let mut again = Ok(());
    let [round] = best_of(
        3,
        [&mut || {
            for touch in &domains {
                if let Err(error) = call(touch, 1) {
                    again = Err(error);
                }
            }
        }],
    );
    again?;
    let mut figures = vec![
        Figure::plain(
            "domains.alive",
            count,
            "domains",
            format!(
                "each called, two dirty pages each, vm.max_map_count {}{reason}",
                limit.trim()
            ),
        )
        .goal(Goal::AtLeast(ALIVE as f64)),
        Figure::plain(
            "domains.mappings",
            each,
            "each",
            "lines of /proc/self/maps for one domain",
        )
        .goal(Goal::AtMost(6.0)),
        Figure::plain(
            "domains.first-call",
            spent.as_secs_f64() * 1e6 / count,
            "us",
            "instantiate, first call and two page faults, on average over all",
        ),
        Figure::plain(
            "domains.in-turn",
            round * 1e9 / count,
            "ns",
            "one call, all domains in turn: nothing is in a cache",
        ),
    ];
    if let (Some(before), Some(after)) = (resident, resident_kib()) {
        figures.push(Figure::plain(
            "domains.memory",
            (after - before) / count,
            "KiB",
            "resident, for one domain",
        ));
    }
    Ok(figures)
}
