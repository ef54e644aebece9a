//! Whose turn it is: as many requests are worked on as there are instances, and the others wait.
//!
//! It is fair by who asks. Of those who wait, the address goes first that has used the least of
//! late, and within it the client; time fades with [`HALF_LIFE`]. What was ended by its deadline
//! counts [`LATE`] times, and who had that has one instance until it is forgotten. A client that
//! brings code never has all instances while there are two.
//!
//! Invariant: one address fills the queue only as far as nobody else wants in: where it is full,
//! the last of whoever has most places gives way to one who has fewer.

use postern_server::{Failure, Party};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// In which what was used counts half.
const HALF_LIFE: Duration = Duration::from_secs(10);
/// How much more time counts that a deadline ended.
const LATE: f64 = 4.0;
/// How long that is remembered otherwise.
const MEMORY: Duration = Duration::from_secs(30);
/// Seconds that are as good as none.
const NOTHING: f64 = 0.001;
/// Records that are kept without being looked through.
const RECORDS: usize = 1024;

/// Who asks: an address or a client that the site knows, and there a guest, or one of several.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Asker {
    /// Whose turn is shared.
    pub party: Party,
    /// Among those of the party; empty for who brings nothing.
    pub client: String,
}

/// What somebody used.
#[derive(Debug)]
struct Record {
    seconds: f64,
    at: Instant,
    running: usize,
    late: Option<Instant>,
}

impl Record {
    fn new(now: Instant) -> Record {
        Record {
            seconds: 0.0,
            at: now,
            running: 0,
            late: None,
        }
    }

    fn used(&self, now: Instant) -> f64 {
        let age = now.saturating_duration_since(self.at).as_secs_f64();
        self.seconds * (-age / HALF_LIFE.as_secs_f64()).exp2()
    }

    fn is_late(&self, now: Instant) -> bool {
        self.late
            .is_some_and(|at| now.saturating_duration_since(at) < MEMORY)
    }

    fn add(&mut self, time: Duration, late: bool, now: Instant) {
        let counts = if late { LATE } else { 1.0 };
        self.seconds = self.used(now) + counts * time.as_secs_f64();
        self.at = now;
        if late {
            self.late = Some(now);
        }
    }
}

struct Waiter {
    asker: Asker,
    tell: oneshot::Sender<Result<Turn, Failure>>,
}

#[derive(Default)]
struct State {
    running: usize,
    /// In the order in which they came.
    waiting: Vec<Waiter>,
    parties: HashMap<Party, Record>,
    clients: HashMap<Asker, Record>,
}

/// Those who are worked on and those who wait.
pub struct FairQueue {
    instances: usize,
    most_waiting: usize,
    wait: Duration,
    state: Mutex<State>,
}

/// The right to an instance, until this is dropped.
pub struct Turn {
    queue: Arc<FairQueue>,
    asker: Asker,
    began: Instant,
    late: bool,
}

impl Turn {
    /// It was ended by its deadline.
    pub fn was_late(&mut self) {
        self.late = true;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let now = Instant::now();
        let time = now.saturating_duration_since(self.began);
        let mut state = self.queue.state();
        state.running -= 1;
        let State {
            parties, clients, ..
        } = &mut *state;
        let records = [
            parties.get_mut(&self.asker.party),
            clients.get_mut(&self.asker),
        ];
        for record in records.into_iter().flatten() {
            record.running -= 1;
            record.add(time, self.late, now);
        }
        drop(state);
        FairQueue::go_on(&self.queue);
    }
}

impl FairQueue {
    /// For so many instances.
    pub fn new(instances: usize, most_waiting: usize, wait: Duration) -> Arc<FairQueue> {
        Arc::new(FairQueue {
            instances,
            most_waiting,
            wait,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests that wait now.
    pub fn waiting(&self) -> usize {
        let mut state = self.state();
        state.waiting.retain(|waiter| !waiter.tell.is_closed());
        state.waiting.len()
    }

    /// Waits until it is somebody's turn.
    ///
    /// # Errors
    /// Enough wait already, or it took too long.
    pub async fn enter(self: &Arc<Self>, asker: Asker) -> Result<Turn, Failure> {
        let (tell, told) = oneshot::channel();
        let crowded_out = {
            let mut state = self.state();
            state.waiting.retain(|waiter| !waiter.tell.is_closed());
            // Whoever can go at once does not wait.
            let mut crowded_out = None;
            state.waiting.push(Waiter { asker, tell });
            let mut may_wait = self.most_waiting;
            if self.next(&state, Instant::now()).is_some() {
                may_wait += 1;
            }
            if state.waiting.len() > may_wait {
                let place = state.most();
                crowded_out = Some(state.waiting.remove(place));
            }
            crowded_out
        };
        if let Some(waiter) = crowded_out {
            let _ = waiter.tell.send(Err(Failure::Full(self.most_waiting)));
        }
        FairQueue::go_on(self);
        match tokio::time::timeout(self.wait, told).await {
            Ok(Ok(turn)) => turn,
            Ok(Err(_)) => Err(Failure::Ending),
            Err(_) => Err(Failure::Busy(self.wait)),
        }
    }

    /// Which of the waiting is next, if there is an instance for it.
    fn next(&self, state: &State, now: Instant) -> Option<usize> {
        if state.running >= self.instances {
            return None;
        }
        let rank = |asker: &Asker| {
            let [party, client] = [state.parties.get(&asker.party), state.clients.get(asker)];
            let [running, clients] = [party, client].map(|r| r.map_or(0, |r| r.running));
            let late = |record: Option<&Record>| record.is_some_and(|r| r.is_late(now));
            let all_but_one = 1.max(self.instances - 1);
            let most = match asker.client.is_empty() {
                _ if late(client) => 1,
                true => self.instances,
                false => all_but_one,
            };
            let of_party = if late(party) {
                all_but_one
            } else {
                self.instances
            };
            let may = clients < most && running < of_party;
            let used = |record: Option<&Record>| record.map_or(0.0, |r| r.used(now));
            may.then(|| (running, used(party), clients, used(client)))
        };
        let ranked = state.waiting.iter().enumerate();
        let ranked = ranked.filter_map(|(place, waiter)| Some((rank(&waiter.asker)?, place)));
        let first = ranked.min_by(|(a, _), (b, _)| {
            let party = a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
            party.then(a.2.cmp(&b.2)).then(a.3.total_cmp(&b.3))
        });
        first.map(|(_, place)| place)
    }

    /// Gives instances that are free to those who wait.
    fn go_on(queue: &Arc<FairQueue>) {
        loop {
            let now = Instant::now();
            let mut state = queue.state();
            state.waiting.retain(|waiter| !waiter.tell.is_closed());
            let Some(place) = queue.next(&state, now) else {
                state.forget(now);
                return;
            };
            let Waiter { asker, tell } = state.waiting.remove(place);
            state.running += 1;
            let State {
                parties, clients, ..
            } = &mut *state;
            let party = parties.entry(asker.party.clone());
            party.or_insert_with(|| Record::new(now)).running += 1;
            let client = clients.entry(asker.clone());
            client.or_insert_with(|| Record::new(now)).running += 1;
            drop(state);
            // One that left meanwhile gives it back, where nobody holds the lock.
            let _ = tell.send(Ok(Turn {
                queue: queue.clone(),
                asker,
                began: now,
                late: false,
            }));
        }
    }
}

impl State {
    /// The last of the client that has most places in the queue, of the party that has most.
    fn most(&self) -> usize {
        let mut parties: HashMap<&Party, usize> = HashMap::new();
        let mut clients: HashMap<&Asker, usize> = HashMap::new();
        for waiter in &self.waiting {
            *parties.entry(&waiter.asker.party).or_default() += 1;
            *clients.entry(&waiter.asker).or_default() += 1;
        }
        let places = self.waiting.iter().enumerate();
        let most = places.max_by_key(|(place, waiter)| {
            let asker = &waiter.asker;
            (parties.get(&asker.party), clients.get(asker), *place)
        });
        most.map_or(0, |(place, _)| place)
    }

    /// Drops records that say nothing any more, when there are many.
    fn forget(&mut self, now: Instant) {
        let says = |record: &Record| {
            record.running > 0 || record.is_late(now) || record.used(now) > NOTHING
        };
        if self.clients.len() > RECORDS {
            self.clients.retain(|_, record| says(record));
        }
        if self.parties.len() > RECORDS {
            self.parties.retain(|_, record| says(record));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    fn asker(address: u8, client: &str) -> Asker {
        Asker {
            party: Party::Address([10, 0, 0, address].into()),
            client: client.to_owned(),
        }
    }

    type Asking = Pin<Box<dyn Future<Output = Result<Turn, Failure>>>>;

    fn ask(queue: &Arc<FairQueue>, address: u8, client: &str) -> Asking {
        let queue = queue.clone();
        let asker = asker(address, client);
        let mut asking: Asking = Box::pin(async move { queue.enter(asker).await });
        // So that it has its place.
        asking = match poll(&mut asking) {
            Some(result) => Box::pin(std::future::ready(result)),
            None => asking,
        };
        asking
    }

    fn poll(asking: &mut Asking) -> Option<Result<Turn, Failure>> {
        match pin!(asking).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }

    fn turn(asking: &mut Asking) -> Turn {
        poll(asking).expect("its turn").expect("no failure")
    }

    /// Timeouts need one; nothing here waits for them.
    fn with_time(test: impl FnOnce()) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().build().unwrap();
        let _entered = runtime.enter();
        test();
    }

    #[test]
    fn who_has_used_least_goes_first() {
        with_time(|| {
            let queue = FairQueue::new(1, 10, Duration::from_secs(60));
            let first = turn(&mut ask(&queue, 1, "a"));
            let mut more: Vec<Asking> = (0..4).map(|_| ask(&queue, 1, "a")).collect();
            let mut sister = ask(&queue, 1, "b");
            let mut other = ask(&queue, 2, "c");
            assert_eq!(queue.waiting(), 6);
            drop(first);
            // Another address first, then another client of the address, then who came first.
            let third = turn(&mut other);
            assert!(poll(&mut more[0]).is_none() && poll(&mut sister).is_none());
            drop(third);
            drop(turn(&mut sister));
            let again = turn(&mut more[0]);
            assert!(poll(&mut more[1]).is_none());
            drop(again);
        });
    }

    #[test]
    fn one_client_leaves_an_instance_and_one_that_was_late_has_one() {
        with_time(|| {
            let queue = FairQueue::new(3, 20, Duration::from_secs(60));
            let mut loops: Vec<Asking> = (0..8).map(|_| ask(&queue, 1, "a")).collect();
            let mut held = vec![turn(&mut loops[0]), turn(&mut loops[1])];
            assert!(poll(&mut loops[2]).is_none());
            drop(turn(&mut ask(&queue, 1, "b")));
            for turn in &mut held {
                turn.was_late();
            }
            held.clear();
            // Now there are three instances, of which it has one.
            let mut third = turn(&mut loops[2]);
            assert!(poll(&mut loops[3]).is_none());
            // Its sisters of the same address leave one, too.
            let sisters = turn(&mut ask(&queue, 1, "s1"));
            let mut waits = ask(&queue, 1, "s2");
            assert!(poll(&mut waits).is_none());
            drop(turn(&mut ask(&queue, 2, "")));
            third.was_late();
            drop((third, sisters));
        });
    }

    #[test]
    fn a_full_queue_has_room_for_who_has_least_of_it() {
        with_time(|| {
            let queue = FairQueue::new(1, 3, Duration::from_secs(60));
            let held = turn(&mut ask(&queue, 1, "a"));
            let mut waiting: Vec<Asking> = (0..3).map(|_| ask(&queue, 1, "a")).collect();
            assert!(matches!(
                poll(&mut ask(&queue, 1, "a")),
                Some(Err(Failure::Full(3)))
            ));
            let mut other = ask(&queue, 2, "");
            assert!(matches!(poll(&mut waiting[2]), Some(Err(Failure::Full(3)))));
            drop(held);
            drop(turn(&mut other));
            // Who left is passed over.
            waiting.truncate(2);
            drop(waiting.remove(0));
            drop(turn(&mut waiting[0]));
        });
    }

    #[test]
    fn what_was_used_fades() {
        let now = Instant::now();
        let mut record = Record::new(now);
        record.add(Duration::from_secs(2), true, now);
        assert_eq!(record.used(now), 8.0);
        assert_eq!(record.used(now + HALF_LIFE), 4.0);
        assert!(record.is_late(now + MEMORY / 2) && !record.is_late(now + MEMORY));
    }
}
