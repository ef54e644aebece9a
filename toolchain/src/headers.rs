//! Which libraries' headers a source sees: the C++ library's, the compiler's own, then the C
//! library's.

use crate::archive::LibraryError;
use crate::compile::{Headers, Language};
use crate::cxx::CxxLibrary;
use crate::sysroot::Sysroot;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The language of the sources.
    pub language: Language,
    /// There may be no C library. For C++ there may be none in any case, and then there is no C++
    /// library either.
    pub freestanding: bool,
    /// The C++ library's headers are not to be seen, though it is there.
    pub no_cxx_headers: bool,
}

impl Wanted {
    /// Hosted sources in `language`.
    pub fn of(language: Language) -> Self {
        Self {
            language,
            freestanding: false,
            no_cxx_headers: false,
        }
    }

    /// The headers, made if need be.
    ///
    /// # Errors
    /// A library's source is missing or a file cannot be written.
    pub fn find(self) -> Result<Headers, LibraryError> {
        let cxx = self.language == Language::Cxx;
        let own = self.language.own_headers()?;
        let mut headers = Headers::default();
        let sysroot = match Sysroot::headers() {
            Ok(sysroot) => Some(sysroot),
            Err(LibraryError::NoSource) if self.freestanding || cxx => None,
            Err(error) => return Err(error),
        };
        if cxx
            && let Some(sysroot) = &sysroot
            && let Some(library) = CxxLibrary::find(&own, sysroot)?
        {
            headers.cxx = true;
            if !self.no_cxx_headers {
                headers.folders.extend(library.include());
            }
        }
        headers.folders.push(own);
        headers
            .folders
            .extend(sysroot.map(|sysroot| sysroot.include()));
        Ok(headers)
    }
}
