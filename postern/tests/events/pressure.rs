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
    group: PathBuf,
    file: PathBuf,
    child: Option<Child>,
}

impl Thrashing {
    fn begin() -> Result<Thrashing, String> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let (top, limit) = memory_groups(&mounts).ok_or("no control groups limit memory")?;
        let name = format!("postern-pressure-{}", std::process::id());
        let group = top.join(&name);
        let failed = |what: &Path, error| format!("{}: {error}", what.display());
        std::fs::create_dir(&group).map_err(|error| failed(&group, error))?;
        let mut thrashing = Thrashing {
            // A file in memory could not be written back.
            file: Path::new(env!("CARGO_TARGET_TMPDIR")).join(name),
            group,
            child: None,
        };
        let limit = thrashing.group.join(limit);
        // Opened as the kernel made it: where nobody limits memory there is none.
        let opened = OpenOptions::new().write(true).open(&limit);
        let limited = opened.and_then(|mut file| file.write_all(LIMIT.as_bytes()));
        limited.map_err(|error| failed(&limit, error))?;
        // It ends with this process, whatever becomes of that.
        let script = r#"echo $$ > "$0/cgroup.procs" || exit
            while kill -0 "$2"; do dd if=/dev/zero of="$1" bs=1M count=48 conv=notrunc; done"#;
        let child = Command::new("sh")
            .args(["-c", script])
            .args([&thrashing.group, &thrashing.file])
            .arg(std::process::id().to_string())
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
        // Whoever is killed is in the group for a moment more.
        let removed = || std::fs::remove_dir(&self.group).is_ok();
        while !removed() && self.group.exists() {
            std::thread::yield_now();
        }
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Where the groups that limit memory are mounted, and the name of the limit. At the top, for in
/// the second version no group with processes in it has others with limits.
fn memory_groups(mounts: &str) -> Option<(PathBuf, &'static str)> {
    let mut all = mounts.lines().filter_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let place = Path::new(mount.split(' ').nth(4)?).to_owned();
        let mut system = system.split(' ');
        let (kind, options) = (system.next()?, system.nth(1)?);
        match kind {
            "cgroup" if options.split(',').any(|one| one == "memory") => {
                Some((place, "memory.limit_in_bytes"))
            }
            "cgroup2" => {
                let given = std::fs::read_to_string(place.join("cgroup.subtree_control")).ok()?;
                let has = given.split_whitespace().any(|one| one == "memory");
                has.then_some((place, "memory.max"))
            }
            _ => None,
        }
    });
    all.next()
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
    // A group's own, where groups have it.
    let own = thrashing.group.join("memory.pressure");
    for (domain, _) in waiting.iter().filter(|_| own.exists()) {
        let event = Event::group_pressure(&own, Duration::from_millis(1), Duration::from_secs(2));
        let event = domain.on(event, "on").unwrap();
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
