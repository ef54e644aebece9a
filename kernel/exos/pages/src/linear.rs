//! A sorted vector of places. What follows a place moves when it is filled or emptied.

use crate::entry::Entry;
use crate::{Full, HEAD, PLACE};

fn count(words: &[u64]) -> usize {
    let most = words.len().saturating_sub(HEAD) / PLACE;
    words.first().map_or(0, |count| (*count as usize).min(most))
}

/// The first place that is not before a page, and whether it is the page's.
#[inline]
fn search(words: &[u64], page: u64) -> (usize, bool) {
    let places = words.get(HEAD..).unwrap_or_default().as_chunks::<PLACE>().0;
    let places = places.get(..count(words)).unwrap_or_default();
    let at = places.partition_point(|[other, _]| *other < page);
    (at, places.get(at).is_some_and(|[other, _]| *other == page))
}

/// Makes an empty table of words.
pub fn clear(words: &mut [u64]) {
    words.iter_mut().take(HEAD).for_each(|word| *word = 0);
}

/// Entries that the table has.
pub fn length(words: &[u64]) -> usize {
    count(words)
}

/// Entries that it can have.
pub fn room(words: &[u64]) -> usize {
    words.len().saturating_sub(HEAD) / PLACE
}

/// Which word is the entry of a page.
pub fn find(words: &[u64], page: u64) -> Option<usize> {
    let (at, is) = search(words, page);
    is.then_some(HEAD + PLACE * at + 1)
}

/// Makes an entry, or changes the one that is there.
pub fn insert(words: &mut [u64], page: u64, entry: Entry) -> Result<(), Full> {
    let count = count(words);
    let (at, is) = search(words, page);
    let place = HEAD + PLACE * at;
    if is {
        words[place + 1] = entry.0;
        return Ok(());
    }
    if count >= room(words) {
        return Err(Full);
    }
    words.copy_within(place..HEAD + PLACE * count, place + PLACE);
    words[place] = page;
    words[place + 1] = entry.0;
    words[0] = count as u64 + 1;
    Ok(())
}

/// Takes an entry away.
pub fn remove(words: &mut [u64], page: u64) -> Option<Entry> {
    let word = find(words, page)?;
    let entry = Entry(words[word]);
    let count = count(words);
    words.copy_within(word + 1..HEAD + PLACE * count, word - 1);
    words[0] = count as u64 - 1;
    Some(entry)
}

/// Calls for each entry from a page to before another, by address; those for which nothing comes
/// back are taken away, others are what comes back.
pub fn each(
    words: &mut [u64],
    first: u64,
    end: u64,
    mut change: impl FnMut(u64, Entry) -> Option<Entry>,
) {
    let count = count(words);
    let (mut from, _) = search(words, first);
    let places = words.get_mut(HEAD..).unwrap_or_default();
    let places = places.as_chunks_mut::<PLACE>().0.get_mut(from..count);
    // Nothing moves until one is taken away.
    for [page, entry] in places.unwrap_or_default() {
        if *page >= end {
            return;
        }
        let Some(changed) = change(*page, Entry(*entry)) else {
            break;
        };
        *entry = changed.0;
        from += 1;
    }
    if from == count {
        return;
    }
    let mut to = from;
    from += 1;
    while from < count && words[HEAD + PLACE * from] < end {
        let place = HEAD + PLACE * from;
        let page = words[place];
        if let Some(entry) = change(page, Entry(words[place + 1])) {
            words[HEAD + PLACE * to] = page;
            words[HEAD + PLACE * to + 1] = entry.0;
            to += 1;
        }
        from += 1;
    }
    if to < from {
        words.copy_within(HEAD + PLACE * from..HEAD + PLACE * count, HEAD + PLACE * to);
        words[0] = (count - (from - to)) as u64;
    }
}
