//! Earliest deadline first: each client has so many slices (its tickets) in each period, as long as
//! the fractions of all together are no more than one.
//!
//! `when` is how many slices from now the deadline is. Who has had its slices gets new ones when
//! the period is over; who has not is late, and the one that is late for longest is first: so
//! nobody starves, even if more was promised than there is. Slices that nobody has a right to go to
//! the one whose deadline is next.

use crate::{Client, client::least};

fn period(client: &Client) -> u32 {
    client.period.max(1)
}

/// Gives new slices to those whose period is over and who have had theirs, or are new.
fn renew(client: &mut Client) {
    if client.left == 0 && client.when <= 0 {
        // More slices than a period has would be no less than all.
        client.left = client.tickets.clamp(1, period(client));
        client.when = i64::from(period(client));
    }
}

/// The one with the earliest deadline among those that are able and have slices left; if there is
/// none, among those that are able.
pub fn choose(clients: &mut [Client], mut able: impl FnMut(&Client) -> bool) -> Option<usize> {
    clients.iter_mut().for_each(renew);
    let due = least(clients, |client| client.left > 0 && able(client));
    let found = due.or_else(|| least(clients, able))?;
    Some(found.0)
}

/// Counts slices that one had: they are gone for all.
pub fn charge(clients: &mut [Client], index: usize, slices: u64) {
    let passed = i64::try_from(slices).unwrap_or(i64::MAX);
    for client in clients.iter_mut() {
        client.when = client.when.saturating_sub(passed);
    }
    if let Some(client) = clients.get_mut(index) {
        let many = u32::try_from(slices).unwrap_or(u32::MAX);
        client.left = client.left.saturating_sub(many);
        client.had(slices);
    }
}
