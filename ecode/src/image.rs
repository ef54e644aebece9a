//! Units as an extension file, for hosts and tools that load files.
//!
//! Invariant: what a unit imports is what another unit exports by that name, or an import of the
//! file. Whoever loads the file has the verifier judge its text, here as with any file.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use postern_image::{ImageBuilder, ImageError, Segment};
use postern_verifier::relocation::{Places, Section};
use postern_verifier::window::{FILL, KERNEL_CALLS, slot};

use postern_image::object::{Import, Object, PlaceError, Symbol};

use crate::order::{self, Call, Disorder, Moved};

/// Units that have become a file.
#[derive(Clone, Debug)]
pub struct Linked {
    /// The extension file.
    pub file: Vec<u8>,
    /// Where each unit lies in the window. Of code for the kernel, whose functions are in an order
    /// of their own, [`Linked::offset`] tells where they are.
    pub places: Vec<Places>,
    /// Where the functions of each unit went, if they are in such an order.
    moved: Vec<Vec<Moved>>,
}

impl Linked {
    /// Offset in the window of a position in a unit's text.
    pub fn offset(&self, unit: usize, position: u32) -> u32 {
        let text = self.places.get(unit).map_or(0, |places| places.text);
        text.saturating_add(match self.moved.get(unit) {
            Some(moved) => order::moved(moved, position),
            None => position,
        })
    }
}

/// Why units cannot become one file.
#[derive(Clone, Debug)]
pub enum LinkError {
    /// Two units define this.
    Twice(String),
    /// A unit declares this function with one signature, another defines it with the other.
    Signature(String, String, String),
    /// An object that no unit defines; hosts provide functions only.
    Object(String),
    /// For the kernel: these call each other, the last one the first.
    Circle(Vec<Call>),
    /// For the kernel: so many calls are inside each other, which are more than there may be.
    Deep(Vec<Call>),
    /// The units do not fit a window.
    Place(PlaceError),
    /// No legal file can be made of them.
    Image(ImageError),
}

impl LinkError {
    /// The error, with the names of the sources that the units were made of, in their order: calls
    /// are told with file and line.
    pub fn show(&self, sources: &[&str]) -> String {
        let mut text = String::new();
        // Strings take everything.
        let _ = match self {
            LinkError::Circle(calls) => circle(calls, sources, &mut text),
            LinkError::Deep(calls) => deep(calls, sources, &mut text),
            other => write!(text, "{other}"),
        };
        text
    }
}

fn circle(calls: &[Call], sources: &[&str], text: &mut String) -> fmt::Result {
    for (number, call) in calls.iter().enumerate() {
        call.show(sources, text)?;
        let again = number > 0 && number + 1 == calls.len();
        text.write_str(if again { " again\n" } else { "\n" })?;
    }
    text.write_str(
        "code for the kernel has no recursion, for its calls are on the kernel's own stack: make it a loop, with an array for what is still to be done",
    )
}

fn deep(calls: &[Call], sources: &[&str], text: &mut String) -> fmt::Result {
    if let (Some(first), Some(last)) = (calls.first(), calls.last()) {
        first.show(sources, text)?;
        writeln!(
            text,
            ", and so on to `{}`, {} calls deep",
            last.callee,
            calls.len()
        )?;
    }
    write!(
        text,
        "code for the kernel may have {KERNEL_CALLS} calls inside each other, for they are on the kernel's own stack: return before the next is called"
    )
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Twice(name) => write!(f, "`{name}` is defined twice; make one static"),
            LinkError::Signature(name, wanted, found) => write!(
                f,
                "`{name}` is declared as {wanted} where it is used, and defined as {found}; declare it as it is defined"
            ),
            LinkError::Object(name) => {
                write!(
                    f,
                    "no source defines the object `{name}`; hosts provide functions only"
                )
            }
            LinkError::Circle(_) | LinkError::Deep(_) => f.write_str(&self.show(&[])),
            LinkError::Place(error) => error.fmt(f),
            LinkError::Image(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for LinkError {}

/// Makes one extension file of the units, with a data stack of 2^`stack_log2` bytes: functions that
/// are not static are its exports.
///
/// # Errors
/// If they do not fit together, or not into a window.
pub fn link(units: &[Object], stack_log2: u32) -> Result<Linked, LinkError> {
    link_through(units, stack_log2, Segment::Gs)
}

/// As [`link`], of units that were compiled with [`crate::Options::kernel`]: an image for the
/// kernel, in which callees stand behind their callers.
///
/// # Errors
/// As there; or functions call each other in a circle, or too deep.
pub fn link_for_kernel(units: &[Object], stack_log2: u32) -> Result<Linked, LinkError> {
    let exported = exported(units)?;
    // What does not fit together is told of the units as they are.
    imports(units, &exported)?;
    let ordered = order::together(units, &exported).map_err(|disorder| match disorder {
        Disorder::Circle(calls) => LinkError::Circle(calls),
        Disorder::Deep(calls) => LinkError::Deep(calls),
    })?;
    let linked = link_through(&[ordered.object], stack_log2, Segment::Fs)?;
    let of_all = linked.places.first().copied().unwrap_or_default();
    let places = ordered.starts.iter().map(|[rodata, data, bss]| Places {
        text: of_all.text,
        rodata: of_all.rodata + rodata,
        data: of_all.data + data,
        bss: of_all.bss + bss,
    });
    Ok(Linked {
        file: linked.file,
        places: places.collect(),
        moved: ordered.moved,
    })
}

fn link_through(units: &[Object], stack_log2: u32, segment: Segment) -> Result<Linked, LinkError> {
    let exported = exported(units)?;
    let imports = imports(units, &exported)?;
    // Where each section of each unit begins, from the beginning of all of them.
    let (mut text, mut rodata, mut data) = (Vec::new(), Vec::new(), Vec::new());
    let mut starts = Vec::new();
    for unit in units {
        let text_at = append(&mut text, &unit.text, FILL);
        starts.push((
            text_at,
            append(&mut rodata, &unit.rodata, 0),
            append(&mut data, &unit.data, 0),
        ));
    }
    append(&mut data, &[], 0);
    let mut bss = 0u64;
    let bss_starts: Vec<u64> = units
        .iter()
        .map(|unit| {
            let start = bss;
            bss += u64::from(unit.bss).next_multiple_of(ALIGN as u64);
            start
        })
        .collect();

    let mut builder = ImageBuilder::new(text.clone());
    builder
        .segment(segment)
        .stack_log2(stack_log2)
        .any_stack(true)
        .rodata(rodata.clone())
        .data(data.clone(), bss);
    for import in &imports.list {
        builder.import(&*import.name, import.signature.parse().ok());
    }
    let layout = builder.layout().map_err(LinkError::Image)?;
    let bss_at = layout.data + data.len() as u32;
    let places: Vec<Places> = starts
        .iter()
        .zip(bss_starts)
        .map(|(&(text, rodata, data), bss)| Places {
            text: layout.text + text as u32,
            rodata: layout.text_end + rodata as u32,
            data: layout.data + data as u32,
            bss: bss_at + bss as u32,
        })
        .collect();

    for ((unit, at), starts) in units.iter().zip(&places).zip(&starts) {
        let resolve = |import: &Import| match exported.get(&*import.name) {
            Some(&(index, symbol)) => Some(places[index].start(symbol.section) + symbol.offset),
            None => imports.numbers.get(&*import.name).copied().map(slot),
        };
        let placed = unit.place(at, resolve).map_err(LinkError::Place)?;
        text[starts.0..][..placed.text.len()].copy_from_slice(&placed.text);
        rodata[starts.1..][..placed.rodata.len()].copy_from_slice(&placed.rodata);
        data[starts.2..][..placed.data.len()].copy_from_slice(&placed.data);
        for symbol in &unit.symbols {
            if symbol.exported && symbol.section == Section::Text {
                let position = starts.0 as u32 + symbol.offset;
                builder.export(&*symbol.name, position, symbol.signature.parse().ok());
            }
        }
    }
    builder.text(text).rodata(rodata).data(data, bss);
    let file = builder.build().map_err(LinkError::Image)?;
    Ok(Linked {
        file,
        places,
        moved: Vec::new(),
    })
}

/// Alignment of the sections of a unit.
pub(crate) const ALIGN: usize = 64;

/// Appends a section at the next aligned place; returns that.
pub(crate) fn append(all: &mut Vec<u8>, bytes: &[u8], fill: u8) -> usize {
    let start = all.len().next_multiple_of(ALIGN);
    all.resize(start, fill);
    all.extend_from_slice(bytes);
    start
}

/// What units define for each other, by name: the unit's number and the symbol.
pub(crate) type Exported<'a> = BTreeMap<&'a str, (usize, &'a Symbol)>;

fn exported(units: &[Object]) -> Result<Exported<'_>, LinkError> {
    let mut exported = Exported::new();
    for (index, unit) in units.iter().enumerate() {
        for symbol in unit.symbols.iter().filter(|symbol| symbol.exported) {
            if exported.insert(&symbol.name, (index, symbol)).is_some() {
                return Err(LinkError::Twice(symbol.name.clone()));
            }
        }
    }
    Ok(exported)
}

/// What no unit defines: each once, and which number it has.
#[derive(Default)]
struct Imports<'a> {
    list: Vec<&'a Import>,
    numbers: BTreeMap<&'a str, u32>,
}

fn imports<'a>(units: &'a [Object], exported: &Exported<'_>) -> Result<Imports<'a>, LinkError> {
    let mut imports = Imports::default();
    for import in units.iter().flat_map(|unit| &unit.imports) {
        match exported.get(&*import.name) {
            Some((_, symbol)) if clash(&import.signature, &symbol.signature) => {
                return Err(LinkError::Signature(
                    import.name.clone(),
                    import.signature.clone(),
                    symbol.signature.clone(),
                ));
            }
            Some(_) => {}
            None if !import.function => return Err(LinkError::Object(import.name.clone())),
            None => {
                let number = imports.list.len() as u32;
                if *imports.numbers.entry(&import.name).or_insert(number) == number {
                    imports.list.push(import);
                }
            }
        }
    }
    Ok(imports)
}

/// Whether two signatures are known and differ.
fn clash(a: &str, b: &str) -> bool {
    !a.is_empty() && !b.is_empty() && a != b
}
