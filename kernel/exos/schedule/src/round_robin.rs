//! One after the other, each for a slice.

use crate::Client;

/// The next one that is able, behind the one that was `last`.
pub fn choose(
    clients: &[Client],
    last: usize,
    mut able: impl FnMut(&Client) -> bool,
) -> Option<usize> {
    let count = clients.len();
    let first = if last < count { last + 1 } else { 0 };
    (first..count).chain(0..first).find(|index| {
        let client = &clients[*index];
        client.pid > 0 && able(client)
    })
}

/// Counts slices that one had.
pub fn charge(clients: &mut [Client], index: usize, slices: u64) {
    if let Some(client) = clients.get_mut(index) {
        client.had(slices);
    }
}
