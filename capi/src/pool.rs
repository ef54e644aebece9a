//! Pools: `pt_pool_…`.
//!
//! What is lent is a handle of its own each time, so one that was given back is refused; the
//! function pointers of a domain stay the same through all its loans.

use crate::boundary::Out;
use crate::domain::{DomainKind, Opened};
use crate::failure::{self, Code, Failure};
use crate::fork::Shared;
use crate::handle::{Handle, kind};
use crate::image::ImageKind;
use crate::options::{self, Options, OptionsKind};
use postern::{Domain, Image, Lendable, Pool, PoolError, Pooled};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Arc;

/// A domain of a pool.
pub struct Lent(Arc<Opened>);

impl Lendable for Lent {
    fn domain(&self) -> &Domain {
        &self.0.domain
    }
}

kind!(PoolKind: Pool<Lent>, b'L', "pt_pool");

/// What is lent, by the number of the handle: which pool's, and the guard.
type Loans = BTreeMap<usize, (usize, Pooled<'static, Lent>)>;
static LOANS: Shared<Loans> = Shared::new(BTreeMap::new());

/// Names in C and values, for the test that the header agrees.
pub const FLAGS: [(&str, i32); 2] = [("PT_POOL_KEEP", 1), ("PT_POOL_PER_THREAD", 2)];

/// Names in C and values of what can be counted.
pub const COUNTS: [(&str, i32); 11] = [
    ("PT_POOL_SIZE", 0),
    ("PT_POOL_IN_USE", 1),
    ("PT_POOL_IDLE", 2),
    ("PT_POOL_WAITING", 3),
    ("PT_POOL_TAKEN", 4),
    ("PT_POOL_WAITED", 5),
    ("PT_POOL_REFUSED", 6),
    ("PT_POOL_MADE", 7),
    ("PT_POOL_RESETS", 8),
    ("PT_POOL_RESTARTS", 9),
    ("PT_POOL_ABANDONED", 10),
];

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Failure {
        let code = match &error {
            PoolError::Make(inner) => match inner.downcast_ref::<postern::InstantiateError>() {
                Some(inner) => failure::instantiate(inner),
                None => Code::Limit,
            },
            PoolError::Resting(_) => Code::Resting,
            PoolError::Spent => Code::Poisoned,
            PoolError::Closed => Code::Closed,
            _ => Code::Busy,
        };
        Failure::new(code, error.to_string())
    }
}

fn maker(
    image: Image,
    options: Arc<Options>,
) -> impl Fn() -> Result<Lent, postern::InstantiateError> + Send + Sync + 'static {
    move || {
        let builder = options.apply_without_restart(Domain::builder(&image));
        Ok(Lent(Arc::new(Opened::new(builder.build()?, options.user))))
    }
}

/// `pt_pool_new`
#[unsafe(no_mangle)]
pub extern "C" fn pt_pool_new(
    image: Handle<ImageKind>,
    options: Handle<OptionsKind>,
) -> Handle<PoolKind> {
    failure::or(Handle::NULL, || {
        let options = options::get(options)?;
        let builder = options.pool(Pool::builder(maker(image.get()?, options.clone())));
        Ok(Handle::make(builder.build()?))
    })
}

/// `pt_pool_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_pool_free(pool: Handle<PoolKind>) -> c_int {
    failure::code(|| {
        pool.take()?.close();
        Ok(())
    })
}

/// `pt_pool_take`
#[unsafe(no_mangle)]
pub extern "C" fn pt_pool_take(pool: Handle<PoolKind>) -> Handle<DomainKind> {
    failure::or(Handle::NULL, || {
        let lent = pool.get()?.get_owned()?;
        let handle = crate::domain::enter(lent.0.clone());
        LOANS.lock().insert(handle.0, (pool.0, lent));
        Ok(handle)
    })
}

/// `pt_pool_put`
#[unsafe(no_mangle)]
pub extern "C" fn pt_pool_put(pool: Handle<PoolKind>, domain: Handle<DomainKind>) -> c_int {
    failure::code(|| {
        let mut loans = LOANS.lock();
        match loans.get(&domain.0) {
            Some((of, _)) if *of == pool.0 => {}
            _ => {
                drop(loans);
                domain.get()?;
                return Err(Failure::new(
                    Code::Handle,
                    "the domain was not lent by this pool",
                ));
            }
        }
        let lent = loans.remove(&domain.0);
        drop(loans);
        // The host may have closed it meanwhile.
        let _ = crate::domain::leave(domain);
        drop(lent);
        Ok(())
    })
}

/// `pt_pool_replace`
#[unsafe(no_mangle)]
pub extern "C" fn pt_pool_replace(
    pool: Handle<PoolKind>,
    image: Handle<ImageKind>,
    options: Handle<OptionsKind>,
) -> c_int {
    failure::code(|| {
        let make = maker(image.get()?, options::get(options)?);
        Ok(pool.get()?.replace(make)?)
    })
}

/// `pt_pool_count`
#[unsafe(no_mangle)]
pub extern "C" fn pt_pool_count(pool: Handle<PoolKind>, what: c_int, value: Out<'_, u64>) -> c_int {
    failure::code(|| {
        let c = pool.get()?.counters();
        let all = [
            c.size as u64,
            c.in_use as u64,
            c.idle as u64,
            c.waiting as u64,
            c.taken,
            c.waited,
            c.refused,
            c.made,
            c.resets,
            c.restarts,
            c.abandoned,
        ];
        value.put(options::pick(&all, what)?);
        Ok(())
    })
}
