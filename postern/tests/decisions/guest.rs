//! Extensions in C for these tests: one that calls services of every kind of type, and whatever a
//! test writes.

use crate::support;
use postern::{Caller, Domain, DomainBuilder, Image};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

const SOURCE: &str = r#"
extern int add(int, int);
extern double scale(double, float, long);
extern void note(signed char, unsigned short);
extern long sys(long, long, long, long, long, long);
static char buffer[64] = "/etc/passwd";
int sum(int a, int b) { return add(a, b); }
double scaled(double a, float b, long c) { return scale(a, b, c); }
int noted(int a, int b) { note(a, b); return 7; }
char *memory(void) { return buffer; }
long call(long n, long a, long b, long c, long d, long e) { return sys(n, a, b, c, d, e); }
int twice(int a, int b) { return add(a, b) + 100 * add(a, b); }
"#;

/// Compiles C to an image.
pub fn compile(source: &str) -> Image {
    support::compile("guest.c", source, &["-O1", "-g", "-nolibc"])
}

/// How often the services were really called.
pub type Made = Arc<AtomicU32>;

/// The domain named `guest`, which is given all that it imports.
pub fn guest() -> (DomainBuilder, Made) {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    let image = IMAGE.get_or_init(|| compile(SOURCE));
    let made = Made::default();
    let count = || {
        let made = made.clone();
        move || made.fetch_add(1, Ordering::Relaxed)
    };
    let (a, b, c) = (count(), count(), count());
    let builder = support::cold(image)
        .name("guest")
        .service("add", move |_: &Caller<'_>, x: i32, y: i32| {
            a();
            x.wrapping_add(y)
        })
        .service(
            "scale",
            move |_: &Caller<'_>, x: f64, y: f32, z: i64| -> f64 {
                b();
                x * f64::from(y) + z as f64
            },
        )
        .service("note", move |_: &Caller<'_>, _: i8, _: u16| {
            c();
        });
    (builder, made)
}

/// What the guest's `sum` gives.
pub fn sum(domain: &Domain, a: i32, b: i32) -> Result<i32, postern::CallError> {
    domain
        .func::<fn(i32, i32) -> i32>("sum")
        .unwrap()
        .call(a, b)
}

pub fn sys(domain: &Domain, number: i64, words: [i64; 5]) -> Result<i64, postern::CallError> {
    let [a, b, c, d, e] = words;
    domain
        .func::<fn(i64, i64, i64, i64, i64, i64) -> i64>("call")
        .unwrap()
        .call(number, a, b, c, d, e)
}
