//! Clients: who they are, what they brought, and what they may have. Each has a namespace of its
//! own.
//!
//! Invariants:
//! - No client sees or changes what another one brought. Tokens are compared by their hashes, which
//!   tell a listener nothing.
//! - A guest with a request on its way is not ended: whoever serves one holds an `Arc` of it, which
//!   is taken while the guests are locked.

use crate::config::{PluginSettings, Quotas, is_token};
use crate::plugin::Plugin;
use crate::plugin_host::{self, HostContext, Isolation, PluginEntry, PluginHost};
use crate::problem::Problem;
use crate::source::{self, PluginKind, function};
use http::StatusCode;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What stands for a token.
pub type Key = [u8; 32];

/// A plugin and where it is.
#[derive(Clone)]
pub struct Installed {
    /// The plugin.
    pub plugin: Arc<Plugin>,
    /// Where it runs.
    pub host: Arc<PluginHost>,
    /// What it is called by; a library for other plugins has none.
    pub entry: Option<PluginEntry>,
}

impl Installed {
    /// What its client is told of it.
    pub fn describe(&self, owner: &str) -> Value {
        let mut value = self.plugin.describe(owner);
        value["domain"] = self
            .host
            .registered
            .as_ref()
            .map(|registered| registered.id())
            .into();
        value
    }
}

#[derive(Default)]
struct Holdings {
    /// Where its E-code is; made for the first.
    host: Option<Arc<PluginHost>>,
    plugins: BTreeMap<String, Installed>,
}

/// Somebody who brings plugins.
pub struct Client {
    /// What logs and lists call it.
    pub name: String,
    /// What it may have.
    pub quotas: Quotas,
    /// Whether it came by itself, with a token of its own choice.
    pub guest: bool,
    holdings: Mutex<Holdings>,
    /// Installed while plugins come and go.
    changing: Mutex<()>,
    requests: AtomicUsize,
    /// When it was here last, in requests of all.
    used: AtomicU64,
}

/// One of a client's requests.
pub struct ClientRequest(Arc<Client>);

impl Drop for ClientRequest {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Client {
    fn new(name: String, quotas: Quotas, guest: bool) -> Client {
        Client {
            name,
            quotas,
            guest,
            holdings: Mutex::default(),
            changing: Mutex::default(),
            requests: AtomicUsize::new(0),
            used: AtomicU64::new(0),
        }
    }

    fn holdings(&self) -> MutexGuard<'_, Holdings> {
        self.holdings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more request of this client.
    ///
    /// # Errors
    /// It has enough.
    pub fn enter(self: &Arc<Client>) -> Result<ClientRequest, Problem> {
        let request = ClientRequest(self.clone());
        let most = self.quotas.requests;
        match self.requests.fetch_add(1, Ordering::Relaxed) < most {
            true => Ok(request),
            false => Err(Problem::quota(format!(
                "more than {most} requests of one client at a time"
            ))),
        }
    }

    /// What a name means.
    pub fn find(&self, name: &str) -> Option<Installed> {
        self.holdings().plugins.get(name).cloned()
    }

    /// All that it has.
    pub fn plugins(&self) -> Vec<Installed> {
        self.holdings().plugins.values().cloned().collect()
    }

    /// Whether it has a namespace.
    pub fn has_space(&self) -> bool {
        let holdings = self.holdings();
        holdings.host.is_some() || !holdings.plugins.is_empty()
    }

    /// Takes a plugin, in the place of the one that had the name. Whether there was one.
    ///
    /// # Errors
    /// It is wrong, or more than the client may have; nothing has changed then.
    pub fn put(
        &self,
        name: &str,
        sent: &[u8],
        call: Duration,
        context: &Arc<HostContext>,
    ) -> Result<(Installed, bool), Problem> {
        let quotas = &self.quotas;
        let kind = PluginKind::of(sent);
        let compiled = match kind {
            PluginKind::Ecode => {
                let artifact =
                    source::compile(name, sent, quotas.source_bytes, quotas.memory_bytes);
                Some(artifact?)
            }
            _ => None,
        };
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.find(name);
        if before.is_none() && self.holdings().plugins.len() >= quotas.plugins {
            let text = format!(
                "{} plugins are all that you may have; delete one",
                quotas.plugins
            );
            return Err(Problem::quota(text));
        }
        let installed = match compiled {
            Some(artifact) => {
                self.unclaimed(name, &artifact.functions)?;
                let host = self.host(call, context)?;
                let namespace = host.isolation.namespace();
                let namespace = namespace.ok_or_else(|| Problem::room("no namespace"))?;
                namespace.create(name, &artifact.text)?;
                let entry = plugin_host::entry(&host.isolation, name)?;
                Installed {
                    plugin: Arc::new(Plugin::new(name, kind, sent, artifact)),
                    host,
                    entry,
                }
            }
            None => self.alone(name, kind, sent, call, context)?,
        };
        let mut holdings = self.holdings();
        holdings.plugins.insert(name.to_owned(), installed.clone());
        drop(holdings);
        if let Some(before) = &before {
            remove(before, &installed.plugin.artifact.functions, kind);
        }
        Ok((installed, before.is_some()))
    }

    /// Whether functions of these names are nobody else's among the client's plugins.
    fn unclaimed(&self, name: &str, functions: &[String]) -> Result<(), Problem> {
        let holdings = self.holdings();
        let others = holdings.plugins.values().filter(|installed| {
            installed.plugin.kind == PluginKind::Ecode && installed.plugin.name != name
        });
        for installed in others {
            let taken = functions
                .iter()
                .find(|f| installed.plugin.artifact.functions.contains(f));
            if let Some(taken) = taken {
                let other = &installed.plugin.name;
                let text = format!(
                    "`{taken}` is a function of your plugin `{other}`; make one of them static"
                );
                return Err(Problem::new(StatusCode::CONFLICT, text));
            }
        }
        Ok(())
    }

    fn host(&self, call: Duration, context: &Arc<HostContext>) -> Result<Arc<PluginHost>, Problem> {
        if let Some(host) = &self.holdings().host {
            return Ok(host.clone());
        }
        let host = PluginHost::make(&self.name, context, || {
            Ok(Isolation::Namespace(
                plugin_host::namespace(&self.name, &self.quotas, call).build()?,
            ))
        })?;
        let host = Arc::new(host);
        self.holdings().host = Some(host.clone());
        Ok(host)
    }

    /// Objects and images have a namespace each.
    fn alone(
        &self,
        name: &str,
        kind: PluginKind,
        sent: &[u8],
        call: Duration,
        context: &Arc<HostContext>,
    ) -> Result<Installed, Problem> {
        if sent.len() as u64 > self.quotas.code_bytes.saturating_mul(2) {
            let text = format!(
                "the file is longer than {} bytes",
                self.quotas.code_bytes * 2
            );
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, text));
        }
        let called = format!("{}/{name}", self.name);
        let mut artifact = None;
        let host = PluginHost::make(&self.name, context, || {
            let (what, isolation) = match kind {
                PluginKind::Image => {
                    let (what, image) = source::image(sent)?;
                    let domain = plugin_host::image(&image, &called, &self.quotas, call)?;
                    (what, Isolation::Image(domain))
                }
                _ => {
                    let empty = plugin_host::namespace(&called, &self.quotas, call).build()?;
                    let (what, namespace) = source::object(name, sent, empty)?;
                    (what, Isolation::Namespace(namespace))
                }
            };
            artifact = Some(what);
            Ok(isolation)
        })?;
        let artifact = artifact.ok_or_else(|| Problem::room("no namespace"))?;
        let entry = plugin_host::entry(&host.isolation, name)?;
        if entry.is_none() {
            let text = format!("it exports no function `{}`", function(name));
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, text));
        }
        Ok(Installed {
            plugin: Arc::new(Plugin::new(name, kind, sent, artifact)),
            host: Arc::new(host),
            entry,
        })
    }

    /// Deletes a plugin. Whether it was there.
    pub fn delete(&self, name: &str) -> bool {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let removed = self.holdings().plugins.remove(name);
        if let Some(installed) = &removed {
            remove(installed, &[], PluginKind::Image);
        }
        removed.is_some()
    }
}

/// Takes the functions of an E-code plugin away that the next one of its name, of some kind, does
/// not have.
fn remove(installed: &Installed, stay: &[String], next: PluginKind) {
    if installed.plugin.kind != PluginKind::Ecode {
        return;
    }
    if let Some(namespace) = installed.host.isolation.namespace() {
        for function in &installed.plugin.artifact.functions {
            if next != PluginKind::Ecode || !stay.contains(function) {
                namespace.delete(function);
            }
        }
        namespace.collect();
    }
}

/// All clients, and the guests.
pub struct Clients {
    known: Vec<(Key, Arc<Client>)>,
    /// Those who came by themselves, if they may.
    guests: Option<Mutex<HashMap<Key, Arc<Client>>>>,
    most: usize,
    quotas: Quotas,
    requests: AtomicU64,
}

impl Clients {
    /// Those of a site.
    pub fn new(settings: &PluginSettings) -> Clients {
        let known = settings.clients.iter().map(|client| {
            let artifact = Client::new(client.name.clone(), client.quotas, false);
            (key(&client.token), Arc::new(artifact))
        });
        Clients {
            known: known.collect(),
            guests: settings.guests.then(Mutex::default),
            most: settings.guests_most,
            quotas: settings.quotas,
            requests: AtomicU64::new(0),
        }
    }

    /// Who has a token. A guest who has brought nothing is nobody yet, unless `bring` says that it
    /// is about to.
    ///
    /// # Errors
    /// Nobody has it; or no token and `bring`; or there are enough guests, and all have requests.
    pub fn find(&self, token: Option<&str>, bring: bool) -> Result<Option<Arc<Client>>, Problem> {
        let unknown = |text: &str| Err(Problem::new(StatusCode::UNAUTHORIZED, text));
        let Some(token) = token else {
            return match bring {
                true => unknown("say who you are: Authorization: Bearer TOKEN"),
                false => Ok(None),
            };
        };
        let key = key(token);
        let now = self.requests.fetch_add(1, Ordering::Relaxed);
        let mut found = None;
        for (known, client) in &self.known {
            if same(known, &key) {
                found = Some(client.clone());
            }
        }
        if found.is_none()
            && let Some(guests) = &self.guests
        {
            if !is_token(token) {
                return unknown("a guest's token has 16 to 64 letters, digits, `-` or `_`");
            }
            let mut guests = guests.lock().unwrap_or_else(PoisonError::into_inner);
            found = guests.get(&key).cloned();
            if found.is_none() && !bring {
                return Ok(None);
            }
            if found.is_none() {
                let name = format!(
                    "guest-{:02x}{:02x}{:02x}{:02x}",
                    key[0], key[1], key[2], key[3]
                );
                let guest = Arc::new(Client::new(name, self.quotas, true));
                let ended = match guests.len() >= self.most {
                    true => Some(oldest(&mut guests).ok_or_else(|| {
                        Problem::busy(format!("all of {} guests have requests", self.most))
                    })?),
                    false => None,
                };
                guests.insert(key, guest.clone());
                drop(guests);
                // Its namespace goes where nobody waits for the lock.
                drop(ended);
                found = Some(guest);
            }
        }
        match found {
            Some(client) => {
                client.used.store(now, Ordering::Relaxed);
                Ok(Some(client))
            }
            None => unknown("nobody has this token"),
        }
    }

    /// Ends the guest that was here longest ago and has no request now. False if there is none.
    pub fn end_oldest(&self) -> bool {
        let Some(guests) = &self.guests else {
            return false;
        };
        let mut guests = guests.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = oldest(&mut guests);
        drop(guests);
        ended.is_some()
    }

    /// The sum of something over all clients. No guest looks busy for it.
    pub fn sum(&self, of: impl Fn(&Client) -> usize) -> usize {
        let known: usize = self.known.iter().map(|(_, client)| of(client)).sum();
        let guests = self.guests.as_ref().map_or(0, |guests| {
            let guests = guests.lock().unwrap_or_else(PoisonError::into_inner);
            guests.values().map(|client| of(client)).sum()
        });
        known + guests
    }
}

/// Takes the guest away that was here longest ago, of those that have no request now.
fn oldest(guests: &mut HashMap<Key, Arc<Client>>) -> Option<Arc<Client>> {
    let idle = guests
        .iter()
        .filter(|(_, client)| Arc::strong_count(client) == 1);
    let (key, _) = idle.min_by_key(|(_, client)| client.used.load(Ordering::Relaxed))?;
    let key = *key;
    guests.remove(&key)
}

fn key(token: &str) -> Key {
    *blake3::hash(token.as_bytes()).as_bytes()
}

/// Takes the same time wherever they differ.
fn same(a: &Key, b: &Key) -> bool {
    let differing = a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b));
    std::hint::black_box(differing) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: usize) -> String {
        format!("a-token-of-guest-{number}")
    }

    #[test]
    fn a_guest_with_a_request_stays() {
        let clients = Clients {
            known: Vec::new(),
            guests: Some(Mutex::default()),
            most: 3,
            quotas: Quotas::default(),
            requests: AtomicU64::new(0),
        };
        let find = |number, bring| clients.find(Some(&token(number)), bring);
        // Guest 0 brings something that takes long, while more come than there may be.
        let busy = find(0, true).unwrap().unwrap();
        for number in 1..8 {
            find(number, true).unwrap().unwrap();
        }
        let again = find(0, false).unwrap().unwrap();
        assert!(Arc::ptr_eq(&busy, &again));
        // Of the others the last ones are left; being asked for keeps one.
        assert!(find(5, false).unwrap().is_none());
        find(6, false).unwrap().unwrap();
        find(8, true).unwrap().unwrap();
        assert!(find(7, false).unwrap().is_none());
        // Where all have requests, nobody goes.
        let others = [6, 8].map(|number| find(number, false).unwrap().unwrap());
        assert!(find(9, true).is_err() && !clients.end_oldest());
        drop((busy, again));
        find(9, true).unwrap().unwrap();
        assert!(find(0, false).unwrap().is_none());
        drop(others);
    }
}
