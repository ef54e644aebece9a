//! A domain that ends while a function of the host's runs that it has called.

use crate::support::{self, code};
use postern::{
    Caller, Decider, Domain, DomainBuilder, Image, Module, Policy, Pool, Pooled, Verdict,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};

/// `f(x)` passes x to the service `s`; `write` writes 4 bytes to descriptor x, `read` reads them;
/// `pid` makes a harmless system call; `fault` traps; `p(x)` passes x to the peer.
pub fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        code(
            &[("s", "l(l)"), ("sys", "l(lLLLLL)"), ("p", "l(l)")],
            &[
                ("f", "l(l)"),
                ("write", "l(l)"),
                ("read", "l(l)"),
                ("pid", "l(l)"),
                ("fault", "l(l)"),
                ("to_peer", "l(l)"),
            ],
            "f: call s
                call s
                ret
             write: movl %edi,%esi
                movl $buffer,%edx
                movl $4,%ecx
                movl $1,%edi
                call sys
                ret
             read: movl %edi,%esi
                movl $buffer,%edx
                movl $4,%ecx
                xorl %edi,%edi
                call sys
                ret
             pid: movl $39,%edi
                call sys
                ret
             fault: ud2
             to_peer: call p
                ret
             .data
             buffer: .quad 0",
        )
        .image()
    })
}

/// Something that a closure owns: it knows whether it is still there, and how many of its kind were
/// dropped.
pub struct Owned {
    text: Box<[u8; 64]>,
    dropped: Arc<AtomicUsize>,
}

impl Owned {
    pub fn check(&self) {
        assert_eq!(self.dropped.load(Ordering::SeqCst), 0, "dropped in use");
        assert!(self.text.iter().all(|&b| b == 7), "freed in use");
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.text.fill(9);
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// What keeps the domain.
pub enum Holder {
    Domain(#[expect(dead_code, reason = "it is only dropped")] Domain),
    Module(#[expect(dead_code, reason = "it is only dropped")] Module),
    Pooled(Pooled<'static>, Pool),
}

/// How the domain ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The function drops the last handle.
    Drop,
    /// It closes the domain, and then drops the last handle.
    Close,
    /// It gets a handle from the caller; another thread drops the other one; then its own goes.
    OtherDropsFirst,
    /// Another thread drops the last handle, and waits, while the function runs.
    OtherWaits,
    /// It drops the module.
    Module,
    /// It gives the domain back to its pool, which cannot reset it, and drops the pool.
    Pool,
    /// It takes the policy and the decider away, tries a reset, and drops the last handle.
    Replace,
}

pub const WAYS: [Way; 7] = [
    Way::Drop,
    Way::Close,
    Way::OtherDropsFirst,
    Way::OtherWaits,
    Way::Module,
    Way::Pool,
    Way::Replace,
];

/// What a function of the host's does, the first time that it is called.
pub struct Scene {
    way: Way,
    holder: Mutex<Option<Holder>>,
    waiting: Mutex<Option<std::thread::JoinHandle<()>>>,
    pub calls: AtomicUsize,
    dropped: Arc<AtomicUsize>,
}

impl Scene {
    pub fn new(way: Way) -> Arc<Scene> {
        Arc::new(Scene {
            way,
            holder: Mutex::new(None),
            waiting: Mutex::new(None),
            calls: 0.into(),
            dropped: Arc::default(),
        })
    }

    /// For a closure of the domain's to own.
    pub fn owned(&self) -> Owned {
        Owned {
            text: Box::new([7; 64]),
            dropped: self.dropped.clone(),
        }
    }

    fn take(&self) -> Option<Holder> {
        self.holder.lock().unwrap().take()
    }

    /// Called by the function: ends the domain, and looks at what it owns.
    pub fn act(&self, owned: &Owned) {
        owned.check();
        if self.calls.fetch_add(1, Ordering::SeqCst) != 0 {
            return;
        }
        let current = || Caller::with_current(|caller| caller.domain());
        match self.way {
            Way::Drop | Way::Module => drop(self.take()),
            Way::Close => {
                if let Some(domain) = current() {
                    domain.close();
                }
                owned.check();
                drop(self.take());
            }
            Way::OtherDropsFirst => {
                let mine = current();
                let holder = self.take();
                std::thread::spawn(move || drop(holder)).join().unwrap();
                owned.check();
                drop(mine);
            }
            Way::OtherWaits => {
                let holder = self.take();
                let (tell, told) = mpsc::channel();
                let waits = std::thread::spawn(move || {
                    tell.send(()).unwrap();
                    drop(holder);
                });
                told.recv().unwrap();
                // Until there is no handle any more, or until it turns out that the runtime has one
                // while this function runs.
                while current().is_some() && !waits.is_finished() {
                    std::thread::yield_now();
                }
                *self.waiting.lock().unwrap() = Some(waits);
            }
            Way::Pool => {
                if let Some(Holder::Pooled(pooled, pool)) = self.take() {
                    drop(pooled);
                    owned.check();
                    drop(pool);
                }
            }
            Way::Replace => {
                if let Some(domain) = current() {
                    domain.set_policy(Policy::none());
                    owned.check();
                    domain.set_decider(None);
                    domain.set_decider(Some(Decider::closure(|_, _| Verdict::Allow)));
                    owned.check();
                    assert!(domain.reset().is_err());
                }
                drop(self.take());
            }
        }
        owned.check();
    }

    /// Makes the domain that `configure` describes, and calls `function` of it by a C function
    /// pointer with `argument`.
    pub fn play(
        self: &Arc<Self>,
        function: &str,
        argument: i64,
        configure: impl Fn(DomainBuilder) -> DomainBuilder + Send + Sync + 'static,
    ) {
        let configure = move |builder: DomainBuilder| {
            configure(builder.placement(postern::Placement::Cold).peer_open("p"))
        };
        let pointer = |domain: &Domain| {
            domain
                .function_pointer(function, &domain.signature(function).unwrap())
                .unwrap()
        };
        let (pointer, holder) = match self.way {
            Way::Module => {
                let module = Module::new(image(), configure).unwrap();
                let pointer = module
                    .function_pointer(function, &module.domain().signature(function).unwrap())
                    .unwrap();
                (pointer, Holder::Module(module))
            }
            Way::Pool => {
                let make = move || configure(Domain::builder(image())).build();
                let pool = Pool::builder(make).size(1).build().unwrap();
                let pooled = pool.get_owned().unwrap();
                (pointer(&pooled), Holder::Pooled(pooled, pool))
            }
            _ => {
                let domain = configure(Domain::builder(image())).build().unwrap();
                (pointer(&domain), Holder::Domain(domain))
            }
        };
        let call: extern "C" fn(i64) -> i64 = unsafe { std::mem::transmute(pointer) };
        // Who is closed by another thread may go on for a moment.
        let at_once = self.way != Way::OtherWaits;
        *self.holder.lock().unwrap() = Some(holder);
        postern::clear_last_error();
        let result = call(argument);
        assert_eq!(postern::nesting(), 0);
        if at_once {
            assert_eq!(result, 0, "{:?} {function}", self.way);
            assert!(postern::last_error().is_some());
            // The call was the domain's last one.
            assert_eq!(self.calls.load(Ordering::SeqCst), 1, "{:?}", self.way);
        }
        if let Some(waits) = self.waiting.lock().unwrap().take() {
            waits.join().unwrap();
        }
        assert!(self.holder.lock().unwrap().is_none());
        assert_eq!(call(argument), 0);
        assert!(matches!(
            postern::last_error(),
            Some(postern::CallError::Closed)
        ));
    }

    /// What the closures owned is gone by now.
    pub fn all_is_dropped(&self) {
        assert_ne!(self.dropped.load(Ordering::SeqCst), 0, "{:?}", self.way);
    }
}

/// Runs a test in a process of its own, under the guarding allocator.
pub fn guarded(test: &str, body: impl FnOnce()) {
    support::succeeds_in_child(test, || crate::allocator::guarded(body));
}

impl Scene {
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}
