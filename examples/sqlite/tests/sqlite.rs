//! SQLite, confined, says what its plain build says, byte by byte; both read each other's files.

mod plain;

use plain::Plain;
use postern::{Access, CallError, Domain, FaultKind, Image, Policy, Rules};
use postern_example_sqlite::{Database, QueryError};
use postern_toolchain::project::{Built, Options, Project};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

const LIBRARY: &str = include_str!("library.sql");

/// Both builds; what is there from the last time is used again.
fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sqlite");
        Project::load(env!("CARGO_MANIFEST_DIR"))
            .and_then(|project| project.build(&Options::new(folder).native(), &mut |_| {}))
            .unwrap_or_else(|error| panic!("{error}"))
    })
}

fn confined(policy: Policy, deadline: Duration) -> Database {
    let image = Image::load(&built().extension).expect("SQLite loads");
    let domain = Domain::builder(&image)
        .deadline(Some(deadline))
        .policy(policy)
        .build()
        .expect("a domain");
    Database::new(domain).expect("it is SQLite")
}

fn patient(policy: Policy) -> Database {
    confined(policy, Duration::from_secs(60))
}

/// The plain build, whose one database belongs to one test at a time.
fn plain() -> (Plain, MutexGuard<'static, ()>) {
    static ONE: Mutex<()> = Mutex::new(());
    let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    (
        Plain::open_library(built().native.as_ref().expect("it was asked for")),
        alone,
    )
}

fn files(folder: &Path, access: Access) -> Policy {
    Policy::files(
        Rules::new()
            .grant("/data", folder, access)
            .expect("the folder is there"),
    )
}

/// Rows, or SQLite's number and message, as one text.
fn outcome(result: Result<Vec<u8>, QueryError>) -> (i32, Vec<u8>) {
    match result {
        Ok(rows) => (0, rows),
        Err(QueryError::Sql { status, message }) => (status, message.into_bytes()),
        Err(other) => panic!("{other}"),
    }
}

fn compare(database: &Database, plain: &Plain, sql: &str) {
    let (found, want) = (outcome(database.run(sql)), plain.call("query_run", sql));
    assert!(
        found == want,
        "{sql}\nconfined: {} {}\nplain: {} {}",
        found.0,
        String::from_utf8_lossy(&found.1),
        want.0,
        String::from_utf8_lossy(&want.1)
    );
}

#[test]
fn the_same_rows_in_memory() {
    let database = patient(Policy::compute());
    let (plain, _alone) = plain();
    database.open(":memory:").expect("opens");
    assert_eq!(plain.call("query_open", ":memory:").0, 0);
    for statements in LIBRARY.split_inclusive(";\n") {
        compare(&database, &plain, statements);
    }
    assert!(database.run("select count(*) from book").expect("rows") == b"20006\n");
    for wrong in [
        "select * from nowhere",
        "selec 1",
        "insert into author(id, name) values (1, 'again')",
        "select \"no such column\"",
        "select load_extension('x')",
        "attach '/tmp/other.db' as other; create table other.t(x)",
        "select zeroblob(2000000000)",
        "select 1; select 2; select abs(-9223372036854775808)",
    ] {
        if !wrong.starts_with("attach") {
            compare(&database, &plain, wrong);
        }
        assert!(database.run(wrong).is_err(), "{wrong}");
    }
    plain.close();
    database.close().expect("closes");
}

#[test]
fn both_read_what_the_other_wrote() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let database = patient(files(folder.path(), Access::ReadWrite));
    let (plain, _alone) = plain();

    database.open("/data/confined.db").expect("opens");
    database.run(LIBRARY).expect("runs");
    database.close().expect("closes");
    assert_eq!(plain.call("query_open", &path("plain.db")).0, 0);
    assert_eq!(plain.call("query_run", LIBRARY).0, 0);
    plain.close();
    let bytes = |name: &str| std::fs::read(folder.path().join(name)).expect("the file is there");
    assert!(
        bytes("confined.db") == bytes("plain.db"),
        "the two files differ"
    );

    // Each goes on with the other's file.
    let sql = "pragma integrity_check; insert into book(title) values ('new'); \
               select count(*), max(id), sum(price) from book";
    database.open("/data/plain.db").expect("opens");
    let rows = database.run(sql).expect("runs");
    assert!(
        rows.starts_with(b"ok\n20007|20007|"),
        "{}",
        String::from_utf8_lossy(&rows)
    );
    database.close().expect("closes");
    assert_eq!(plain.call("query_open", &path("confined.db")).0, 0);
    assert_eq!(plain.call("query_run", sql), (0, rows));
    plain.close();
    let names: Vec<_> = std::fs::read_dir(&folder).expect("readable").collect();
    assert_eq!(names.len(), 2, "journals stayed: {names:?}");
}

#[test]
fn a_journal_left_behind_is_rolled_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = patient(files(folder.path(), Access::ReadWrite));
    database.open("/data/a.db").expect("opens");
    database
        .run("create table t(x); insert into t values (1)")
        .expect("runs");
    // In the middle of a transaction whose pages have reached the file, everything of SQLite's is
    // gone.
    database
        .run("pragma cache_size = 1; begin; with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) \
              insert into t select i from n")
        .expect("runs");
    assert!(folder.path().join("a.db-journal").exists());
    database.domain().reset().expect("nobody is inside");
    database.open("/data/a.db").expect("opens again");
    assert_eq!(
        database
            .run("select count(*) from t; pragma integrity_check")
            .expect("runs"),
        b"1\nok\n"
    );
}

#[test]
fn the_policy_bounds_what_sql_can_reach() {
    let folder = tempfile::tempdir().expect("a folder");
    let writer = patient(files(folder.path(), Access::ReadWrite));
    writer.open("/data/a.db").expect("opens");
    writer
        .run("create table t(x); insert into t values (7)")
        .expect("runs");
    writer.close().expect("closes");

    let reader = patient(files(folder.path(), Access::Read));
    reader.open("/data/a.db").expect("opens");
    assert_eq!(reader.run("select x from t").expect("reads"), b"7\n");
    let error = reader
        .run("insert into t values (8)")
        .expect_err("read only")
        .to_string();
    assert!(error.contains("readonly"), "{error}");
    for outside in [
        "/etc/passwd",
        "/data/../etc/passwd",
        "relative.db",
        "/data2/x.db",
    ] {
        let sql = format!("attach '{outside}' as other; select * from other.sqlite_schema");
        let error = writer.open("/data/a.db").and_then(|()| writer.run(&sql));
        let error = error.expect_err(outside).to_string();
        assert!(error.contains("unable to open"), "{outside}: {error}");
    }
    let none = patient(Policy::none());
    none.open(":memory:").expect("opens");
    assert_eq!(none.run("select 1 + 1").expect("runs"), b"2\n");
}

#[test]
fn endless_statements_end() {
    let database = confined(Policy::compute(), Duration::from_millis(300));
    for _ in 0..2 {
        database.open(":memory:").expect("opens");
        let endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";
        match database.run(endless) {
            Err(QueryError::Call(CallError::Fault(fault))) => {
                assert_eq!(fault.kind, FaultKind::Deadline, "{fault}");
            }
            other => panic!("{other:?}"),
        }
        database.domain().reset().expect("nobody is inside");
    }
}

#[test]
fn the_command_runs_statements() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_confined-sqlite"))
        .arg("--extension")
        .arg(&built().extension)
        .arg(folder.path().join("new.db"))
        .args([
            "create table t(x, y)",
            "insert into t values (1, 'one'), (2, null)",
            "select * from t",
        ])
        .output()
        .expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1|one\n2|\n");
    assert!(output.status.success());
}
