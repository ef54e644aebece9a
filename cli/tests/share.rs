//! `postern share` as operators and their processes have it.

use crate::program::{extension, folder, postern};

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use postern::{Domain, Image};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

const SOURCE: &str = "static int n; int add(int by) { return n += by; }";

/// The command, which is killed with this.
pub struct Sharing {
    pub child: Child,
    stdout: BufReader<ChildStdout>,
    pub socket: PathBuf,
}

impl Drop for Sharing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Sharing {
    pub fn new(name: &str, image: &str) -> Sharing {
        Sharing::with(name, image, &[])
    }

    pub fn with(name: &str, image: &str, options: &[&str]) -> Sharing {
        Sharing::at(
            folder().join(format!("{name}.socket")),
            name,
            image,
            options,
        )
    }

    pub fn at(socket: PathBuf, name: &str, image: &str, options: &[&str]) -> Sharing {
        let mut child = Command::new(env!("CARGO_BIN_EXE_postern"))
            .args(["share", name, image, "--socket"])
            .arg(&socket)
            .args(options)
            .current_dir(folder())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{name} is shared at {}\n", socket.display()));
        Sharing {
            child,
            stdout,
            socket,
        }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn attach(&self, image: &Image) -> Result<Domain, postern::InstantiateError> {
        Domain::shared_at(&self.socket, image)?.build()
    }
}

fn add(domain: &Domain, by: i32) -> i32 {
    let add = domain.func::<fn(i32) -> i32>("add").unwrap();
    add.call(by).unwrap()
}

#[test]
fn processes_attach_and_go_on_when_it_has_ended() {
    const OTHER: &str = "POSTERN_TEST_SHARE";
    let test = "share::processes_attach_and_go_on_when_it_has_ended";
    if let Some(socket) = std::env::var_os(OTHER) {
        let image = Image::load(folder().join("shared.px")).unwrap();
        let builder = Domain::shared_at(socket.as_ref(), &image).unwrap();
        assert_eq!(add(&builder.build().unwrap(), 10), 11);
        std::process::exit(0);
    }
    let name = extension("shared", SOURCE);
    let image = Image::load(folder().join(&name)).unwrap();
    let mut sharing = Sharing::new("shared", &name);
    let domain = sharing.attach(&image).unwrap();
    assert_eq!(add(&domain, 1), 1);
    let other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads=1"])
        .env(OTHER, &sharing.socket)
        .output()
        .unwrap();
    assert!(other.status.success(), "{other:?}");
    assert_eq!(add(&domain, 100), 111);
    let path = sharing.socket.to_str().unwrap().to_owned();
    let again = postern(&["share", "shared", &name, "--socket", &path]);
    assert!(again.bad(2).contains("another broker has"));
    kill_process(sharing.pid(), Signal::TERM).unwrap();
    assert!(sharing.child.wait().unwrap().success());
    let mut rest = String::new();
    sharing.stdout.read_to_string(&mut rest).unwrap();
    assert!(rest.is_empty() && !sharing.socket.exists());
    assert_eq!(add(&domain, 1000), 1111);
    let refused = sharing.attach(&image).unwrap_err().to_string();
    assert!(refused.contains("postern share NAME"), "{refused}");
}

#[test]
fn it_survives_the_end_of_who_is_inside_where_that_is_its_policy() {
    const OTHER: &str = "POSTERN_TEST_SHARE_ENDS";
    let test = "share::it_survives_the_end_of_who_is_inside_where_that_is_its_policy";
    if let Some(socket) = std::env::var_os(OTHER) {
        let image = Image::load(folder().join("survivor.px")).unwrap();
        let domain = Domain::shared_at(socket.as_ref(), &image).unwrap().build();
        let domain = domain.unwrap();
        domain.func::<fn()>("hold").unwrap().call().unwrap();
    }
    let source = format!("{SOURCE} void hold(void) {{ add(100); for (;;) ; }}");
    let name = extension("survivor", &source);
    let image = Image::load(folder().join(&name)).unwrap();
    for (policy, poisoned) in [("survive", false), ("poison", true)] {
        let sharing = Sharing::with("survivor", &name, &["--policy", policy]);
        let domain = sharing.attach(&image).unwrap();
        let mut other = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--test-threads=1"])
            .env(OTHER, &sharing.socket)
            .spawn()
            .unwrap();
        while add(&domain, 0) < 100 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let late = || sharing.attach(&image).map(|domain| domain.poison());
        other.kill().unwrap();
        other.wait().unwrap();
        // Whoever attaches finds what the dead have left.
        assert_eq!(late().unwrap().is_some(), poisoned, "{policy}");
    }
    let wrong = postern(&["share", "survivor", &name, "--policy", "forget"]);
    assert!(wrong.bad(2).contains("possible values: poison, survive"));
}

/// The state would end with the command, if nothing else has it.
#[test]
fn a_lack_of_descriptors_ends_no_state() {
    let name = extension("lasting", SOURCE);
    let image = Image::load(folder().join(&name)).unwrap();
    let sharing = Sharing::new("lasting", &name);
    assert_eq!(add(&sharing.attach(&image).unwrap(), 5), 5);
    let limit = |most| {
        let limits = Rlimit {
            current: Some(most),
            maximum: Some(64),
        };
        prlimit(Some(sharing.pid()), Resource::Nofile, limits).unwrap();
    };
    limit(0);
    std::thread::scope(|scope| {
        let late = scope.spawn(|| sharing.attach(&image));
        std::thread::sleep(Duration::from_millis(300));
        limit(64);
        assert_eq!(add(&late.join().unwrap().unwrap(), 1), 6);
    });
}
