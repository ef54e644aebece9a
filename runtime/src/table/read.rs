//! Reading the table: names from the runtime's records, protections from the kernel, of this or of
//! another process.

use super::*;
use crate::maps::{self, Mapping};
use crate::share::LOWEST as LOWEST_AREA;
use postern_verifier::window::{INFO, WINDOW_SIZE};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::fs::FileExt;
use std::path::Path;
use thiserror::Error;

/// The table could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableError {
    /// No such process, or one of another user.
    #[error("cannot look at process {process}: {source}; it must be alive, and yours (or be root)")]
    Process {
        /// Its number.
        process: u32,
        /// Why.
        source: std::io::Error,
    },
    /// A process without Postern.
    #[error(
        "process {0} shows no table: it has not used Postern yet, or has closed descriptors that are not its own"
    )]
    NoTable(u32),
    /// A process with another version.
    #[error(
        "the table of process {process} has version {version}, not 1; use that version's `postern`"
    )]
    Version {
        /// Its number.
        process: u32,
        /// The version found.
        version: u32,
    },
}

/// What a domain may do with a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Read.
    pub read: bool,
    /// Write.
    pub write: bool,
    /// Execute.
    pub execute: bool,
}

/// A domain in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableDomain {
    /// Its name, as much as the table holds (63 bytes).
    pub name: String,
    /// Its image's name (47 bytes).
    pub image: String,
    /// Address of offset 0.
    pub base: u64,
}

/// A column: all domains of an image that may do the same everywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Column {
    /// At least one, by base.
    pub domains: Vec<TableDomain>,
}

/// A row: a range of offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// First offset.
    pub start: u32,
    /// Behind the last one, up to 2^32.
    pub end: u64,
    /// The area's name, or what the range is in windows that have it.
    pub what: String,
    /// Whether it is a shared area.
    pub is_area: bool,
    /// What the host may do through its view of the area.
    pub host: Cell,
    pub(super) cells: BTreeMap<usize, Cell>,
}

impl Row {
    /// What the domains of a column may do.
    pub fn cell(&self, column: usize) -> Cell {
        self.cells.get(&column).copied().unwrap_or_default()
    }
}

/// The table of a process: its rows are ranges of offsets, its columns domains. A snapshot, which
/// others may be changing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryTable {
    /// Number of the process.
    pub process: u32,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, ascending.
    pub rows: Vec<Row>,
}

/// The table of this process: [`MemoryTable::of_process`].
///
/// # Errors
/// As there.
pub fn memory_table() -> Result<MemoryTable, TableError> {
    MemoryTable::of_process(std::process::id())
}

/// Whether a descriptor's link is to a table.
pub(super) fn is_table(link: &Path) -> bool {
    let name = FILE.to_str().unwrap_or_default();
    link.to_str()
        .is_some_and(|l| l.starts_with(&format!("/memfd:{name}")))
}

/// A part of a process's window, as the kernel has it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Piece {
    start: u32,
    end: u64,
    cell: Cell,
    what: &'static str,
}

/// An area's record.
struct NamedArea {
    start: u32,
    end: u32,
    name: String,
}

/// What a table's records say.
#[derive(Default)]
struct Records {
    arenas: Vec<u64>,
    domains: Vec<TableDomain>,
    areas: Vec<NamedArea>,
}

impl MemoryTable {
    /// The table of a process of the same user. It is not disturbed, nor does it notice.
    ///
    /// # Errors
    /// No such process, none that may be looked at, or none with Postern in it.
    pub fn of_process(process: u32) -> Result<MemoryTable, TableError> {
        let failed = |source| TableError::Process { process, source };
        let mut records = Records::default();
        let mut found = false;
        for entry in std::fs::read_dir(format!("/proc/{process}/fd")).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            // A descriptor that is closed meanwhile is none.
            if std::fs::read_link(&path).is_ok_and(|link| is_table(&link))
                && let Ok(file) = File::open(&path)
            {
                found |= records.add(&file, process)?;
            }
        }
        if !found {
            return Err(TableError::NoTable(process));
        }
        let mappings = maps::list(&process.to_string()).map_err(failed)?;
        Ok(assemble(process, records, &mappings))
    }

    /// Whether a domain has this name.
    pub fn has_domain(&self, name: &str) -> bool {
        let mut domains = self.columns.iter().flat_map(|column| &column.domains);
        domains.any(|domain| domain.name == name)
    }

    /// Keeps the domains that `keep` likes, and the rows where one of them may do something.
    pub fn retain(&mut self, mut keep: impl FnMut(&TableDomain) -> bool) {
        let mut kept = Vec::new();
        for column in &mut self.columns {
            column.domains.retain(&mut keep);
            kept.push(!column.domains.is_empty());
        }
        let places: Vec<usize> = (0..kept.len()).filter(|&column| kept[column]).collect();
        self.columns.retain(|column| !column.domains.is_empty());
        for row in &mut self.rows {
            let cells = places.iter().enumerate();
            let cells = cells.filter_map(|(to, from)| Some((to, *row.cells.get(from)?)));
            row.cells = cells.collect();
        }
        self.rows.retain(|row| !row.cells.is_empty());
    }
}

impl Records {
    /// Adds what a file says, if it is a table of this very process and not one that a forked child
    /// has from its parent.
    fn add(&mut self, file: &File, process: u32) -> Result<bool, TableError> {
        let read = |at: usize, bytes: usize| {
            let mut buffer = vec![0; bytes];
            let read = file.read_exact_at(&mut buffer, at as u64);
            read.map(|()| buffer)
                .map_err(|source| TableError::Process { process, source })
        };
        let header = read(0, HEADER)?;
        let word = |bytes: &[u8], at: usize| {
            u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
        };
        let long = |bytes: &[u8], at: usize| {
            u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
        };
        if header[..8] != MAGIC || !is_number_of(word(&header, 12), process) {
            return Ok(false);
        }
        let version = word(&header, 8);
        if version != VERSION {
            return Err(TableError::Version { process, version });
        }
        let [domains, areas] = [(24, MAX_DOMAINS), (28, MAX_AREAS)]
            .map(|(at, most)| (word(&header, at) as usize).min(most));
        if long(&header, 16) != 0 {
            self.arenas.push(long(&header, 16));
        }
        for record in read(DOMAINS, domains * DOMAIN)?.chunks_exact(DOMAIN) {
            if long(record, 0) != 0 {
                let [name, image] = DOMAIN_NAMES.map(|place| get_name(&record[place]));
                let base = long(record, 8);
                self.domains.push(TableDomain { name, image, base });
            }
        }
        for record in read(AREAS, areas * AREA)?.chunks_exact(AREA) {
            let (start, end) = (word(record, 0), word(record, 4));
            if start != 0 {
                let name = get_name(&record[AREA_NAME]);
                self.areas.push(NamedArea { start, end, name });
            }
        }
        Ok(true)
    }
}

/// Whether a process that calls itself `own` is the one that is `process` here, where it may be in
/// a namespace of its own.
fn is_number_of(own: u32, process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let innermost = numbers.and_then(|n| n.split_whitespace().last()?.parse().ok());
    innermost.unwrap_or(process) == own
}

fn get_name(room: &[u8]) -> String {
    let bytes = room.get(1..1 + usize::from(room[0])).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// The accessible pieces of the window at `base`, which the mappings of `window` are.
fn pieces<'a>(base: u64, window: impl Iterator<Item = &'a Mapping>) -> Vec<Piece> {
    let mut list: Vec<Piece> = Vec::new();
    // Whether the mapping before was the image's data, behind which the heap is.
    let mut after_data = false;
    for m in window {
        let start = m.start.saturating_sub(base).max(INFO.into()) as u32;
        let end = m.end.saturating_sub(base).min(WINDOW_SIZE);
        let anonymous = m.file.1 == 0;
        let what = match (m.execute, m.write) {
            _ if m.shared => "shared",
            (true, _) => "gate slots and text",
            (_, false) if start == INFO => "info page, and zeros up to the gate slots",
            (_, false) => "constants",
            _ if !anonymous => "data stack and data",
            _ if after_data => "zeroed data and heap",
            _ => "data stack of another thread",
        };
        after_data = !anonymous && m.write && !m.shared;
        let cell = Cell {
            read: m.read,
            write: m.write,
            execute: m.execute,
        };
        if cell == Cell::default() {
            continue;
        }
        list.push(Piece {
            start,
            end,
            cell,
            what,
        });
    }
    list
}

fn assemble(process: u32, mut records: Records, mappings: &[Mapping]) -> MemoryTable {
    // What a record says of a base is an allegation.
    let window = |base: u64| {
        let low = base.saturating_add(INFO.into());
        let high = base.saturating_add(WINDOW_SIZE);
        let first = mappings.partition_point(|m| m.end <= low);
        let inside = move |m: &&Mapping| m.start < high;
        pieces(base, mappings[first..].iter().take_while(inside))
    };
    // Domains that see the same are one column.
    let mut columns: Vec<Column> = Vec::new();
    let mut seen: Vec<Vec<Piece>> = Vec::new();
    let mut known: HashMap<(String, Vec<Piece>), usize> = HashMap::new();
    records.domains.sort_by_key(|d| d.base);
    for domain in records.domains {
        let list = window(domain.base);
        if list.is_empty() {
            // It went before the mappings were read.
            continue;
        }
        let column = *known
            .entry((domain.image.clone(), list.clone()))
            .or_insert_with(|| {
                columns.push(Column { domains: vec![] });
                seen.push(list);
                columns.len() - 1
            });
        columns[column].domains.push(domain);
    }
    let host: Vec<Piece> = records
        .arenas
        .iter()
        .flat_map(|&base| window(base))
        .collect();

    // A row ends wherever something begins or ends.
    let mut cuts: BTreeSet<u64> = BTreeSet::new();
    for piece in seen.iter().flatten().chain(&host) {
        cuts.extend([u64::from(piece.start), piece.end]);
    }
    for area in &records.areas {
        cuts.extend([u64::from(area.start), u64::from(area.end)]);
    }
    let cuts: Vec<u64> = cuts.into_iter().collect();
    let mut rows: Vec<Row> = cuts
        .windows(2)
        .map(|pair| Row {
            start: pair[0] as u32,
            end: pair[1],
            what: String::new(),
            is_area: false,
            host: Cell::default(),
            cells: BTreeMap::new(),
        })
        .collect();
    let covered = |start: u32, end: u64| {
        let first = cuts.partition_point(|&cut| cut < u64::from(start));
        first..cuts.partition_point(|&cut| cut < end)
    };
    for (column, list) in seen.iter().enumerate() {
        for piece in list {
            for row in &mut rows[covered(piece.start, piece.end)] {
                row.cells.insert(column, piece.cell);
                if !row.what.split(" / ").any(|what| what == piece.what) {
                    let separator = if row.what.is_empty() { "" } else { " / " };
                    row.what = format!("{}{separator}{}", row.what, piece.what);
                }
            }
        }
    }
    for piece in host.iter().filter(|p| p.start >= LOWEST_AREA) {
        for row in &mut rows[covered(piece.start, piece.end)] {
            row.host = piece.cell;
        }
    }
    for area in records.areas {
        for row in &mut rows[covered(area.start, area.end.into())] {
            // Below it may lie the heap of a domain that does not see the area.
            let below = row
                .what
                .split(" / ")
                .filter(|what| *what != "shared" && !what.is_empty());
            let name = format!("area `{}`", area.name);
            row.what = std::iter::once(&*name)
                .chain(below)
                .collect::<Vec<_>>()
                .join(" / ");
            row.is_area = true;
        }
    }
    rows.retain(|row| row.host != Cell::default() || !row.cells.is_empty());
    rows.dedup_by(|next, row| {
        let same = next.start as u64 == row.end
            && (&next.what, next.host, &next.cells) == (&row.what, row.host, &row.cells);
        if same {
            row.end = next.end;
        }
        same
    });
    MemoryTable {
        process,
        columns,
        rows,
    }
}
