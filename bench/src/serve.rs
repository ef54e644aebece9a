//! `postern serve` beside itself: one page as a static file and by the same program in four forms
//! (Palladium's Table 3), and nginx with the file and with the FastCGI program. The client is wrk;
//! all take turns.

use postern_figures::figure::{Figure, Goal};
use postern_figures::{Measured, program};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The sizes of the paper's pages, in bytes.
const SIZES: [usize; 4] = [28, 1 << 10, 10 << 10, 100 << 10];
/// Ways to serve a page: the name, and the first part of the path.
const WAYS: [&str; 7] = [
    "cgi",
    "fastcgi",
    "protected",
    "unprotected",
    "static",
    "nginx-static",
    "nginx-fastcgi",
];
/// Their places.
const CGI: usize = 0;
const FASTCGI: usize = 1;
const PROTECTED: usize = 2;
const UNPROTECTED: usize = 3;
const STATIC: usize = 4;
const NGINX: usize = 5;
/// Where the sources have the command, seen from where they have this program.
const IN_SOURCES: &str = "../../../target/release";
/// Turns, of a second each.
const TURNS: usize = 4;
/// Connections of the client: as many as the paper's had.
const CONNECTIONS: usize = 30;
/// Processes of each program.
const PROCESSES: usize = 8;

/// A process that ends with this.
pub struct Ending(pub Child);

impl Drop for Ending {
    fn drop(&mut self) {
        // By a signal that nginx hands on to its workers, who would go on without it otherwise.
        let kill = format!("kill {}", self.0.id());
        let told = Command::new("sh").args(["-c", &kill]).status();
        if !told.is_ok_and(|status| status.success()) {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

/// Whether there is such a command, which says its version.
pub fn here(command: &str) -> bool {
    let asked = Command::new(command)
        .arg("-v")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok()
}

/// Whether what is needed besides Postern is there.
pub fn possible() -> bool {
    here("wrk") && Path::new("/usr/include/fcgiapp.h").exists()
}

/// The figures.
pub fn figures(directory: &Path) -> Measured {
    if !possible() {
        return Err(
            "wrk and libfcgi are needed: apt-get install wrk libfcgi-dev (and nginx, to compare)"
                .to_owned(),
        );
    }
    let text = |e: std::io::Error| e.to_string();
    let site = directory.join("site");
    write_site(&site).map_err(text)?;
    let (server, port) = serve(&site)?;
    let nginx = nginx(&site).map_err(text)?;
    let mut times = vec![[(); SIZES.len()].map(|()| Vec::new()); WAYS.len()];
    let mut busy = times.clone();
    for turn in 0..=TURNS {
        for (number, size) in SIZES.iter().enumerate() {
            for (place, way) in WAYS.iter().enumerate() {
                let (port, path) = match (way.strip_prefix("nginx-"), &nginx) {
                    (None, _) => (port, *way),
                    (Some(path), Some((_, port))) => (*port, path),
                    (Some(_), None) => continue,
                };
                let url = match path {
                    "static" => format!("http://127.0.0.1:{port}/{size}.html"),
                    way => format!("http://127.0.0.1:{port}/{way}/{size}"),
                };
                check(port, &url, *size)?;
                let process = match &nginx {
                    Some((children, _)) if way.starts_with("nginx-") => &children[0],
                    _ => &server,
                };
                let before = processor_time(process)?;
                let (rate, requests) = wrk(&url)?;
                let used = processor_time(process)? - before;
                // The first turn warms up.
                if turn > 0 {
                    times[place][number].push(1e6 / rate);
                    busy[place][number].push(used * 1e6 / requests);
                }
            }
        }
    }
    let mut figures = Vec::new();
    let least = |of: &[f64]| of.iter().copied().fold(f64::INFINITY, f64::min);
    for (number, size) in SIZES.iter().enumerate() {
        let best = |way: usize| least(&times[way][number]);
        let measured = |way: &(usize, &&str)| !times[way.0][number].is_empty();
        for (way, name) in WAYS.iter().enumerate().filter(measured) {
            let note = format!("{:.0} requests/s of {size} bytes", 1e6 / best(way));
            let figure = Figure::plain(format!("serve.{size}.{name}"), best(way), "us", note);
            let figure = figure.against(best(STATIC));
            figures.push(match way {
                PROTECTED => figure.goal(Goal::RatioAtMost(1.0 / 0.95)),
                _ => figure,
            });
        }
        let over = |name: &str, other: usize, goal: f64, note: &str| {
            Figure::plain(format!("serve.{size}.{name}"), best(PROTECTED), "us", note)
                .against(best(other))
                .goal(Goal::RatioAtMost(goal))
        };
        let note = "protected over unprotected: at least 97.5 % of its requests";
        figures.push(over("confinement", UNPROTECTED, 1.0 / 0.975, note));
        if *size == SIZES[0] {
            figures.push(over(
                "over-fastcgi",
                FASTCGI,
                0.5,
                "at least twice its requests",
            ));
            figures.push(over(
                "over-cgi",
                CGI,
                0.25,
                "at least four times its requests",
            ));
        }
        let note = "time of the server's processors for a request, protected over static";
        let figure = |name: &str, other: usize, note: &str| {
            let value = least(&busy[PROTECTED][number]);
            Figure::plain(format!("serve.{size}.{name}"), value, "us", note)
                .against(least(&busy[other][number]))
        };
        figures.push(figure("busy-over-static", STATIC, note));
        if nginx.is_some() {
            let note = "time of the server's processors for a static file, over nginx's with all its workers";
            let value = least(&busy[STATIC][number]);
            let figure = Figure::plain(
                format!("serve.{size}.static-busy-over-nginx"),
                value,
                "us",
                note,
            )
            .against(least(&busy[NGINX][number]));
            figures.push(match *size == SIZES[0] {
                true => figure.goal(Goal::RatioAtMost(1.3)),
                false => figure,
            });
        }
        let note = "the same over unprotected";
        figures.push(figure("busy-over-unprotected", UNPROTECTED, note));
    }
    figures.push(memory(port)?);
    Ok(figures)
}

fn write_site(site: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(site.join("public"))?;
    std::fs::write(site.join("page.c"), include_str!("serve.c"))?;
    let mut toml = "listen = \"127.0.0.1:0\"\n[log]\naccess = \"\"\n".to_owned();
    for size in SIZES {
        let page = site.join(format!("public/{size}.html"));
        std::fs::write(&page, "x".repeat(size))?;
        for way in &WAYS[..STATIC] {
            let instances = if way.ends_with("cgi") {
                PROCESSES
            } else {
                CONNECTIONS
            };
            let _ = write!(
                toml,
                "[[handler]]\npath = \"/{way}/{size}\"\nprogram = \"page.c\"\nrun = \"{way}\"\ninstances = {instances}\nenv = {{ PAGE = {page:?} }}\n{}",
                if *way == "protected" {
                    "files = [\"public\"]\n"
                } else {
                    ""
                }
            );
        }
    }
    std::fs::write(site.join("serve.toml"), toml)
}

/// The command that is measured: the one that handed over to this program, or else the one of these
/// sources or of the path.
pub fn postern() -> Result<PathBuf, String> {
    let told = std::env::var_os(program::COMMAND).map(PathBuf::from);
    told.or_else(|| program::find("postern", IN_SOURCES))
        .ok_or_else(|| "the command `postern` is not here: `make build` builds it".to_owned())
}

/// Starts the server; the port is that of the line that it prints.
pub fn serve(site: &Path) -> Result<(Ending, u16), String> {
    let mut command = Command::new(postern()?);
    let child = command
        .arg("serve")
        .arg(site)
        .stdout(Stdio::piped())
        .spawn();
    let mut child = Ending(child.map_err(|e| e.to_string())?);
    let mut line = String::new();
    if let Some(stdout) = child.0.stdout.take() {
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    let port = line.trim_end().trim_end_matches('/').rsplit(':').next();
    match port.and_then(|port| port.parse().ok()) {
        Some(port) => Ok((child, port)),
        None => Err(format!("the server did not start: {line}")),
    }
}

/// Starts nginx, and processes of the FastCGI program for it; nothing where it is not installed.
fn nginx(site: &Path) -> std::io::Result<Option<(Vec<Ending>, u16)>> {
    let program = ["/usr/sbin/nginx", "nginx"]
        .into_iter()
        .find(|program| here(program));
    let Some(program) = program else {
        return Ok(None);
    };
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    // Not beside the source, where it would be a change of all programs.
    let include = site.join("include");
    std::fs::create_dir_all(&include)?;
    std::fs::write(
        include.join("libcgi.h"),
        include_str!("../../server/include/libcgi.h"),
    )?;
    let file = site.join("page.fcgi");
    let mut compile = Command::new("gcc");
    compile
        .args(["-O2", "-DLIBCGI_FASTCGI", "-I"])
        .arg(&include)
        .arg(site.join("page.c"));
    if !compile
        .arg("-o")
        .arg(&file)
        .arg("-lfcgi")
        .status()?
        .success()
    {
        return Ok(None);
    }
    let mut children = Vec::new();
    let mut locations = String::new();
    for size in SIZES {
        let socket = site.join(format!("{size}.socket"));
        let listener = UnixListener::bind(&socket)?;
        for _ in 0..PROCESSES {
            let listener = OwnedFd::from(listener.try_clone()?);
            children.push(Ending(
                Command::new(&file).stdin(Stdio::from(listener)).spawn()?,
            ));
        }
        let (socket, page) = (socket.display(), site.join(format!("public/{size}.html")));
        let _ = writeln!(
            locations,
            "location /fastcgi/{size} {{ fastcgi_pass unix:{socket}; fastcgi_param PAGE {}; fastcgi_param REQUEST_METHOD $request_method; fastcgi_param QUERY_STRING $query_string; fastcgi_buffers 16 64k; fastcgi_buffer_size 64k; }}",
            page.display()
        );
    }
    let folder = site.display();
    let root = site.join("public");
    // As root it would become somebody who cannot read the folder.
    let root_runs = std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0);
    let user = if root_runs { "user root;" } else { "" };
    let configuration = format!(
        "daemon off; {user} worker_processes auto; pid {folder}/nginx.pid; error_log {folder}/nginx.log;\nevents {{ }}\nhttp {{ access_log off; sendfile on; tcp_nopush on; types {{ text/html html; }} keepalive_requests 1000000;\nclient_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3; uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;\nserver {{ listen 127.0.0.1:{port}; root {};\n{locations} }} }}\n",
        root.display()
    );
    let path = site.join("nginx.conf");
    std::fs::write(&path, configuration)?;
    let mut command = Command::new(program);
    command
        .arg("-c")
        .arg(&path)
        .arg("-p")
        .arg(site)
        .stderr(Stdio::null());
    let mut master = command.spawn()?;
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if master.try_wait()?.is_some() || began.elapsed() > Duration::from_secs(10) {
            let _ = master.kill();
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    children.insert(0, Ending(master));
    Ok(Some((children, port)))
}

/// One request whose answer must be the page.
fn check(port: u16, url: &str, size: usize) -> Result<(), String> {
    let path = url.splitn(4, '/').nth(3).unwrap_or_default();
    let answer = ask(port, path).map_err(|e| format!("{url}: {e}"))?;
    // In chunks it is not in one piece.
    let whole = answer.matches('x').count() >= size;
    match answer.starts_with("HTTP/1.1 200") && whole {
        true => Ok(()),
        false => Err(format!(
            "{url}: {}",
            answer.lines().next().unwrap_or("no answer")
        )),
    }
}

fn ask(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Requests in a second, and in all.
pub fn wrk(url: &str) -> Result<(f64, f64), String> {
    let mut command = Command::new("wrk");
    command.args(["-t1", &format!("-c{CONNECTIONS}"), "-d1s", url]);
    let output = command.output().map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout);
    if said.contains("Non-2xx") {
        return Err(format!("{url}: {said}"));
    }
    let lines = || said.lines().map(str::trim);
    let rate = lines().find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse().ok());
    let all = lines().find_map(|line| line.split_once(" requests in ")?.0.parse().ok());
    rate.zip(all)
        .ok_or_else(|| format!("{url}: wrk says {said}"))
}

/// Seconds that a process and its children have had of processors, in the kernel's steps of a
/// hundredth.
fn processor_time(process: &Ending) -> Result<f64, String> {
    let id = process.0.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
    let children = children.unwrap_or_default();
    let own = processor_time_of(&id.to_string())?;
    let theirs = children.split_whitespace().map(processor_time_of);
    // Those of programs come and go.
    Ok(own + theirs.filter_map(Result::ok).sum::<f64>())
}

/// The same with processes that any of its threads has started.
pub fn busy_time(process: &Ending) -> Result<f64, String> {
    let id = process.0.id();
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).map_err(|e| e.to_string())?;
    let children = tasks.flatten().filter_map(|task| {
        let children = std::fs::read_to_string(task.path().join("children")).ok()?;
        let times = children.split_whitespace().map(processor_time_of);
        Some(times.filter_map(Result::ok).sum::<f64>())
    });
    let children: f64 = children.sum();
    Ok(processor_time_of(&id.to_string())? + children)
}

fn processor_time_of(id: &str) -> Result<f64, String> {
    times_of(id, [11, 12])
}

/// What the processes that this one has started and waited for have had of processors, with theirs.
pub fn children_time() -> Result<f64, String> {
    times_of("self", [13, 14])
}

/// The sum of two fields of a process, of user and of system time, in seconds; fields are counted
/// from the one behind the parenthesis.
fn times_of(id: &str, places: [usize; 2]) -> Result<f64, String> {
    let path = format!("/proc/{id}/stat");
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let fields: Vec<&str> = text
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks = |place: usize| fields.get(place)?.parse::<f64>().ok();
    match (ticks(places[0]), ticks(places[1])) {
        (Some(user), Some(system)) => Ok((user + system) / 100.0),
        _ => Err("the system does not tell the server's time".to_owned()),
    }
}

/// What a domain of a handler takes, from the server's own metrics.
fn memory(port: u16) -> Result<Figure, String> {
    let text = ask(port, "metrics").map_err(|e| e.to_string())?;
    let sum = |name: &str| -> f64 {
        let lines = text
            .lines()
            .filter(|line| line.starts_with(name) && line.contains(".px"));
        lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    };
    let (pages, domains) = (sum("postern_private_pages"), sum("postern_image_domains"));
    let note = format!(
        "private memory of a handler's domain, mean of {domains}, a page of up to 100 KiB among it; the exchange's areas besides"
    );
    Ok(Figure::plain(
        "serve.domain-memory",
        pages * 4.0 / domains,
        "KiB",
        note,
    ))
}
