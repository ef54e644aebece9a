//! What is left of a handler that has ended.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use postern_aegis_abi::HOLDINGS;
use postern_aegis_abi::records::Kind;

use crate::kind::is;
use crate::{Books, Hardware, entry};

impl<H: Hardware> Books<'_, H> {
    /// What is left of a handler is memory of its owner. Holdings are locked; its number is free
    /// next.
    pub(crate) fn end_handler(&self, number: usize) {
        self.hardware.window_closes(number);
        let holding = &self.machine.holdings[number % HOLDINGS];
        let (owner, table) = (holding.owner.load(Relaxed), holding.table.load(Relaxed));
        let words = self.hardware.words(table);
        let text = |word: &AtomicU64| {
            let page = entry::page(word.load(Relaxed));
            let record = self.pages.get(page as usize)?;
            (word.load(Relaxed) != 0 && is(record, Kind::Text)).then_some(page)
        };
        self.hardware
            .constant(&mut words.iter().filter_map(text), false);
        let _list = self.lock_environment(owner);
        for (index, word) in words.iter().enumerate() {
            match text(word) {
                Some(page) => {
                    word.store(0, Relaxed);
                    self.unpin(owner, page);
                }
                None => {
                    self.unbind(table, index);
                }
            }
        }
        let links = self.record(table).read.load(Relaxed);
        self.unpin(owner, table);
        self.unpin(owner, links);
    }
}
