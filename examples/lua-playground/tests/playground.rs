//! Scripts print what they print under the plain build, and hostile ones end without harm to the
//! next.

use postern::{CallError, FaultKind, Image};
use postern_example_lua_playground::{Limits, Playground, ScriptError};
use postern_toolchain::project::{Built, Options, Project};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// Both builds of the interpreter; what is there from the last time is used again.
fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lua");
        Project::load(env!("CARGO_MANIFEST_DIR"))
            .and_then(|project| project.build(&Options::new(folder).native(), &mut |_| {}))
            .unwrap_or_else(|error| panic!("{error}"))
    })
}

fn playground(limits: Limits) -> Playground {
    let image = Image::load(&built().extension).expect("the interpreter loads");
    Playground::new(&image, limits).expect("a playground")
}

fn patient() -> Playground {
    playground(Limits {
        deadline: Duration::from_secs(60),
        ..Limits::default()
    })
}

fn printed(playground: &Playground, script: &str) -> String {
    playground
        .run("script", script.as_bytes())
        .expect("the script runs");
    String::from_utf8(playground.take_output()).expect("text")
}

/// A program around the plain build: runs the script in a file, prints its error.
fn plain(script: &Path) -> Vec<u8> {
    let library = built().native.as_ref().expect("it was asked for");
    let program = library.with_file_name("plain");
    static MADE: OnceLock<()> = OnceLock::new();
    MADE.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plain.c");
        let made = Command::new("gcc")
            .arg("-o")
            .arg(&program)
            .args([source.as_path(), library])
            .arg(format!(
                "-Wl,-rpath,{}",
                library.parent().expect("a folder").display()
            ))
            .status();
        assert!(
            made.is_ok_and(|status| status.success()),
            "plain.c does not build"
        );
    });
    Command::new(program)
        .arg(script)
        .output()
        .expect("it runs")
        .stdout
}

#[test]
fn scripts_print_what_they_print_natively() {
    let playground = patient();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut scripts = 0;
    for entry in std::fs::read_dir(folder).expect("the scripts") {
        let path = entry.expect("a script").path();
        let text = std::fs::read(&path).expect("a script");
        let outcome = playground.run("script", &text);
        let mut found = playground.take_output();
        if let Err(error) = outcome {
            found.extend(format!("{error}\n").bytes());
        }
        let want = plain(&path);
        assert!(
            found == want,
            "{}:\n{}\nplain:\n{}",
            path.display(),
            String::from_utf8_lossy(&found),
            String::from_utf8_lossy(&want)
        );
        assert!(found.len() > 10, "{}: too little output", path.display());
        scripts += 1;
    }
    assert!(scripts > 2);
}

#[test]
fn errors_name_their_line() {
    let playground = patient();
    let script = "local function f()\n  error('no more')\nend\nf()\n";
    match playground.run("story.lua", script.as_bytes()) {
        Err(ScriptError::Lua(message)) => {
            assert!(message.starts_with("story.lua:2: no more"), "{message}");
            assert!(message.contains("story.lua:4: in main chunk"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    match playground.run("story.lua", b"x = = 1") {
        Err(ScriptError::Lua(message)) => assert!(message.starts_with("story.lua:1:"), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn hostile_scripts_end_and_the_next_one_works() {
    let playground = playground(Limits {
        deadline: Duration::from_millis(300),
        ..Limits::default()
    });
    let hostile: &[(&str, &str)] = &[
        ("deadline", "while true do end"),
        (
            "deadline",
            "while true do pcall(function() while true do end end) end",
        ),
        (
            "deadline",
            "string.rep('a', 50):find(string.rep('a?', 50) .. string.rep('a', 50) .. 'b')\nwhile true do end",
        ),
        ("deadline", "while true do print(('x'):rep(1000)) end"),
        (
            "deadline",
            "for i = 1, math.huge do pcall(string.rep, 'x', 1 << 24) end",
        ),
        (
            "not enough memory",
            "local t = {} while true do t[#t + 1] = {} end",
        ),
        (
            "not enough memory",
            "local s = 'x' while true do s = s .. s end",
        ),
        ("not enough memory", "return string.rep('x', 1 << 30)"),
        (
            "resulting string too large",
            "return string.rep('x', math.maxinteger)",
        ),
        (
            "overflow",
            "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end return t.x",
        ),
        (
            "overflow",
            "assert(load('return ' .. string.rep('(', 10000) .. '1' .. string.rep(')', 10000)))",
        ),
        (
            "overflow",
            "local function f() return coroutine.wrap(f)() end return f()",
        ),
        ("error object is a table", "error({})"),
        ("error object is a nil", "error(nil)"),
        (
            "named",
            "error(setmetatable({}, { __tostring = function() return 'named' end }))",
        ),
        (
            "error object is a table",
            "error(setmetatable({}, { __tostring = function() return {} end }))",
        ),
        ("status 3", "os.exit(3)"),
        ("status 1", "os.exit(false)"),
    ];
    for (k, (reason, script)) in hostile.iter().enumerate() {
        let error = match playground.run("hostile", script.as_bytes()) {
            Err(error) => error,
            Ok(()) => panic!("{script}: ran to its end"),
        };
        let is_deadline = matches!(&error, ScriptError::Ended(CallError::Fault(fault)) if fault.kind == FaultKind::Deadline);
        let text = error.to_string();
        // What ends by itself on a quick machine may meet the deadline on a slow one.
        assert!(
            is_deadline || (*reason != "deadline" && text.contains(reason)),
            "{script}: {text}"
        );
        assert!(
            !matches!(&error, ScriptError::Ended(_)) || is_deadline,
            "{script}: {text}"
        );
        assert!(playground.take_output().len() <= Limits::default().output);
        assert_eq!(
            printed(&playground, &format!("print({k}, hostile)")),
            format!("{k}\tnil\n")
        );
    }
}

#[test]
fn endless_recursion_is_an_error_of_lua() {
    let playground = playground(Limits {
        deadline: Duration::from_secs(60),
        // So much that Lua's own limit of its stack comes before the heap's end.
        heap: 128 << 20,
        ..Limits::default()
    });
    let script = "local function f() return 1 + f() end return f()";
    match playground.run("deep", script.as_bytes()) {
        Err(ScriptError::Lua(message)) => {
            assert!(message.contains("stack overflow"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(printed(&playground, "print(2)"), "2\n");
}

#[test]
fn the_outside_is_not_there() {
    let playground = patient();
    for (script, reason) in [
        ("assert(io.open('/etc/passwd'))", "/etc/passwd: "),
        ("assert(os.remove('/tmp/x'))", "/tmp/x: "),
        ("assert(os.getenv('HOME'), 'no HOME')", "no HOME"),
        ("assert(os.execute('true'))", "not implemented"),
        ("assert(io.popen('true'))", "not supported"),
        ("require 'socket'", "module 'socket' not found"),
    ] {
        let text = match playground.run("script", script.as_bytes()) {
            Err(ScriptError::Lua(message)) => message,
            other => panic!("{script}: {other:?}"),
        };
        assert!(text.contains(reason), "{script}: {text}");
    }
    assert_eq!(
        playground.domain().counters().faults.values().sum::<u64>(),
        0
    );
}

#[test]
fn lines_keep_their_state_until_one_is_ended() {
    let playground = playground(Limits {
        deadline: Duration::from_millis(300),
        ..Limits::default()
    });
    let line = |text: &str| match playground.line(text.as_bytes()) {
        Ok(()) => String::from_utf8(playground.take_output()).expect("text"),
        Err(error) => error.to_string(),
    };
    assert_eq!(line("x = 41"), "");
    assert_eq!(line("x + 1"), "42\n");
    assert_eq!(line("nil, 'two', 3.0"), "nil\ttwo\t3.0\n");
    assert!(line("x.y.z").contains("attempt to index a number value"));
    assert_eq!(line("x"), "41\n");
    assert!(line("while true do end").starts_with("ended: "));
    assert_eq!(line("x"), "nil\n");
}

#[test]
fn the_command_runs_files_and_lines() {
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lua-playground"));
        command
            .arg("--extension")
            .arg(&built().extension)
            .args(arguments);
        command.output().expect("it runs")
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts/queens.lua");
    let output = command(&["--deadline", "60000", script]);
    assert!(output.status.success());
    assert!(output.stdout.starts_with(b"92\n2262\n"));
    let output = command(&["--stress", "50"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.starts_with("50 scripts in ") && text.contains(" 0 of them"),
        "{text}"
    );
}
