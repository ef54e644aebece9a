//! The order of functions in an image for ring 0: callees behind their callers, so that the
//! verifier can see that no chain of calls is a circle ([`postern_verifier::Profile::Kernel`]).
//!
//! All inputs are put together to one object first, in which each section of text is still by
//! itself. Its relocations say which section branches to which. The sections then get names that
//! the linker's script sorts by. Where there is no such order, some functions call each other in a
//! circle, and they are named.
//!
//! Branches that stay in their section have no relocation. They are in order if the compiler made
//! the section of one function that does not call itself; otherwise the verifier says so.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use object::read::elf::ElfFile64;
use object::{
    Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, SectionIndex,
    SymbolKind,
};
use postern_verifier::window::KERNEL_CALLS;

use super::rename::rename;
use super::{LinkError, LinkInput, shown, symbols};
use crate::tools::Tool;

/// What is wrong with a circle, and what to do.
const NO_RECURSION: &str = "an image for the kernel has no recursion, for its calls are on the kernel's own stack: make it a loop, with an \
                                array for what is still to be done";

/// The error of a call that goes back within a section; `line` is where, as messages begin.
pub fn calls_back(line: &str, caller: &str, callee: &str) -> String {
    let what = match caller == callee {
        true => "itself".to_owned(),
        false => format!("`{callee}`, which stands before it in the same section"),
    };
    format!("{line}error: `{caller}` calls {what}\n{NO_RECURSION}")
}

/// A section of text.
#[derive(Debug)]
struct Node {
    section: SectionIndex,
    branches: Vec<Branch>,
    /// A branch of another section goes here.
    reached: bool,
}

/// A branch to another section of text, or from its place back into its own.
#[derive(Clone, Copy, Debug)]
struct Branch {
    /// Offset in its section.
    at: u64,
    to: usize,
    /// Offset in the section that it goes to.
    into: u64,
    /// It returns.
    call: bool,
}

type Elf<'d> = ElfFile64<'d, Endianness>;

/// Puts `inputs` together to one object, of what is reachable from `keep` if `collect`, whose
/// sections of text have names in the order in which they are to lie.
pub fn arrange(
    inputs: &[LinkInput],
    keep: &[String],
    collect: bool,
    scratch: &Path,
) -> Result<PathBuf, LinkError> {
    let whole = combine(inputs, keep, collect, scratch)?;
    let data = symbols::load(&whole)?;
    let file = symbols::parse(&whole, &data)?;
    let nodes = nodes(&file);
    let arranged = scratch.join("arranged.o");
    let named = |order: &[usize]| {
        let sections: Vec<usize> = order.iter().map(|node| nodes[*node].section.0).collect();
        let renamed = rename(&data, &sections).ok_or_else(|| LinkError::Malformed {
            path: whole.clone(),
            reason: "the linker wrote an object with too many sections to be ordered".to_owned(),
        })?;
        std::fs::write(&arranged, renamed).map_err(|source| LinkError::File {
            path: arranged.clone(),
            source,
        })
    };
    let order = order(&nodes);
    let chain = order.as_ref().map(|order| deepest(&nodes, order));
    if let (Ok(order), Ok(chain)) = (&order, &chain)
        && chain.len() <= KERNEL_CALLS as usize
    {
        named(order)?;
        return Ok(arranged);
    }
    // So that each section has a name of its own, by which its lines are found.
    named(&(0..nodes.len()).collect::<Vec<_>>())?;
    let places = Places {
        file: &file,
        nodes: &nodes,
        object: &arranged,
    };
    Err(LinkError::Order(match chain {
        Ok(chain) => places.depth(&chain),
        Err(circle) => places.circle(circle),
    }))
}

/// One object of all inputs.
fn combine(
    inputs: &[LinkInput],
    keep: &[String],
    collect: bool,
    scratch: &Path,
) -> Result<PathBuf, LinkError> {
    let whole = scratch.join("whole.o");
    let mut command = Tool::Linker.command();
    command.args(["-m", "elf_x86_64", "-r", "--unique=.text*"]);
    if collect && !keep.is_empty() {
        command.arg("--gc-sections");
    }
    for name in keep {
        command.arg("-u").arg(name);
    }
    command.arg("-o").arg(&whole).arg("--start-group");
    for input in inputs {
        match input {
            LinkInput::Object(path) | LinkInput::Archive(path) => command.arg(path),
            LinkInput::Option(option) => command.arg(option),
        };
    }
    command.arg("--end-group").run()?;
    Ok(whole)
}

/// The sections of text with their branches. Confined code has no other relative relocations.
fn nodes(file: &Elf) -> Vec<Node> {
    let mut nodes: Vec<Node> = file
        .sections()
        .filter(|section| section.kind() == object::SectionKind::Text)
        .map(|section| Node {
            section: section.index(),
            branches: Vec::new(),
            reached: false,
        })
        .collect();
    let numbers: std::collections::HashMap<SectionIndex, usize> = nodes
        .iter()
        .enumerate()
        .map(|(number, node)| (node.section, number))
        .collect();
    for number in 0..nodes.len() {
        let Ok(section) = file.section_by_index(nodes[number].section) else {
            continue;
        };
        let data = section.data().unwrap_or_default();
        for (at, relocation) in section.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else {
                continue;
            };
            let relative = matches!(
                relocation.kind(),
                object::RelocationKind::Relative | object::RelocationKind::PltRelative
            );
            let Some((to, symbol)) = file.symbol_by_index(symbol).ok().and_then(|symbol| {
                let to = *numbers.get(&symbol.section_index()?)?;
                Some((to, symbol))
            }) else {
                continue;
            };
            if !relative {
                continue;
            }
            nodes[number].branches.push(Branch {
                at,
                to,
                // The addend counts from the end of the field.
                into: symbol
                    .address()
                    .wrapping_add_signed(relocation.addend())
                    .wrapping_add(4),
                call: at > 0 && data.get(at as usize - 1) == Some(&CALL),
            });
            nodes[to].reached |= to != number;
        }
        nodes[number].branches.sort_by_key(|branch| branch.at);
    }
    nodes
}

/// The opcode of `call` with a distance.
const CALL: u8 = 0xe8;

/// The nodes, each behind all that branch to it; or branches, each of which goes to the node of the
/// next, and the last to that of the first.
///
/// Those that nobody branches to come first: what stands between two targets of calls counts as a
/// part of the first one, as the verifier sees it.
fn order(nodes: &[Node]) -> Result<Vec<usize>, Vec<(usize, Branch)>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        /// It is on the path.
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; nodes.len()];
    // From the last one to the first.
    let mut done = Vec::with_capacity(nodes.len());
    // The walk, without recursion: a node and how many of its branches were taken.
    let mut path: Vec<(usize, usize)> = Vec::new();
    for root in (0..nodes.len()).rev() {
        if marks[root] != Mark::New {
            continue;
        }
        marks[root] = Mark::Open;
        path.push((root, 0));
        while let Some((node, taken)) = path.last_mut() {
            let Some(branch) = nodes[*node].branches.get(*taken).copied() else {
                marks[*node] = Mark::Done;
                done.push(*node);
                path.pop();
                continue;
            };
            let from = *node;
            *taken += 1;
            match marks[branch.to] {
                Mark::Done => {}
                Mark::New => {
                    marks[branch.to] = Mark::Open;
                    path.push((branch.to, 0));
                }
                // A jump within a section is the function's own loop.
                Mark::Open if branch.to == from && !(branch.call && branch.into <= branch.at) => {}
                Mark::Open => {
                    let start = path.iter().position(|(node, _)| *node == branch.to);
                    let circle = path[start.unwrap_or(0)..].iter();
                    return Err(circle
                        .filter_map(|(node, taken)| {
                            Some((*node, *nodes[*node].branches.get(taken.checked_sub(1)?)?))
                        })
                        .collect());
                }
            }
        }
    }
    let (mut order, rest): (Vec<usize>, Vec<usize>) = done
        .into_iter()
        .rev()
        .partition(|node| !nodes[*node].reached);
    order.extend(rest);
    Ok(order)
}

/// The calls of the longest chain of calls.
fn deepest(nodes: &[Node], order: &[usize]) -> Vec<(usize, Branch)> {
    // How many calls follow a node, and the branch after which they do.
    let mut depths = vec![(0usize, None::<Branch>); nodes.len()];
    for &node in order.iter().rev() {
        for branch in &nodes[node].branches {
            if branch.to == node {
                continue;
            }
            let depth = depths[branch.to].0 + usize::from(branch.call);
            if depths[node].1.is_none() || depth > depths[node].0 {
                depths[node] = (depth, Some(*branch));
            }
        }
    }
    let mut chain = Vec::new();
    let mut at = order.iter().copied().max_by_key(|node| depths[*node].0);
    while let Some(node) = at {
        let branch = depths[node].1;
        chain.extend(
            branch
                .filter(|branch| branch.call)
                .map(|branch| (node, branch)),
        );
        at = branch.map(|branch| branch.to);
    }
    chain
}

/// Where branches are, for messages.
struct Places<'a, 'd> {
    file: &'a Elf<'d>,
    nodes: &'a [Node],
    /// The object, in which each section has its own name.
    object: &'a Path,
}

impl Places<'_, '_> {
    fn circle(&self, branches: &[(usize, Branch)]) -> String {
        if let [(node, branch)] = branches {
            let (line, name) = (self.line(*node, branch.at), self.function(*node, branch.at));
            let callee = self.function(branch.to, branch.into);
            return calls_back(&line, &name, &callee);
        }
        let mut text = String::new();
        for (k, (node, branch)) in branches.iter().enumerate() {
            let (line, name) = (self.line(*node, branch.at), self.function(*node, branch.at));
            let kind = if k == 0 { "error" } else { "note" };
            let verb = if branch.call { "calls" } else { "jumps to" };
            let again = if k + 1 == branches.len() {
                " again"
            } else {
                ""
            };
            let callee = self.function(branch.to, branch.into);
            let _ = writeln!(text, "{line}{kind}: `{name}` {verb} `{callee}`{again}");
        }
        text + NO_RECURSION
    }

    fn depth(&self, chain: &[(usize, Branch)]) -> String {
        const SHOWN: usize = 4;
        let name =
            |(node, branch): &(usize, Branch)| format!("`{}`", self.function(*node, branch.at));
        let mut names: Vec<String> = chain.iter().take(SHOWN).map(name).collect();
        names.push("…".to_owned());
        let last = chain.len().saturating_sub(SHOWN).max(SHOWN);
        names.extend(chain[last..].iter().map(name));
        if let Some((_, branch)) = chain.last() {
            names.push(format!("`{}`", self.function(branch.to, branch.into)));
        }
        let line = chain
            .first()
            .map_or(String::new(), |(node, branch)| self.line(*node, branch.at));
        format!(
            "{line}error: calls nest {} deep: {}\nan image for the kernel may have {KERNEL_CALLS} calls inside each other, for they are on the \
             kernel's own stack: let some of the functions be inlined, or return before the next is called",
            chain.len(),
            names.join(" calls ")
        )
    }

    /// The function that an offset of a section belongs to.
    fn function(&self, node: usize, at: u64) -> String {
        let section = self.nodes[node].section;
        let symbol = self
            .file
            .symbols()
            .filter(|symbol| {
                symbol.section_index() == Some(section)
                    && symbol.address() <= at
                    && matches!(
                        symbol.kind(),
                        SymbolKind::Text | SymbolKind::Label | SymbolKind::Unknown
                    )
                    && symbol.name().is_ok_and(|name| !name.is_empty())
            })
            .max_by_key(|symbol| (symbol.kind() == SymbolKind::Text, symbol.address()));
        let name = symbol.and_then(|symbol| symbol.name().ok());
        let section = || self.file.section_by_index(section).ok()?.name().ok();
        shown(name.or_else(section).unwrap_or("?"))
    }

    /// `file:line: ` of an instruction, if it is known.
    fn line(&self, node: usize, at: u64) -> String {
        let answer = Tool::Lines
            .command()
            .arg("-j")
            .arg(super::rename::name(node))
            .arg("-e")
            .arg(self.object)
            .arg(format!("{:#x}", at.saturating_sub(1)))
            .answer();
        match answer {
            Ok(line) if !line.starts_with('?') && !line.ends_with('?') && !line.ends_with(":0") => {
                // What follows is said of lines in loops.
                let place = line.split(" (").next().unwrap_or_default();
                format!("{}: ", crate::tools::printable(&relative(place)))
            }
            _ => String::new(),
        }
    }
}

/// A place in the working folder without that folder's name, as the compiler says it.
fn relative(place: &str) -> String {
    let folder = std::env::current_dir().unwrap_or_default();
    let rest = Path::new(place).strip_prefix(folder);
    rest.map_or(place.to_owned(), |rest| rest.display().to_string())
}
