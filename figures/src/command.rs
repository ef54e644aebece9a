//! What a user asks of the benchmark: which figures, in which form. The same for `postern bench`
//! and for the program that has all groups, so that one can hand its arguments on to the other.

use crate::Group;
use crate::figure::{self, Figure};
use clap::Args;
use std::fmt::Write as _;
use std::path::PathBuf;

/// What was asked for.
#[derive(Args, Clone, Debug, Default)]
pub struct Arguments {
    /// Only the groups and figures whose name begins so
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// All groups, those of the bench package too
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// Print the names of the groups
    #[arg(long, conflicts_with_all = ["names", "json", "check", "all"])]
    pub list: bool,
    /// Print an array of figures as JSON
    #[arg(long)]
    pub json: bool,
    /// Draw the groups that have pictures, as files of this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "list")]
    pub plot: Option<PathBuf>,
    /// Exit with 1 if a figure is short of its goal
    #[arg(long)]
    pub check: bool,
}

/// What was measured, in the form that was asked for.
pub struct Report {
    /// For stdout.
    pub text: String,
    /// A figure is short of its goal, and it was asked for whether one is.
    pub short: bool,
}

/// The group's name in `name`, and whether a figure's follows.
fn group_of(name: &str) -> (&str, bool) {
    name.split_once('.')
        .map_or((name, false), |(group, _)| (group, true))
}

/// Whether `name` asks for the group or for figures of it.
fn chooses(name: &str, group: &Group) -> bool {
    match group_of(name) {
        (wanted, true) => group.name == wanted,
        (wanted, false) => group.name.starts_with(wanted),
    }
}

impl Arguments {
    /// Whether every name is that of one of these groups or of a figure of theirs; so it is without
    /// names, unless all groups are asked for.
    pub fn names_only(&self, groups: &[Group]) -> bool {
        let known = |name: &String| groups.iter().any(|group| group.name == group_of(name).0);
        !self.all && self.names.iter().all(known)
    }

    /// The first name that chooses none of these groups.
    pub fn unknown(&self, groups: &[Group]) -> Option<&str> {
        let unknown = |name: &&str| !groups.iter().any(|group| chooses(name, group));
        self.names.iter().map(String::as_str).find(unknown)
    }

    /// Measures what was asked for: without names, every group that is possible here.
    pub fn measure(&self, groups: &[Group]) -> Result<Report, String> {
        if let Some(name) = self.unknown(groups) {
            return Err(no_figure(name, groups));
        }
        let directory = tempfile::tempdir()
            .map_err(|e| format!("cannot make a directory for what the benchmark builds: {e}"))?;
        let mut figures = Vec::new();
        for group in groups.iter().filter(|group| self.wants(group)) {
            let measured = (group.measure)(directory.path())
                .map_err(|error| format!("bench {}: {error}", group.name))?;
            let shown = measured.into_iter().filter(|figure| self.shows(figure));
            let shown: Vec<Figure> = shown.collect();
            if let Some(folder) = &self.plot {
                for chart in (group.draw)(&shown)
                    .iter()
                    .filter(|chart| chart.has_lines())
                {
                    chart.write(folder)?;
                }
            }
            figures.extend(shown);
        }
        let absent = |name: &&String| {
            !figures
                .iter()
                .any(|figure: &Figure| figure.name.starts_with(name.as_str()))
        };
        if let Some(name) = self.names.iter().find(absent) {
            return Err(no_figure(name, groups));
        }
        Ok(Report {
            text: match self.json {
                true => figure::json(&figures),
                false => figure::table(&figures),
            },
            short: self.check && figures.iter().any(|figure| figure.reached() == Some(false)),
        })
    }

    fn wants(&self, group: &Group) -> bool {
        match self.names.is_empty() {
            true => (group.possible)(),
            false => self.names.iter().any(|name| chooses(name, group)),
        }
    }

    fn shows(&self, figure: &Figure) -> bool {
        let begins = |name: &String| figure.name.starts_with(name.as_str());
        self.names.is_empty() || self.names.iter().any(begins)
    }
}

fn no_figure(name: &str, groups: &[Group]) -> String {
    format!(
        "no figure begins with `{name}`; the groups are {}",
        names(groups)
    )
}

/// The names of groups, as a sentence has them.
pub fn names(groups: &[Group]) -> String {
    let names: Vec<&str> = groups.iter().map(|group| group.name).collect();
    names.join(", ")
}

/// The names of groups and what they are about, in lines.
pub fn list(groups: &[Group]) -> String {
    let mut text = String::new();
    for group in groups {
        let _ = writeln!(text, "{:<10} {}", group.name, group.about);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: [Group; 3] = [
        Group::new("gates", "", |_| figures("gates")),
        Group::new("domains", "", |_| figures("domains")),
        Group {
            possible: || false,
            ..Group::new("serve", "", |_| Err("nothing serves".to_owned()))
        },
    ];

    fn figures(group: &str) -> crate::Measured {
        let figure = |name| Figure::plain(format!("{group}.{name}"), 1.0, "us", "");
        let short = figure("short").goal(figure::Goal::AtMost(0.5));
        Ok(vec![figure("entry"), short])
    }

    fn ask(names: &[&str]) -> Arguments {
        Arguments {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            json: true,
            check: true,
            ..Arguments::default()
        }
    }

    /// The names of the figures, and whether one is short.
    fn measured(names: &[&str]) -> (Vec<String>, bool) {
        let report = ask(names).measure(&GROUPS).unwrap();
        let rows: serde_json::Value = serde_json::from_str(&report.text).unwrap();
        let name = |row: &serde_json::Value| row["name"].as_str().unwrap().to_owned();
        (
            rows.as_array().unwrap().iter().map(name).collect(),
            report.short,
        )
    }

    #[test]
    fn names_choose_groups_and_figures_by_their_beginnings() {
        let (all, short) = measured(&[]);
        assert_eq!(all.len(), 4, "{all:?}");
        assert!(short);
        let chosen = (vec!["gates.entry".to_owned()], false);
        assert_eq!(measured(&["gates.en"]), chosen);
        let names = ["gates.entry", "domains.short"];
        assert_eq!(measured(&["domains.s", "gates.entry"]).0, names);
        assert_eq!(measured(&["dom"]).0, ["domains.entry", "domains.short"]);
    }

    #[test]
    fn a_name_that_nothing_has_is_an_error() {
        for names in [["gates", "gatez"], ["gates.entry", "gates.exit"]] {
            let error = ask(&names).measure(&GROUPS).err().unwrap();
            let wanted = format!(
                "no figure begins with `{}`; the groups are gates, domains, serve",
                names[1]
            );
            assert_eq!(error, wanted);
        }
    }

    #[test]
    fn what_is_impossible_here_is_left_out_unless_it_is_asked_for() {
        let error = ask(&["serve"]).measure(&GROUPS).err().unwrap();
        assert_eq!(error, "bench serve: nothing serves");
    }

    #[test]
    fn only_whole_names_of_groups_say_that_no_other_program_is_needed() {
        for (names, only) in [
            (&["gates", "domains.x"][..], true),
            (&[], true),
            (&["gat"], false),
            (&["gates", "ecode"], false),
        ] {
            assert_eq!(ask(names).names_only(&GROUPS), only, "{names:?}");
        }
        let all = Arguments {
            all: true,
            ..Arguments::default()
        };
        assert!(!all.names_only(&GROUPS));
    }
}
