//! The memory that server and modules share: the request, which modules only read, and the outbox,
//! into which they write what they want to say. Nobody but the module that is being called can
//! write the outbox, and the server copies out of it once. `unsafe` lives here and in `native`.

use postern::{Domain, Offset, Prot, ShareError, Shared};
use std::alloc::Layout;

/// As `module.h` has it.
const HEADERS: usize = 32;
const OUTBOX: usize = 4096;

/// Bytes for the request and its texts.
const ROOM: usize = 32 << 10;

/// A text in the request's memory.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Text {
    at: *const u8,
    size: u64,
}

/// `struct request` of `module.h`.
#[repr(C)]
pub struct Request {
    method: Text,
    uri: Text,
    address: Text,
    user: Text,
    file: Text,
    kind: Text,
    body: Text,
    count: u64,
    header: [[Text; 2]; HEADERS],
    number: u64,
    outbox: *mut u8,
}

/// A text of the request that can be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The request's first word.
    Method,
    /// What is asked for.
    Uri,
    /// Who asks.
    Address,
    /// As whom.
    User,
    /// The file that is meant.
    File,
    /// What it is.
    Type,
    /// How it begins.
    Body,
}

/// Memory that modules see.
enum Area {
    /// In windows, too.
    Shared(Shared),
    /// The server's own, never given back.
    Plain(*mut u8),
}

impl Area {
    fn plain(size: usize) -> Area {
        let layout = Layout::from_size_align(size, 4096).expect("a whole number of pages");
        // SAFETY: the size is not zero.
        let at = unsafe { std::alloc::alloc_zeroed(layout) };
        assert!(!at.is_null(), "no memory for the exchange");
        Area::Plain(at)
    }

    fn as_ptr(&self) -> *mut u8 {
        match self {
            Area::Shared(shared) => shared.as_ptr(),
            Area::Plain(at) => *at,
        }
    }
}

/// An address at which the outbox is seen.
#[derive(Clone, Copy)]
pub struct View(*mut u8);

/// Both areas.
pub struct Exchange {
    request: Area,
    outbox: Area,
    /// Where the outbox is seen: as the module that is being called sees it.
    view: *mut u8,
    used: usize,
}

impl Exchange {
    /// New areas, which domains can share.
    ///
    /// # Errors
    /// There is no room for them.
    pub fn shared() -> Result<Exchange, ShareError> {
        // Modules are small: what they see of ours lies in the same 2 MiB as their own, so that a
        // page of page tables maps both. Where another server of this process has its own there,
        // ours lie anywhere.
        let near = |offset, bytes| match Shared::builder().offset(Offset(offset)).zeroed(bytes) {
            Err(ShareError::Taken { .. }) => Shared::builder().zeroed(bytes),
            made => made,
        };
        let (request, outbox) = (near(0x10_0000, ROOM)?, near(0x11_0000, OUTBOX)?);
        Ok(Exchange::of(Area::Shared(request), Area::Shared(outbox)))
    }

    /// New areas of plain memory.
    pub fn plain() -> Exchange {
        Exchange::of(Area::plain(ROOM), Area::plain(OUTBOX))
    }

    fn of(request: Area, outbox: Area) -> Exchange {
        Exchange {
            view: outbox.as_ptr(),
            request,
            outbox,
            used: size_of::<Request>(),
        }
    }

    /// Shows the request to a domain, and lets it write the outbox; where the outbox lies in its
    /// window.
    ///
    /// # Errors
    /// The areas are plain memory, or there is no room in the window.
    pub fn share(&self, domain: &Domain) -> Result<View, ShareError> {
        let mut view = View(self.view);
        if let (Area::Shared(request), Area::Shared(outbox)) = (&self.request, &self.outbox) {
            domain.share(request, Prot::Read)?;
            let offset = domain.share(outbox, Prot::ReadWrite)?;
            view = View((domain.base() + u64::from(offset.0)) as *mut u8);
        }
        Ok(view)
    }

    /// The view of plain memory.
    pub fn own_view(&self) -> View {
        View(self.view)
    }

    /// From now on the outbox is looked at as the module sees it whose view this is: the processor
    /// hands on quickly only what was written at the very address that is read.
    ///
    /// # Safety
    /// The module's domain, if it has one, neither moves to another window nor goes before another
    /// view is set.
    pub unsafe fn look(&mut self, view: View) {
        self.view = view.0;
    }

    /// The request, as modules get it.
    pub fn place(&self) -> *mut Request {
        self.request.as_ptr().cast()
    }

    /// Forgets the last request and begins a new one.
    pub fn begin(&mut self, number: u64) {
        let empty = Text {
            at: self.request.as_ptr(),
            size: 0,
        };
        let request = self.place();
        // SAFETY: the area is larger than a request, page-aligned, and written by nobody else.
        unsafe {
            for field in [
                &raw mut (*request).method,
                &raw mut (*request).uri,
                &raw mut (*request).address,
                &raw mut (*request).user,
                &raw mut (*request).file,
                &raw mut (*request).kind,
                &raw mut (*request).body,
            ] {
                field.write(empty);
            }
            (*request).count = 0;
            (*request).number = number;
            (*request).outbox = self.outbox.as_ptr();
        }
        self.used = size_of::<Request>();
    }

    /// Copies a text into the area; `None` if it is full.
    fn store(&mut self, text: &[u8]) -> Option<Text> {
        let end = self
            .used
            .checked_add(text.len())
            .filter(|end| *end <= ROOM)?;
        // SAFETY: the range was just checked to lie in the area.
        let at = unsafe {
            let at = self.request.as_ptr().add(self.used);
            at.copy_from_nonoverlapping(text.as_ptr(), text.len());
            at
        };
        self.used = end;
        Some(Text {
            at,
            size: text.len() as u64,
        })
    }

    /// Replaces a text of the request.
    pub fn set(&mut self, field: Field, text: &[u8]) -> Option<()> {
        let text = self.store(text)?;
        let request = self.place();
        // SAFETY: as in `begin`.
        unsafe {
            match field {
                Field::Method => (*request).method = text,
                Field::Uri => (*request).uri = text,
                Field::Address => (*request).address = text,
                Field::User => (*request).user = text,
                Field::File => (*request).file = text,
                Field::Type => (*request).kind = text,
                Field::Body => (*request).body = text,
            }
        }
        Some(())
    }

    /// A copy of a text of the request.
    pub fn get(&self, field: Field) -> Vec<u8> {
        let request = self.place();
        // SAFETY: as in `begin`; texts are made by `store` and `begin` only, and lie in the area.
        unsafe {
            let text = match field {
                Field::Method => (*request).method,
                Field::Uri => (*request).uri,
                Field::Address => (*request).address,
                Field::User => (*request).user,
                Field::File => (*request).file,
                Field::Type => (*request).kind,
                Field::Body => (*request).body,
            };
            std::slice::from_raw_parts(text.at, text.size as usize).to_vec()
        }
    }

    /// Adds a header.
    pub fn add_header(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        let both = [self.store(name)?, self.store(value)?];
        let request = self.place();
        // SAFETY: as in `begin`; the index is checked.
        unsafe {
            let count = (*request).count as usize;
            *(*request).header.get_mut(count)? = both;
            (*request).count += 1;
        }
        Some(())
    }

    /// Copies the first bytes of the outbox.
    pub fn take(&self, size: usize, to: &mut Vec<u8>) -> Option<()> {
        if size > OUTBOX {
            return None;
        }
        to.clear();
        to.reserve(size);
        // SAFETY: the outbox has that many bytes, and the vector room for them; the modules' code
        // does not run meanwhile.
        unsafe {
            to.as_mut_ptr().copy_from_nonoverlapping(self.view, size);
            to.set_len(size);
        }
        Some(())
    }

    /// Writes an answer where the question was.
    pub fn answer(&self, text: &[u8]) -> Option<i64> {
        if text.len() > OUTBOX {
            return None;
        }
        // SAFETY: the outbox has that many bytes.
        unsafe {
            self.view
                .copy_from_nonoverlapping(text.as_ptr(), text.len());
        }
        Some(text.len() as i64)
    }
}
