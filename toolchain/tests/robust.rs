//! Whatever the text, the rewriter answers with text or with diagnostics, soon. The inputs are the
//! file tests, cut, joined and changed at random (the same random on every run).

use std::path::Path;

use postern_toolchain::rewrite::{Adjustment, Compiler, RewriteOptions, rewrite};

const WORDS: &[&str] = &[
    "%rsp",
    "%esp",
    "%rbp",
    "%r15",
    "$",
    "(",
    ")",
    ",",
    "*",
    "9223372036854775807",
    "-9223372036854775808",
    "0x7fffffffffffffff",
    ":",
    "push",
    "popq",
    "leave",
    "subq",
    "addq",
    "leaq",
    "call",
    "jmp",
    "ret",
    "1b",
    "1f",
    "1:",
    ".L4",
    "f",
    "\"",
    "\\",
    "/*",
    ";",
    "#",
    "# 4294967295 \"x\"\n",
    "\n",
    ".section",
    ".loc 1 4294967295",
    ".file",
    "rep",
    "lock",
    "%st(",
    "@",
    "'",
    "%ah",
    "movs",
    "é",
    "\t.popsection\n",
    ".type f, @function\n",
];

#[test]
fn any_text_is_answered() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let mut lines: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        lines.extend(text.lines().map(str::to_owned));
    }
    lines.sort();
    let mut random = fastrand::Rng::with_seed(1);
    let (mut accepted, mut refused) = (0u32, 0u32);
    for round in 0..100_000 {
        let mut text = String::new();
        for _ in 0..1 + random.usize(..12) {
            let mut line = lines[random.usize(..lines.len())].clone();
            for _ in 0..random.usize(..3) {
                let chars: Vec<char> = line.chars().collect();
                let at = random.usize(..chars.len() + 1);
                let until = (at + random.usize(..5)).min(chars.len());
                let word = WORDS[random.usize(..WORDS.len())];
                line = chars[..at]
                    .iter()
                    .chain(&word.chars().collect::<Vec<_>>())
                    .chain(&chars[until..])
                    .collect();
            }
            text.push_str(&line);
            text.push('\n');
        }
        let adjustment = if round % 2 == 0 {
            Adjustment::Callee
        } else {
            Adjustment::Fixed
        };
        match rewrite(
            &text,
            "random.s",
            &RewriteOptions {
                adjustment,
                debug: round % 3 == 0,
                kernel: round % 5 == 0,
                compiler: match round % 4 {
                    0 => Compiler::Llvm,
                    _ => Compiler::Gcc,
                },
            },
        ) {
            Ok(_) => accepted += 1,
            Err(errors) => {
                assert!(
                    !errors.is_empty() && errors.iter().all(|error| !error.message.is_empty()),
                    "{text}"
                );
                refused += 1;
            }
        }
    }
    assert!(
        accepted > 100 && refused > 100,
        "{accepted} accepted, {refused} refused"
    );
}
