//! Files of a folder that another process serves, while the shell changes them.

use std::io::{Read, Write};
use std::process::Command;

use crate::guest::{Guest, ask};

const BEFORE: &str = "until mkdir /tmp/site; do sleep 0.1; done
cd /tmp/site
echo first > a.txt
seq 300000 > numbers.txt
mkdir d
echo index > d/index.html
echo secret > .secret
ln -s a.txt link
";

const BEHIND: &str = "waits
echo second > a.txt
echo more >> d/index.html
seq 300001 600000 > numbers.txt
echo new > other && mv other new.txt
echo changed
waits
rm a.txt numbers.txt
echo removed
";

fn numbers(from: u32, to: u32) -> String {
    (from..=to).map(|number| format!("{number}\n")).collect()
}

fn computed(guest: &Guest) -> u64 {
    let status = guest.ask("GET /status", b"").text();
    let sums = status.split_once("\"computed\":").expect("sums").1;
    let sums = sums.split_once('}').expect("their end").0;
    sums.parse().expect("a number")
}

#[test]
fn a_file_is_sent_as_it_is_now() {
    let Some(guest) = Guest::after(BEFORE, "/tmp/site", Vec::new(), BEHIND) else {
        return;
    };
    let first = guest.ask("GET /a.txt", b"");
    assert_eq!((first.status, &*first.text()), (200, "first\n"));
    let tag = first.field("ETag").expect("a tag").to_owned();
    let again = format!("GET /a.txt\nIf-None-Match: {tag}");
    assert_eq!(guest.ask(&again, b"").status, 304);
    assert_eq!(guest.ask("GET /d/", b"").text(), "index\n");
    assert_eq!(guest.ask("GET /link", b"").text(), "first\n");
    for missing in ["/.secret", "/none", "/d", "/../own", "/%2e%2e/own"] {
        assert_eq!(guest.ask(&format!("GET {missing}"), b"").status, 404);
    }
    let old = numbers(1, 300_000);
    assert!(guest.ask("GET /numbers.txt", b"").text() == old);
    let summed = computed(&guest);
    assert!(guest.ask("GET /numbers.txt", b"").text() == old);
    let more = computed(&guest) - summed;
    assert!(more < summed / 4, "{more} sums after {summed}");
    if let Ok(output) = Command::new("curl")
        .args(["--silent", "--max-time", "30"])
        .arg(guest.url("/a.txt"))
        .output()
    {
        assert_eq!(output.stdout, b"first\n");
    }

    // Somebody who reads slowly, while the file becomes another one: never bytes of both.
    let mut slow = guest.connect();
    slow.write_all(b"GET /numbers.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .expect("writing");
    let mut head = [0; 100];
    slow.read_exact(&mut head).expect("its beginning");
    guest.next("changed");
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest);
    let all = [&head[..], &rest].concat();
    let body = all.windows(4).position(|four| four == b"\r\n\r\n");
    let body = &all[body.expect("a head") + 4..];
    assert!(old.as_bytes().starts_with(body), "bytes of another file");
    println!("{} of {} bytes before it ended", body.len(), old.len());

    let second = guest.ask(&again, b"");
    assert_eq!((second.status, &*second.text()), (200, "second\n"));
    assert_ne!(second.field("ETag"), Some(&*tag));
    assert_eq!(guest.ask("GET /d/", b"").text(), "index\nmore\n");
    assert_eq!(guest.ask("GET /new.txt", b"").text(), "new\n");
    assert_eq!(guest.ask("GET /link", b"").text(), "second\n");
    assert!(guest.ask("GET /numbers.txt", b"").text() == numbers(300_001, 600_000));
    guest.next("removed");
    let mut stream = guest.connect();
    for path in ["/a.txt", "/numbers.txt", "/link"] {
        assert_eq!(ask(&mut stream, &format!("GET {path}"), b"").status, 404);
    }
    guest.ends();
}
