//! Where a thread's upcalls come from besides its mailbox: events of the domain's own, which
//! several threads may find, and one of them takes.

/// What a handler is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Its first argument.
    pub event: u32,
    /// Its second.
    pub data: u64,
    /// The handler's offset. One where no function of the domain's image begins is not called.
    pub offset: u32,
    /// Which event it was, for [`Sources::handled`].
    pub token: u64,
}

/// What became of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// The handler returned.
    Returned,
    /// The handler had to wait, and goes on on a thread of its domain's.
    Promoted,
    /// The domain let nobody in.
    Skipped,
    /// The handler was ended.
    Ended,
}

/// The events that one attached thread finds. Only that thread calls these, in the handler of the
/// signal for upcalls, which may have interrupted it anywhere: so they neither allocate nor free,
/// take no lock and wait for nobody.
pub trait Sources: Send {
    /// The signal came: whether there may be events since this was asked last, even if it was
    /// another one that brought it.
    fn signalled(&mut self) -> bool;

    /// Takes one that nobody else has taken, if there is any.
    fn claim(&mut self) -> Option<Claimed>;

    /// What an event of the mailbox is for.
    fn posted(&mut self, event: u32, data: u64) -> Claimed;

    /// What became of one of these, which was the last that was given.
    fn handled(&mut self, claimed: Claimed, how: Handled);
}
