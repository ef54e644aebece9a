//! Stride scheduling: each client's pass goes on by its stride with each slice, the reciprocal of
//! its tickets, and the client with the least pass is next. So two that are able have slices in the
//! proportion of their tickets, within one slice, always.
//!
//! Passes are kept relative to the least one: they don't overflow, and who sleeps falls back to
//! zero but not below, so that it is next when it wakes and has saved nothing.

use crate::{Client, client::least};

/// The stride of one ticket.
const ONE: i64 = 1 << 40;
/// Tickets that count: with more, strides would be too small to be exact.
const TICKETS: u32 = 1 << 16;

fn stride(client: &Client) -> i64 {
    ONE / i64::from(client.tickets.clamp(1, TICKETS))
}

/// The one with the least pass among those that are able.
pub fn choose(clients: &mut [Client], able: impl FnMut(&Client) -> bool) -> Option<usize> {
    let (index, pass) = least(clients, able)?;
    for client in clients {
        client.when = client.when.saturating_sub(pass).max(0);
    }
    Some(index)
}

/// Counts slices that one had.
pub fn charge(clients: &mut [Client], index: usize, slices: u64) {
    if let Some(client) = clients.get_mut(index) {
        let many = i64::try_from(slices).unwrap_or(i64::MAX);
        let passed = stride(client).saturating_mul(many);
        client.when = client.when.saturating_add(passed);
        client.had(slices);
    }
}
