//! The program of `examples/pages`, which reads a document of 4 KB and answers with a page of 4 KB,
//! in three forms behind two servers: as FastCGI processes, in domains of each server's own, and in
//! one domain that both have. For each form connections are begun at fixed rates, and then requests
//! made as fast as answers come.

use crate::client::{self, Found, Load};
use crate::serve::{Ending, busy_time, postern, serve};
use postern_figures::Measured;
use postern_figures::figure::Figure;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The forms: the first part of the path, too.
const FORMS: [&str; 3] = ["fastcgi", "own", "shared"];
const FASTCGI: usize = 0;
/// Connections that are begun in a second.
const RATES: [u64; 5] = [125, 250, 500, 1000, 2000];
/// Loads without a rate, and their names.
const CONTINUOUS: [(&str, Load); 2] =
    [("connections", Load::Connections), ("requests", Load::Kept)];
/// How long one load is kept in one turn.
const TURN: Duration = Duration::from_millis(500);
const TURNS: usize = 3;
const SERVERS: usize = 2;
/// Read and transformed at each request.
const PATH: &str = "autumn?fresh";

const SITE: &str = r#"listen = "127.0.0.1:0"
[log]
access = ""
[[handler]]
path = "/fastcgi"
program = "pages.c"
sources = ["xml.c"]
run = "fastcgi"
instances = 2
[[handler]]
path = "/own"
program = "pages.px"
files = ["public"]
instances = 2
[[handler]]
path = "/shared"
program = "pages.px"
share = "./pages.socket"
files = ["public"]
instances = 2
"#;

/// Whether what is needed besides Postern is there.
pub fn possible() -> bool {
    Path::new("/usr/include/fcgiapp.h").exists()
}

/// The figures.
pub fn figures(directory: &Path) -> Measured {
    if !possible() {
        return Err("libfcgi is needed: apt-get install libfcgi-dev".to_owned());
    }
    let site = directory.join("pages");
    write_site(&site).map_err(|e| e.to_string())?;
    let _broker = share(&site)?;
    let servers: Vec<(Ending, u16)> = (0..SERVERS)
        .map(|_| serve(&site))
        .collect::<Result<_, _>>()?;
    let ports: Vec<u16> = servers.iter().map(|(_, port)| *port).collect();
    let pages = FORMS.map(|form| ask(ports[0], form).map_err(|e| format!("{form}: {e}")));
    let [first, rest @ ..] = &pages;
    let first = first.as_ref().map_err(Clone::clone)?;
    for page in rest {
        if page.as_ref().map_err(Clone::clone)? != first {
            return Err("the forms of one program answer differently".to_owned());
        }
    }
    let mut times = FORMS.map(|_| RATES.map(|_| Vec::new()));
    let mut most = CONTINUOUS.map(|_| FORMS.map(|_| 0.0f64));
    let mut busy = CONTINUOUS.map(|_| FORMS.map(|_| f64::INFINITY));
    let spent = || -> Result<f64, String> {
        let times = servers.iter().map(|(server, _)| busy_time(server));
        times.sum()
    };
    for turn in 0..=TURNS {
        for (form, name) in FORMS.iter().enumerate() {
            for (rate, times) in RATES.iter().zip(&mut times[form]) {
                let found = load(&ports, name, Load::Rate(*rate))?;
                // The first turn warms up.
                if turn > 0 {
                    times.extend(found.times);
                }
            }
            for (kind, (_, how)) in CONTINUOUS.iter().enumerate() {
                let before = spent()?;
                let found = load(&ports, name, *how)?;
                let used = spent()? - before;
                if turn > 0 {
                    let count = found.times.len() as f64;
                    let (most, busy) = (&mut most[kind][form], &mut busy[kind][form]);
                    *most = most.max(count / found.spent.as_secs_f64());
                    *busy = busy.min(used * 1e6 / count);
                }
            }
        }
    }
    let mut figures = Vec::new();
    let mut add = |name: String, values: [f64; 3], note: String| {
        for (form, value) in FORMS.iter().zip(values) {
            let figure = Figure::plain(format!("pages.{name}.{form}"), value, "us", &*note);
            figures.push(match *form == FORMS[FASTCGI] {
                true => figure,
                false => figure.against(values[FASTCGI]),
            });
        }
    };
    for (number, rate) in RATES.iter().enumerate() {
        let mut of = |share: f64| {
            let mut at = FORMS.map(|_| 0.0);
            for (value, times) in at.iter_mut().zip(&mut times) {
                *value = quantile(&mut times[number], share);
            }
            at
        };
        let note = format!("from connect to the end of the answer, {rate} connections/s");
        let (median, slow) = (of(0.5), of(0.9));
        add(format!("{rate}.median"), median, note.clone());
        add(format!("{rate}.90"), slow, format!("{note}, 90 %"));
    }
    for (kind, (name, _)) in CONTINUOUS.iter().enumerate() {
        let rates = most[kind].map(|rate| format!("{rate:.0}")).join(", ");
        let note = format!("answers as fast as they come: {rates} a second");
        add(
            format!("{name}.most"),
            most[kind].map(|rate| 1e6 / rate),
            note,
        );
        let note = "time of processors for a request, servers and their processes".to_owned();
        add(format!("{name}.busy"), busy[kind], note);
    }
    Ok(figures)
}

/// The value below which this share of them is, in microseconds.
fn quantile(times: &mut [Duration], share: f64) -> f64 {
    times.sort_unstable();
    let at = (times.len() as f64 * share) as usize;
    times
        .get(at)
        .map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
}

fn write_site(site: &Path) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::create_dir_all(site.join("public/documents"))?;
    for (name, text) in [
        ("serve.toml", SITE),
        (
            "pages.c",
            include_str!("../../examples/pages/handlers/pages.c"),
        ),
        ("xml.c", include_str!("../../examples/pages/handlers/xml.c")),
        ("xml.h", include_str!("../../examples/pages/handlers/xml.h")),
        (
            "public/documents/autumn.xml",
            include_str!("../../examples/pages/public/documents/autumn.xml"),
        ),
    ] {
        std::fs::write(site.join(name), text)?;
    }
    let include = site.join("include");
    std::fs::create_dir_all(&include)?;
    let header = include_str!("../../server/include/libcgi.h");
    std::fs::write(include.join("libcgi.h"), header)?;
    let mut compile = Command::new(postern()?);
    compile.args(["cc", "-O2", "-g", "-I"]).arg(&include);
    compile
        .args(["-o", "pages.px", "pages.c", "xml.c"])
        .current_dir(site);
    match compile.status()?.success() {
        true => Ok(()),
        false => Err("the program was not compiled".into()),
    }
}

/// The broker of the domain that the servers have.
fn share(site: &Path) -> Result<Ending, String> {
    let mut command = Command::new(postern()?);
    command.args(["share", "pages", "pages.px", "--socket", "pages.socket"]);
    let child = command.current_dir(site).stdout(Stdio::piped()).spawn();
    let mut child = Ending(child.map_err(|e| e.to_string())?);
    let mut line = String::new();
    if let Some(stdout) = child.0.stdout.take() {
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    match line.is_empty() {
        true => Err("the broker did not start".to_owned()),
        false => Ok(child),
    }
}

/// Requests for one turn, to all servers in turns.
fn load(ports: &[u16], form: &str, how: Load) -> Result<Found, String> {
    let found = client::load(how, TURN, |request, kept| {
        let page = match how {
            Load::Kept => ask_again(ports[request.client % ports.len()], form, kept),
            Load::Rate(_) | Load::Connections => {
                ask(ports[request.number as usize % ports.len()], form)
            }
        };
        page.map(drop)
    });
    found.map_err(|error| format!("{form}: {error}"))
}

fn connect(port: u16) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    Ok(stream)
}

/// One request, by a connection of its own: the page.
fn ask(port: u16, form: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = connect(port)?;
    let head = format!("GET /{form}/{PATH} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut answer = Vec::with_capacity(8192);
    stream.read_to_end(&mut answer)?;
    page(&answer)
}

/// One request, by a connection that stays.
fn ask_again(port: u16, form: &str, kept: &mut Option<TcpStream>) -> std::io::Result<Vec<u8>> {
    let stream = match kept {
        Some(stream) => stream,
        None => kept.insert(connect(port)?),
    };
    let head = format!("GET /{form}/{PATH} HTTP/1.1\r\nHost: here\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut answer = Vec::with_capacity(8192);
    let mut piece = [0; 8192];
    let is_whole = |answer: &[u8]| match answer.windows(8).any(|at| at == b" chunked") {
        true => answer.ends_with(b"\r\n0\r\n\r\n"),
        false => answer.ends_with(b"</main>\n"),
    };
    while !is_whole(&answer) {
        match stream.read(&mut piece)? {
            0 => break,
            size => answer.extend_from_slice(&piece[..size]),
        }
    }
    page(&answer)
}

/// The page of an answer.
fn page(answer: &[u8]) -> std::io::Result<Vec<u8>> {
    let body = answer.windows(2).position(|at| at == b"<!");
    let end = answer.windows(7).rposition(|at| at == b"</main>");
    match (answer.starts_with(b"HTTP/1.1 200"), body, end) {
        (true, Some(from), Some(to)) if from < to => Ok(answer[from..to].to_vec()),
        _ => Err(std::io::Error::other("no page")),
    }
}
