//! Runs one of GCC's execution tests: a program that aborts if it was compiled wrongly.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use postern::{Domain, Image};

use super::file;

/// What came of a program.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    /// It ended as it should.
    Passed,
    /// E-code does not have something in it: the first error.
    Outside(String),
    /// It was compiled wrongly.
    Failed(String),
}

/// Defined behind each program that does not bring its own.
const LIBRARY: &[(&str, &str)] = &[
    (
        "abort",
        "extern void __postern_abort(char *); void abort(void) { __postern_abort(\"abort\"); }",
    ),
    (
        "exit",
        "extern void __postern_exit(int); void exit(int s) { __postern_exit(s); }",
    ),
    (
        "memcpy",
        "void *memcpy(void *d, const void *s, unsigned long n) { char *a = d; const char *b = s; while (n--) *a++ = *b++; return d; }",
    ),
    (
        "memmove",
        "void *memmove(void *d, const void *s, unsigned long n) { char *a = d; const char *b = s; if (a < b) while (n--) *a++ = *b++; else while (n--) a[n] = b[n]; return d; }",
    ),
    (
        "memset",
        "void *memset(void *d, int c, unsigned long n) { char *a = d; while (n--) *a++ = c; return d; }",
    ),
    (
        "memcmp",
        "int memcmp(const void *x, const void *y, unsigned long n) { const unsigned char *a = x, *b = y; for (; n; n--, a++, b++) if (*a != *b) return *a - *b; return 0; }",
    ),
    (
        "strlen",
        "unsigned long strlen(const char *s) { unsigned long n = 0; while (s[n]) n++; return n; }",
    ),
    (
        "strcpy",
        "char *strcpy(char *d, const char *s) { char *r = d; while ((*d++ = *s++)) ; return r; }",
    ),
    (
        "strcmp",
        "int strcmp(const char *a, const char *b) { while (*a && *a == *b) a++, b++; return *(unsigned char *)a - *(unsigned char *)b; }",
    ),
    (
        "strncmp",
        "int strncmp(const char *a, const char *b, unsigned long n) { while (n && *a && *a == *b) a++, b++, n--; return n ? *(unsigned char *)a - *(unsigned char *)b : 0; }",
    ),
    (
        "strchr",
        "char *strchr(const char *s, int c) { for (;; s++) { if (*s == (char)c) return (char *)s; if (!*s) return 0; } }",
    ),
    ("abs", "int abs(int x) { return x < 0 ? -x : x; }"),
    (
        "malloc",
        "void *malloc(unsigned long n) { static char pool[1 << 20]; static unsigned long used; void *p = pool + used; used += (n + 15) & ~15ul; return p; }",
    ),
    ("free", "void free(void *p) { }"),
    ("printf", "int printf(const char *f) { return 0; }"),
];

/// What gcc's preprocessor makes of a program, without attributes that only inform; and with the types that C89 left out.
fn preprocessed(source: &str) -> String {
    let matters = [
        "packed",
        "aligned",
        "vector_size",
        "mode",
        "alias",
        "weak",
        "section",
        "constructor",
        "union",
        "cleanup",
    ];
    let informs = source.match_indices("__attribute").all(|(at, _)| {
        let rest = &source[at..source.len().min(at + 40)];
        !matters.iter().any(|word| rest.contains(word))
    });
    let mut gcc = Command::new("gcc");
    gcc.args(["-E", "-P", "-x", "c", "-std=gnu11", "-"]);
    if informs {
        gcc.args([
            "-D__attribute__(x)=",
            "-D__attribute(x)=",
            "-D__extension__=",
            "-D__inline=inline",
            "-D__inline__=inline",
        ]);
        gcc.args([
            "-D__const=const",
            "-D__volatile__=volatile",
            "-D__signed__=signed",
            "-D__signed=signed",
            "-D__restrict=",
            "-D__restrict__=",
        ]);
    }
    let builtins = [
        "abort", "exit", "memcpy", "memset", "memcmp", "memmove", "strlen", "strcmp", "strcpy",
        "strchr", "printf", "abs", "malloc",
    ];
    gcc.args(builtins.map(|name| format!("-D__builtin_{name}={name}")));
    gcc.args([
        "-D__builtin_va_list=int",
        "-D__builtin_expect(x,y)=(x)",
        "-D__builtin_unreachable()=abort()",
    ]);
    let mut child = gcc
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(source.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut done = String::new();
    let mut last = ';';
    for line in text.lines() {
        let bare = line.split('(').next().unwrap_or("").trim();
        let name = bare.chars().all(|c| c.is_alphanumeric() || c == '_')
            && !bare.is_empty()
            && line.starts_with(bare);
        if name
            && line.contains('(')
            && matches!(last, ';' | '}')
            && line.starts_with(|c: char| c.is_alphabetic())
        {
            done += "int ";
        }
        done += line;
        done += "\n";
        last = line.trim_end().chars().last().unwrap_or(last);
    }
    done
}

/// Compiles and runs a program.
pub fn run(source: &str) -> Outcome {
    let mut text = preprocessed(source);
    let mut compiled = postern_ecode::compile(&text);
    for _ in 0..3 {
        let mut declared = String::new();
        match &compiled {
            Ok(unit) => {
                let wanted = unit
                    .imports
                    .iter()
                    .filter(|i| !i.name.starts_with("__postern"));
                let bodies: Vec<&str> = wanted
                    .filter_map(|import| LIBRARY.iter().find(|(name, _)| *name == import.name))
                    .map(|(_, body)| *body)
                    .collect();
                if bodies.is_empty() {
                    break;
                }
                text += "\n";
                text += &bodies.join("\n");
            }
            Err(errors) => {
                // Old programs call abort and exit without a word.
                for (name, body) in LIBRARY {
                    if errors
                        .list
                        .iter()
                        .any(|e| e.message == format!("`{name}` is not declared"))
                    {
                        // Its declaration: the definition up to the body.
                        let from = body
                            .find(&format!(" {name}("))
                            .or(body.find(&format!("*{name}(")))
                            .unwrap_or(0);
                        let start = body[..from].rfind("; ").map_or(0, |at| at + 2);
                        declared += body[start..].split(" {").next().unwrap_or("");
                        declared += "; ";
                    }
                }
                if declared.is_empty() {
                    break;
                }
            }
        }
        text = declared + &text;
        compiled = postern_ecode::compile(&text);
    }
    let unit = match compiled {
        Ok(unit) => unit,
        Err(errors) => return Outcome::Outside(errors.list[0].to_string()),
    };
    let Some(main) = unit.symbol("main") else {
        return Outcome::Outside("no main".into());
    };
    if let Some(import) = unit
        .imports
        .iter()
        .find(|i| !i.name.starts_with("__postern"))
    {
        return Outcome::Outside(format!("calls `{}`", import.name));
    }
    if main.signature != "i()" {
        return Outcome::Outside(format!("main is {}", main.signature));
    }
    let image = match Image::from_bytes(&file(&unit)) {
        Ok(image) => image,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let domain = Domain::builder(&image)
        .deadline(Some(Duration::from_secs(10)))
        .build()
        .unwrap();
    match domain.func::<fn() -> i32>("main").unwrap().call() {
        Ok(0) => Outcome::Passed,
        Ok(status) => Outcome::Failed(format!("status {status}")),
        Err(error)
            if error
                .to_string()
                .starts_with("the extension exited with status 0") =>
        {
            Outcome::Passed
        }
        Err(error) => Outcome::Failed(format!("{error}").lines().next().unwrap_or("").to_owned()),
    }
}
