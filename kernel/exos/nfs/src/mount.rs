//! From a host and the name of a folder to its file handle: ports by the port mapper (RFC 1833,
//! section 3), the handle by the protocol MOUNT (RFC 1813, appendix I).

use core::fmt;

use postern_exos_abi::errno::{self, Errno};

use crate::attributes::{self, Handle};
use crate::procedures;
use crate::rpc::{Caller, Client, Patience, Transport};
use crate::xdr::{Malformed, Reader, Writer};

/// A host, whose ports can be connected to.
pub trait Host {
    /// How messages get there.
    type Transport: Transport;

    /// Connects to a port.
    fn connect(&mut self, port: u16) -> Result<Self::Transport, Errno>;

    /// Whether messages go by a stream (TCP), or each alone (UDP).
    fn is_stream(&self) -> bool;
}

/// How to mount.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The folder's name there.
    pub export: &'a [u8],
    /// The port of NFS; the port mapper is asked if there is none.
    pub port: Option<u16>,
    /// The port of MOUNT; the port mapper is asked if there is none.
    pub mount_port: Option<u16>,
    /// The name of this machine.
    pub machine: &'a [u8],
    /// The user's number on the server.
    pub user: u32,
    /// The group's.
    pub group: u32,
    /// Something random: calls have numbers that others do not guess, and files of which nobody
    /// else has made one have verifiers.
    pub seed: u64,
    /// How long answers are waited for.
    pub patience: Patience,
}

/// What a mount failed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountError {
    /// The port mapper does not answer.
    PortMapper(Errno),
    /// The port mapper knows no such program.
    NoPort(&'static str),
    /// The program does not answer, or answers wrongly.
    Program(&'static str, Errno),
    /// The folder is not this caller's to mount.
    Refused(Errno),
    /// The server does not speak for callers that say who they are (AUTH_SYS).
    Flavour,
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MountError::PortMapper(error) => write!(
                f,
                "the port mapper does not answer ({error}): is the host there? Or name the ports"
            ),
            MountError::NoPort(program) => write!(
                f,
                "the port mapper knows no {program} of version 3: is the server running?"
            ),
            MountError::Program(program, error) => {
                write!(f, "{program} does not answer as it should ({error})")
            }
            MountError::Refused(error) => write!(
                f,
                "the server does not let this folder be mounted ({error}): look at its exports"
            ),
            MountError::Flavour => {
                write!(f, "the server wants other credentials than AUTH_SYS")
            }
        }
    }
}

impl core::error::Error for MountError {}

const PORT_MAPPER: (u32, u32) = (100_000, 2);
const PORT_MAPPER_PORT: u16 = 111;
const MOUNT: (u32, u32) = (100_005, 3);
const TCP: u32 = 6;
const UDP: u32 = 17;
const AUTH_SYS: u32 = 1;

/// Flavours of credentials that a server offers at most.
const FLAVOURS: u32 = 64;

impl Options<'_> {
    fn client<T: Transport>(&self, transport: T, program: (u32, u32), part: u32) -> Client<T> {
        let caller = Caller {
            machine: self.machine,
            user: self.user,
            group: self.group,
        };
        let number = (self.seed as u32).wrapping_add(part << 28);
        Client::new(transport, program, Some(caller), number).with_patience(self.patience)
    }

    /// The handle of the folder, and calls of NFS.
    pub(crate) fn connect<H: Host>(
        &self,
        host: &mut H,
    ) -> Result<(Handle, Client<H::Transport>), MountError> {
        let mount_port = self.port(host, self.mount_port, MOUNT, "MOUNT")?;
        let port = self.port(host, self.port, procedures::PROGRAM, "NFS")?;
        let failed = |error| MountError::Program("MOUNT", error);
        let transport = host.connect(mount_port).map_err(failed)?;
        let mut client = self.client(transport, MOUNT, 1);
        let root = self.handle(&mut client)?;
        let failed = |error| MountError::Program("NFS", error);
        let transport = host.connect(port).map_err(failed)?;
        Ok((root, self.client(transport, procedures::PROGRAM, 2)))
    }

    /// Says that the folder is mounted no more. Nothing depends on that.
    pub fn unmount<H: Host>(&self, host: &mut H) -> Result<(), MountError> {
        let port = self.port(host, self.mount_port, MOUNT, "MOUNT")?;
        let failed = |error| MountError::Program("MOUNT", error);
        let transport = host.connect(port).map_err(failed)?;
        let mut client = self.client(transport, MOUNT, 3);
        let called = client.call(3, |w| w.opaque(self.export));
        called.map(drop).map_err(failed)
    }

    fn port<H: Host>(
        &self,
        host: &mut H,
        known: Option<u16>,
        (program, version): (u32, u32),
        name: &'static str,
    ) -> Result<u16, MountError> {
        if let Some(port) = known {
            return Ok(port);
        }
        let protocol = if host.is_stream() { TCP } else { UDP };
        let transport = host.connect(PORT_MAPPER_PORT);
        let transport = transport.map_err(MountError::PortMapper)?;
        let client = Client::new(transport, PORT_MAPPER, None, self.seed as u32);
        let mut client = client.with_patience(self.patience);
        let arguments = |w: &mut Writer| {
            for word in [program, version, protocol, 0] {
                w.word(word);
            }
        };
        let port = client
            .call(3, arguments)
            .and_then(|mut reader| Ok(reader.word()?));
        match u16::try_from(port.map_err(MountError::PortMapper)?) {
            Ok(0) | Err(_) => Err(MountError::NoPort(name)),
            Ok(port) => Ok(port),
        }
    }

    fn handle<T: Transport>(&self, client: &mut Client<T>) -> Result<Handle, MountError> {
        let failed = |error| MountError::Program("MOUNT", error);
        let results = client.call(1, |w| w.opaque(self.export));
        let mut results = results.map_err(failed)?;
        let malformed = |_: Malformed| failed(errno::PROTO);
        match results.word().map_err(malformed)? {
            0 => {}
            10006 => return Err(MountError::Refused(errno::IO)),
            status => return Err(MountError::Refused(attributes::error(status))),
        }
        let root = Handle::read(&mut results).map_err(malformed)?;
        match has_sys(&mut results).map_err(malformed)? {
            true => Ok(root),
            false => Err(MountError::Flavour),
        }
    }
}

/// Whether AUTH_SYS is among the flavours.
fn has_sys(reader: &mut Reader<'_>) -> Result<bool, Malformed> {
    let count = reader.word()?;
    if count > FLAVOURS {
        return Err(Malformed);
    }
    let mut found = false;
    for _ in 0..count {
        found |= reader.word()? == AUTH_SYS;
    }
    Ok(found)
}
