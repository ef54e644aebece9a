//! `postern serve` as an operator has it: signals to the command, log files that are moved away,
//! and pipes that nobody reads.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(120);

/// Faults, and says a lot, if it is told to.
const PROGRAM: &str = r#"
#include <libcgi.h>
int cgi_main(void)
{
    static char line[4001];
    if (!strcmp(cgi_env("PATH_INFO"), "/fault"))
        return *(volatile int *)8;
    memset(line, 'l', sizeof line - 1);
    for (int i = 0; i < 100; i++)
        cgi_log(line);
    return cgi_puts("said") < 0;
}
"#;

/// The command, which is killed with this.
pub struct Serving {
    pub child: Child,
    /// Read up to the line that says the address.
    stdout: BufReader<ChildStdout>,
    pub address: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Serving {
    fn new(folder: &Path, log: &str) -> Serving {
        let toml = format!(
            "listen = \"127.0.0.1:0\"\n[[handler]]\npath = \"/p\"\nprogram = \"p.c\"\n[log]\n{log}\n"
        );
        fs::create_dir_all(folder.join("public")).unwrap();
        fs::write(folder.join("public/index.html"), "home").unwrap();
        fs::write(folder.join("p.c"), PROGRAM).unwrap();
        fs::write(folder.join("serve.toml"), toml).unwrap();
        Serving::begin(folder)
    }

    /// Of a site that is there.
    pub fn begin(folder: &Path) -> Serving {
        let mut child = Command::new(env!("CARGO_BIN_EXE_postern"))
            .arg("serve")
            .arg(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.trim_end().trim_end_matches('/').rsplit('/').next();
        Serving {
            address: address.unwrap().to_owned(),
            child,
            stdout,
        }
    }

    pub fn get(&self, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n{headers}\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let told = Command::new("kill").args([name, &id]).status().unwrap();
        assert!(told.success());
    }

    /// Ends it as systemd does; it must not take as long as who waits for a reader.
    fn end(&mut self) {
        self.signal("-TERM");
        let began = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < LONG, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn logs_are_moved_away_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut serving = Serving::new(
        folder.path(),
        "access = \"access.log\"\nerror = \"error.log\"",
    );
    let file = |name: &str| folder.path().join(name);
    let mut asked = 0;
    let mut ask = |serving: &Serving| {
        for _ in 0..20 {
            asked += 1;
            assert!(serving.get(&format!("/?{asked}."), "").ends_with("home"));
            let failed = serving.get(&format!("/p/fault?{asked}."), "");
            assert!(failed.starts_with("HTTP/1.1 500"), "{failed}");
        }
    };
    for (number, signal) in ["-USR1", "-HUP", "-USR1"].into_iter().enumerate() {
        ask(&serving);
        for name in ["access", "error"] {
            let moved = file(&format!("{name}.{number}"));
            fs::rename(file(&format!("{name}.log")), moved).unwrap();
        }
        // What is said before the signal belongs to the file that was moved.
        ask(&serving);
        serving.signal(signal);
        let began = Instant::now();
        while !(file("access.log").exists() && file("error.log").exists()) {
            assert!(began.elapsed() < LONG, "{signal} opens nothing");
            std::thread::sleep(Duration::from_millis(5));
        }
        ask(&serving);
    }
    serving.end();
    let all = |name: &str| {
        let old = (0..3).map(|number| format!("{name}.{number}"));
        let names = old.chain([format!("{name}.log")]);
        let texts: Vec<String> = names
            .map(|name| fs::read_to_string(file(&name)).unwrap())
            .collect();
        assert!(texts.iter().all(|text| !text.is_empty()), "{name}");
        texts.concat()
    };
    let (access, error) = (all("access"), all("error"));
    assert_eq!(access.lines().count(), 2 * asked);
    for number in 1..=asked {
        for path in ["/", "/p/fault"] {
            let line = format!("\"GET {path}?{number}. HTTP/1.1\" ");
            assert_eq!(access.matches(&line).count(), 1, "{line}");
        }
    }
    let faults = error.lines().filter(|line| line.contains("/p: id "));
    assert_eq!(faults.count(), asked, "{error}");
}

#[test]
fn pipes_that_nobody_reads_stop_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let mut serving = Serving::new(folder.path(), "access = \"-\"\nerror = \"-\"");
    let agent = format!("User-Agent: {}\r\n", "a".repeat(15_000));
    for _ in 0..300 {
        assert!(serving.get("/", &agent).ends_with("home"));
    }
    for _ in 0..10 {
        assert!(serving.get("/p/say", "").ends_with("said"));
    }
    let metrics = serving.get("/metrics", "");
    let dropped = metrics
        .split("postern_serve_log_dropped_total{log=\"access\"} ")
        .nth(1);
    let dropped = dropped.unwrap().split('\n').next().unwrap();
    assert!(dropped.parse::<u64>().unwrap() > 0, "{metrics}");
    // Signals are heard, and the end does not wait for who reads nothing.
    for signal in ["-USR1", "-HUP"] {
        serving.signal(signal);
    }
    assert!(serving.get("/", "").ends_with("home"));
    serving.end();
    // What was kept is whole lines; the last one may have been cut off by the end.
    let mut kept = String::new();
    serving.stdout.read_to_string(&mut kept).unwrap();
    let whole = kept.lines().filter(|line| line.ends_with("aaa\""));
    assert!(
        whole.count() + 1 >= kept.lines().count() && !kept.is_empty(),
        "{}",
        kept.len()
    );
}

#[test]
fn a_reader_that_has_gone_stops_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let mut serving = Serving::new(folder.path(), "access = \"-\"\nerror = \"-\"");
    // As `postern serve | head -1` does.
    drop(serving.child.stderr.take());
    let none = Command::new("true").stdout(Stdio::piped()).spawn();
    let mut none = none.unwrap();
    serving.stdout = BufReader::new(none.stdout.take().unwrap());
    none.wait().unwrap();
    for _ in 0..3 {
        assert!(serving.get("/", "").ends_with("home"));
        assert!(serving.get("/p/say", "").ends_with("said"));
        assert!(serving.get("/p/fault", "").starts_with("HTTP/1.1 500"));
    }
    serving.end();
}
