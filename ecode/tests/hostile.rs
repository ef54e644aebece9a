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
    let _ = compile(format!("int f(void) {{ {locals} return v1; }}"));
    // All of them live at once.
    let sum: String = (0..5_000).map(|n| format!(" s += v{n};")).collect();
    let locals: String = (0..5_000).map(|n| format!("int v{n} = g({n});")).collect();
    assert!(
        compile(format!(
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
    // Not even if nothing comes of it.
    let mut source = String::from("#define A0\n");
    for n in 1..32 {
        source += &format!("#define A{n} A{} A{}\n", n - 1, n - 1);
    }
    source += "int x = 1 A31;\n";
    assert_eq!(rule(&source), Some(Rule::Limit));
}

/// `#` and `##` write bytes, each time twice as many, for a token each.
#[test]
fn texts_that_macros_write_do_not_explode() {
    let within = |name: &str, text: &str| {
        let times = 26;
        format!(
            "{}{text}{}",
            format!("{name}(").repeat(times),
            ")".repeat(times)
        )
    };
    let paste = "#define E(x) x##x\n#define D(x) E(x)\n";
    let quote = "#define S(x) #x\n#define X(x) S(x)\n";
    let long = format!("\"{}\"", "a".repeat(1 << 20));
    let many = format!("#define R(x) {}\n", "x ".repeat(500));
    for source in [
        format!("{paste}int {};", within("D", "ab")),
        format!("{quote}int x = sizeof({});", within("X", r#""\\""#)),
        format!("{quote}{many}int x = sizeof(X(R({long})));"),
        // The same without them: strings beside each other.
        format!("{many}int x = sizeof(R({long}));"),
        format!("{many}int x asm(R({long}));"),
        // Macros that are kept, of which each is looked at for each that is given back.
        "#pragma push_macro(\"A\")\n".repeat(1000),
    ] {
        assert_eq!(rule(&source), Some(Rule::Limit), "{}", &source[..60]);
    }
}

#[test]
fn types_made_of_types_have_a_limit() {
    // Twice as many at each step, and one more at each step.
    for (define, steps) in [
        ("typedef int NEW(OLD *, OLD *);\n", 40),
        ("typedef int (*NEW)(OLD, OLD);\n", 40),
        ("typedef OLD (*NEW)(void);\n", 20_000),
        ("typedef OLD *NEW[1];\n", 20_000),
    ] {
        let mut source = String::new();
        for letter in ['a', 'b'] {
            let first = if define.contains("int NEW") {
                format!("typedef int {letter}0(void);\n")
            } else {
                format!("typedef int {letter}0;\n")
            };
            source += &first;
            for n in 1..=steps {
                let (new, old) = (format!("{letter}{n}"), format!("{letter}{}", n - 1));
                source += &define.replace("NEW", &new).replace("OLD", &old);
            }
        }
        source += &format!("extern a{steps} *x; extern b{steps} *x; int y = x;\n");
        assert_eq!(rule(&source), Some(Rule::Limit), "{define}");
    }
    // Structures without a name of their own declare nothing inside others, so that nothing is
    // looked for in them.
    let mut source = String::from("typedef struct {} a0; struct b0 {};\n");
    for n in 1..40 {
        let old = n - 1;
        source += &format!("typedef struct {{ a{old}; a{old}; }} a{n};\n");
        source += &format!("struct b{n} {{ struct b{old}; struct b{old}; }};\n");
    }
    source += "int f(a39 *p, struct b39 *q) { return p->x + q->x; }\n";
    assert_eq!(rule(&source), Some(Rule::UnknownMember));
}

#[test]
fn errors_do_not_multiply() {
    // All of them at one place, each with a suggestion to look for.
    let names: String = (0..20_000)
        .map(|n| format!("int longer_name_{n}; "))
        .collect();
    for part in ["longer_nam_N; ", "long again; ", "s.memberN; ", "p = s; "] {
        let body: String = (0..20_000)
            .map(|n| part.replace('N', &n.to_string()))
            .collect();
        let source = format!(
            "{names}\n#define BODY {body}\nstruct {{ int member; }} s; int *p; int f(void) {{ BODY }}\n"
        );
        assert!(compile(&source).is_err(), "{part}");
    }
    let labels: String = (0..20_000).map(|n| format!("a{n}: goto b{n};")).collect();
    assert_eq!(
        rule(&format!("int f(void) {{ {labels} }}")),
        Some(Rule::Label)
    );
}

/// Spellings that have all one hash: two blocks that collide, sixteen times over.
fn colliding_names() -> Vec<String> {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let (mut hash, mut random) = (0x811c_9dc5u32, fastrand::Rng::with_seed(1));
    let mut pairs: Vec<[String; 2]> = Vec::new();
    for _ in 0..16 {
        let mut seen = std::collections::HashMap::new();
        loop {
            let mut text = String::new();
            for _ in 0..6 {
                text.push(random.lowercase());
            }
            let end = text.bytes().fold(hash, step);
            match seen.insert(end, text.clone()) {
                Some(other) if other != text => {
                    pairs.push([other, text]);
                    hash = end;
                    break;
                }
                _ => {}
            }
        }
    }
    (0..1usize << 16)
        .map(|bits| {
            let block = |(at, pair): (usize, &[String; 2])| pair[bits >> at & 1].clone();
            pairs.iter().enumerate().map(block).collect()
        })
        .collect()
}

#[test]
fn names_that_collide_have_a_limit() {
    let source: String = colliding_names()
        .iter()
        .map(|name| format!("int {name};"))
        .collect();
    assert_eq!(rule(&source), Some(Rule::Limit));
}

#[test]
fn what_is_alive_is_looked_for_within_bounds() {
    // Each pass over the blocks finds out about one more of them.
    let (variables, labels) = (900, 9_000);
    let mut source = String::from("int f(int x) {");
    for n in 0..variables {
        source += &format!("int v{n} = x + {n};");
    }
    source += &format!("goto l{};\n", labels - 1);
    for n in 0..labels {
        let v = n % variables;
        let to = if n == 0 {
            "end".into()
        } else {
            format!("l{}", n - 1)
        };
        source += &format!("l{n}: v{v} = v{v} * 3 + x; goto {to};\n");
    }
    source += "end: x = 0;";
    for n in 0..variables {
        source += &format!("x += v{n};");
    }
    assert_eq!(rule(&(source + "return x; }")), Some(Rule::Limit));
}

#[test]
fn structures_that_travel_count() {
    let source =
        "struct s { char c[900000000]; }; void g(struct s); struct s h(void); struct s *p;";
    for body in ["g(*p);", "h();", "g(h());"] {
        let source = format!("{source} void f(void) {{ {body} }}");
        assert_eq!(rule(&source), Some(Rule::Limit), "{body}");
    }
}

/// Steps of compiling each shape of source, short and four times as long: linear, but for a tenth.
#[test]
fn work_is_linear_in_the_length_of_the_source() {
    type Shape = fn(usize) -> String;
    fn each(count: usize, part: &str) -> String {
        (0..count)
            .map(|n| part.replace('N', &n.to_string()))
            .collect()
    }
    let shapes: [(&str, usize, Shape); 11] = [
        ("functions", 500, |n| {
            each(
                n,
                "static int fN(int x, int *p)\n{\n\tint s = 0;\n\tfor (int i = 0; i < x; i++) {\n\t\tif (p[i] > N)\n\t\t\ts += p[i] / 3;\n\t}\n\treturn s;\n}\n",
            )
        }),
        ("one function", 2_500, |n| {
            format!(
                "int f(int x) {{ {} return x; }}",
                each(n, "x = x * 3 + N; x ^= x >> 2;")
            )
        }),
        ("branches", 2_500, |n| {
            format!(
                "int f(int x, int y) {{ {} return y; }}",
                each(n, "if (x == N) y += x;")
            )
        }),
        ("cases", 2_500, |n| {
            format!(
                "int f(int x) {{ switch (x) {{ {} }} return x; }}",
                each(n, "case N: x += N; break;")
            )
        }),
        ("labels", 2_500, |n| {
            format!(
                "int f(int x) {{ {} return x; }}",
                each(n, "lN: if (x == N) goto l0;")
            )
        }),
        ("prototypes", 2_500, |n| each(n, "int fN(int, char *);")),
        ("objects", 2_500, |n| {
            each(n, "int gN = N; static char textN[] = \"N\";")
        }),
        ("structures", 2_500, |n| {
            each(n, "struct sN { int a, b; struct sN *next; };")
        }),
        ("elements", 10_000, |n| {
            format!("int a[] = {{ {} }};", each(n, "N, "))
        }),
        ("strings", 10_000, |n| {
            format!("const char *a[] = {{ {} }};", each(n, "\"N\", "))
        }),
        ("macros", 2_500, |n| {
            each(n, "#define MN N + N\nint gN = MN;\n")
        }),
    ];
    for (name, count, shape) in shapes {
        let steps = |count| {
            let source = shape(count);
            let mut compiler = Compiler::default();
            let result = compiler.compile(&source).map(drop);
            assert_eq!(result, Ok(()), "{name}");
            compiler.steps() as f64
        };
        let ratio = steps(4 * count) / steps(count);
        assert!((3.6..4.4).contains(&ratio), "{name}: {ratio}");
    }
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
        compile(format!(
            "int f(int x, int y) {{ switch (x) {{ {cases} }} return y; }}"
        ))
        .is_ok()
    );
    let labels: String = (0..20_000)
        .map(|n| format!("l{n}: if (x == {n}) goto l{};\n", (n * 31) % 20_000))
        .collect();
    assert!(compile(format!("int f(int x) {{ {labels} return x; }}")).is_ok());
    let loops: String = (0..5_000)
        .map(|n| format!("for (int i = 0; i < x; i++) y += i * {n};\n"))
        .collect();
    assert!(compile(format!("int f(int x, int y) {{ {loops} return y; }}")).is_ok());
}

#[test]
fn functions_too_large_to_look_at_are_refused() {
    let limits = Limits {
        function: 1000,
        ..Limits::default()
    };
    let mut compiler = Compiler::new(Options {
        limits,
        ..Options::default()
    });
    let body = "x = x * 3 + 1; x ^= x >> 2;".repeat(1000);
    let errors = compiler
        .compile(format!("int f(int x) {{ {body} return x; }}"))
        .unwrap_err();
    assert_eq!(errors.list[0].rule, Rule::Limit);
}

#[test]
fn a_directive_ends_with_its_line() {
    // A `#` alone is a directive, of nothing; what follows on the next line is text, at its place.
    for (source, place) in [
        ("#\ninclude", (2, 1)),
        ("#\ninclude <stddef.h>\nint x;", (2, 1)),
        ("int x;\n#\n\ninclude", (4, 1)),
    ] {
        let errors = compile(source).unwrap_err();
        let first = &errors.list[0];
        assert_eq!(first.rule, Rule::Expected, "{source}");
        assert_eq!((first.line, first.column), place, "{source}");
    }
    assert_eq!(rule("#include"), Some(Rule::Directive));
    assert_eq!(rule("#include\n<stddef.h>\n"), Some(Rule::Directive));
    for source in ["#", "#\n#\nint x;", " # /* nothing */ // here\nint x;"] {
        assert_eq!(rule(source), None, "{source}");
    }
}

#[test]
fn bytes_that_are_no_source() {
    let mut random = fastrand::Rng::with_seed(1);
    for length in 0..600 {
        let text: String = (0..length).map(|_| random.char(..'\u{300}')).collect();
        let _ = compile(&text);
    }
}
