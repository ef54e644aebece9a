//! Imports and exports of an image in a form that outlives its bytes.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::file::ImageFile;
use crate::layout::MemoryLayout;
use crate::notes::Header;
use crate::signature::Signature;

/// An [`Import`](crate::Import) that owns its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportOwned {
    /// Name, unique among the imports.
    pub name: Arc<str>,
    /// Signature, where the toolchain knew it.
    pub signature: Option<Signature>,
}

/// An [`Export`](crate::Export) that owns its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportOwned {
    /// Name, unique among the exports.
    pub name: Arc<str>,
    /// Offset in the window, inside text.
    pub offset: u32,
    /// Signature, where the toolchain knew it.
    pub signature: Option<Signature>,
}

/// Everything that a checked image says about itself, without its bytes.
#[derive(Clone, Debug)]
pub struct ImageTables {
    /// What the header note says.
    pub header: Header,
    /// Where everything lies in a window.
    pub layout: MemoryLayout,
    /// Size and alignment in bytes of the thread-local variables.
    pub thread_locals: Option<(u32, u32)>,
    /// Imports in the order of the gate slots.
    pub imports: Vec<ImportOwned>,
    /// Exports in the file's order.
    pub exports: Vec<ExportOwned>,
    /// Places in `exports`, in the order of their names.
    by_name: Vec<u32>,
}

impl ImageTables {
    /// The export with a name, by binary search.
    pub fn export(&self, name: &str) -> Option<&ExportOwned> {
        let name_of = |&i: &u32| &*self.exports[i as usize].name;
        let found = self.by_name.binary_search_by_key(&name, name_of).ok()?;
        self.exports.get(self.by_name[found] as usize)
    }
}

impl From<&ImageFile<'_>> for ImageTables {
    fn from(file: &ImageFile<'_>) -> ImageTables {
        let imports = file.imports().iter();
        let imports = imports
            .map(|i| ImportOwned {
                name: i.name.into(),
                signature: i.signature,
            })
            .collect();
        let exports = file.exports().iter();
        let exports: Vec<_> = exports
            .map(|e| ExportOwned {
                name: e.name.into(),
                offset: e.offset,
                signature: e.signature,
            })
            .collect();
        ImageTables {
            header: *file.header(),
            layout: file.layout(),
            thread_locals: file
                .thread_locals()
                .map(|variables| (variables.memory_size, variables.alignment)),
            imports,
            exports,
            by_name: file.by_name().to_vec(),
        }
    }
}
