//! Objects of `postern cc -c` in a namespace: code of gcc's, called by E-code and calling it.

use postern::{Caller, CreateError, Namespace, RegisterUse};
use postern_toolchain::{Build, Language};
use std::path::Path;

/// The bytes of the object that the source is compiled to.
fn object(name: &str, source: &str, flags: &[&str]) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("namespaces");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name).with_extension("c");
    std::fs::write(&path, source).unwrap();
    let build = Build::new(Language::C).file(&path);
    let build = build.flags(["-c", "-Wall", "-Werror"]).flags(flags);
    let output = build.output(path.with_extension("o")).run().unwrap();
    std::fs::read(output).unwrap()
}

const LIBRARY: &str = r#"
    int twice(int);                     /* E-code's */
    int host(int);                      /* a service */
    static int calls;
    static int common[4];
    int seen = 7;
    static const char *const names[] = { "zero", "one", "two", "three" };

    static int plus(int a, int b) { return a + b; }
    static int minus(int a, int b) { return a - b; }
    static int (*const operations[])(int, int) = { plus, minus };

    __attribute__((noinline)) static unsigned long spell(unsigned k)
    {
        unsigned long n = 0;
        for (const char *s = names[k & 3]; *s; s++)
            n = n * 31 + (unsigned char)*s;
        return n;
    }

    long work(int k, int x)
    {
        calls++;
        common[k & 3] += x;
        switch (k) {                    /* a table of jumps */
        case 0: return x;
        case 1: return twice(x);
        case 2: return host(x);
        case 3: return operations[x & 1](x, 3);
        case 4: return calls;
        case 5: return (long)spell((unsigned)x);
        case 6: return common[x & 3];
        case 7: return seen++;
        }
        return -1;
    }

    double mean(const double *values, int count)
    {
        double sum = 0;
        for (int i = 0; i < count; i++)
            sum += values[i];
        return sum / count;
    }
"#;

fn spelled(text: &str) -> i64 {
    text.bytes().fold(0, |n, b| n * 31 + i64::from(b))
}

#[test]
fn objects_and_sources_call_each_other() {
    for level in ["-O0", "-O2", "-O3"] {
        let bytes = object(&format!("library{level}"), LIBRARY, &[level]);
        let space = Namespace::builder();
        let space = space.service("host", |_: &Caller<'_>, x: i32| x + 100);
        let space = space.build().unwrap();
        // What it calls must be there.
        let missing = space.create_object("library.o", &bytes, &[]);
        let missing = missing.unwrap_err();
        assert!(
            matches!(&missing, CreateError::Unresolved(name) if name == "twice"),
            "{missing}"
        );
        space
            .create("twice", "int twice(int x) { return 2 * x; }")
            .unwrap();
        let types = [("work", "l(ii)"), ("mean", "d(pi)")];
        let made = space.create_object("library.o", &bytes, &types).unwrap();
        assert_eq!(made.new, ["work", "mean"]);
        let work = space.func::<fn(i32, i32) -> i64>("work").unwrap();
        let work = |k, x| work.call(k, x).unwrap();
        assert_eq!((work(0, 5), work(1, 5), work(2, 5)), (5, 10, 105));
        assert_eq!((work(3, 4), work(3, 5), work(4, 0)), (7, 2, 6));
        for (k, name) in ["zero", "one", "two", "three"].into_iter().enumerate() {
            assert_eq!(work(5, k as i32), spelled(name));
        }
        assert_eq!(
            (work(6, 1), work(7, 0), work(7, 0), work(9, 0)),
            (11, 7, 8, -1)
        );
        // E-code on top of it, with what it defines.
        let above = "long work(int, int); double mean(double *, int); extern int seen; double d[3];
            long sum(int x) { return work(1, x) + work(0, 1) + seen; }
            double middle(void) { d[0] = 1; d[1] = 2; d[2] = 6; return mean(d, 3); }";
        space.create("above", above).unwrap();
        let sum = space.func::<fn(i32) -> i64>("sum").unwrap();
        let middle = space.func::<fn() -> f64>("middle").unwrap();
        assert_eq!((sum.call(4).unwrap(), middle.call().unwrap()), (18, 3.0));
        // E-code in the place of one of its functions, and of one that it calls.
        space
            .create("new", "long work(int k, int x) { return k - x; }")
            .unwrap();
        space
            .create("twice", "int twice(int x) { return 3 * x; }")
            .unwrap();
        assert_eq!((work(9, 1), sum.call(4).unwrap()), (8, -3 - 1 + 9));
    }
}

#[test]
fn objects_that_do_not_fit_are_refused() {
    let space = Namespace::builder().build().unwrap();
    let refused = |name: &str, source: &str, flags: &[&str]| {
        let bytes = object(name, source, flags);
        let error = space.create_object(name, &bytes, &[]).unwrap_err();
        assert!(space.functions().is_empty());
        error
    };
    let of = |error: CreateError| match error {
        CreateError::Object(why) => why,
        other => panic!("{other}"),
    };
    let why = of(refused(
        "local",
        "__thread int x; int f(void) { return x; }",
        &[],
    ));
    assert!(why.contains("thread-local"), "{why}");
    let constructor = "int n; __attribute__((constructor)) static void begin(void) { n = 1; } int f(void) { return n; }";
    let why = of(refused("constructor", constructor, &[]));
    assert!(why.contains("constructors"), "{why}");
    let wide =
        "typedef float v __attribute__((vector_size(32))); v f(v *a) { return a[0] + a[1]; }";
    let error = refused("wide", wide, &["-mavx2", "-O2"]);
    assert!(matches!(error, CreateError::Registers { .. }), "{error}");
    if std::arch::is_x86_feature_detected!("avx2") {
        let space = Namespace::builder().registers(RegisterUse::WideVectors);
        let bytes = object("wide", wide, &["-mavx2", "-O2"]);
        space
            .build()
            .unwrap()
            .create_object("wide", &bytes, &[])
            .unwrap();
    }
    // Not confined: as gcc makes it, and cut off at each length.
    let native = Path::new(env!("CARGO_TARGET_TMPDIR")).join("namespaces/native.o");
    let compiled = std::process::Command::new("gcc")
        .args(["-c", "-O2", "-x", "c", "-o"])
        .arg(&native)
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("namespaces/wide.c"))
        .status();
    assert!(compiled.unwrap().success());
    assert!(
        space
            .create_object("native", &std::fs::read(&native).unwrap(), &[])
            .is_err()
    );
    let whole = object(
        "whole",
        "int n = 3; int f(int x) { return x + n; }",
        &["-O2"],
    );
    let types = [("f", "i(i)")];
    for length in 0..whole.len() {
        let _ = space.create_object("part", &whole[..length], &types);
        space.delete("f");
        space.delete("n");
    }
    space.create_object("whole", &whole, &types).unwrap();
    assert_eq!(
        space.func::<fn(i32) -> i32>("f").unwrap().call(4).unwrap(),
        7
    );
}
