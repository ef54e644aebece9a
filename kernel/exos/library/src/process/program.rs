//! Programs by their names: files of the archive or of servers, and scripts, whose first line says which
//! program runs them.

use postern_aegis::Error;
use postern_exos_abi::VERSION;
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::protocol::{status, walk};
use postern_exos_load::archive;
use postern_exos_load::elf::Program;
use postern_exos_load::source::Source;

use crate::files::mounts;
use crate::files::paths::{self, Path, Target};
use crate::files::served::File;
use crate::process::registry::refusal;

/// A program's file.
#[derive(Debug)]
enum Image {
    Archive(archive::File),
    Served(Held),
}

/// A file of a server, which is open for as long as this lives.
#[derive(Debug)]
struct Held {
    file: File,
    length: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.file.close();
    }
}

impl Source for Held {
    fn length(&self) -> u64 {
        self.length
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<usize, Error> {
        // The loader has no other word for it.
        self.file.read_at(at, bytes).map_err(|_| Error::Kind)
    }
}

impl Image {
    fn open(name: &[u8]) -> Result<Image, Errno> {
        match paths::follow(&mut Path::of(name)?, walk::FOLLOW | walk::OPEN, 0)? {
            Target::File(index) => Ok(Image::Archive(archive::nth(index).ok_or(errno::NOENT)?)),
            Target::Archive | Target::Console | Target::Null => Err(errno::ACCES),
            Target::Served(server, words) => {
                let file = File {
                    node: words[status::NODE],
                    word: server.word(),
                };
                mounts::opened(server, file.node)?;
                let held = Held {
                    file,
                    length: words[status::SIZE],
                };
                match words[status::KIND] == 1 && words[status::MODE] & 0o111 != 0 {
                    true => Ok(Image::Served(held)),
                    false => Err(errno::ACCES),
                }
            }
        }
    }

    fn source(&self) -> &dyn Source {
        match self {
            Image::Archive(file) => file,
            Image::Served(held) => held,
        }
    }
}

/// Bytes of a script's first line at most.
const LINE: usize = 256;

/// A script's first line behind `#!`: the program, and one argument, if there is one.
#[derive(Debug)]
struct Line {
    bytes: [u8; LINE],
    length: usize,
}

impl Line {
    /// The one of a file, if it is a script.
    fn of(source: &dyn Source) -> Option<Line> {
        let mut bytes = [0; LINE];
        let got = source.read(0, &mut bytes).ok()?;
        let line = bytes.get(..got)?.strip_prefix(b"#!")?;
        let end = line.iter().position(|byte| *byte == b'\n');
        // One that does not end here would be cut.
        let end = end.or((got < LINE).then_some(line.len()))?;
        let length = line[..end].trim_ascii().len();
        let before = line[..end].trim_ascii_start();
        let from = 2 + end - before.len();
        bytes.copy_within(from..from + length, 0);
        (length != 0).then_some(Line { bytes, length })
    }

    fn words(&self) -> (&[u8], Option<&[u8]>) {
        let line = &self.bytes[..self.length];
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        match line.iter().position(blank) {
            Some(at) => (&line[..at], Some(line[at..].trim_ascii())),
            None => (line, None),
        }
    }
}

/// A program that was found.
#[derive(Debug)]
pub struct Found {
    image: Image,
    /// What it is.
    pub program: Program,
    line: Option<Line>,
}

impl Found {
    /// Its bytes.
    pub fn source(&self) -> &dyn Source {
        self.image.source()
    }

    /// Arguments in place of the first one, if it runs a script of a name.
    pub fn arguments<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + Clone {
        let words = self.line.as_ref().map(Line::words);
        let (program, argument) = match words {
            Some((program, argument)) => (Some(program), argument),
            None => (None, None),
        };
        let script = program.map(|_| name);
        [program, argument, script].into_iter().flatten()
    }

    /// Whether it runs a script.
    pub fn is_script(&self) -> bool {
        self.line.is_some()
    }
}

/// The program of a name.
pub fn find(name: &[u8]) -> Result<Found, Errno> {
    let image = Image::open(name)?;
    let (image, program, line) = match Program::read(image.source()) {
        Err(Error::Kind) => {
            let line = Line::of(image.source()).ok_or(errno::NOEXEC)?;
            let image = Image::open(line.words().0)?;
            let program = Program::read(image.source()).map_err(refusal)?;
            (image, program, Some(line))
        }
        program => (image, program.map_err(refusal)?, None),
    };
    if program.version != VERSION {
        return Err(errno::NOEXEC);
    }
    Ok(Found {
        image,
        program,
        line,
    })
}
