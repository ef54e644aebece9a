//! What is wrong with a file, once for each cause: an instruction that cannot be confined may stand
//! in it a hundred times, above all where a macro or an inline function has it.

use crate::assembly::StatementKind;
use crate::diagnostic::Diagnostic;
use crate::rewrite::program::Program;

/// Causes that are told of at most.
const MOST: usize = 50;
/// Functions that are named for each at most.
const NAMED: usize = 3;

/// One cause, where it was met first.
struct Cause {
    first: Diagnostic,
    /// How often it was met after that.
    more: usize,
    /// In which functions, without doubles.
    functions: Vec<String>,
}

/// What was found, in the order of the source.
#[derive(Default)]
pub(super) struct Causes(Vec<Cause>);

impl Causes {
    /// Adds what is wrong with the statement at `index`. The same words are the same cause.
    pub fn add(&mut self, program: &Program, index: usize, message: String) {
        let Some(cause) = self
            .0
            .iter_mut()
            .find(|cause| cause.first.message == message)
        else {
            if self.0.len() < MOST {
                self.0.push(Cause {
                    first: Diagnostic::new(&program.statements[index].place, message),
                    more: 0,
                    functions: Vec::new(),
                });
            }
            return;
        };
        cause.more += 1;
        if let Some(name) = function(program, index)
            && !cause.functions.iter().any(|other| other == name)
        {
            cause.functions.push(name.to_owned());
        }
    }

    /// A message for each cause.
    pub fn errors(self) -> Vec<Diagnostic> {
        self.0.into_iter().map(Cause::told).collect()
    }
}

impl Cause {
    fn told(self) -> Diagnostic {
        let mut told = self.first;
        if self.more == 0 {
            return told;
        }
        let mut functions = self.functions;
        let others = functions.len().saturating_sub(NAMED);
        functions.truncate(NAMED);
        let functions: Vec<String> = functions.iter().map(|name| format!("`{name}`")).collect();
        let place = match (functions.is_empty(), others) {
            (true, _) => String::new(),
            (_, 0) => format!(", in {}", functions.join(", ")),
            (_, n) => format!(", in {} and {n} more functions", functions.join(", ")),
        };
        told.message += &format!(" (and {} more{place})", self.more);
        told
    }
}

/// The function in which the statement at `index` lies.
fn function<'a>(program: &Program<'a>, index: usize) -> Option<&'a str> {
    let after = program
        .function_starts
        .partition_point(|start| *start <= index);
    let start = program.function_starts[after.checked_sub(1)?];
    match &program.statements[start].kind {
        StatementKind::Label(name) if program.section_of[start] == program.section_of[index] => {
            Some(name)
        }
        _ => None,
    }
}
