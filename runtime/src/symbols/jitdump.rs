//! `jit-PID.dump`: names, lines and code of functions with the time from which they lie there
//! (tools/perf/Documentation/jitdump-specification.txt of Linux). `perf record` finds the file
//! because a page of it is mapped executable; nobody runs that page.

use super::shown::{Shown, name};
use postern_gates::machine;
use postern_gates::map::Mapping;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;

const MAGIC: u32 = 0x4a69_5444;
const VERSION: u32 = 1;
const HEADER: u32 = 40;
const X86_64: u32 = 62;
const LOAD: u32 = 0;
const DEBUG_INFO: u32 = 2;

pub(super) struct Dump {
    file: File,
    process: u32,
    /// Number of the next function.
    next: u64,
}

/// One record: its kind, a length that is filled in at the end, the time.
struct Record(Vec<u8>);

impl Record {
    fn new(kind: u32) -> Record {
        let mut record = Record(Vec::new());
        record.word(kind).word(0).long(machine::monotonic());
        record
    }

    fn word(&mut self, value: u32) -> &mut Record {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn long(&mut self, value: u64) -> &mut Record {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn text(&mut self, text: &str) -> &mut Record {
        self.0.extend_from_slice(text.as_bytes());
        self.0.push(0);
        self
    }

    fn finish(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[4..8].copy_from_slice(&length.to_le_bytes());
        self.0
    }
}

impl Dump {
    pub(super) fn open(process: u32) -> io::Result<Dump> {
        let path = format!("jit-{process}.dump");
        let _ = std::fs::remove_file(&path);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        let mut header = Record(Vec::new());
        header.word(MAGIC).word(VERSION).word(HEADER).word(X86_64);
        header.word(0).word(process).long(machine::monotonic());
        header.long(0);
        file.write_all(&header.0)?;
        // The mark for perf. It stays for good.
        Mapping::of_code(file.as_fd(), 4096)
            .map_err(io::Error::other)?
            .leak();
        Ok(Dump {
            file,
            process,
            next: 0,
        })
    }

    pub(super) fn write(&mut self, shown: &Shown<'_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        for f in &shown.functions {
            let code = shown.code(f);
            if code.is_empty() {
                continue;
            }
            let address = shown.base + u64::from(f.start);
            let rows = &shown.lines.rows;
            let [from, to] = [f.start, f.end].map(|at| rows.partition_point(|r| r.offset < at));
            if from < to {
                let mut lines = Record::new(DEBUG_INFO);
                lines.long(address).long((to - from) as u64);
                for row in &rows[from..to] {
                    lines.long(shown.base + u64::from(row.offset));
                    lines.word(row.line).word(0);
                    lines.text(&shown.lines.files[row.file as usize]);
                }
                bytes.extend(lines.finish());
            }
            let mut load = Record::new(LOAD);
            load.word(self.process).word(machine::thread_id());
            load.long(address).long(address).long(code.len() as u64);
            load.long(self.next).text(&name(shown, f));
            load.0.extend_from_slice(code);
            self.next += 1;
            bytes.extend(load.finish());
        }
        self.file.write_all(&bytes)
    }
}
