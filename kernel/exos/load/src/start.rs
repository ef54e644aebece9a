//! The pages that say how a process is called.

use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, Mapping, PAGE, memory, pages};
use postern_exos_abi::address::{START, WINDOWS};
use postern_exos_abi::start::{Handed, Head, PAGES, SIZE};

use crate::space::Space;
use crate::trusted;

const WINDOW: u64 = WINDOWS + 4 * PAGE as u64;

/// Start pages that are being written, from the front to the back.
#[derive(Debug)]
pub struct Start {
    pages: [u32; PAGES],
    count: usize,
    length: usize,
}

impl Start {
    /// Nothing yet, with room for the head.
    pub fn new() -> Start {
        Start {
            pages: [0; PAGES],
            count: 0,
            length: size_of::<Head>(),
        }
    }

    /// Writes bytes behind the others. [`Error::Quota`]: they are too many.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.write(self.length, bytes)?;
        self.length += bytes.len();
        Ok(())
    }

    /// Writes a descriptor.
    pub fn hand(&mut self, handed: &Handed) -> Result<(), Error> {
        let [a, b, c, d] = handed.words;
        let first = u64::from(handed.number) | u64::from(handed.kind) << 32;
        for word in [first, handed.flags, a, b, c, d] {
            self.push(&word.to_le_bytes())?;
        }
        Ok(())
    }

    /// Writes the path of the folder that the process is in.
    pub fn folder(&mut self, head: &mut Head, path: &[u8]) -> Result<(), Error> {
        head.folder = u16::try_from(self.length).map_err(|_| Error::Quota)?;
        self.push(path)?;
        self.push(&[0])
    }

    /// Writes strings, and an array of their addresses; how many there are.
    pub fn strings<'a>(
        &mut self,
        head: &mut Head,
        arguments: impl Iterator<Item = &'a [u8]> + Clone,
        variables: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Result<(), Error> {
        let first = self.length;
        for string in arguments.clone().chain(variables.clone()) {
            self.push(string)?;
            self.push(&[0])?;
        }
        self.length = self.length.next_multiple_of(8);
        head.pointers = self.length as u32;
        let mut at = START + first as u64;
        for (strings, count) in [
            (
                &mut (&mut { arguments }) as &mut dyn Iterator<Item = &'a [u8]>,
                &mut head.arguments,
            ),
            (
                &mut (&mut { variables }) as &mut dyn Iterator<Item = &'a [u8]>,
                &mut head.variables,
            ),
        ] {
            for string in strings {
                self.push(&at.to_le_bytes())?;
                at += string.len() as u64 + 1;
                *count += 1;
            }
            self.push(&[0; 8])?;
        }
        Ok(())
    }

    /// Bytes so far.
    pub fn length(&self) -> usize {
        self.length
    }

    fn write(&mut self, at: usize, bytes: &[u8]) -> Result<(), Error> {
        let end = at.checked_add(bytes.len()).filter(|end| *end <= SIZE);
        let end = end.ok_or(Error::Quota)?;
        while self.count * PAGE < end {
            let page = pages::take()?;
            self.pages[self.count] = page;
            self.count += 1;
            let to = WINDOW + ((self.count - 1) * PAGE) as u64;
            memory::map(to, Mapping::new(page, Mapping::WRITE), 0, Target::SELF)?;
        }
        trusted::copy_in(WINDOW + at as u64, bytes);
        Ok(())
    }

    /// Writes the head, and hands the pages to an environment.
    pub fn finish(mut self, head: &Head, space: &Space) -> Result<(), Error> {
        let words = [
            u64::from(head.version) | u64::from(head.pid) << 32,
            u64::from(head.parent) | u64::from(head.arguments) << 32,
            u64::from(head.variables) | u64::from(head.pointers) << 32,
            u64::from(head.folder)
                | u64::from(head.permissions) << 16
                | u64::from(head.descriptors) << 32,
            head.ignored,
            head.mask,
        ];
        let words = words.iter().chain(&head.offsets);
        for (index, word) in words.chain(&head.offsets_capability).enumerate() {
            self.write(index * 8, &word.to_le_bytes())?;
        }
        let mut result = Ok(());
        for index in 0..self.count {
            let at = (index * PAGE) as u64;
            let _ = calls::unmap(WINDOW + at, Target::SELF);
            let page = self.pages[index];
            if result.is_ok() {
                result = calls::give(page, space.target.environment).map(drop);
            }
            match result {
                Ok(()) => result = space.bind(START + at, Mapping::new(page, Mapping::WRITE)),
                Err(_) => _ = pages::free(page),
            }
        }
        self.count = 0;
        result
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        for page in &self.pages[..self.count] {
            let _ = pages::free(*page);
        }
    }
}

impl Default for Start {
    fn default() -> Start {
        Start::new()
    }
}
