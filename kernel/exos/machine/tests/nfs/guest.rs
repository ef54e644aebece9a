//! A machine with ExOS, whose shell runs a script.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use postern_aegis_machine::emulator::{Ended, Machine, User};
use postern_exos_machine::{build, programs, software};

/// A port of the loopback that nobody has now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its number").port()
}

/// Boots it in a network in which this machine's loopback is 10.0.2.2. Lines of the script's that
/// begin with `step ` are told, while the script goes on, and the port here that is its port 80.
pub fn run(
    script: &str,
    files: &[(&str, &[u8])],
    processors: u32,
    mut step: impl FnMut(&str, u16),
) -> Ended {
    build::all().expect("the library and the root environment build");
    let mut all = programs::commands().expect("the tools");
    all.extend(programs::of("services").expect("the services"));
    let mut packed = programs::make(&all).expect("they compile");
    packed.push(("init".to_owned(), b"sh script".to_vec()));
    packed.push(("script".to_owned(), script.as_bytes().to_vec()));
    packed.push(("services.list".to_owned(), b"ramd /tmp\nnetd\n".to_vec()));
    for (name, bytes) in files {
        packed.push(((*name).to_owned(), bytes.to_vec()));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let software = software::prepare(&packed, folder.path()).expect("a package");
    let port = free_port();
    let machine = Machine {
        processors,
        limit: Duration::from_secs(300),
        user: Some(User {
            forwards: vec![(port, 80)],
            restricted: false,
        }),
        ..Machine::default()
    };
    let begun = Instant::now();
    let ended = machine.run(&software, |line| {
        println!("{:6.1} {line}", begun.elapsed().as_secs_f32());
        if let Some(name) = line.strip_prefix("step ") {
            step(name, port);
        }
    });
    ended.expect("a machine")
}

/// Lines between two of a script's own.
pub fn between<'a>(ended: &'a Ended, first: &str, last: &str) -> Vec<&'a str> {
    let lines = ended.lines.iter().map(String::as_str);
    let behind = lines.skip_while(|line| *line != first).skip(1);
    behind.take_while(|line| *line != last).collect()
}
