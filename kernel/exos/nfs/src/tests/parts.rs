//! Each lie by itself, and what an honest server's misfortunes do.

use std::boxed::Box;
use std::vec::Vec;
use std::{format, vec};

use postern_exos_abi::errno;
use postern_exos_abi::file::{Files, Kind};

use super::server::{OPTIONS, SIZE, Way};
use crate::files::Mounted;
use crate::procedures::is_name;
use crate::record::{self, Records};
use crate::rpc::Transport;
use crate::xdr::{Malformed, Reader, Writer};

fn honest(is_plus: bool) -> (Way, Mounted<Way>) {
    let way = Way::new(Box::new(|answer| vec![answer.to_vec()]), is_plus);
    let files = Mounted::new(&mut way.clone(), &OPTIONS).unwrap();
    (way, files)
}

#[test]
fn what_is_written_is_read_as_it_was() {
    let mut w = Writer::default();
    w.word(7);
    w.double(1 << 40);
    w.opaque(b"abcde");
    w.fixed(b"verifier");
    assert_eq!(w.bytes.len(), 4 + 8 + 4 + 8 + 8);
    let mut r = Reader::new(&w.bytes);
    assert_eq!(r.word(), Ok(7));
    assert_eq!(r.double(), Ok(1 << 40));
    assert_eq!(r.opaque(5), Ok(&b"abcde"[..]));
    assert_eq!(r.verifier(), Ok(*b"verifier"));
    assert_eq!(r.word(), Err(Malformed));
    assert_eq!(
        Reader::new(&[0, 0, 0, 6, 1, 2, 3, 4, 5, 6, 7, 8]).opaque(5),
        Err(Malformed)
    );
    assert_eq!(
        Reader::new(&[0, 0, 0, 5, 1, 2, 3, 4, 5]).opaque(5),
        Err(Malformed)
    );
    assert_eq!(Reader::new(&[0, 0, 0, 2]).boolean(), Err(Malformed));
}

#[test]
fn records_are_taken_from_a_stream_however_it_is_cut() {
    let mut stream = Vec::new();
    stream.extend([0, 0, 0, 2, b'a', b'b']);
    stream.extend(record::mark(b"c"));
    stream.extend(b"c");
    stream.extend(record::mark(b"next"));
    stream.extend(b"next");
    for cut in 1..stream.len() {
        let (mut records, mut record, mut found) = (Records::default(), Vec::new(), Vec::new());
        for part in stream.chunks(cut) {
            records.put(part);
            while records.take(&mut record).unwrap() {
                found.push(record.clone());
            }
        }
        assert_eq!(found, [b"abc".to_vec(), b"next".to_vec()], "cut at {cut}");
    }
    let mut records = Records::default();
    records.put(&[0x7f, 0xff, 0xff, 0xff]);
    assert_eq!(records.take(&mut Vec::new()), Err(Malformed));
    records.clear();
    records.put(&[0; 4 * 300]);
    assert_eq!(
        records.take(&mut Vec::new()),
        Err(Malformed),
        "fragments without bytes"
    );
}

#[test]
fn names_are_those_of_one_file() {
    for name in [&b""[..], b".", b"..", b"a/b", b"a\0", &[b'a'; 256]] {
        assert!(!is_name(name), "{name:?}");
    }
    for name in [&b"..."[..], b".a", b"a b", &[b'a'; 255], &[0xff]] {
        assert!(is_name(name), "{name:?}");
    }
}

#[test]
fn an_honest_server_is_read_listed_and_written() {
    for is_plus in [true, false] {
        let (_, mut files) = honest(is_plus);
        let root = files.root();
        let file = files.look_up(root, b"f").unwrap();
        let mut bytes = [0; 6000];
        assert_eq!(files.read(file, 10, &mut bytes), Ok(SIZE as usize - 10));
        let mut names = Vec::new();
        let listed = files.list(root, 0, &mut |entry| {
            names.push(entry.name.to_vec());
            true
        });
        assert_eq!(listed, Ok(()));
        assert_eq!(names.len(), 23);
        assert_eq!(names[22], b"d22");
        assert_eq!(
            files.look_up(root, b"s"),
            Err(errno::NOTSUP),
            "a socket of the server's"
        );
        assert_eq!(files.look_up(root, b".."), Err(errno::INVAL));
        assert_eq!(files.look_up(file, b"f"), Err(errno::NOTDIR));
    }
}

/// Half of the messages are lost, and half of the others come twice.
#[test]
fn messages_may_be_lost_and_come_twice() {
    let mut random = fastrand::Rng::with_seed(1);
    let way = Way::new(
        Box::new(move |answer| match random.u8(..4) {
            0 => vec![],
            1 => vec![answer.to_vec(), answer.to_vec()],
            _ => vec![answer.to_vec()],
        }),
        true,
    );
    let mut files = Mounted::new(&mut way.clone(), &OPTIONS).unwrap();
    for number in 0..100 {
        let name = format!("f{number}");
        let node = files.look_up(files.root(), name.as_bytes()).unwrap();
        assert_eq!(files.read(node, 0, &mut [0; 100]), Ok(100));
    }
}

#[test]
fn a_server_that_is_silent_is_given_up() {
    let way = Way::new(Box::new(|_| vec![]), true);
    assert!(Mounted::new(&mut way.clone(), &OPTIONS).is_err());
    assert!(way.0.borrow().sent < 20);
}

/// Who asks a server that has just been given up waits for a short time, until it answers again.
#[test]
fn a_silent_server_is_asked_for_a_short_time() {
    use std::cell::Cell;
    use std::rc::Rc;
    let silent = Rc::new(Cell::new(false));
    let seen = silent.clone();
    let hand = move |answer: &[u8]| match seen.get() {
        true => vec![],
        false => vec![answer.to_vec()],
    };
    let way = Way::new(Box::new(hand), true);
    let mut files = Mounted::new(&mut way.clone(), &OPTIONS).unwrap();
    let mut way = way;
    let mut took = |files: &mut Mounted<Way>| {
        let begin = way.now();
        let found = files.look_up(files.root(), b"f");
        (found.err(), way.now() - begin)
    };
    let held = files.look_up(files.root(), b"f3").unwrap();
    files.hold(held).unwrap();
    silent.set(true);
    // A child has open what its parent has, whatever the server says.
    files.share(held).unwrap();
    let (error, time) = took(&mut files);
    assert_eq!(error, Some(errno::TIMEDOUT));
    assert!((15_000..25_000).contains(&time), "{time} ms");
    for _ in 0..3 {
        let (error, time) = took(&mut files);
        assert_eq!(error, Some(errno::TIMEDOUT));
        assert!((500..4_000).contains(&time), "{time} ms");
    }
    silent.set(false);
    assert_eq!(took(&mut files).0, None);
    silent.set(true);
    assert!(took(&mut files).1 > 15_000);
}

/// A stream is connected again until its time is over, and what was asked is asked anew.
#[test]
fn a_stream_that_ends_is_connected_again() {
    for refusals in [0, 3, u32::MAX] {
        let way = Way::new(Box::new(|answer| vec![answer.to_vec()]), true);
        way.0.borrow_mut().stream = Some(refusals);
        let mut files = Mounted::new(&mut way.clone(), &OPTIONS).unwrap();
        way.0.borrow_mut().ends = true;
        let begin = way.clone().now();
        let found = files.look_up(files.root(), b"f");
        let time = way.clone().now() - begin;
        match refusals {
            u32::MAX => {
                assert_eq!(found, Err(errno::TIMEDOUT));
                assert!((40_000..50_000).contains(&time), "{time} ms");
            }
            _ => {
                assert!(found.is_ok() && time < 5_000, "{found:?}, {time} ms");
            }
        }
    }
}

/// Whichever write it was that the server did not keep, the client has it and sends it again.
#[test]
fn a_new_server_is_sent_what_the_old_one_had_not_committed() {
    for restarts_before_writing in [false, true] {
        let (way, mut files) = honest(true);
        let node = files.look_up(files.root(), b"f").unwrap();
        files.hold(node).unwrap();
        files.write(node, 0, &[1; 3000]).unwrap();
        way.0.borrow_mut().restart();
        assert!(way.0.borrow().written.is_empty());
        if restarts_before_writing {
            files.write(node, 3000, &[2; 100]).unwrap();
        }
        files.synchronise(Some(node)).unwrap();
        let server = way.0.borrow();
        let sum: usize = server
            .written
            .iter()
            .filter(|w| w.2)
            .map(|w| w.1.len())
            .sum();
        let expected = if restarts_before_writing { 3100 } else { 3000 };
        assert!(sum >= expected, "{sum} bytes stay");
    }
}

#[test]
fn a_file_that_becomes_a_folder_is_stale() {
    use std::cell::Cell;
    use std::rc::Rc;
    let lies = Rc::new(Cell::new(false));
    let seen = lies.clone();
    let way = Way::new(
        Box::new(move |answer| {
            let mut answer = answer.to_vec();
            // GETATTR's answer: the kind stands behind six words of the reply and the status.
            if seen.get() && answer.len() == 28 + 84 {
                answer[28..32].copy_from_slice(&2u32.to_be_bytes());
            }
            vec![answer]
        }),
        true,
    );
    let mut files = Mounted::new(&mut way.clone(), &OPTIONS).unwrap();
    let node = files.look_up(files.root(), b"f").unwrap();
    assert_eq!(files.status(node).unwrap().kind, Kind::File);
    lies.set(true);
    // Until then what was said is believed.
    for _ in 0..4000 {
        let _ = files.look_up(files.root(), b"f2");
    }
    assert_eq!(files.status(node), Err(errno::STALE));
    assert_eq!(files.status(node), Err(errno::STALE));
}

/// A listing whose cookies go in a circle, or on for ever.
#[test]
fn listings_end() {
    for is_circle in [true, false] {
        let mut cookie = 0u64;
        let way = Way::new(
            Box::new(move |answer| {
                let mut answer = answer.to_vec();
                // An answer of READDIRPLUS, with entries or behind the last one.
                let length = answer.len();
                if length > 240 || (length == 132 && cookie > 0) {
                    // One entry, of another cookie, and no end.
                    answer.truncate(28 + 88 + 8);
                    let mut w = Writer { bytes: answer };
                    cookie += 1;
                    w.word(1);
                    w.double(1);
                    w.opaque(b"f");
                    w.double(if is_circle { 1 + cookie % 7 } else { cookie });
                    w.double(0);
                    w.word(0);
                    w.word(0);
                    answer = w.bytes;
                }
                vec![answer]
            }),
            true,
        );
        let mut files = Mounted::new(&mut way.clone(), &OPTIONS).unwrap();
        let listed = files.list(files.root(), 0, &mut |_| true);
        assert_eq!(listed, Err(errno::PROTO));
    }
}
