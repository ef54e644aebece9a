//! A device that is none.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use postern_kernel::abi;
use postern_kernel::*;
use postern_kernel_judge as judge;

/// What was asked last, and what is answered next.
#[derive(Default)]
pub struct Answers {
    pub asked: String,
    pub error: Option<i32>,
    pub id: u32,
    pub verdict: Option<judge::Verdict>,
    pub outcome: abi::Outcome,
    pub value: u64,
    pub list: String,
    pub attachments: Vec<abi::Attachment>,
    pub statistics: abi::Statistics,
    pub map: abi::Map,
    pub entries: std::collections::BTreeMap<Vec<u8>, Vec<u8>>,
    pub descriptor: Option<OwnedFd>,
}

/// A device that answers from a record, and judges as the module does.
#[derive(Clone, Default)]
pub struct Fake(Arc<Mutex<Answers>>);

impl Fake {
    pub fn device(&self) -> Device {
        Device::with(self.clone())
    }

    pub fn set(&self, change: impl FnOnce(&mut Answers)) {
        change(&mut self.0.lock().unwrap());
    }

    pub fn asked(&self) -> String {
        self.0.lock().unwrap().asked.clone()
    }
}

fn absent() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOENT)
}

fn no_key() -> io::Error {
    io::Error::from_raw_os_error(libc::ESRCH)
}

impl Requests for Fake {
    fn ask(&self, request: Request<'_>) -> io::Result<()> {
        let mut answers = self.0.lock().unwrap();
        let text = format!("{request:?}");
        answers.asked = text.chars().take(2000).collect();
        if let Some(error) = answers.error {
            return Err(io::Error::from_raw_os_error(error));
        }
        match request {
            Request::Load(load, file) | Request::Replace(load, file) => {
                load.verdict = answers.verdict.unwrap_or_else(|| judge::image(file));
                load.id = match load.verdict.verdict {
                    judge::ACCEPTED => answers.id,
                    _ => 0,
                };
            }
            Request::Call(call) => (call.outcome, call.value) = (answers.outcome, answers.value),
            Request::Statistics(statistics) => *statistics = answers.statistics,
            Request::Attach(attach) => attach.attachment = 17,
            Request::Attachment(asked) => {
                let wanted = |row: &&abi::Attachment| match asked.next {
                    0 => row.attachment == asked.attachment,
                    _ => row.attachment > asked.attachment,
                };
                *asked = *answers.attachments.iter().find(wanted).ok_or_else(absent)?;
            }
            Request::MapMake(map) => answers.map = map,
            Request::MapSizes(map) => *map = answers.map,
            Request::MapAccess {
                access,
                buffers,
                first,
            } => {
                let (key, value) = (
                    answers.map.key_size as usize,
                    answers.map.value_size as usize,
                );
                let asked = buffers.key[..key].to_vec();
                match access.operation {
                    abi::MAP_SET => {
                        let value = buffers.value[..value].to_vec();
                        answers.entries.insert(asked, value);
                    }
                    abi::MAP_REMOVE => {
                        answers.entries.remove(&asked).ok_or_else(no_key)?;
                    }
                    abi::MAP_GET => {
                        let found = answers.entries.get(&asked).ok_or_else(no_key)?;
                        buffers.value[..value].copy_from_slice(found);
                    }
                    _ => {
                        let mut behind =
                            answers.entries.iter().filter(|row| first || row.0 > &asked);
                        let (next, found) = behind.next().ok_or_else(no_key)?;
                        buffers.next_key[..key].copy_from_slice(next);
                        buffers.value[..value].copy_from_slice(found);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn open(&self, _id: u32) -> io::Result<OwnedFd> {
        self.0.lock().unwrap().descriptor.take().ok_or_else(absent)
    }

    fn list(&self) -> io::Result<String> {
        Ok(self.0.lock().unwrap().list.clone())
    }
}
