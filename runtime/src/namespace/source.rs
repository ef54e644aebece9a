//! E-code source becomes objects.

use super::object::Object;
use super::{CreateError, Created, Namespace};
use postern_ecode::{Compiler, Options};
use std::sync::Mutex;

/// A compiler that keeps its memory between sources. Who finds it in use takes another one.
#[derive(Default)]
pub(crate) struct Source(Mutex<Option<Compiler>>);

impl Source {
    fn compile(&self, source: &str) -> Result<Object, CreateError> {
        let kept = || self.0.try_lock().ok();
        let compiler = kept().and_then(|mut compiler| compiler.take());
        let mut compiler = compiler.unwrap_or_else(|| {
            Compiler::new(Options {
                replaceable: true,
                ..Options::default()
            })
        });
        let unit = compiler.compile(source);
        if let Some(mut place) = kept() {
            *place = Some(compiler);
        }
        Ok(unit?.into())
    }
}

impl Namespace {
    /// Compiles E-code and adds its functions and variables; `unit` is what faults call the source. Functions that exist are replaced, all
    /// others stay. Variables begin anew, unless the functions that are replaced are of one source and that had the same
    /// variables (names, sizes, order): then they stay, with their values.
    ///
    /// Functions of other sources, exports of the image and services are called by name, after a declaration.
    ///
    /// # Errors
    /// What is wrong with the source, or names, types or room; nothing has changed then.
    pub fn create(&self, unit: &str, source: &str) -> Result<Created, CreateError> {
        self.add(unit, self.code().compiler.compile(source)?)
    }
}
