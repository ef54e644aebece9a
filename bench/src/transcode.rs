//! Pictures through plugins, with the four sizes of Kernel Plugins (2004), Figures 9 to 12: a PPM
//! file as it is, and made grey by the same source as a shared object of gcc's that nothing
//! confines, as an object of `postern cc`, and as E-code. All take turns. Then the shipped plugins
//! by themselves, and how many namespaces a server has at once.

use crate::serve::{Ending, serve};
use postern_figures::Measured;
use postern_figures::figure::{Figure, Goal};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Instant;

/// Name of a size, and width and height of its picture: 9, 99 and 270 KB and 3.3 MB.
const SIZES: [(&str, usize, usize); 4] = [
    ("9KB", 60, 50),
    ("99KB", 220, 150),
    ("270KB", 300, 300),
    ("3300KB", 1100, 1000),
];
/// Ways to run a plugin, as `serve.toml` and as rows call them.
const WAYS: [(&str, &str); 3] = [
    ("unprotected", "native"),
    ("protected", "cc"),
    ("ecode", "ecode"),
];
/// A row of [`SITE_PLUGINS`].
macro_rules! plugin {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../examples/site/plugins/", $name)),
        )
    };
}

/// The plugins of the example's site: names of files, and sources.
const SITE_PLUGINS: [(&str, &str); 7] = [
    plugin!("deflate.c"),
    plugin!("gray.c"),
    plugin!("quantise.c"),
    plugin!("roi.c"),
    plugin!("scale.c"),
    plugin!("scale2.c"),
    plugin!("sharpen.c"),
];
/// What is passed for the plugins by themselves.
const PLUGINS: [&str; 6] = [
    "gray",
    "scale2",
    "roi(100,100,800,800)",
    "quantise(16)",
    "sharpen",
    "deflate",
];
/// Namespaces that shall be alive.
const ALIVE: usize = 10_000;
/// The plugin of each of them.
const MINE: &str =
    "#include \"picture.h\"\nint mine(struct picture *p) { p->pixels[0] = 1; return 1; }\n";

/// A connection that is kept.
struct Client(BufReader<TcpStream>);

/// What came back.
struct Answer {
    status: u16,
    /// Time of the plugins, as the server says it, in microseconds.
    inside: f64,
    body: Vec<u8>,
}

impl Client {
    fn new(port: u16) -> std::io::Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        Ok(Client(BufReader::with_capacity(1 << 16, stream)))
    }

    fn ask(&mut self, head: &str, body: &[u8]) -> std::io::Result<Answer> {
        let length = body.len();
        let text = format!("{head} HTTP/1.1\r\nHost: here\r\nContent-Length: {length}\r\n");
        self.rest(text, body)
    }

    fn rest(&mut self, mut text: String, body: &[u8]) -> std::io::Result<Answer> {
        text += "\r\n";
        let mut request = text.into_bytes();
        request.extend_from_slice(body);
        self.0.get_mut().write_all(&request)?;
        let (mut status, mut length, mut inside) = (0, 0, 0.0);
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line)?;
            let line = line.trim_end().to_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest.get(..3).and_then(|s| s.parse().ok()).unwrap_or(0);
            } else if let Some(rest) = line.strip_prefix("content-length: ") {
                length = rest.parse().unwrap_or(0);
            } else if let Some(rest) = line.strip_prefix("server-timing: ") {
                let steps = rest.split(", ").filter_map(|step| step.split_once(";dur="));
                let plugins = steps.filter(|(name, _)| !["decode", "encode"].contains(name));
                inside = plugins
                    .filter_map(|(_, time)| time.parse::<f64>().ok())
                    .sum::<f64>()
                    * 1e3;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok(Answer {
            status,
            inside,
            body,
        })
    }

    /// Microseconds from the request to the whole answer.
    fn time(&mut self, head: &str) -> Result<(f64, Answer), String> {
        let began = Instant::now();
        let answer = self.ask(head, b"").map_err(|e| format!("{head}: {e}"))?;
        let time = began.elapsed().as_secs_f64() * 1e6;
        match answer.status {
            200 => Ok((time, answer)),
            status => Err(format!(
                "{head}: {status} {}",
                String::from_utf8_lossy(&answer.body)
            )),
        }
    }
}

/// The figures.
pub fn figures(directory: &Path) -> Measured {
    let text = |e: std::io::Error| e.to_string();
    let mut servers = Vec::new();
    for (run, name) in WAYS {
        let site = directory.join(format!("transcode-{name}"));
        write_site(&site, &format!("[plugins]\nrun = \"{run}\"\n")).map_err(text)?;
        let (server, port) = serve(&site)?;
        servers.push((server, Client::new(port).map_err(text)?));
    }
    let mut figures = Vec::new();
    for (size, width, height) in SIZES {
        figures.extend(one_size(&mut servers, size, width * height)?);
    }
    for plugin in PLUGINS {
        figures.extend(one_plugin(&mut servers, plugin)?);
    }
    drop(servers);
    figures.extend(alive(&directory.join("transcode-alive"))?);
    Ok(figures)
}

/// A picture as a file, and the three ways through `gray`.
fn one_size(servers: &mut [(Ending, Client)], size: &str, pixels: usize) -> Measured {
    let turns = (20_000_000 / pixels).clamp(40, 1000);
    let (plain, gray) = (
        format!("GET /{size}.ppm"),
        format!("GET /{size}.ppm?through=gray"),
    );
    let mut none = f64::INFINITY;
    let mut times = [(f64::INFINITY, f64::INFINITY); WAYS.len()];
    let mut first: Option<Vec<u8>> = None;
    for _ in 0..turns {
        for ((_, client), best) in servers.iter_mut().zip(&mut times) {
            none = none.min(client.time(&plain)?.0);
            let (time, answer) = client.time(&gray)?;
            *best = (best.0.min(time), best.1.min(answer.inside));
            match &first {
                None => first = Some(answer.body),
                Some(first) if *first == answer.body => {}
                Some(_) => return Err(format!("{gray}: two ways make two pictures")),
            }
        }
    }
    let name = |what: &str| format!("transcode.{size}.{what}");
    let note = "the file as it is: time of a request, best of those in turn";
    let mut figures = vec![Figure::plain(name("none"), none, "us", note)];
    for ((_, way), (time, inside)) in WAYS.iter().zip(times) {
        let note = format!("made grey: time of a request; {inside:.1} us of it in the plugin");
        let figure = Figure::plain(name(way), time, "us", note);
        figures.push(match *way {
            "native" => figure.against(none),
            _ => figure.against(times[0].0),
        });
        if *way != "native" {
            let note = "the plugin alone, over gcc -O2";
            let figure = Figure::plain(name(&format!("{way}-plugin")), inside, "us", note);
            let goal = if *way == "ecode" { 1.5 } else { 1.2 };
            figures.push(figure.against(times[0].1).goal(Goal::RatioAtMost(goal)));
        }
    }
    if let Some(figure) = figures
        .iter_mut()
        .find(|figure| figure.name == name("ecode"))
    {
        figure.goal = Some(Goal::RatioAtMost(1.5));
    }
    Ok(figures)
}

/// A plugin with the largest picture.
fn one_plugin(servers: &mut [(Ending, Client)], plugin: &str) -> Measured {
    let head = format!("GET /{}.ppm?through={plugin}", SIZES[3].0);
    let mut times = [f64::INFINITY; WAYS.len()];
    for _ in 0..12 {
        for ((_, client), best) in servers.iter_mut().zip(&mut times) {
            *best = best.min(client.time(&head)?.1.inside);
        }
    }
    let short = plugin.split('(').next().unwrap_or(plugin);
    let figures = WAYS.iter().zip(times).skip(1).map(|((_, way), time)| {
        let note = format!("{plugin} of a picture of 1.1 megapixels, over gcc -O2");
        Figure::plain(format!("transcode.plugin.{short}.{way}"), time, "us", note)
            .against(times[0])
            .goal(Goal::RatioAtMost(1.5))
    });
    Ok(figures.collect())
}

/// A namespace for each of many guests.
fn alive(site: &Path) -> Measured {
    let text = |e: std::io::Error| e.to_string();
    write_site(
        site,
        &format!("[plugins]\nguests = true\nguests_most = {ALIVE}\n"),
    )
    .map_err(text)?;
    let (server, port) = serve(site)?;
    let mut client = Client::new(port).map_err(text)?;
    let own = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", server.0.id()));
    let resident = || -> Result<f64, String> {
        let status = own("status").map_err(text)?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.ok_or_else(|| "the system does not tell the server's memory".to_owned())
    };
    let (before, maps) = (resident()?, own("maps").map_err(text)?.lines().count());
    let began = Instant::now();
    let mut put = |guest: usize| {
        let length = MINE.len();
        let head = format!(
            "PUT /plugins/mine HTTP/1.1\r\nHost: here\r\nContent-Length: {length}\r\nAuthorization: Bearer guest-number-{guest:08}\r\n"
        );
        client.rest(head, MINE.as_bytes())
    };
    let mut stopped = String::new();
    for guest in 0..ALIVE {
        let answer = put(guest).map_err(text)?;
        if answer.status != 201 {
            stopped = format!(
                "; then: {}",
                String::from_utf8_lossy(&answer.body).trim_end()
            );
            break;
        }
    }
    let spent = began.elapsed().as_secs_f64();
    let metrics = client.ask("GET /metrics", b"").map_err(text)?;
    let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
    let count = metrics
        .lines()
        .find_map(|line| line.strip_prefix("postern_plugins_clients "));
    let count: f64 = count.and_then(|n| n.parse().ok()).ok_or("no metrics")?;
    let mappings = own("maps").map_err(text)?.lines().count() - maps;
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    let limit = limit.trim();
    let remedy = match count < ALIVE as f64 {
        true => "; more with sysctl vm.max_map_count=262144",
        false => "",
    };
    let note = format!(
        "clients with a namespace at once, each brought by a request; vm.max_map_count {limit}, {:.0} mappings each{remedy}{stopped}",
        mappings as f64 / count
    );
    Ok(vec![
        Figure::plain("transcode.alive", count, "namespaces", note),
        Figure::plain(
            "transcode.alive-memory",
            (resident()? - before) / count,
            "KiB",
            "resident, for one client with one plugin",
        ),
        Figure::plain(
            "transcode.put",
            spent * 1e6 / ALIVE as f64,
            "us",
            "a request with a client's first plugin: compiled, judged, in a new namespace",
        ),
    ])
}

fn write_site(site: &Path, plugins: &str) -> std::io::Result<()> {
    for folder in ["public", "plugins"] {
        std::fs::create_dir_all(site.join(folder))?;
    }
    for (size, width, height) in SIZES {
        let mut file = format!("P6\n{width} {height}\n255\n").into_bytes();
        let mut state = 1u32;
        file.extend((0..3 * width * height).map(|i| {
            // Slopes with some noise, as photographs have.
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (i / 97) as u8 ^ (state >> 29) as u8
        }));
        std::fs::write(site.join(format!("public/{size}.ppm")), file)?;
    }
    for (name, source) in SITE_PLUGINS {
        std::fs::write(site.join("plugins").join(name), source)?;
    }
    let toml =
        format!("listen = \"127.0.0.1:0\"\ntranscode = true\n[log]\naccess = \"\"\n{plugins}");
    std::fs::write(site.join("serve.toml"), toml)
}
