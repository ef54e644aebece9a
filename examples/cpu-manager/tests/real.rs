//! Whole experiments of a second: all of it is there, and nothing of it afterwards. How well
//! clients are held is no matter here; the machine may be busy.

use postern_example_cpu_manager::experiment::{self, Options, Placement, Policy};
use postern_example_cpu_manager::setup::Ticks;
use postern_example_cpu_manager::{extension, groups};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// All of them want the same processor, and one counts the process's descriptors, to which the
/// pipes of what another starts would be added.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cpu-manager");
        extension::build(&folder).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// Control groups of a process's that are there still.
fn groups_of(process: u32) -> Vec<PathBuf> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let places = groups::places(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"));
    let prefix = format!("postern-cpu-manager-{process}-");
    let entries = places
        .iter()
        .filter_map(|place| std::fs::read_dir(&place.folder).ok());
    let paths = entries.flatten().flatten().map(|entry| entry.path());
    paths
        .filter(|path| {
            path.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with(&prefix))
        })
        .collect()
}

/// Processes of a process group.
fn members(group: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter(|process| {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            let behind = stat.rsplit(')').next().unwrap_or_default();
            behind.split_whitespace().nth(2) == Some(&group.to_string())
        })
        .collect()
}

/// Runs a command in a process group of its own, which has nobody afterwards, nor any control
/// group.
fn output(command: &mut Command) -> Output {
    let child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let process = child.id();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(members(process), [0u32; 0]);
    let left = groups_of(process);
    assert!(left.is_empty(), "{left:?}");
    output
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cpu-manager"));
    command.arg("--extension").arg(built());
    command
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{:?}\n{error}\n{text}",
        output.status
    );
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// What every run has, however busy the machine is.
fn assert_complete(run: &Value, clients: usize, seconds: usize) {
    let samples = run["samples"].as_array().expect("samples");
    assert_eq!(samples.len(), seconds * 10 + 1);
    for pair in samples.windows(2) {
        assert!(
            pair[0]["time"].as_u64() < pair[1]["time"].as_u64(),
            "{pair:?}"
        );
        for client in 0..clients {
            let used = |sample: &Value| sample["clients"][client].as_u64();
            assert!(used(&pair[0]) <= used(&pair[1]), "{pair:?}");
        }
    }
    let last = &samples[samples.len() - 1]["clients"];
    let used = last.as_array().expect("clients");
    assert_eq!(used.len(), clients);
    assert!(used.iter().all(|used| used.as_u64() > Some(0)), "{last}");
    assert!(
        run["manager"]["ticks"].as_i64() > Some(0),
        "{}",
        run["manager"]
    );
    assert_eq!(run["deviations"].as_array().map(Vec::len), Some(clients));
}

#[test]
fn all_placements_and_their_files() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let plot = folder.path().join("shares.svg");
    let mut command = program();
    command
        .args(["--seconds", "2", "--seed", "3", "--json", "--plot"])
        .arg(&plot);
    let output = output(&mut command);
    let runs = json(&output);
    let names: Vec<&str> = (0..3)
        .filter_map(|n| runs[n]["placement"].as_str())
        .collect();
    assert_eq!(names, ["process", "thread", "upcall"]);
    for run in runs.as_array().expect("runs") {
        assert_complete(run, 3, 2);
        assert_eq!(run["bursts"], runs[0]["bursts"]);
        assert_eq!(run["manager"]["processes"][3]["kind"], "Background");
        // The times of a manager that is somebody's own are known.
        assert_eq!(run["manager_time"].is_null(), run["placement"] == "upcall");
    }
    let progress = String::from_utf8_lossy(&output.stderr);
    assert!(progress.contains("thread: 2 of 2 s"), "{progress}");
    let drawn = std::fs::read_to_string(&plot).expect("a plot");
    assert!(drawn.contains("upcall: whoever is current"), "{drawn}");
}

#[test]
fn policies_and_what_else_can_be_chosen() {
    let _alone = alone();
    for policy in ["rr", "other"] {
        let mut command = program();
        command.args([
            "--placement",
            "upcall",
            "--policy",
            policy,
            "--seconds",
            "1",
        ]);
        command.args([
            "--share", "5/20", "--share", "1/1000", "--tick", "4", "--gains", "0,32,0",
        ]);
        let output = output(command.args(["--json", "--quiet"]));
        assert_complete(&json(&output)[0], 2, 1);
        assert!(
            output.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// Ticks by the library's events, whichever way they go here.
#[test]
fn ticks_are_events() {
    let _alone = alone();
    for placement in ["thread", "upcall"] {
        let mut command = program();
        command.args(["--ticks", "event", "--seconds", "1", "--json", "--quiet"]);
        let runs = json(&output(command.args(["--placement", placement])));
        assert_complete(&runs[0], 3, 1);
        let notes = runs[0]["notes"].to_string();
        assert!(notes.contains("events are handled by"), "{notes}");
    }
}

#[test]
fn clients_that_end() {
    let _alone = alone();
    let mut command = program();
    command.args([
        "--placement",
        "thread",
        "--disturbance",
        "none",
        "--seconds",
        "2",
    ]);
    let runs = json(&output(
        command.args(["--ends", "0@300", "--json", "--quiet"]),
    ));
    assert_complete(&runs[0], 3, 2);
    assert_eq!(runs[0]["manager"]["processes"][0]["kind"], "Ended");
    assert_eq!(runs[0]["manager"]["processes"][1]["kind"], "Client");
    assert_eq!(runs[0]["bursts"], Value::Array(Vec::new()));
}

/// Without rights there are nice values and no real time, and the program says so.
#[test]
fn without_rights() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let readable = |from: &Path, name: &str| {
        let path = folder.path().join(name);
        // Not by this process: a child of another test could hold it open for writing meanwhile.
        let copied = Command::new("cp").arg(from).arg(&path).status();
        assert!(copied.expect("cp starts").success());
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("it is ours");
        path
    };
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), mode).expect("it is ours");
    let own = readable(Path::new(env!("CARGO_BIN_EXE_cpu-manager")), "cpu-manager");
    let extension = readable(built(), "manager.px");
    let root =
        std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    let mut command = if root {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        command.arg(&own);
        command
    } else {
        Command::new(&own)
    };
    command
        .arg("--extension")
        .arg(&extension)
        .current_dir(folder.path());
    let cases = [
        ("process", "timer"),
        ("thread", "timer"),
        ("upcall", "timer"),
        ("upcall", "event"),
    ];
    for (placement, ticks) in cases {
        let mut command = {
            let mut again = Command::new(command.get_program());
            again.args(command.get_args());
            again
        };
        command.args([
            "--seconds",
            "1",
            "--json",
            "--quiet",
            "--placement",
            placement,
        ]);
        command.args(["--ticks", ticks]);
        let runs = json(&output(&mut command));
        assert_complete(&runs[0], 3, 1);
        if root {
            let held = runs[0]["held"].as_str().expect("a text");
            assert!(held.contains("nice values, chosen once"), "{held}");
            let notes = runs[0]["notes"].to_string();
            assert!(notes.contains("disturbance is SCHED_OTHER"), "{notes}");
            assert_eq!(
                notes.contains("the manager"),
                placement == "thread",
                "{notes}"
            );
            assert_eq!(
                notes.contains("manager is SCHED_OTHER"),
                placement == "process"
            );
        }
    }
}

#[test]
fn no_descriptor_stays() {
    let _alone = alone();
    let run = |placement| {
        let options = Options {
            placement,
            seconds: 1,
            shares: vec!["10/100".parse().expect("a share")],
            disturbance: Some((1, Policy::Fifo)),
            tick: 10,
            ticks: Ticks::Timer,
            gains: None,
            cpu: None,
            ends: Vec::new(),
            program: env!("CARGO_BIN_EXE_cpu-manager").into(),
            extension: built().to_owned(),
        };
        let mut seconds = Vec::new();
        let run = experiment::run(&options, |second| seconds.push(second));
        assert_eq!(seconds, [1]);
        run.unwrap_or_else(|error| panic!("{error}"));
        let left = groups_of(std::process::id());
        assert!(left.is_empty(), "{left:?}");
    };
    let open = || -> BTreeSet<String> {
        let entries = std::fs::read_dir("/proc/self/fd")
            .expect("it is there")
            .flatten();
        let link = |entry: std::fs::DirEntry| std::fs::read_link(entry.path()).ok();
        entries
            .filter_map(link)
            .map(|path| path.display().to_string())
            .collect()
    };
    run(Placement::Process);
    let before = open();
    run(Placement::Thread);
    run(Placement::Upcall);
    let after = open();
    let more: Vec<_> = after
        .difference(&before)
        .filter(|path| path.contains("cgroup"))
        .collect();
    assert!(
        more.is_empty() && after.len() <= before.len() + 1,
        "{before:?}\n{after:?}"
    );
}

/// What is wrong is said, with the remedy, before anything is started.
#[test]
fn wrong_options() {
    let _alone = alone();
    for (arguments, says) in [
        (&["--placement", "kernel"][..], "possible values"),
        (&["--share", "40"], "TARGET/PERIOD"),
        (&["--share", "0/100"], "1 <= TARGET"),
        (&["--share", "200/100"], "1 <= TARGET"),
        (&["--share", "10/1001"], "PERIOD <= 1000"),
        (&["--share", "1/99999999999999999999999"], "TARGET/PERIOD"),
        (
            &["--share", "500/1000", "--share", "500/1000"],
            "at most 95",
        ),
        (&["--seconds", "0"], "1 to 600 s"),
        (&["--seconds", "601"], "1 to 600 s"),
        (&["--tick", "0"], "1 to 1000 ms"),
        (&["--gains", "1,2"], "three gains"),
        (&["--gains", "1,2,x"], "invalid value"),
        (&["--gains", "5000,0,0"], "0 to 4096"),
        (&["--ends", "1"], "CLIENT@MILLISECONDS"),
        (&["--ends", "7@100"], "no client 7"),
        (&["--ticks", "bpf"], "possible values"),
        (&["--json", "--csv"], "cannot be used with"),
        (&["--policy", "deadline"], "possible values"),
        (&["--disturbance", "poisson"], "possible values"),
        (&["--seed", "x"], "--seed"),
        (&["more"], "unexpected argument"),
    ] {
        let output = output(program().args(arguments));
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(says), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty());
    }
    let mut many = program();
    for _ in 0..16 {
        many.args(["--share", "1/100"]);
    }
    let output_of_many = output(&mut many);
    let error = String::from_utf8_lossy(&output_of_many.stderr);
    assert!(error.contains("1 to 15"), "{error}");
    for (arguments, says) in [
        (&["--cpu", "4000", "--seconds", "1"][..], "processor 4000"),
        (&["--extension", "/dev/null"], "the manager's domain"),
        (&["--extension", "/nowhere.px"], "nowhere"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cpu-manager"));
        if arguments[0] != "--extension" {
            command.arg("--extension").arg(built());
        }
        let output = output(command.args(arguments));
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains(says), "{arguments:?}: {error}");
    }
}

/// A process of an experiment that is told nonsense says so and ends.
#[test]
fn roles_are_told_nonsense() {
    use std::io::Write;
    let _alone = alone();
    for (text, says) in [
        ("", "standard input ended"),
        ("{}\n", "no setup"),
        ("\u{0}\u{1}\n", "no setup"),
        (
            "{\"role\":{\"Client\":5},\"cpu\":0,\"seconds\":5,\"common\":null}\nsoon\n",
            "no time",
        ),
        (
            "{\"role\":{\"Client\":5},\"cpu\":99999,\"seconds\":5,\"common\":null}\n",
            "processor 99999",
        ),
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cpu-manager"))
            .arg("--role")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut input = child.stdin.take().expect("a pipe");
        // It may have ended by then.
        let _ = input.write_all(text.as_bytes());
        drop(input);
        let output = child.wait_with_output().expect("it ends");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && error.contains(says),
            "{text:?}: {error}"
        );
    }
}
