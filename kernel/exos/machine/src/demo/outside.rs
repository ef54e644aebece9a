//! Requests to the machine from outside, by `curl` as anybody would make them, or by a client of
//! this file's where there is none.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use postern_exos_machine::place;

/// Seconds that an answer may take.
const SECONDS: u64 = 30;

/// Who asks.
pub struct Outside {
    /// The port of this machine's loopback.
    pub port: u16,
    /// Whether there is a `curl`.
    pub curl: bool,
}

/// An answer.
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as lines.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).trim_end().to_owned()
    }
}

impl Outside {
    /// For a port.
    pub fn new(port: u16) -> Outside {
        let curl = Command::new("curl").arg("--version").output();
        let curl = curl.is_ok_and(|output| output.status.success());
        Outside { port, curl }
    }

    /// Gets a path, or puts a file there; the request is printed.
    pub fn ask(&self, path: &str, file: Option<&Path>) -> Result<Answer, Box<dyn Error>> {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let words = file.map_or(String::new(), |file| format!(" -T {}", name_of(file)));
        match self.curl {
            true => println!("  $ curl{words} '{url}'"),
            false => println!("  (there is no curl; as by: curl{words} '{url}')"),
        }
        match self.curl {
            true => by_curl(&url, file),
            false => self.by_itself(path, file),
        }
    }

    /// With a connection of its own.
    fn by_itself(&self, path: &str, file: Option<&Path>) -> Result<Answer, Box<dyn Error>> {
        let method = if file.is_some() { "PUT" } else { "GET" };
        let body = file.map(std::fs::read).transpose()?.unwrap_or_default();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(SECONDS)))?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), &body].concat())?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let body = bytes.split_off(end.ok_or("an answer without an end of its head")? + 4);
        let status = String::from_utf8_lossy(bytes.get(9..12).unwrap_or_default()).parse()?;
        Ok(Answer { status, body })
    }
}

/// As it is said: below the repository by its path there, others by their names.
fn name_of(file: &Path) -> String {
    match file.strip_prefix(place::repository()) {
        Ok(own) => own.display().to_string(),
        Err(_) => Path::new(file.file_name().unwrap_or_default())
            .display()
            .to_string(),
    }
}

fn by_curl(url: &str, file: Option<&Path>) -> Result<Answer, Box<dyn Error>> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--noproxy", "*"]);
    command.args(["--max-time", &SECONDS.to_string()]);
    // The status behind the body.
    command.args(["--write-out", "%{http_code}"]);
    if let Some(file) = file {
        command.arg("--upload-file").arg(file);
    }
    let output = command.arg(url).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let mut body = output.stdout;
    let status = body.split_off(body.len().saturating_sub(3));
    let status = String::from_utf8_lossy(&status).parse()?;
    Ok(Answer { status, body })
}
