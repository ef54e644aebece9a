//! The interface as the book shows it: a table of calls with what they cost, made of the interface
//! itself and of the [budgets](crate::budgets).

use std::fmt::Write;

use postern_aegis_abi::Error;
use postern_aegis_abi::call::{Description, TABLE};
use postern_aegis_abi::handler::SERVICES;

use crate::budgets;

/// The name of a call's figure: `TakeSlice` is `take-slice`.
fn figure(call: &str) -> String {
    match call {
        "CallSynchronous" => return "synchronous".to_owned(),
        "CallAsynchronous" => return "asynchronous".to_owned(),
        "MapMany" => return "map-100".to_owned(),
        "ProtectMany" => return "protect-100".to_owned(),
        _ => {}
    }
    let mut name = String::new();
    for letter in call.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// A row of the table of calls.
fn row(description: &Description) -> String {
    let (number, name) = (description.call as u8, description.name);
    let arguments = description.arguments.join(", ");
    let what = description.what.trim();
    let errors: Vec<String> = description
        .errors
        .iter()
        .map(|error| format!("{error:?}"))
        .collect();
    let errors = match errors.is_empty() {
        true => "none".to_owned(),
        false => errors.join(", "),
    };
    let cost = budgets::of(&figure(name)).map_or("–".to_owned(), |cost| cost.to_string());
    let cost = match name {
        "MapMany" | "ProtectMany" => format!("{cost} for 100"),
        _ => cost,
    };
    let needs = description.needs;
    let path = if description.stack { "" } else { " (no stack)" };
    format!("| {number} | `{name}({arguments})`{path} | {what} | {needs} | {errors} | {cost} |\n")
}

/// The table of calls.
pub fn calls() -> String {
    let head = "| | call | what | needs | errors | instructions |\n|---|---|---|---|---|---|\n";
    let rows: String = TABLE.iter().map(row).collect();
    format!("{head}{rows}")
}

/// The table of errors.
pub fn errors() -> String {
    let mut table = "| result | error | what |\n|---|---|---|\n".to_owned();
    for error in Error::ALL {
        let number = *error as i64;
        writeln!(table, "| {number} | `{error:?}` | {error} |").ok();
    }
    table
}

/// The table of handlers' services.
pub fn services() -> String {
    let mut table = "| service | what | errors | ends the run |\n|---|---|---|---|\n".to_owned();
    for service in SERVICES {
        let errors: Vec<String> = service
            .errors
            .iter()
            .map(|error| format!("{error:?}"))
            .collect();
        let (signature, what, ends) = (service.signature, service.what, service.ends);
        let errors = errors.join(", ");
        writeln!(table, "| `{signature}` | {what} | {errors} | {ends} |").ok();
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_names_of_their_calls() {
        assert_eq!(figure("TakeSlice"), "take-slice");
        assert_eq!(figure("Null"), "null");
        let costs = TABLE
            .iter()
            .filter(|call| budgets::of(&figure(call.name)).is_some());
        assert!(costs.count() > 25);
    }

    /// `aegis-machine calls` prints what belongs there.
    #[test]
    fn the_book_has_the_interface_as_it_is() {
        let page = crate::place::repository().join("docs/src/reference/aegis-calls.md");
        let page = std::fs::read_to_string(page).expect("the page");
        for line in calls().lines().chain(errors().lines()) {
            assert!(
                page.contains(line),
                "reference/aegis-calls.md lacks:\n{line}"
            );
        }
        let named = |line: &&str| {
            let second = line.split('|').nth(2).unwrap_or_default();
            line.starts_with("| ") && second.trim().starts_with('`')
        };
        let rows = page.lines().filter(named);
        assert_eq!(
            rows.count(),
            TABLE.len() + Error::ALL.len(),
            "a row too many"
        );
    }

    /// The page has the services as they are.
    #[test]
    fn the_book_has_the_services_of_handlers() {
        let page = crate::place::repository().join("docs/src/reference/aegis-handlers.md");
        let page = std::fs::read_to_string(page).expect("the page");
        assert!(page.contains(&services()), "it is:\n{}", services());
    }

    /// What the guides show are roots that tests boot.
    #[test]
    fn the_guides_show_programs_that_are_there() {
        let read = |path: &str| {
            let path = crate::place::repository().join(path);
            std::fs::read_to_string(path).expect("a file of the repository")
        };
        for (program, page) in [("hello", "aegis"), ("echo", "aegis-devices")] {
            let program = read(&format!("kernel/aegis/programs/src/{program}/main.rs"));
            let code = &program[program.find("#![no_std]").expect("its first line")..];
            assert!(read(&format!("docs/src/guide/{page}.md")).contains(code));
        }
    }
}
