//! From an extension file to a callable function, cold, beside what the system's own loader takes
//! for the native build.

use postern::{Domain, Image, Placement};
use postern_figures::clock::time;
use postern_figures::figure::{Figure, Goal};
use postern_figures::kernels;
use postern_figures::trusted::library::Library;
use postern_image::ImageFile;
use postern_verifier::{Layout, Profile, buffer_len, verify};
use std::fmt::Write as _;
use std::path::Path;

/// Functions in the generated source: about one megabyte of text.
const FUNCTIONS: u32 = 1700;

/// Quick to compile, for it is only loaded; without debug information, of which neither loader maps
/// anything.
const OPTIONS: [&str; 2] = ["-O0", "-g0"];

/// C source of many functions that differ, and `sum`, which calls them all through a table.
fn source() -> String {
    let mut text = String::from("static unsigned state[1024];\n");
    for i in 0..FUNCTIONS {
        let (a, b, c) = (i % 13 + 1, i * 7 % 31 + 1, i * 2_654_435 % 65_521);
        let _ = write!(
            text,
            "static unsigned f{i}(unsigned x, unsigned y)\n{{\n\
             \x20   unsigned at = (x * {a}u + y) & 1023u;\n\
             \x20   for (unsigned k = 0; k < (x & 3u); k++) {{\n\
             \x20       state[at] += y >> {a};\n\
             \x20       if (state[at] & {b}u) {{ x ^= state[(at + {b}u) & 1023u] + {c}u; state[(at * 3u + {a}u) & 1023u] = x; }}\n\
             \x20       else if (y > {c}u) {{ y -= {c}u + k; state[(y ^ {b}u) & 1023u] ^= x << {a}; }}\n\
             \x20       else switch (y % 5u) {{ case 0: x += {b}u; break; case 1: y += x; break; case 2: x -= y * {c}u; break;\n\
             \x20           case 3: state[x & 1023u]++; break; default: y ^= {c}u; }}\n\
             \x20       at = (at + x * {b}u + (y >> 3)) & 1023u;\n\
             \x20   }}\n\
             \x20   state[(x + {c}u) & 1023u] -= y;\n\
             \x20   return x * {b}u ^ y ^ state[at];\n}}\n"
        );
    }
    text.push_str("static unsigned (*const all[])(unsigned, unsigned) = {");
    for i in 0..FUNCTIONS {
        let _ = write!(text, "f{i},");
    }
    text.push_str(
        "};\nunsigned long sum(void)\n{\n    unsigned x = 1;\n\
         \x20   for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++)\n        x = all[i](x, i * 2654435761u);\n    return x;\n}\n",
    );
    text
}

/// The figures of the group.
pub fn figures(directory: &Path) -> Result<Vec<Figure>, String> {
    let kernels::Build { extension, native } =
        kernels::build_both(directory, "megabyte", &source(), &OPTIONS)?;
    let bytes = std::fs::read(&extension).map_err(|e| e.to_string())?;
    let image = ImageFile::parse(&bytes).map_err(|e| e.to_string())?;
    let text = image.text().bytes;
    let layout = Layout::new(image.imports().len() as u32);
    let mut buffer = vec![0; buffer_len(text.len())];
    compare(&extension, &native)?;
    let (mut ours, mut dlopen, mut verification) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
    for _ in 0..60 {
        // The image leaves the cache with its last domain, so each load is cold but for the file's
        // own pages. Neither side's unloading counts.
        let (spent, domain) = time(|| load(&extension));
        drop(domain?);
        ours = ours.min(spent.as_secs_f64());
        let (spent, library) = time(|| Library::open(&native));
        drop(library?);
        dlopen = dlopen.min(spent.as_secs_f64());
        let (spent, verdict) = time(|| verify(text, &layout, Profile::User, &mut buffer));
        verdict.map_err(|e| e.to_string())?;
        verification = verification.min(spent.as_secs_f64());
    }
    let image = Image::load(&extension).map_err(|e| e.to_string())?;
    let (cached, again) = time(|| Image::load(&extension));
    again.map_err(|e| e.to_string())?;
    drop(image);
    Ok(vec![
        Figure::plain(
            "load.cold",
            ours * 1e3,
            "ms",
            format!(
                "{} KiB of text from file to domain, over dlopen ({:.2} ms) + verification ({:.2} ms)",
                text.len() >> 10,
                dlopen * 1e3,
                verification * 1e3
            ),
        )
        .against((dlopen + verification) * 1e3)
        .goal(Goal::RatioAtMost(1.3)),
        Figure::plain("load.cached", cached.as_secs_f64() * 1e3, "ms", "the same file again while its image lives: read and hashed"),
    ])
}

fn load(extension: &Path) -> Result<Domain, String> {
    let image = Image::load(extension).map_err(|e| e.to_string())?;
    Domain::builder(&image)
        .placement(Placement::Cold)
        .build()
        .map_err(|e| e.to_string())
}

/// Both builds compute the same.
fn compare(extension: &Path, native: &Path) -> Result<(), String> {
    let library = Library::open(native)?;
    let wanted = library.kernel("sum")?();
    let domain = load(extension)?;
    let sum = domain
        .func_unchecked::<fn() -> u64>("sum")
        .map_err(|e| e.to_string())?;
    let found = sum.call().map_err(|e| e.to_string())?;
    if found != wanted {
        return Err(format!(
            "load: the confined build computes {found:#x}, the native one {wanted:#x}: the rewriter is wrong"
        ));
    }
    Ok(())
}
