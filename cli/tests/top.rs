//! `postern top` beside shared domains in all states.

use crate::program::{Run, extension, folder, postern};
use crate::share::Sharing;

use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::{Duration, Instant};

use postern::{CommonMemory, Domain, Image};
use rustix::process::{Signal, kill_process};
use serde_json::Value;

const SOURCE: &str = "
#include <stdint.h>
static volatile int n, go, here;
int add(int by) { return n += by; }
void hold(void) { here = 1; while (!go); }
int is_held(void) { return here; }
void release(void) { go = 1; }
int broken(void) { return *(volatile int *)8; }
void on_event(uint32_t event, uint64_t data) { n += data; }
";

/// The command, about one socket.
fn top(sharing: &Sharing, options: &[&str]) -> Run {
    let socket = sharing.socket.to_str().unwrap();
    postern(&[&["top", "shown", "--socket", socket], options].concat())
}

/// What it says of the only domain in one refresh.
fn shown(sharing: &Sharing) -> Value {
    let mut all = top(sharing, &["--json", "-n", "1"]).json(0);
    let domains = all["domains"].as_array_mut().unwrap();
    assert_eq!(domains.len(), 1);
    domains.remove(0)
}

/// Processes say what they did once a second.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn image(name: &str) -> (String, Image) {
    let file = extension(name, SOURCE);
    let image = Image::load(folder().join(&file)).unwrap();
    (file, image)
}

fn call(domain: &Domain, name: &str) {
    domain.func::<fn()>(name).unwrap().call().unwrap();
}

#[test]
fn who_is_attached_and_what_they_do() {
    let (file, image) = image("top-shown");
    let sharing = Sharing::new("shown", &file);
    let builder = Domain::shared_at(&sharing.socket, &image).unwrap();
    let domain = builder.deadline(None).build().unwrap();
    let add = domain.func::<fn(i32) -> i32>("add").unwrap();
    (0..5).for_each(|by| drop(add.call(by)));
    let upcall = domain.upcall("on_event").unwrap().attach().unwrap();
    upcall.send(1, 1);
    std::thread::scope(|scope| {
        scope.spawn(|| call(&domain, "hold"));
        until("it is inside", || {
            let held = domain.func::<fn() -> i32>("is_held").unwrap();
            held.call().unwrap() == 1
        });
        until("the sums", || {
            let sums = shown(&sharing);
            sums["upcalls"]["delivered"] == 1 && sums["calls"].as_u64().unwrap() >= 6
        });
        let shown = shown(&sharing);
        assert_eq!(
            (&shown["state"], &shown["poison"]),
            (&"open".into(), &Value::Null)
        );
        let hash: String = image.hash().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(shown["hash"], hash);
        assert!(shown["image"].as_str().unwrap().ends_with("top-shown.px"));
        let processes = shown["processes"].as_array().unwrap();
        assert_eq!(processes.len(), 1, "{shown}");
        let own = &processes[0];
        assert_eq!(own["pid"], std::process::id());
        assert_eq!(
            (&own["confirmed"], &own["handlers"]),
            (&true.into(), &1.into())
        );
        assert_eq!(own["inside"][0]["function"], "hold");
        assert_eq!(own["inside"][0]["threads"], 1);
        assert!(own["command"].as_str().unwrap().contains("all"));
        let text = top(&sharing, &["-b", "-n", "1"]).good();
        assert!(text.contains("1 process, 1 thread inside"), "{text}");
        assert!(text.contains(" hold ") && !text.contains('\x1b'), "{text}");
        call(&domain, "release");
    });
    // What this process has done stays when it has gone.
    drop(upcall);
    drop((add, domain));
    let metrics = top(&sharing, &["--prometheus"]).good();
    let value = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} in {metrics}")).trim()
    };
    assert_eq!(value("postern_shared_processes{domain=\"shown\"}"), "0");
    assert_eq!(value("postern_shared_broker{domain=\"shown\"}"), "1");
    let calls = value("postern_shared_calls_total{domain=\"shown\"}");
    assert!(calls.parse::<u64>().unwrap() >= 8, "{metrics}");
    let delivered = "postern_shared_upcalls_total{domain=\"shown\",what=\"delivered\"}";
    assert_eq!(value(delivered), "1");
}

#[test]
fn a_poison_has_its_reason_and_a_reset_is_counted() {
    let (file, image) = image("top-poisoned");
    let sharing = Sharing::new("poisoned", &file);
    let domain = sharing.attach(&image).unwrap();
    let broken = domain.func::<fn() -> i32>("broken").unwrap();
    assert!(broken.call().is_err());
    until("it is told", || shown(&sharing)["faults"] == 1);
    let poisoned = shown(&sharing);
    assert_eq!(poisoned["state"], "poisoned");
    let reason = poisoned["poison"].as_str().unwrap();
    assert!(reason.contains("fault (null-pointer)"), "{reason}");
    let text = top(&sharing, &["-b", "-n", "1"]).good();
    assert!(text.contains("poisoned (a call of process"), "{text}");
    until("a reset", || domain.reset().is_ok());
    let open = shown(&sharing);
    assert_eq!(
        (&open["state"], &open["resets"]),
        (&"open".into(), &1.into())
    );
}

/// Nobody is attached any more who would have noticed.
#[test]
fn who_ended_inside_is_shown() {
    const OTHER: &str = "POSTERN_TEST_TOP";
    let test = "top::who_ended_inside_is_shown";
    if let Some(socket) = std::env::var_os(OTHER) {
        let image = Image::load(folder().join("top-ended.px")).unwrap();
        let builder = Domain::shared_at(socket.as_ref(), &image).unwrap();
        call(&builder.deadline(None).build().unwrap(), "hold");
        std::process::exit(0);
    }
    let (file, _) = image("top-ended");
    let sharing = Sharing::new("ended", &file);
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads=1"])
        .env(OTHER, &sharing.socket)
        .spawn()
        .unwrap();
    until("it is inside", || shown(&sharing)["threads_inside"] == 1);
    other.kill().unwrap();
    other.wait().unwrap();
    until("its end", || {
        let seen = &shown(&sharing)["processes"][0];
        seen["ended"] == true && seen["inside"][0]["function"] == "hold"
    });
    let text = top(&sharing, &["-b", "-n", "1"]).good();
    assert!(text.contains("(ended)"), "{text}");
}

#[test]
fn all_brokers_of_a_folder_and_what_is_left_of_one() {
    let (file, _) = image("top-many");
    let directory = tempfile::tempdir().unwrap();
    let sockets = directory.path().join("postern");
    std::fs::create_dir(&sockets).unwrap();
    let one = Sharing::at(sockets.join("one"), "one", &file, &[]);
    let other = Sharing::at(sockets.join("other"), "other", &file, &[]);
    let top = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_postern"))
            .arg("top")
            .args(arguments)
            .env("XDG_RUNTIME_DIR", directory.path())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), text, complaint)
    };
    kill_process(other.pid(), Signal::KILL).unwrap();
    until("its end", || {
        let (code, text, _) = top(&["--json", "-n", "1"]);
        assert_eq!(code, Some(0));
        let all: Value = serde_json::from_str(&text).unwrap();
        let states = |key: &str| [0, 1].map(|at| all["domains"][at][key].clone());
        assert_eq!(states("name"), ["one".into(), Value::from("other")]);
        states("broker") == ["runs".into(), Value::from("ended")]
            && states("state") == ["new".into(), Value::Null]
    });
    let (code, text, _) = top(&["-b", "-n", "2", "-d", "0.1"]);
    assert_eq!(code, Some(0));
    assert_eq!(text.matches("its broker has ended").count(), 2, "{text}");
    let (code, _, complaint) = top(&["other"]);
    assert_eq!(code, Some(2));
    assert!(complaint.contains("start `postern share"), "{complaint}");
    assert_eq!(top(&["none"]).0, Some(2));
    assert_eq!(top(&["../name"]).0, Some(2));
    drop(one);
    std::fs::remove_dir_all(&sockets).unwrap();
    let (code, text, _) = top(&["-b", "-n", "1"]);
    assert_eq!(
        (code, &*text),
        (Some(0), "0 shared domains, 0 processes, 0 threads inside\n")
    );
}

/// The number is another namespace's, or a lie.
#[test]
fn whose_number_the_kernel_does_not_confirm_is_marked() {
    /// The number and the namespace of the first seat's process, in words.
    const FIRST: [u64; 2] = [64, 66];
    let (file, image) = image("top-numbers");
    let sharing = Sharing::new("numbers", &file);
    let domain = sharing.attach(&image).unwrap();
    let memory = CommonMemory::from_broker(&sharing.socket).unwrap();
    let words = std::fs::File::from(memory.descriptor().try_clone_to_owned().unwrap());
    let write = |at: u64, value: u32| words.write_all_at(&value.to_le_bytes(), 4 * at).unwrap();
    let text = || top(&sharing, &["-b", "-n", "1"]).good();
    write(FIRST[0], 1);
    let forged = shown(&sharing)["processes"][0].clone();
    assert_eq!(
        (&forged["pid"], &forged["ended"]),
        (&1.into(), &false.into())
    );
    assert_ne!(forged["confirmed"], true);
    assert!(text().contains(" 1? "), "{}", text());
    write(FIRST[1], 1);
    let elsewhere = shown(&sharing)["processes"][0].clone();
    assert_eq!(
        (&elsewhere["here"], &elsewhere["command"]),
        (&false.into(), &Value::Null)
    );
    assert!(text().contains(" 1* "), "{}", text());
    drop(domain);
}

/// Whoever has the memory can write all that is read of it.
#[test]
fn whatever_the_memory_says_is_shown() {
    /// Bytes in front of the domain's data, but for the words by which it is one.
    const FRONT: std::ops::Range<u64> = 256..4 * (1024 + 64 * 4096 + 3072);
    let (file, _) = image("top-forged");
    let sharing = Sharing::new("forged", &file);
    let memory = CommonMemory::from_broker(&sharing.socket).unwrap();
    let words = std::fs::File::from(memory.descriptor().try_clone_to_owned().unwrap());
    let mut seed = 0x9e37_79b9_u32;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        seed
    };
    for round in 0..4 {
        let forged: Vec<u8> = (FRONT.start..FRONT.end)
            .step_by(4)
            .flat_map(|_| {
                match round {
                    0 => u32::MAX,
                    1 => 0x1b5b_324a,
                    _ => random(),
                }
                .to_le_bytes()
            })
            .collect();
        words.write_all_at(&forged, FRONT.start).unwrap();
        words.write_all_at(&random().to_le_bytes(), 4).unwrap();
        let shown = shown(&sharing);
        // Only the kernel says who has a seat.
        let processes = shown["processes"].as_array().unwrap();
        assert!(processes.iter().all(|process| process["ended"] == true));
        let text = top(&sharing, &["-b", "-n", "1"]).good();
        assert!(!text.contains('\x1b'));
        top(&sharing, &["--prometheus"]).good();
    }
}
