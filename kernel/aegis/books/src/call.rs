//! Calls, from registers to decisions: [`Order`] is a call whose arguments are in their ranges,
//! and its only constructor checks them. What is done then (`apply`) asks who may do it, and
//! knows no registers.

use postern_aegis_abi::address::{END, mappable};
use postern_aegis_abi::call::{
    self, ANY, Call, MANY, RIGHT_CONTROL, RIGHT_READ, RIGHT_WRITE, SET_FROZEN, SET_SERVER,
};
use postern_aegis_abi::{ENVIRONMENTS, Error, HOLDINGS, Mapping, PAGE, SLICES};

use crate::life::meant;
use crate::quota::Resource;
use crate::{Books, Hardware};

/// Addresses of environments, the kernel's two slots among them, are below this.
const LOWER_HALF: u64 = 1 << 47;

/// A call with arguments in their ranges. Numbers of pages are below how many there are, numbers
/// of environments below 256 (0: the caller), addresses are multiples of a page and can be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Capability {
        name: u32,
        right: u64,
        environment: u16,
    },
    Allocate {
        page: Option<u32>,
        read: u32,
        write: u32,
    },
    Free {
        page: u32,
    },
    Rename {
        page: u32,
        read: u32,
        write: u32,
    },
    Give {
        page: u32,
        environment: u16,
    },
    Break {
        page: u32,
    },
    Table {
        at: (u64, u32),
        page: u32,
        links: u32,
        environment: u16,
        control: u64,
    },
    Untable {
        at: (u64, u32),
        environment: u16,
        control: u64,
    },
    Map {
        address: u64,
        mapping: Mapping,
        capability: u64,
        environment: u16,
        control: u64,
    },
    Unmap {
        address: u64,
        environment: u16,
        control: u64,
    },
    Protect {
        address: u64,
        flags: u64,
    },
    MapMany {
        requests: u64,
        count: u64,
    },
    ProtectMany {
        addresses: u64,
        count: u64,
        flags: u64,
    },
    Create {
        context: u32,
        table: u32,
    },
    Destroy {
        environment: u16,
        control: u64,
    },
    SetServer {
        environment: u16,
        server: u16,
        control: u64,
    },
    SetFrozen {
        environment: u16,
        frozen: bool,
        control: u64,
    },
    Quota {
        environment: u16,
        resource: Resource,
        reserved: u32,
        limit: u32,
    },
    TakeSlice {
        processor: usize,
        position: Option<usize>,
    },
    FreeSlice {
        processor: usize,
        position: usize,
    },
    GiveSlice {
        processor: usize,
        position: usize,
        environment: u16,
    },
    Revoke {
        environment: u16,
        resource: Resource,
        count: u32,
        control: u64,
    },
    Submit {
        environment: u16,
        control: u64,
    },
    GiveHolding {
        holding: usize,
        environment: u16,
    },
    RenameHolding {
        holding: usize,
        read: u32,
        write: u32,
    },
    Drop {
        holding: usize,
        control: u64,
    },
    Split {
        holding: usize,
        blocks: u64,
    },
    Join {
        holding: usize,
        behind: usize,
    },
    Alarm {
        time: u64,
    },
    SetClock {
        seconds: u64,
        capability: u64,
    },
}

/// What the ranges of arguments depend on.
struct Ranges {
    pages: usize,
    processors: usize,
}

fn word(value: u64) -> Result<u32, Error> {
    value.try_into().map_err(|_| Error::Argument)
}

fn environment(value: u64) -> Result<u16, Error> {
    match value < ENVIRONMENTS as u64 {
        true => Ok(value as u16),
        false => Err(Error::NoEnvironment),
    }
}

fn holding(value: u64) -> Result<usize, Error> {
    match value < HOLDINGS as u64 {
        true => Ok(value as usize),
        false => Err(Error::Argument),
    }
}

fn address(value: u64) -> Result<u64, Error> {
    mappable(value).then_some(value).ok_or(Error::Argument)
}

/// An address in the span of a table, and its level.
fn span(address: u64, level: u64) -> Result<(u64, u32), Error> {
    match address < END && address.is_multiple_of(PAGE as u64) && (1..=3).contains(&level) {
        true => Ok((address, level as u32)),
        false => Err(Error::Argument),
    }
}

fn flags(value: u64) -> Result<u64, Error> {
    (value & !Mapping::FLAGS == 0)
        .then_some(value)
        .ok_or(Error::Argument)
}

/// An array in the caller's memory, of elements of so many bytes.
fn array(address: u64, count: u64, bytes: u64) -> Result<(u64, u64), Error> {
    let fits = count <= MANY
        && address.is_multiple_of(8)
        && address <= LOWER_HALF
        && count * bytes <= LOWER_HALF - address;
    fits.then_some((address, count)).ok_or(Error::Argument)
}

fn resource(value: u64) -> Result<Resource, Error> {
    match value {
        call::PAGES => Ok(Resource::Pages),
        call::SLICES => Ok(Resource::Slices),
        call::ENVIRONMENTS => Ok(Resource::Environments),
        call::HOLDINGS => Ok(Resource::Holdings),
        _ => Err(Error::Argument),
    }
}

impl Ranges {
    fn page(&self, value: u64) -> Result<u32, Error> {
        match value < self.pages as u64 {
            true => word(value),
            false => Err(Error::Argument),
        }
    }

    fn processor(&self, value: u64) -> Result<usize, Error> {
        match value < self.processors as u64 {
            true => Ok(value as usize),
            false => Err(Error::Argument),
        }
    }

    fn position(&self, value: u64) -> Result<usize, Error> {
        match value < SLICES as u64 {
            true => Ok(value as usize),
            false => Err(Error::Argument),
        }
    }

    fn mapping(&self, value: u64) -> Result<Mapping, Error> {
        let page = Mapping(value).page().ok_or(Error::Argument)?;
        self.page(page.into())?;
        Ok(Mapping(value))
    }
}

impl Order {
    /// Decodes a call with its arguments, and checks their ranges. [`Error::NoCall`] for calls
    /// that are the kernel's own.
    #[inline(always)]
    fn decode(call: Call, arguments: [u64; 6], ranges: &Ranges) -> Result<Order, Error> {
        let [a, b, c, d, e, f] = arguments;
        Ok(match call {
            Call::Capability => Order::Capability {
                name: word(a)?,
                right: match b {
                    RIGHT_READ | RIGHT_WRITE | RIGHT_CONTROL => b,
                    _ => return Err(Error::Argument),
                },
                environment: environment(c)?,
            },
            Call::Allocate => Order::Allocate {
                page: if a == ANY {
                    None
                } else {
                    Some(ranges.page(a)?)
                },
                read: word(b)?,
                write: word(c)?,
            },
            Call::Free => Order::Free {
                page: ranges.page(a)?,
            },
            Call::Rename => Order::Rename {
                page: ranges.page(a)?,
                read: word(b)?,
                write: word(c)?,
            },
            Call::Give => Order::Give {
                page: ranges.page(a)?,
                environment: environment(b)?,
            },
            Call::Break => Order::Break {
                page: ranges.page(a)?,
            },
            Call::Table => Order::Table {
                at: span(a, b)?,
                page: ranges.page(c)?,
                // Only tables of level 1 have links.
                links: if b == 1 { ranges.page(d)? } else { 0 },
                environment: environment(e)?,
                control: f,
            },
            Call::Untable => Order::Untable {
                at: span(a, b)?,
                environment: environment(c)?,
                control: d,
            },
            Call::Map => Order::Map {
                address: address(a)?,
                mapping: ranges.mapping(b)?,
                capability: c,
                environment: environment(d)?,
                control: e,
            },
            Call::Unmap => Order::Unmap {
                address: address(a)?,
                environment: environment(b)?,
                control: c,
            },
            Call::Protect => Order::Protect {
                address: address(a)?,
                flags: flags(b)?,
            },
            Call::MapMany => {
                let (requests, count) = array(a, b, 24)?;
                Order::MapMany { requests, count }
            }
            Call::ProtectMany => {
                let (addresses, count) = array(a, b, 8)?;
                Order::ProtectMany {
                    addresses,
                    count,
                    flags: flags(c)?,
                }
            }
            Call::Create => Order::Create {
                context: ranges.page(a)?,
                table: ranges.page(b)?,
            },
            Call::Destroy => Order::Destroy {
                environment: environment(a)?,
                control: b,
            },
            Call::Set => Order::set(environment(a)?, b, c, d)?,
            Call::Quota => Order::Quota {
                environment: environment(a)?,
                resource: resource(b)?,
                reserved: word(c)?,
                limit: word(d)?,
            },
            Call::TakeSlice => Order::TakeSlice {
                processor: ranges.processor(a)?,
                position: if b == ANY {
                    None
                } else {
                    Some(ranges.position(b)?)
                },
            },
            Call::FreeSlice => Order::FreeSlice {
                processor: ranges.processor(a)?,
                position: ranges.position(b)?,
            },
            Call::GiveSlice => Order::GiveSlice {
                processor: ranges.processor(a)?,
                position: ranges.position(b)?,
                environment: environment(c)?,
            },
            Call::Revoke => Order::Revoke {
                environment: environment(a)?,
                resource: match resource(b)? {
                    Resource::Environments | Resource::Holdings => return Err(Error::Argument),
                    resource => resource,
                },
                count: match word(c)? {
                    0 => return Err(Error::Argument),
                    count => count,
                },
                control: d,
            },
            Call::Submit => Order::Submit {
                environment: environment(a)?,
                control: b,
            },
            Call::GiveHolding => Order::GiveHolding {
                holding: holding(a)?,
                environment: environment(b)?,
            },
            Call::RenameHolding => Order::RenameHolding {
                holding: holding(a)?,
                read: word(b)?,
                write: word(c)?,
            },
            Call::Drop => Order::Drop {
                holding: holding(a)?,
                control: b,
            },
            Call::Split => Order::Split {
                holding: holding(a)?,
                blocks: b,
            },
            Call::Join => Order::Join {
                holding: holding(a)?,
                behind: holding(b)?,
            },
            Call::Alarm => Order::Alarm { time: a },
            Call::SetClock => Order::SetClock {
                seconds: a,
                capability: b,
            },
            _ => return Err(Error::NoCall),
        })
    }

    fn set(target: u16, what: u64, value: u64, control: u64) -> Result<Order, Error> {
        match (what, value) {
            (SET_SERVER, _) => Ok(Order::SetServer {
                environment: target,
                server: environment(value)?,
                control,
            }),
            (SET_FROZEN, 0 | 1) => Ok(Order::SetFrozen {
                environment: target,
                frozen: value == 1,
                control,
            }),
            _ => Err(Error::Argument),
        }
    }
}

impl<H: Hardware> Books<'_, H> {
    /// Does a call (numbers 8 to 29, 34 to 38, 46 and 47; the others are the kernel's own:
    /// [`Error::NoCall`]) of the
    /// environment that runs here, with its arguments as registers have them: rdi, rsi, rdx, r10,
    /// r8, r9. Afterwards the caller may be stopping
    /// ([`stopping`](postern_aegis_abi::records::stopping)).
    #[inline(always)]
    pub fn call(&self, caller: u16, call: Call, arguments: [u64; 6]) -> Result<u64, Error> {
        let ranges = Ranges {
            pages: self.pages.len(),
            processors: self.processors(),
        };
        self.apply(caller, Order::decode(call, arguments, &ranges)?)
    }

    #[inline(always)]
    fn apply(&self, caller: u16, order: Order) -> Result<u64, Error> {
        let named = |environment| meant(caller, environment);
        match order {
            Order::Capability {
                name,
                right,
                environment,
            } => {
                if !self.lives(named(environment)) {
                    return Err(Error::NoEnvironment);
                }
                return self.capability(caller, name, right, named(environment));
            }
            Order::Allocate { page, read, write } => {
                return self
                    .allocate_or_ask(caller, page, read, write)
                    .map(u64::from);
            }
            Order::Free { page } => self.free_page(caller, page),
            Order::Rename { page, read, write } => self.rename(caller, page, read, write),
            Order::Give { page, environment } => self.give(caller, page, named(environment)),
            Order::Break { page } => self.break_others(caller, page),
            Order::Table {
                at: (address, level),
                page,
                links,
                environment,
                control,
            } => self.while_claimed(caller, environment, control, |environment| {
                self.table(caller, environment, address, level, page, links)
            }),
            Order::Untable {
                at: (address, level),
                environment,
                control,
            } => self.while_claimed(caller, environment, control, |environment| {
                self.untable(environment, address, level)
            }),
            Order::Map {
                address,
                mapping,
                capability,
                environment,
                control,
            } => self.while_claimed(caller, environment, control, |environment| {
                self.map_any((caller, environment), address, mapping, capability)
            }),
            Order::Unmap {
                address,
                environment,
                control,
            } => self.while_claimed(caller, environment, control, |environment| {
                self.unmap_any(environment, address)
            }),
            Order::Protect { address, flags } => self.protect_any(caller, address, flags),
            Order::MapMany { requests, count } => {
                return self.map_many(caller, requests, count);
            }
            Order::ProtectMany {
                addresses,
                count,
                flags,
            } => {
                return self.protect_many(caller, addresses, count, flags);
            }
            Order::Create { context, table } => {
                return self.create(caller, context, table).map(u64::from);
            }
            Order::Destroy {
                environment,
                control,
            } => self.destroy(caller, environment, control),
            Order::SetServer {
                environment,
                server,
                control,
            } => self.set_server(caller, environment, server, control),
            Order::SetFrozen {
                environment,
                frozen,
                control,
            } => self.set_frozen(caller, environment, frozen, control),
            Order::Quota {
                environment,
                resource,
                reserved,
                limit,
            } => self.quota(caller, named(environment), resource, reserved, limit),
            Order::TakeSlice {
                processor,
                position,
            } => {
                return self
                    .take_slice(caller, processor, position)
                    .map(|at| at as u64);
            }
            Order::FreeSlice {
                processor,
                position,
            } => self.free_slice(caller, processor, position),
            Order::GiveSlice {
                processor,
                position,
                environment,
            } => self.give_slice(caller, processor, position, named(environment)),
            Order::Revoke {
                environment,
                resource,
                count,
                control,
            } => self.revoke(caller, environment, resource, count, control),
            Order::Submit {
                environment,
                control,
            } => self.submit(caller, environment, control),
            Order::GiveHolding {
                holding,
                environment,
            } => self.give_holding(caller, holding, named(environment)),
            Order::RenameHolding {
                holding,
                read,
                write,
            } => self.rename_holding(caller, holding, read, write),
            Order::Drop { holding, control } => self.drop_holding(caller, holding, control),
            Order::Split { holding, blocks } => {
                return self.split(caller, holding, blocks).map(|new| new as u64);
            }
            Order::Join { holding, behind } => self.join(caller, holding, behind),
            Order::Alarm { time } => self.set_alarm(caller, time),
            Order::SetClock {
                seconds,
                capability,
            } => self.set_clock(caller, seconds, capability),
        }
        .map(|()| 0)
    }
}
