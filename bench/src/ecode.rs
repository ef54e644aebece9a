//! E-code in a namespace: from source text to a function that can be called, beside gcc and tcc;
//! what it costs to lead a name to a function and away; and a call of a function that came so,
//! beside the same call of a function of an image.

use postern::{Domain, Func, Image, Namespace, Placement, RegisterUse, Signature};
use postern_figures::clock::best_of;
use postern_figures::figure::{Figure, Goal};
use postern_figures::trusted::{cycle, process};
use postern_image::ImageBuilder;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The example of the Kernel Plugins paper, section 6.3: 66 lines.
const SOURCE: &str = include_str!("../../ecode/kernels/grayscale.c");
const ROUNDS: usize = 40;
/// Operations in one round, where one takes less than a microsecond.
const MANY: u32 = 1000;
const CALLS: u32 = 50_000;

/// Seconds that a compiler takes for the source, its process included.
fn compiler(command: &[&str], directory: &Path) -> f64 {
    let (source, object) = (directory.join("gray.c"), directory.join("gray.o"));
    let compile = || {
        let status = Command::new(command[0])
            .args(&command[1..])
            .arg("-o")
            .arg(&object)
            .arg(&source)
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    };
    if std::fs::write(&source, SOURCE).is_err() || !compile() {
        return f64::NAN;
    }
    let [best] = best_of(
        3,
        [&mut || {
            black_box(compile());
        }],
    );
    best
}

fn error(error: &dyn std::error::Error) -> String {
    error.to_string()
}

fn source_to_callable(directory: &Path) -> Result<Vec<Figure>, String> {
    let space = Namespace::builder().build().map_err(|e| error(&e))?;
    let create = || space.create("gray.c", SOURCE);
    create().map_err(|e| error(&e))?;
    let mut compiling = postern_ecode::Compiler::default();
    let [all, compile, barrier] = best_of(
        ROUNDS,
        [
            &mut || {
                let made = create();
                let kernel = space.func::<fn(i64) -> i64>("kernel");
                let _ = black_box((made, kernel));
            },
            &mut || {
                let _ = black_box(compiling.compile(SOURCE));
            },
            &mut || (0..10).for_each(|_| process::code_barrier()),
        ],
    );
    let kernel = space
        .func::<fn(i64) -> i64>("kernel")
        .map_err(|e| error(&e))?;
    let answer = kernel.call(1).map_err(|e| error(&e))?;
    if answer == 0 {
        return Err("the kernel made a black image".to_owned());
    }
    let micros = 1e6;
    let row = |name: &str, seconds: f64, note: &str| {
        Figure::plain(format!("ecode.{name}"), seconds * micros, "us", note)
    };
    let gcc = compiler(&["gcc", "-O2", "-c"], directory);
    let tcc = compiler(&["tcc", "-c"], directory);
    let busy = busy_barrier();
    Ok(vec![
        row(
            "callable",
            all,
            "66 lines of source to a typed entry: compiled, placed, verified, linked, barrier included; over gcc -O2 -c",
        )
        .against(gcc * micros)
        .goal(Goal::AtMost(100.0)),
        row(
            "callable-tcc",
            all,
            "the same over tcc -c, where that is installed",
        )
        .against(tcc * micros),
        row("compile", compile, "of that, the compiler"),
        row(
            "barrier",
            barrier / 10.0,
            "of that, membarrier, when no other thread of the process runs",
        ),
        row(
            "barrier-busy",
            busy / 10.0,
            "membarrier, when another thread of the process runs",
        ),
    ])
}

/// Ten barriers while another thread computes: the best of those rounds in which it did.
fn busy_barrier() -> f64 {
    let (stop, steps) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                steps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut best = f64::INFINITY;
        let (begun, mut seen) = (Instant::now(), 0);
        while seen < 200 && begun.elapsed() < Duration::from_secs(2) {
            let before = steps.load(Ordering::Relaxed);
            let spent = seconds(|| (0..10).for_each(|_| process::code_barrier()));
            if steps.load(Ordering::Relaxed) != before {
                best = best.min(spent);
                seen += 1;
            }
        }
        stop.store(true, Ordering::Relaxed);
        best
    })
}

fn names() -> Result<Vec<Figure>, String> {
    let space = Namespace::builder().build().map_err(|e| error(&e))?;
    let source = "int one(int x) { return x + 1; }";
    space.create("a", source).map_err(|e| error(&e))?;
    let names: Vec<String> = (0..MANY).map(|n| format!("name{n}")).collect();
    let mut failed = 0;
    // Slots are made, and seen by all threads, before any of them is timed.
    names
        .iter()
        .for_each(|name| failed += u32::from(space.link(name, "one").is_err()));
    names.iter().for_each(|name| {
        space.delete(name);
    });
    let (mut link, mut unlink) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        let linked = seconds(|| {
            names
                .iter()
                .for_each(|name| failed += u32::from(space.link(name, "one").is_err()));
        });
        let mut deleted = 0;
        let unlinked = seconds(|| {
            deleted = names.iter().filter(|name| space.delete(name)).count();
        });
        failed += MANY - deleted as u32;
        (link, unlink) = (link.min(linked), unlink.min(unlinked));
    }
    if failed != 0 {
        return Err(format!("{failed} names were not linked or unlinked"));
    }
    let each = 1e6 / f64::from(MANY);
    Ok(vec![
        Figure::plain(
            "ecode.link",
            link * each,
            "us",
            "a name is led to a function (paper: 3.1 us)",
        )
        .goal(Goal::AtMost(1.0)),
        Figure::plain(
            "ecode.unlink",
            unlink * each,
            "us",
            "a name is deleted (paper: 1.6 us)",
        )
        .goal(Goal::AtMost(1.0)),
    ])
}

fn seconds(work: impl FnOnce()) -> f64 {
    postern_figures::clock::time(work).0.as_secs_f64()
}

fn signature() -> Signature {
    Signature::new(Some(postern::Type::I32), &[postern::Type::I32]).expect("one parameter is few")
}

fn repeat(function: &Func<fn(i32) -> i32>) {
    let sum = (0..CALLS).fold(0, |x, _| function.call(x).unwrap_or(-1));
    black_box(sum);
}

fn calls() -> Result<Vec<Figure>, String> {
    let space = Namespace::builder()
        .registers(RegisterUse::General)
        .build()
        .map_err(|e| error(&e))?;
    let source = "int null(int x) { return x + 1; }
        static int inner(int x) { return x + 1; }
        int linked(int n) { int s = 0; for (int i = 0; i < n; i++) s = null(s); return s; }
        int direct(int n) { int s = 0; for (int i = 0; i < n; i++) s = inner(s); return s; }";
    space.create("a", source).map_err(|e| error(&e))?;
    let func = |name| space.func::<fn(i32) -> i32>(name).map_err(|e| error(&e));
    let (plugin, linked, direct) = (func("null")?, func("linked")?, func("direct")?);
    let mut builder = ImageBuilder::new([0x8d, 0x47, 0x01, 0xc3]); // lea 1(%rdi), %eax; ret
    builder.export("null", 0, Some(signature()));
    let file = builder.build().map_err(|e| error(&e))?;
    let image = Image::from_bytes(&file).map_err(|e| error(&e))?;
    let domain = Domain::builder(&image)
        .placement(Placement::Cold)
        .build()
        .map_err(|e| error(&e))?;
    let gate = domain
        .func::<fn(i32) -> i32>("null")
        .map_err(|e| error(&e))?;
    let mut results = [0; 2];
    let [first, second] = &mut results;
    let [chain, plugin, gate, linked, direct] = best_of(
        ROUNDS,
        [
            &mut || cycle::chain(10 * u64::from(CALLS)),
            &mut || repeat(&plugin),
            &mut || repeat(&gate),
            &mut || *first = linked.call(CALLS as i32).unwrap_or(-1),
            &mut || *second = direct.call(CALLS as i32).unwrap_or(-1),
        ],
    );
    for count in results {
        if count != CALLS as i32 {
            return Err(format!("{CALLS} calls counted to {count}"));
        }
    }
    let one = chain / 10.0;
    Ok(vec![
        Figure::plain(
            "ecode.call",
            plugin / one,
            "cycles",
            "the host calls a null function of a namespace; over a null function of an image, both outside the hot window",
        )
        .against(gate / one)
        .goal(Goal::AtMost(gate / one + 6.0)),
        Figure::plain(
            "ecode.inner-call",
            linked / one,
            "cycles",
            "a function calls another one that can be replaced; over a static one",
        )
        .against(direct / one)
        .goal(Goal::AtMost(direct / one + 6.0)),
    ])
}

/// The figures of the group.
pub fn figures(directory: &Path) -> Result<Vec<Figure>, String> {
    let mut figures = source_to_callable(directory)?;
    figures.extend(names()?);
    figures.extend(calls()?);
    Ok(figures)
}
