//! The services that `postern run` offers to any extension: enough to say something.

use std::io::Write;
use std::time::Instant;

use postern::{Caller, DomainBuilder, Offset};

/// Each service: name, C prototype without the name, what it does. `run --help` shows the table.
pub const TABLE: &[(&str, &str, &str)] = &[
    ("print_i64", "void (int64_t)", "a line with a signed number"),
    (
        "print_u64",
        "void (uint64_t)",
        "a line with an unsigned number",
    ),
    (
        "print_f64",
        "void (double)",
        "a line with a floating-point number",
    ),
    (
        "print_str",
        "void (const char *)",
        "a line with a NUL-terminated string",
    ),
    (
        "print_bytes",
        "void (const void *, uint64_t)",
        "bytes as they are",
    ),
    (
        "clock_ns",
        "uint64_t (void)",
        "nanoseconds since the program started",
    ),
];

/// Longest text or block that one call may print, in bytes.
const MOST: usize = 16 << 20;

/// Offers the services to a domain.
pub fn offer(builder: DomainBuilder) -> DomainBuilder {
    let start = Instant::now();
    builder
        .service("print_i64", |_: &Caller<'_>, value: i64| {
            write(format!("{value}\n").as_bytes())
        })
        .service("print_u64", |_: &Caller<'_>, value: u64| {
            write(format!("{value}\n").as_bytes())
        })
        .service("print_f64", |_: &Caller<'_>, value: f64| {
            write(format!("{value}\n").as_bytes())
        })
        .service(
            "print_str",
            |caller: &Caller<'_>, text: Offset| match caller.domain().read_c_string(text, MOST) {
                Ok(text) => write(format!("{text}\n").as_bytes()),
                Err(error) => caller.abort(format!("print_str: {error}")),
            },
        )
        .service(
            "print_bytes",
            |caller: &Caller<'_>, bytes: Offset, length: u64| {
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if length > MOST {
                    return caller
                        .abort(format!("print_bytes: {length} bytes are more than {MOST}"));
                }
                match caller.domain().read_vec(bytes, length) {
                    Ok(bytes) => write(&bytes),
                    Err(error) => caller.abort(format!("print_bytes: {error}")),
                }
            },
        )
        .service("clock_ns", move |_: &Caller<'_>| {
            start.elapsed().as_nanos() as u64
        })
}

/// Writes what an extension says. If nobody listens it is lost, as with any program's output.
fn write(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
}
