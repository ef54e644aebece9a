//! What is known of each shared domain at a refresh, and what has changed since the last one.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use postern::{
    BrokerState, CommonMember, CommonMemory, CommonState, CommonTally, CommonView, Image,
    broker_state,
};

use super::process;

/// One shared domain.
pub struct Facts {
    pub name: String,
    pub socket: PathBuf,
    pub broker: BrokerState,
    /// Why there is nothing to see, or nobody hands it out any more.
    pub unseen: Option<String>,
    pub view: Option<Seen>,
}

/// What its memory says.
pub struct Seen {
    pub view: CommonView,
    /// Where the image is said to be.
    pub image: Option<PathBuf>,
    pub rates: Option<Rates>,
    pub members: Vec<Member>,
}

impl Seen {
    /// Hash of the image, in hexadecimal.
    pub fn hash(&self) -> String {
        self.view.hash.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// Threads inside, over all processes.
    pub fn inside(&self) -> u64 {
        let threads = self.members.iter().flat_map(|member| &member.inside);
        threads.map(|inside| u64::from(inside.threads)).sum()
    }

    /// Events that wait, over all processes.
    pub fn waiting(&self) -> u64 {
        let members = self.view.members.iter();
        members.map(|member| u64::from(member.waiting)).sum()
    }

    /// Its state, in a word.
    pub fn state(&self) -> &'static str {
        match self.view.state {
            CommonState::New => "new",
            CommonState::Starting => "starting",
            CommonState::Open => "open",
            CommonState::Poisoned(_) => "poisoned",
            CommonState::Resetting => "resetting",
            _ => "unknown",
        }
    }

    /// Why it is closed, if it is.
    pub fn poison(&self) -> Option<String> {
        match &self.view.state {
            CommonState::Poisoned(poison) => Some(poison.to_string()),
            _ => None,
        }
    }
}

/// A process that has it.
pub struct Member {
    pub about: CommonMember,
    /// The kernel says that this process has the seat; `None` if it cannot be asked.
    pub confirmed: Option<bool>,
    pub command: Option<String>,
    pub inside: Vec<Inside>,
    pub rates: Option<Rates>,
}

/// Threads inside a function.
pub struct Inside {
    pub offset: u32,
    pub function: Option<String>,
    pub threads: u32,
    /// It is the same calls for at least so long: the process has begun none since.
    pub at_least: Duration,
}

/// In each second since the last refresh.
pub struct Rates {
    pub calls: f64,
    pub upcalls: f64,
}

/// Who is inside which function.
type Place = (String, u32, u32, u32);

/// Whose sums they are: a domain's, or one process's, by seat and number.
type Counting = (String, Option<(u32, u32)>);

/// What is kept between two refreshes.
#[derive(Default)]
pub struct Looking {
    /// By path, and the socket's file there: another one is another broker's.
    joined: HashMap<PathBuf, (Option<u64>, Joined)>,
    /// Of each domain, and of each of its processes.
    tallies: HashMap<Counting, (Instant, CommonTally)>,
    inside: HashMap<Place, (Instant, u64)>,
}

struct Joined {
    memory: CommonMemory,
    /// The file that says it is its image, if it is.
    image: Option<Image>,
}

impl Joined {
    fn new(path: &Path) -> Result<Joined, String> {
        let memory = CommonMemory::from_broker(path).map_err(|e| e.to_string())?;
        let image = memory.noted_image();
        let image = image.and_then(|path| Image::load(path).ok());
        let hash = memory.view(None).hash;
        Ok(Joined {
            image: image.filter(|image| image.hash() == hash),
            memory,
        })
    }
}

impl Looking {
    /// Looks at all of these.
    pub fn look(&mut self, sockets: &[(String, PathBuf)]) -> Vec<Facts> {
        self.joined
            .retain(|path, _| sockets.iter().any(|(_, other)| path == other));
        let now = Instant::now();
        let former = std::mem::take(&mut self.tallies);
        let was_inside = std::mem::take(&mut self.inside);
        let one = |(name, path): &(String, PathBuf)| {
            let broker = broker_state(path);
            let joined = self.join(path, broker);
            let (unseen, joined) = match joined {
                Ok(()) => (None, self.joined.get(path)),
                Err(why) => (Some(why), None),
            };
            let view = joined.map(|(_, joined)| {
                let view = joined.memory.view(joined.image.as_ref());
                (view, joined)
            });
            let view = view.map(|(view, joined)| {
                let image = joined.memory.noted_image();
                let members = view.members.clone().into_iter();
                let members: Vec<Member> = members
                    .map(|about| member(name, about, joined, &was_inside, now))
                    .collect();
                Seen {
                    view,
                    image,
                    rates: None,
                    members,
                }
            });
            Facts {
                name: name.clone(),
                socket: path.clone(),
                broker,
                unseen,
                view,
            }
        };
        let mut domains: Vec<Facts> = sockets.iter().map(one).collect();
        for domain in &mut domains {
            let Some(seen) = &mut domain.view else {
                continue;
            };
            let name = &domain.name;
            let mut rates = |key, tally: CommonTally| {
                let rates = former
                    .get(&key)
                    .and_then(|(then, before)| Rates::of(now - *then, before, &tally));
                self.tallies.insert(key, (now, tally));
                rates
            };
            seen.rates = rates((name.clone(), None), seen.view.total);
            for member in &mut seen.members {
                let about = &member.about;
                let (seat, pid) = (about.seat, about.pid);
                member.rates = rates((name.clone(), Some((seat, pid))), about.tally);
                for inside in &member.inside {
                    let place = (name.clone(), seat, pid, inside.offset);
                    let since = now.checked_sub(inside.at_least).unwrap_or(now);
                    self.inside.insert(place, (since, about.tally.calls));
                }
            }
        }
        domains
    }

    /// Sees to it that the memory of the broker at this path is joined, if it can be.
    fn join(&mut self, path: &Path, broker: BrokerState) -> Result<(), String> {
        let file = std::fs::symlink_metadata(path).ok().map(|at| at.ino());
        if let Some((known, _)) = self.joined.get(path)
            && (*known == file || broker == BrokerState::Ended)
        {
            return Ok(());
        }
        self.joined.remove(path);
        if broker == BrokerState::Ended && file.is_some() {
            return Err(format!(
                "its broker has ended without removing {}; start `postern share NAME IMAGE` again",
                path.display()
            ));
        }
        let joined = Joined::new(path)?;
        self.joined.insert(path.to_owned(), (file, joined));
        Ok(())
    }
}

fn member(
    name: &str,
    about: CommonMember,
    joined: &Joined,
    was_inside: &HashMap<Place, (Instant, u64)>,
    now: Instant,
) -> Member {
    let exports = joined.image.as_ref().map(|image| &image.tables().exports);
    let inside = about.inside.iter().map(|(&offset, &threads)| {
        let exports = exports.into_iter().flatten();
        let place = (name.to_owned(), about.seat, about.pid, offset);
        let before = was_inside.get(&place);
        // No call has begun since then: so it is one of those that were inside.
        let since = before.filter(|(_, calls)| *calls == about.tally.calls);
        Inside {
            offset,
            function: exports
                .filter(|export| export.offset == offset)
                .map(|export| process::plain(&export.name))
                .next(),
            threads,
            at_least: since.map_or(Duration::ZERO, |(since, _)| now - *since),
        }
    });
    let confirmed = match about.here {
        true => process::has_seat(about.pid, about.seat, &joined.memory),
        false => None,
    };
    Member {
        inside: inside.collect(),
        command: match about.alive && about.here {
            true => process::command(about.pid),
            false => None,
        },
        confirmed,
        rates: None,
        about,
    }
}

impl Rates {
    /// `None` if counters went back: it is another state, or its words are forged.
    fn of(time: Duration, before: &CommonTally, now: &CommonTally) -> Option<Rates> {
        let seconds = time.as_secs_f64().max(0.001);
        let rate = |before: u64, now: u64| Some(now.checked_sub(before)? as f64 / seconds);
        Some(Rates {
            calls: rate(before.calls, now.calls)?,
            upcalls: rate(before.delivered, now.delivered)?,
        })
    }
}
