//! libpcap's compiler and interpreter: the judge. The only module of the tests with unsafe code.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Instruction {
    code: u16,
    jt: u8,
    jf: u8,
    k: u32,
}

#[repr(C)]
struct Program {
    length: u32,
    instructions: *mut Instruction,
}

#[repr(C)]
struct Header {
    seconds: i64,
    microseconds: i64,
    captured: u32,
    wire: u32,
}

unsafe extern "C" {
    fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, size: u32) -> c_int;
}

/// Whether the kernel attaches a program to a socket.
pub fn kernel_takes(program: &[postern_filter::classic::Instruction]) -> bool {
    #[repr(C)]
    struct Attached {
        length: u16,
        instructions: *const Instruction,
    }
    const SOL_SOCKET: c_int = 1;
    const SO_ATTACH_FILTER: c_int = 26;
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let list = copied(program);
    let value = Attached {
        length: list.len() as u16,
        instructions: list.as_ptr(),
    };
    let size = size_of::<Attached>() as u32;
    // SAFETY: the kernel reads a structure of this size, and as many instructions as it says.
    let result = unsafe {
        let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
        setsockopt(
            fd,
            SOL_SOCKET,
            SO_ATTACH_FILTER,
            (&raw const value).cast(),
            size,
        )
    };
    result == 0
}

fn copied(program: &[postern_filter::classic::Instruction]) -> Vec<Instruction> {
    let one = |one: &postern_filter::classic::Instruction| Instruction {
        code: one.code,
        jt: one.jt,
        jf: one.jf,
        k: one.k,
    };
    program.iter().map(one).collect()
}

/// A program that was not compiled by libpcap, for its interpreter.
pub struct Interpreted(Vec<Instruction>);

impl Interpreted {
    pub fn new(program: &[postern_filter::classic::Instruction]) -> Interpreted {
        Interpreted(copied(program))
    }

    /// How many bytes the program accepts.
    pub fn run(&mut self, packet: &[u8], wire: u32) -> u32 {
        let program = Program {
            length: self.0.len() as u32,
            instructions: self.0.as_mut_ptr(),
        };
        verdict(&program, packet, wire)
    }
}

fn verdict(program: &Program, packet: &[u8], wire: u32) -> u32 {
    let header = Header {
        seconds: 0,
        microseconds: 0,
        captured: packet.len() as u32,
        wire,
    };
    // SAFETY: the program has as many instructions as it says, and the header says the packet's
    // length.
    unsafe { pcap_offline_filter(program, &header, packet.as_ptr()) as u32 }
}

#[link(name = "pcap")]
unsafe extern "C" {
    fn pcap_open_dead(link: c_int, snaplen: c_int) -> *mut c_void;
    fn pcap_close(handle: *mut c_void);
    fn pcap_compile(
        handle: *mut c_void,
        program: *mut Program,
        text: *const c_char,
        optimize: c_int,
        netmask: u32,
    ) -> c_int;
    fn pcap_geterr(handle: *mut c_void) -> *const c_char;
    fn pcap_freecode(program: *mut Program);
    fn pcap_offline_filter(
        program: *const Program,
        header: *const Header,
        packet: *const u8,
    ) -> c_int;
}

const ETHERNET: c_int = 1;
pub const NETMASK: u32 = 0xffff_ff00;

/// A program compiled by libpcap.
pub struct Judge(Program);

// SAFETY: the program is a buffer of its own that nothing else refers to.
unsafe impl Send for Judge {}

impl Judge {
    pub fn compile(text: &str, optimize: bool) -> Result<Judge, String> {
        Judge::compile_for(ETHERNET, text, optimize)
    }

    /// For packets of a link, by libpcap's own number.
    pub fn compile_for(link: c_int, text: &str, optimize: bool) -> Result<Judge, String> {
        let text = CString::new(text).unwrap();
        let mut program = Program {
            length: 0,
            instructions: std::ptr::null_mut(),
        };
        // SAFETY: the handle is used between its opening and closing only, and the text ends with a
        // NUL.
        unsafe {
            let handle = pcap_open_dead(link, 262_144);
            let result = pcap_compile(
                handle,
                &mut program,
                text.as_ptr(),
                optimize.into(),
                NETMASK,
            );
            let error = CStr::from_ptr(pcap_geterr(handle))
                .to_string_lossy()
                .into_owned();
            pcap_close(handle);
            if result == 0 {
                Ok(Judge(program))
            } else {
                Err(error)
            }
        }
    }

    /// How many bytes the program accepts.
    pub fn run(&self, packet: &[u8], wire: u32) -> u32 {
        verdict(&self.0, packet, wire)
    }

    /// The program as `tcpdump -ddd` prints it.
    pub fn text(&self) -> String {
        // SAFETY: libpcap says how many instructions there are.
        let list =
            unsafe { std::slice::from_raw_parts(self.0.instructions, self.0.length as usize) };
        let mut text = format!("{}\n", list.len());
        for i in list {
            text += &format!("{} {} {} {}\n", i.code, i.jt, i.jf, i.k);
        }
        text
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        // SAFETY: the program was made by pcap_compile and is freed once.
        unsafe { pcap_freecode(&mut self.0) }
    }
}
