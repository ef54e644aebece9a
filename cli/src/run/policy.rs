//! What the system calls of an extension may do under `postern run`, by the command line.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use postern::policy::Input;
use postern::{Access, Decider, Domain, Image, Placement, Policy, Rules};

use crate::output::Failure;

/// Options about system calls.
#[derive(Args)]
pub struct Options {
    /// What system calls may do (default: compute, or files with --dir)
    #[arg(long, value_name = "POLICY")]
    policy: Option<PolicyKind>,
    /// Grant a directory: HOST[:GUEST][:ro|:rw]; GUEST is /HOST's last part, access is ro
    #[arg(long = "dir", value_parser = directory, value_name = "DIR")]
    directories: Vec<Directory>,
    /// Ask the export `decide` of this extension before each call of a service or of the system
    #[arg(long, value_name = "FILE")]
    policy_module: Option<PathBuf>,
    /// Say on standard error what the extension is granted, before it runs
    #[arg(long)]
    pub grants: bool,
    /// Give the program an environment variable, KEY=VALUE
    #[arg(long = "env", value_parser = variable, value_name = "KEY=VALUE")]
    pub environment: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum PolicyKind {
    /// Every call is refused
    None,
    /// Clocks, random bytes, standard streams
    Compute,
    /// The same, and the directories given by --dir
    Files,
}

#[derive(Clone, Debug, PartialEq)]
struct Directory {
    host: PathBuf,
    guest: String,
    access: Access,
}

fn variable(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(text.to_owned()),
        _ => Err("not KEY=VALUE".to_owned()),
    }
}

fn directory(text: &str) -> Result<Directory, String> {
    let (rest, access) = match text.rsplit_once(':') {
        Some((rest, "ro")) => (rest, Access::Read),
        Some((rest, "rw")) => (rest, Access::ReadWrite),
        _ => (text, Access::Read),
    };
    let (host, guest) = match rest.rsplit_once(':') {
        Some((host, guest)) => (host, Some(guest.to_owned())),
        None => (rest, None),
    };
    if host.is_empty() {
        return Err("not HOST[:GUEST][:ro|:rw]".to_owned());
    }
    let host = PathBuf::from(host);
    let last = || {
        let full = host.canonicalize().unwrap_or_else(|_| host.clone());
        let name = full.file_name().map(|name| name.to_string_lossy());
        format!("/{}", name.unwrap_or_default())
    };
    let guest = guest.unwrap_or_else(last);
    Ok(Directory {
        host,
        guest,
        access,
    })
}

impl Options {
    /// Who decides about calls, if somebody does.
    pub fn decider(&self) -> Result<Option<Decider>, Failure> {
        let Some(file) = &self.policy_module else {
            return Ok(None);
        };
        let unusable = |error: String| {
            Failure::unusable(format!("--policy-module: {}: {error}", file.display()))
        };
        let image = Image::load(file).map_err(|e| unusable(e.to_string()))?;
        let module = Domain::builder(&image)
            .placement(Placement::Cold)
            .build()
            .map_err(|e| unusable(e.to_string()))?;
        let decider = Decider::module(&module).map_err(|e| unusable(e.to_string()))?;
        Ok(Some(decider))
    }

    /// The policy that the options ask for.
    pub fn policy(&self) -> Result<Policy, Failure> {
        let policy = match self.policy {
            None if self.directories.is_empty() => Policy::compute(),
            None | Some(PolicyKind::Files) => {
                let mut rules = Rules::new();
                for given in &self.directories {
                    rules = rules
                        .grant(&given.guest, &given.host, given.access)
                        .map_err(|error| Failure::unusable(format!("--dir: {error}")))?;
                }
                Policy::files(rules)
            }
            Some(_) if !self.directories.is_empty() => {
                return Err(Failure::unusable(
                    "--dir needs --policy files, or none said",
                ));
            }
            Some(PolicyKind::None) => Policy::none(),
            Some(PolicyKind::Compute) => Policy::compute(),
        };
        Ok(policy.stdin(Input::Inherit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_as_they_are_written() {
        for (text, host, guest, access) in [
            ("/a/b", "/a/b", "/b", Access::Read),
            ("/a/b:rw", "/a/b", "/b", Access::ReadWrite),
            ("/a/b:/data", "/a/b", "/data", Access::Read),
            ("a:b:/data:ro", "a:b", "/data", Access::Read),
            (".:/:rw", ".", "/", Access::ReadWrite),
        ] {
            let wanted = Directory {
                host: host.into(),
                guest: guest.into(),
                access,
            };
            assert_eq!(directory(text), Ok(wanted), "{text}");
        }
        assert!(directory("").is_err() && directory(":rw").is_err());
        assert!(variable("A=").is_ok() && variable("=x").is_err() && variable("A").is_err());
    }
}
