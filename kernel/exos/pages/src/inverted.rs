//! A hash table by address: places are probed one after the other from where a page's hash says,
//! and what follows a place that is emptied moves up. A power of two of places, of which an eighth
//! stays empty.

use crate::entry::Entry;
use crate::{Full, HEAD, PLACE};

/// Places less one; nothing if there are none.
fn mask(words: &[u64]) -> Option<usize> {
    let most = words.len().saturating_sub(HEAD) / PLACE;
    (most >= 8).then(|| (1 << most.ilog2()) - 1)
}

/// Neighbours stand far apart: ranges side by side would displace each other as a whole.
fn home(page: u64, mask: usize) -> usize {
    (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask
}

/// Makes an empty table of words.
pub fn clear(words: &mut [u64]) {
    words.fill(0);
}

/// Entries that the table has.
pub fn length(words: &[u64]) -> usize {
    words.first().map_or(0, |count| *count as usize)
}

/// Entries that it can have.
pub fn room(words: &[u64]) -> usize {
    mask(words).map_or(0, |mask| (mask + 1) / 8 * 7)
}

/// The place of a page, or the empty one where it would stand.
fn probe(words: &[u64], page: u64, mask: usize) -> usize {
    let mut at = home(page, mask);
    // An eighth is empty, unless somebody else writes here: then it ends after one round.
    for _ in 0..=mask {
        let place = HEAD + PLACE * at;
        if words[place] == page || words[place + 1] == 0 {
            break;
        }
        at = (at + 1) & mask;
    }
    at
}

/// Which word is the entry of a page.
pub fn find(words: &[u64], page: u64) -> Option<usize> {
    let place = HEAD + PLACE * probe(words, page, mask(words)?);
    (words[place] == page && words[place + 1] != 0).then_some(place + 1)
}

/// Makes an entry, or changes the one that is there.
pub fn insert(words: &mut [u64], page: u64, entry: Entry) -> Result<(), Full> {
    let mask = mask(words).ok_or(Full)?;
    let place = HEAD + PLACE * probe(words, page, mask);
    let is_new = words[place + 1] == 0;
    if is_new && length(words) >= room(words) || !is_new && words[place] != page {
        return Err(Full);
    }
    words[0] += u64::from(is_new);
    words[place] = page;
    words[place + 1] = entry.0;
    Ok(())
}

/// Empties a place: what was probed over it moves up.
fn empty(words: &mut [u64], mut hole: usize, mask: usize) {
    let mut at = hole;
    for _ in 0..mask {
        at = (at + 1) & mask;
        let place = HEAD + PLACE * at;
        if words[place + 1] == 0 {
            break;
        }
        let home = home(words[place], mask);
        // From its home on to here, is the hole on the way?
        if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
            words.copy_within(place..place + PLACE, HEAD + PLACE * hole);
            hole = at;
        }
    }
    words[HEAD + PLACE * hole] = 0;
    words[HEAD + PLACE * hole + 1] = 0;
    words[0] = words[0].saturating_sub(1);
}

/// Takes an entry away.
pub fn remove(words: &mut [u64], page: u64) -> Option<Entry> {
    let mask = mask(words)?;
    let word = find(words, page)?;
    let entry = Entry(words[word]);
    empty(words, (word - 1 - HEAD) / PLACE, mask);
    Some(entry)
}

/// Calls for each entry from a page to before another, in any order, some of them twice; those for
/// which nothing comes back are taken away, others are what comes back.
pub fn each(
    words: &mut [u64],
    first: u64,
    end: u64,
    mut change: impl FnMut(u64, Entry) -> Option<Entry>,
) {
    let Some(mask) = mask(words) else { return };
    if end.saturating_sub(first) <= mask as u64 {
        for page in first..end {
            // Most stand where their hash says.
            let word = HEAD + PLACE * home(page, mask);
            let at_home = words.get(word..word + PLACE);
            let word = match at_home {
                Some([other, entry]) if *other == page && *entry != 0 => Some(word + 1),
                _ => find(words, page),
            };
            let Some(word) = word else { continue };
            match change(page, Entry(words[word])) {
                Some(entry) => words[word] = entry.0,
                None => empty(words, (word - 1 - HEAD) / PLACE, mask),
            }
        }
        return;
    }
    let mut at = 0;
    while at <= mask {
        let place = HEAD + PLACE * at;
        let (page, entry) = (words[place], words[place + 1]);
        if entry != 0 && (first..end).contains(&page) {
            match change(page, Entry(entry)) {
                Some(entry) => words[place + 1] = entry.0,
                None => {
                    // Another may stand here now.
                    empty(words, at, mask);
                    continue;
                }
            }
        }
        at += 1;
    }
}
