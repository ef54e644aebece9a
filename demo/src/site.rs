//! The end of the demonstration: `postern serve` with a site. On a terminal the server stays, and
//! says where it is; without one it is asked for its pages here, and told to end.

use crate::error::Result;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where it is, if nobody else is there: a port of the next ones otherwise.
const PORT: u16 = 8080;
/// How many are tried.
const PORTS: u16 = 100;

/// A server that is killed if nothing better was done.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Answer {
    status: String,
    text: String,
}

/// Serves the folder with the command of that name.
pub fn run(postern: &Path, folder: &Path) -> Result<()> {
    let address = free()?;
    let mut command = Command::new(postern);
    command
        .arg("serve")
        .arg("--listen")
        .arg(address.to_string());
    if address.port() != PORT {
        println!("  (port {PORT} is taken)");
    }
    if std::io::stdout().is_terminal() {
        println!("  Open http://{address}/ to try it. Control-C ends it.\n");
        // This process becomes the server, which hears Control-C itself.
        return Err(command.arg(folder).exec().into());
    }
    let child = command
        .arg(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut server = Server(child);
    let said = server.0.stdout.take().ok_or("the server has no output")?;
    let mut said = BufReader::new(said);
    let mut line = String::new();
    said.read_line(&mut line)?;
    if !line.contains(&format!("http://{address}/")) {
        return Err(format!("the server did not start: {line}").into());
    }
    println!("  {}", line.trim_end());
    check(address)?;
    end(&mut server)?;
    let mut log = String::new();
    if let Some(errors) = &mut server.0.stderr {
        errors.read_to_string(&mut log)?;
    }
    match log.lines().find(|line| line.contains("guest.c:12")) {
        Some(line) => println!("  its log: {line}"),
        None => return Err(format!("the log has no line of the fault: {log}").into()),
    }
    Ok(())
}

fn free() -> Result<SocketAddr> {
    let candidates = (PORT..PORT + PORTS).map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    for address in candidates {
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    Err(format!("no port from {PORT} on is free").into())
}

/// Asks for everything that the site has.
fn check(address: SocketAddr) -> Result<()> {
    let ask = |method: &str, target: &str, body: &[u8], status: &str, text: &str| -> Result<()> {
        let began = Instant::now();
        let answer = request(address, method, target, body)?;
        let time = began.elapsed();
        let first = answer.text.lines().next().unwrap_or_default();
        if answer.status != status || !answer.text.contains(text) {
            let found = format!("{} {first}", answer.status);
            return Err(
                format!("{method} {target}: expected {status} {text:?}, got {found}").into(),
            );
        }
        let shown: String = first.chars().take(52).collect();
        let what = format!("{method} {target}");
        println!(
            "  {what:<39} {status} {:>7.0} µs  {shown}",
            time.as_secs_f64() * 1e6
        );
        Ok(())
    };
    ask("GET", "/healthz", b"", "200", "ok")?;
    ask("GET", "/", b"", "200", "<html")?;
    ask("GET", "/index.html", b"", "200", "<h1>")?;
    for path in ["/guest", "/fastcgi/guest", "/cgi/guest"] {
        ask("GET", path, b"", "200", "Hello, 127.0.0.1.")?;
    }
    ask("POST", "/words", b"to be or not to be", "200", "6 words")?;
    ask("GET", "/guest?crash", b"", "500", "id ")?;
    ask("GET", "/guest", b"", "200", "Hello, 127.0.0.1.")?;
    let picture = b"P6\n2 1\n255\n\xff\x00\x00\x00\x00\xff";
    let gray = "/transcode?through=gray&format=ppm";
    ask("POST", gray, picture, "200", "2 1\n255\n")?;
    ask("GET", "/../etc/passwd", b"", "404", "")?;
    let faults = "postern_serve_faults_total{handler=\"/guest\",run=\"protected\"} 1\n";
    ask("GET", "/metrics", b"", "200", faults)
}

fn request(address: SocketAddr, method: &str, target: &str, body: &[u8]) -> Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let length = body.len();
    write!(
        stream,
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    )?;
    stream.write_all(body)?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let whole = String::from_utf8_lossy(&bytes);
    let (head, text) = whole.split_once("\r\n\r\n").unwrap_or((&whole, ""));
    Ok(Answer {
        status: head.split(' ').nth(1).unwrap_or_default().to_owned(),
        text: text.to_owned(),
    })
}

/// Tells the server to end, and sees that it does so in good order.
fn end(server: &mut Server) -> Result<()> {
    let kill = format!("kill {}", server.0.id());
    if !Command::new("sh").args(["-c", &kill]).status()?.success() {
        return Err("the server cannot be told to end".into());
    }
    let status = server.0.wait()?;
    if !status.success() {
        return Err(format!("the server ended with {status}").into());
    }
    println!("  SIGTERM                                 ended in good order");
    Ok(())
}
