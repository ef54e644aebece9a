//! The first scenes: a shell at the serial line, a disk that stays, and a web server whose files
//! are on it and whose code comes from others.

use std::error::Error;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use postern_aegis_machine::emulator::{Machine, Software, User};
use postern_aegis_machine::session::Session;
use postern_aegis_machine::status::Status;
use postern_exos_abi::request::AGAIN;
use postern_exos_machine::images::image::Image;
use postern_exos_machine::{place, programs, site, software};

use super::outside::{Answer, Outside};

/// What the shell says when it waits for a line.
const PROMPT: &str = "/$ ";

/// How long anything may take, on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A plugin that never returns.
const LOOP: &str =
    "#include \"picture.h\"\n\nint loop(struct picture *p)\n{\n\tfor (;;)\n\t\t;\n}\n";

/// A shell at the serial line of a machine.
struct Shell(Session);

impl Shell {
    /// Starts a machine, and waits for the shell.
    fn boot(machine: &Machine, software: &Software) -> Result<Shell, Box<dyn Error>> {
        let mut session = machine.start(software)?;
        let heard = session.hears(PROMPT, PATIENCE)?;
        for line in heard.lines().filter(|line| *line != PROMPT) {
            println!("  | {line}");
        }
        Ok(Shell(session))
    }

    /// Types a line; what it says until words of it is printed.
    fn types_until(&mut self, line: &str, words: &str) -> Result<String, Box<dyn Error>> {
        self.0.types(&format!("{line}\n"))?;
        self.0.hears(line, PATIENCE)?;
        println!("  | {PROMPT}{line}");
        let said = self.0.hears(words, PATIENCE)?;
        let said = said.strip_suffix(PROMPT).unwrap_or(&said);
        for line in said.trim_matches('\n').lines() {
            println!("  | {line}");
        }
        Ok(said.to_owned())
    }

    /// Types a line, and waits for the next prompt.
    fn types(&mut self, line: &str) -> Result<String, Box<dyn Error>> {
        self.types_until(line, &format!("\n{PROMPT}"))
    }

    /// The last line, with which the machine ends.
    fn ends(mut self, line: &str) -> Result<Status, Box<dyn Error>> {
        self.0.types(&format!("{line}\n"))?;
        println!("  | {PROMPT}{line}");
        Ok(self.0.ends()?.1)
    }
}

/// That something is as it should be, or the demonstration ends.
fn must(holds: bool, what: &str) -> Result<(), Box<dyn Error>> {
    holds.then_some(()).ok_or_else(|| what.into())
}

/// An answer with a status; what it says is printed.
fn expect(answer: &Answer, status: u16) -> Result<(), Box<dyn Error>> {
    println!("  {} {}", answer.status, short(&answer.text()));
    let what = format!("{status} was expected, and the answer is {}", answer.status);
    must(answer.status == status, &what)
}

/// A text as one line that is not long.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// What is booted: the shell, its tools, the services, and a site in the archive.
fn prepare(folder: &Path) -> Result<Software, Box<dyn Error>> {
    let mut all = programs::commands()?;
    all.extend(programs::of("services")?);
    let mut files = programs::make(&all)?;
    files.push(("init".to_owned(), b"sh -l".to_vec()));
    let services = b"fsd\nramd /tmp\nnetd\n".to_vec();
    files.push(("services.list".to_owned(), services));
    files.extend(site::make()?);
    Ok(software::prepare(&files, folder)?)
}

/// Shows all of it.
pub fn run(processors: u32) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let software = prepare(folder.path())?;
    let disk = folder.path().join("disk.img");
    Image::make(&disk, 16 << 20, false)?;
    // A port that nobody has now.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let machine = Machine {
        processors,
        limit: Duration::from_secs(300),
        user: Some(User {
            forwards: vec![(port, 80)],
            restricted: true,
        }),
        disk: true,
        image: Some(disk.into_os_string()),
        ..Machine::default()
    };
    println!("1. A machine boots to a shell on the serial line. It has an empty disk.");
    let mut shell = Shell::boot(&machine, &software)?;
    shell.types("uname -a")?;
    shell.types("mkdir -p /site/cgi")?;
    shell.types("cp /bin/www/index.html /bin/www/picture.ppm /site")?;
    shell.types("cp /bin/www/cgi/guest.px /site/cgi")?;
    shell.types("echo '<p>Written before the reboot.' > /site/note.html")?;
    shell.types("ls /site")?;
    let status = shell.ends("reboot")?;
    must(status == Status::Stopped(AGAIN), &status.to_string())?;

    println!("\n2. It has begun again. What was written is on the disk.");
    let mut shell = Shell::boot(&machine, &software)?;
    let note = shell.types("cat /site/note.html")?;
    must(note.contains("before the reboot"), "the file is gone")?;
    shell.types_until("www -x /site &", "/\n")?;
    let outside = Outside::new(port);
    ask(&outside, folder.path())?;
    println!("  What the server said of it:");
    for words in ["guest: deadline", "guest: null-pointer"] {
        let said = shell.0.hears(words, PATIENCE)? + &shell.0.hears("\n", PATIENCE)?;
        println!("  | {}", said.lines().last().unwrap_or_default());
    }

    println!("\n6. The shell, after all that.");
    shell.types("ps")?;
    let status = shell.ends("poweroff")?;
    println!("  {status}\n");
    must(status.is_well(), "the machine did not end well")
}

/// What clients outside of the machine ask of its web server.
fn ask(outside: &Outside, folder: &Path) -> Result<(), Box<dyn Error>> {
    println!("\n3. Its web server, asked from outside, through a port of this machine's.");
    expect(&outside.ask("/note.html", None)?, 200)?;
    println!("  A program of the site, which is native code that the server judged and confined:");
    expect(&outside.ask("/cgi/guest", None)?, 200)?;

    println!("\n4. A client sends code, and a moment later a picture goes through it.");
    let picture = outside.ask("/picture.ppm", None)?;
    let whole = site::picture();
    must(picture.body == whole, "it is another picture")?;
    println!("  200 {} bytes, in colour", picture.body.len());
    let source = place::repository().join("examples/site/plugins/gray.c");
    expect(&outside.ask("/plugins/gray", Some(&source))?, 201)?;
    let gray = outside.ask("/picture.ppm?through=gray", None)?;
    let pixels = (site::SIZE.0 * site::SIZE.1) as usize;
    let is_gray = gray.body.starts_with(b"P5") && gray.body.len() < pixels + 20;
    must(gray.status == 200 && is_gray, "it is not gray")?;
    println!("  200 {} bytes, in shades of gray", gray.body.len());
    for (name, bytes) in [("picture.ppm", &picture.body), ("gray.pgm", &gray.body)] {
        let path = place::target().join(name);
        std::fs::write(&path, bytes)?;
        println!("  To be looked at: {}", path.display());
    }

    println!("\n5. Code that loops or crashes gets an answer that says so. The server goes on.");
    let source = folder.join("loop.c");
    std::fs::write(&source, LOOP)?;
    println!("  loop.c is `{}`", short(LOOP));
    expect(&outside.ask("/plugins/loop", Some(&source))?, 201)?;
    expect(&outside.ask("/picture.ppm?through=loop", None)?, 504)?;
    expect(&outside.ask("/cgi/guest?loop", None)?, 504)?;
    expect(&outside.ask("/cgi/guest?crash", None)?, 500)?;
    expect(&outside.ask("/cgi/guest", None)?, 200)?;
    expect(&outside.ask("/note.html", None)?, 200)
}
