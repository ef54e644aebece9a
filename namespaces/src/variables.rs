//! The variables of an object, in a form that says whether two objects have the same ones at the
//! same places.

use postern_image::object::{Object, Symbol};
use postern_verifier::relocation::Section;

/// The variables of an object: sizes of data and bss, and name, whether in bss, position and size
/// of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variables {
    data: u32,
    bss: u32,
    list: Vec<(String, bool, u32, u32)>,
}

impl Variables {
    /// Those of `object`.
    pub(crate) fn of(object: &Object) -> Variables {
        let is = |s: &&Symbol| matches!(s.section, Section::Data | Section::Bss);
        let list = object.symbols.iter().filter(is).map(|s| {
            let bss = s.section == Section::Bss;
            (s.name.clone(), bss, s.offset, s.size)
        });
        Variables {
            data: object.data.len() as u32,
            bss: object.bss,
            list: list.collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.data == 0 && self.bss == 0
    }
}
