//! Memory gets short: in a control group of a test's own, in which a process writes a file that is
//! larger than what the group may have.

use super::{domains, handled, number, until};
use postern::{Event, EventError};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const PRI: u64 = 2;
/// What the group may have; the file has three times as much.
const LIMIT: &str = "16777216";

/// A process that always waits for memory, until this is dropped.
struct Thrashing {
    /// The first limits its memory; all have it.
    groups: Vec<PathBuf>,
    file: PathBuf,
    child: Option<Child>,
}

impl Thrashing {
    fn begin() -> Result<Thrashing, String> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mounted = |kind, option| mounts.lines().find_map(|line| place(line, kind, option));
        let name = format!("postern-pressure-{}", std::process::id());
        let first = mounted("cgroup", "memory").map(|top| (top, "memory.limit_in_bytes"));
        let second = mounted("cgroup2", "");
        let limited = first.or_else(|| Some((second.clone()?, "memory.max")));
        let (top, limit) = limited.ok_or("no control groups are mounted")?;
        let mut thrashing = Thrashing {
            groups: Vec::new(),
            // A file in memory could not be written back.
            file: Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name),
            child: None,
        };
        let failed = |what: &Path, error| format!("{}: {error}", what.display());
        for top in [Some(&top), second.as_ref().filter(|other| **other != top)] {
            let Some(group) = top.map(|top| top.join(&name)) else {
                continue;
            };
            std::fs::create_dir(&group).map_err(|error| failed(&group, error))?;
            thrashing.groups.push(group);
        }
        let limit = thrashing.groups[0].join(limit);
        // Opened as the kernel made it: where nobody limits memory there is none.
        let opened = OpenOptions::new().write(true).open(&limit);
        let limited = opened.and_then(|mut file| file.write_all(LIMIT.as_bytes()));
        limited.map_err(|error| failed(&limit, error))?;
        // It ends with this process, whatever becomes of that.
        let script = r#"parent=$1; shift
            for group; do echo $$ > "$group/cgroup.procs" || exit; done
            while kill -0 $parent; do dd if=/dev/zero of="$0" bs=1M count=48 conv=notrunc; done"#;
        let child = Command::new("sh")
            .args(["-c", script])
            .arg(&thrashing.file)
            .arg(std::process::id().to_string())
            .args(&thrashing.groups)
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        thrashing.child = Some(child.unwrap());
        Ok(thrashing)
    }
}

impl Drop for Thrashing {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It and what it has started: they are a process group of their own.
            unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
            let _ = child.wait();
        }
        for group in &self.groups {
            // Whoever is killed is in the group for a moment more.
            while std::fs::remove_dir(group).is_err() && group.exists() {
                std::thread::yield_now();
            }
        }
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Where control groups of a kind, with an option, are mounted, if this line of `mountinfo` says
/// so. Groups are made at the top, for in the second version none with processes in it has others
/// with limits.
fn place(line: &str, kind: &str, option: &str) -> Option<PathBuf> {
    let (mount, system) = line.split_once(" - ")?;
    let mut system = system.split(' ');
    let is_kind = system.next()? == kind;
    let has = option.is_empty() || system.nth(1)?.split(',').any(|one| one == option);
    let place = mount.split(' ').nth(4)?;
    (is_kind && has).then(|| PathBuf::from(place))
}

#[test]
fn it_is_told_when_memory_gets_short() {
    let mut waiting = Vec::new();
    for (way, domain) in domains() {
        let event = Event::memory_pressure(Duration::from_millis(1), Duration::from_secs(2));
        match domain.on(event, "on") {
            Ok(event) => waiting.push((domain, event)),
            Err(error @ EventError::Pressure { .. }) => {
                eprintln!("NOT TESTED here, {way:?}: {error}")
            }
            Err(error) => panic!("{error}"),
        }
    }
    let thrashing = match Thrashing::begin() {
        Ok(thrashing) => thrashing,
        Err(error) => return eprintln!("NOT TESTED here: {error}"),
    };
    for (domain, event) in &waiting {
        let _attached = domain.attach().unwrap();
        until("memory that is short", || handled(event) != 0);
        assert_eq!(number(domain, "last_of"), PRI);
        // A look at it takes it back, so an interrupted thread has none.
        assert_eq!(event.counters().by_current, 0);
    }
    // A group's own, which groups of the first version do not have.
    let files = thrashing.groups.iter();
    let mut own = files.map(|group| group.join("memory.pressure"));
    let Some(own) = own.find(|file| file.exists()) else {
        return eprintln!("NOT TESTED here: no control group has memory.pressure");
    };
    let all = waiting.iter().map(|(domain, _)| {
        let event = Event::group_pressure(&own, Duration::from_millis(1), Duration::from_secs(2));
        domain.on(event, "on").unwrap()
    });
    for event in all.collect::<Vec<_>>() {
        until("memory that is short in the group", || handled(&event) != 0);
    }
}

#[test]
fn what_cannot_be_read_says_so() {
    for (_, domain) in domains() {
        let event = Event::group_pressure("/no/such/file", Duration::ZERO, Duration::ZERO);
        let error = domain.on(event, "on").unwrap_err().to_string();
        assert!(
            error.contains("/no/such/file") && error.contains("CONFIG_PSI"),
            "{error}"
        );
    }
}
