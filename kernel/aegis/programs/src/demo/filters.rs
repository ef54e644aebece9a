//! A binding taken by another, and refused.

use postern_aegis::abi::Call;
use postern_aegis::abi::call::HOLDINGS;
use postern_aegis::load::{self, Child, LoadError, Plan};
use postern_aegis::{Error, calls, mailbox, println, slices};
use postern_aegis_programs::{Role, words};

use crate::{Shown, wait};

/// Where a text stands in a child's mailbox.
const TEXT: usize = 256;

/// An environment that may have endpoints.
fn owner() -> Result<Child, LoadError> {
    let plan = Plan::new([Role::Obey as u64, 0, 0, 0, 0, 0, 0, 0]);
    let child = load::program("player", &plan)?;
    child.run_on(slices::processors() - 1)?;
    calls::quota(child.number, HOLDINGS, 0, 2)
        .map_err(|error| LoadError::Call("a quota", error))?;
    Ok(child)
}

/// It binds a filter: the endpoint, or why not.
fn binds(child: &Child, text: &str, priority: u64) -> Result<u64, Error> {
    for (index, bytes) in text.as_bytes().chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        child.mailbox.set(TEXT + index, u64::from_le_bytes(word));
    }
    let at = mailbox::ADDRESS + 8 * TEXT as u64;
    let arguments = [at, text.len() as u64, priority, 0];
    for (index, argument) in arguments.into_iter().enumerate() {
        child.mailbox.set(words::ARGUMENT + index, argument);
    }
    child.mailbox.set(words::ASKED, Call::Bind as u64 + 1);
    if !wait(|| child.mailbox.get(words::ASKED) == 0) {
        return Err(Error::Again);
    }
    let result = child.mailbox.get(words::RESULT);
    let answer = Error::of(result as i64).map_or(Ok(result), Err);
    let who = child.number;
    match answer {
        Ok(endpoint) => println!("   environment {who} binds `{text}`: endpoint {endpoint}"),
        Err(error) => println!("   environment {who} binds `{text}`: refused ({error:?})"),
    }
    answer
}

pub fn filters() -> Shown {
    let (one, other) = (owner()?, owner()?);
    let seven = binds(&one, "udp dst port 7", 1);
    let stolen = binds(&other, "udp", 2);
    let beside = binds(&other, "udp dst port 8", 2);
    let behind = binds(&other, "udp", 0);
    let mut frame = [0; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    frame[37] = 7;
    let mut all = [0; 4];
    let count = calls::matches(&frame, &mut all).unwrap_or(0);
    println!(
        "   a frame to port 7 is endpoint {}'s; {} would also match, behind it",
        all[0], all[1]
    );
    let right = count == 2 && Ok(all[0]) == seven && Ok(all[1]) == behind;
    one.end();
    other.end();
    Ok(right && stolen == Err(Error::Taken) && beside.is_ok())
}
