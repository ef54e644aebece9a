//! Folders of other machines: the client of NFS over this process's sockets, whose files it serves to
//! all others under a mount point.
//!
//! A server of files does one request after the other, and this one may have to wait for the network
//! in the middle of one. It does so in its own time: it sleeps, and who has called waits, as long as
//! it wants to. Each wait for the network has an end.

mod socket;

use alloc::vec::Vec;
use core::ffi::CStr;
use core::net::Ipv4Addr;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_nfs::{MountError, Mounted, Options, Patience, ReadOnly};

use crate::files::server;
use crate::net::{ground, names, place};
use socket::{Peer, Socket};

/// What is to be mounted, and how.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The host: a name or an address.
    pub host: &'a [u8],
    /// The folder's name there.
    pub export: &'a [u8],
    /// Ports of NFS and MOUNT; 0: the port mapper knows them.
    pub ports: [u16; 2],
    /// The numbers of the user and the group there.
    pub user: [u32; 2],
    /// How long answers are waited for.
    pub patience: Patience,
    /// By TCP.
    pub is_stream: bool,
    /// Nothing is changed.
    pub reads_only: bool,
}

/// Why a folder is not mounted.
#[derive(Clone, Copy, Debug)]
pub enum Failure {
    /// There is no network.
    Network(Errno),
    /// The host's name has no address.
    Host(Errno),
    /// The host's programs.
    Mount(MountError),
}

impl Failure {
    /// What has failed.
    pub fn words(self) -> &'static CStr {
        match self {
            Failure::Network(_) => c"there is no network",
            Failure::Host(_) => c"the host has no address",
            Failure::Mount(MountError::PortMapper(_)) => c"the port mapper does not answer",
            Failure::Mount(MountError::NoPort("MOUNT")) => {
                c"the port mapper knows no MOUNT of version 3"
            }
            Failure::Mount(MountError::NoPort(_)) => c"the port mapper knows no NFS of version 3",
            Failure::Mount(MountError::Program("MOUNT", _)) => {
                c"MOUNT does not answer as it should"
            }
            Failure::Mount(MountError::Program(..)) => c"NFS does not answer as it should",
            Failure::Mount(MountError::Refused(_)) => {
                c"the server does not let this folder be mounted"
            }
            Failure::Mount(MountError::Flavour) => {
                c"the server wants other credentials than AUTH_SYS"
            }
        }
    }

    /// Why.
    pub fn error(self) -> Errno {
        match self {
            Failure::Network(error) | Failure::Host(error) => error,
            Failure::Mount(
                MountError::PortMapper(error)
                | MountError::Program(_, error)
                | MountError::Refused(error),
            ) => error,
            Failure::Mount(MountError::NoPort(_)) => errno::NOENT,
            Failure::Mount(MountError::Flavour) => errno::ACCES,
        }
    }
}

/// A mounted folder.
pub struct Folder {
    files: Mounted<Socket>,
    peer: Peer,
    export: Vec<u8>,
    options: Options<'static>,
    reads_only: bool,
}

/// Mounts a folder.
pub fn mount(settings: &Settings<'_>) -> Result<Folder, Failure> {
    place::place().map_err(Failure::Network)?;
    let (addresses, _) = names::find(settings.host).map_err(Failure::Host)?;
    let mut peer = Peer {
        host: addresses.first().copied().unwrap_or(Ipv4Addr::UNSPECIFIED),
        is_stream: settings.is_stream,
    };
    let port = |port: u16| Some(port).filter(|port| *port != 0);
    let options = Options {
        export: &[],
        port: port(settings.ports[0]),
        mount_port: port(settings.ports[1]),
        machine: b"exos",
        user: settings.user[0],
        group: settings.user[1],
        seed: ground::random(),
        patience: settings.patience,
    };
    let asked = Options {
        export: settings.export,
        ..options
    };
    Ok(Folder {
        files: Mounted::new(&mut peer, &asked).map_err(Failure::Mount)?,
        peer,
        export: settings.export.to_vec(),
        options,
        reads_only: settings.reads_only,
    })
}

/// Serves it under a name until it is unmounted.
pub fn serve(folder: Folder, name: &[u8]) -> Result<(), Errno> {
    let Folder {
        mut files,
        mut peer,
        export,
        options,
        reads_only,
    } = folder;
    match reads_only {
        true => server::serve(name, &mut ReadOnly(&mut files), true, |_| {}),
        false => server::serve(name, &mut files, true, |_| {}),
    }?;
    let options = Options {
        export: &export,
        ..options
    };
    // It is not needed: servers only tell who asks them.
    let _ = options.unmount(&mut peer);
    Ok(())
}
