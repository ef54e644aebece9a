//! Source that means harm: it ends with an error, or compiles, soon and in bounded memory.
use postern_ecode::{Compiler, Limits, Options, Rule, compile};

/// The first error's kind.
fn rule(source: &str) -> Option<Rule> {
    compile(source).err().map(|errors| errors.list[0].rule)
}

#[test]
fn deep_nesting_has_a_limit() {
    const DEEP: usize = 100_000;
    let cases = [
        format!("int x = {}1{};", "(".repeat(DEEP), ")".repeat(DEEP)),
        format!("int f(int x) {{ return {}x; }}", "-".repeat(DEEP)),
        format!("int f(int x) {{ return {}x; }}", "- ".repeat(DEEP)),
        format!("int f(int x) {{ return {}x; }}", "*&".repeat(DEEP)),
        format!("int f(int x) {{ return {}x; }}", "(int)".repeat(DEEP)),
        format!("int f(int x) {{ return {}; }}", "x ? x : ".repeat(DEEP)),
        format!("int f(int x) {{ return {}x; }}", "x = ".repeat(DEEP)),
        format!("int f(int x) {{ return {}x; }}", "sizeof ".repeat(DEEP)),
        format!("int f(int x) {{ {} }}", "{".repeat(DEEP)),
        format!("int f(int x) {{ {} }}", "if (x) ".repeat(DEEP)),
        format!("int f(int x) {{ {} }}", "for (;;) ".repeat(DEEP)),
        format!("int f(int x) {{ {} }}", "do ".repeat(DEEP)),
        format!("int f(int x) {{ {} }}", "switch (x) case 1: ".repeat(DEEP)),
        format!("int f(int x) {{ {} }}", "a: ".repeat(DEEP)),
        format!("int {}x;", "*".repeat(DEEP)),
        format!("int {}x{};", "(".repeat(DEEP), ")".repeat(DEEP)),
        format!("int {}x{};", "(*".repeat(DEEP), ")(int)".repeat(DEEP)),
        format!("int x{};", "[1]".repeat(DEEP)),
        format!("int x{};", "(int (*f)".repeat(DEEP)),
        format!("int x[] = {};", "{".repeat(DEEP)),
        format!("{} x;", "struct { ".repeat(DEEP)),
        format!("int f(int x) {{ return {}; }}", "x || (".repeat(DEEP)),
        format!("int f(int x) {{ return {}; }}", "f(".repeat(DEEP)),
        format!("int f(int *x) {{ return {}; }}", "x[".repeat(DEEP)),
    ];
    for source in cases {
        assert!(compile(&source).is_err(), "{}", &source[..60]);
    }
}

#[test]
fn long_expressions_have_a_limit() {
    for part in ["x + ", "x, ", "x++, ", "x ^ 3 * ", "x && ", "x - "] {
        let source = format!("int f(int x) {{ return {}x; }}", part.repeat(1_000_000));
        assert_eq!(rule(&source), Some(Rule::Limit), "{part}");
    }
    // As deep as it may be, and compiled on a small stack.
    for part in ["x + ", "x * 3 ^ ", "x++, ", "x && ", "(x) - ", "x | ~"] {
        let source = format!("int f(int x) {{ return {}x; }}", part.repeat(150));
        let thread = std::thread::Builder::new()
            .stack_size(512 << 10)
            .spawn(move || compile(&source).map(drop));
        assert_eq!(thread.unwrap().join().unwrap().err(), None, "{part}");
    }
    let source = format!("int f(int *x) {{ return x{}; }}", "[0]".repeat(1_000_000));
    assert!(compile(&source).is_err());
}

#[test]
fn a_million_names() {
    let mut source = String::new();
    for n in 0..1_000_000 {
        source += &format!("int v{n};");
    }
    // More than a source may have, or fine; not slow.
    let _ = compile(&source);
    let locals: String = (0..50_000).map(|n| format!("int v{n} = {n};")).collect();
    let _ = compile(&format!("int f(void) {{ {locals} return v1; }}"));
    // All of them live at once.
    let sum: String = (0..5_000).map(|n| format!(" s += v{n};")).collect();
    let locals: String = (0..5_000).map(|n| format!("int v{n} = g({n});")).collect();
    assert!(
        compile(&format!(
            "int g(int); int f(void) {{ int s = 0; {locals} {sum} return s; }}"
        ))
        .is_ok()
    );
}

#[test]
fn huge_objects_have_a_limit() {
    for source in [
        "char a[1073741823];",
        "int a[] = { [100000000] = 1 };",
        "char a[20000000] = { 1 };",
        "int f(void) { int a[100000]; return a[0]; }",
        "struct s { char a[1000000000]; char b[1000000000]; }; struct s x;",
        "char a[1000000000][1000000000];",
        "int f(void) { struct { int a[1000]; } x[1000]; return 0; }",
    ] {
        assert!(compile(source).is_err(), "{source}");
    }
}

#[test]
fn macros_do_not_explode() {
    let mut source = String::from("#define A0 1 + 1\n");
    for n in 1..40 {
        source += &format!("#define A{n} A{} + A{}\n", n - 1, n - 1);
    }
    source += "int x = A39;\n";
    assert_eq!(rule(&source), Some(Rule::Limit));
    assert!(rule("#define X X + 1\nint X;").is_some());
}

#[test]
fn many_branches_are_no_square() {
    let mut source = String::from("int f(int x, int y) {\n");
    for n in 0..20_000 {
        source += &format!("if (x == {n}) y += x; else y ^= {n};\n");
    }
    source += "return y; }";
    assert!(compile(&source).is_ok());
    let cases: String = (0..20_000)
        .map(|n| format!("case {}: y += {n}; break;\n", n * 7 % 20_011))
        .collect();
    assert!(
        compile(&format!(
            "int f(int x, int y) {{ switch (x) {{ {cases} }} return y; }}"
        ))
        .is_ok()
    );
    let labels: String = (0..20_000)
        .map(|n| format!("l{n}: if (x == {n}) goto l{};\n", (n * 31) % 20_000))
        .collect();
    assert!(compile(&format!("int f(int x) {{ {labels} return x; }}")).is_ok());
    let loops: String = (0..5_000)
        .map(|n| format!("for (int i = 0; i < x; i++) y += i * {n};\n"))
        .collect();
    assert!(compile(&format!("int f(int x, int y) {{ {loops} return y; }}")).is_ok());
}

#[test]
fn functions_too_large_to_look_at_are_refused() {
    let limits = Limits {
        function: 1000,
        ..Limits::default()
    };
    let mut compiler = Compiler::new(Options { limits });
    let body = "x = x * 3 + 1; x ^= x >> 2;".repeat(1000);
    let errors = compiler
        .compile(&format!("int f(int x) {{ {body} return x; }}"))
        .unwrap_err();
    assert_eq!(errors.list[0].rule, Rule::Limit);
}

#[test]
fn bytes_that_are_no_source() {
    let mut state = 1u64;
    for length in 0..600 {
        let text: String = (0..length)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                char::from_u32((state >> 40) as u32 % 0x300).unwrap_or(' ')
            })
            .collect();
        let _ = compile(&text);
    }
}
