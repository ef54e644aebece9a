//! The client of NFS against nfs-ganesha: the same operations on a mounted folder and on the
//! folder itself give the same.

mod guest;
mod hostile;
mod inside;
mod liar;
#[path = "../../../nfs/src/tests/lies.rs"]
mod lies;
mod model;
#[path = "../../../nfs/src/tests/server.rs"]
#[allow(dead_code, reason = "what only the client's own tests need")]
mod server;
mod sockets;

use std::os::unix::ffi::OsStrExt;

use postern_exos_abi::errno;
use postern_exos_abi::file::{Files, Kind};
use postern_exos_machine::ganesha::{self, Server};
use postern_exos_nfs::{Mounted, Options, Patience, mount, rpc, xdr};

use sockets::{Loopback, Socket};

fn mount(server: &Server, is_stream: bool, limit: usize) -> Mounted<Socket> {
    let export = server.export();
    let options = Options {
        export: export.as_os_str().as_bytes(),
        port: None,
        mount_port: None,
        machine: b"test",
        user: 0,
        group: 0,
        seed: 1,
        patience: Patience::default(),
    };
    Mounted::new(&mut Loopback { is_stream, limit }, &options).expect("it is mounted")
}

const STREAM: (bool, usize) = (true, 1 << 16);
/// As much as an Ethernet frame carries.
const DATAGRAMS: (bool, usize) = (false, 1472);

#[test]
fn a_folder_is_mounted_by_datagrams_and_by_a_stream() {
    ganesha::inside(
        "a_folder_is_mounted_by_datagrams_and_by_a_stream",
        |server| {
            let _running = server.start().expect("it starts");
            std::fs::write(server.export().join("a"), b"outside").expect("a file");
            for (is_stream, limit) in [STREAM, DATAGRAMS] {
                let mut files = mount(server, is_stream, limit);
                let root = files.root();
                let node = files.look_up(root, b"a").expect("a");
                let mut bytes = [0; 20];
                assert_eq!(files.read(node, 0, &mut bytes), Ok(7));
                assert_eq!(&bytes[..7], b"outside");
                assert_eq!(files.look_up(root, b"b"), Err(errno::NOENT));
                let made = files
                    .create(root, b"b", Kind::File, 0o640, &[])
                    .expect("a new file");
                assert_eq!(files.status(made).expect("known").mode, 0o640);
                files.remove(root, b"b", false).expect("removed");
                let space = files.space().expect("space");
                assert!(space.free > 0 && space.free <= space.blocks);
            }
        },
    );
}

#[test]
fn a_removed_file_lives_until_it_is_released() {
    ganesha::inside("a_removed_file_lives_until_it_is_released", |server| {
        let _running = server.start().expect("it starts");
        let mut files = mount(server, STREAM.0, STREAM.1);
        let root = files.root();
        for is_covered in [false, true] {
            let node = files.create(root, b"a", Kind::File, 0o600, &[]).expect("a");
            files.hold(node).expect("held");
            files.write(node, 0, b"still here").expect("written");
            if is_covered {
                files.create(root, b"b", Kind::File, 0o600, &[]).expect("b");
                files.rename((root, b"b"), (root, b"a")).expect("renamed");
                assert_ne!(files.look_up(root, b"a"), Ok(node));
            } else {
                files.remove(root, b"a", false).expect("removed");
                assert_eq!(files.look_up(root, b"a"), Err(errno::NOENT));
            }
            let mut bytes = [0; 10];
            assert_eq!(files.read(node, 0, &mut bytes), Ok(10));
            assert_eq!(&bytes, b"still here");
            files.release(node);
            let left = std::fs::read_dir(server.export()).expect("entries").count();
            assert_eq!(left, usize::from(is_covered));
        }
    });
}

/// Nothing that was written is lost when the server ends before it has committed.
#[test]
fn a_server_that_starts_anew_is_sent_everything_again() {
    ganesha::inside(
        "a_server_that_starts_anew_is_sent_everything_again",
        |server| {
            for (is_stream, limit) in [STREAM, DATAGRAMS] {
                let running = server.start().expect("it starts");
                let mut files = mount(server, is_stream, limit);
                let root = files.root();
                let node = files.create(root, b"a", Kind::File, 0o600, &[]).expect("a");
                files.hold(node).expect("held");
                let bytes: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
                files.write(node, 0, &bytes).expect("written");
                drop(running);
                // A server of this kind is known by the second in which it was started.
                std::thread::sleep(std::time::Duration::from_millis(1100));
                // As if the machine had lost it.
                std::fs::write(server.export().join("a"), b"").expect("lost");
                let running = server.start().expect("it starts again");
                files.synchronise(Some(node)).expect("committed");
                files.release(node);
                assert!(std::fs::read(server.export().join("a")).expect("a") == bytes);
                files.remove(root, b"a", false).expect("removed");
                drop(running);
            }
        },
    );
}

#[test]
fn folders_of_many_entries_are_listed_whole() {
    ganesha::inside("folders_of_many_entries_are_listed_whole", |server| {
        let _running = server.start().expect("it starts");
        let mut expected = Vec::new();
        for number in 0..700 {
            let name = format!("a name that is not short {number}");
            std::fs::write(server.export().join(&name), b"").expect("a file");
            expected.push(name.into_bytes());
        }
        expected.sort();
        for (is_stream, limit) in [STREAM, DATAGRAMS] {
            let mut files = mount(server, is_stream, limit);
            let root = files.root();
            for at_once in [usize::MAX, 7] {
                let (mut found, mut next) = (Vec::new(), 0);
                loop {
                    let mut count = 0;
                    files
                        .list(root, next, &mut |entry| {
                            found.push(entry.name.to_vec());
                            next = entry.next;
                            count += 1;
                            count < at_once
                        })
                        .expect("listed");
                    if count < at_once {
                        break;
                    }
                }
                found.sort();
                assert_eq!(found, expected);
            }
        }
    });
}

/// Others' changes are seen by who opens a file anew.
#[test]
fn what_others_write_is_seen_at_the_next_opening() {
    ganesha::inside("what_others_write_is_seen_at_the_next_opening", |server| {
        let _running = server.start().expect("it starts");
        let path = server.export().join("a");
        std::fs::write(&path, b"first").expect("a file");
        let mut files = mount(server, STREAM.0, STREAM.1);
        let node = files.look_up(files.root(), b"a").expect("a");
        for text in ["first", "second", "the third and longest"] {
            std::fs::write(&path, text).expect("a change");
            files.hold(node).expect("opened");
            let mut bytes = [0; 64];
            let count = files.read(node, 0, &mut bytes).expect("read");
            files.release(node);
            assert_eq!(&bytes[..count], text.as_bytes());
        }
    });
}

#[test]
fn the_same_operations_give_the_same_tree() {
    ganesha::inside("the_same_operations_give_the_same_tree", |server| {
        let seconds: u64 = std::env::var("POSTERN_NFS_SECONDS")
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(6);
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        for ((is_stream, limit), seed) in [STREAM, DATAGRAMS].into_iter().zip([seed, seed ^ 1]) {
            // Another server each time: it would remember what the folder had before.
            let _running = server.start().expect("it starts");
            let mut files = mount(server, is_stream, limit);
            model::compare(&mut files, &server.export(), seed, seconds / 2);
        }
    });
}
