//! A server that does not end in good order leaves none of its processes behind.

use crate::limits::hold_at;
use crate::site::{LONG, folder, handler, site};
use postern_server::Server;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

/// The folder of the site that this process shall serve, if it was started to serve one.
const FOLDER: &str = "POSTERN_TEST_SERVES";

fn runs() -> [String; 2] {
    ["cgi", "fastcgi"].map(|run| handler(&format!("/{run}"), run, "instances = 2\n"))
}

/// No test, but the server of the other one.
#[test]
fn serves_for_another_process() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let server = Server::new(site(folder.as_ref(), &runs().concat())).unwrap();
    println!("\nserving at {}", server.address().unwrap());
    server.run(std::future::pending()).unwrap();
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Processes that a process started.
fn children(of: u32) -> Vec<OwnedFd> {
    let threads = std::fs::read_dir(format!("/proc/{of}/task")).unwrap();
    let lists = threads.map(|thread| {
        let path = thread.unwrap().path().join("children");
        std::fs::read_to_string(path).unwrap_or_default()
    });
    let lists: Vec<String> = lists.collect();
    let processes = lists.iter().flat_map(|list| list.split_whitespace());
    let open = |process: &str| {
        let process = Pid::from_raw(process.parse().unwrap()).unwrap();
        pidfd_open(process, PidfdFlags::empty()).unwrap()
    };
    processes.map(open).collect()
}

#[test]
fn a_server_that_is_killed_takes_its_processes_along() {
    let folder = folder();
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "orphans::serves_for_another_process",
            "--nocapture",
        ])
        .env(FOLDER, folder.path())
        .stdout(Stdio::piped())
        .spawn();
    let mut server = Killed(child.unwrap());
    let lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let address: SocketAddr = lines
        .map(|line| line.unwrap())
        .find_map(|line| Some(line.strip_prefix("serving at ")?.parse().unwrap()))
        .unwrap();
    // Each is inside a request.
    let held = ["/cgi", "/cgi", "/fastcgi", "/fastcgi"].map(|path| hold_at(address, path));
    let processes = children(server.0.id());
    assert_eq!(processes.len(), 4);
    drop(server);
    for process in &processes {
        let mut ended = [PollFd::new(process, PollFlags::IN)];
        let limit = Timespec::try_from(LONG).unwrap();
        assert_eq!(poll(&mut ended, Some(&limit)).unwrap(), 1, "it lives");
    }
    drop(held);
}
