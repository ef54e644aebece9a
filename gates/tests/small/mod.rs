//! A domain that is as small as can be, with a table of functions above the gates that does little
//! more than note what it is told.

use postern_gates::above::{self, Above, Ended, Failure, Held};
use postern_gates::block::{Block, Terms};
use postern_gates::callee::{Callee, ServiceTable};
use postern_gates::control::Control;
use postern_gates::enter::{self, Returned};
use postern_gates::entry::{Entry, Manner};
use postern_gates::inside::{self, Target};
use postern_gates::map::Prot;
use postern_gates::outcome::{RawFault, Refusal};
use postern_gates::peer::PeerError;
use postern_gates::shim::{self, Body};
use postern_gates::text::Text;
use postern_gates::window::Window;
use postern_gates::{machine, register, signal};
use postern_image::{ImageBuilder, ImageFile, Type};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

pub const REFUSED: u32 = 2;

thread_local! {
    /// Whether deadlines can be kept.
    pub static WATCHED: Cell<bool> = const { Cell::new(true) };
    /// Offset of the top of the data stack that this thread is given next.
    pub static STACK: Cell<u32> = const { Cell::new(0) };
    pub static REFUSALS: RefCell<Vec<Refusal>> = const { RefCell::new(Vec::new()) };
    pub static ENDS: RefCell<Vec<(RawFault, Option<String>)>> = const { RefCell::new(Vec::new()) };
    /// Calls that were refused, and may try another entry.
    pub static INSTEAD: Cell<u32> = const { Cell::new(0) };
}

pub static FORGOTTEN: AtomicUsize = AtomicUsize::new(0);

fn watch() -> std::io::Result<()> {
    match WATCHED.get() {
        true => Ok(()),
        false => Err(std::io::ErrorKind::OutOfMemory.into()),
    }
}

fn give_data_stack(control: &Control, index: usize) -> Result<(), Refusal> {
    let top = STACK.get();
    control.give_data_stack(index, top);
    match top {
        0 => Err(Refusal::NoDataStack),
        _ => Ok(()),
    }
}

fn instead(_: &Entry, refusal: Refusal) -> Result<&Entry, Refusal> {
    INSTEAD.set(INSTEAD.get() + 1);
    Err(refusal)
}

fn ended(held: Option<Held>, ended: Ended) {
    assert!(held.is_none());
    ENDS.with_borrow_mut(|ends| ends.push((ended.fault, ended.message)));
}

static ABOVE: Above = Above {
    watch,
    wake: || {},
    give_data_stack,
    move_window: |_| {},
    instead,
    refused: |refusal| REFUSALS.with_borrow_mut(|all| all.push(refusal)),
    hold: |_| None,
    ended,
    failure: || Failure::Error(PeerError::Fault),
    renew_thread: |_| {},
    forgotten: || {
        FORGOTTEN.fetch_add(1, Ordering::SeqCst);
    },
    thread_exited: || {},
};

pub fn start() {
    pub static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        above::give(&ABOVE);
        register::prepare(8 << 20).unwrap();
        machine::register_barrier().unwrap();
        signal::start(libc::SIGRTMAX() - 3, true, false).unwrap();
    });
}

/// What a domain would be made of.
pub struct Small {
    pub control: Block,
    pub text: Arc<Text>,
    pub services: Arc<ServiceTable>,
    pub window: Window,
}

impl Small {
    /// Text whose first instruction is a function's, with these services at its gate slots.
    pub fn new(text: &[u8], callees: Vec<Callee>) -> Small {
        start();
        let mut builder = ImageBuilder::new(text);
        for number in 0..callees.len() {
            builder.import(format!("service{number}"), None);
        }
        let file = builder.build().unwrap();
        let image = ImageFile::parse(&file).unwrap();
        let text = Text::verify(&image, &[], &[]).unwrap();
        let (text, layout) = (Arc::new(text), image.layout());
        let window = Window::take().unwrap();
        let pin = window.pin();
        pin.map_text(&text).unwrap();
        pin.part(layout.stack, layout.data)
            .map(Prot::ReadWrite)
            .unwrap();
        let control = Block::take().unwrap();
        let services = Arc::new(table(&callees));
        pin.furnish(&control, services.clone(), &Terms::default())
            .unwrap();
        drop(pin);
        control.open();
        STACK.set(layout.data);
        Small {
            control,
            text,
            services,
            window,
        }
    }

    pub fn start(&self) -> u32 {
        self.text.layout().text
    }

    pub fn entry(&self) -> Entry {
        assert!(self.text.is_start(self.start()));
        let signature = "l(ll)".parse().unwrap();
        self.control
            .entry(self.start(), &signature, Manner::default())
    }

    pub fn call(&self, a: u64, b: u64) -> Returned {
        enter::integers(&self.entry(), [a, b, 0, 0, 0, 0])
    }

    pub fn occupied(&self) -> bool {
        inside::occupied(Target::domain(&self.control), |_| true)
    }
}

pub fn last_end() -> (RawFault, Option<String>) {
    ENDS.with_borrow_mut(|ends| ends.pop()).unwrap()
}

pub fn last_refusal() -> Refusal {
    REFUSALS.with_borrow_mut(|all| all.pop()).unwrap()
}

/// mov eax, edi; add eax, esi; ret
pub const ADD: &[u8] = &[0x89, 0xf8, 0x01, 0xf0, 0xc3];
/// ud2
pub const TRAP: &[u8] = &[0x0f, 0x0b];
/// jmp to itself
pub const SPIN: &[u8] = &[0xeb, 0xfe];

/// call to the first gate slot; ret
pub fn calls_a_service() -> Vec<u8> {
    let mut builder = ImageBuilder::new([0xcc]);
    builder.import("service0", None);
    let distance = builder
        .slot_offset(0)
        .wrapping_sub(builder.text_offset() + 5);
    let mut text = vec![0xe8];
    text.extend(distance.to_le_bytes());
    text.push(0xc3);
    text
}

/// A service that gives three times its first argument.
pub struct Triple;

impl Body for Triple {
    fn invoke(&self, _: &Control, integers: &[u64; 6], _: &[u64; 8]) -> u64 {
        match integers[0] {
            u64::MAX => panic!("of the host's"),
            n => 3 * n,
        }
    }
}

pub fn triple() -> Callee {
    Callee::closure(Triple, Some(Type::I64))
}

/// A table of these, each with a result in rax.
pub fn table(callees: &[Callee]) -> ServiceTable {
    let each = |callee| (callee, shim::DEFAULT_STACK, Some(Type::I64));
    ServiceTable::new(callees.iter().map(each))
}
