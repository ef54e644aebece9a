//! The language, feature by feature, run for real.
mod support;
use postern::Domain;

/// Compiles `source` and calls its `long f(void)`.
fn f(source: &str) -> i64 {
    let domain = Domain::builder(&support::image(source)).build().unwrap();
    domain.func::<fn() -> i64>("f").unwrap().call().unwrap()
}

#[test]
fn the_first() {
    assert_eq!(f("long f(void) { return 42; }"), 42);
    assert_eq!(
        f("int g(int a, int b) { return a * b + 2; } long f(void) { return g(5, 8); }"),
        42
    );
    assert_eq!(
        f("long f(void) { int s = 0; for (int i = 1; i <= 10; i++) s += i; return s; }"),
        55
    );
    assert_eq!(
        f(
            "int t[4] = {1,2,3,4}; long f(void) { int s = 0; for (int i = 0; i < 4; i++) s += t[i]; return s; }"
        ),
        10
    );
    assert_eq!(
        f(
            "long fib(long n) { return n < 2 ? n : fib(n-1) + fib(n-2); } long f(void) { return fib(20); }"
        ),
        6765
    );
}
