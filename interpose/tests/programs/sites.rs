//! Sites that are rewritten while they are used, and where instructions begin.

#[allow(dead_code, reason = "the loader's")]
#[path = "../../loader/src/decode.rs"]
mod decode;

use crate::probe::build;
use crate::support::{agent, folder, native, run};
use postern_interpose::Interposer;
use std::process::Command;

/// The two numbers of the last line.
fn stats(said: &str) -> (u64, u64) {
    let line = said.lines().last().unwrap_or_default();
    let mut numbers = line.split(' ').filter_map(|word| word.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// What the program does is the same, whether its calls come by signals or not.
fn same(name: &str, flags: &[&str]) {
    let path = build(name, flags);
    let file = folder().join(name).with_extension("text");
    let words = [path.as_str(), file.to_str().expect("a path")];
    let alone = native(&words);
    assert_eq!(alone.status, Some(0), "{}", alone.output);
    let quick = Interposer::new(agent("count")).stats();
    let (seen, said) = run(quick, &[], &words);
    assert_eq!(alone, seen, "{said}");
    // Those that threads came to at once are 200.
    let (sites, stopped) = stats(&said);
    assert!(sites > 200 && stopped > 0, "{said}");
    let slow = Interposer::new(agent("count")).slow().stats();
    let (seen, said) = run(slow, &[], &words);
    assert_eq!(alone, seen, "{said}");
    assert_eq!(stats(&said).0, 0, "{said}");
}

#[test]
fn dynamic() {
    same("sites", &[]);
}

#[test]
fn alone_in_its_file() {
    same("sites-static", &["-static"]);
}

#[test]
fn signals_that_are_put_off() {
    let path = build("put-off", &[]);
    let came = "came: 20000, right: 1\nwrong: 0, its own: 1\n";
    assert_eq!(native(&[&path]).output, came);
    // What goes wrong there may not end.
    let words = ["timeout", "-s", "KILL", "100", &path];
    let (seen, said) = run(Interposer::new(agent("count")).stats(), &[], &words);
    assert_eq!(
        (seen.status, seen.output.as_str()),
        (Some(0), came),
        "{said}"
    );
    assert!(stats(&said).0 > 0, "{said}");
}

/// Nothing is writable and executed that the loader has put near the program's text.
#[test]
fn stubs_are_not_writable() {
    let script =
        "for (1..100) { syscall(110) } open F, '/proc/self/maps'; print grep { / .wxp /} <F>";
    let (seen, said) = run(
        Interposer::new(agent("count")).stats(),
        &[],
        &["perl", "-e", script],
    );
    let far = |line: &&str| !line.starts_with("7e0");
    let near: Vec<&str> = seen.output.lines().filter(far).collect();
    assert!(seen.status == Some(0) && near.is_empty(), "{near:?}");
    assert!(stats(&said).0 > 0, "{said}");
}

#[test]
fn most_calls_come_without_the_kernel() {
    let words = [
        "dd",
        "if=/dev/zero",
        "bs=1",
        "count=20000",
        "of=/dev/null",
        "status=none",
    ];
    let (seen, said) = run(Interposer::new(agent("count")).stats(), &[], &words);
    assert_eq!(seen.status, Some(0));
    let (sites, stopped) = stats(&said);
    assert!(sites >= 2 && stopped < 1000, "{said}");
}

/// As the disassembler of binutils has them.
#[test]
fn instructions_begin_where_they_do() {
    let output = Command::new("objdump")
        .args(["-d", "-w", "-j", ".text", "/lib64/ld-linux-x86-64.so.2"])
        .output()
        .expect("objdump is there");
    let text = String::from_utf8_lossy(&output.stdout);
    let (mut bytes, mut starts, mut calls) = (Vec::new(), Vec::new(), 0);
    for line in text.lines() {
        let mut parts = line.split('\t');
        let (Some(_), Some(code), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let code = code.split_whitespace();
        let code: Vec<u8> = code.map_while(|b| u8::from_str_radix(b, 16).ok()).collect();
        let found = decode::first(&code).map(|instruction| instruction.length);
        assert_eq!(found, Some(code.len()), "{line}");
        let at = bytes.len();
        if name.starts_with("syscall") && at >= decode::WINDOW {
            calls += 1;
            let window = bytes[at - decode::WINDOW..]
                .first_chunk()
                .expect("a window");
            let (place, _) = decode::before(window).expect("no doubt");
            assert_eq!(
                starts.last(),
                Some(&(at - decode::WINDOW + place)),
                "{line}"
            );
        }
        starts.push(at);
        bytes.extend(code);
    }
    assert!(calls > 10);
    // What no processor executes, and what is not all there.
    for code in [
        &[0x06][..],
        &[0x9a, 0, 0],
        &[0xb8, 1, 0],
        &[0x66; 20],
        &[0x0f, 0x04],
        &[],
    ] {
        assert_eq!(decode::first(code), None, "{code:x?}");
    }
    // Invalid to the end.
    assert_eq!(decode::before(&[0x06; decode::WINDOW]), None);
}
