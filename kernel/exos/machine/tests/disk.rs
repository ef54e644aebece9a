//! The disk in the guest: files stay over boots, and over an end that nobody expects; a full disk,
//! a damaged one, and one whose power goes at every moment.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use postern_aegis_machine::emulator::{self, Ended, Machine};
use postern_exos_abi::file::{Files, Kind};
use postern_exos_fs::memory::Ticks;
use postern_exos_fs::{Block, Disk, FRAMES, FileSystem, Lru, check};
use postern_exos_machine::images::image::Image;
use postern_exos_machine::images::log::{Event, Log, recorded};
use postern_exos_machine::images::overlay::Overlay;
use postern_exos_machine::images::replay::{Plan, replay};
use postern_exos_machine::images::tree;
use postern_exos_machine::{build, place, programs, software};

/// One machine at a time: each has enough to do.
static ONE: Mutex<()> = Mutex::new(());

/// A machine that runs a script with the disk under `/`.
struct Guest {
    folder: tempfile::TempDir,
    files: Vec<(String, Vec<u8>)>,
    limit: u64,
}

impl Guest {
    /// With the shell, its tools and what reads files of servers; nothing, if there is no emulator.
    fn new() -> Option<Guest> {
        if !emulator::is_there() {
            println!("SKIPPED: no qemu-system-x86_64; `make setup-exos` installs it");
            return None;
        }
        build::all().expect("the library and the root environment build");
        let mut all = programs::commands().expect("the tools");
        all.extend(programs::of("services").expect("the services"));
        all.extend(programs::of("machine").expect("what makes promises"));
        let mut files = programs::make(&all).expect("they compile");
        files.push(("init".to_owned(), b"sh /bin/script".to_vec()));
        Some(Guest {
            folder: tempfile::tempdir().expect("a folder"),
            files,
            limit: 300,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A fresh image of so many MiB.
    fn image(&self, size: u64) -> PathBuf {
        let path = self.path("disk");
        Image::make(&path, size << 20, true).expect("an image");
        path
    }

    /// Runs a script with a disk; what is heard may act.
    fn run(
        &self,
        script: &str,
        services: &str,
        disk: Option<std::ffi::OsString>,
        heard: impl FnMut(&str),
    ) -> Ended {
        let _one = ONE.lock();
        let mut files = self.files.clone();
        files.push(("script".to_owned(), script.as_bytes().to_vec()));
        files.push(("services.list".to_owned(), services.as_bytes().to_vec()));
        let software = software::prepare(&files, self.folder.path()).expect("an archive");
        let pid = self.path("pid");
        let machine = Machine {
            limit: Duration::from_secs(self.limit),
            disk: disk.is_some(),
            image: disk,
            more: vec!["-pidfile".into(), pid.into()],
            ..Machine::default()
        };
        machine.run(&software, heard).expect("a machine")
    }

    /// What a script says with an image under `/`; it must end well.
    fn says(&self, script: &str, image: &Path) -> String {
        let ended = self.run(script, SERVICES, Some(image.into()), |_| {});
        let said = said(&ended);
        assert!(ended.status.is_well(), "{ended:?}");
        said
    }

    /// Kills the emulator, as nothing inside expects.
    fn kill(&self) {
        let pid = std::fs::read_to_string(self.path("pid")).expect("the emulator's number");
        let killed = Command::new("kill").args(["-9", pid.trim()]).status();
        assert!(killed.is_ok_and(|status| status.success()));
    }
}

const SERVICES: &str = "fsd\nramd /tmp\n";

/// What was said behind the kernel's own words.
fn said(ended: &Ended) -> String {
    let lines = ended.lines.iter();
    let lines = lines.skip_while(|line| !line.starts_with("aegis: "));
    let lines: Vec<&str> = lines.skip(1).map(String::as_str).collect();
    lines.join("\n")
}

fn no_problems(image: &Path) {
    let mut image = Image::open(image, false).expect("the image");
    let report = check(&mut image).expect("a file system");
    assert!(report.problems.is_empty(), "{:#?}", report.problems);
}

#[test]
fn files_stay() {
    let Some(guest) = Guest::new() else { return };
    let image = guest.image(16);
    let first = "mkdir /folder && seq 3000 > /folder/numbers && echo one > /word; ls /; ls /bin/sh /dev/null";
    let said = guest.says(first, &image);
    assert_eq!(said, "folder\nword\n/bin/sh\n/dev/null");
    no_problems(&image);
    // What was synchronised before the emulator is killed is there, and so is all from before. What
    // was not is brought to the disk in quiet times.
    let second = "cat /word; wc -l /folder/numbers; echo two > /folder/two; sync; echo synced
echo late > /late; while true; do sleep 1; echo tick; done";
    let ended = guest.run(second, SERVICES, Some(image.clone().into()), |line| {
        if line == "tick" && is_there(&image, "/late") {
            guest.kill();
        }
    });
    let wanted = ["one", "3000 /folder/numbers", "synced", "tick"];
    assert!(said_all(&ended, &wanted), "{ended:?}");
    assert!(is_there(&image, "/folder/two") && is_there(&image, "/late"));
    no_problems(&image);
    let third = "cat /folder/two /word; rm -r /folder; ls /";
    assert_eq!(guest.says(third, &image), "two\none\nlate\nword");
    no_problems(&image);
}

/// Whether an image has a file, as a machine would find it that is started now.
fn is_there(image: &Path, path: &str) -> bool {
    let disk = Overlay::new(Image::open(image, false).expect("the image"));
    let mut frames = vec![Block::ZERO; FRAMES];
    let mounted = FileSystem::mount(disk, &mut frames, Lru::new(), Ticks::new());
    // It may be written just now.
    mounted.is_ok_and(|mut files| tree::follow(&mut files, path.as_bytes()).is_ok())
}

fn said_all(ended: &Ended, lines: &[&str]) -> bool {
    let has = |line: &&str| ended.lines.iter().any(|said| said.trim() == *line);
    lines.iter().all(has)
}

/// What is true of files in memory is so of the disk's.
#[test]
fn c_has_the_disks_files() {
    let Some(mut guest) = Guest::new() else {
        return;
    };
    let mut tests = programs::of("tests").expect("the tests");
    tests.retain(|test| test.name == "served");
    guest
        .files
        .extend(programs::make(&tests).expect("they compile"));
    let image = guest.image(16);
    let said = guest.says("mkdir /jobs && served /jobs there && echo well", &image);
    assert!(
        said.lines().any(|line| line == "well") && !said.contains("FAILED"),
        "{said}"
    );
    no_problems(&image);
}

#[test]
fn without_a_disk_all_goes_on() {
    let Some(guest) = Guest::new() else { return };
    let ended = guest.run(
        "ls /script; echo x > /tmp/x && cat /tmp/x",
        SERVICES,
        None,
        |_| {},
    );
    assert!(ended.status.is_well(), "{ended:?}");
    assert!(
        said_all(&ended, &["fsd: there is no disk", "x", "/script"]),
        "{ended:?}"
    );
}

/// A disk without a file system is left as it is, unless the server is told otherwise.
#[test]
fn an_empty_disk_is_not_formatted_unasked() {
    let Some(guest) = Guest::new() else { return };
    let image = guest.path("disk");
    let empty = std::fs::File::create(&image).and_then(|file| file.set_len(8 << 20));
    empty.expect("an empty image");
    let ended = guest.run("ls /script", SERVICES, Some(image.clone().into()), |_| {});
    let why = "fsd: no superblock: format the disk first";
    assert!(
        ended.status.is_well() && said_all(&ended, &[why, "/script"]),
        "{ended:?}"
    );
    let mut bytes = std::fs::read(&image).expect("the image");
    assert!(bytes.iter().all(|byte| *byte == 0));
    let ended = guest.run(
        "echo x > /x; ls /",
        "fsd -f\n",
        Some(image.clone().into()),
        |_| {},
    );
    assert!(
        ended.status.is_well() && said_all(&ended, &["x"]),
        "{ended:?}"
    );
    bytes = std::fs::read(&image).expect("the image");
    assert!(bytes.iter().any(|byte| *byte != 0));
    no_problems(&image);
}

#[test]
fn a_full_disk_takes_what_fits() {
    let Some(guest) = Guest::new() else { return };
    let image = guest.image(2);
    let script = "echo kept > /kept; seq 1000 > /numbers
copies=0
while cp /bin/sh /copy$copies 2> /tmp/why; do copies=$((copies + 1)); done
cat /tmp/why
test $copies -gt 0 && echo some
sync
cat /kept; wc -l /numbers
rm /copy*
cp /bin/sh /again && cmp /bin/sh /again && echo again
for name in 1 2 3; do cp /again /again$name; done 2> /dev/null
rm /again*; ls /";
    let said = guest.says(script, &image);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("No space left"), "{said}");
    let rest = ["some", "kept", "1000 /numbers", "again", "kept", "numbers"];
    assert_eq!(lines[1..], rest, "{said}");
    no_problems(&image);
}

/// Some of what is on an image is changed: whatever the guest makes of it, it says so and goes on.
#[test]
fn damaged_disks_do_no_harm() {
    let Some(guest) = Guest::new() else { return };
    let seeds = number("POSTERN_DAMAGED_DISKS", 4);
    let image = guest.image(4);
    let begin = "mkdir -p /a/b /c; for name in 1 2 3 4 5 6 7 8 9; do seq 2000 > /a/$name; ln -s /a/$name /a/b/$name; cp /a/$name /c; done; sync";
    guest.says(begin, &image);
    let whole = std::fs::read(&image).expect("the image");
    let blocks = Image::open(&image, false).expect("the image").blocks() as usize;
    let used: Vec<usize> = (0..blocks)
        .filter(|block| whole[block * 4096..][..4096].iter().any(|byte| *byte != 0))
        .collect();
    for seed in 0..seeds {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bytes = whole.clone();
        for _ in 0..random.usize(1..40) {
            // What is used most stands in front.
            let among = [8, 80, used.len()][random.usize(..3)].min(used.len());
            let at = used[random.usize(..among)] * 4096 + random.usize(..4096);
            bytes[at] ^= 1 << random.u8(..8);
        }
        std::fs::write(&image, &bytes).expect("the image");
        let use_all = "find / > /tmp/all 2> /tmp/why; cat /a/* /c/* > /tmp/bytes 2> /tmp/why
for name in 1 2 3 4 5; do echo x > /a/new$name; rm /a/$name; mv /c/$name /a; rm -r /c/b; done 2> /tmp/why
sync; echo over";
        let ended = guest.run(use_all, SERVICES, Some(image.clone().into()), |_| {});
        assert!(
            ended.status.is_well() && said_all(&ended, &["over"]),
            "{ended:?}"
        );
        let panics = ended.lines.iter().any(|line| line.contains("panic"));
        assert!(!panics, "{ended:?}");
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().expect("a number"))
}

/// The power goes at moments of a run whose writes were recorded: what was promised is there.
/// `POSTERN_CUTS_SECONDS` says how long moments are looked at; 0: all of them.
#[test]
fn whenever_the_power_goes_promises_are_kept() {
    let Some(mut guest) = Guest::new() else {
        return;
    };
    guest.limit = 600;
    let seconds = number("POSTERN_CUTS_SECONDS", 30);
    let image = guest.image(16);
    let before = std::fs::read(&image).expect("the image");
    let log = guest.path("log");
    std::fs::write(&log, b"").expect("a record");
    let script = place::sources().join("programs/scripts/cuts.sh");
    let script = std::fs::read_to_string(script).expect("a script");
    let ended = guest.run(&script, SERVICES, Some(recorded(&image, &log)), |_| {});
    assert!(
        ended.status.is_well() && said_all(&ended, &["cuts are over"]),
        "{ended:?}"
    );
    no_problems(&image);
    let log = Log::read(&log).expect("a record");
    let flushes = log.events.iter().filter(|event| **event == Event::Flush);
    assert!(flushes.count() > 30, "{} events", log.events.len());
    let until = (seconds != 0).then(|| Instant::now() + Duration::from_secs(seconds));
    let mut disks = 0;
    // Moments that are far from each other first, and then those in between.
    for step in [64, 16, 4, 1] {
        let plan = Plan {
            step,
            first: step / 2,
            disks: 3,
            seed: number("SEED", 1),
            until,
        };
        let report = replay(before.clone(), &log, &plan);
        assert!(report.problems.is_empty(), "{:#?}", report.problems);
        assert!(report.promises > 20 || until.is_some(), "{report:?}");
        disks += report.disks;
    }
    println!("{} events, {disks} disks", log.events.len());
    assert!(disks > 20, "{disks}");
    lies_are_found(&before, &log);
}

/// A disk that loses what it was told before a flush: otherwise nothing was tried above.
fn lies_are_found(before: &[u8], log: &Log) {
    let events = log.events.iter().enumerate();
    let flushes = events.filter(|(_, event)| **event == Event::Flush);
    let flushes: Vec<usize> = flushes.map(|(at, _)| at).collect();
    let mut found = 0;
    let pairs: Vec<_> = flushes.windows(2).collect();
    for pair in pairs.iter().step_by(pairs.len() / 30 + 1) {
        let mut lossy = log.clone();
        lossy.events.drain(pair[0] + 1..pair[1]);
        let plan = Plan {
            step: usize::MAX,
            // Some events later, when something was promised.
            first: (pair[0] + 6).min(lossy.events.len()),
            disks: 1,
            seed: 1,
            until: None,
        };
        let report = replay(before.to_vec(), &lossy, &plan);
        assert_eq!(report.disks, 1);
        found += usize::from(!report.problems.is_empty());
    }
    println!("{found} lies were found");
    assert!(found > 0);
}

/// The tool of the host makes and reads what the machine has.
#[test]
fn the_host_reads_and_writes_images() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk");
    let run = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_exos-machine"))
            .arg("disk")
            .args(words)
            .current_dir(folder.path())
            .output()
            .expect("the command");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text)
    };
    std::fs::write(folder.path().join("from"), vec![7; 300_000]).expect("a file");
    assert_eq!(run(&["make", "disk", "--size", "8"]).0, Some(0));
    assert_eq!(run(&["make", "disk"]).0, Some(2));
    assert_eq!(run(&["put", "disk", "from", "/a"]).0, Some(0));
    assert_eq!(run(&["put", "disk", "from", "/no/a"]).0, Some(2));
    assert_eq!(run(&["get", "disk", "/a", "to"]).0, Some(0));
    let bytes = std::fs::read(folder.path().join("to")).expect("a file");
    assert!(bytes == vec![7; 300_000]);
    assert_eq!(run(&["list", "disk"]).1.trim(), "file   644     300000 /a");
    assert!(
        run(&["list", "disk", "--json"])
            .1
            .contains("\"path\":\"/a\",\"kind\":\"file\",\"size\":300000")
    );
    let (status, text) = run(&["check", "disk", "--json"]);
    assert!(
        status == Some(0) && text.contains("\"files\":2") && text.ends_with("\"problems\":[]}\n"),
        "{text}"
    );
    // A block of the table of nodes is not as it was.
    let mut bytes = std::fs::read(&path).expect("the image");
    // Behind the log, which has blocks of its kind, too.
    let mut behind = 114..bytes.len() / 4096;
    let table = behind.find(|block| bytes[block * 4096..].starts_with(b"ODED"));
    bytes[table.expect("a table") * 4096 + 200] ^= 1;
    std::fs::write(&path, bytes).expect("the image");
    assert_eq!(run(&["check", "disk"]).0, Some(1));
    assert_eq!(run(&["list", "disk"]).0, Some(2));
    std::fs::write(folder.path().join("none"), vec![0; 1 << 20]).expect("a file");
    assert_eq!(run(&["check", "none"]).0, Some(2));
}

/// A file of some megabytes goes through a small cache.
#[test]
fn the_image_of_the_host_is_the_guests() {
    let Some(guest) = Guest::new() else { return };
    let image = guest.image(32);
    let bytes: Vec<u8> = (0..8 << 20).map(|at: u32| ((at * 7) >> 3) as u8).collect();
    {
        let disk = Image::open(&image, true).expect("the image");
        let mut frames = vec![Block::ZERO; FRAMES];
        let mounted = FileSystem::mount(disk, &mut frames, Lru::new(), Ticks::new());
        let mut files = mounted.expect("a file system");
        let root = files.root();
        let file = files
            .create(root, b"large", Kind::File, 0o644, b"")
            .expect("a file");
        for (at, piece) in bytes.chunks(1 << 16).enumerate() {
            let done = files.write(file, (at << 16) as u64, piece);
            assert_eq!(done, Ok(piece.len()));
        }
        files.unmount().expect("an end");
    }
    let script =
        "cp /large /copy && cmp /large /copy && rm /large && mv /copy /moved && ls -l / | wc -l";
    let ended = guest.run(script, "fsd -c 256\n", Some(image.clone().into()), |_| {});
    assert!(ended.status.is_well(), "{ended:?}");
    let disk = Image::open(&image, false).expect("the image");
    let mut frames = vec![Block::ZERO; FRAMES];
    let disk = Overlay::new(disk);
    let mut files =
        FileSystem::mount(disk, &mut frames, Lru::new(), Ticks::new()).expect("a file system");
    let node = tree::follow(&mut files, b"/moved").expect("the file");
    assert!(tree::bytes(&mut files, node) == Ok(bytes));
    assert!(tree::follow(&mut files, b"/large").is_err());
}
