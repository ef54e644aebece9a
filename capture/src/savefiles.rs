//! The files that packets are written to, one after the other, named as tcpdump names them.
//!
//! Invariant: a file is complete and closed before the next one begins, and before the command for
//! finished files is told of it.

use crate::trusted::clock;
use crate::writer::Writer;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// When one file ends and the next one begins. Nothing of it: there is one file.
#[derive(Clone, Debug, Default)]
pub struct Rotation {
    /// Bytes: a packet that comes when a file is larger goes to the next one, which is called by
    /// its number.
    pub size: Option<u64>,
    /// Seconds: a packet that comes so long after the file was begun goes to the next one. Names
    /// are patterns of strftime(3) then, in local time.
    pub seconds: Option<u64>,
    /// With `size` numbers begin again at 0 after so many files; else there are no more.
    pub files: Option<u32>,
    /// A command that is run with the name of each file that was followed by another one, at the
    /// lowest priority.
    pub command: Option<OsString>,
}

/// Begins a capture file of this name.
type Begin<'a> = Box<dyn FnMut(&Path) -> io::Result<Writer> + Send + 'a>;

/// Files in the making.
pub struct Savefiles<'a> {
    /// As the user wrote it.
    name: PathBuf,
    rotation: Rotation,
    begin: Begin<'a>,
    /// None once there are as many files as were wanted.
    current: Option<Writer>,
    path: PathBuf,
    /// Seconds since 1970.
    begun: u64,
    /// Of the file among those of this time.
    number: u32,
    /// Files that ended because of their time.
    ended: u32,
    commands: Vec<Child>,
    complaint: Option<String>,
}

impl<'a> Savefiles<'a> {
    /// Begins the first file by `begin`, which is asked for each.
    ///
    /// # Errors
    /// It cannot be written, or its pattern makes no name.
    pub fn new(
        name: &Path,
        rotation: Rotation,
        begin: impl FnMut(&Path) -> io::Result<Writer> + Send + 'a,
    ) -> io::Result<Savefiles<'a>> {
        Savefiles::at(name, rotation, Box::new(begin), now())
    }

    fn at(
        name: &Path,
        rotation: Rotation,
        begin: Begin<'a>,
        now: u64,
    ) -> io::Result<Savefiles<'a>> {
        let mut files = Savefiles {
            name: name.to_owned(),
            rotation,
            begin,
            current: None,
            path: PathBuf::new(),
            begun: now,
            number: 0,
            ended: 0,
            commands: Vec::new(),
            complaint: None,
        };
        files.next()?;
        Ok(files)
    }

    /// Begins the next file, if it is time. False if there was one too many.
    ///
    /// # Errors
    /// The current file cannot be finished, or the next one not be begun.
    pub fn turn(&mut self) -> io::Result<bool> {
        match self.rotation.seconds {
            Some(_) => self.turn_at(now()),
            None => self.turn_at(self.begun),
        }
    }

    fn turn_at(&mut self, now: u64) -> io::Result<bool> {
        let Rotation {
            size,
            seconds,
            files,
            ..
        } = self.rotation;
        if seconds.is_some_and(|seconds| now.saturating_sub(self.begun) >= seconds) {
            self.end()?;
            (self.begun, self.number) = (now, 0);
            self.ended = self.ended.saturating_add(1);
            if size.is_none() && files.is_some_and(|most| self.ended >= most) {
                return Ok(false);
            }
            self.next()?;
        }
        let written = self.current.as_ref().map_or(0, Writer::written);
        if size.is_some_and(|size| written > size) {
            self.end()?;
            self.number = self.number.wrapping_add(1);
            if files.is_some_and(|most| self.number >= most) {
                self.number = 0;
            }
            self.next()?;
        }
        Ok(self.current.is_some())
    }

    /// The file of the packets that come now; none after [`Savefiles::turn`] said that it is
    /// enough.
    pub fn writer(&mut self) -> Option<&mut Writer> {
        self.current.as_mut()
    }

    /// The name of that file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Hands over what is not written yet.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.current.as_mut().map_or(Ok(()), Writer::flush)
    }

    /// The end of the last file, for which no command is run.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(&mut self) -> io::Result<()> {
        self.current.as_mut().map_or(Ok(()), Writer::finish)
    }

    fn next(&mut self) -> io::Result<()> {
        self.path = self.named()?;
        self.current = Some((self.begin)(&self.path)?);
        Ok(())
    }

    /// Ends the current file.
    fn end(&mut self) -> io::Result<()> {
        if let Some(mut writer) = self.current.take() {
            writer.finish()?;
        }
        self.commands
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if let Some(command) = &self.rotation.command {
            let child = Command::new("nice")
                .args(["-n", "19", "--"])
                .args([command.as_os_str(), self.path.as_os_str()])
                .stdin(Stdio::null())
                .spawn();
            match child {
                Ok(child) => self.commands.push(child),
                // Packets are worth more than what is made of finished files.
                Err(error) => {
                    let (command, path) = (command.display(), self.path.display());
                    let text = format!("cannot run `{command}` for {path}: {error}");
                    self.complaint = Some(text);
                }
            }
        }
        Ok(())
    }

    /// Why a command was not run for a file that ended, to be told once.
    pub fn complaint(&mut self) -> Option<String> {
        self.complaint.take()
    }

    /// The name of the file that begins now.
    fn named(&self) -> io::Result<PathBuf> {
        let mut name = self.name.as_os_str().as_bytes().to_vec();
        if self.rotation.seconds.is_some() {
            let at = i64::try_from(self.begun).unwrap_or(i64::MAX);
            name = clock::named_by_time(&name, at).ok_or_else(|| {
                let wrong = "the time makes no name of it, or one that is too long";
                io::Error::new(io::ErrorKind::InvalidInput, wrong)
            })?;
        }
        if self.rotation.size.is_some() {
            let digits = self.rotation.files.map_or(0, digits);
            if self.number > 0 || digits > 0 {
                name.extend(format!("{:0digits$}", self.number).into_bytes());
            }
        }
        Ok(OsString::from_vec(name).into())
    }
}

/// Digits of the highest number of so many files, which are counted from 0 on; none if that is 0.
fn digits(files: u32) -> usize {
    files
        .saturating_sub(1)
        .checked_ilog10()
        .map_or(0, |log| log as usize + 1)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Whether a name is standard output's, which cannot be followed by another file.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == OsStr::new("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::Format;

    fn files(folder: &Path, name: &str, rotation: &Rotation) -> Savefiles<'static> {
        let begin = |path: &Path| Writer::create(path, Format::Pcap, &[]);
        let name = folder.join(name);
        Savefiles::at(&name, rotation.clone(), Box::new(begin), 1_700_000_000).unwrap()
    }

    fn listed(folder: &Path) -> Vec<String> {
        let name = |entry: io::Result<std::fs::DirEntry>| {
            entry.unwrap().file_name().into_string().unwrap()
        };
        let mut names: Vec<String> = std::fs::read_dir(folder).unwrap().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn numbers_have_digits() {
        for (files, expected) in [(0, 0), (1, 0), (2, 1), (10, 1), (11, 2), (100, 2), (101, 3)] {
            assert_eq!(digits(files), expected, "{files}");
        }
    }

    /// The time is checked when a packet comes, counts from then on, and goes before the size.
    #[test]
    fn time_and_size() {
        let folder = tempfile::tempdir().unwrap();
        let rotation = Rotation {
            size: Some(100),
            seconds: Some(10),
            ..Rotation::default()
        };
        let mut files = files(folder.path(), "%s.pcap", &rotation);
        let begun = 1_700_000_000;
        for (after, number) in [(0, 0), (1, 0), (9, 1), (10, 0), (15, 0), (19, 1), (25, 0)] {
            assert!(files.turn_at(begun + after).unwrap());
            let start = if after < 10 {
                0
            } else {
                after.min(25) / 10 * 10 + 5 * (after / 25)
            };
            let mut expected = format!("{}.pcap", begun + start);
            if number > 0 {
                expected += &number.to_string();
            }
            let named = files.path().file_name().unwrap();
            assert_eq!(named, OsStr::new(&expected), "{after}");
            // A header of 24 bytes, and 56 with the packet.
            files.writer().unwrap().packet(0, &[0; 40], 40).unwrap();
        }
        files.finish().unwrap();
    }

    /// Names that patterns cannot make are errors; without a pattern each file replaces the one
    /// before, and the limit ends it all.
    #[test]
    fn limits_and_odd_names() {
        let folder = tempfile::tempdir().unwrap();
        let rotation = Rotation {
            seconds: Some(1),
            files: Some(3),
            ..Rotation::default()
        };
        let mut files = files(folder.path(), "same", &rotation);
        for after in [0, 1, 2, 3] {
            let more = files.turn_at(1_700_000_000 + after).unwrap();
            assert_eq!(more, after < 3);
            assert_eq!(files.writer().is_some(), after < 3);
        }
        assert!(!files.turn_at(1_700_000_100).unwrap());
        files.finish().unwrap();
        assert_eq!(listed(folder.path()), ["same"]);
        for name in ["", &"%c".repeat(3000)] {
            let begin = |path: &Path| Writer::create(path, Format::Pcap, &[]);
            assert!(Savefiles::new(Path::new(name), rotation.clone(), begin).is_err());
        }
    }
}
