//! SQLite's shell, unmodified, on files in the machine: the same as the host's compiler makes it of
//! the same sources, in memory and on a disk that stays. Two that write wait for each other, who
//! dies in the middle leaves nothing of it, and neither does a machine whose power goes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use postern_aegis_machine::emulator::{self, Ended, Machine};
use postern_exos_fs::check;
use postern_exos_machine::images::image::Image;
use postern_exos_machine::{build, place, programs, software};

/// Where scripts of the test and what they read are on the host.
fn scripts() -> PathBuf {
    place::sources().join("programs/scripts")
}

fn library() -> PathBuf {
    place::sources().join("../../examples/sqlite/tests/library.sql")
}

/// The host's program of the same sources, in a folder.
fn native(program: &programs::Program, folder: &Path) {
    // It takes a minute to be optimized, and does the same without.
    let flags = program.flags.iter().filter(|flag| !flag.starts_with("-O"));
    let built = Command::new("gcc")
        .args(flags)
        .args(&program.sources)
        .arg("-o")
        .arg(folder.join("sqlite3"))
        .args(["-w", "-lm"])
        .status();
    assert!(built.expect("gcc").success());
}

/// What a script says on the host, with the program in a folder, in another folder.
fn outside(script: &str, folder: &Path, work: &Path) -> String {
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let output = Command::new("timeout")
        .args(["120", "sh"])
        .arg(scripts().join(script))
        .current_dir(work)
        .env("FILES", library().parent().expect("a folder"))
        .env("PATH", path)
        .env("LC_ALL", "C")
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

/// Machines with one disk.
struct Guest {
    folder: tempfile::TempDir,
    files: Vec<(String, Vec<u8>)>,
    image: PathBuf,
}

impl Guest {
    fn new(programs: &[programs::Program]) -> Guest {
        let mut files = programs::make(programs).expect("they compile");
        for path in [
            library(),
            scripts().join("database.sh"),
            scripts().join("database-again.sh"),
        ] {
            let name = path.file_name().expect("a name").to_string_lossy();
            let bytes = std::fs::read(&path).expect("a file");
            files.push((name.into_owned(), bytes));
        }
        files.push(("init".to_owned(), b"sh /bin/begin".to_vec()));
        files.push(("services.list".to_owned(), b"fsd\nramd /tmp\n".to_vec()));
        let folder = tempfile::tempdir().expect("a folder");
        let image = folder.path().join("disk");
        Image::make(&image, 32 << 20, true).expect("an image");
        Guest {
            folder,
            files,
            image,
        }
    }

    /// Runs a script, and kills the emulator at a line `cut`, as nothing inside expects.
    fn run(&self, script: &str) -> Ended {
        let begun = Instant::now();
        let mut files = self.files.clone();
        let script = format!("export HOME=/ FILES=/bin\n{script}");
        files.push(("begin".to_owned(), script.into_bytes()));
        let software = software::prepare(&files, self.folder.path()).expect("an archive");
        let pid = self.folder.path().join("pid");
        let machine = Machine {
            memory: 256,
            limit: Duration::from_secs(200),
            disk: true,
            image: Some(self.image.clone().into()),
            more: vec!["-pidfile".into(), pid.clone().into()],
            ..Machine::default()
        };
        let cut = |line: &str| {
            println!("{line}");
            if line.trim() == "cut" {
                let pid = std::fs::read_to_string(&pid).expect("the emulator's number");
                let killed = Command::new("kill").args(["-9", pid.trim()]).status();
                assert!(killed.is_ok_and(|status| status.success()));
            }
        };
        let ended = machine.run(&software, cut).expect("a machine");
        println!("{:.1} seconds", begun.elapsed().as_secs_f64());
        let mut image = Image::open(&self.image, false).expect("the image");
        let report = check(&mut image).expect("a file system");
        assert!(report.problems.is_empty(), "{:#?}", report.problems);
        ended
    }

    /// What a script says that ends well.
    fn says(&self, script: &str) -> String {
        let ended = self.run(script);
        assert!(ended.status.is_well(), "{}", ended.status);
        said(&ended)
    }
}

/// What was said behind the kernel's own words.
fn said(ended: &Ended) -> String {
    let lines = ended.lines.iter();
    let lines = lines.skip_while(|line| !line.starts_with("aegis: "));
    let lines: Vec<&str> = lines.skip(1).map(|line| line.trim_end()).collect();
    lines.join("\n").trim_end().to_owned()
}

/// Lines without what ends them.
fn lines(text: &str) -> Vec<&str> {
    text.trim_end().lines().map(str::trim_end).collect()
}

/// A row is committed; then the machine stops in the middle of a transaction, whose pages are on
/// the disk in part.
const FIRST_CUT: &str = r#"cd /jobs
sqlite3 power.db "create table t(x integer primary key, y text); create index i on t(y);
	with recursive n(x) as (select 1 union all select x + 1 from n where x < 3000)
	insert into t select x, hex(x * 77) || 'some text to fill pages' from n"
cp power.db before.db
sqlite3 rows.db 'create table t(x); insert into t values (1)'
sqlite3 power.db 'pragma cache_size = 10; begin; update t set y = x || y; delete from t where x % 3 = 0' \
	'.shell sync; echo cut; sleep 1000'
"#;

/// The transaction is undone; another row is committed, and the power goes at once. Otherwise than
/// by `extra`, SQLite does not wait until the journal's removal is on the disk.
const SECOND_CUT: &str = r#"cd /jobs
[ -s power.db-journal ] && echo there is a journal
cmp -s power.db before.db || echo pages were written
sqlite3 power.db 'pragma integrity_check; select count(*) from t'
[ -s power.db-journal ] || echo the journal is gone
cmp -s power.db before.db && echo the file is as before
sqlite3 rows.db 'pragma synchronous = extra; insert into t values (2)' && echo cut
sleep 1000
"#;

const AFTER: &str = r#"cd /jobs
cmp -s power.db before.db && echo the file is as before
sqlite3 rows.db 'pragma integrity_check; select x from t'
"#;

#[test]
fn a_database_is_the_same_as_on_the_host() {
    if !emulator::is_there() {
        return println!("SKIPPED: no qemu-system-x86_64; `make setup-exos` installs it");
    }
    build::all().expect("the library and the root environment build");
    let mut all = programs::foreign().expect("the sources of SQLite");
    all.retain(|program| program.name == "sqlite3");
    let [sqlite] = &all[..] else {
        panic!("{all:?}");
    };
    let folder = tempfile::tempdir().expect("a folder");
    native(sqlite, folder.path());
    let work = folder.path().join("work");
    std::fs::create_dir(&work).expect("a folder");
    let first = outside("database.sh", folder.path(), &work);
    let again = outside("database-again.sh", folder.path(), &work);

    all.extend(programs::commands().expect("the tools"));
    all.extend(programs::of("services").expect("the services"));
    let guest = Guest::new(&all);
    // A service may be later than the shell.
    let memory = "until cd /tmp 2>/dev/null; do sleep 0.2; done\n. /bin/database.sh\n";
    let disk = "until mkdir /jobs 2>/dev/null; do sleep 0.2; done\ncd /jobs\n. /bin/database.sh\n";
    assert_eq!(lines(&guest.says(memory)), lines(&first));
    assert_eq!(lines(&guest.says(disk)), lines(&first));
    let after_a_boot = "until cd /jobs 2>/dev/null; do sleep 0.2; done\n. /bin/database-again.sh\n";
    assert_eq!(lines(&guest.says(after_a_boot)), lines(&again));

    assert!(said(&guest.run(FIRST_CUT)).contains("cut"));
    let wanted = "there is a journal\npages were written\nok\n3000\nthe journal is gone\n\
        the file is as before\ncut";
    assert!(said(&guest.run(SECOND_CUT)).starts_with(wanted));
    let wanted = ["the file is as before", "ok", "1", "2"];
    assert_eq!(lines(&guest.says(AFTER)), wanted);
}
