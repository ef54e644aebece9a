//! Programs that time a system call of their own: whole ELF files, without a library, so that
//! nothing else is measured, and that nobody has to build.

use crate::trusted::dispatch::Call;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Calls in a round, and rounds, of which the fastest counts.
pub const CALLS: u32 = 200;
pub const ROUNDS: u32 = 400;
/// Where the file is mapped.
const BASE: u64 = 0x40_0000;
/// Bytes of the file's header and of its one segment's.
const HEAD: u64 = 64 + 56;

/// Which call is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe(pub Call);

impl Probe {
    /// All of them.
    pub const ALL: [Probe; 3] = [Probe(Call::Nothing), Probe(Call::Read), Probe(Call::Open)];

    /// In the names of figures.
    pub fn name(self) -> &'static str {
        match self.0 {
            Call::Nothing => "getppid",
            Call::Read => "read",
            Call::Open => "open",
        }
    }

    /// What a row says is measured.
    pub fn about(self) -> &'static str {
        match self.0 {
            Call::Nothing => "a call of getppid",
            Call::Read => "a read of one byte",
            Call::Open => "an open and its close",
        }
    }

    /// Whether its calls come by rewritten places: paths may be the loader's.
    pub fn is_rewritten(self) -> bool {
        self.0 != Call::Open
    }

    /// The program's file in a folder.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(self, directory: &Path) -> Result<PathBuf, String> {
        let path = directory.join(format!("probe-{}", self.name()));
        let file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o755)
            .open(&path);
        let written = file.and_then(|mut file| std::io::Write::write_all(&mut file, &self.elf()));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// Cycles of the processor's clock that a call took, as the program has written.
    ///
    /// # Errors
    /// It has written something else.
    pub fn cycles(self, output: &Path) -> Result<f64, String> {
        let bytes = std::fs::read(output).map_err(|error| error.to_string())?;
        let word = <[u8; 8]>::try_from(bytes).map_err(|_| "a probe has not written its time")?;
        Ok(u64::from_le_bytes(word) as f64 / f64::from(CALLS))
    }

    fn elf(self) -> Vec<u8> {
        let code = self.code();
        let length = HEAD + code.len() as u64;
        let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut put = |bytes: &[u8]| file.extend_from_slice(bytes);
        // An executable file for this processor: entry, segments behind the header, no sections.
        put(&2u16.to_le_bytes());
        put(&62u16.to_le_bytes());
        put(&1u32.to_le_bytes());
        put(&(BASE + HEAD).to_le_bytes());
        put(&64u64.to_le_bytes());
        put(&0u64.to_le_bytes());
        put(&0u32.to_le_bytes());
        for half in [64u16, 56, 1, 64, 0, 0] {
            put(&half.to_le_bytes());
        }
        // One segment: all of the file, read and executed.
        put(&1u32.to_le_bytes());
        put(&5u32.to_le_bytes());
        for word in [0, BASE, BASE, length, length, 0x1000] {
            put(&u64::to_le_bytes(word));
        }
        put(&code);
        file
    }

    fn code(self) -> Vec<u8> {
        let mut code = Vec::new();
        let word = |first: &[u8], value: u32| [first, &value.to_le_bytes()].concat();
        let mut paths = Vec::new();
        // lea path(%rip), %rdi; xor %esi, %esi; mov $2, %eax; syscall
        let mut open = |code: &mut Vec<u8>| {
            code.extend([0x48, 0x8d, 0x3d]);
            paths.push(code.len());
            code.extend([0; 4]);
            code.extend([0x31, 0xf6, 0xb8, 2, 0, 0, 0, 0x0f, 0x05]);
        };
        // sub $256, %rsp; mov %rsp, %rbp; open("/dev/zero"); mov %eax, %ebx
        code.extend([0x48, 0x81, 0xec, 0, 1, 0, 0, 0x48, 0x89, 0xe5]);
        open(&mut code);
        code.extend([0x89, 0xc3]);
        // mov $-1, %r12; mov $ROUNDS, %r13d
        code.extend([0x49, 0xc7, 0xc4, 0xff, 0xff, 0xff, 0xff]);
        code.extend(word(&[0x41, 0xbd], ROUNDS));
        let round = code.len();
        // rdtsc; shl $32, %rdx; or %rdx, %rax: the time
        const TIME: [u8; 9] = [0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0];
        code.extend(TIME);
        // mov %rax, %r14; mov $CALLS, %r15d
        code.extend([0x49, 0x89, 0xc6]);
        code.extend(word(&[0x41, 0xbf], CALLS));
        let call = code.len();
        // mov %ebx, %edi; mov %rbp, %rsi; mov $1, %edx
        const ONE_BYTE: [u8; 10] = [0x89, 0xdf, 0x48, 0x89, 0xee, 0xba, 1, 0, 0, 0];
        match self.0 {
            // mov $110, %eax
            Call::Nothing => code.extend([0xb8, 110, 0, 0, 0]),
            // …; mov $0, %eax: an instruction in whose place a jump fits
            Call::Read => code.extend(ONE_BYTE.into_iter().chain([0xb8, 0, 0, 0, 0])),
            // open("/dev/zero"); mov %eax, %edi; mov $3, %eax
            Call::Open => {
                open(&mut code);
                code.extend([0x89, 0xc7, 0xb8, 3, 0, 0, 0]);
            }
        }
        // syscall; dec %r15d
        code.extend([0x0f, 0x05, 0x41, 0xff, 0xcf]);
        let back = |code: &[u8], to: usize| (to as i32 - code.len() as i32 - 6).cast_unsigned();
        code.extend(word(&[0x0f, 0x85], back(&code, call)));
        code.extend(TIME);
        // sub %r14, %rax; cmp %r12, %rax; cmovb %rax, %r12; dec %r13d
        code.extend([0x4c, 0x29, 0xf0, 0x4c, 0x39, 0xe0, 0x4c, 0x0f, 0x42, 0xe0]);
        code.extend([0x41, 0xff, 0xcd]);
        code.extend(word(&[0x0f, 0x85], back(&code, round)));
        // push %r12; write(1, %rsp, 8); exit(0)
        code.extend([
            0x41, 0x54, 0x48, 0x89, 0xe6, 0xbf, 1, 0, 0, 0, 0xba, 8, 0, 0, 0,
        ]);
        code.extend([
            0xb8, 1, 0, 0, 0, 0x0f, 0x05, 0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05,
        ]);
        for path in paths {
            let distance = (code.len() - path - 4) as u32;
            code[path..path + 4].copy_from_slice(&distance.to_le_bytes());
        }
        code.extend(*b"/dev/zero\0");
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_time_calls() {
        let folder = tempfile::tempdir().unwrap();
        for probe in Probe::ALL {
            let program = probe.write(folder.path()).unwrap();
            let output = folder.path().join("cycles");
            let file = std::fs::File::create(&output).unwrap();
            let status = std::process::Command::new(program).stdout(file).status();
            assert!(status.unwrap().success());
            let cycles = probe.cycles(&output).unwrap();
            assert!(cycles > 10.0 && cycles < 1e6, "{cycles}");
        }
    }
}
