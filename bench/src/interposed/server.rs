//! nginx, unmodified, while somebody sees its calls: how many requests it answers with all the
//! connections of wrk, and how many where connections are begun at fixed rates, a request by each.
//!
//! That is a figure of the paper on user-level sandboxing, where an agent traces a web server: as a
//! process of its own, as a thread, and as an upcall handler in the server's address space. Here
//! the last is an agent as Postern has it, and the thread one that seccomp notifies.

use super::under::Under;
use crate::client::{Load, load};
use crate::serve::{here, wrk};
use postern_figures::Measured;
use postern_figures::figure::{Figure, Goal};
use postern_figures::plot::{Chart, Series};
use postern_figures::trusted::tracing::Shown;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of the file that is asked for.
const SIZE: usize = 1 << 10;
/// Turns, of which the best counts, behind one that warms up.
const TURNS: usize = 3;
/// Connections that are begun in a second, and for how long.
const RATES: [u64; 6] = [250, 500, 1000, 2000, 4000, 8000];
const TURN: Duration = Duration::from_millis(500);
/// How long a server may take to begin or to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// The part of its requests that a server is to answer under an agent.
const GOAL: f64 = 0.9;

/// Who sees the calls: a figure's name, what a picture says. The first is the baseline.
const WAYS: [(&str, Under, &str); 8] = [
    ("native", Under::Nobody, "nobody"),
    ("count", Under::COUNT, "agent in the server (upcall)"),
    ("slow", Under::SLOW, "agent in the server, by signals"),
    (
        "enforce",
        Under::ENFORCE,
        "agent in a supervisor, files and addresses alone",
    ),
    (
        "thread",
        Under::Kernel(Shown::Notified),
        "thread that is notified",
    ),
    (
        "ptrace-once",
        Under::Kernel(Shown::Once),
        "tracing process, one stop",
    ),
    (
        "ptrace",
        Under::Kernel(Shown::Twice),
        "tracing process, two stops",
    ),
    ("strace", Under::Strace, "strace"),
];

/// Where Debian has it, which is not in every user's path.
const NGINX: &str = "/usr/sbin/nginx";

/// Whether server and client are there.
pub fn possible() -> bool {
    here("wrk") && Path::new(NGINX).exists()
}

/// A server, which ends with this.
struct Server {
    port: u16,
    process: PathBuf,
    runs: Option<JoinHandle<Result<bool, String>>>,
}

impl Server {
    fn start(folder: &Path, agent: &Path, name: &str, under: Under) -> Result<Server, String> {
        let text = |error: std::io::Error| format!("nginx: {error}");
        let site = folder.join(name);
        std::fs::create_dir_all(&site).map_err(text)?;
        std::fs::write(site.join("page"), "x".repeat(SIZE)).map_err(text)?;
        let listener = TcpListener::bind("127.0.0.1:0").map_err(text)?;
        let port = listener.local_addr().map_err(text)?.port();
        drop(listener);
        let at = site.display();
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {at}/{name};"))
            .concat();
        let configuration = format!(
            "daemon off; master_process off; pid {at}/process; error_log {at}/log;\n\
             events {{ }}\nhttp {{ access_log off; sendfile on; keepalive_requests 100000000; {paths}\n\
             server {{ listen 127.0.0.1:{port} backlog=4096; root {at}; }} }}\n"
        );
        let file = site.join("nginx.conf");
        std::fs::write(&file, configuration).map_err(text)?;
        let (agent, site, process) = (agent.to_owned(), site.clone(), site.join("process"));
        let runs = std::thread::spawn(move || {
            let words: [&OsStr; 7] = [
                NGINX.as_ref(),
                "-c".as_ref(),
                file.as_ref(),
                "-p".as_ref(),
                site.as_ref(),
                "-e".as_ref(),
                "/dev/null".as_ref(),
            ];
            under.run(&agent, &words)
        });
        let server = Server {
            port,
            process,
            runs: Some(runs),
        };
        let begun = Instant::now();
        while ask(port).is_err() {
            let has_ended = server.runs.as_ref().is_some_and(JoinHandle::is_finished);
            if has_ended || begun.elapsed() > PATIENCE {
                return Err(format!("nginx does not answer: {name}"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let process = std::fs::read_to_string(&self.process).unwrap_or_default();
        let kill = format!("kill {}", process.trim());
        let _ = Command::new("sh").args(["-c", &kill]).status();
        if let Some(runs) = self.runs.take() {
            let _ = runs.join();
        }
    }
}

/// One request, by a connection of its own.
fn ask(port: u16) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(b"GET /page HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::with_capacity(2 * SIZE);
    stream.read_to_end(&mut answer)?;
    match answer.starts_with(b"HTTP/1.1 200") && answer.ends_with(&[b'x'; SIZE]) {
        true => Ok(()),
        false => Err(std::io::Error::other("no page")),
    }
}

/// The figures.
pub fn figures(folder: &Path, agent: &Path) -> Measured {
    let ways: Vec<_> = WAYS
        .into_iter()
        .filter(|(_, under, _)| *under != Under::Strace || here("strace"))
        .collect();
    let mut most = vec![0.0f64; ways.len()];
    let mut rates = vec![[0.0f64; RATES.len()]; ways.len()];
    for turn in 0..=TURNS {
        for (at, (name, under, _)) in ways.iter().enumerate() {
            let server = Server::start(folder, agent, name, *under)?;
            let (rate, _) = wrk(&format!("http://127.0.0.1:{}/page", server.port))?;
            // The first turn warms up.
            if turn == 0 {
                continue;
            }
            most[at] = most[at].max(rate);
            for (offered, best) in RATES.iter().zip(&mut rates[at]) {
                let found = load(Load::Rate(*offered), TURN, |_, _| ask(server.port));
                let found = found.map_err(|error| format!("{name}: {error}"))?;
                let answered = found.times.len() as f64 / found.spent.as_secs_f64();
                *best = best.max(answered);
            }
        }
    }
    let mut figures = Vec::new();
    for (at, (name, under, what)) in ways.iter().enumerate() {
        let how = format!("requests/s that nginx answers wrk, who sees its calls: {what}");
        let name = format!("interposed.nginx.{name}");
        let figure = Figure::plain(name, most[at], "1/s", how).against(most[0]);
        figures.push(match *under {
            Under::COUNT => figure.goal(Goal::AtLeast(GOAL * most[0])),
            _ => figure,
        });
    }
    for (number, offered) in RATES.iter().enumerate() {
        for (at, (name, _, what)) in ways.iter().enumerate() {
            let how = format!("answers/s where {offered} connections are begun a second: {what}");
            let name = format!("interposed.rate.{offered}.{name}");
            let figure = Figure::plain(name, rates[at][number], "1/s", how);
            figures.push(figure.against(rates[0][number]));
        }
    }
    Ok(figures)
}

/// The picture of the rates.
pub fn charts(figures: &[Figure]) -> Vec<Chart> {
    let line = |(name, _, what): &(&str, Under, &str)| {
        let mut line = Series::new(what);
        for offered in RATES {
            let wanted = format!("interposed.rate.{offered}.{name}");
            let found = figures.iter().find(|figure| figure.name == wanted);
            line.points
                .extend(found.map(|figure| (offered as f64, figure.value)));
        }
        line
    };
    vec![Chart {
        name: "interposed-rate".into(),
        title: "nginx, by who sees its system calls".into(),
        x: "connections begun in a second",
        y: "answers in a second",
        series: WAYS.iter().map(line).collect(),
    }]
}
