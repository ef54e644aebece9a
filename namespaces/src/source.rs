//! E-code source becomes objects.

use super::{CreateError, Created, Namespace};
use postern_ecode::{Compiler, Object, Options};
use postern_verifier::window::STACK_LOG2;
use std::cell::Cell;

thread_local! {
    /// A compiler that keeps its memory between sources: one for each thread that compiles, however
    /// many namespaces there are.
    static COMPILER: Cell<Option<Box<Compiler>>> = const { Cell::new(None) };
}

fn compile(source: &str) -> Result<Object, CreateError> {
    // A thread that ends has none any more.
    let kept = COMPILER.try_with(Cell::take).ok().flatten();
    let mut compiler = kept.unwrap_or_else(|| {
        Box::new(Compiler::new(Options {
            replaceable: true,
            ..Options::default()
        }))
    });
    let object = compiler.compile(source);
    let _ = COMPILER.try_with(|place| place.set(Some(compiler)));
    Ok(object?)
}

/// Compiles E-code and makes an extension file of it, for hosts that keep what they compiled, or
/// want to know what is wrong with a source without running it. Functions that are not static are
/// its exports, those that it declares and does not define its imports; `unit` is what faults call
/// the source. As any file it is judged where it is loaded.
///
/// ```
/// use postern::{Domain, Image, compile_image};
///
/// let file = compile_image("math.ec", "int square(int x) { return x * x; }")?;
/// let domain = Domain::builder(&Image::from_bytes(&file)?).build()?;
/// assert_eq!(domain.func::<fn(i32) -> i32>("square")?.call(7)?, 49);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What is wrong with the source.
pub fn compile_image(unit: &str, source: &str) -> Result<Vec<u8>, CreateError> {
    let objects = [postern_ecode::compile(source)?];
    let mut linked = postern_ecode::link(&objects, STACK_LOG2.1)?;
    linked.name_lines(&objects, &[unit]);
    Ok(linked.file)
}

impl Namespace {
    /// Compiles E-code and adds its functions and variables; `unit` is what faults call the source.
    /// Functions that exist are replaced, all others stay. Variables begin anew, unless the
    /// functions that are replaced are of one source and that had the same variables (names, sizes,
    /// order): then they stay, with their values.
    ///
    /// Functions of other sources, exports of the image and services are called by name, after a
    /// declaration.
    ///
    /// # Errors
    /// What is wrong with the source, or names, types or room; nothing has changed then.
    pub fn create(&self, unit: &str, source: &str) -> Result<Created, CreateError> {
        self.add(unit, compile(source)?)
    }
}
