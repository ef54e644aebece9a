//! Load on all kinds of handlers at once, for a while, with programs and plugins that are replaced
//! and fail at random: every answer is right, and nothing grows.
//!
//! The server is a process of its own. `POSTERN_SOAK_SECONDS` says how long (`make soak`: a
//! minute); `POSTERN_SOAK_SEED` repeats what was chosen at random. What the server has is compared
//! between two moments of the same kind: all instances of all handlers have just been busy at once,
//! and nobody asks for anything.
#![allow(missing_docs, dead_code)]

#[path = "serve/apart.rs"]
mod apart;
#[path = "serve/site.rs"]
mod site;

use apart::Apart;
use fastrand::Rng;
use postern_server::Components;
use site::{Answer, connect, folder, handler, hold, read, release, request};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What the server has here.
pub const COMPONENTS: Components = Components {
    processes: Some(postern_cgi::start),
    plugins: Some(postern_plugins::read),
    page: None,
};

const RUNS: [&str; 4] = ["protected", "unprotected", "fastcgi", "cgi"];
/// Those that a fault does not take the server with.
const APART: [&str; 3] = ["protected", "fastcgi", "cgi"];
/// Of each handler.
const INSTANCES: usize = 3;
/// Handlers that call programs or start them, and domains of those that are confined.
const POOLS: usize = 8;
const DOMAINS: usize = 3 * INSTANCES;
/// Clients at once.
const CLIENTS: u64 = 6;
/// Requests of each client before the first measurement: enough for each kind.
const WARM_UP: u64 = 120;

#[test]
fn serves_for_another_process() {
    apart::serve_if_told();
}

/// The program that is replaced, and how often it was.
#[derive(Default)]
struct Hot {
    written: AtomicU64,
    /// The newest that has answered.
    seen: AtomicU64,
}

fn send(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = connect(address);
    // A server that says no early may close before all is sent.
    let _ = stream.write_all(bytes);
    read(stream)
}

fn get(address: SocketAddr, path: &str) -> Answer {
    send(address, &request("GET", path, "", b""))
}

fn whole(answer: &Answer, expected: &[u8], what: &str) {
    assert_eq!(answer.status, Some(200), "{what}: {answer:?}");
    assert!(answer.whole, "{what}: cut off");
    assert!(answer.body == expected, "{what}: other bytes");
}

/// What `program.c` answers to `/big`.
fn big(size: usize) -> Vec<u8> {
    (0..size).map(|at| b'a' + (at / 1000 % 26) as u8).collect()
}

/// What a client has on the server: which version of its plugin, if any.
struct Owner {
    token: String,
    shift: Option<u64>,
}

impl Owner {
    fn ask(&self, address: SocketAddr, method: &str, path: &str, body: &[u8]) -> Answer {
        let length = body.len();
        let headers = format!(
            "Authorization: Bearer {}\r\nContent-Length: {length}\r\n",
            self.token
        );
        send(address, &request(method, path, &headers, body))
    }

    fn put(&self, address: SocketAddr, name: &str, body: &str) {
        let source = format!("#include \"picture.h\"\nint {name}(struct picture *p) {{ {body} }}");
        let answer = self.ask(
            address,
            "PUT",
            &format!("/plugins/{name}"),
            source.as_bytes(),
        );
        assert!(matches!(answer.status, Some(200 | 201)), "{answer:?}");
    }

    /// Puts, replaces, deletes, crashes or uses a plugin.
    fn play(&mut self, address: SocketAddr, random: &mut Rng) {
        match random.u64(..8) {
            0..=1 => {
                let by = random.u64(..256);
                self.put(address, "shift", &format!(
                    "unsigned long n = (unsigned long)p->width * p->height * p->channels; for (unsigned long i = 0; i < n; i++) p->out[i] = p->pixels[i] + {by}; return 0;"
                ));
                self.shift = Some(by);
            }
            2 => {
                let status = match self.shift.take() {
                    Some(_) => Some(204),
                    None => Some(404),
                };
                let answer = self.ask(address, "DELETE", "/plugins/shift", b"");
                assert_eq!(answer.status, status, "{answer:?}");
            }
            3 => {
                self.put(address, "broken", "return *(int *)0;");
                let picture = b"P6\n1 1\n255\nabc";
                let path = "/transcode?through=broken&format=ppm";
                let answer = self.ask(address, "POST", path, picture);
                assert_eq!(answer.status, Some(500), "{answer:?}");
                assert!(answer.text().contains("null-pointer"), "{answer:?}");
            }
            _ => {
                let (width, height) = (1 + random.u64(..60), 1 + random.u64(..60));
                let pixels: Vec<u8> = (0..width * height * 3).map(|_| random.u8(..)).collect();
                let head = format!("P6\n{width} {height}\n255\n").into_bytes();
                let path = "/transcode?through=shift&format=ppm";
                let answer = self.ask(address, "POST", path, &[&head[..], &pixels].concat());
                let Some(by) = self.shift else {
                    assert_eq!(answer.status, Some(404), "{answer:?}");
                    return;
                };
                let shifted = pixels.iter().map(|p| p.wrapping_add(by as u8));
                let expected: Vec<u8> = head.into_iter().chain(shifted).collect();
                whole(&answer, &expected, "shift");
            }
        }
    }
}

/// One request of any kind, and what must come of it.
fn ask(address: SocketAddr, random: &mut Rng, hot: &Hot, owner: &mut Owner) {
    let run = random.choice(RUNS).unwrap();
    let apart = random.choice(APART).unwrap();
    match random.u64(..24) {
        0..=2 => whole(
            &get(address, "/index.html"),
            b"<h1>home</h1>\n",
            "small file",
        ),
        3 => whole(&get(address, "/large"), &big(1_000_000), "large file"),
        4..=7 => whole(&get(address, &format!("/{run}/hello")), b"<p>Hello\n", run),
        8..=9 => {
            let size = random.usize(..400_000);
            whole(
                &get(address, &format!("/{run}/big?{size}")),
                &big(size),
                run,
            );
        }
        10..=12 => {
            let seed = random.u64(..251);
            let body: Vec<u8> = (0..random.u64(..200_000))
                .map(|i| ((i + seed) * 7 % 251) as u8)
                .collect();
            let length = format!("Content-Length: {}\r\n", body.len());
            let path = format!("/{run}/echo");
            let answer = send(address, &request("POST", &path, &length, &body));
            whole(&answer, &body, run);
        }
        13..=15 => {
            let least = hot.seen.load(Ordering::SeqCst);
            let answer = get(address, "/hot");
            let most = hot.written.load(Ordering::SeqCst);
            let text = answer.text();
            let version = text.strip_prefix("version ").and_then(|v| v.parse().ok());
            let version: u64 = version.unwrap_or_else(|| panic!("{answer:?}"));
            assert!(
                (least..=most).contains(&version),
                "{least} {version} {most}"
            );
        }
        16 => {
            let path = format!(
                "/{apart}/{}",
                random.choice(["null", "fail", "exit"]).unwrap()
            );
            let answer = get(address, &path);
            assert_eq!(answer.status, Some(500), "{path}: {answer:?}");
            assert!(answer.text().contains("\nid "), "{path}: {answer:?}");
        }
        17 => {
            let what = random
                .choice(["split", "length", "line", "number"])
                .unwrap();
            let path = format!("/{run}/{what}");
            let answer = get(address, &path);
            assert_eq!(answer.status, Some(502), "{path}: {answer:?}");
        }
        18 => {
            let path = match random.u64(..4) {
                0 => format!("/brief/{apart}/loop"),
                _ => format!("/{apart}/late-null"),
            };
            let answer = get(address, &path);
            match answer.status {
                Some(200) => assert!(!answer.whole, "{path}: {answer:?}"),
                Some(500 | 504) => {}
                _ => panic!("{path}: {answer:?}"),
            }
        }
        20..24 => owner.play(address, random),
        _ => {
            // Leaves in the middle of an answer.
            let mut stream = connect(address);
            let path = format!("/{run}/big?10000000");
            stream.write_all(&request("GET", &path, "", b"")).unwrap();
            stream.read_exact(&mut [0; 100]).unwrap();
        }
    }
}

/// Replaces the program, once by one that does not compile and then by one that does.
fn replace(address: SocketAddr, folder: &Path, random: &mut Rng, hot: &Hot) {
    let put = |text: &str| {
        std::fs::write(folder.join("new"), text).unwrap();
        std::fs::rename(folder.join("new"), folder.join("hot/hot.c")).unwrap();
    };
    if random.u64(..3) == 0 {
        put("int cgi_main(void) { return nonsense; }");
    }
    let version = hot.written.fetch_add(1, Ordering::SeqCst) + 1;
    put(&program(version));
    let expected = format!("version {version}");
    while get(address, "/hot").text() != expected {
        std::thread::sleep(Duration::from_millis(20));
    }
    hot.seen.store(version, Ordering::SeqCst);
}

fn program(version: u64) -> String {
    format!(
        "#include <libcgi.h>\nint cgi_main(void) {{ return cgi_puts(\"version {version}\") < 0; }}\n"
    )
}

/// All clients at once: `requests` each at least, and until that time.
fn load(
    address: SocketAddr,
    folder: &Path,
    seed: u64,
    requests: u64,
    until: Instant,
    hot: &Hot,
) -> u64 {
    let total = AtomicU64::new(0);
    let clients = AtomicU64::new(CLIENTS);
    let failed = AtomicBool::new(false);
    /// Tells the others when a client ends, and whether it failed.
    struct Done<'a>(&'a AtomicU64, &'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
            self.1.fetch_or(std::thread::panicking(), Ordering::SeqCst);
        }
    }
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (total, clients, failed) = (&total, &clients, &failed);
            scope.spawn(move || {
                let _done = Done(clients, failed);
                let mut random = Rng::with_seed(seed * 1000 + client * 7 + 1);
                let mut owner = Owner {
                    token: format!("client-of-the-load-{client}"),
                    shift: None,
                };
                // What an earlier load left.
                owner.ask(address, "DELETE", "/plugins/shift", b"");
                let mut count = 0;
                while (count < requests || Instant::now() < until) && !failed.load(Ordering::SeqCst)
                {
                    ask(address, &mut random, hot, &mut owner);
                    count += 1;
                }
                total.fetch_add(count, Ordering::SeqCst);
            });
        }
        let mut random = Rng::with_seed(seed * 1000 + 999);
        while clients.load(Ordering::SeqCst) > 0 {
            replace(address, folder, &mut random, hot);
        }
    });
    total.load(Ordering::SeqCst)
}

/// What a process has.
#[derive(Debug, Clone, Copy)]
struct Has {
    resident_kib: u64,
    mappings: usize,
    descriptors: usize,
    threads: usize,
    children: usize,
}

impl Has {
    /// Within what is no growth: what may be there at one moment and not at another, but is not
    /// more after more requests.
    fn has_not_grown_since(&self, before: &Has) {
        // Threads for programs that wait go after a while, and are never more than instances.
        assert!(
            self.threads <= before.threads + POOLS * INSTANCES,
            "{self:?}"
        );
        // A control stack and its guard for each thread that was ever in a domain; a stack and two
        // guards of each thread.
        let stacks = 2 * DOMAINS * self.threads + 4 * POOLS * INSTANCES;
        assert!(self.mappings <= before.mappings + stacks, "{self:?}");
        // Of the brief FastCGI processes some are there and some not: a socket, two names of a
        // process, and its standard error.
        assert!(
            self.descriptors <= before.descriptors + 4 * INSTANCES + 4,
            "{self:?}"
        );
        // FastCGI alone has processes that stay.
        assert!(self.children <= 2 * INSTANCES, "{self:?}");
        assert!(before.children >= INSTANCES, "{before:?}");
        // A page or two of each of those stacks, and what the heap has between its pieces: half a
        // minute's requests that leaked 250 bytes each would be more.
        assert!(
            self.resident_kib <= before.resident_kib + (8 << 10),
            "{self:?}"
        );
    }
}

/// Keeps all instances busy at once, waits until nobody asks for anything, and looks.
fn settle(server: &Apart) -> Has {
    for path in RUNS.map(|run| format!("/{run}")) {
        let held: Vec<_> = (0..INSTANCES)
            .map(|_| hold(server.address, &path))
            .collect();
        held.into_iter().for_each(release);
    }
    // The one connection is that of the question.
    while !get(server.address, "/metrics")
        .text()
        .contains("\npostern_serve_connections 1\n")
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    let of = |what: &str| format!("/proc/{}/{what}", server.id());
    let status = std::fs::read_to_string(of("status")).unwrap();
    let resident = status.split("VmRSS:").nth(1).unwrap();
    let count = |what: &str| std::fs::read_dir(of(what)).unwrap().count();
    let has = Has {
        resident_kib: resident.split_whitespace().next().unwrap().parse().unwrap(),
        mappings: std::fs::read_to_string(of("maps")).unwrap().lines().count(),
        descriptors: count("fd"),
        threads: count("task"),
        children: server.children().len(),
    };
    println!("{has:?}");
    has
}

#[test]
fn every_answer_is_right_and_nothing_grows() {
    let number = |name: &str, default: u64| {
        let text = std::env::var(name).ok();
        text.map_or(default, |text| text.parse().unwrap())
    };
    let seconds = number("POSTERN_SOAK_SECONDS", 4);
    let seed = number("POSTERN_SOAK_SEED", u64::from(std::process::id()) + 1);
    println!("POSTERN_SOAK_SEED={seed}");
    let folder = folder();
    std::fs::create_dir(folder.path().join("hot")).unwrap();
    std::fs::write(folder.path().join("hot/hot.c"), program(0)).unwrap();
    std::fs::write(folder.path().join("public/large"), big(1_000_000)).unwrap();
    let more = format!("instances = {INSTANCES}\ncall_ms = 60000\nwait_ms = 60000\n");
    let handlers = RUNS.map(|run| handler(&format!("/{run}"), run, &more));
    let brief = APART.map(|run| {
        let more = format!("instances = {INSTANCES}\ncall_ms = 200\nwait_ms = 60000\n");
        handler(&format!("/brief/{run}"), run, &more)
    });
    let toml = format!(
        "listen = \"127.0.0.1:0\"\n[log]\naccess = \"\"\nerror = \"errors.log\"\n[plugins]\nguests = true\nguests_most = {CLIENTS}\ncall_ms = 60000\n{}{}[[handler]]\npath = \"/hot\"\nprogram = \"hot/hot.c\"\ninstances = {INSTANCES}\n",
        handlers.concat(),
        brief.concat(),
    );
    std::fs::write(folder.path().join("serve.toml"), toml).unwrap();
    let server = Apart::new("serves_for_another_process", folder.path());
    let (address, hot) = (server.address, Hot::default());
    load(address, folder.path(), seed, WARM_UP, Instant::now(), &hot);
    let before = settle(&server);
    let until = Instant::now() + Duration::from_secs(seconds);
    let requests = load(address, folder.path(), seed + 1, WARM_UP, until, &hot);
    let after = settle(&server);
    println!(
        "{requests} requests, {} versions of a program",
        hot.written.load(Ordering::SeqCst)
    );
    let log = std::fs::read_to_string(folder.path().join("errors.log")).unwrap();
    for word in ["panicked", "could not be run", "is gone"] {
        assert!(!log.contains(word), "{log}");
    }
    after.has_not_grown_since(&before);
    server.end();
}
