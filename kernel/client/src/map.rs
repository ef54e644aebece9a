//! Maps that an extension and processes share: keys and values of fixed sizes.

use std::fmt;
use std::io;

use crate::abi;
use crate::error::{self, Error};
use crate::id::Id;
use crate::request::{MapBuffers, Request, Requests};

/// The sizes of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapSizes {
    /// Bytes of a key, 1 to 64.
    pub key: u32,
    /// Bytes of a value, 1 to 4096.
    pub value: u32,
    /// Most entries, up to 1048576.
    pub entries: u32,
}

/// A key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// A map of an extension.
#[derive(Clone, Copy)]
pub struct Map<'d> {
    requests: &'d dyn Requests,
    id: Id,
    number: u32,
    sizes: MapSizes,
}

impl fmt::Debug for Map<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Map({} of {}, {:?})", self.number, self.id, self.sizes)
    }
}

impl<'d> Map<'d> {
    pub(crate) fn make(
        requests: &'d dyn Requests,
        id: Id,
        number: u32,
        sizes: MapSizes,
    ) -> Result<Map<'d>, Error> {
        let map = abi::Map {
            id: id.0,
            map: number,
            key_size: sizes.key,
            value_size: sizes.value,
            entries: sizes.entries,
            reserved: 0,
        };
        let map_made = requests.ask(Request::MapMake(map));
        map_made.map_err(|error| failed("making", id, number, error))?;
        Ok(Map {
            requests,
            id,
            number,
            sizes,
        })
    }

    pub(crate) fn open(requests: &'d dyn Requests, id: Id, number: u32) -> Result<Map<'d>, Error> {
        let mut map = abi::Map {
            id: id.0,
            map: number,
            ..abi::Map::default()
        };
        let asked = requests.ask(Request::MapSizes(&mut map));
        asked.map_err(|error| failed("opening", id, number, error))?;
        let most = |size: u32, most: usize| size != 0 && size as usize <= most;
        if !most(map.key_size, abi::KEY) || !most(map.value_size, abi::VALUE) {
            return Err(Error::Answer {
                what: format!("opening map {number} of extension {id}"),
                answer: format!("{map:?}"),
            });
        }
        Ok(Map {
            requests,
            id,
            number,
            sizes: MapSizes {
                key: map.key_size,
                value: map.value_size,
                entries: map.entries,
            },
        })
    }

    /// The sizes of it.
    pub fn sizes(&self) -> MapSizes {
        self.sizes
    }

    /// The value of a key, if there is one.
    ///
    /// # Errors
    /// The key has another size, or the device says no.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut buffers = self.buffers(key, None)?;
        let found = self.access(abi::MAP_GET, &mut buffers, false);
        let value = self.value(&buffers);
        self.or_absent("reading", found)
            .map(|there| there.then_some(value))
    }

    /// Gives a key a value.
    ///
    /// # Errors
    /// Key or value have other sizes, the map is full, or the device says no.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let mut buffers = self.buffers(key, Some(value))?;
        let set = self.access(abi::MAP_SET, &mut buffers, false);
        set.map_err(|error| failed("writing", self.id, self.number, error))
    }

    /// Removes a key; whether it was there.
    ///
    /// # Errors
    /// The key has another size, or the device says no.
    pub fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        let mut buffers = self.buffers(key, None)?;
        let removed = self.access(abi::MAP_REMOVE, &mut buffers, false);
        self.or_absent("removing of", removed)
    }

    /// The key behind a key, in some order, and its value; of `None`, the first. Behind a key that
    /// was removed comes one before it, so whoever removes what it is given sees all.
    ///
    /// # Errors
    /// The key has another size, or the device says no.
    pub fn next(&self, key: Option<&[u8]>) -> Result<Option<Entry>, Error> {
        let mut buffers = match key {
            Some(key) => self.buffers(key, None)?,
            None => Box::default(),
        };
        let found = self.access(abi::MAP_NEXT, &mut buffers, key.is_none());
        let entry = (
            buffers.next_key[..self.sizes.key as usize].to_vec(),
            self.value(&buffers),
        );
        self.or_absent("reading", found)
            .map(|there| there.then_some(entry))
    }

    /// All entries, as far as the map stays as it is meanwhile: of what is set or removed some are
    /// told twice or not at all. It ends with the first error, and after as many entries as the map
    /// may have.
    pub fn iter(&self) -> impl Iterator<Item = Result<Entry, Error>> + '_ {
        let mut last: Option<Vec<u8>> = None;
        let mut over = false;
        let most = self.sizes.entries as usize;
        let entries = std::iter::from_fn(move || {
            if over {
                return None;
            }
            match self.next(last.as_deref()).transpose() {
                Some(Ok(entry)) => {
                    last = Some(entry.0.clone());
                    Some(Ok(entry))
                }
                end => {
                    over = true;
                    end
                }
            }
        });
        entries.take(most)
    }

    fn value(&self, buffers: &MapBuffers) -> Vec<u8> {
        buffers.value[..self.sizes.value as usize].to_vec()
    }

    fn buffers(&self, key: &[u8], value: Option<&[u8]>) -> Result<Box<MapBuffers>, Error> {
        let fits = |part: &'static str, given: usize, wanted: u32| match given == wanted as usize {
            true => Ok(()),
            false => Err(Error::Size {
                map: self.number,
                part,
                given,
                wanted: wanted as usize,
            }),
        };
        let mut buffers = Box::<MapBuffers>::default();
        fits("key", key.len(), self.sizes.key)?;
        buffers.key[..key.len()].copy_from_slice(key);
        if let Some(value) = value {
            fits("value", value.len(), self.sizes.value)?;
            buffers.value[..value.len()].copy_from_slice(value);
        }
        Ok(buffers)
    }

    fn access(&self, operation: u32, buffers: &mut MapBuffers, first: bool) -> io::Result<()> {
        self.requests.ask(Request::MapAccess {
            access: abi::MapAccess {
                id: self.id.0,
                map: self.number,
                operation,
                ..abi::MapAccess::default()
            },
            buffers,
            first,
        })
    }

    /// Whether there was an entry.
    fn or_absent(&self, doing: &str, result: io::Result<()>) -> Result<bool, Error> {
        match result {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
            Err(error) => Err(failed(doing, self.id, self.number, error)),
        }
    }
}

fn failed(doing: &str, id: Id, number: u32, error: io::Error) -> Error {
    let absent_map = error.raw_os_error() == Some(libc::ENXIO);
    let which = || match absent_map {
        true => format!("its map {number}; make it first"),
        false => format!("extension {id}"),
    };
    let error = match absent_map {
        true => io::Error::from_raw_os_error(libc::ENOENT),
        false => error,
    };
    error::from_device(
        format!("{doing} map {number} of extension {id}"),
        which,
        error,
    )
}
