//! `[plugins]` of `serve.toml`: whose plugins there are, and what each client may have.

use postern_server::{Checker, ConfigError};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How the site's own plugins are run. Those of clients are always confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum PluginRun {
    /// As E-code, compiled in the process.
    #[default]
    Ecode,
    /// Compiled by `postern cc`, and confined.
    Protected,
    /// Compiled by gcc, and not confined: to measure, and for code that is trusted as the server
    /// is.
    Unprotected,
}

/// What one client may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quotas {
    /// Plugins.
    pub plugins: usize,
    /// Bytes of a source.
    pub source_bytes: u64,
    /// Bytes of machine code, and of constants, of all its plugins.
    pub code_bytes: u64,
    /// Bytes of variables of all its plugins; of an image's heap.
    pub memory_bytes: u64,
    /// Requests at a time.
    pub requests: usize,
}

impl Default for Quotas {
    fn default() -> Quotas {
        Quotas {
            plugins: 32,
            source_bytes: 64 << 10,
            code_bytes: 1 << 20,
            memory_bytes: 4 << 20,
            requests: 8,
        }
    }
}

/// A client that the site knows.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientSettings {
    /// What logs and lists call it.
    pub name: String,
    /// What it proves itself with.
    pub token: String,
    /// What it may have.
    pub quotas: Quotas,
}

// A token is nobody's to read.
impl std::fmt::Debug for ClientSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientSettings")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Plugins, if the site has any.
#[derive(Debug, Clone)]
pub struct PluginSettings {
    /// The site's own.
    pub folder: Option<PathBuf>,
    /// How those are run.
    pub run: PluginRun,
    /// Clients by name.
    pub clients: Vec<ClientSettings>,
    /// Whether others may bring plugins, too.
    pub guests: bool,
    /// How many of them.
    pub guests_most: usize,
    /// What each guest may have.
    pub quotas: Quotas,
    /// Pictures at a time.
    pub instances: usize,
    /// Requests that may wait for their turn.
    pub waiting: usize,
    /// How long they may.
    pub wait: Duration,
    /// Longest time of a plugin.
    pub call: Duration,
    /// Bytes of all pictures together.
    pub memory_bytes: u64,
    /// Bytes of a picture's pixels.
    pub picture_bytes: u64,
    /// Bytes of a picture's file.
    pub body_bytes: u64,
}

/// What is read of the whole file: the server has seen the rest.
#[derive(Deserialize)]
struct SiteFile {
    #[serde(default)]
    plugins: FilePlugins,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FilePlugins {
    folder: Option<PathBuf>,
    run: PluginRun,
    clients: Vec<FileClient>,
    guests: bool,
    guests_most: usize,
    quotas: Quotas,
    instances: Option<usize>,
    waiting: usize,
    wait_ms: u64,
    call_ms: u64,
    memory_bytes: Option<u64>,
    picture_bytes: u64,
    body_bytes: u64,
}

impl Default for FilePlugins {
    fn default() -> FilePlugins {
        FilePlugins {
            folder: None,
            run: PluginRun::default(),
            clients: Vec::new(),
            guests: false,
            guests_most: 1000,
            quotas: Quotas::default(),
            instances: None,
            waiting: 128,
            wait_ms: 5_000,
            call_ms: 2_000,
            memory_bytes: None,
            picture_bytes: 64 << 20,
            body_bytes: 16 << 20,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileClient {
    name: String,
    token: String,
    plugins: Option<usize>,
    source_bytes: Option<u64>,
    code_bytes: Option<u64>,
    memory_bytes: Option<u64>,
    requests: Option<usize>,
}

/// Whether a text can be a token.
pub fn is_token(text: &str) -> bool {
    let letter = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    (16..=64).contains(&text.len()) && text.bytes().all(letter)
}

impl PluginSettings {
    /// Reads the table. Paths, defaults and limits are those that the book lists.
    ///
    /// # Errors
    /// A key that there is not, or a value that makes no sense.
    pub fn read(checker: &Checker<'_>, workers: usize) -> Result<PluginSettings, ConfigError> {
        let file = checker.read::<SiteFile>()?.plugins;
        let folder = match &file.folder {
            Some(path) => Some(checker.there("plugins.folder", path, true)?),
            None => {
                let usual = checker.there("plugins.folder", Path::new("plugins"), true);
                usual.ok()
            }
        };
        check_quotas(checker, "plugins.quotas", file.quotas)?;
        let (mut names, mut tokens) = (BTreeSet::new(), BTreeSet::new());
        let mut clients = Vec::new();
        for client in file.clients {
            let key = format!("plugins.clients: {}", client.name);
            if client.name.is_empty() || client.name == "site" || !names.insert(client.name.clone())
            {
                let text = "must be a name that no other has, and not `site`";
                return Err(checker.wrong(key, text));
            }
            if !is_token(&client.token) || !tokens.insert(client.token.clone()) {
                let text =
                    "`token` must be 16 to 64 letters, digits, `-` or `_`, and nobody else's";
                return Err(checker.wrong(key, text));
            }
            let usual = file.quotas;
            let quotas = Quotas {
                plugins: client.plugins.unwrap_or(usual.plugins),
                source_bytes: client.source_bytes.unwrap_or(usual.source_bytes),
                code_bytes: client.code_bytes.unwrap_or(usual.code_bytes),
                memory_bytes: client.memory_bytes.unwrap_or(usual.memory_bytes),
                requests: client.requests.unwrap_or(usual.requests),
            };
            check_quotas(checker, &key, quotas)?;
            clients.push(ClientSettings {
                name: client.name,
                token: client.token,
                quotas,
            });
        }
        let instances = file.instances.unwrap_or(workers);
        if !(1..=256).contains(&instances) {
            return Err(checker.wrong("plugins.instances", "must be 1 to 256"));
        }
        if !(1 << 10..=1 << 30).contains(&file.picture_bytes) {
            return Err(checker.wrong("plugins.picture_bytes", "must be 1024 to 1073741824"));
        }
        let least = 4 * file.picture_bytes.max(file.body_bytes);
        let memory_bytes = file.memory_bytes.unwrap_or(least.max(512 << 20));
        if memory_bytes < least {
            let text = format!("must be {least} at least: four times the largest picture or body");
            return Err(checker.wrong("plugins.memory_bytes", text));
        }
        Ok(PluginSettings {
            folder,
            memory_bytes,
            run: file.run,
            clients,
            guests: file.guests,
            guests_most: checker.positive("plugins.guests_most", file.guests_most)?,
            quotas: file.quotas,
            instances,
            waiting: file.waiting,
            wait: Duration::from_millis(file.wait_ms),
            call: checker.time("plugins.call_ms", file.call_ms)?,
            picture_bytes: file.picture_bytes,
            body_bytes: checker.positive("plugins.body_bytes", file.body_bytes)?,
        })
    }
}

fn check_quotas(checker: &Checker<'_>, key: &str, quotas: Quotas) -> Result<(), ConfigError> {
    let bytes = [
        ("source_bytes", quotas.source_bytes, 8 << 20),
        ("code_bytes", quotas.code_bytes, 64 << 20),
        ("memory_bytes", quotas.memory_bytes, 256 << 20),
        ("plugins", quotas.plugins as u64, 4096),
        ("requests", quotas.requests as u64, 1 << 20),
    ];
    match bytes
        .into_iter()
        .find(|(_, value, most)| !(1..=*most).contains(value))
    {
        Some((name, _, most)) => {
            Err(checker.wrong(format!("{key}.{name}"), format!("must be 1 to {most}")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use postern_server::{Components, Site};

    const COMPONENTS: Components = Components {
        processes: None,
        plugins: Some(crate::read),
        page: None,
    };

    #[test]
    fn wrong_values_are_named() {
        let folder = tempfile::tempdir().unwrap();
        for (text, expected) in [
            ("[plugins]\nfolder = \"no\"", "plugins.folder: there is no"),
            ("[plugins]\ncall_ms = 0", "plugins.call_ms: must be more"),
            (
                "[plugins]\ninstances = 0",
                "plugins.instances: must be 1 to 256",
            ),
            (
                "[plugins]\npicture_bytes = 1",
                "plugins.picture_bytes: must be",
            ),
            (
                "[plugins]\nmemory_bytes = 1000000",
                "plugins.memory_bytes: must be 268435456 at least",
            ),
            ("[plugins]\nrun = \"cgi\"", "unknown variant `cgi`"),
            (
                "[plugins.quotas]\nplugins = 0",
                "plugins.quotas.plugins: must be 1 to 4096",
            ),
            (
                "[plugins]\nclients = [{ name = \"a\", token = \"short\" }]",
                "plugins.clients: a: `token` must be",
            ),
            (
                "[plugins]\nclients = [{ name = \"site\", token = \"0123456789abcdef\" }]",
                "plugins.clients: site: must be a name",
            ),
            (
                "[plugins]\nclients = [{ name = \"a\", token = \"0123456789abcdef\" }, { name = \"b\", token = \"0123456789abcdef\" }]",
                "plugins.clients: b: `token` must be",
            ),
        ] {
            let error = Site::parse(folder.path(), text, COMPONENTS).unwrap_err();
            let said = error.to_string();
            assert!(said.contains(expected), "{text}: {said}");
        }
    }
}
