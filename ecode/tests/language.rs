//! What E-code defines where C leaves it open, and bugs that were.
use crate::support;
use postern::{CallError, Caller, Domain};

/// Compiles `source` and calls its `long f(void)`.
fn f(source: &str) -> i64 {
    call(source).unwrap()
}

fn call(source: &str) -> Result<i64, CallError> {
    let domain = Domain::builder(&support::image(source)).build().unwrap();
    domain.func::<fn() -> i64>("f").unwrap().call()
}

#[test]
fn first_programs() {
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
            "long fib(long n) { return n < 2 ? n : fib(n-1) + fib(n-2); } long f(void) { return fib(20); }"
        ),
        6765
    );
}

#[test]
fn shifts_count_modulo_the_width() {
    assert_eq!(f("int s = 33; long f(void) { return 1 << s; }"), 2);
    assert_eq!(f("long f(void) { return 1 << 33; }"), 2);
    assert_eq!(f("int s = -1; long f(void) { return 1l << s; }"), i64::MIN);
    assert_eq!(f("int s = 35; long f(void) { return -8 >> s; }"), -1);
}

#[test]
fn signed_numbers_wrap() {
    assert_eq!(
        f("int x = 2147483647; long f(void) { x++; return x; }"),
        i64::from(i32::MIN)
    );
    assert_eq!(f("int x = 65536; long f(void) { return x * x; }"), 0);
    assert_eq!(
        f("int x = -2147483647 - 1; long f(void) { return -x; }"),
        i64::from(i32::MIN)
    );
}

#[test]
fn impossible_divisions_are_faults() {
    for source in [
        "int z; long f(void) { return 1 / z; }",
        "long f(void) { return 1 / 0; }",
        "unsigned long z; long f(void) { return 1 % z; }",
        "int m = -1, x = -2147483647 - 1; long f(void) { return x / m; }",
        "int x = -2147483647 - 1; long f(void) { return x % -1; }",
    ] {
        assert!(matches!(call(source), Err(CallError::Fault(_))), "{source}");
    }
    // Nobody wants the quotient, but it is computed.
    assert!(call("int z; long f(void) { 1 / z; return 3; }").is_ok());
}

#[test]
fn bad_pointers_are_faults() {
    for source in [
        "long f(void) { return *(int *)0; }",
        "int *p; long f(void) { *p = 1; return 0; }",
        "long f(void) { int (*g)(void) = 0; return g(); }",
        "char text[64]; long f(void) { int (*g)(void) = (int (*)(void))text; return g(); }",
        "long f(void) { *(char *)\"constant\" = 1; return 0; }",
        "long f(void) { return f() + 1; }",
    ] {
        assert!(matches!(call(source), Err(CallError::Fault(_))), "{source}");
    }
}

#[test]
fn operands_are_evaluated_from_left_to_right() {
    assert_eq!(
        f("int i = 1; long f(void) { int x = 5; return x + x++ * 10 + x; }"),
        5 + 50 + 6
    );
    assert_eq!(
        f(
            "long g(long a, long b, long c) { return a * 100 + b * 10 + c; } long f(void) { int i = 1; return g(i++, i++, i); }"
        ),
        123
    );
    assert_eq!(
        f("int a[3]; long f(void) { int i = 0; a[i++] = i; return a[0] * 10 + a[1]; }"),
        10
    );
    assert_eq!(
        f(
            "int log; int n(int d) { log = log * 10 + d; return d; } long f(void) { int a[9]; a[n(1)] = n(2) + n(3) * n(4); return log; }"
        ),
        1234
    );
}

#[test]
fn floats_become_integers_as_the_processor_does_it() {
    assert_eq!(
        f("double d = 1e10; long f(void) { return (int)d; }"),
        i64::from(i32::MIN)
    );
    assert_eq!(
        f("double d = 3e9; long f(void) { return (unsigned)d; }"),
        3_000_000_000
    );
    assert_eq!(
        f("double d = 1.8e19; long f(void) { return (unsigned long)d >> 32; }"),
        (1.8e19 as u64 >> 32) as i64
    );
    assert_eq!(
        f(
            "unsigned long u = 0xffffffffffffffff; long f(void) { return (double)u == 18446744073709551616.0; }"
        ),
        1
    );
    assert_eq!(
        f("double d = 300.7; long f(void) { return (unsigned char)d; }"),
        44
    );
}

#[test]
fn not_a_number_compares_as_ieee_754_says() {
    let source = "double z; long f(void) { double n = z / z; int r = 0;
        r = r * 2 + (n == n); r = r * 2 + (n != n); r = r * 2 + (n < 1); r = r * 2 + (n > 1); r = r * 2 + (n <= 1); r = r * 2 + (n >= 1);
        if (n == n) r += 1000; if (n != n) r += 2000; if (n < 1) r += 4000; if (!(n < 1)) r += 8000; if (n) r += 16000; return r; }";
    assert_eq!(f(source), 16 + 2000 + 8000 + 16000);
}

#[test]
fn pointers_count_by_their_low_half() {
    assert_eq!(
        f(
            "int a[4] = { 1, 2, 3, 4 }; long f(void) { int *p = (int *)((long)a | 5l << 40); return p[2] + *(p + 1) + (p == a); }"
        ),
        6
    );
    assert_eq!(
        f("int a[4]; long f(void) { int *p = a + 3; return p - a + (a - p) * 10; }"),
        3 - 30
    );
    assert_eq!(
        f(
            "struct s { char c[12]; } a[4]; long f(void) { struct s *p = a + 3, *q = a; return (p - q) * 100 + (q - p) + (p > q); }"
        ),
        298
    );
}

#[test]
fn globals_keep_their_values() {
    let domain = Domain::builder(&support::image(
        "static int n; long f(void) { static int m = 5; return ++n + m++; }",
    ))
    .build()
    .unwrap();
    let f = domain.func::<fn() -> i64>("f").unwrap();
    assert_eq!([f.call().unwrap(), f.call().unwrap()], [6, 8]);
}

#[test]
fn services_are_called_by_name() {
    let source =
        "long add(int, double, unsigned char); long f(void) { return add(-2, 2.5, 300) * 2; }";
    let image = support::image(source);
    let domain = Domain::builder(&image)
        .service("add", |_: &Caller<'_>, a: i32, b: f64, c: u8| {
            i64::from(a) + (b * 10.0) as i64 + i64::from(c)
        })
        .build()
        .unwrap();
    assert_eq!(
        domain.func::<fn() -> i64>("f").unwrap().call().unwrap(),
        2 * (-2 + 25 + 44)
    );
    // Its address can be taken, too.
    let image =
        support::image("int twice(int); long f(void) { int (*g)(int) = twice; return g(21); }");
    let domain = Domain::builder(&image)
        .service("twice", |_: &Caller<'_>, a: i32| a * 2)
        .build()
        .unwrap();
    assert_eq!(domain.func::<fn() -> i64>("f").unwrap().call().unwrap(), 42);
}

#[test]
fn a_header_of_a_header_is_on_the_line_of_the_outermost_include() {
    let mut compiler = postern_ecode::Compiler::default();
    compiler.header("outer.h", "#include \"inner.h\"\n");
    compiler.header("inner.h", "int g(int x) { return x; }\n");
    compiler.header("other.h", "int other;\n");
    let unit = compiler
        .compile("#include \"other.h\"\n\n#include \"outer.h\"\n")
        .unwrap();
    assert!(
        unit.lines.iter().all(|(_, line)| *line == 3),
        "{:?}",
        unit.lines
    );
}

#[test]
fn lines_lead_back_to_the_source() {
    let unit =
        postern_ecode::compile("int f(int x)\n{\n\tx += 2;\n\tx *= x;\n\treturn x / 3;\n}\n")
            .unwrap();
    let lines: Vec<u32> = unit.lines.iter().map(|(_, line)| *line).collect();
    assert!(
        lines.windows(2).all(|pair| pair[0] != pair[1]) && lines.contains(&4),
        "{lines:?}"
    );
    assert_eq!(unit.line(unit.lines[0].0), Some(lines[0]));
}

#[test]
fn structures_may_end_with_an_open_array() {
    let source = "struct list { int count; int items[]; }; static int room[8];
        long f(void) { struct list *l = (struct list *)room; l->count = 3; l->items[2] = 39; return sizeof(struct list) + room[3]; }";
    assert_eq!(f(source), 43);
}

#[test]
fn what_was_wrong_once() {
    // A constant in one branch was taken for one behind the branches.
    assert_eq!(
        f(
            "int g(int a, int b) { if (b == 0) a = 1; if (a != 0) return 0; return 1; } long f(void) { return g(0, 1); }"
        ),
        1
    );
}

#[test]
fn addresses_of_variables_behind_casts_and_parentheses() {
    assert_eq!(
        f("void set(long *p) { *p = 7; } long f(void) { long x = 1; set((long *)&x); return x; }"),
        7
    );
    assert_eq!(
        f(
            "typedef unsigned long word; long f(void) { long x = 1; word w = (word)&(x); *(long *)w = 9; return x; }"
        ),
        9
    );
    assert_eq!(f("long f(void) { int x = 6, m = 3; return (x) & m; }"), 2);
    assert_eq!(
        f(
            "long f(void) { long i, s = 0; long *p = 0; for (i = 0; i < 4; i++) { if (p) *p += 10; p = &s; s += i; } return s; }"
        ),
        36
    );
}

#[test]
fn products_of_spilled_values_are_whole() {
    // More values alive than there are registers, then a product by 9 that is computed as an
    // address.
    let names: Vec<String> = (0..20).map(|n| format!("v{n}")).collect();
    let declare: String = names
        .iter()
        .enumerate()
        .map(|(n, v)| format!("long {v} = seed + {n}l * 0x1234567890;"))
        .collect();
    let products: String = names
        .iter()
        .map(|v| format!("h = h * 31 + {v} * 9 + {v} * 5 + {v} * 3;"))
        .collect();
    let mix: String = names.iter().map(|v| format!("{v} ^= h;")).collect();
    let source = format!(
        "long seed = 0x123456789abc; long f(void) {{ long h = 1; {declare} for (int i = 0; i < 3; i++) {{ {products} {mix} }} return h; }}"
    );
    let mut h = 1i64;
    let mut v: Vec<i64> = (0..20)
        .map(|n| 0x1234_5678_9abc + n * 0x12_3456_7890)
        .collect();
    for _ in 0..3 {
        for v in &v {
            h = h.wrapping_mul(31).wrapping_add(v.wrapping_mul(17));
        }
        v.iter_mut().for_each(|v| *v ^= h);
    }
    assert_eq!(f(&source), h);
}

#[test]
fn units_call_each_other_in_one_file() {
    let sources = [
        "extern int count; int twice(int); static int own(int x) { return x + count; } long f(void) { return own(twice(20)); }",
        "int count = 2; char name[3] = \"ab\"; static int own(int x) { return x * 2; } int twice(int x) { return own(x); }",
        "extern char name[3]; long service(long); int big[1000]; long g(void) { big[999] = name[1]; return service(big[999]); }",
    ];
    let units = sources.map(|source| postern_ecode::compile(source).unwrap());
    let linked = postern_ecode::link(&units, 18).unwrap();
    let image = postern::Image::from_bytes(&linked.file).unwrap();
    let domain = Domain::builder(&image)
        .service("service", |_: &Caller, x: i64| x + 1)
        .build()
        .unwrap();
    let call = |name| domain.func::<fn() -> i64>(name).unwrap().call().unwrap();
    assert_eq!((call("f"), call("g")), (42, 99));
}

#[test]
fn units_that_do_not_fit_together_say_why() {
    for (sources, why) in [
        (
            ["int f(void) { return 1; }", "int f(void) { return 2; }"],
            "`f` is defined twice",
        ),
        (
            [
                "int g(int); int f(void) { return g(1); }",
                "long g(int x) { return x; }",
            ],
            "declared as i(i)",
        ),
        (
            ["extern int x; int f(void) { return x; }", ""],
            "no source defines the object `x`",
        ),
    ] {
        let units = sources.map(|source| postern_ecode::compile(source).unwrap());
        let error = postern_ecode::link(&units, 18).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

/// What comes before a function's first statement has the function's line, whatever was compiled
/// before.
#[test]
fn the_beginning_of_a_function_is_on_its_line() {
    let source = "\n\nint f(signed char x)\n{\n\treturn x;\n}\n";
    let mut compiler = postern_ecode::Compiler::default();
    let first = compiler.compile(source).unwrap();
    assert_eq!(first.lines.first().map(|(_, line)| *line), Some(3));
    assert!(compiler.compile("int g(void)\n\n\n{ return h; }").is_err());
    assert_eq!(compiler.compile(source).unwrap(), first);
}

/// What has no instruction but a jump, or comes before all statements, has a line, too: endless
/// loops and overflows happen there.
#[test]
fn loops_and_beginnings_have_lines() {
    let source = "int one(int x) { return x + 1; }\n\nint spin(void)\n{\n\tfor (;;)\n\t\t;\n}\n\
        int deep(int x)\n{\n\tchar room[4096];\n\treturn deep(x + 1) + room[x];\n}\n";
    let unit = postern_ecode::compile(source).unwrap();
    let lines = |name: &str| {
        let symbol = unit.symbol(name).unwrap();
        let inside = symbol.offset..symbol.offset + symbol.size;
        let lines = unit.lines.iter().filter(|(at, _)| inside.contains(at));
        lines.map(|(_, line)| *line).collect::<Vec<u32>>()
    };
    assert_eq!(lines("one"), [1]);
    assert_eq!(lines("spin"), [6]);
    assert_eq!(lines("deep"), [8, 11]);
}
