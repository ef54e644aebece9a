//! Each kind of error, where it is reported, and that everything is reported that is wrong.
//!
//! `files/errors.txt` holds cases between lines of dashes: the errors as `error RULE LINE:COLUMN`,
//! then the source. With `POSTERN_UPDATE=1` the errors are written there as they are found.
use postern_ecode::{Compiler, Limits, Options, Rule, compile};

fn cases() -> impl Iterator<Item = (Vec<String>, String)> {
    include_str!("files/errors.txt")
        .split("----\n")
        .map(|case| {
            let (mut expected, mut source) = (Vec::new(), String::new());
            for line in case.lines() {
                match line.strip_prefix("error ") {
                    Some(error) => expected.push(error.to_owned()),
                    None => source += &format!("{line}\n"),
                }
            }
            (expected, source)
        })
}

#[test]
fn errors_are_where_they_should_be() {
    let (mut wrong, mut updated) = (String::new(), Vec::new());
    for (mut expected, source) in cases() {
        let found: Vec<String> = match compile(&source) {
            Ok(_) => Vec::new(),
            Err(errors) => errors
                .list
                .iter()
                .map(|e| format!("{} {}:{}", e.rule.name(), e.line, e.column))
                .collect(),
        };
        let lines: String = found.iter().map(|line| format!("error {line}\n")).collect();
        updated.push(lines + &source);
        let mut sorted = found.clone();
        sorted.sort();
        expected.sort();
        if sorted != expected {
            let text = compile(&source).map_or_else(|e| e.to_string(), |_| "compiles".into());
            wrong += &format!("{source}expected {expected:?}, found {found:?}\n{text}\n\n");
        }
    }
    if std::env::var_os("POSTERN_UPDATE").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/errors.txt");
        std::fs::write(file, updated.join("----\n")).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_kind_of_error_has_a_case() {
    for rule in Rule::ALL {
        let covered = cases().any(|(expected, _)| {
            expected
                .iter()
                .any(|e| e.split(' ').next() == Some(rule.name()))
        });
        // Limits are met in tests/hostile.rs.
        assert!(covered || *rule == Rule::Limit, "{}", rule.name());
    }
}

/// Sources that are too large for small limits.
fn limited() -> impl Iterator<Item = String> {
    let small = Limits {
        source: 2000,
        tokens: 400,
        nesting: 60,
        data: 64,
        bss: 64,
        frame: 64,
        function: 40,
        liveness: 64,
        errors: 20,
    };
    let structure = |count| (0..count).map(|n| format!("int m{n};")).collect::<String>();
    let wide = Limits {
        tokens: 100_000,
        source: 100_000,
        ..small
    };
    let branches =
        "int f(int x, int y) { if (x) y = 1; if (y) x = y; if (x) y = 2; return x + y; }";
    [
        (small, " ".repeat(3000)),
        (small, "int x; ".repeat(200)),
        (small, "#define A A B\n#define B A A A A A A A A\nint x = 1 B B B B B B B B B B B B B B B B B B B;".into()),
        (small, format!("#define A{}\nint x = 1 A A A A A A A A;", " +1".repeat(100))),
        (wide, format!("#define F(a) a\nint x = {}1{};", "F(".repeat(40), ")".repeat(40))),
        (small, format!("int x = {}1;", "-".repeat(90).replace('-', "- "))),
        (small, format!("int f(int x) {{ return x{}; }}", " + x".repeat(150))),
        (small, "char a[100] = { 1 };".into()),
        (small, "char a[100];".into()),
        (small, format!("char *s = \"{}\";", "x".repeat(100))),
        (small, "int f(void) { int a[100]; return a[0]; }".into()),
        (small, format!("int f(int x) {{ {} return x; }}", "x = x * 3 + 1;".repeat(30))),
        (Limits { liveness: 1, ..small }, branches.into()),
        (small, format!("int {}x;", "*".repeat(70))),
        (wide, format!("struct s {{ {} }};", structure(5000))),
        (wide, "#pragma push_macro(\"A\")\n".repeat(300)),
        (wide, "typedef int a0;".to_owned() + &(1..450).map(|n| format!("typedef a{} (*a{n})(void);", n - 1)).collect::<String>()),
    ]
    .into_iter()
    .map(|(limits, source)| {
        let mut compiler = Compiler::new(Options {
            limits,
            ..Options::default()
        });
        let errors = compiler.compile(&source).unwrap_err();
        let error = &errors.list[0];
        assert_eq!(error.rule, Rule::Limit, "{error}");
        format!("{}\n{}", error.message, error.help)
    })
}

/// The string literals of more than one word in a file of the compiler.
fn sentences(path: &std::path::Path, found: &mut Vec<String>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            sentences(&entry.unwrap().path(), found);
        }
        return;
    }
    let text = std::fs::read_to_string(path).unwrap();
    for line in text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
    {
        let line = line.replace("\\\"", "\u{1}").replace("'\"'", "");
        for literal in line.split('"').skip(1).step_by(2) {
            if literal.trim().contains(' ') {
                found.push(literal.replace('\u{1}', "\"").replace("\\\\", "\\"));
            }
        }
    }
}

/// Whether a text has the pieces of a sentence in order; what stands in braces is anything.
fn says(text: &str, sentence: &str) -> bool {
    let mut pieces = vec![sentence];
    while let Some((before, rest)) = pieces[pieces.len() - 1].split_once('{') {
        let Some((_, after)) = rest.split_once('}') else {
            break;
        };
        pieces.pop();
        pieces.extend([before, after]);
    }
    let mut rest = text;
    pieces.into_iter().all(|piece| match rest.find(piece) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    })
}

#[test]
fn every_sentence_of_the_compiler_is_said_in_a_case() {
    let mut said: Vec<String> = limited().collect();
    for (_, source) in cases() {
        if let Err(errors) = compile(&source) {
            said.extend(
                errors
                    .list
                    .iter()
                    .map(|e| format!("{}\n{}", e.message, e.help)),
            );
        }
    }
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    for file in [
        "lex.rs",
        "lex",
        "parse.rs",
        "parse",
        "report.rs",
        "generate.rs",
    ] {
        sentences(&source.join(file), &mut all);
    }
    assert!(all.len() > 150, "{}", all.len());
    // Two blocks that collide are looked for in tests/hostile.rs, headers in tests/features.rs.
    // What is said without the feature `float` is looked for where that is missing: in the
    // machine's scenario `pipes.text`.
    let elsewhere = [
        "names that look alike",
        "headers in headers",
        "floating point where the compiler has none",
        "compute in whole numbers",
    ];
    let unsaid: Vec<&String> = all
        .iter()
        .filter(|sentence| !elsewhere.contains(&sentence.as_str()))
        .filter(|sentence| {
            !said
                .iter()
                .any(|text| text.lines().any(|line| says(line, sentence)))
        })
        .collect();
    assert!(unsaid.is_empty(), "{unsaid:#?}");
}

#[test]
fn an_error_shows_its_line_and_what_to_do() {
    let error = compile("int total;\nint f(void)\n{\n\treturn totl + 1;\n}\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "4:9: error: `totl` is not declared\n    4 | \treturn totl + 1;\n      | \t       ^~~~\n      = help: is `total` meant?"
    );
}

#[test]
fn there_is_an_end_to_errors() {
    let source = "int f(void) { return a; }\n".repeat(100);
    // Not one more if a limit is met behind the last.
    let nested = format!(
        "int f(void) {{ return a + b + c + {}1; }}",
        "(".repeat(1000)
    );
    let mut compiler = Compiler::new(Options {
        limits: Limits {
            errors: 3,
            ..Limits::default()
        },
        ..Options::default()
    });
    let errors = compiler.compile(&source).unwrap_err();
    assert_eq!(errors.list.len(), 3);
    assert_eq!(compiler.compile(&nested).unwrap_err().list.len(), 3);
    assert!(
        errors.more
            && errors
                .to_string()
                .ends_with("too many errors; the rest is not shown")
    );
}
