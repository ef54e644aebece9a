//! A server in a process of its own, which can be killed and looked at: the test program itself,
//! told to run one test that is a server.

use postern_server::{Server, Site};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use tokio::sync::oneshot;

/// The folder of the site that a process shall serve, if it was started to serve one.
const FOLDER: &str = "POSTERN_TEST_SERVES";

/// Serves until standard input ends, if this process shall.
pub fn serve_if_told() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let server = Server::new(Site::load(folder.as_ref(), crate::COMPONENTS).unwrap()).unwrap();
    println!("\nserving at {}", server.address().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(stop);
    });
    server.run(async { drop(stopped.await) }).unwrap();
}

/// The other process. It is killed when this is dropped.
pub struct Apart {
    child: Child,
    /// Open, for whoever writes into what nobody reads fails.
    _said: BufReader<ChildStdout>,
    pub address: SocketAddr,
}

impl Apart {
    /// Serves a folder's site; `test` is the full name of a test of this program that calls
    /// [`serve_if_told`].
    pub fn new(test: &str, folder: &Path) -> Apart {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(FOLDER, folder)
            // One heap for all threads: what each would keep for itself says nothing of what grows.
            .env("MALLOC_ARENA_MAX", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let address = said
            .by_ref()
            .lines()
            .map(|line| line.unwrap())
            .find_map(|line| Some(line.strip_prefix("serving at ")?.parse().unwrap()));
        Apart {
            child,
            _said: said,
            address: address.unwrap(),
        }
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The numbers of the processes that it started.
    pub fn children(&self) -> Vec<i32> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.id())).unwrap();
        let lists = threads.map(|thread| {
            let path = thread.unwrap().path().join("children");
            std::fs::read_to_string(path).unwrap_or_default()
        });
        let lists: Vec<String> = lists.collect();
        let numbers = lists.iter().flat_map(|list| list.split_whitespace());
        numbers.map(|number| number.parse().unwrap()).collect()
    }

    /// Tells it to end in good order, and waits.
    pub fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
