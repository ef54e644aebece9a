//! `disk`: images of the machine's disk, without a machine.

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use postern_exos_abi::file::{Files, Kind};
use postern_exos_fs::memory::Ticks;
use postern_exos_fs::{Block, Disk, FileSystem, Lru, check};
use postern_exos_machine::images::image::{Image, now};
use postern_exos_machine::images::log::Log;
use postern_exos_machine::images::overlay::Overlay;
use postern_exos_machine::images::replay::{Plan, replay};
use postern_exos_machine::images::{FRAMES, ImageError, tree};

/// Make, check and read images of the machine's disk
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make an image with an empty file system
    Make {
        image: PathBuf,
        /// Its size in MiB
        #[arg(short, long, default_value_t = 64, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
        size: u64,
        /// What was there before is lost
        #[arg(long)]
        force: bool,
    },
    /// Look for what is wrong; nothing is changed
    Check {
        image: PathBuf,
        /// As data
        #[arg(long)]
        json: bool,
    },
    /// List a folder and what is below it
    List {
        image: PathBuf,
        #[arg(default_value = "/")]
        folder: String,
        /// As data
        #[arg(long)]
        json: bool,
    },
    /// Copy a file out of an image, which may be damaged
    Get {
        image: PathBuf,
        path: String,
        /// Where to; without it, to the standard output
        to: Option<PathBuf>,
    },
    /// Copy a file into an image, in place of what has its name
    Put {
        image: PathBuf,
        from: PathBuf,
        path: String,
    },
    /// Make the disk as it could be after each moment of a record of writes, and check it
    Replay {
        /// The disk as it was before
        image: PathBuf,
        /// What QEMU's driver `blklogwrites` has recorded
        log: PathBuf,
        /// Only each so-many-th moment
        #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        step: u32,
        /// Disks for each moment
        #[arg(long, default_value_t = 3, value_name = "N")]
        disks: u32,
        /// What chance begins with
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// End after so many seconds
        #[arg(short, long, value_name = "SECONDS")]
        limit: Option<u64>,
        /// As data
        #[arg(long)]
        json: bool,
    },
}

/// Does it.
pub fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    match &arguments.command {
        Command::Make { image, size, force } => {
            let made = Image::make(image, size << 20, *force)?;
            println!("{}: {} blocks for files", image.display(), made.blocks());
            Ok(true)
        }
        Command::Check { image, json } => checked(image, *json),
        Command::List {
            image,
            folder,
            json,
        } => listed(image, folder, *json),
        Command::Get { image, path, to } => got(image, path, to.as_deref()),
        Command::Put { image, from, path } => put(image, from, path),
        Command::Replay {
            image,
            log,
            step,
            disks,
            seed,
            limit,
            json,
        } => {
            let plan = Plan {
                step: *step as usize,
                first: 0,
                disks: *disks as usize,
                seed: *seed,
                until: limit.map(|seconds| Instant::now() + Duration::from_secs(seconds)),
            };
            replayed(image, log, &plan, *json)
        }
    }
}

/// A text as JSON has it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if u32::from(letter) < 32 => {
                quoted += &format!("\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

fn listed_as_json(all: &[String]) -> String {
    let all: Vec<String> = all.iter().map(|one| quoted(one)).collect();
    format!("[{}]", all.join(","))
}

fn checked(path: &Path, json: bool) -> Result<bool, Box<dyn Error>> {
    let mut image = Image::open(path, false)?;
    let report = check(&mut image);
    let report = report.map_err(|error| ImageError::Files(path.to_owned(), error))?;
    if json {
        println!(
            "{{\"files\":{},\"blocks\":{},\"orphans\":{},\"transactions\":{},\"problems\":{}}}",
            report.files,
            report.blocks,
            report.orphans,
            report.transactions,
            listed_as_json(&report.problems)
        );
    } else {
        report
            .problems
            .iter()
            .for_each(|problem| println!("{problem}"));
        println!(
            "{} files with {} blocks; to finish: {} files, {} transactions; {} problems",
            report.files,
            report.blocks,
            report.orphans,
            report.transactions,
            report.problems.len()
        );
    }
    Ok(report.problems.is_empty())
}

/// What is done with files of an image that is not changed.
fn with<T>(
    path: &Path,
    act: impl FnOnce(&mut dyn Files) -> Result<T, Box<dyn Error>>,
) -> Result<T, Box<dyn Error>> {
    let disk = Overlay::new(Image::open(path, false)?);
    let mut frames = vec![Block::ZERO; FRAMES];
    let mounted = FileSystem::mount_or_read(disk, &mut frames, Lru::new(), Ticks::new());
    let (mut files, damage) = mounted.map_err(|error| ImageError::Files(path.to_owned(), error))?;
    if let Some(damage) = damage {
        eprintln!("exos-machine: {}: {damage}", path.display());
    }
    act(&mut files)
}

/// The file of a path, or why there is none.
fn follow(files: &mut dyn Files, path: &str) -> Result<u64, ImageError> {
    let found = tree::follow(files, path.as_bytes());
    found.map_err(|error| ImageError::Path(path.to_owned(), said(error)))
}

fn said(error: postern_exos_abi::errno::Errno) -> &'static str {
    use postern_exos_abi::errno;
    match error {
        errno::NOENT => "there is no such file",
        errno::NOTDIR => "something on the way is no folder",
        errno::ISDIR => "it is a folder",
        errno::LOOP => "too many links",
        errno::NOSPC => "the image is full",
        errno::NAMETOOLONG => "the name is too long",
        errno::INVAL => "it is no name",
        _ => "the image is damaged: check it",
    }
}

fn listed(image: &Path, folder: &str, json: bool) -> Result<bool, Box<dyn Error>> {
    with(image, |files| {
        let node = follow(files, folder)?;
        if files.status(node).map(|status| status.kind) != Ok(Kind::Folder) {
            return Err(ImageError::Path(folder.to_owned(), "it is no folder").into());
        }
        let mut well = true;
        let mut rows = Vec::new();
        for (path, found) in tree::all(files, node) {
            let Ok(found) = found else {
                well = false;
                eprintln!("exos-machine: {path} cannot be read");
                continue;
            };
            let status = found.status;
            let kind = match status.kind {
                Kind::File => "file",
                Kind::Folder => "folder",
                Kind::Link => "link",
            };
            let target = String::from_utf8_lossy(&found.target);
            rows.push(match json {
                true => format!(
                    "{{\"path\":{},\"kind\":{},\"size\":{},\"mode\":{},\"modified\":{},\"target\":{}}}",
                    quoted(&path),
                    quoted(kind),
                    status.size,
                    status.mode,
                    status.modified,
                    quoted(&target)
                ),
                false => {
                    let arrow = if found.target.is_empty() { "" } else { " -> " };
                    format!(
                        "{kind:<6} {:03o} {:>10} {path}{arrow}{target}",
                        status.mode, status.size
                    )
                }
            });
        }
        match json {
            true => println!("[{}]", rows.join(",\n ")),
            false => rows.iter().for_each(|row| println!("{row}")),
        }
        Ok(well)
    })
}

fn got(image: &Path, path: &str, to: Option<&Path>) -> Result<bool, Box<dyn Error>> {
    let bytes = with(image, |files| {
        let node = follow(files, path)?;
        let bytes = tree::bytes(files, node);
        Ok(bytes.map_err(|error| ImageError::Path(path.to_owned(), said(error)))?)
    })?;
    match to {
        Some(to) => {
            std::fs::write(to, bytes).map_err(|error| ImageError::File(to.to_owned(), error))?
        }
        None => std::io::stdout().write_all(&bytes)?,
    }
    Ok(true)
}

fn put(image: &Path, from: &Path, path: &str) -> Result<bool, Box<dyn Error>> {
    let bytes = std::fs::read(from).map_err(|error| ImageError::File(from.to_owned(), error))?;
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let disk = Image::open(image, true)?;
    let mut frames = vec![Block::ZERO; FRAMES];
    let clock = Ticks::behind(now());
    let damaged = |error| ImageError::Files(image.to_owned(), error);
    let mut files = FileSystem::mount(disk, &mut frames, Lru::new(), clock).map_err(damaged)?;
    let above = follow(&mut files, folder)?;
    let refused = |error| ImageError::Path(path.to_owned(), said(error));
    let written = replace(&mut files, above, name.as_bytes(), &bytes);
    files.unmount().map_err(damaged)?;
    written.map_err(refused)?;
    Ok(true)
}

/// A file has other bytes, or is new.
fn replace(
    files: &mut dyn Files,
    folder: u64,
    name: &[u8],
    bytes: &[u8],
) -> Result<(), postern_exos_abi::errno::Errno> {
    use postern_exos_abi::errno;
    let node = match files.look_up(folder, name) {
        Err(errno::NOENT) => files.create(folder, name, Kind::File, 0o644, b"")?,
        found => found?,
    };
    files.set_length(node, 0)?;
    let mut done = 0;
    while done < bytes.len() {
        match files.write(node, done as u64, &bytes[done..])? {
            0 => return Err(errno::NOSPC),
            some => done += some,
        }
    }
    Ok(())
}

fn replayed(image: &Path, log: &Path, plan: &Plan, json: bool) -> Result<bool, Box<dyn Error>> {
    let bytes = std::fs::read(image).map_err(|error| ImageError::File(image.to_owned(), error))?;
    let report = replay(bytes, &Log::read(log)?, plan);
    if json {
        println!(
            "{{\"events\":{},\"moments\":{},\"disks\":{},\"promises\":{},\"problems\":{}}}",
            report.events,
            report.moments,
            report.disks,
            report.promises,
            listed_as_json(&report.problems)
        );
    } else {
        report
            .problems
            .iter()
            .for_each(|problem| println!("{problem}"));
        println!(
            "{} events: {} moments, {} disks, {} blocks of promises; {} problems",
            report.events,
            report.moments,
            report.disks,
            report.promises,
            report.problems.len()
        );
    }
    Ok(report.problems.is_empty())
}
