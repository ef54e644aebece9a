//! A filter's machine code, judged, and as an extension file.

use alloc::vec::Vec;

use postern_image::{ImageBuilder, ImageError};
use postern_verifier::{
    Bounds, Facts, Layout, Profile, Segment, Violation, bounded_buffer_len, verify, verify_within,
};

use crate::encode::Site;

/// The function's types as the extension ABI spells them.
pub const SIGNATURE: &str = "I(pII)";
/// The same of code for the kernel: what its packet hooks call, `long filter(packet, captured,
/// wire, hook)`.
pub const KERNEL_SIGNATURE: &str = "l(pLLl)";

/// Machine code of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    text: Vec<u8>,
    site: Site,
}

impl Code {
    pub(crate) fn new(site: Site, text: Vec<u8>) -> Code {
        Code { text, site }
    }

    /// The bytes; the function begins with the first one, wherever they lie.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// What the verifier says of it in its profile `Bounded`: that it ends by itself, and after how
    /// many instructions at most. Of code for the kernel, what its profile says, which is the same.
    ///
    /// # Errors
    /// The code is refused, which is a mistake of this crate.
    pub fn verify(&self) -> Result<Facts, Violation> {
        match self.site {
            Site::Process => self.verify_within(Bounds::MAX),
            Site::Kernel => {
                let mut buffer = alloc::vec![0; bounded_buffer_len(self.text.len())];
                verify(&self.text, &self.layout(), Profile::Kernel, &mut buffer)
            }
        }
    }

    /// As [`Code::verify`] in the profile `Bounded`, and refuses code that could run more
    /// instructions, or nest calls deeper, than `bounds` says: for hosts whose users bring the
    /// expressions.
    ///
    /// # Errors
    /// The code is above the bounds; or as there.
    pub fn verify_within(&self, bounds: Bounds) -> Result<Facts, Violation> {
        let mut buffer = alloc::vec![0; bounded_buffer_len(self.text.len())];
        verify_within(&self.text, &self.layout(), bounds, &mut buffer)
    }

    fn layout(&self) -> Layout {
        Layout {
            segment: match self.site {
                Site::Process => Segment::Gs,
                Site::Kernel => Segment::Fs,
            },
            ..Layout::new(0)
        }
    }

    /// An extension file with the code as its function `filter`.
    ///
    /// # Errors
    /// The code is too long for a window.
    pub fn image(&self) -> Result<Vec<u8>, ImageError> {
        self.builder().build()
    }

    pub(crate) fn builder(&self) -> ImageBuilder {
        let signature = match self.site {
            Site::Process => SIGNATURE,
            Site::Kernel => KERNEL_SIGNATURE,
        };
        let mut builder = ImageBuilder::new(self.text());
        builder
            .segment(self.layout().segment)
            .export("filter", 0, signature.parse().ok());
        builder
    }
}
