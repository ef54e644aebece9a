//! `confined-sqlite`: runs SQL on a database file by a SQLite that sees the file's folder and
//! nothing else.
//!
//! `cargo run --release -p postern-example-sqlite -- /tmp/books/all.db "select title from book"`
#![allow(missing_docs)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use postern::{Access, Domain, Image, Policy, Rules};
use postern_example_sqlite::Database;
use postern_toolchain::project::{Options, Project};

/// Run SQL on a database file by a confined SQLite
#[derive(Parser)]
#[command(name = "confined-sqlite")]
struct Arguments {
    /// The database; its folder is granted, since SQLite keeps its journal there. Or `:memory:`
    database: PathBuf,
    /// Statements
    sql: Vec<String>,
    /// Grant the folder for reading only
    #[arg(long)]
    read_only: bool,
    /// Longest time of a statement, in seconds
    #[arg(long, default_value_t = 10)]
    deadline: u64,
    /// The extension, as `postern build` makes it; without it, it is built now if need be
    #[arg(long)]
    extension: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("confined-sqlite: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let extension = match &arguments.extension {
        Some(path) => path.clone(),
        None => {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
            let options = Options::new(folder.join("build"));
            Project::load(folder)?
                .build(&options, &mut |_| {})?
                .extension
        }
    };
    let (policy, name) = if arguments.database == Path::new(":memory:") {
        (Policy::compute(), ":memory:".to_owned())
    } else {
        let file = arguments
            .database
            .file_name()
            .ok_or("the database is a file")?;
        let folder = match arguments.database.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let access = if arguments.read_only {
            Access::Read
        } else {
            Access::ReadWrite
        };
        let rules = Rules::new().grant("/data", folder, access)?;
        (
            Policy::files(rules),
            format!("/data/{}", file.to_string_lossy()),
        )
    };
    let domain = Domain::builder(&Image::load(extension)?)
        .deadline(Some(Duration::from_secs(arguments.deadline)))
        .policy(policy)
        .build()?;
    let database = Database::new(domain)?;
    database.open(&name)?;
    for statements in &arguments.sql {
        let rows = database.run(statements)?;
        std::io::stdout().write_all(&rows)?;
    }
    Ok(database.close()?)
}
