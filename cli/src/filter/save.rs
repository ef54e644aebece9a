//! Where accepted packets are written: one file, standard output, or one file after the other.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use postern_capture::{Format, Rotation, Savefiles, Source, Writer, is_stdout};

use super::from::{From, unusable};
use crate::output::Failure;

/// Why a file is not written.
pub const READ: &str = "it is the file that is read; write another one";

/// What is written, and how.
#[derive(Args)]
pub struct Save {
    /// Write the accepted packets to this file: pcapng if its name ends so, else pcap; `-` is
    /// standard output
    #[arg(short = 'w', long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Write pcapng, whatever the file's name is
    #[arg(long, requires = "write")]
    pcapng: bool,
    /// Begin the next file once one has more than so many million bytes; the later ones have a
    /// number behind the name
    #[arg(short = 'C', value_name = "MILLIONS", requires = "write",
        value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    size: Option<u64>,
    /// Begin the next file with the first packet after so many seconds; the name is a pattern of
    /// strftime(3)
    #[arg(short = 'G', value_name = "SECONDS", requires = "write",
        value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// With -C begin again with the first file after so many; with -G alone end after so many
    #[arg(short = 'W', value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    files: Option<u32>,
    /// Run this command with the name of each file that another one followed
    #[arg(short = 'z', value_name = "COMMAND")]
    command: Option<OsString>,
}

impl Save {
    /// How many files there may be.
    pub fn files(&self) -> Option<u32> {
        self.files
    }

    /// Begins what is written of a source; nothing if nothing is. `micro`: no times finer than
    /// microseconds are wanted.
    pub fn begin<'a>(
        &'a self,
        from: &'a From,
        source: &Source,
        micro: bool,
    ) -> Result<Option<Savefiles<'a>>, Failure> {
        let Some(path) = &self.write else {
            return Ok(None);
        };
        let rotation = Rotation {
            size: self.size.map(|millions| millions.saturating_mul(1_000_000)),
            seconds: self.seconds,
            files: self.files,
            command: self.command.clone(),
        };
        if is_stdout(path) && (rotation.size.is_some() || rotation.seconds.is_some()) {
            return Err(unusable(
                "-C and -G are for files: `-w FILE` instead of `-w -`",
            ));
        }
        let (link, interfaces) = (source.link(), source.interfaces().to_vec());
        let named = match self.pcapng {
            true => Format::PcapNg,
            false => Format::of(path),
        };
        let format = if micro { named.of_micro() } else { named };
        let begin = move |path: &Path| match is_stdout(path) {
            true => Writer::new_of(Box::new(std::io::stdout()), format, link, &interfaces),
            false if from.is_read(path) => Err(io::Error::other(READ)),
            false => Writer::create_of(path, format, link, &interfaces),
        };
        let files = Savefiles::new(path, rotation, begin);
        files.map(Some).map_err(|error| cannot_write(path, &error))
    }
}

/// A file that cannot be written.
pub fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::unusable(format!("cannot write {}: {error}", path.display()))
}
