//! Closures of the host as services: their C types, and how they read what the registers hold.

use super::caller::Caller;
use crate::value::{Output, Value};
use postern_gates::control::Control;
use postern_gates::shim::Body;
use postern_image::Signature;
use std::marker::PhantomData;

/// Functions that can be services: closures over [`Caller`] and up to six [`Value`]s that return a
/// value or nothing.
pub trait Service<A>: Send + Sync + 'static {
    /// The C types.
    fn signature() -> Signature;
    /// Calls the closure with what the registers hold.
    fn invoke(&self, caller: &Caller<'_>, integers: &[u64; 6], floats: &[u64; 8]) -> u64;
}

macro_rules! service {
    ($($a:ident),*) => {
        impl<F, R, $($a,)*> Service<fn($($a,)*) -> R> for F
        where
            F: Fn(&Caller<'_> $(, $a)*) -> R + Send + Sync + 'static,
            R: Output,
            $($a: Value,)*
        {
            fn signature() -> Signature {
                Signature::new(R::TYPE, &[$($a::TYPE),*]).expect("at most six parameters")
            }
            #[allow(non_snake_case, unused_mut, unused_variables, unused_assignments)]
            fn invoke(&self, caller: &Caller<'_>, integers: &[u64; 6], floats: &[u64; 8]) -> u64 {
                let (mut i, mut f) = (0, 0);
                $(
                    let $a = if $a::TYPE.is_float() {
                        f += 1;
                        $a::from_bits(floats[f - 1])
                    } else {
                        i += 1;
                        $a::from_bits(integers[i - 1])
                    };
                )*
                self(caller $(, $a)*).to_bits()
            }
        }
    };
}
service!();
service!(A);
service!(A, B);
service!(A, B, C);
service!(A, B, C, D);
service!(A, B, C, D, E);
service!(A, B, C, D, E, G);

/// A closure behind the service gate.
pub(super) struct Closure<A, F>(F, PhantomData<fn(A)>);

impl<A: 'static, F: Service<A>> Closure<A, F> {
    pub(super) fn new(function: F) -> Self {
        Closure(function, PhantomData)
    }
}

impl<A: 'static, F: Service<A>> Body for Closure<A, F> {
    #[inline(always)]
    fn invoke(&self, control: &Control, integers: &[u64; 6], floats: &[u64; 8]) -> u64 {
        self.0.invoke(&Caller::new(control), integers, floats)
    }
}
