//! `postern ecode`: compiling, judging, showing and calling, as a user meets them.

use crate::program;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use program::{file, folder, postern};

const MATH: &str = "static long rest(long a, long b) { return a % b; }\nlong gcd(long a, long b)\n{\n\twhile (b) {\n\t\tlong r = rest(a, b);\n\t\ta = b;\n\t\tb = r;\n\t}\n\treturn a;\n}\ndouble half(double x) { return x / 2; }\nint peek(int *p) { return *p; }\nvoid fill(char *p, int n) { while (n--) p[n] = n; }\n";

const WRONG: &str = "int total;\nint f(void) { return totl + 1; }\nint g(int *p) { return p.x; }\n";

#[test]
fn functions_are_called_by_their_types() {
    file("math.ec", MATH);
    let run = |words: &[&str]| postern(&[&["ecode", "math.ec", "--run"], words].concat());
    assert_eq!(run(&["gcd", "12", "18"]).good(), "6\n");
    assert_eq!(run(&["half", "-3"]).good(), "-1.5\n");
    assert_eq!(run(&["fill", "@:3"]).good(), "000102\n");
    assert!(
        run(&["gcd", "12"])
            .bad(2)
            .contains("takes 2 arguments, 1 are given")
    );
    assert!(run(&["lcm", "12"]).bad(2).contains("lcm"));
    // It is static.
    assert!(run(&["rest", "12", "5"]).bad(2).contains("rest"));
    assert!(
        run(&["peek", "0"])
            .bad(3)
            .contains("null pointer access at 0x0, in peek+0x8 (math.ec:12)")
    );
    let json = run(&["gcd", "12", "18", "--json"]).json(0);
    assert_eq!(json["result"], "6");
}

#[test]
fn the_file_is_an_extension() {
    file("kept.ec", MATH);
    assert_eq!(postern(&["ecode", "kept.ec", "-o", "kept.px"]).good(), "");
    assert_eq!(
        postern(&["run", "kept.px", "gcd", "48", "36"]).good(),
        "12\n"
    );
    assert!(postern(&["verify", "kept.px"]).good().contains("accepted"));
    let bad = postern(&["ecode", "kept.ec", "-o", "no/such/folder/kept.px"]).bad(2);
    assert!(bad.contains("cannot write no/such/folder/kept.px"), "{bad}");
}

#[test]
fn several_files_are_one_extension() {
    file(
        "user.ec",
        "extern int count; long twice(long); long f(long x) { return twice(x) + count; }\n",
    );
    file(
        "maker.ec",
        "int count = 2; long twice(long x) { return 2 * x; }\n",
    );
    let run = postern(&["ecode", "user.ec", "maker.ec", "--run", "f", "20"]);
    assert_eq!(run.good(), "42\n");
    let alone = postern(&["ecode", "user.ec"]).bad(1);
    assert!(
        alone.contains("no source defines the object `count`"),
        "{alone}"
    );
    let twice = postern(&["ecode", "maker.ec", "maker.ec"]).bad(1);
    assert!(twice.contains("defined twice"), "{twice}");
}

#[test]
fn faults_name_the_lines_of_all_files() {
    file(
        "first.ec",
        "int half(int);\nint start(int x)\n{\n\treturn half(x) + 1;\n}\n",
    );
    file(
        "second.ec",
        "static int inner(int x)\n{\n\treturn 10 / x;\n}\n\nint half(int x) { return inner(x) / 2; }\n",
    );
    let files = ["ecode", "first.ec", "second.ec"];
    let told = postern(&[&files[..], &["--run", "start", "0", "-v"]].concat()).bad(3);
    for (name, line) in [
        ("inner", "second.ec:3"),
        ("half", "second.ec:6"),
        ("start", "first.ec:4"),
    ] {
        let named = |l: &str| l.contains(&format!("{name}+0x")) && l.contains(&format!("({line})"));
        assert!(told.lines().any(named), "{name} {line}: {told}");
    }
    // A file that is kept says so, too.
    postern(&[&files[..], &["-o", "kept-lines.px"]].concat()).good();
    let told = postern(&["run", "kept-lines.px", "start", "0"]).bad(3);
    assert!(
        told.contains("in inner+") && told.contains("(second.ec:3)"),
        "{told}"
    );
}

#[test]
fn services_may_be_called() {
    file(
        "says.ec",
        "void print_str(const char *); int f(void) { print_str(\"hello\"); return 1; }\n",
    );
    let run = postern(&["ecode", "says.ec", "--run", "f"]);
    assert_eq!(run.good(), "hello\n1\n");
}

#[test]
fn errors_are_shown_as_gcc_shows_them() {
    file("wrong.ec", WRONG);
    let run = postern(&["ecode", "wrong.ec", "-o", "wrong.px"]);
    assert_eq!((run.code, &*run.stdout), (1, ""));
    assert_eq!(
        run.stderr,
        "wrong.ec:2:22: error: `totl` is not declared\n    2 | int f(void) { return totl + 1; }\n      |                      ^~~~\n      = help: is `total` meant?\nwrong.ec:3:25: error: `.` wants a structure, not `int *`\n    3 | int g(int *p) { return p.x; }\n      |                         ^\n      = help: write `->` for a member through a pointer\n"
    );
    assert!(!folder().join("wrong.px").exists());
    let json = postern(&["ecode", "wrong.ec", "--json"]).json(1);
    assert_eq!(json["verdict"], "errors");
    assert_eq!(json["files"][0]["errors"][0]["rule"], "unknown-name");
    assert_eq!(json["files"][0]["errors"][1]["column"], 25);
}

#[test]
fn sizes_and_functions_are_told() {
    file("told.ec", MATH);
    let text = postern(&["ecode", "told.ec"]).good();
    assert!(
        text.starts_with("told.ec: 13 lines, 5 functions, "),
        "{text}"
    );
    assert!(text.contains("\naccepted in "), "{text}");
    let json = postern(&["ecode", "told.ec", "--json"]).json(0);
    assert_eq!(json["verdict"], "accepted");
    let functions = json["files"][0]["functions"].as_array().unwrap();
    assert_eq!(functions[0]["exported"], false);
    assert_eq!(functions[1]["c"], "int64_t gcd(int64_t, int64_t)");
}

#[test]
fn assembly_has_the_lines_of_the_source() {
    file("shown.ec", MATH);
    let text = postern(&["ecode", "shown.ec", "-S"]).good();
    for part in [
        "gcd:\t\t# int64_t gcd(int64_t, int64_t)\n",
        "# 5: \t\tlong r = rest(a, b);\n",
        " <rest>\n",
        "idiv %rsi\n",
        "mov %gs:(%edi),%eax\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let both = postern(&["ecode", "shown.ec", "-S", "--run", "gcd", "9", "6"]).good();
    assert!(both.ends_with("\n\n3\n"), "{both}");
}

#[test]
fn wrong_files_are_named() {
    assert!(
        postern(&["ecode", "missing.ec"])
            .bad(2)
            .contains("missing.ec")
    );
    file("binary.ec", [0xff, 0xfe]);
    let binary = postern(&["ecode", "binary.ec"]);
    assert_eq!(binary.code, 1);
    assert!(
        binary
            .stderr
            .contains("binary.ec:1:1: error: no token begins"),
        "{binary:?}"
    );
    assert!(postern(&["ecode"]).bad(2).contains("FILE"));
}

#[test]
fn changes_are_watched() {
    let path = file("watched.ec", "int f(int x) { return x + 1; }\n");
    let mut child = Command::new(env!("CARGO_BIN_EXE_postern"))
        .args(["ecode", "watched.ec", "--watch", "--run", "f", "1"])
        .current_dir(folder())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut results = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut next = || said.next().unwrap().unwrap();
    assert_eq!(results.next().unwrap().unwrap(), "2");
    assert!(next().contains("watching"));
    // As editors do it: a new file in the place of the old one.
    let change = |text: &str| {
        let new = file("watched.ec.new", text);
        std::fs::rename(new, &path).unwrap();
    };
    change("int f(int x) { return x + 10; }\n");
    assert_eq!(results.next().unwrap().unwrap(), "11");
    assert!(next().contains("watching"));
    change("int f(int x) { return y; }\n");
    assert!(next().contains("error: `y` is not declared"));
    while !next().contains("watching") {}
    change("int f(int x) { return x + 100; }\n");
    assert_eq!(results.next().unwrap().unwrap(), "101");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Two files, callees before callers; what is written is an image that a process refuses.
#[test]
fn images_for_the_kernel_are_written() {
    file(
        "low.ec",
        "static int used;\nint third(int x) { used++; return x / 3; }\nint count(void) { return used; }\n",
    );
    file(
        "high.ec",
        "int third(int); int f(int x)\n{\n\treturn third(x) + 1;\n}\n",
    );
    let words = ["ecode", "--kernel", "low.ec", "high.ec"];
    let made = postern(&[&words[..], &["-o", "ring0.pst"]].concat());
    assert_eq!(made.good(), "");
    let judged = postern(&["verify", "--kernel", "ring0.pst"]).good();
    assert!(
        judged.contains("accepted") && judged.contains("general registers only"),
        "{judged}"
    );
    let bad = postern(&["run", "ring0.pst", "f", "3"]).bad(2);
    assert!(bad.contains("the image is for the kernel"), "{bad}");
    let listed = postern(&[&words[..], &["-S"]].concat()).good();
    assert!(listed.contains("<third>") && listed.contains("# 3: \treturn third(x) + 1;"));
    assert!(
        listed.contains("%fs:") && !listed.contains("%gs:"),
        "{listed}"
    );

    file(
        "again.ec",
        "int f(int n)\n{\n\treturn n ? f(n - 1) : 0;\n}\n",
    );
    let bad = postern(&["ecode", "--kernel", "again.ec"]).bad(1);
    assert!(bad.contains("again.ec:3: `f` calls itself"), "{bad}");
    file("half.ec", "double half(double x) { return x / 2; }\n");
    let run = postern(&["ecode", "--kernel", "half.ec"]);
    assert!(
        run.code == 1
            && run
                .stderr
                .starts_with("half.ec:1:25: error: floating point")
    );
}
