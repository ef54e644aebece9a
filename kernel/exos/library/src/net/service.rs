//! The service `net`: one process has the machine's address, asks for neighbours, and says in a page
//! what it knows. Everything that is decided is in [`Station`].

use core::net::Ipv4Addr;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use postern_aegis::abi::device::BEHIND;
use postern_aegis::entry::{self, Message};
use postern_aegis::{Error, books, memory, println, time};
use postern_exos_abi::errno::{self, Errno};
use postern_exos_abi::network::{self, Page, asks, counter};
use postern_exos_load::archive;
use postern_exos_net::settings::Settings;
use postern_exos_net::stack::Arrivals;
use postern_exos_net::station::Station;

use crate::ipc::keep;
use crate::net::answers::Answers;
use crate::net::inlet::Inlet;
use crate::net::outlet::Outlet;
use crate::net::{ground, own, trusted};
use crate::process::{registry, signals};

/// What the service hears, and from whom it hears leases.
const FILTER: &str = "arp or rarp or (udp dst port 68 and udp src port 67)";
/// What nobody else hears: pieces of datagrams, and what is to be answered with an error.
const REST: &str = "ip and not ether multicast";
/// Parts of devices that it may have.
const HOLDINGS: u64 = 8;
/// Microseconds that it sleeps at most.
const NAP: u64 = 1_000_000;

/// Neighbours that processes have asked for since the service looked; 0: none.
static WANTED: [AtomicU32; 16] = [const { AtomicU32::new(0) }; 16];

/// A request: it comes while the service sleeps or works, so it only leaves a word.
fn asked(message: &mut Message) {
    let [first, address, ..] = message.words;
    message.words = [0; entry::WORDS];
    let known = first >> 32 == u64::from(postern_exos_abi::VERSION);
    message.words[0] = match first as u32 as u64 {
        asks::NEIGHBOUR if known => {
            let address = address as u32;
            let same = |place: &AtomicU32| {
                let free = place.compare_exchange(0, address, Relaxed, Relaxed);
                free.is_ok() || free == Err(address)
            };
            // With all places taken it is asked for again.
            WANTED.iter().any(same);
            0
        }
        _ => errno::NOSYS.word(),
    };
}

/// The archive's file, if it has one.
fn settings() -> Settings {
    let file = archive::index_of(network::NAME).and_then(archive::nth);
    let mut bytes = [0; 1024];
    let length = file.map_or(Ok(0), |file| file.read(0, &mut bytes));
    let text = length.ok().and_then(|length| bytes.get(..length));
    match Settings::read(text.unwrap_or_default()) {
        Ok(settings) => settings,
        Err(error) => {
            println!("{error}");
            Settings::default()
        }
    }
}

/// Serves, until a signal ends the process.
pub fn run() -> Result<(), Errno> {
    let network = &books::machine().network;
    if network.there.load(Relaxed) == 0 {
        return Err(errno::NODEV);
    }
    let [hardware @ .., _, _] = network.address.load(Relaxed).to_le_bytes();
    let refused = |error| match error {
        Error::Taken => errno::ADDRINUSE,
        _ => errno::NOBUFS,
    };
    let _ = registry::holdings(HOLDINGS);
    let mut inlet = Inlet::new().map_err(|_| errno::NOMEM)?;
    let mut outlet = Outlet::new().map_err(|_| errno::NOMEM)?;
    let endpoints = [
        inlet.bind(FILTER, 0).map_err(refused)?,
        inlet.bind(REST, BEHIND).map_err(refused)?,
    ];
    let answers = Answers::load(&inlet, &endpoints);
    let mut station = Station::new(hardware, settings(), ground::random() as u32);
    let at = memory::reserve(1);
    let mut number = [0];
    let kept = keep::fresh(core::iter::once(at), &mut number).map_err(|_| errno::NOMEM)?;
    let page = trusted::page(at);
    page.version.store(postern_exos_abi::VERSION, Relaxed);
    entry::on_events(|_| {});
    entry::on_request(asked);
    publish(page, &station, answers.as_ref());
    registry::serve(network::NAME, [number[0].into(), kept.read, 0, 0])?;
    loop {
        let mut out = |frame: &[u8]| _ = outlet.send_frame(frame);
        inlet.look();
        while let Some(frame) = inlet.first() {
            station.frame(own::now(), frame, &mut out);
            inlet.next();
        }
        for place in &WANTED {
            let wanted = place.swap(0, Relaxed);
            if wanted != 0 {
                station.ask(own::now(), Ipv4Addr::from(wanted), &mut out);
            }
        }
        station.tick(own::now(), &mut out);
        station.set_answered(answers.as_ref().is_some_and(Answers::is_well));
        publish(page, &station, answers.as_ref());
        signals::poll();
        let nap = station.due().saturating_sub(own::now()).min(NAP);
        if nap == 0 || time::alarm(nap).is_err() {
            entry::yield_slice();
        } else {
            let wanted = || WANTED.iter().any(|place| place.load(Relaxed) != 0);
            entry::sleep_unless(|| inlet.has_some() || wanted());
        }
    }
}

/// Says what is known.
fn publish(page: &Page, station: &Station, answers: Option<&Answers>) {
    let mut counters = station.counters;
    let place = station.place();
    if let Some(answers) = answers {
        answers.set(&place);
        let counts = answers.counts();
        counters[counter::HANDLER_ECHOES] = counts.echoes;
        counters[counter::HANDLER_ANSWERS] = counts.questions;
        counters[counter::HANDLER_UNSENT] = counts.unsent;
    }
    for (to, count) in page.counters.iter().zip(counters) {
        to.store(count, Relaxed);
    }
    let known = station.neighbours().places();
    for (to, known) in page.neighbours.iter().zip(known) {
        to.set(known.map(|known| (known.address, known.hardware)));
    }
    page.set_place(&place);
}
