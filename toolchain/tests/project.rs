//! `postern.toml`: what is compiled when, and what is said when it cannot be.

use postern::{Domain, Image};
use postern_toolchain::project::{Event, Options, Project, ProjectError};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A project folder that is gone after the test. Its files are an hour old.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str, files: &[(&str, &str)]) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("project-{test}"));
        let _ = std::fs::remove_dir_all(&path);
        let folder = Folder(path);
        for (name, text) in files {
            folder.write(name, text);
            let file = std::fs::File::options()
                .write(true)
                .open(folder.0.join(name));
            file.and_then(|file| file.set_modified(SystemTime::now() - Duration::from_secs(3600)))
                .expect("the file's time");
        }
        folder
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, text).expect("a file");
        // What is as old as the step that reads it is compiled again; so the file system's clock
        // ticks first.
        let written = |path: &Path| path.metadata().and_then(|m| m.modified()).expect("a time");
        let (file, later) = (written(&path), self.0.join(".tick"));
        while {
            std::fs::write(&later, "").expect("a file");
            written(&later) <= file
        } {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::fs::remove_file(later).expect("it was there");
    }

    fn build(&self) -> (Result<PathBuf, ProjectError>, Vec<Event>) {
        let mut events = Vec::new();
        let options = Options::new(self.0.join("build"));
        let built = Project::load(&self.0)
            .and_then(|project| project.build(&options, &mut |event| events.push(event.clone())));
        (built.map(|built| built.extension), events)
    }

    /// Builds, and says which sources were compiled.
    fn compiled(&self) -> Vec<String> {
        let (built, events) = self.build();
        built.unwrap_or_else(|error| panic!("{error}"));
        let mut names: Vec<String> = events
            .into_iter()
            .filter_map(|event| match event {
                Event::Compiled { source, .. } => Some(source),
                _ => None,
            })
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const TWO: &[(&str, &str)] = &[
    (
        "postern.toml",
        "[extension]\nname = \"two\"\nsources = [\"*.c\"]\nflags = [\"-O1\"]\n",
    ),
    (
        "one.c",
        "#include \"number.h\"\nint one(void) { return NUMBER; }\n",
    ),
    (
        "two.c",
        "int one(void);\nint two(void) { return one() + 1; }\n",
    ),
    ("number.h", "#define NUMBER 1\n"),
];

fn two(path: &Path) -> i32 {
    let domain = Domain::builder(&Image::load(path).expect("loads"))
        .build()
        .expect("a domain");
    domain
        .func::<fn() -> i32>("two")
        .expect("exported")
        .call()
        .expect("returns")
}

#[test]
fn what_changed_is_compiled_again() {
    let folder = Folder::new("again", TWO);
    let output = folder.0.join("build/two.px");
    assert_eq!(folder.compiled(), ["one.c", "two.c"]);
    assert_eq!(two(&output), 2);
    assert!(folder.compiled().is_empty());

    folder.write("number.h", "#define NUMBER 41\n");
    assert_eq!(folder.compiled(), ["one.c"]);
    assert_eq!(two(&output), 42);
    // An option.
    folder.write("postern.toml", &TWO[0].1.replace("-O1", "-O2"));
    assert_eq!(folder.compiled(), ["one.c", "two.c"]);
    assert!(folder.compiled().is_empty());
    // A header that is gone, and a result that is gone.
    std::fs::remove_file(folder.0.join("number.h")).expect("it was there");
    let (built, _) = folder.build();
    assert!(
        matches!(built, Err(ProjectError::Sources { .. })),
        "{built:?}"
    );
    folder.write("number.h", "#define NUMBER 1\n");
    assert_eq!(folder.compiled(), ["one.c"]);
    std::fs::remove_file(&output).expect("it was there");
    assert!(folder.compiled().is_empty());
    assert_eq!(two(&output), 2);
}

#[test]
fn every_source_that_fails_is_told() {
    let folder = Folder::new("fails", TWO);
    folder.write("one.c", "int one(void) { return NUMBER; }\n");
    folder.write(
        "bad.c",
        "int a(void)\n{\n\t__asm__(\"syscall\");\n\treturn 0;\n}\n",
    );
    let (built, events) = folder.build();
    let error = built.expect_err("two are wrong").to_string();
    assert_eq!(error, "2 of 3 sources cannot be compiled: bad.c, one.c");
    let text = |name: &str| {
        events
            .iter()
            .find_map(|event| match event {
                Event::Failed { source, messages } if source == name => Some(messages.clone()),
                _ => None,
            })
            .expect("it is told")
    };
    assert!(text("one.c").contains("one.c:1:") && text("one.c").contains("NUMBER"));
    assert!(
        text("bad.c").contains("bad.c:3: error: "),
        "{}",
        text("bad.c")
    );
    // What was well compiled is not compiled again.
    folder.write("bad.c", "int a(void) { return 0; }\n");
    folder.write("one.c", "int one(void) { return 1; }\n");
    assert_eq!(folder.compiled(), ["bad.c", "one.c"]);
}

#[test]
fn only_the_listed_functions_are_exported() {
    let folder = Folder::new("exports", TWO);
    folder.write(
        "postern.toml",
        &format!("{}exports = [\"two\"]\n", TWO[0].1),
    );
    let (built, _) = folder.build();
    let image = Image::load(built.expect("builds")).expect("loads");
    let domain = Domain::builder(&image).build().expect("a domain");
    assert!(domain.func::<fn() -> i32>("one").is_err());
    assert_eq!(
        domain
            .func::<fn() -> i32>("two")
            .expect("exported")
            .call()
            .expect("returns"),
        2
    );
    assert!(domain.alloc(10).is_ok(), "malloc is exported, too");

    folder.write(
        "postern.toml",
        &format!("{}exports = [\"three\"]\n", TWO[0].1),
    );
    let error = folder.build().0.expect_err("no such function").to_string();
    assert!(error.contains("`three` cannot be exported"), "{error}");
}

#[test]
fn groups_have_options_of_their_own() {
    let folder = Folder::new("groups", TWO);
    folder.write(
        "postern.toml",
        "[extension]\nname = \"two\"\nsources = [\"*.c\", \"!one.c\"]\n\
         [[source]]\nfiles = [\"one.c\"]\nflags = [\"-DNUMBER=9\"]\ninclude = [\"other\"]\n",
    );
    folder.write(
        "one.c",
        "#include <empty.h>\nint one(void) { return NUMBER; }\n",
    );
    folder.write("other/empty.h", "");
    let (built, _) = folder.build();
    assert_eq!(two(&built.expect("builds")), 10);
}

#[test]
fn the_link_has_options_of_its_own() {
    let folder = Folder::new("link", TWO);
    let copies = "void *memcpy(void *, const void *, unsigned long);\nchar a[9000], b[9000];\n\
                  int one(void) { memcpy(a, b, 9000); return 1; }\n";
    folder.write("one.c", copies);
    let gated = |folder: &Folder| {
        let path = folder.build().0.expect("builds");
        assert_eq!(two(&path), 2);
        let bytes = std::fs::read(&path).expect("it is there");
        let name = b"__postern_memmove";
        bytes.windows(name.len()).any(|part| part == name)
    };
    assert!(gated(&folder), "long ranges go to the gate");
    let text = "[extension]\nname = \"two\"\nsources = [\"*.c\"]\n\
                link = [\"-fpostern-no-memory-gate\"]\n";
    folder.write("postern.toml", text);
    assert!(!gated(&folder), "the link was told not to");
}

#[test]
fn descriptions_that_are_wrong_say_where() {
    let folder = Folder::new("wrong", TWO);
    for (sources, line, reason) in [
        ("\"*.c\", \"none/*.c\"", 3, "`none/*.c` matches no file"),
        ("\"${libfoo}/*.c\"", 3, "`${libfoo}` names no crate"),
        ("\"${libfoo/*.c\"", 3, "is missing"),
    ] {
        folder.write(
            "postern.toml",
            &format!("[extension]\nname = \"two\"\nsources = [{sources}]\n"),
        );
        let error = folder.build().0.expect_err(sources).to_string();
        assert!(
            error.contains(&format!("postern.toml:{line}: error: ")),
            "{error}"
        );
        assert!(error.contains(reason), "{error}");
    }
    std::fs::remove_file(folder.0.join("postern.toml")).expect("it was there");
    assert!(matches!(folder.build().0, Err(ProjectError::Missing(_))));
}

const OF_A_CRATE: &str = "[extension]\nname = \"two\"\nsources = [\"two.c\", \"${postern-test-one}/src/*.c\"]\n\
                          [crates]\npostern-test-one = \"1.2.3\"\n";

#[test]
fn sources_come_from_a_crate() {
    let folder = Folder::new("crate", TWO);
    folder.write("postern.toml", OF_A_CRATE);
    folder.write("vendored/one/src/one.c", "int one(void) { return 6; }\n");
    folder.write("vendored/one/lib.rs", "");
    folder.write(
        "vendored/one/Cargo.toml",
        "[package]\nname = \"postern-test-one\"\nversion = \"1.2.3\"\n[lib]\npath = \"lib.rs\"\n",
    );
    folder.write(
        "vendored/one/.cargo-checksum.json",
        "{\"files\":{},\"package\":null}",
    );
    folder.write(
        ".cargo/config.toml",
        "[source.crates-io]\nreplace-with = \"here\"\n[source.here]\ndirectory = \"vendored\"\n",
    );
    let (built, events) = folder.build();
    assert_eq!(two(&built.expect("builds")), 7);
    let fetched =
        |event: &Event| matches!(event, Event::Fetch { name, .. } if name == "postern-test-one");
    assert!(fetched(&events[0]));
    assert!(folder.compiled().is_empty());
}

#[test]
fn a_crate_that_cannot_be_had_says_what_to_do() {
    let folder = Folder::new("no-crate", TWO);
    folder.write("postern.toml", OF_A_CRATE);
    folder.write(".cargo/config.toml", "[net]\noffline = true\n");
    let error = folder.build().0.expect_err("it does not exist").to_string();
    assert!(
        error.starts_with("the source of postern-test-one 1.2.3 could not be obtained: "),
        "{error}"
    );
    assert!(error.contains(".cargo/config.toml"), "{error}");
}
