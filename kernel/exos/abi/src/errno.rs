//! Error numbers, as the C library of ExOS has them: Linux's.
#![allow(missing_docs, reason = "names as in C, without the first letter")]

use core::fmt;

/// An error's number, above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

pub const PERM: Errno = Errno(1);
pub const NOENT: Errno = Errno(2);
pub const SRCH: Errno = Errno(3);
pub const INTR: Errno = Errno(4);
pub const IO: Errno = Errno(5);
pub const TOOBIG: Errno = Errno(7);
pub const NOEXEC: Errno = Errno(8);
pub const BADF: Errno = Errno(9);
pub const CHILD: Errno = Errno(10);
pub const AGAIN: Errno = Errno(11);
pub const NOMEM: Errno = Errno(12);
pub const ACCES: Errno = Errno(13);
pub const FAULT: Errno = Errno(14);
pub const BUSY: Errno = Errno(16);
pub const EXIST: Errno = Errno(17);
pub const NODEV: Errno = Errno(19);
pub const NOTDIR: Errno = Errno(20);
pub const ISDIR: Errno = Errno(21);
pub const INVAL: Errno = Errno(22);
pub const NFILE: Errno = Errno(23);
pub const MFILE: Errno = Errno(24);
pub const NOTTY: Errno = Errno(25);
pub const NOSPC: Errno = Errno(28);
pub const SPIPE: Errno = Errno(29);
pub const ROFS: Errno = Errno(30);
pub const PIPE: Errno = Errno(32);
pub const RANGE: Errno = Errno(34);
pub const NOSYS: Errno = Errno(38);
pub const PROTO: Errno = Errno(71);
pub const NOTEMPTY: Errno = Errno(39);
pub const LOOP: Errno = Errno(40);
pub const XDEV: Errno = Errno(18);
pub const FBIG: Errno = Errno(27);
pub const MLINK: Errno = Errno(31);
pub const DOM: Errno = Errno(33);
pub const DESTADDRREQ: Errno = Errno(89);
pub const PROTOTYPE: Errno = Errno(91);
pub const NOPROTOOPT: Errno = Errno(92);
pub const PROTONOSUPPORT: Errno = Errno(93);
pub const MSGSIZE: Errno = Errno(90);
pub const AFNOSUPPORT: Errno = Errno(97);
pub const ADDRINUSE: Errno = Errno(98);
pub const ADDRNOTAVAIL: Errno = Errno(99);
pub const NETDOWN: Errno = Errno(100);
pub const NETUNREACH: Errno = Errno(101);
pub const CONNABORTED: Errno = Errno(103);
pub const CONNRESET: Errno = Errno(104);
pub const NOBUFS: Errno = Errno(105);
pub const ISCONN: Errno = Errno(106);
pub const NOTCONN: Errno = Errno(107);
pub const CONNREFUSED: Errno = Errno(111);
pub const HOSTUNREACH: Errno = Errno(113);
pub const ALREADY: Errno = Errno(114);
pub const INPROGRESS: Errno = Errno(115);
pub const STALE: Errno = Errno(116);
pub const NOTSOCK: Errno = Errno(88);
pub const NAMETOOLONG: Errno = Errno(36);
pub const TIMEDOUT: Errno = Errno(110);
pub const NOTSUP: Errno = Errno(95);

impl Errno {
    /// As answers of the registry have it: below zero.
    pub const fn word(self) -> u64 {
        (-(self.0 as i64)) as u64
    }

    /// The error of an answer's first word, if it is one.
    pub fn of(word: u64) -> Option<Errno> {
        let number = i32::try_from(word as i64).ok()?;
        (-4095..0).contains(&number).then(|| Errno(-number))
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "error {}", self.0)
    }
}
