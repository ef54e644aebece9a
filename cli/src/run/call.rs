//! A call whose types are known only now: arguments go to the registers that the C convention gives
//! them, whatever their order.

use postern::{CallError, Domain, FuncType, SymbolError};

/// A function of a domain with its arguments in place, to be called as often as needed.
pub struct Call {
    form: Form,
    integers: [u64; 10],
    floats: [f64; 4],
}

type Integers6<R> = fn(u64, u64, u64, u64, u64, u64) -> R;
type Integers10<R> = fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> R;
type Mixed<R> = fn(u64, u64, u64, u64, u64, u64, f64, f64, f64, f64) -> R;

/// The function under one of the types that stand for all: integer and floating parameters use
/// different registers, so unused ones do no harm, and their order among each other is free.
enum Form {
    Integers(postern::Func<Integers6<u64>>),
    IntegersToFloat(postern::Func<Integers6<f64>>),
    Stack(postern::Func<Integers10<u64>>),
    StackToFloat(postern::Func<Integers10<f64>>),
    Mixed(postern::Func<Mixed<u64>>),
    MixedToFloat(postern::Func<Mixed<f64>>),
}

impl Call {
    /// Prepares a call of export `name`. The result is taken from `xmm0` if `float_result`, else
    /// from `rax`.
    pub fn new(
        domain: &Domain,
        name: &str,
        integers: &[u64],
        floats: &[u64],
        float_result: bool,
    ) -> Result<Call, String> {
        fn function<F: FuncType>(domain: &Domain, name: &str) -> Result<postern::Func<F>, String> {
            domain
                .func_unchecked::<F>(name)
                .map_err(|e: SymbolError| e.to_string())
        }
        let mut call = Call {
            form: match (integers.len(), floats.len(), float_result) {
                (0..=6, 0, false) => Form::Integers(function(domain, name)?),
                (0..=6, 0, true) => Form::IntegersToFloat(function(domain, name)?),
                (7..=10, 0, false) => Form::Stack(function(domain, name)?),
                (7..=10, 0, true) => Form::StackToFloat(function(domain, name)?),
                (0..=6, 1..=4, false) => Form::Mixed(function(domain, name)?),
                (0..=6, 1..=4, true) => Form::MixedToFloat(function(domain, name)?),
                _ => return Err("`postern run` passes up to 10 integers, or up to 6 with up to 4 floating-point numbers; call this function from a host program".into()),
            },
            integers: [0; 10],
            floats: [0.0; 4],
        };
        call.integers[..integers.len()].copy_from_slice(integers);
        for (place, &bits) in call.floats.iter_mut().zip(floats) {
            *place = f64::from_bits(bits);
        }
        Ok(call)
    }

    /// Calls once; returns the register of the result.
    pub fn make(&self) -> Result<u64, CallError> {
        let [a, b, c, d, e, f, g, h, i, j] = self.integers;
        let [p, q, r, s] = self.floats;
        match &self.form {
            Form::Integers(function) => function.call(a, b, c, d, e, f),
            Form::IntegersToFloat(function) => function.call(a, b, c, d, e, f).map(f64::to_bits),
            Form::Stack(function) => function.call(a, b, c, d, e, f, g, h, i, j),
            Form::StackToFloat(function) => function
                .call(a, b, c, d, e, f, g, h, i, j)
                .map(f64::to_bits),
            Form::Mixed(function) => function.call(a, b, c, d, e, f, p, q, r, s),
            Form::MixedToFloat(function) => function
                .call(a, b, c, d, e, f, p, q, r, s)
                .map(f64::to_bits),
        }
    }
}
