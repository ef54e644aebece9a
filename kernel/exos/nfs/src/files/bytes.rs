//! Bytes of files: reading through the cache, writing without waiting for the server's disk,
//! opening and closing.

use alloc::vec::Vec;

use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::file::Kind;

use super::Mounted;
use crate::attributes::Handle;
use crate::procedures::Stable;
use crate::rpc::Transport;

/// Memory that retained writes of all files take at most, about.
pub(super) const RETAINED: usize = 1 << 20;

/// ACCESS: reading, and looking names up; changing and lengthening; running.
const READ: u32 = 1 | 2;
const WRITE: u32 = 4 | 8;
const RUN: u32 = 32;

impl<T: Transport> Mounted<T> {
    /// Reads through the cache.
    pub(super) fn read_bytes(
        &mut self,
        node: u64,
        offset: u64,
        to: &mut [u8],
    ) -> Result<usize, Errno> {
        self.table.file(node)?;
        let size = self.attributes(node)?.size;
        let left = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = to.len().min(left);
        let block = u64::from(self.server.read_size().max(1));
        let mut done = 0;
        while done < wanted {
            let at = offset.saturating_add(done as u64);
            let (index, skipped) = (at / block, (at % block) as usize);
            if self.blocks.get(node, index).is_none() {
                self.fetch(node, index, block)?;
            }
            let bytes = self.blocks.get(node, index).unwrap_or(&[]);
            let bytes = bytes.get(skipped..).unwrap_or(&[]);
            let Some(room) = to.get_mut(done..wanted) else {
                break;
            };
            let count = bytes.len().min(room.len());
            if count == 0 {
                // The file has become shorter.
                break;
            }
            for (to, from) in room.iter_mut().zip(bytes) {
                *to = *from;
            }
            done += count;
        }
        Ok(done)
    }

    /// Reads a block, whole if the file has as much.
    fn fetch(&mut self, node: u64, index: u64, block: u64) -> Result<(), Errno> {
        let handle = self.table.node(node)?.handle;
        let mut bytes = Vec::new();
        let start = index.saturating_mul(block);
        loop {
            let count = (block as usize).saturating_sub(bytes.len()) as u32;
            let at = start.saturating_add(bytes.len() as u64);
            let (attributes, is_end) = self.server.read(&handle, at, count, &mut bytes)?;
            if let Some(attributes) = attributes {
                self.note(node, attributes, None)?;
            }
            if is_end || bytes.len() as u64 >= block {
                self.blocks.put(node, index, bytes);
                return Ok(());
            }
        }
    }

    /// Writes. The server keeps the bytes in its memory as long as the file is held, and so are
    /// they kept here.
    pub(super) fn write_bytes(
        &mut self,
        node: u64,
        offset: u64,
        from: &[u8],
    ) -> Result<usize, Errno> {
        let known = self.table.file(node)?;
        if let Some(error) = known.failed.take() {
            return Err(error);
        }
        let end = offset.checked_add(from.len() as u64).ok_or(errno::FBIG)?;
        i64::try_from(end).map_err(|_| errno::FBIG)?;
        let stable = if known.holds > 0 {
            Stable::Not
        } else {
            Stable::File
        };
        let most = self.server.write_size().max(1) as usize;
        let mut done = 0;
        while let Some(rest) = from.get(done..).filter(|rest| !rest.is_empty()) {
            let part = rest.get(..most).unwrap_or(rest);
            match self.write_part(node, offset + done as u64, part, stable) {
                Ok(count) => done += count,
                // What is written is written.
                Err(errno::NOSPC) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        if self.retained > RETAINED {
            self.commit(node)?;
        }
        Ok(done)
    }

    fn write_part(
        &mut self,
        node: u64,
        offset: u64,
        part: &[u8],
        stable: Stable,
    ) -> Result<usize, Errno> {
        let handle = self.table.file(node)?.handle;
        let block = u64::from(self.server.read_size().max(1));
        let last = offset.saturating_add(part.len() as u64) / block;
        // What was the end is not the end any more.
        let end = self.table.node(node)?.stamp.map_or(0, |(size, ..)| size) / block;
        for index in (offset / block..=last).chain([end]) {
            self.blocks.remove(node, index);
        }
        let written = self.server.write(&handle, offset, part, stable)?;
        let count = written.count as usize;
        if !written.is_stable {
            let part = part.get(..count).unwrap_or(part);
            let known = self.table.node(node)?;
            let before = known.retained.size();
            let is_same = known.retained.add(offset, part, written.verifier);
            self.retained += known.retained.size() - before;
            if !is_same {
                self.send_again(node)?;
            }
        }
        self.changed(node, &written.change)?;
        Ok(count)
    }

    /// When this returns, what was written stays.
    pub(super) fn commit(&mut self, node: u64) -> Result<(), Errno> {
        let known = self.table.node(node)?;
        if let Some(error) = known.failed.take() {
            return Err(error);
        }
        if known.retained.is_empty() {
            return Ok(());
        }
        let handle = known.handle;
        let (change, verifier) = self.server.commit(&handle)?;
        let known = self.table.node(node)?;
        if known.retained.is_of(verifier) {
            self.retained = self.retained.saturating_sub(known.retained.size());
            known.retained.take();
        } else {
            self.send_again(node)?;
        }
        self.changed(node, &change)
    }

    /// The server was started anew and may have lost what was not committed: all of it is
    /// written again, in the same order, and stays this time.
    fn send_again(&mut self, node: u64) -> Result<(), Errno> {
        let known = self.table.node(node)?;
        let handle = known.handle;
        let before = known.retained.size();
        let writes = known.retained.take();
        let result = self.send_all(&handle, &writes);
        let known = self.table.node(node)?;
        if result.is_err() {
            known.retained.put_back(writes);
        }
        self.retained = (self.retained + known.retained.size()).saturating_sub(before);
        known.attributes = None;
        result
    }

    fn send_all(&mut self, handle: &Handle, writes: &[(u64, Vec<u8>)]) -> Result<(), Errno> {
        let most = self.server.write_size().max(1) as usize;
        for (offset, bytes) in writes {
            let mut done = 0;
            while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
                let part = rest.get(..most).unwrap_or(rest);
                let at = offset.saturating_add(done as u64);
                let written = self.server.write(handle, at, part, Stable::File)?;
                done += written.count as usize;
            }
        }
        Ok(())
    }

    /// Opens a file: it is as the server has it now.
    pub(super) fn open(&mut self, node: u64) -> Result<(), Errno> {
        let known = self.table.node(node)?;
        let (handle, kind) = (known.handle, known.kind);
        let (attributes, allowed) = self.server.access(&handle, READ | WRITE | RUN)?;
        if allowed & (READ | WRITE | RUN) == 0 && kind != Kind::Link {
            return Err(errno::ACCES);
        }
        match attributes {
            Some(attributes) => self.note(node, attributes, None)?,
            None => drop(self.fresh(node)?),
        }
        self.table.hold(node)
    }

    /// Closes a file: what was written stays, and others see it.
    pub(super) fn close(&mut self, node: u64) {
        if node == self.root {
            // It is held for as long as it is mounted; others' holds are counted along.
            if let Ok(known) = self.table.node(node)
                && known.holds > 1
            {
                self.table.release(node);
            }
            return;
        }
        let failed = match self.table.node(node) {
            Ok(known) if known.holds == 1 => self.commit(node).err(),
            _ => None,
        };
        let Some(known) = self.table.release(node) else {
            return;
        };
        // Nobody is there to send them again.
        self.retained = self.retained.saturating_sub(known.retained.size());
        known.retained.take();
        known.failed = failed.or(known.failed);
        if let Some((folder, name)) = known.removed.take() {
            // If it fails, the other name stays, as on other clients.
            let _ = self.server.remove(&folder, &name, false);
        }
    }
}
