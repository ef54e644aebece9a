//! Who is scheduled. The same words as `struct exos_client` of `<exos/schedule.h>`.

/// One of those that a schedule is over. All zero but the pid is a new one with one ticket.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// The process; 0 or less: the place is free.
    pub pid: i32,
    /// Its share, against the others'; of a deadline: slices in each period. 0 counts as 1.
    pub tickets: u32,
    /// Slices from one deadline to the next.
    pub period: u32,
    /// Slices that are left to it before its deadline.
    pub left: u32,
    /// When it is next, in the policy's own measure.
    pub when: i64,
    /// Slices that it has had.
    pub slices: u64,
    /// The caller's own: at which try it did not take a slice.
    pub refused: u64,
}

impl Client {
    /// Counts slices that it had.
    pub(crate) fn had(&mut self, slices: u64) {
        self.slices = self.slices.saturating_add(slices);
    }
}

/// The one with the least `when` among those that are able; the first of several.
pub(crate) fn least(
    clients: &[Client],
    mut able: impl FnMut(&Client) -> bool,
) -> Option<(usize, i64)> {
    let mut found: Option<(usize, i64)> = None;
    for (index, client) in clients.iter().enumerate() {
        // Asking may cost more than comparing.
        let earlier = found.is_none_or(|(_, when)| client.when < when);
        if client.pid > 0 && earlier && able(client) {
            found = Some((index, client.when));
        }
    }
    found
}
