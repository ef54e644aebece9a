//! Control groups for the clients, one each, below the caller's own: by them the kernel holds a
//! client to its timeslice. They end with [`Groups`].
//!
//! Of version 2, if the `cpu` controller can be had there, else of version 1.

use crate::setup::Quota;
use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What names of groups begin with; the number of their maker follows, and their own.
const NAME: &str = "postern-cpu-manager-";

/// The interface of a hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `cpu.max`
    Two,
    /// `cpu.cfs_quota_us`
    One,
}

/// A folder in which groups may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The caller's own group, or the one above it.
    pub folder: PathBuf,
    /// What its files are called.
    pub version: Version,
}

/// Where groups could be made, best first, by the texts of `/proc/self/cgroup` and
/// `/proc/self/mountinfo`. Of version 2 also the group above the caller's, for one that has
/// processes cannot share out a controller.
pub fn places(own: &str, mounts: &str) -> Vec<Place> {
    let mut places = Vec::new();
    // Lines are `36 25 0:30 ROOT MOUNT OPTIONS … - TYPE SOURCE OPTIONS`.
    let mounted = |wanted: &str, option: &str| {
        mounts.lines().find_map(|line| {
            let (front, back) = line.split_once(" - ")?;
            let front: Vec<&str> = front.split(' ').collect();
            let back: Vec<&str> = back.split(' ').collect();
            let options = back.get(2)?;
            let fits = *back.first()? == wanted
                && (option.is_empty() || options.split(',').any(|o| o == option));
            fits.then(|| Some((front.get(3)?.to_string(), front.get(4)?.to_string())))?
        })
    };
    // Lines are `NUMBER:CONTROLLERS:PATH`.
    let path = |wanted: &str| {
        own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            controllers.split(',').any(|c| c == wanted).then_some(path)
        })
    };
    let below = |(root, mount): (String, String), path: &str| {
        let path = path.strip_prefix(root.trim_end_matches('/')).unwrap_or("");
        Path::new(&mount).join(path.trim_start_matches('/'))
    };
    if let (Some(mount), Some(path)) = (mounted("cgroup2", ""), path("")) {
        let version = Version::Two;
        let top = PathBuf::from(&mount.1);
        let folder = below(mount, path);
        let above = folder
            .parent()
            .filter(|_| folder != top)
            .map(Path::to_owned);
        for folder in [Some(folder), above].into_iter().flatten() {
            places.push(Place { folder, version });
        }
    }
    if let (Some(mount), Some(path)) = (mounted("cgroup", "cpu"), path("cpu")) {
        let (folder, version) = (below(mount, path), Version::One);
        places.push(Place { folder, version });
    }
    places
}

/// Groups of processes, which are removed with this. The processes must have ended by then.
#[derive(Debug)]
pub struct Groups {
    folders: Vec<PathBuf>,
    version: Version,
}

impl Groups {
    /// Makes a group for each process, in the first place that serves.
    ///
    /// # Errors
    /// Why none does: the place tried last.
    pub fn make(processes: &[i32]) -> Result<Groups> {
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let mut why = Error::new(
            ErrorKind::NotFound,
            "no hierarchy of control groups is mounted",
        );
        for place in places(&own, &mounts) {
            match Groups::make_in(&place, processes) {
                Ok(groups) => return Ok(groups),
                Err(error) => {
                    let text = format!("{}: {error}", place.folder.display());
                    why = Error::new(error.kind(), text);
                }
            }
        }
        Err(why)
    }

    /// Makes them in a place.
    ///
    /// # Errors
    /// The place may not be written, or has no `cpu` controller to share out.
    pub fn make_in(place: &Place, processes: &[i32]) -> Result<Groups> {
        if place.version == Version::Two {
            share_out(&place.folder)?;
        }
        sweep(&place.folder);
        let mut groups = Groups {
            folders: Vec::new(),
            version: place.version,
        };
        let host = std::process::id();
        for (number, process) in processes.iter().enumerate() {
            let name = format!("{NAME}{host}-{number}");
            let folder = place.folder.join(name);
            fs::create_dir(&folder)?;
            groups.folders.push(folder.clone());
            fs::write(folder.join("cgroup.procs"), process.to_string())?;
        }
        Ok(groups)
    }

    /// By what the quota of one of them is set.
    pub fn quota(&self, number: usize) -> Option<Quota> {
        let folder = self.folders.get(number)?;
        Some(match self.version {
            Version::Two => Quota::Max(folder.join("cpu.max")),
            Version::One => Quota::Cfs(folder.clone()),
        })
    }

    /// Lifts all quotas, so that their processes can end without waiting for a period.
    pub fn lift(&self) {
        let (file, none) = match self.version {
            Version::Two => ("cpu.max", "max"),
            Version::One => ("cpu.cfs_quota_us", "-1"),
        };
        for folder in &self.folders {
            // Without it they end a second later.
            let _ = fs::write(folder.join(file), none);
        }
    }
}

/// Sees to it that groups below `folder` have the `cpu` controller.
fn share_out(folder: &Path) -> Result<()> {
    let list = folder.join("cgroup.subtree_control");
    let has = |text: String| text.split_whitespace().any(|c| c == "cpu");
    if has(fs::read_to_string(&list)?) {
        return Ok(());
    }
    if !has(fs::read_to_string(folder.join("cgroup.controllers"))?) {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "it has no `cpu` controller",
        ));
    }
    fs::write(list, "+cpu")
}

/// Removes groups whose maker was killed. One that has a process still cannot be removed.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(NAME));
        let maker = maker.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if maker.is_some_and(|maker| !Path::new(&format!("/proc/{maker}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for folder in &self.folders {
            // A process that was waited for is still in its group for a moment.
            for _ in 0..200 {
                match fs::remove_dir(folder) {
                    Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    _ => break,
                }
            }
        }
    }
}
