//! Whom a frame is for, of ten filters (Table 7): what asking for it takes more than asking the code
//! of a set without filters, which says no at once. Linux's filters are measured in the same way.

use postern_aegis::abi::Call;
use postern_aegis::calls;

use crate::rows::{Named, Outcome, Refused, call, row};

const LISTENERS: usize = 10;

const TEXTS: [&str; LISTENERS] = [
    "tcp and src host 10.0.0.1 and dst host 10.0.0.2 and src port 1000 and dst port 2000",
    "tcp and src host 10.0.0.1 and dst host 10.0.0.2 and src port 1000 and dst port 2001",
    "tcp and src host 10.0.0.1 and dst host 10.0.0.2 and src port 1000 and dst port 2002",
    "tcp and src host 10.0.0.1 and dst host 10.0.0.2 and src port 1000 and dst port 2003",
    "tcp and src host 10.0.0.1 and dst host 10.0.0.2 and src port 1000 and dst port 2004",
    "tcp and src host 10.0.0.1 and dst host 10.0.0.2 and src port 1000 and dst port 2005",
    "tcp and src host 10.0.0.1 and dst host 10.0.0.2 and src port 1000 and dst port 2006",
    "tcp and src host 10.0.0.1 and dst host 10.0.0.2 and src port 1000 and dst port 2007",
    "tcp and src host 10.0.0.1 and dst host 10.0.0.2 and src port 1000 and dst port 2008",
    "tcp and src host 10.0.0.1 and dst host 10.0.0.2 and src port 1000 and dst port 2009",
];

/// To the last of the ten.
const FRAME: [u8; 60] = {
    let mut frame = [0; 60];
    let (mut index, start) = (
        0,
        [
            2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 6, 0, 0, 10,
            0, 0, 1, 10, 0, 0, 2, 0x03, 0xe8, 0x07, 0xd9,
        ],
    );
    while index < start.len() {
        frame[index] = start[index];
        index += 1;
    }
    frame
};

/// What a question takes, and whom the frame is for.
fn asked() -> Result<(u64, u64), Refused> {
    let mut found = 0u64;
    let arguments = [
        FRAME.as_ptr() as u64,
        FRAME.len() as u64,
        &raw mut found as u64,
        1,
    ];
    let (took, count) = call("matches", Call::Matches, &arguments)?;
    Ok((took, if count == 0 { 0 } else { found }))
}

pub fn all() -> Outcome {
    let none = calls::bind("ip6", 0, 0).named("binding")?;
    calls::drop_holding(none, 0).named("dropping")?;
    let before = (0..LISTENERS).map(|_| asked().map(|(took, _)| took));
    let before = before.reduce(|least, took| Ok(least?.min(took?)));
    let before = before.unwrap_or(Ok(0))?;
    let mut endpoints = [0; LISTENERS];
    for (endpoint, text) in endpoints.iter_mut().zip(TEXTS) {
        *endpoint = calls::bind(text, 0, 0).named("binding")?;
    }
    row("classify", 1, || {
        let (took, found) = asked()?;
        match found == endpoints[LISTENERS - 1] as u64 {
            true => Ok(took - before),
            false => Err(Refused("another's frame", found as i64)),
        }
    })?;
    for endpoint in endpoints {
        calls::drop_holding(endpoint, 0).named("dropping")?;
    }
    Ok(())
}
