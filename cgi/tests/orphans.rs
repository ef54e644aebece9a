//! A server that does not end in good order leaves none of its processes behind.
#![allow(missing_docs)]

#[path = "../../server/tests/serve/apart.rs"]
mod apart;
#[allow(dead_code)]
#[path = "../../server/tests/serve/site.rs"]
mod site;

use apart::{Apart, serve_if_told};
use postern_server::Components;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use site::{LONG, folder, handler, hold};

/// What the server has here.
pub const COMPONENTS: Components = Components {
    processes: Some(postern_cgi::start),
    plugins: None,
    page: None,
};

#[test]
fn serves_for_another_process() {
    serve_if_told();
}

#[test]
fn a_server_that_is_killed_takes_its_processes_along() {
    let folder = folder();
    let toml = ["cgi", "fastcgi"].map(|run| handler(&format!("/{run}"), run, "instances = 2\n"));
    let toml = format!("listen = \"127.0.0.1:0\"\n{}", toml.concat());
    std::fs::write(folder.path().join("serve.toml"), toml).unwrap();
    let server = Apart::new("serves_for_another_process", folder.path());
    // Each is inside a request.
    let held = ["/cgi", "/cgi", "/fastcgi", "/fastcgi"].map(|path| hold(server.address, path));
    let open = |process: i32| pidfd_open(Pid::from_raw(process).unwrap(), PidfdFlags::empty());
    let processes = server.children().into_iter().map(|p| open(p).unwrap());
    let processes: Vec<_> = processes.collect();
    assert_eq!(processes.len(), 4);
    drop(server);
    for process in &processes {
        let mut ended = [PollFd::new(process, PollFlags::IN)];
        let limit = Timespec::try_from(LONG).unwrap();
        assert_eq!(poll(&mut ended, Some(&limit)).unwrap(), 1, "it lives");
    }
    drop(held);
}

#[test]
fn one_that_is_told_to_end_does() {
    let folder = folder();
    std::fs::write(folder.path().join("serve.toml"), "listen = \"127.0.0.1:0\"").unwrap();
    Apart::new("serves_for_another_process", folder.path()).end();
}
