//! Tokens in any order as E-code: the lexer is passed quickly, so that the parser and what comes
//! behind it are tried.
//!
//! Each byte is a token, so that every change of the input is one of the program; small limits are
//! met often.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern_ecode::{Compiler, Limits, Options};

/// What each byte stands for, modulo their number.
#[rustfmt::skip]
const TOKENS: &[&str] = &[
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float",
    "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof", "static",
    "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "_Bool", "_Alignof", "_Static_assert",
    "(", ")", "{", "}", "[", "]", ";", ",", ":", "?", ".", "->", "...", "~", "!", "++", "--", "*", "/", "%", "+", "-", "<<",
    ">>", "<", ">", "<=", ">=", "==", "!=", "&", "^", "|", "&&", "||", "=", "*=", "/=", "%=", "+=", "-=", "<<=", ">>=", "&=",
    "^=", "|=", "0", "1", "7", "100000", "0xffffffff", "5000000000", "2u", "3l", "4ul", "1.5", "2e9f", "'a'", "\"text\"",
    "a", "b", "c", "d", "f", "g", "x", "y", "p", "s", "t", "main", "NULL", "size_t", "uint8_t", "true", "\n", "\n#define M ",
    "\n#undef M\n", "M",
    // Whole pieces, so that deep places are reached.
    "int f(int x, long *p)\n{\n", "return x;\n}\n", "struct s { int a; char b[3]; double d; struct s *p; };\n",
    "struct s s;\n", "int a[4] = { 1, 2 };\n", "for (int i = 0; i < x; i++) {\n", "if (x) {\n", "switch (x) {\n", "case 1: ",
    "x = x * 3;\n", "double d = 1;\n", "void g(void);\n", "typedef int t;\n", "goto l;\n", "l: ", "(struct s){ 1 }",
];

fuzz_target!(|bytes: &[u8]| {
    let mut source = String::new();
    for byte in bytes {
        source.push_str(TOKENS[*byte as usize % TOKENS.len()]);
        source.push(' ');
    }
    let limits = Limits {
        nesting: 40,
        data: 4 << 10,
        bss: 64 << 10,
        frame: 4 << 10,
        function: 4 << 10,
        errors: 8,
        ..Limits::default()
    };
    let mut compiler = Compiler::new(Options {
        limits,
        ..Options::default()
    });
    let result = compiler.compile(&source);
    // Tokens and instructions; the factor is for loops in loops.
    assert!(
        compiler.steps() < 4096 + 256 * source.len() as u64,
        "{} steps",
        compiler.steps()
    );
    if let Err(errors) = &result {
        assert!(!errors.list.is_empty() && errors.list.len() <= limits.errors as usize);
        assert!(!errors.to_string().is_empty());
        let lines: Vec<&str> = source.split('\n').collect();
        for error in &errors.list {
            assert!(!error.message.is_empty());
            let line = lines[error.line as usize - 1];
            assert!(
                error.column >= 1 && error.column as usize <= line.len() + 1,
                "{error}"
            );
            assert!(line.starts_with(&error.source_line), "{error}");
        }
    }
    // What an earlier source left behind changes nothing.
    let _ = compiler.compile("int unused; struct s { int x; }; int f(void) { return s; } #");
    assert_eq!(compiler.compile(&source), result);
});
