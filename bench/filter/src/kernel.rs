//! libpcap's programs in the kernel. The kernel compiles classic programs by way of its extended
//! instructions; the same translation is made here, because `BPF_PROG_TEST_RUN` takes programs of
//! the latter only.

use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Instructions of the extended machine, as `linux/bpf.h` counts them.
const LOAD_PROGRAM: libc::c_int = 5;
const TEST_RUN: libc::c_int = 10;
/// Its packets begin with the link header, and it may load from them as classic programs do.
const SCHEDULER: u32 = 3;
/// Runs of one measurement.
const REPEAT: u32 = 200_000;
const ROUNDS: usize = 5;

/// Registers: the accumulator, the packet, the index, and the accumulator while the index is
/// computed.
const A: u8 = 0;
const PACKET: u8 = 6;
const X: u8 = 7;
const SPARE: u8 = 8;

/// A program in the kernel.
pub struct Program(OwnedFd);

fn instruction(code: u8, target: u8, source: u8, offset: i16, value: u32) -> [u8; 8] {
    let [a, b] = offset.to_le_bytes();
    let [c, d, e, f] = value.to_le_bytes();
    [code, source << 4 | target, a, b, c, d, e, f]
}

/// Extended instructions of a classic program in the form that `tcpdump -ddd` prints.
fn translate(text: &str) -> Result<Vec<[u8; 8]>, String> {
    let mut out = vec![
        instruction(0xbf, PACKET, 1, 0, 0),
        instruction(0xb7, A, 0, 0, 0),
        instruction(0xb7, X, 0, 0, 0),
    ];
    let mut places = Vec::new();
    // Instructions that jump, and the classic instructions that they jump to.
    let mut jumps = Vec::new();
    for (index, line) in text.lines().skip(1).enumerate() {
        let numbers: Result<Vec<u32>, _> = line.split(' ').map(str::parse).collect();
        let Ok([code, yes, no, k]) = numbers.as_deref() else {
            return Err(format!("libpcap's line `{line}`"));
        };
        let (code, k) = (*code as u8, *k);
        places.push(out.len());
        match code {
            // Loads of fixed and of indexed places have the codes of the classic machine.
            0x20 | 0x28 | 0x30 => out.push(instruction(code, 0, 0, 0, k)),
            0x40 | 0x48 | 0x50 => out.push(instruction(code, 0, X, 0, k)),
            0x00 => out.push(instruction(0xb4, A, 0, 0, k)),
            0x01 => out.push(instruction(0xb4, X, 0, 0, k)),
            0xb1 => out.extend([
                instruction(0xbf, SPARE, A, 0, 0),
                instruction(0x30, 0, 0, 0, k),
                instruction(0x54, A, 0, 0, 15),
                instruction(0x64, A, 0, 0, 2),
                instruction(0xbf, X, A, 0, 0),
                instruction(0xbf, A, SPARE, 0, 0),
            ]),
            // Arithmetic with a constant or the index, but division.
            0x04 | 0x14 | 0x24 | 0x44 | 0x54 | 0x64 | 0x74 => {
                out.push(instruction(code, A, 0, 0, k))
            }
            0x0c | 0x1c | 0x2c | 0x4c | 0x5c | 0x6c | 0x7c => {
                out.push(instruction(code, A, X, 0, 0))
            }
            0x05 => {
                jumps.push((out.len(), index + 1 + k as usize));
                out.push(instruction(0x05, 0, 0, 0, 0));
            }
            0x15 | 0x25 | 0x35 | 0x45 | 0x1d | 0x2d | 0x3d | 0x4d => {
                jumps.push((out.len(), index + 1 + *yes as usize));
                // Of 32 bits.
                out.push(instruction(
                    code & 0xf8 | 6,
                    A,
                    if code & 8 == 0 { 0 } else { X },
                    0,
                    k,
                ));
                jumps.push((out.len(), index + 1 + *no as usize));
                out.push(instruction(0x05, 0, 0, 0, 0));
            }
            0x06 => out.extend([instruction(0xb4, A, 0, 0, k), instruction(0x95, 0, 0, 0, 0)]),
            0x07 => out.push(instruction(0xbc, X, A, 0, 0)),
            0x87 => out.push(instruction(0xbc, A, X, 0, 0)),
            other => {
                return Err(format!(
                    "the classic instruction {other:#x} is not translated"
                ));
            }
        }
    }
    for (at, to) in jumps {
        let target = places.get(to).ok_or("a jump leads out of the program")?;
        let distance = (*target as i64 - at as i64 - 1) as i16;
        out[at][2..4].copy_from_slice(&distance.to_le_bytes());
    }
    Ok(out)
}

fn bpf(command: libc::c_int, attributes: &mut [u8; 144]) -> Result<libc::c_long, String> {
    let size = attributes.len();
    // SAFETY: the attributes are as long as said; the pointers in them are to buffers that the
    // caller keeps.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), size) };
    if result < 0 {
        return Err(format!(
            "bpf() is not permitted here: {}",
            Error::last_os_error()
        ));
    }
    Ok(result)
}

fn put(attributes: &mut [u8; 144], at: usize, bytes: &[u8]) {
    attributes[at..at + bytes.len()].copy_from_slice(bytes);
}

impl Program {
    pub fn load(text: &str) -> Result<Program, String> {
        let compiled = std::fs::read_to_string("/proc/sys/net/core/bpf_jit_enable");
        if compiled.is_ok_and(|value| value.trim() == "0") {
            return Err(
                "the kernel does not compile filters here (net.core.bpf_jit_enable is 0)".into(),
            );
        }
        let code = translate(text)?;
        let mut attributes = [0; 144];
        put(&mut attributes, 0, &SCHEDULER.to_le_bytes());
        put(&mut attributes, 4, &(code.len() as u32).to_le_bytes());
        put(&mut attributes, 8, &(code.as_ptr() as u64).to_le_bytes());
        put(&mut attributes, 16, &(c"GPL".as_ptr() as u64).to_le_bytes());
        let fd = bpf(LOAD_PROGRAM, &mut attributes)?;
        // SAFETY: the kernel made this descriptor for nobody else.
        Ok(Program(unsafe { OwnedFd::from_raw_fd(fd as i32) }))
    }

    /// Whether it accepts the packet, and nanoseconds of a run as the kernel measures them, the
    /// best of several times.
    pub fn run(&self, packet: &[u8]) -> Result<(bool, f64), String> {
        let (mut best, mut accepted) = (f64::INFINITY, false);
        for _ in 0..ROUNDS {
            let mut attributes = [0; 144];
            put(&mut attributes, 0, &self.0.as_raw_fd().to_le_bytes());
            put(&mut attributes, 8, &(packet.len() as u32).to_le_bytes());
            put(&mut attributes, 16, &(packet.as_ptr() as u64).to_le_bytes());
            put(&mut attributes, 32, &REPEAT.to_le_bytes());
            bpf(TEST_RUN, &mut attributes)?;
            let word = |at: usize| {
                u32::from_le_bytes(attributes[at..at + 4].try_into().unwrap_or_default())
            };
            accepted = word(4) != 0;
            best = best.min(f64::from(word(36)));
        }
        Ok((accepted, best))
    }
}
