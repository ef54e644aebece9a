//! The loop: frames that came, what is due, frames that go.

use postern_aegis::abi::Context;
use postern_aegis::abi::device::FRAMES as FRAMES_OUT;
use postern_aegis::{entry, println, slices, time};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::network::Place;
use postern_exos_net::ports::Claim;
use postern_exos_net::stack::{Arrivals, Ground};
use postern_exos_web::keyed::Key;
use postern_exos_web::server::Web;
use postern_exos_web::tcp::Own;

use crate::net::ground::{self, Claiming, Claims};
use crate::net::inlet::{FRAMES, Inlet};
use crate::net::{outlet, place};
use crate::process::signals;
use crate::web::files::Files;
use crate::web::memory::Memories;
use crate::web::plugins::Plugins;
use crate::web::programs::Programs;
use crate::web::site;
use crate::web::wire::Gather;

/// Microseconds that the server sleeps at most: signals are looked at as often.
const NAP: u64 = 1_000_000;
/// Less is not slept but yielded: clocks of sleepers are looked at once in a slice.
const SHORT: u64 = 500;
/// Microseconds until the wire is looked at again that took nothing.
const WIRE: u64 = 1000;
/// Microseconds that an address is waited for.
const PATIENCE: u64 = 60_000_000;
/// Half-open connections; more have cookies.
const HALF_OPEN: usize = 64;

/// What is served, and where.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The port.
    pub port: u16,
    /// The folder.
    pub folder: &'a [u8],
    /// Connections at most.
    pub connections: usize,
    /// Whether there is a line for each request.
    pub logs: bool,
    /// Whether clients may bring plugins.
    pub plugins: bool,
}

/// Microseconds since the machine's clock began.
fn now() -> u64 {
    let (clock, frequency) = (slices::clock(), time::frequency());
    clock / frequency * 1_000_000 + clock % frequency * 1_000_000 / frequency
}

/// Where this machine is: an address may be long in coming.
fn somewhere() -> Result<Place, Errno> {
    let until = now() + PATIENCE;
    loop {
        match place::place() {
            Err(errno::NETUNREACH) if now() < until => _ = signals::sleep(100_000),
            place => return place,
        }
    }
}

/// Serves, until a signal ends the process.
pub fn run(settings: &Settings<'_>) -> Result<(), Errno> {
    let memory = |_| errno::NOMEM;
    let place = somewhere()?;
    let connections = settings.connections.clamp(1, 4096);
    let mut inlet = Inlet::new().map_err(memory)?;
    let mut claims = Claims::default();
    let mut claiming = Claiming {
        claims: &mut claims,
        inlet: &inlet,
        address: place.address,
    };
    claiming.claim(Claim::Tcp(settings.port))?;
    let own = Own {
        station: place.hardware,
        address: place.address.into(),
        port: settings.port,
        connections,
        half_open: HALF_OPEN.min(connections),
        room: 0,
        patience: 0,
    };
    let site = site::Own {
        files: Files::new(settings.folder, ground::random()),
        logs: settings.logs,
        programs: Programs::default(),
        plugins: settings.plugins.then(Plugins::default),
    };
    let mut web = Web::new(
        own,
        Key([ground::random(), ground::random()]),
        Gather::new().map_err(memory)?,
        Memories::new(connections).map_err(memory)?,
        site,
    );
    // Frames and alarms end a sleep; there is nothing else to do about them.
    entry::on_events(|_| {});
    println!("www: http://{}:{}/", place.address, settings.port);
    let mut alarm = 0;
    loop {
        let began = now();
        inlet.look();
        let mut came = 0;
        while let Some(frame) = inlet.first() {
            web.frame(frame, began);
            inlet.next();
            came += 1;
            if came == FRAMES {
                break;
            }
        }
        web.tick(began);
        let all = web.flush(began);
        signals::poll();
        if came == FRAMES {
            continue;
        }
        let due = match all {
            true => web.next_due(),
            // What was sent is acknowledged before long, and that ends the sleep.
            false => began + WIRE,
        };
        if due < began.saturating_add(SHORT) {
            entry::yield_slice();
            continue;
        }
        // An alarm that comes before it is due serves as well.
        if alarm <= began || alarm > due {
            let nap = (due - began).min(NAP);
            alarm = began + nap;
            if time::alarm(nap).is_err() {
                entry::yield_slice();
                continue;
            }
        }
        // Of frames that went nothing is to be heard, unless they are waited for.
        entry::ignore(if all { Context::EVENT_SENT } else { 0 });
        entry::sleep_unless(|| inlet.has_some() || !all && outlet::under_way() < FRAMES_OUT);
    }
}
