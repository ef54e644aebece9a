//! Each kind of error, where it is reported, and that everything is reported that is wrong.
//!
//! `files/errors.txt` holds cases between lines of dashes: the errors as `error RULE LINE:COLUMN`, then the source.
//! With `POSTERN_UPDATE=1` the errors are written there as they are found.
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
    let mut compiler = Compiler::new(Options {
        limits: Limits {
            errors: 3,
            ..Limits::default()
        },
        ..Options::default()
    });
    let errors = compiler.compile(&source).unwrap_err();
    assert_eq!(errors.list.len(), 3);
    assert!(
        errors.more
            && errors
                .to_string()
                .ends_with("too many errors; the rest is not shown")
    );
}
