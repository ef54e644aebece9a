//! Clients of a lock on the network: they ask in turn, at random, and know what must be answered.

use super::frame::Random;

const CLIENTS: u64 = 5;
const TAKE: u64 = 1 << 16;
const RELEASE: u64 = 2 << 16;
/// In an answer: it was done.
const DONE: u64 = 1 << 32;

/// The clients.
pub struct Clients {
    random: Random,
    /// Who has the lock; 0: nobody.
    holder: u64,
    asked: u64,
    /// Answers that cannot be.
    pub wrong: u64,
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "the lock is {}'s", self.holder)
    }
}

impl Clients {
    /// Nobody has the lock.
    pub fn new() -> Clients {
        Clients {
            random: Random(1),
            holder: 0,
            asked: 0,
            wrong: 0,
        }
    }

    /// What somebody asks: who has the lock gives it back, sometimes somebody else tries to.
    pub fn next(&mut self) -> u64 {
        let chance = self.random.next() >> 8;
        let client = 1 + chance % CLIENTS;
        let what = match client == self.holder || chance >> 20 & 7 == 0 {
            true => RELEASE,
            false => TAKE,
        };
        self.asked = what | client;
        self.asked
    }

    /// Compares an answer with what it must be.
    pub fn answered(&mut self, answer: u64) {
        let client = self.asked & 0xffff;
        let (done, holder) = match self.asked & !0xffff {
            TAKE => (self.holder == 0, client),
            _ => (self.holder == client, 0),
        };
        if done {
            self.holder = holder;
        }
        let wanted = self.asked | if done { DONE } else { 0 };
        self.wrong += u64::from(answer != wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_of_two_is_wrong() {
        let mut clients = Clients::new();
        for _ in 0..100 {
            let asked = clients.next();
            let (client, holder) = (asked & 0xffff, clients.holder);
            let free = if asked & TAKE != 0 { 0 } else { client };
            clients.answered(asked | if holder == free { DONE } else { 0 });
        }
        assert_eq!(clients.wrong, 0);
        for _ in 0..100 {
            let asked = clients.next();
            clients.answered(asked | DONE);
        }
        assert!(clients.wrong > 10);
    }
}
