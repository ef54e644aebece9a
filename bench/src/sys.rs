//! What a system call costs that an extension makes through its domain's policy, beside the same
//! call of the host's own.
//!
//! The extension's function is a jump to the service, so a call crosses two gates: into the
//! extension, and out to the policy.

use postern::{Access, Domain, Image, Offset, Policy, Rules};
use postern_figures::clock::best_of;
use postern_figures::figure::Figure;
use postern_image::{ImageBuilder, Signature};
use postern_verifier::window;
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::SystemTime;

const CALLS: u32 = 2_000;
const ROUNDS: usize = 40;
/// Bytes of one read.
const BLOCK: usize = 4096;

fn image() -> Result<Image, String> {
    let text_offset = window::text_start(1);
    let mut text = vec![0xe9]; // jmp slot 0
    text.extend(window::slot(0).wrapping_sub(text_offset + 5).to_le_bytes());
    let mut builder = ImageBuilder::new(text);
    let signature: Signature = "l(llllll)".parse().map_err(|e| format!("{e}"))?;
    builder.import("sys", Some(signature));
    builder.export("call", 0, Some(signature));
    builder.data([0; 8], 2 * BLOCK as u64);
    let file = builder.build().map_err(|e| e.to_string())?;
    Image::from_bytes(&file).map_err(|e| e.to_string())
}

fn repeat(mut call: impl FnMut() -> i64) {
    for _ in 0..CALLS {
        black_box(call());
    }
}

/// The figures of the group.
pub fn figures(directory: &Path) -> Result<Vec<Figure>, String> {
    const GETPID: i64 = 39;
    const CLOCK_GETTIME: i64 = 228;
    const PREAD: i64 = 17;
    const OPEN: i64 = 2;
    let path = directory.join("block");
    std::fs::write(&path, [7; BLOCK]).map_err(|e| e.to_string())?;
    let file = File::open(&path).map_err(|e| e.to_string())?;
    let rules = Rules::new()
        .grant("/", directory, Access::Read)
        .map_err(|e| e.to_string())?;
    let image = image()?;
    let domain = Domain::builder(&image)
        .policy(Policy::files(rules))
        .build()
        .map_err(|e| e.to_string())?;
    let call = domain
        .func::<fn(i64, i64, i64, i64, i64, i64) -> i64>("call")
        .map_err(|e| e.to_string())?;
    let sys = |n, a, b, c| call.call(n, a, b, c, 0, 0).unwrap_or(i64::MIN);
    let memory = domain.image().tables().layout.data;
    let place = i64::from(memory);
    domain
        .write(Offset(memory), b"/block\0")
        .map_err(|e| e.to_string())?;
    let opened = sys(OPEN, place, 0, 0);
    if opened < 0 || sys(PREAD, opened, place, BLOCK as i64) != BLOCK as i64 {
        return Err(format!("the extension cannot read its file: {opened}"));
    }
    let mut buffer = [0; BLOCK];
    let times = best_of(
        ROUNDS,
        [
            &mut || repeat(|| i64::from(std::process::id())),
            &mut || repeat(|| sys(GETPID, 0, 0, 0)),
            &mut || repeat(|| SystemTime::now().elapsed().is_ok().into()),
            &mut || repeat(|| sys(CLOCK_GETTIME, 0, place, 0)),
            &mut || repeat(|| file.read_at(&mut buffer, 0).unwrap_or(0) as i64),
            &mut || repeat(|| sys(PREAD, opened, place, BLOCK as i64)),
        ],
    );
    let each = times.map(|time| time / f64::from(CALLS) * 1e9);
    let figure = |name: &str, value: f64, native: f64, note: &str| {
        Figure::plain(format!("sys.{name}"), value, "ns", note).against(native)
    };
    Ok(vec![
        figure(
            "getpid",
            each[1],
            each[0],
            "a constant of the policy; over the host's getpid, a system call",
        ),
        figure(
            "clock_gettime",
            each[3],
            each[2] / 2.0,
            "over the host's own, which is no system call (vDSO)",
        ),
        figure(
            "pread.4k",
            each[5],
            each[4],
            "4 KiB of a granted file, in the page cache; over the host's pread",
        ),
    ])
}
