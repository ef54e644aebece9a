//! `postern inspect` shows what is in the file; `postern doctor` what is in the machine; both for
//! programs, too.

use crate::program;

use postern_image::ImageBuilder;
use program::{file, postern};

fn image() -> Vec<u8> {
    // lea 2(%rdi),%eax; ret; mov %gs:(%edi),%eax; ret
    let mut builder = ImageBuilder::new([0x8d, 0x47, 0x02, 0xc3, 0x65, 0x67, 0x8b, 0x07, 0xc3]);
    builder.import("fetch", Some("p(pL)".parse().expect("signature")));
    builder
        .export("add_two", 0, Some("i(i)".parse().expect("signature")))
        .export("load", 4, None);
    builder
        .rodata([1; 10])
        .data([2; 20], 5000)
        .stack_log2(14)
        .heap_wish(1 << 20)
        .build()
        .expect("legal")
}

#[test]
fn all_of_an_image_is_shown() {
    file("all.px", image());
    let text = postern(&["inspect", "all.px"]).good();
    for line in [
        "operands through gs, data stack 16 KiB",
        "  0x00011000 0x00012000  r-x       4 KiB  gate slots (1)",
        "  0x00012000 0x00013000  r-x       4 KiB  text (9 bytes)",
        "  0x00014000 0x00018000  rw-      16 KiB  data stack",
        "  0x00012000  int32_t add_two(int32_t)",
        "  0x00012004  load(?)",
        "     0  void *fetch(void *, uint64_t)",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
    }
    assert!(
        text.contains("verifier: accepted: ") && text.contains("1 MiB wished for"),
        "{text}"
    );
    assert!(
        text.contains("Instructions (4, 25 % with a memory operand)"),
        "{text}"
    );
    assert!(
        text.contains("  ret                 2   50.0 %  ####"),
        "{text}"
    );
}

#[test]
fn programs_read_the_same() {
    file("json.px", image());
    let json = postern(&["inspect", "--json", "json.px"]).json(0);
    assert_eq!(json["exports"][0]["c"], "int32_t add_two(int32_t)");
    assert_eq!(json["exports"][1]["signature"], serde_json::Value::Null);
    assert_eq!(json["imports"][0]["name"], "fetch");
    assert_eq!(json["accepted"], true);
    assert_eq!(json["header"]["data_stack"], 1 << 14);
    let memory = json["memory"].as_array().expect("rows");
    // Rows follow each other from 0 to the heap without a gap.
    let mut end = 0;
    for row in memory {
        assert_eq!(row["start"], end, "{row}");
        end = row["end"].as_u64().expect("a number");
    }
    assert_eq!(memory.last().expect("the heap")["protection"], "rw-");
}

#[test]
fn refused_code_is_shown_and_named() {
    file(
        "refused.px",
        ImageBuilder::new([0x0f, 0x05, 0xc3])
            .build()
            .expect("legal form"),
    );
    let text = postern(&["inspect", "refused.px"]).good();
    assert!(
        text.contains("verifier: refused at 0x11000") && text.contains("syscall"),
        "{text}"
    );
    postern(&["inspect", "none.px"]).bad(2);
    file("no.px", [0; 100]);
    postern(&["inspect", "no.px"]).bad(2);
}

/// A process that runs an extension for ever, until this is dropped.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().expect("lives");
        self.0.wait().expect("ends");
    }
}

#[test]
fn running_processes_show_their_table() {
    // spin: jmp spin
    let mut builder = ImageBuilder::new([0xeb, 0xfe]);
    builder.export("spin", 0, Some("v()".parse().expect("signature")));
    file("spin.px", builder.build().expect("legal"));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_postern"));
    command.args(["run", "--deadline", "none", "spin.px", "spin"]);
    let mut child = Running(
        command
            .current_dir(program::folder())
            .spawn()
            .expect("runs"),
    );
    let process = child.0.id().to_string();
    // It shows nothing before it has loaded the extension.
    let text = loop {
        let run = postern(&["inspect", "--live", &process]);
        if run.code == 0 && run.stdout.contains("spin.px#1") {
            break run.good();
        }
        assert_eq!(child.0.try_wait().expect("is a child"), None, "still runs");
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert!(
        text.starts_with(&format!("process {process}: 1 domain\n")),
        "{text}"
    );
    for line in [
        "-    r   info page, and zeros up to the gate slots",
        "-    x   gate slots and text",
        "-    rw  zeroed data and heap",
    ] {
        assert!(text.contains(&format!("  {line}\n")), "{line}\n{text}");
    }
    let json = postern(&["inspect", "--live", &process, "--json"]).json(0);
    assert_eq!(json["process"].to_string(), process);
    assert_eq!(json["columns"][0]["domains"][0]["image"], "spin.px");
    let row = &json["rows"][1];
    assert_eq!(
        (&row["start"], &row["cells"][0], &row["host"]),
        (&0x11000.into(), &"x".into(), &"-".into())
    );
    let named = postern(&["inspect", "--live", &process, "--domain", "spin.px#1"]).good();
    assert!(named.contains("spin.px#1"), "{named}");
    let none = postern(&["inspect", "--live", &process, "--domain", "other"]).bad(2);
    assert!(none.contains("no domain `other`"), "{none}");
    drop(child);
    let gone = postern(&["inspect", "--live", &process]).bad(2);
    assert!(gone.contains("cannot look at process"), "{gone}");
    // This test is a process without extensions.
    let own = std::process::id().to_string();
    let nothing = postern(&["inspect", "--live", &own]).bad(2);
    assert!(nothing.contains("shows no table"), "{nothing}");
    for wrong in [
        &["inspect"][..],
        &["inspect", "--live", "x"],
        &["inspect", "--live", "1", "spin.px"],
    ] {
        postern(wrong).bad(2);
    }
}

#[test]
fn doctor_tries_the_machine() {
    let run = postern(&["doctor", "--json"]);
    let json = run.json(run.code);
    let checks = json.as_array().expect("checks");
    let missing = checks.iter().any(|c| c["state"] == "missing");
    assert_eq!(run.code, i32::from(missing));
    let trial = checks
        .iter()
        .find(|c| c["name"] == "trial")
        .expect("is tried");
    // These tests run where extensions run.
    assert_eq!(trial["state"], "ok", "{json}");
    for check in checks {
        assert_eq!(
            check["state"] == "ok",
            check.get("remedy").is_none(),
            "{check}"
        );
    }
    let text = postern(&["doctor"]).stdout;
    assert!(
        text.contains("ok       trial           an extension was loaded"),
        "{text}"
    );
}

#[test]
fn help_has_an_example_each() {
    for command in [
        "cc", "c++", "verify", "inspect", "run", "serve", "bench", "doctor",
    ] {
        let text = postern(&[command, "--help"]).good();
        assert!(
            text.contains("Example") && text.contains(&format!("\n  postern {command}")),
            "{text}"
        );
        assert!(text.contains("Exit status"), "{text}");
    }
    assert!(
        postern(&["--help"])
            .good()
            .contains("postern cc -O2 -o calc.px calc.c")
    );
    assert_eq!(postern(&["no-such-command"]).code, 2);
}
