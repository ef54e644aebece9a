//! Policies against what they promise.

extern crate std;

use std::vec::Vec;

use crate::{Client, deadline, round_robin, stride};

/// Numbers that look random, the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

#[derive(Clone, Copy, Debug)]
enum Policy {
    RoundRobin,
    Stride,
    Deadline,
}

const ALL: [Policy; 3] = [Policy::RoundRobin, Policy::Stride, Policy::Deadline];

fn step(
    policy: Policy,
    clients: &mut [Client],
    last: &mut usize,
    able: impl Fn(&Client) -> bool,
) -> Option<usize> {
    let chosen = match policy {
        Policy::RoundRobin => round_robin::choose(clients, *last, able),
        Policy::Stride => stride::choose(clients, able),
        Policy::Deadline => deadline::choose(clients, able),
    }?;
    *last = chosen;
    match policy {
        Policy::RoundRobin => round_robin::charge(clients, chosen, 1),
        Policy::Stride => stride::charge(clients, chosen, 1),
        Policy::Deadline => deadline::charge(clients, chosen, 1),
    }
    Some(chosen)
}

fn clients(all: &[(u32, u32)]) -> Vec<Client> {
    let new = |(index, (tickets, period)): (usize, &(u32, u32))| Client {
        pid: index as i32 + 1,
        tickets: *tickets,
        period: *period,
        ..Client::default()
    };
    all.iter().enumerate().map(new).collect()
}

/// Two that are able all the time differ from the proportion of their tickets by one slice at most.
fn is_fair(one: &Client, other: &Client) -> bool {
    let tickets = |client: &Client| u128::from(client.tickets.max(1));
    let a = u128::from(one.slices) * tickets(other);
    let b = u128::from(other.slices) * tickets(one);
    a.abs_diff(b) <= tickets(one).max(tickets(other))
}

#[test]
fn three_two_one_is_exact() {
    let mut clients = clients(&[(3, 0), (2, 0), (1, 0)]);
    for round in 1..=10_000 {
        for _ in 0..6 {
            step(Policy::Stride, &mut clients, &mut 0, |_| true);
            assert!(is_fair(&clients[0], &clients[1]) && is_fair(&clients[1], &clients[2]));
        }
        let slices: Vec<u64> = clients.iter().map(|client| client.slices).collect();
        assert_eq!(slices, [3 * round, 2 * round, round]);
    }
}

#[test]
fn any_tickets_are_shares_within_a_slice() {
    let mut random = Random(1);
    for _ in 0..50 {
        let count = 2 + random.below(6);
        let tickets: Vec<_> = (0..count).map(|_| (random.below(50) as u32, 0)).collect();
        let mut clients = clients(&tickets);
        for _ in 0..1000 {
            step(Policy::Stride, &mut clients, &mut 0, |_| true);
            for one in &clients {
                assert!(
                    clients.iter().all(|other| is_fair(one, other)),
                    "{clients:?}"
                );
            }
        }
    }
}

#[test]
fn who_sleeps_saves_nothing_and_who_joins_takes_nothing_back() {
    for newcomer in [false, true] {
        let mut clients = clients(&[(1, 0), (1, 0), (1, 0)]);
        let away = clients[2].pid;
        if newcomer {
            clients[2] = Client::default();
        }
        for _ in 0..1000 {
            step(Policy::Stride, &mut clients, &mut 0, |client| {
                client.pid != away
            });
        }
        assert_eq!(clients[2].slices, 0);
        clients[2].pid = away;
        for _ in 0..30 {
            step(Policy::Stride, &mut clients, &mut 0, |_| true);
        }
        assert!((10..=11).contains(&clients[2].slices), "{clients:?}");
        // And who leaves is not waited for.
        clients[2].pid = 0;
        let before = clients[2].slices;
        for _ in 0..30 {
            step(Policy::Stride, &mut clients, &mut 0, |_| true);
        }
        assert_eq!(clients[2].slices, before);
        assert!(clients[0].slices.abs_diff(clients[1].slices) <= 1);
    }
}

#[test]
fn deadlines_are_met_if_there_are_slices_for_all() {
    // 1/3 + 2/4 + 1/6: all that there is.
    let mut clients = clients(&[(1, 3), (2, 4), (1, 6)]);
    for slice in 1..=12_000u64 {
        step(Policy::Deadline, &mut clients, &mut 0, |_| true);
        for client in &clients {
            let due = slice / u64::from(client.period) * u64::from(client.tickets);
            assert!(client.slices >= due, "after {slice}: {clients:?}");
        }
    }
}

#[test]
fn nobody_starves_and_nothing_panics() {
    let wild = [0, 1, 3, 40, 65_536, u32::MAX];
    let mut random = Random(2);
    for policy in ALL {
        // Small numbers, more promised than there is: everybody's turn comes.
        let mut greedy = clients(&[(9, 9), (9, 10), (1, 1), (0, 0), (5, 2), (1, 40)]);
        let mut last = usize::MAX;
        let mut waited = [0; 6];
        for _ in 0..20_000 {
            let chosen = step(policy, &mut greedy, &mut last, |_| true).unwrap();
            waited.iter_mut().for_each(|slices| *slices += 1);
            waited[chosen] = 0;
            assert!(
                waited.iter().all(|slices| *slices < 100),
                "{policy:?}: {waited:?}"
            );
        }
        // Any words in the clients, any of them able.
        for _ in 0..2000 {
            let any = |_| Client {
                pid: random.below(3) as i32 - 1,
                tickets: wild[random.below(6) as usize],
                period: wild[random.below(6) as usize],
                left: wild[random.below(6) as usize],
                when: [i64::MIN, -1, 0, 1, i64::MAX][random.below(5) as usize],
                slices: [0, u64::MAX][random.below(2) as usize],
                refused: 0,
            };
            let mut clients: Vec<Client> = (0..4).map(any).collect();
            let some = clients.iter().any(|client| client.pid > 0);
            assert_eq!(
                step(policy, &mut clients, &mut last, |_| true).is_some(),
                some
            );
            assert_eq!(step(policy, &mut clients, &mut last, |_| false), None);
            stride::charge(&mut clients, 0, u64::MAX);
            deadline::charge(&mut clients, 9, u64::MAX);
        }
        assert_eq!(step(policy, &mut [], &mut last, |_| true), None);
    }
}

#[test]
fn round_robin_goes_round() {
    let mut clients = clients(&[(1, 0), (1, 0), (1, 0)]);
    let mut last = usize::MAX;
    let mut order = Vec::new();
    for slice in 0..9 {
        // The second one sleeps in the middle.
        let able = |client: &Client| !(3..6).contains(&slice) || client.pid != 2;
        order.extend(step(Policy::RoundRobin, &mut clients, &mut last, able));
    }
    assert_eq!(order, [0, 1, 2, 0, 2, 0, 1, 2, 0]);
}
