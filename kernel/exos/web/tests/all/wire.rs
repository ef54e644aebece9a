//! A wire between the server and a station with smoltcp: frames take a while, and some are lost,
//! come twice, late or changed.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr, Ipv4Address};

use crate::platform::{ADDRESS, PORT, STATION, Server};

const CLIENT: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// How bad it is, of a thousand frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bad {
    pub lost: u32,
    pub twice: u32,
    pub late: u32,
    pub changed: u32,
}

/// The client's device.
struct Port {
    incoming: VecDeque<Vec<u8>>,
    outgoing: Rc<RefCell<Vec<Vec<u8>>>>,
    mtu: usize,
}

struct In(Vec<u8>);
struct Out(Rc<RefCell<Vec<Vec<u8>>>>);

impl RxToken for In {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl TxToken for Out {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let mut frame = vec![0; length];
        let result = f(&mut frame);
        self.0.borrow_mut().push(frame);
        result
    }
}

impl Device for Port {
    type RxToken<'a> = In;
    type TxToken<'a> = Out;

    fn receive(&mut self, _: Instant) -> Option<(In, Out)> {
        let frame = self.incoming.pop_front()?;
        Some((In(frame), Out(self.outgoing.clone())))
    }

    fn transmit(&mut self, _: Instant) -> Option<Out> {
        Some(Out(self.outgoing.clone()))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }
}

/// Both, and what is on the way.
pub struct Net {
    pub server: Server,
    pub sockets: SocketSet<'static>,
    pub now: u64,
    interface: Interface,
    port: Port,
    outgoing: Rc<RefCell<Vec<Vec<u8>>>>,
    way: BTreeMap<(u64, u64), (bool, Vec<u8>)>,
    count: u64,
    bad: Bad,
    pub random: fastrand::Rng,
    next_port: u16,
    /// Frames that the device takes at a time.
    slots: usize,
}

impl Net {
    pub fn new(server: Server, bad: Bad, mtu: usize, seed: u64) -> Net {
        let outgoing: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
        let mut port = Port {
            incoming: VecDeque::new(),
            outgoing: outgoing.clone(),
            mtu,
        };
        let mut config = Config::new(HardwareAddress::Ethernet(EthernetAddress(CLIENT)));
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut port, Instant::ZERO);
        interface.update_ip_addrs(|all| {
            let own = IpAddress::v4(10, 0, 2, 2);
            all.push(IpCidr::new(own, 24)).expect("room");
        });
        Net {
            server,
            sockets: SocketSet::new(vec![]),
            now: 1,
            interface,
            port,
            outgoing,
            way: BTreeMap::new(),
            count: 0,
            bad,
            random: fastrand::Rng::with_seed(seed),
            next_port: 2000,
            slots: 8,
        }
    }

    /// A socket with so many bytes for what comes, on its way to be connected.
    pub fn connect(&mut self, window: usize) -> SocketHandle {
        let buffer = |size| tcp::SocketBuffer::new(vec![0; size]);
        let socket = tcp::Socket::new(buffer(window), buffer(1 << 16));
        let handle = self.sockets.add(socket);
        let to = (IpAddress::Ipv4(Ipv4Address::from(ADDRESS)), PORT);
        self.next_port += 1;
        let socket = self.sockets.get_mut::<tcp::Socket>(handle);
        let connected = socket.connect(self.interface.context(), to, self.next_port);
        connected.expect("a socket connects");
        handle
    }

    fn put(&mut self, to_server: bool, frame: Vec<u8>) {
        let chance = |random: &mut fastrand::Rng, of: u32| random.u32(..1000) < of;
        if chance(&mut self.random, self.bad.lost) {
            return;
        }
        let times = 1 + u32::from(chance(&mut self.random, self.bad.twice));
        for _ in 0..times {
            let mut frame = frame.clone();
            if chance(&mut self.random, self.bad.changed) {
                let at = self.random.usize(14..frame.len());
                frame[at] ^= 1 << self.random.u32(..8);
            }
            let late = match chance(&mut self.random, self.bad.late) {
                true => self.random.u64(..20_000),
                false => 0,
            };
            self.count += 1;
            self.way
                .insert((self.now + 500 + late, self.count), (to_server, frame));
        }
    }

    /// Something happens: a frame arrives, or time passes.
    pub fn step(&mut self) {
        let instant = Instant::from_micros(self.now as i64);
        self.interface
            .poll(instant, &mut self.port, &mut self.sockets);
        let sent: Vec<_> = self.outgoing.borrow_mut().drain(..).collect();
        for frame in sent {
            match frame[12..14] {
                // The client asks whose the address is.
                [8, 6] => {
                    let mut answer = frame.clone();
                    answer[..6].copy_from_slice(&CLIENT);
                    answer[6..12].copy_from_slice(&STATION);
                    answer[21] = 2;
                    answer[22..28].copy_from_slice(&STATION);
                    answer[28..32].copy_from_slice(&frame[38..42]);
                    answer[32..42].copy_from_slice(&frame[22..32]);
                    self.port.incoming.push_back(answer);
                }
                _ => self.put(true, frame),
            }
        }
        if self.port.incoming.is_empty() {
            let delay = self.interface.poll_delay(instant, &self.sockets);
            let client = delay.map_or(u64::MAX, |delay| self.now + delay.total_micros().max(1));
            let server = self.server.web.next_due().max(self.now + 1);
            let arrives = self.way.keys().next().map_or(u64::MAX, |key| key.0);
            self.now = client
                .min(server)
                .min(arrives)
                .min(self.now + 1_000_000)
                .max(self.now);
            while let Some(entry) = self.way.first_entry()
                && entry.key().0 <= self.now
            {
                let (to_server, frame) = entry.remove();
                match to_server {
                    true => self.server.web.frame(&frame, self.now),
                    false => self.port.incoming.push_back(frame),
                }
            }
        }
        self.server.web.tick(self.now);
        // The device is done with some of what it had.
        self.server.room.set(self.slots);
        self.server.web.flush(self.now);
        let sent: Vec<_> = self.server.sent.borrow_mut().drain(..).collect();
        for frame in sent {
            self.put(false, frame);
        }
    }
}
