//! A system of ours and Linux beside each other, in the layout of the paper's tables.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::said::{Figure, Figures, Trace};

/// A row of a table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What is measured, in words.
    pub what: &'static str,
    /// The figure's name in ours; none if it has no such thing.
    pub aegis: Option<&'static str>,
    /// The figure's name in Linux.
    pub linux: Option<&'static str>,
    /// Instructions that Aegis is to take at most.
    pub goal: Option<u64>,
    /// How many times fewer than Linux's they are to be.
    pub times: Option<u64>,
    /// Why there are more than Linux's.
    pub why: Option<&'static str>,
}

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its title, with the paper's number.
    pub title: &'static str,
    /// Its rows.
    pub rows: &'static [Row],
}

/// A row of both.
pub const fn row(what: &'static str, aegis: &'static str, linux: &'static str) -> Row {
    Row {
        what,
        aegis: Some(aegis),
        linux: Some(linux),
        goal: None,
        times: None,
        why: None,
    }
}

/// A row that Linux has not.
pub const fn only_aegis(what: &'static str, aegis: &'static str) -> Row {
    Row {
        what,
        aegis: Some(aegis),
        linux: None,
        goal: None,
        times: None,
        why: None,
    }
}

/// A row that only Linux has.
pub const fn only_linux(what: &'static str, linux: &'static str) -> Row {
    Row {
        what,
        aegis: None,
        linux: Some(linux),
        goal: None,
        times: None,
        why: None,
    }
}

impl Row {
    /// With a goal in instructions.
    pub const fn goal(mut self, goal: u64) -> Row {
        self.goal = Some(goal);
        self
    }

    /// With a goal beside Linux.
    pub const fn times(mut self, times: u64) -> Row {
        self.times = Some(times);
        self
    }

    /// With the reason why there is none.
    pub const fn why(mut self, why: &'static str) -> Row {
        self.why = Some(why);
        self
    }
}

/// All tables of Aegis.
pub const TABLES: &[Table] = &[
    Table {
        title: "Table 4: null procedure, null call",
        rows: &[
            row("procedure", "procedure", "procedure"),
            row("call without a stack; getpid", "null", "getpid").goal(30),
            row("call with a stack; getpid", "null-stack", "getpid"),
        ],
    },
    Table {
        title: "Table 5: exceptions, to the handler",
        rows: &[
            row("unaligned vector move", "unaligned", "unaligned")
                .goal(40)
                .times(10),
            row("overflow (division)", "division", "division")
                .goal(40)
                .times(10),
            only_aegis("coprocessor", "coprocessor").goal(40),
            row("protection", "protection", "protection")
                .goal(40)
                .times(10),
        ],
    },
    Table {
        title: "Table 5: exceptions, and back",
        rows: &[
            row("unaligned vector move", "unaligned-trip", "unaligned-trip").times(10),
            row("overflow (division)", "division-trip", "division-trip").times(10),
            only_aegis("coprocessor", "coprocessor-trip"),
            row("protection", "protection-trip", "protection-trip").times(10),
        ],
    },
    Table {
        title: "Table 6: control transfer, one way",
        rows: &[
            row("synchronous; eventfd", "synchronous", "eventfd")
                .goal(60)
                .times(10),
            row("asynchronous; eventfd", "asynchronous", "eventfd")
                .goal(60)
                .times(10),
            only_linux("pipe", "pipe"),
            only_linux("futex", "futex"),
            only_linux("signal", "signal"),
        ],
    },
    Table {
        title: "Table 3: primitive operations",
        rows: &[
            row("map a page; mmap", "map", "mmap"),
            row("map 100; mmap", "map-100", "mmap-100"),
            row("protect a page; mprotect", "protect", "mprotect-less"),
            row("protect 100; mprotect", "protect-100", "mprotect-less-100"),
            row("unprotect a page; mprotect", "unprotect", "mprotect-more"),
            row(
                "unprotect 100; mprotect",
                "unprotect-100",
                "mprotect-more-100",
            ),
            row("unmap a page; munmap", "unmap", "munmap"),
            row("unmap 100; munmap", "unmap-100", "munmap-100"),
            only_aegis("flush an address", "flush"),
            only_aegis("coprocessor on", "fpu"),
            row("context switch; sched_yield", "yield", "sched_yield"),
        ],
    },
    Table {
        title: "Section 5.4: a missing page",
        rows: &[
            row("to the handler", "translation", "translation").times(10),
            row(
                "mapped, and back; mmap",
                "translation-trip",
                "translation-trip",
            )
            .times(10),
            only_linux("mapped by a thread; userfaultfd", "userfaultfd-trip"),
        ],
    },
    Table {
        title: "Table 7: whose frame, of ten TCP/IP filters",
        rows: &[
            row(
                "compiled together; classic BPF, compiled",
                "classify",
                "classify",
            )
            .times(20),
            only_linux("classic BPF, interpreted", "classify-interpreted"),
        ],
    },
    Table {
        title: "Table 11: 60 bytes by UDP, there and back",
        rows: &[
            row(
                "by the environment; by a process",
                "round-trip",
                "round-trip",
            ),
            row(
                "by a handler; by a process",
                "round-trip-handler",
                "round-trip",
            ),
        ],
    },
    Table {
        title: "Figure 2: from arrival to answer",
        rows: &[
            only_aegis("1 runs, by the environment", "latency-1"),
            only_aegis("2 run", "latency-2"),
            only_aegis("4 run", "latency-4"),
            only_aegis("8 run", "latency-8"),
            only_aegis("16 run", "latency-16"),
            only_aegis("1 runs, by a handler", "latency-handler-1"),
            only_aegis("2 run, by a handler", "latency-handler-2"),
            only_aegis("4 run, by a handler", "latency-handler-4"),
            only_aegis("8 run, by a handler", "latency-handler-8"),
            only_aegis("16 run, by a handler", "latency-handler-16"),
        ],
    },
    Table {
        title: "Section 6.3: 1,440 bytes to memory, and their sum",
        rows: &[
            only_aegis("summed while they are copied", "copy-sum"),
            only_aegis("copied, then summed", "copy-then-sum"),
        ],
    },
];

/// Figures of a system, and what its column is called.
#[derive(Clone, Debug)]
pub struct Column {
    /// The title.
    pub title: String,
    /// Its figures.
    pub figures: Figures,
}

/// Everything that was measured.
#[derive(Clone, Debug)]
pub struct Report {
    /// What ours is called.
    pub name: &'static str,
    /// The tables.
    pub tables: &'static [Table],
    /// Its figures.
    pub aegis: Figures,
    /// Those of Linux, as it comes and otherwise.
    pub linux: Vec<Column>,
}

impl Default for Report {
    fn default() -> Report {
        Report {
            name: "Aegis",
            tables: TABLES,
            aegis: Figures::new(),
            linux: Vec::new(),
        }
    }
}

impl Row {
    fn aegis(&self, report: &Report) -> Option<Figure> {
        report.aegis.get(self.aegis?).copied()
    }

    fn linux(&self, column: &Column) -> Option<Figure> {
        column.figures.get(self.linux?).copied()
    }

    /// Whether the goals are met, of those that can be told.
    pub fn holds(&self, report: &Report) -> Option<bool> {
        let aegis = self.aegis(report)?.instructions;
        let goal = self.goal.map(|goal| aegis <= goal);
        // The kernel without mitigations is the harder one to beat; each column counts.
        let columns = report.linux.iter().filter_map(|column| self.linux(column));
        let times = self.times.and_then(|times| {
            columns
                .map(|figure| figure.instructions)
                .min()
                .map(|linux| aegis * times <= linux)
        });
        match (goal, times) {
            (None, None) => None,
            (goal, times) => Some(goal != Some(false) && times != Some(false)),
        }
    }

    /// The begin of a row in the book.
    fn begin(&self, figure: Option<Figure>) -> String {
        format!("| {} | {} |", self.what, shown(figure))
    }

    fn goal_in_words(&self) -> String {
        let goal = self.goal.map(|goal| format!("<= {goal}"));
        let times = self.times.map(|times| match times {
            1 => "not more".to_owned(),
            times => format!("1/{times}"),
        });
        let words: Vec<String> = goal.into_iter().chain(times).collect();
        words.join(", ")
    }
}

impl Report {
    /// Figure 2: thousands of instructions from arrival to answer, over how many run.
    pub fn latency(&self) -> Trace {
        let figure = |begin: &str, number: u64| {
            let figure = self.aegis.get(&format!("{begin}-{number}"))?;
            Some(figure.instructions / 1000)
        };
        let point = |number| {
            let both = ["latency", "latency-handler"].map(|begin| figure(begin, number));
            let [Some(environment), Some(handler)] = both else {
                return None;
            };
            Some((number, vec![environment, handler]))
        };
        Trace {
            labels: vec!["environment".to_owned(), "handler".to_owned()],
            points: [1, 2, 4, 8, 16].into_iter().filter_map(point).collect(),
        }
    }
}

/// A figure in words.
fn shown(figure: Option<Figure>) -> String {
    figure.map_or("–".to_owned(), |figure| figure.to_string())
}

/// A figure as data.
fn data(figure: Option<Figure>) -> Value {
    let Some(figure) = figure else {
        return Value::Null;
    };
    let mut data = json!({ "instructions": figure.instructions });
    if let Some(heavy) = figure.heavy {
        let each = |number: u64| json!(number as f64 / figure.repeats as f64);
        data["cr3"] = each(heavy.cr3);
        data["iret"] = each(heavy.iret);
        data["wrmsr"] = each(heavy.wrmsr);
    }
    data
}

impl Report {
    /// As a table for people. The ratio is Linux's, as it comes, over Aegis's.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for table in self.tables {
            write!(text, "{:<40}{:>16}", table.title, self.name).ok();
            for column in &self.linux {
                write!(text, "{:>20}", column.title).ok();
            }
            writeln!(text, "{:>8}  goal", "ratio").ok();
            for row in table.rows {
                self.line(row, &mut text);
            }
            for row in table.rows {
                if let Some(why) = row.why {
                    writeln!(text, "  {}: {why}", row.what).ok();
                }
            }
            text.push('\n');
        }
        text
    }

    fn line(&self, row: &Row, text: &mut String) {
        write!(text, "  {:<38}{:>16}", row.what, shown(row.aegis(self))).ok();
        for column in &self.linux {
            write!(text, "{:>20}", shown(row.linux(column))).ok();
        }
        let ratio = self.ratio(row);
        let verdict = match row.holds(self) {
            None => "",
            Some(true) => "  met",
            Some(false) => "  MISSED",
        };
        let line = format!("{ratio:>8}  {}{verdict}", row.goal_in_words());
        writeln!(text, "{}", line.trim_end()).ok();
    }

    /// As the table of the book's page of measurements.
    pub fn markdown(&self) -> String {
        let mut text = format!("| | {} |", self.name);
        for column in &self.linux {
            write!(text, " {} |", column.title).ok();
        }
        text += " ratio | goal |\n|---|---|";
        text += &"---|".repeat(self.linux.len());
        text += "---|---|\n";
        for table in self.tables {
            let columns = self.linux.len() + 3;
            writeln!(text, "| **{}** {}", table.title, "| ".repeat(columns) + "|").ok();
            for row in table.rows {
                write!(text, "{}", row.begin(row.aegis(self))).ok();
                for column in &self.linux {
                    write!(text, " {} |", shown(row.linux(column))).ok();
                }
                writeln!(text, " {} | {} |", self.ratio(row), row.goal_in_words()).ok();
            }
        }
        text
    }

    /// Linux's instructions, as it comes, over Aegis's.
    fn ratio(&self, row: &Row) -> String {
        let first = self.linux.first().and_then(|column| row.linux(column));
        let ratio = first.zip(row.aegis(self).filter(|aegis| aegis.instructions > 0));
        ratio.map_or(String::new(), |(linux, aegis)| {
            format!(
                "{:.1}",
                linux.instructions as f64 / aegis.instructions as f64
            )
        })
    }

    /// As data for programs: an array of rows.
    pub fn json(&self) -> String {
        let rows = self.tables.iter().flat_map(|table| {
            table.rows.iter().map(move |row| {
                let linux: serde_json::Map<String, Value> = self
                    .linux
                    .iter()
                    .map(|column| (column.title.clone(), data(row.linux(column))))
                    .collect();
                let mut data = json!({
                    "table": table.title, "row": row.what, "name": row.aegis,
                    "linux": linux, "why": row.why,
                    "goal": row.goal, "times": row.times, "met": row.holds(self),
                });
                data[self.name.to_lowercase()] = self::data(row.aegis(self));
                data
            })
        });
        let rows: Value = rows.collect();
        format!("{rows:#}\n")
    }

    /// Whether no goal is missed.
    pub fn is_well(&self) -> bool {
        let mut rows = self.tables.iter().flat_map(|table| table.rows);
        rows.all(|row| row.holds(self) != Some(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::said::Heavy;

    fn figures(rows: &[(&str, u64)]) -> Figures {
        let heavy = Some(Heavy::default());
        let figure = |instructions| Figure {
            instructions,
            repeats: 1,
            heavy,
        };
        rows.iter()
            .map(|(name, number)| (name.to_string(), figure(*number)))
            .collect()
    }

    fn report(protection: u64) -> Report {
        let column = |title: &str, linux| Column {
            title: title.to_owned(),
            figures: figures(&[("protection", linux), ("pipe", 5000)]),
        };
        Report {
            aegis: figures(&[("protection", protection), ("null", 30)]),
            linux: vec![column("Linux", 350), column("off", 300)],
            ..Report::default()
        }
    }

    #[test]
    fn goals_are_held_against_the_better_linux() {
        let row = |name| {
            let mut rows = TABLES.iter().flat_map(|table| table.rows);
            *rows.find(|row| row.aegis == Some(name)).unwrap()
        };
        assert_eq!(row("protection").holds(&report(30)), Some(true));
        assert_eq!(row("protection").holds(&report(31)), Some(false));
        assert_eq!(row("null").holds(&report(31)), Some(true));
        assert_eq!(row("division").holds(&report(31)), None);
        assert_eq!(row("procedure").holds(&report(31)), None);
        assert!(report(30).is_well() && !report(31).is_well());
    }

    /// `aegis-machine bench --markdown` prints what belongs there.
    #[test]
    fn the_book_has_the_budgets() {
        let page = crate::place::repository().join("docs/src/performance.md");
        let page = std::fs::read_to_string(page).expect("the page");
        for row in TABLES.iter().flat_map(|table| table.rows) {
            let Some(instructions) = row.aegis.and_then(crate::budgets::of) else {
                continue;
            };
            let begin = format!("| {} | {instructions} ", row.what);
            assert!(page.contains(&begin), "performance.md lacks {begin}");
        }
    }

    #[test]
    fn latency_is_a_trace_of_both() {
        let rows = [
            ("latency-1", 1500),
            ("latency-16", 15_000_000),
            ("latency-handler-16", 900),
            ("latency-handler-1", 900),
            ("latency-4", 1),
        ];
        let report = Report {
            aegis: figures(&rows),
            ..Report::default()
        };
        let wanted = [(1, vec![1, 0]), (16, vec![15_000, 0])];
        assert_eq!(report.latency().points, wanted);
    }

    #[test]
    fn text_and_data_have_every_row() {
        let (text, json) = (report(31).text(), report(31).json());
        let data: Vec<Value> = serde_json::from_str(&json).unwrap();
        assert_eq!(
            data.len(),
            TABLES.iter().map(|table| table.rows.len()).sum::<usize>()
        );
        let line = text
            .lines()
            .find(|line| line.contains("  protection "))
            .unwrap();
        assert!(
            line.ends_with(
                "31 (0 0 0)         350 (0 0 0)         300 (0 0 0)    11.3  <= 40, 1/10  MISSED"
            ),
            "{line}"
        );
        let row = data.iter().find(|row| row["name"] == "protection").unwrap();
        assert_eq!(
            (&row["met"], &row["linux"]["off"]["instructions"]),
            (&json!(false), &json!(300))
        );
        let book = report(31).markdown();
        for table in TABLES {
            assert!(text.contains(table.title) && book.contains(table.title));
        }
        let row = "| protection | 31 (0 0 0) | 350 (0 0 0) | 300 (0 0 0) | 11.3 | <= 40, 1/10 |";
        assert!(book.contains(row), "{book}");
    }
}
