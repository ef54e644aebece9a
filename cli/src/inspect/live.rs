//! `postern inspect --live`: the protection table of a running process.

use postern::{MemoryTable, TableDomain};
use serde::Serialize;

use crate::output::{self, Failure, Outcome, SUCCESS};

#[derive(Serialize)]
struct View<'a> {
    process: u32,
    columns: Vec<ColumnView<'a>>,
    rows: Vec<RowView<'a>>,
}

/// All domains of an image that may do the same everywhere.
#[derive(Serialize)]
struct ColumnView<'a> {
    domains: Vec<DomainView<'a>>,
}

#[derive(Serialize)]
struct DomainView<'a> {
    name: &'a str,
    image: &'a str,
    base: u64,
}

#[derive(Serialize)]
struct RowView<'a> {
    start: u32,
    end: u64,
    what: &'a str,
    is_area: bool,
    host: String,
    /// For each column: `-`, `r`, `rw` or `x`.
    cells: Vec<String>,
}

/// Prints the table of `process`, or of it what concerns the domains called `names`.
pub fn run(process: u32, names: &[String], json: bool) -> Outcome {
    let failure = |e: postern::TableError| Failure::unusable(e.to_string());
    let mut table = MemoryTable::of_process(process).map_err(failure)?;
    if !names.is_empty() {
        let is_named = |domain: &TableDomain| names.contains(&domain.name);
        if let Some(name) = names.iter().find(|name| !table.has_domain(name)) {
            return Err(Failure::unusable(format!(
                "process {process} has no domain `{name}` (now, and as the table has its name: at most 63 bytes)"
            )));
        }
        table.retain(is_named);
    }
    if json {
        output::print_json(&view(&table))?;
    } else {
        output::print(&table.to_string())?;
    }
    Ok(SUCCESS)
}

fn view(table: &MemoryTable) -> View<'_> {
    let columns = table.columns.iter().map(|column| {
        let domains = column.domains.iter().map(|d| DomainView {
            name: &d.name,
            image: &d.image,
            base: d.base,
        });
        ColumnView {
            domains: domains.collect(),
        }
    });
    let rows = table.rows.iter().map(|row| RowView {
        start: row.start,
        end: row.end,
        what: &row.what,
        is_area: row.is_area,
        host: row.host.to_string(),
        cells: (0..table.columns.len())
            .map(|column| row.cell(column).to_string())
            .collect(),
    });
    View {
        process: table.process,
        columns: columns.collect(),
        rows: rows.collect(),
    }
}
