extern crate std;

use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use crate::entry::{Entry, READ, WRITE};
use crate::{Full, inverted, linear};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

macro_rules! against_a_model {
    ($name:ident, $table:ident) => {
        #[test]
        fn $name() {
            for (seed, words, span) in [
                (1, 130, 90),
                (2, 514, 400),
                (3, 34, 4000),
                (4, 1030, 1 << 35),
            ] {
                let mut random = Random(seed);
                let (mut table, mut model) = (vec![7; words], BTreeMap::new());
                $table::clear(&mut table);
                for step in 0..6000 {
                    // Pages of a few neighbourhoods.
                    let page = random.below(span) & !0xf8 | random.below(8);
                    let entry = Entry::new(random.below(8), Entry::THERE).with_number(step);
                    match random.below(8) {
                        0..4 => match $table::insert(&mut table, page, entry) {
                            Ok(()) => drop(model.insert(page, entry)),
                            Err(Full) => {
                                assert!(!model.contains_key(&page));
                                assert_eq!(model.len(), $table::room(&table));
                            }
                        },
                        4..6 => assert_eq!($table::remove(&mut table, page), model.remove(&page)),
                        6 => {
                            let end = page + random.below(64);
                            let inside: Vec<u64> =
                                model.range(page..end).map(|(page, _)| *page).collect();
                            let mut seen = Vec::new();
                            $table::each(&mut table, page, end, |page, entry| {
                                seen.push(page);
                                (entry.number() % 3 != 0).then(|| entry.protected(READ))
                            });
                            seen.sort_unstable();
                            seen.dedup();
                            assert_eq!(seen, inside);
                            for page in inside {
                                let entry: Entry = model[&page];
                                match entry.number() % 3 {
                                    0 => drop(model.remove(&page)),
                                    _ => drop(model.insert(page, entry.protected(READ))),
                                }
                            }
                        }
                        _ => {}
                    }
                    let found = $table::find(&table, page).map(|word| Entry(table[word]));
                    assert_eq!(found, model.get(&page).copied(), "step {step}");
                    assert_eq!($table::length(&table), model.len());
                }
                let mut all = BTreeMap::new();
                $table::each(&mut table, 0, u64::MAX, |page, entry| {
                    all.insert(page, entry);
                    Some(entry)
                });
                assert_eq!(all, model);
                $table::each(&mut table, 0, u64::MAX, |_, _| None);
                assert_eq!($table::length(&table), 0);
            }
        }
    };
}

against_a_model!(a_linear_table_is_a_map, linear);
against_a_model!(an_inverted_table_is_a_map, inverted);

#[test]
fn a_table_without_room_is_full() {
    for words in 0..6 {
        let mut table = vec![0; words];
        let entry = Entry::new(WRITE, 0);
        let room = linear::room(&table);
        let done = (0..9).map_while(|page| linear::insert(&mut table, page, entry).ok());
        assert_eq!(done.count(), room);
        assert_eq!(inverted::insert(&mut table, 1, entry), Err(Full));
        assert_eq!(inverted::find(&table, 1), None);
    }
}

#[test]
fn tables_with_nonsense_do_not_panic() {
    let mut random = Random(99);
    for _ in 0..300 {
        let mut table: Vec<u64> = (0..66).map(|_| random.below(u64::MAX)).collect();
        let page = table[random.below(66) as usize];
        let entry = Entry::new(READ, 0);
        let _ = linear::find(&table, page);
        let _ = inverted::find(&table, page);
        let _ = linear::insert(&mut table.clone(), page, entry);
        let _ = inverted::insert(&mut table.clone(), page, entry);
        let _ = linear::remove(&mut table.clone(), page);
        let _ = inverted::remove(&mut table, page);
    }
}

#[test]
fn entries_keep_their_parts_apart() {
    let entry = Entry::new(WRITE, Entry::THERE | Entry::HIDDEN).with_number(u32::MAX);
    let entry = entry.with_capability(0xabcd);
    assert_eq!((entry.number(), entry.capability()), (u32::MAX, 0xabcd));
    assert_eq!(
        (entry.protection(), entry.has(Entry::SHARED)),
        (WRITE, false)
    );
    let entry = entry.with_number(5).protected(READ).without(Entry::HIDDEN);
    assert_eq!((entry.number(), entry.capability()), (5, 0xabcd));
    assert!(entry.has(Entry::THERE) && !entry.has(Entry::HIDDEN));
}
