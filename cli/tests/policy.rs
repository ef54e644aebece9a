//! `postern run` of programs: arguments, environment, streams, files, status and faults, for
//! extensions that make system calls without any library between.

use crate::program;

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use program::{extension, folder, postern};

static PROGRAM: LazyLock<String> = LazyLock::new(|| {
    extension(
        "program",
        r#"
extern long sys(long, long, long, long, long, long);
static long length(const char *s) { long n = 0; while (s[n]) n++; return n; }
static void say(const char *s) { sys(1, 1, (long)s, length(s), 0, 0); sys(1, 1, (long)"\n", 1, 0, 0); }
static int same(const char *a, const char *b) { while (*a && *a == *b) a++, b++; return *a == *b; }
int __postern_main(int argc, char **argv)
{
    char buffer[64];
    long n, file;
    if (argc < 2) return 7;
    if (same(argv[1], "words")) {
        for (int i = 2; i < argc; i++) say(argv[i]);
        for (char **e = argv + argc + 1; *e; e++) say(*e);
    } else if (same(argv[1], "copy")) {
        while ((n = sys(0, 0, (long)buffer, sizeof buffer, 0, 0)) > 0) sys(1, 1, (long)buffer, n, 0, 0);
    } else if (same(argv[1], "error")) {
        sys(1, 2, (long)"wrong\n", 6, 0, 0);
    } else if (same(argv[1], "exit")) {
        sys(231, argv[2][0] - '0', 0, 0, 0, 0);
    } else if (same(argv[1], "abort")) {
        sys(62, sys(39, 0, 0, 0, 0, 0), 6, 0, 0, 0);
    } else if (same(argv[1], "cat")) {
        file = sys(2, (long)argv[2], 0, 0, 0, 0);
        if (file < 0) return -file;
        while ((n = sys(0, file, (long)buffer, sizeof buffer, 0, 0)) > 0) sys(1, 1, (long)buffer, n, 0, 0);
    } else if (same(argv[1], "make")) {
        file = sys(2, (long)argv[2], 0x241, 0644, 0, 0);
        if (file < 0) return -file;
        return sys(1, file, (long)argv[3], length(argv[3]), 0, 0) != length(argv[3]);
    } else if (same(argv[1], "fault")) {
        *(volatile int *)8 = 1;
    } else if (same(argv[1], "spin")) {
        for (;;) __asm__ volatile("");
    }
    return 0;
}
"#,
    )
});

fn run(options: &[&str], words: &[&str]) -> program::Run {
    postern(&[&["run", PROGRAM.as_str()], options, &["--"], words].concat())
}

#[test]
fn arguments_environment_and_status() {
    let options = ["--env", "A=1", "--env", "B="];
    let text = run(&options, &["words", "one two", "--policy", ""]).good();
    assert_eq!(text, "one two\n--policy\n\nA=1\nB=\n");
    assert_eq!(postern(&["run", PROGRAM.as_str()]).code, 7);
    assert_eq!(run(&[], &["exit", "5"]).code, 5);
    let none = run(&["--policy", "none"], &["words", "x"]);
    assert!(none.stdout.is_empty() && none.code == 0, "{none:?}");
    assert_eq!(run(&["--policy", "none"], &["exit", "5"]).code, 5);
}

#[test]
fn streams_are_passed_through() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_postern"))
        .args(["run", PROGRAM.as_str(), "--", "copy"])
        .current_dir(folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("runs");
    let text: Vec<u8> = (0..1000u32).map(|i| (i * 7) as u8).collect();
    let mut input = child.stdin.take().expect("piped");
    input.write_all(&text).expect("writes");
    drop(input);
    let output = child.wait_with_output().expect("ends");
    assert!(output.status.success() && output.stdout == text);
    let error = run(&[], &["error"]);
    assert!(error.stderr == "wrong\n" && error.code == 0, "{error:?}");
}

#[test]
fn faults_end_with_134_and_a_report() {
    for (words, part) in [
        (&["fault"][..], "fault (null-pointer): "),
        (&["abort"], "signal 6 (SIGABRT"),
    ] {
        let complaint = run(&[], words).bad(134);
        assert!(complaint.contains(part), "{complaint}");
    }
    let complaint = run(&["--deadline", "20ms"], &["spin"]).bad(134);
    assert!(complaint.contains("fault (deadline): "), "{complaint}");
}

#[test]
fn files_are_those_of_the_directories_granted() {
    let directory = folder().join("granted");
    std::fs::create_dir_all(&directory).expect("made");
    std::fs::write(directory.join("text"), "some text\n").expect("written");
    std::fs::write(folder().join("outside"), "secret\n").expect("written");
    let (plain, rw) = ("granted:/data", "granted:/data:rw");
    let cat = |dir, path| run(&["--dir", dir], &["cat", path]);
    assert_eq!(cat(plain, "/data/text").good(), "some text\n");
    assert_eq!(cat("granted", "/granted/text").good(), "some text\n");
    assert_eq!(cat("granted:/", "text").good(), "some text\n");
    // ENOENT: outside of what is granted nothing exists.
    assert_eq!(cat(plain, "/outside").code, 2);
    assert_eq!(cat(plain, "/data/../outside").code, 2);
    // EROFS, then done; EACCES without files.
    let make = |options: &[&str]| run(options, &["make", "/data/new", "fresh"]).code;
    assert_eq!(make(&["--dir", plain]), 30);
    assert_eq!(make(&["--dir", rw]), 0);
    let made = std::fs::read(directory.join("new")).expect("made");
    assert_eq!(made, b"fresh");
    assert_eq!(make(&[]), 13);
    let complaint = run(&["--dir", "no-such-directory"], &["words"]).bad(2);
    assert!(complaint.contains("no-such-directory"), "{complaint}");
    run(&["--dir", "granted", "--policy", "compute"], &["words"]).bad(2);
}

#[test]
fn what_is_wrong_is_said() {
    let image = extension("no_main", "int f(void) { return 1; }");
    let complaint = postern(&["run", &image]).bad(2);
    assert!(complaint.contains("it has no main()"), "{complaint}");
    let complaint = postern(&["run", PROGRAM.as_str(), "words"]).bad(2);
    assert!(complaint.contains("stand behind --"), "{complaint}");
    let text = postern(&["inspect", PROGRAM.as_str()]).good();
    assert!(text.contains("give the domain a policy"), "{text}");
}

#[test]
fn a_policy_module_decides_and_grants_are_shown() {
    let judge = extension(
        "judge",
        r#"
#include <postern/policy.h>
long decide(struct postern_request *request)
{
    if (request->kind == POSTERN_SYSTEM_CALL && request->number == 2) {
        request->reason = "nothing is opened here";
        return POSTERN_KILL;
    }
    return request->number == 1 && request->integers[2] == 5 ? 28 : POSTERN_ALLOW;
}
"#,
    );
    let run = |words: &[&str]| {
        let options = [
            &["run", PROGRAM.as_str(), "--policy-module", &judge][..],
            words,
        ]
        .concat();
        postern(&options)
    };
    let said = run(&["--grants", "--", "words", "four", "fives", "six"]);
    assert_eq!((said.code, &*said.stdout), (0, "four\n\nsix\n"));
    for line in [
        "service   sys\n",
        "policy    compute\n",
        "decider   module judge",
    ] {
        assert!(said.stderr.contains(line), "{said:?}");
    }
    let complaint = run(&["--", "cat", "/etc/passwd"]).bad(134);
    let killed = "fault (killed): ended by the policy: nothing is opened here";
    assert!(complaint.contains(killed), "{complaint}");
    let program = PROGRAM.as_str();
    let none = postern(&["run", program, "--policy-module", program, "--", "words"]);
    let complaint = none.bad(2);
    assert!(complaint.contains("no `decide`"), "{complaint}");
}
