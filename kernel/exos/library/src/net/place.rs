//! Where this machine is, as the service `net` says in its page.

use core::net::Ipv4Addr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use postern_aegis::calls::Target;
use postern_aegis::{Error, Mapping, books, entry, memory, slices, time};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::network::{self, Page, Place, asks, state};
use postern_exos_abi::service::Found;
use postern_exos_net::Hardware;
use postern_exos_net::stack::{Neighbourhood, View};

use crate::memory::room;
use crate::net::trusted;
use crate::process::{registry, signals};

/// The environment that has bound the page, the birth of the service whose it is, and where.
static BOUND: AtomicU64 = AtomicU64::new(0);
static BIRTH: AtomicU32 = AtomicU32::new(0);
static AT: AtomicU64 = AtomicU64::new(0);

/// The service, if there is one.
pub fn service() -> Option<Found> {
    registry::services().named(network::NAME)
}

/// Its page. [`errno::NETDOWN`] if there is no service.
pub fn page() -> Result<&'static Page, Errno> {
    let own = u64::from(books::own_number());
    let bound = BOUND.load(Relaxed) == own;
    let Some(found) = service() else {
        // What it said last holds on, as long as somebody says nothing else.
        return match bound {
            true => Ok(trusted::page(AT.load(Relaxed))),
            false => Err(errno::NETDOWN),
        };
    };
    if !bound || BIRTH.load(Relaxed) != found.birth {
        bind(&found).map_err(|_| errno::NETDOWN)?;
        BIRTH.store(found.birth, Relaxed);
        BOUND.store(own, Relaxed);
    }
    Ok(trusted::page(AT.load(Relaxed)))
}

/// The page that is bound already, without a look for another one.
pub fn bound() -> Option<&'static Page> {
    let own = u64::from(books::own_number());
    (BOUND.load(Relaxed) == own).then(|| trusted::page(AT.load(Relaxed)))
}

fn bind(found: &Found) -> Result<(), Error> {
    let [page, capability, ..] = found.words;
    let page = u32::try_from(page).map_err(|_| Error::Argument)?;
    // A place that was never used: nobody has a borrow of another page there.
    let at = memory::reserve(1);
    room::patiently(|| memory::map(at, Mapping::new(page, 0), capability, Target::SELF))?;
    AT.store(at, Relaxed);
    Ok(())
}

/// Seconds that the service has to say something for the first time. Turns would not do: a busy
/// machine gives many of them while the network's answer is still under way.
const PATIENCE: u64 = 30;

/// Where this machine is, once that is known: a service that is being started is waited for.
pub fn place() -> Result<Place, Errno> {
    let begin = slices::clock();
    while slices::clock().wrapping_sub(begin) / time::frequency() < PATIENCE {
        let coming = registry::services().coming.load(Relaxed) != 0;
        match page().map(Page::place) {
            Ok(Some(place)) if place.state == state::HAS || place.state == state::CONFLICT => {
                return Ok(place);
            }
            Ok(Some(place)) if place.state == state::NONE => return Err(errno::NETDOWN),
            Err(error) if !coming => return Err(error),
            _ => {}
        }
        entry::yield_slice();
        if signals::poll() {
            return Err(errno::INTR);
        }
    }
    Err(errno::NETUNREACH)
}

/// The same for a stack.
pub fn view(place: &Place) -> View {
    View {
        address: place.address,
        bits: place.bits,
        gateway: place.gateway,
        hardware: place.hardware,
    }
}

/// Asks the service for a neighbour: whether it was told.
pub fn ask(address: Ipv4Addr) -> bool {
    let Some(found) = service() else {
        return false;
    };
    let version = u64::from(postern_exos_abi::VERSION) << 32;
    let words = [
        asks::NEIGHBOUR | version,
        u32::from(address).into(),
        0,
        0,
        0,
    ];
    matches!(entry::request(found.environment, words), Ok([0, ..]))
}

/// Who is where, as the page says.
#[derive(Debug)]
pub struct Known;

impl Neighbourhood for Known {
    fn find(&self, address: Ipv4Addr) -> Option<Hardware> {
        bound()?.find(address)
    }
}
