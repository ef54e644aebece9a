//! What can be done with a descriptor without waiting.

use postern_exos_abi::errno::Errno;
use postern_exos_net::stack::Ready;

use crate::files::console;
use crate::files::descriptors::{end, get, kind};
use crate::net::sockets;

/// What can be done. Files never wait.
pub fn ready(number: i32) -> Result<Ready, Errno> {
    let descriptor = get(number)?;
    let both = Ready {
        read: true,
        write: true,
        ..Ready::default()
    };
    Ok(match descriptor.kind {
        kind::SOCKET => sockets::ready(number)?,
        kind::CONSOLE => Ready {
            read: console::has_some(),
            ..both
        },
        kind::PIPE => match end(descriptor) {
            Some(end) => Ready {
                read: end.reads() && end.is_ready(),
                write: !end.reads() && end.is_ready(),
                error: !end.reads() && !end.has_peer(),
                ended: end.reads() && !end.has_peer(),
            },
            None => both,
        },
        _ => both,
    })
}
