//! Sorting that cannot panic, also not as a compiler sees it: what is linked into kernels has no
//! call of a panic handler, and the library's sort has one, for orders that are none.
//!
//! Invariant: for any `less` at all the slice holds the same items afterwards; for an order it
//! ascends. Takes no memory, and n log n steps.

/// Sorts by `less`. Equal items may change places.
pub(crate) fn heap_sort<T: Copy>(items: &mut [T], less: impl Fn(T, T) -> bool) {
    for root in (0..items.len() / 2).rev() {
        sift(items, root, &less);
    }
    // The greatest goes to the end of what is left.
    let mut left = &mut *items;
    while let [first, .., last] = left {
        core::mem::swap(first, last);
        let Some((_, rest)) = left.split_last_mut() else {
            return;
        };
        sift(rest, 0, &less);
        left = rest;
    }
}

/// Moves the item at `node` down until no child is greater.
fn sift<T: Copy>(heap: &mut [T], mut node: usize, less: &impl Fn(T, T) -> bool) {
    loop {
        let mut child = 2 * node + 1;
        let (Some(&item), Some(&one)) = (heap.get(node), heap.get(child)) else {
            return;
        };
        let mut greater = one;
        if let Some(&other) = heap.get(child + 1)
            && less(one, other)
        {
            (child, greater) = (child + 1, other);
        }
        if !less(item, greater) {
            return;
        }
        for (at, value) in [(node, greater), (child, item)] {
            if let Some(place) = heap.get_mut(at) {
                *place = value;
            }
        }
        node = child;
    }
}

#[cfg(test)]
mod tests {
    use super::heap_sort;

    #[test]
    fn items_ascend_as_the_library_sorts_them() {
        let mut random = fastrand::Rng::with_seed(2);
        for length in (0..40).chain([100, 1000, 4096]) {
            for most in [2, 10, u32::MAX] {
                let mut items: std::vec::Vec<u32> =
                    (0..length).map(|_| random.u32(..most)).collect();
                let mut expected = items.clone();
                expected.sort_unstable();
                heap_sort(&mut items, |a, b| a < b);
                assert_eq!(items, expected);
            }
        }
    }

    #[test]
    fn nothing_is_lost_if_the_order_is_none() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..100 {
            let mut items: std::vec::Vec<u32> = (0..50).collect();
            let answers = core::cell::RefCell::new(random.fork());
            heap_sort(&mut items, |_, _| answers.borrow_mut().bool());
            items.sort_unstable();
            assert!(items.into_iter().eq(0..50));
        }
    }
}
