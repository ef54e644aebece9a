//! Sets of text positions, one bit each: where instructions start, and where direct branches go.

/// Words of the buffer that [`crate::verify`] needs for `text_len` bytes of text.
pub const fn buffer_len(text_len: usize) -> usize {
    2 * words(text_len)
}

/// Words of the buffer that [`crate::verify`] needs for [`crate::Profile::Bounded`] and
/// [`crate::Profile::Kernel`]: a path for each byte besides.
pub const fn bounded_buffer_len(text_len: usize) -> usize {
    buffer_len(text_len).saturating_add(text_len)
}

/// Words of one set.
pub(crate) const fn words(text_len: usize) -> usize {
    text_len.div_ceil(64)
}

pub(crate) fn insert(set: &mut [u64], at: usize) {
    if let Some(word) = set.get_mut(at / 64) {
        *word |= 1 << (at % 64);
    }
}

pub(crate) fn remove(set: &mut [u64], at: usize) {
    if let Some(word) = set.get_mut(at / 64) {
        *word &= !(1 << (at % 64));
    }
}

pub(crate) fn contains(set: &[u64], at: usize) -> bool {
    set.get(at / 64)
        .is_some_and(|word| word >> (at % 64) & 1 == 1)
}

/// The greatest member below `at`.
pub(crate) fn before(set: &[u64], at: usize) -> Option<usize> {
    let below = at.checked_sub(1)?;
    let mut word = set.get(below / 64)? << (63 - below % 64) >> (63 - below % 64);
    let mut index = below / 64;
    while word == 0 {
        index = index.checked_sub(1)?;
        word = *set.get(index)?;
    }
    Some(index * 64 + 63 - word.leading_zeros() as usize)
}

/// The instruction starts of verified text that a branch, an entry or an exported symbol may name.
///
/// A view over the buffer that [`crate::verify`] filled and accepted. The instructions inside a
/// guarded sequence, after its first, are not among them.
#[derive(Clone, Copy, Debug)]
pub struct Starts<'a> {
    set: &'a [u64],
    text_len: usize,
    text_offset: u32,
}

impl<'a> Starts<'a> {
    /// The view over `buffer`, or its first half, after `verify` accepted `text_len` bytes at
    /// window offset `text_offset` with it.
    pub fn new(buffer: &'a [u64], text_len: usize, text_offset: u32) -> Starts<'a> {
        Starts {
            set: buffer.get(..words(text_len)).unwrap_or(&[]),
            text_len,
            text_offset,
        }
    }

    /// Whether a branchable instruction starts at this window offset.
    pub fn contains(&self, offset: u32) -> bool {
        match offset.checked_sub(self.text_offset) {
            Some(at) => (at as usize) < self.text_len && contains(self.set, at as usize),
            None => false,
        }
    }

    /// The window offsets of all branchable instruction starts, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + 'a {
        let Starts {
            set,
            text_len,
            text_offset,
        } = *self;
        (0..text_len)
            .filter(move |&at| contains(set, at))
            .map(move |at| text_offset.saturating_add(at as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_across_words() {
        let mut set = [0u64; 3];
        for at in [0, 63, 64, 130] {
            insert(&mut set, at);
        }
        insert(&mut set, 192); // outside: ignored
        assert_eq!(before(&set, 0), None);
        assert_eq!(before(&set, 1), Some(0));
        assert_eq!(before(&set, 64), Some(63));
        assert_eq!(before(&set, 130), Some(64));
        assert_eq!(before(&set, 192), Some(130));
        remove(&mut set, 64);
        assert_eq!(before(&set, 130), Some(63));
        let starts = Starts::new(&set, 131, 0x1000);
        assert!(
            starts.contains(0x1000 + 130)
                && !starts.contains(0x1000 + 131)
                && !starts.contains(0xfff)
        );
        assert!(starts.iter().eq([0x1000, 0x103f, 0x1082]));
    }
}
