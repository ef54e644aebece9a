//! A packet socket: the calls of the kernel's packet interface, packet(7), that nobody wraps.

use postern_filter::classic::Instruction;
use std::ffi::CString;
use std::io::{self, Error};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const ALL_PROTOCOLS: u16 = (libc::ETH_P_ALL as u16).to_be();

/// A packet socket that is not blocking.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

/// How a ring hands packets over.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// Many at once, after so many milliseconds at most.
    Blocks(u32),
    /// Each at once, in a frame of so many bytes.
    Frames(u32),
}

/// Bytes of packets that wait because they are longer than a frame.
const QUEUE: i32 = 4 << 20;

/// What the kernel counted since it was last asked.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Statistics {
    pub packets: u32,
    pub drops: u32,
    freezes: u32,
}

fn checked(result: i32) -> io::Result<i32> {
    match result {
        -1 => Err(Error::last_os_error()),
        value => Ok(value),
    }
}

impl Socket {
    /// A socket that gets nothing before it is bound.
    pub fn new() -> io::Result<Socket> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: a new descriptor, which nobody else owns.
        unsafe {
            let fd = checked(libc::socket(libc::AF_PACKET, kind, 0))?;
            Ok(Socket(OwnedFd::from_raw_fd(fd)))
        }
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn set<T: Copy>(&self, level: i32, name: i32, value: &T) -> io::Result<()> {
        let size = size_of::<T>() as libc::socklen_t;
        // SAFETY: the kernel reads `size` bytes of a value that lives through the call.
        let result = unsafe {
            let value = std::ptr::from_ref(value).cast();
            libc::setsockopt(self.0.as_raw_fd(), level, name, value, size)
        };
        checked(result).map(|_| ())
    }

    /// Makes the ring: `blocks` blocks of `size` bytes, with room before each packet for a tag.
    pub fn ring(&self, size: u32, blocks: u32, shape: Shape) -> io::Result<()> {
        let (version, frame, retire) = match shape {
            Shape::Blocks(retire) => (libc::tpacket_versions::TPACKET_V3, 2048, retire),
            Shape::Frames(frame) => (libc::tpacket_versions::TPACKET_V2, frame, 0),
        };
        self.set(libc::SOL_PACKET, libc::PACKET_VERSION, &(version as i32))?;
        self.set(libc::SOL_PACKET, libc::PACKET_RESERVE, &4u32)?;
        if let Shape::Frames(_) = shape {
            // Room for some of the largest packets; a process that may not have as much has what it
            // may.
            self.set(libc::SOL_PACKET, libc::PACKET_COPY_THRESH, &1i32)?;
            let forced = self.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &QUEUE);
            forced.or_else(|_| self.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &QUEUE))?;
        }
        // The kernel wants as many bytes as the version's structure has; the older one is the
        // beginning of the newer.
        let request = libc::tpacket_req3 {
            tp_block_size: size,
            tp_block_nr: blocks,
            tp_frame_size: frame,
            tp_frame_nr: size / frame * blocks,
            tp_retire_blk_tov: retire,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        self.set(libc::SOL_PACKET, libc::PACKET_RX_RING, &request)
    }

    /// Takes a packet from the queue, as much of it as there is room for. Returns how long it is.
    pub fn receive(&self, to: &mut [u8]) -> io::Result<usize> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: the kernel writes at most so many bytes, to memory that is borrowed for the call.
        let received =
            unsafe { libc::recv(self.0.as_raw_fd(), to.as_mut_ptr().cast(), to.len(), flags) };
        usize::try_from(received).map_err(|_| Error::last_os_error())
    }

    /// Whether an interface is up.
    pub fn is_up(&self, interface: &str) -> io::Result<bool> {
        let found = asked(self.0.as_raw_fd(), interface, libc::SIOCGIFFLAGS)?;
        // The flags stand where an address would have its family.
        Ok(i32::from(found.sa_family) & libc::IFF_UP != 0)
    }

    /// Keeps only packets that a program accepts, and so many bytes of each as it says.
    pub fn attach(&self, program: &[Instruction]) -> io::Result<()> {
        let copied = |one: &Instruction| libc::sock_filter {
            code: one.code,
            jt: one.jt,
            jf: one.jf,
            k: one.k,
        };
        let mut list: Vec<libc::sock_filter> = program.iter().map(copied).collect();
        let program = libc::sock_fprog {
            len: u16::try_from(list.len()).unwrap_or(u16::MAX),
            filter: list.as_mut_ptr(),
        };
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Asks for packets to other addresses, too, as long as the socket lives.
    pub fn promiscuous(&self, interface: i32) -> io::Result<()> {
        let request = libc::packet_mreq {
            mr_ifindex: interface,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// Packets of an interface, or with 0 of all, begin to come.
    pub fn bind(&self, interface: i32) -> io::Result<()> {
        let address = address(interface);
        // SAFETY: the kernel reads the address, which lives through the call.
        let result =
            unsafe { libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), ADDRESS) };
        checked(result).map(|_| ())
    }

    /// The hardware type of an interface's addresses (ARPHRD).
    pub fn hardware(&self, interface: &str) -> io::Result<u16> {
        hardware(self.0.as_fd(), interface)
    }

    /// What was counted since the last time.
    pub fn statistics(&self) -> io::Result<Statistics> {
        let mut found = Statistics::default();
        let mut size = size_of::<Statistics>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `size` bytes, of integers.
        let result = unsafe {
            let place = (&raw mut found).cast();
            let level = libc::SOL_PACKET;
            libc::getsockopt(
                self.0.as_raw_fd(),
                level,
                libc::PACKET_STATISTICS,
                place,
                &mut size,
            )
        };
        checked(result).map(|_| found)
    }

    /// Waits for a block, a signal, or so many milliseconds.
    pub fn wait(&self, milliseconds: i32) -> io::Result<()> {
        let mut entry = libc::pollfd {
            fd: self.0.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one entry, which lives through the call.
        match checked(unsafe { libc::poll(&mut entry, 1, milliseconds) }) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ if entry.revents & libc::POLLERR != 0 => self.failure(),
            _ => Ok(()),
        }
    }

    /// The error that is kept for the socket, as when its interface went down.
    fn failure(&self) -> io::Result<()> {
        let (mut code, mut size) = (0i32, size_of::<i32>() as libc::socklen_t);
        // SAFETY: the kernel writes an integer.
        let result = unsafe {
            let place = (&raw mut code).cast();
            let (level, name) = (libc::SOL_SOCKET, libc::SO_ERROR);
            libc::getsockopt(self.0.as_raw_fd(), level, name, place, &mut size)
        };
        checked(result)?;
        match code {
            0 => Ok(()),
            code => Err(Error::from_raw_os_error(code)),
        }
    }

    /// Sends a frame by the interface that the socket is bound to.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.send_to(std::ptr::null(), 0, frame)
    }

    /// Sends a frame by this interface.
    pub fn send_by(&self, interface: i32, frame: &[u8]) -> io::Result<()> {
        self.send_to(&address(interface), ADDRESS, frame)
    }

    fn send_to(
        &self,
        address: *const libc::sockaddr_ll,
        size: libc::socklen_t,
        frame: &[u8],
    ) -> io::Result<()> {
        // SAFETY: the kernel reads the frame, and an address of this size.
        let sent = unsafe {
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            libc::sendto(
                self.0.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                flags,
                address.cast(),
                size,
            )
        };
        match sent {
            -1 => Err(Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

const ADDRESS: libc::socklen_t = size_of::<libc::sockaddr_ll>() as libc::socklen_t;

/// All protocols of an interface, or with 0 of all interfaces.
fn address(interface: i32) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: ALL_PROTOCOLS,
        sll_ifindex: interface,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

/// What the kernel says of an interface, by a request that gives an address.
fn asked(socket: i32, interface: &str, question: libc::Ioctl) -> io::Result<libc::sockaddr> {
    // SAFETY: all zeros is a value of the structure; the name is shorter than its place, so a zero
    // ends it. The kernel fills the address, of which all bytes are values.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        if interface.len() >= request.ifr_name.len() {
            return Err(Error::from_raw_os_error(libc::ENODEV));
        }
        for (place, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
            *place = byte as libc::c_char;
        }
        checked(libc::ioctl(socket, question, &raw mut request))?;
        Ok(request.ifr_ifru.ifru_hwaddr)
    }
}

/// The hardware type of an interface's addresses (ARPHRD), asked by any socket.
pub(crate) fn hardware(socket: BorrowedFd<'_>, interface: &str) -> io::Result<u16> {
    let found = asked(socket.as_raw_fd(), interface, libc::SIOCGIFHWADDR)?;
    Ok(found.sa_family)
}

/// The netmask of an interface's first IPv4 address.
pub(crate) fn netmask(interface: &str) -> io::Result<u32> {
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
    let found = asked(socket.as_raw_fd(), interface, libc::SIOCGIFNETMASK)?;
    // The address is behind the port.
    let [_, _, a, b, c, d, ..] = found.sa_data.map(|byte| byte as u8);
    Ok(u32::from_be_bytes([a, b, c, d]))
}

/// The number of an interface.
pub(crate) fn index(interface: &str) -> io::Result<i32> {
    let name = CString::new(interface).map_err(|_| Error::from_raw_os_error(libc::ENODEV))?;
    // SAFETY: a string that ends with zero.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(Error::last_os_error()),
        index => Ok(index as i32),
    }
}

/// The name of an interface by its number.
pub(crate) fn name(index: u32) -> Option<String> {
    let mut name = [0u8; libc::IF_NAMESIZE];
    // SAFETY: the kernel writes at most so many bytes, a zero among them.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast()) };
    let name = std::ffi::CStr::from_bytes_until_nul(&name).ok()?;
    (!found.is_null()).then(|| name.to_string_lossy().into_owned())
}

/// The names of all interfaces.
pub(crate) fn names() -> io::Result<Vec<String>> {
    // SAFETY: the list ends with an entry without a name; names end with zero, and the list lives
    // until it is freed.
    unsafe {
        let list = libc::if_nameindex();
        if list.is_null() {
            return Err(Error::last_os_error());
        }
        let mut names = Vec::new();
        let mut at = list;
        while !(*at).if_name.is_null() {
            let name = std::ffi::CStr::from_ptr((*at).if_name);
            names.push(name.to_string_lossy().into_owned());
            at = at.add(1);
        }
        libc::if_freenameindex(list);
        Ok(names)
    }
}
