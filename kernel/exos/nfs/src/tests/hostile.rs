//! Real answers, changed at random: everything comes to an end, nothing panics, and what reaches
//! the caller is what it may be.

use std::boxed::Box;
use std::cell::Cell;
use std::rc::Rc;
use std::vec::Vec;
use std::{println, vec};

use postern_exos_abi::errno;
use postern_exos_abi::file::{Files, Kind};

use super::lies::changed;
use super::server::{OPTIONS, Way};
use crate::files::Mounted;
use crate::procedures::is_name;

const NAMES: [&[u8]; 7] = [b"f", b"f2", b"d", b"d2", b"l", b"x", b"s"];

fn operation(
    files: &mut Mounted<Way>,
    random: &mut fastrand::Rng,
    nodes: &mut Vec<u64>,
    held: &mut Vec<u64>,
) {
    let pick = |random: &mut fastrand::Rng| NAMES[random.usize(..NAMES.len())];
    let node = nodes[random.usize(..nodes.len())];
    let (one, two) = (pick(random), pick(random));
    let mut room = vec![0xa5; random.usize(1..9000)];
    match random.u8(..16) {
        0 | 1 => nodes.extend(files.look_up(node, one)),
        2 => {
            if let Ok(status) = files.status(node) {
                assert!(status.size <= i64::MAX as u64 && status.mode <= 0o777);
                assert_eq!(status.node, node);
            }
        }
        3 | 4 => {
            let length = room.len();
            if let Ok(count) = files.read(node, random.u64(..20_000), &mut room) {
                assert!(count <= length);
            }
        }
        5 | 6 => {
            if let Ok(count) = files.write(node, random.u64(..20_000), &room) {
                assert!(count <= room.len());
            }
        }
        7 => {
            let kind = [Kind::File, Kind::Folder, Kind::Link][random.usize(..3)];
            nodes.extend(files.create(node, one, kind, 0o644, b"target"));
        }
        8 => drop(files.link(node, nodes[0], one)),
        9 => drop(files.remove(node, one, random.bool())),
        10 => drop(files.rename((node, one), (nodes[0], two))),
        11 => drop(files.set_length(node, random.u64(..))),
        12 => {
            let mut target = [0; 20];
            if let Ok(count) = files.target(node, &mut target) {
                assert!((1..4096).contains(&count));
            }
        }
        13 => {
            let mut count = 0;
            let _ = files.list(node, random.u64(..3), &mut |entry| {
                assert!(is_name(entry.name) && entry.next != 0);
                count += 1;
                count < 1000
            });
        }
        14 if files.hold(node).is_ok() => held.push(node),
        _ if !held.is_empty() => files.release(held.swap_remove(random.usize(..held.len()))),
        _ => drop(files.synchronise(None)),
    }
    if nodes.len() > 50 {
        nodes.truncate(10);
    }
}

#[test]
fn nothing_that_a_server_answers_is_believed() {
    let first = fastrand::u64(..);
    println!("seed {first}");
    let many = std::env::var("POSTERN_NFS_LIES").ok();
    let many = many.and_then(|many| many.parse().ok()).unwrap_or(6000u64);
    let mut sent_at_all = 0;
    for seed in (0..many).map(|each| first.wrapping_add(each)) {
        let lies = Rc::new(Cell::new(0u8));
        let mut random = fastrand::Rng::with_seed(seed);
        let mut hand = random.fork();
        let (mut before, often) = (Vec::new(), lies.clone());
        let way = Way::new(
            Box::new(move |answer| {
                if hand.u8(..100) < often.get() {
                    changed(&mut hand, answer, &mut before)
                } else {
                    before = answer.to_vec();
                    vec![answer.to_vec()]
                }
            }),
            random.bool(),
        );
        lies.set(if random.u8(..8) == 0 { 30 } else { 0 });
        let mounted = Mounted::new(&mut way.clone(), &OPTIONS);
        let Ok(mut files) = mounted else {
            assert_ne!(lies.get(), 0);
            continue;
        };
        lies.set([1, 5, 30, 90][random.usize(..4)]);
        let (mut nodes, mut held) = (vec![files.root()], Vec::new());
        for _ in 0..300 {
            let sent = way.0.borrow().sent;
            operation(&mut files, &mut random, &mut nodes, &mut held);
            way.0.borrow_mut().written.clear();
            let sent = way.0.borrow().sent - sent;
            sent_at_all += sent;
            assert!(
                sent < 10_000,
                "{sent} messages for one operation, seed {seed}"
            );
            assert!(files.is_bounded(), "memory, seed {seed}");
            if files.status(files.root()) == Err(errno::STALE) {
                // Its kind was a lie: nothing more can be asked of this server.
                break;
            }
        }
        // An honest server is one that can be worked with.
        lies.set(0);
        held.drain(..).for_each(|node| files.release(node));
        let _ = files.synchronise(None);
        let fresh = files.look_up(nodes[0], b"f77");
        assert!(
            fresh.is_ok() || fresh == Err(errno::STALE),
            "{fresh:?}, seed {seed}"
        );
    }
    println!("{sent_at_all} messages");
    assert!(
        sent_at_all > 20 * many,
        "{sent_at_all} messages to {many} servers"
    );
}
