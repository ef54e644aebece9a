//! Endpoints: whose frame is whose. Frames come by `Matches` here, which asks the same code.

use postern_aegis::abi::Call;
use postern_aegis::abi::address::BOOKS;
use postern_aegis::abi::call::HOLDINGS as RESOURCE;
use postern_aegis::abi::device::BEHIND;
use postern_aegis::abi::{FILTER, HOLDINGS};
use postern_aegis::load::Child;
use postern_aegis::{Error, calls, mailbox, pages};
use postern_aegis_programs::Role;

use crate::scenario::{
    Named, Outcome, Why, ask_done, ask_refused, check, gone, refused, running, same, wait,
};

crate::scenarios! {
    "endpoints.first" first;
    "endpoints.lies" lies;
    "endpoints.behind" behind;
    "endpoints.death" death;
    "endpoints.texts" texts;
    "endpoints.random" random;
    "endpoints.agree" agree;
    "endpoints.many" many;
    "endpoints.large" large;
    "endpoints.rings" rings;
}

/// Where a child finds what it binds, in its mailbox.
const TEXT: usize = 256;

/// Numbers in no order, the same in every run (Steele and others, *Fast splittable pseudorandom
/// number generators*, 2014).
struct Chance(u64);

impl Chance {
    fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) % bound
    }
}

/// A frame of UDP over IPv4 from and to these ports.
fn frame(source: u16, destination: u16) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..36].copy_from_slice(&source.to_be_bytes());
    frame[36..38].copy_from_slice(&destination.to_be_bytes());
    frame[39] = 26;
    frame
}

/// Who gets a frame; 0: nobody.
fn gets(frame: &[u8]) -> Result<u64, Why> {
    let mut found = [u64::MAX; 1];
    let count = calls::matches(frame, &mut found).named("who gets it")?;
    check(count == u64::from(found[0] != 0), "no answer")?;
    Ok(found[0])
}

fn ends(holdings: &[usize]) -> Outcome {
    holdings
        .iter()
        .try_for_each(|holding| calls::drop_holding(*holding, 0).named("dropping").map(drop))
}

/// A child that may have endpoints.
fn owner() -> Result<Child, Why> {
    let child = running(Role::Obey, 0, 0)?;
    calls::quota(child.number, RESOURCE, 0, 4).named("a quota")?;
    Ok(child)
}

/// The arguments of a child's binding.
fn binding(child: &Child, text: &str, priority: u64) -> [u64; 4] {
    for (index, bytes) in text.as_bytes().chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        child.mailbox.set(TEXT + index, u64::from_le_bytes(word));
    }
    let at = mailbox::ADDRESS + 8 * TEXT as u64;
    [at, text.len() as u64, priority, 0]
}

fn bound(child: &Child, text: &str, priority: u64) -> Result<u64, Why> {
    ask_done(
        "binding",
        child,
        Call::Bind,
        &binding(child, text, priority),
    )
}

fn taken(child: &Child, text: &str, priority: u64) -> Outcome {
    let arguments = binding(child, text, priority);
    ask_refused(
        "what is another's",
        child,
        Call::Bind,
        &arguments,
        Error::Taken,
    )
}

/// The first of all that want a frame, the code says, too.
fn first() -> Outcome {
    let low = calls::bind("udp", 1, 0).named("low")?;
    let high = calls::bind("udp dst port 7", 2, 0).named("high")?;
    let late = calls::bind("dst port 7 or dst port 9", 2, 0).named("late")?;
    same("7", gets(&frame(1, 7))?, high as u64)?;
    same("9", gets(&frame(1, 9))?, late as u64)?;
    same("5", gets(&frame(1, 5))?, low as u64)?;
    same("no frame", gets(&[])?, 0)?;
    let mut all = [0; 8];
    let count = calls::matches(&frame(1, 7), &mut all).named("all")?;
    same("how many", count, 3)?;
    let order = [high as u64, late as u64, low as u64];
    check(all[..3] == order, "another order")?;
    all[1] = 0;
    let count = calls::matches(&frame(1, 7), &mut all[..1]).named("one of them")?;
    check(count == 1 && all[1] == 0, "more than there is room for")?;
    ends(&[high])?;
    same("7, without the high one", gets(&frame(1, 7))?, late as u64)?;
    ends(&[low, late])?;
    same("nobody", gets(&frame(1, 7))?, 0)
}

/// Nobody takes another's frames: not by more of them, not by fewer, not by what cannot be told apart.
fn lies() -> Outcome {
    let (one, other) = (owner()?, owner()?);
    let seven = bound(&one, "udp dst port 7", 1)?;
    for text in [
        "",
        "udp",
        "udp dst port 7",
        "udp dst port 7 and src port 1",
        "portrange 5-9",
        "not tcp",
        "len > 40",
        "36:2 & 7 = 7",
        "36:1 = 0",
        "not udp dst port 8",
        "ip protochain 17",
        "udp[2:2] - 7 = 0",
    ] {
        taken(&other, text, 2)?;
        same("7", gets(&frame(1, 7))?, seven)?;
    }
    // What others have no part in.
    let eight = bound(&other, "udp dst port 8", 9)?;
    let tcp = bound(&other, "tcp", 9)?;
    same("7", gets(&frame(1, 7))?, seven)?;
    same("8", gets(&frame(1, 8))?, eight)?;
    same("9", gets(&frame(1, 9))?, 0)?;
    check(tcp != 0, "tcp")?;
    // The owner's own filters are its own affair.
    let own = bound(&one, "udp dst port 7 and src port 1", 2)?;
    same("its own", gets(&frame(1, 7))?, own)?;
    same("others of it", gets(&frame(2, 7))?, seven)?;
    let rest = bound(&other, "udp", 1)?;
    same("of equals the older", gets(&frame(2, 7))?, seven)?;
    same("the rest", gets(&frame(1, 9))?, rest)?;
    // Each is compared with each: that the older one gets these frames does not count.
    taken(&one, "udp dst port 7 and src port 2", 2)?;
    // Others cannot end them; the root takes what it wants.
    ask_refused("dropping", &other, Call::Drop, &[own], Error::Denied)?;
    ask_refused(
        "directing",
        &other,
        Call::Direct,
        &[own, 0, 0],
        Error::Denied,
    )?;
    let root = calls::bind("udp", 100, 0).named("the root's")?;
    same("the root's", gets(&frame(1, 7))?, root as u64)?;
    ends(&[root])?;
    same("back again", gets(&frame(1, 7))?, own)?;
    // One more than its quota.
    let four = binding(&other, "arp", 1);
    ask_done("the fourth", &other, Call::Bind, &four)?;
    ask_refused("the fifth", &other, Call::Bind, &four, Error::Quota)?;
    one.end();
    other.end();
    Ok(())
}

/// Who stands behind all others has what nobody wants, and loses it to whoever comes.
fn behind() -> Outcome {
    let (one, other) = (owner()?, owner()?);
    let rest = bound(&one, "ip", BEHIND.into())?;
    same("at first", gets(&frame(1, 7))?, rest)?;
    let seven = bound(&other, "udp dst port 7", 0)?;
    same("7", gets(&frame(1, 7))?, seven)?;
    same("8", gets(&frame(1, 8))?, rest)?;
    let late = bound(&other, "udp", BEHIND.into())?;
    same("of those behind the older", gets(&frame(1, 8))?, rest)?;
    taken(&one, "udp dst port 7", 1)?;
    one.end();
    wait("the next one", || {
        gets(&frame(1, 8)).is_ok_and(|who| who == late)
    })?;
    other.end();
    Ok(())
}

/// With their owner its endpoints end, and the next ones get the frames.
fn death() -> Outcome {
    let child = owner()?;
    let high = bound(&child, "udp dst port 7", 2)?;
    let low = calls::bind("udp", 1, 0).named("low")?;
    same("its own", gets(&frame(1, 7))?, high)?;
    let number = child.number;
    child.end();
    gone(number)?;
    wait("the next one", || {
        gets(&frame(1, 7)).is_ok_and(|who| who == low as u64)
    })?;
    ends(&[low])
}

/// Texts of all lengths, wrong ones, and arguments that are none.
fn texts() -> Outcome {
    const SPACES: &str = match core::str::from_utf8(&[b' '; FILTER + 1]) {
        Ok(text) => text,
        Err(_) => "",
    };
    for length in [0, 1, 7, 8, 9, 100, FILTER - 1, FILTER] {
        let all = calls::bind(&SPACES[..length], 0, 0).named("spaces")?;
        same("all frames", gets(&[])?, all as u64)?;
        ends(&[all])?;
    }
    let bind = |text: &str| calls::bind(text, 0, 0).map(|number| number as u64);
    refused("a byte too many", bind(SPACES), Error::Argument)?;
    for text in [
        "udp dst",
        "prot 7",
        "host example",
        "(udp",
        "udp)",
        "7 =",
        "\0",
        "ü",
        "len / 0 =",
    ] {
        refused("no filter", bind(text), Error::Argument)?;
    }
    let call = |arguments: [u64; 4]| {
        crate::trusted::any_call(
            Call::Bind as u64,
            [arguments[0], arguments[1], arguments[2], arguments[3], 0, 0],
        )
    };
    let at = SPACES.as_ptr() as u64;
    refused("unmapped", call([8, 8, 0, 0]), Error::Unmapped)?;
    refused("the kernel's", call([1 << 63, 8, 0, 0]), Error::Unmapped)?;
    refused("length", call([at, u64::MAX, 0, 0]), Error::Argument)?;
    refused("priority", call([at, 0, 1 << 32, 0]), Error::Argument)?;
    refused("no page", call([at, 0, 0, u64::MAX]), Error::Argument)?;
    let frame = [0; 1515];
    let matches = |frame: &[u8]| calls::matches(frame, &mut [0; 2]);
    refused("a frame too long", matches(&frame), Error::Argument)?;
    same(
        "no endpoint",
        matches(&frame[1..]).named("a long frame")?,
        0,
    )?;
    let books = crate::trusted::any_call(Call::Matches as u64, [at, 8, BOOKS, 1, 0, 0]);
    refused("read-only", books, Error::Unmapped)
}

/// Bytes at random, and words of the language at random: a filter or a refusal.
fn random() -> Outcome {
    const WORDS: [&str; 24] = [
        "udp",
        "tcp",
        "port",
        "host",
        "10.0.0.2",
        "7",
        "and",
        "or",
        "not",
        "(",
        ")",
        "ip",
        "[",
        "]",
        "=",
        "len",
        "&",
        "vlan",
        "net",
        "src",
        "dst",
        ">",
        "ether",
        "1:0:0:0:0:2",
    ];
    let mut chance = Chance::new(7);
    let (mut filters, mut text) = (0, [0; FILTER]);
    for round in 0..300 {
        let length = chance.below(FILTER as u64 + 1) as usize;
        let mut used = 0;
        if round % 3 == 0 {
            text.fill_with(|| (chance.below(95) + 32) as u8);
            used = length;
        } else {
            let most = 1 + chance.below(2) * chance.below(7);
            for _ in 0..most {
                let word = WORDS[chance.below(WORDS.len() as u64) as usize].as_bytes();
                text[used..used + word.len()].copy_from_slice(word);
                text[used + word.len()] = b' ';
                used += word.len() + 1;
            }
        }
        let text = core::str::from_utf8(&text[..used]).unwrap_or("");
        match calls::bind(text, chance.below(4) as u32, 0) {
            Ok(number) => {
                filters += 1;
                gets(&frame(1, 7))?;
                ends(&[number])?;
            }
            Err(Error::Argument | Error::Exhausted) => {}
            Err(error) => return Err(Why::Refused("a text", error)),
        }
    }
    check(filters > 10, "hardly a filter")
}

/// The code and the set give the same answer, for frames of all lengths, of all kinds of filters.
fn agree() -> Outcome {
    const FILTERS: [(&str, u32); 9] = [
        ("udp dst port 7", 3),
        ("udp dst port 8", 3),
        ("host 10.0.0.1 or 10.0.0.2 or 10.0.0.3", 1),
        ("src portrange 1-3", 2),
        ("ip protochain 17", 2),
        ("ip[8] * 3 > 100 and udp[4:2] < 99", 2),
        ("vlan 5 or mpls 7", 4),
        ("len < 20", 0),
        ("ether broadcast or ether proto 0x88b5", 5),
    ];
    let mut bound = [0; FILTERS.len()];
    for (number, (text, priority)) in bound.iter_mut().zip(FILTERS) {
        *number = calls::bind(text, priority, 0).named(text)?;
    }
    let mut chance = Chance::new(3);
    let mut found = 0;
    for round in 0..160 {
        let mut bytes = [0; 1514];
        let some = frame(chance.below(5) as u16, 6 + chance.below(4) as u16);
        bytes[..60].copy_from_slice(&some);
        for _ in 0..chance.below(3) {
            bytes[chance.below(48) as usize] = chance.below(256) as u8;
        }
        let length = match round % 4 {
            0 => round / 2,
            1 => chance.below(1515) as usize,
            _ => 60,
        };
        let mut all = [0; HOLDINGS];
        let bytes = &bytes[..length];
        let count = calls::matches(bytes, &mut all).named("all")?;
        let who = gets(bytes)?;
        same("the first of all", who, if count == 0 { 0 } else { all[0] })?;
        found += u64::from(who != 0);
    }
    check(found > 80, "hardly a frame is somebody's")?;
    ends(&bound)
}

/// As many as there are numbers, ended in another order than they came.
fn many() -> Outcome {
    const MANY: usize = 100;
    let mut bound = [0; MANY];
    let mut text = *b"udp dst port 1000";
    for (index, number) in bound.iter_mut().enumerate() {
        let [.., a, b, c] = &mut text;
        (*a, *b, *c) = (
            b'0' + (index / 100) as u8,
            b'0' + (index / 10 % 10) as u8,
            b'0' + (index % 10) as u8,
        );
        let text = core::str::from_utf8(&text).unwrap_or("");
        *number = calls::bind(text, 1, 0).named("one of many")?;
    }
    let port = |index: usize| frame(1, 1000 + index as u16);
    for (index, number) in bound.iter().enumerate() {
        same("its frame", gets(&port(index))?, *number as u64)?;
    }
    same("nobody's", gets(&port(MANY))?, 0)?;
    for index in (0..MANY).step_by(3) {
        ends(&bound[index..=index])?;
    }
    for (index, number) in bound.iter().enumerate() {
        let wanted = if index % 3 == 0 { 0 } else { *number as u64 };
        same("what is left", gets(&port(index))?, wanted)?;
    }
    for index in (0..MANY).filter(|index| index % 3 != 0) {
        ends(&bound[index..=index])?;
    }
    same("nobody", gets(&port(1))?, 0)
}

/// Texts that are much to compile: some are bound until there is no room, and then it is said so.
fn large() -> Outcome {
    let mut bound = [0; 64];
    let mut count = 0;
    let mut chance = Chance::new(5);
    loop {
        let mut text = *b"host 10.000.000.000 or 10.000.000.000 or 10.000.000.000 or 10.000.000.000 or 10.000.000.000 or 10.000.000.000";
        for byte in text.iter_mut().skip(8).filter(|byte| **byte == b'0') {
            *byte = b'0' + chance.below(2) as u8;
        }
        // The first byte of each address stays ten.
        let text = core::str::from_utf8(&text).unwrap_or("");
        match calls::bind(text, 1, 0) {
            Ok(number) if count < bound.len() => {
                bound[count] = number;
                count += 1;
            }
            Ok(number) => {
                ends(&[number])?;
                break;
            }
            Err(Error::Exhausted) => break,
            Err(error) => return Err(Why::Refused("a large one", error)),
        }
    }
    check(count > 16, "hardly any")?;
    let long = "(not port 1 and not port 2 and not port 3 and not port 4 and not port 5 and not port 6 and not port 7 and not port 8 and not port 9 and not port 10 and not port 11 and not port 12 and not port 13 and not port 14 and not port 15 and not port 16 and not port 17 and not port 18 and not port 19 and not port 20 and not port 21 and not port 22 and not port 23 and not port 24 and not port 25 and not port 26 and not port 27)";
    let got = calls::bind(long, 0, 0).map(|number| number as u64);
    check(
        matches!(got, Err(Error::Exhausted | Error::Argument)),
        "too many tests",
    )?;
    let port = calls::bind("udp dst port 7", 9, 0);
    if let Ok(port) = port {
        same("still", gets(&frame(1, 7))?, port as u64)?;
        ends(&[port])?;
    }
    ends(&bound[..count])
}

/// A ring is a page of the endpoint's owner.
fn rings() -> Outcome {
    let child = owner()?;
    let page = pages::take().named("a page")?;
    let bind = |ring: u64| {
        let arguments = binding(&child, "arp", 1);
        [arguments[0], arguments[1], arguments[2], ring]
    };
    ask_refused(
        "another's page",
        &child,
        Call::Bind,
        &bind(page.into()),
        Error::Denied,
    )?;
    let own = ask_done("a page", &child, Call::Allocate, &[u64::MAX, 0, 0])?;
    let number = ask_done("its own", &child, Call::Bind, &bind(own))?;
    let direct = |ring: u64, handler: u64| [number, ring, handler];
    ask_done("none", &child, Call::Direct, &direct(0, 0))?;
    ask_refused(
        "another's",
        &child,
        Call::Direct,
        &direct(page.into(), 0),
        Error::Denied,
    )?;
    ask_refused(
        "no handler",
        &child,
        Call::Direct,
        &direct(0, number),
        Error::Kind,
    )?;
    ask_refused(
        "a free number",
        &child,
        Call::Direct,
        &direct(0, 127),
        Error::Argument,
    )?;
    ask_refused("the console", &child, Call::Direct, &[1, 0, 0], Error::Kind)?;
    child.end();
    pages::free(page).named("freeing")
}
