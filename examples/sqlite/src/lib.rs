//! SQL that nobody has read, run by SQLite in a domain.
//!
//! The statements may do what SQL can do to the files that the domain's policy grants, and nothing
//! else: a hole in SQLite, or a statement that never ends, is an error of this call.
#![forbid(unsafe_code)]

use postern::{AllocError, CallError, Domain, Func, MemoryError, Offset, SymbolError};

/// Why there are no rows.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// SQLite's own error.
    #[error("{message} (SQLite's error {status})")]
    Sql {
        /// SQLite's number.
        status: i32,
        /// What it says.
        message: String,
    },
    /// The call was ended: the deadline, or a fault.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The statements or the rows could not be copied.
    #[error(transparent)]
    Window(#[from] MemoryError),
}

impl From<AllocError> for QueryError {
    fn from(error: AllocError) -> QueryError {
        match error {
            AllocError::Memory(error) => error.into(),
            AllocError::Call(error) => error.into(),
        }
    }
}

/// A database that is open in a domain.
pub struct Database {
    domain: Domain,
    open: Func<fn(Offset) -> i32>,
    run: Func<fn(Offset) -> i32>,
    text: Func<fn() -> Offset>,
    size: Func<fn() -> u64>,
    close: Func<fn() -> i32>,
}

impl Database {
    /// Takes a domain of the extension that postern.toml describes; no database is open.
    ///
    /// # Errors
    /// It is another extension.
    pub fn new(domain: Domain) -> Result<Database, SymbolError> {
        Ok(Database {
            open: domain.func("query_open")?,
            run: domain.func("query_run")?,
            text: domain.func("query_text")?,
            size: domain.func("query_size")?,
            close: domain.func("query_close")?,
            domain,
        })
    }

    /// Opens a database: a path as the policy has it, or `:memory:`.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn open(&self, path: &str) -> Result<(), QueryError> {
        self.with_text(path, &self.open).map(drop)
    }

    /// Runs statements. Rows become lines, columns are separated by `|`.
    ///
    /// # Errors
    /// See [`QueryError`]. After a fault the domain has to be reset and the database opened again.
    pub fn run(&self, statements: &str) -> Result<Vec<u8>, QueryError> {
        self.with_text(statements, &self.run)
    }

    /// Closes the database.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn close(&self) -> Result<(), QueryError> {
        match self.close.call()? {
            0 => Ok(()),
            status => Err(QueryError::Sql {
                status,
                message: "the database cannot be closed".to_owned(),
            }),
        }
    }

    /// The domain, to reset and to look at.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Calls `function` with a text, and copies the result out.
    fn with_text(
        &self,
        text: &str,
        function: &Func<fn(Offset) -> i32>,
    ) -> Result<Vec<u8>, QueryError> {
        let place = self.domain.alloc_from(format!("{text}\0").as_bytes())?;
        let status = function.call(place)?;
        self.domain.free(place)?;
        // Numbers of an extension: read_vec is what checks them, and its window bounds the copy.
        let size = usize::try_from(self.size.call()?).unwrap_or(usize::MAX);
        let bytes = match size {
            0 => Vec::new(),
            _ => self.domain.read_vec(self.text.call()?, size)?,
        };
        if status == 0 {
            return Ok(bytes);
        }
        let message = String::from_utf8_lossy(&bytes).into_owned();
        Err(QueryError::Sql { status, message })
    }
}
