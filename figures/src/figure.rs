//! A figure: one measured number beside the baseline of the same run, and what it is held to.

use std::fmt::Write as _;

/// What a figure is held to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// The value is at most this, in the figure's unit.
    AtMost(f64),
    /// The value is at least this, in the figure's unit.
    AtLeast(f64),
    /// The value is at most this many times the baseline.
    RatioAtMost(f64),
}

/// One row of the table.
#[derive(Clone, Debug)]
pub struct Figure {
    /// `group.what`.
    pub name: String,
    /// In `unit`.
    pub value: f64,
    /// Of value and baseline.
    pub unit: &'static str,
    /// Measured in the same run; none for counts.
    pub baseline: Option<f64>,
    /// Value to baseline; for a cost that comes on top of the baseline, both together to the
    /// baseline.
    pub ratio: Option<f64>,
    /// None for rows that only explain others.
    pub goal: Option<Goal>,
    /// What the baseline is, and how the value was found.
    pub note: String,
}

impl Figure {
    /// A figure without baseline and goal.
    pub fn plain(
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
        note: impl Into<String>,
    ) -> Figure {
        Figure {
            name: name.into(),
            value,
            unit,
            baseline: None,
            ratio: None,
            goal: None,
            note: note.into(),
        }
    }

    /// Sets the baseline; the ratio is value to baseline.
    pub fn against(mut self, baseline: f64) -> Figure {
        self.baseline = Some(baseline);
        self.ratio = Some(self.value / baseline);
        self
    }

    /// Sets the baseline on top of which the value comes.
    pub fn on_top_of(mut self, baseline: f64) -> Figure {
        self.baseline = Some(baseline);
        self.ratio = Some((baseline + self.value) / baseline);
        self
    }

    /// Sets the goal.
    pub fn goal(mut self, goal: Goal) -> Figure {
        self.goal = Some(goal);
        self
    }

    /// Whether the goal is reached; a figure without a goal, or whose value could not be had (NaN),
    /// is not `Some(true)`.
    pub fn reached(&self) -> Option<bool> {
        Some(match self.goal? {
            Goal::AtMost(limit) => self.value <= limit,
            Goal::AtLeast(limit) => self.value >= limit,
            Goal::RatioAtMost(limit) => self.ratio.is_some_and(|ratio| ratio <= limit),
        })
    }

    fn verdict(&self) -> &'static str {
        match self.reached() {
            Some(true) => "ok",
            Some(false) => "short",
            None => "-",
        }
    }

    fn cells(&self) -> [String; 7] {
        let optional = |number: Option<f64>| number.map_or_else(|| "-".into(), short);
        [
            self.name.clone(),
            short(self.value),
            self.unit.into(),
            optional(self.baseline),
            self.ratio.map_or_else(|| "-".into(), |r| format!("{r:.3}")),
            match self.goal {
                Some(Goal::AtMost(limit)) => format!("<={}", short(limit)),
                Some(Goal::AtLeast(limit)) => format!(">={}", short(limit)),
                Some(Goal::RatioAtMost(limit)) => format!("ratio<={limit}"),
                None => "-".into(),
            },
            self.verdict().into(),
        ]
    }

    fn json(&self) -> serde_json::Value {
        let (goal, limit) = match self.goal {
            Some(Goal::AtMost(limit)) => ("value_at_most", Some(limit)),
            Some(Goal::AtLeast(limit)) => ("value_at_least", Some(limit)),
            Some(Goal::RatioAtMost(limit)) => ("ratio_at_most", Some(limit)),
            None => ("none", None),
        };
        serde_json::json!({
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "baseline": self.baseline,
            "ratio": self.ratio,
            "goal": goal,
            "limit": limit,
            "verdict": self.verdict(),
            "how": self.note,
        })
    }
}

/// Three significant digits or so.
fn short(number: f64) -> String {
    let size = number.abs();
    if size >= 100.0 || number == number.trunc() {
        format!("{number:.0}")
    } else if size >= 10.0 {
        format!("{number:.1}")
    } else {
        format!("{number:.2}")
    }
}

const HEAD: [&str; 7] = [
    "name", "value", "unit", "baseline", "ratio", "goal", "verdict",
];

/// The aligned table, notes last.
pub fn table(figures: &[Figure]) -> String {
    let rows: Vec<_> = figures.iter().map(Figure::cells).collect();
    let mut widths = HEAD.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.len());
        }
    }
    let mut out = String::new();
    let mut line = |cells: &[String; 7], note: &str| {
        for (i, (cell, width)) in cells.iter().zip(widths).enumerate() {
            // Numbers to the right, words to the left.
            let _ = match i {
                1 | 3 | 4 => write!(out, "{cell:>width$}  "),
                _ => write!(out, "{cell:<width$}  "),
            };
        }
        let _ = writeln!(out, "{note}");
    };
    line(&HEAD.map(String::from), "how");
    for (row, figure) in rows.iter().zip(figures) {
        line(row, &figure.note);
    }
    out
}

/// A JSON array of objects with the table's columns as keys.
pub fn json(figures: &[Figure]) -> String {
    let rows: serde_json::Value = figures.iter().map(Figure::json).collect();
    format!("{rows:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_decides_on_value_or_ratio() {
        let figure = Figure::plain("gates.x", 8.0, "cycles", "").on_top_of(5.0);
        assert_eq!(figure.reached(), None);
        assert_eq!(figure.ratio, Some(2.6));
        assert_eq!(
            figure.clone().goal(Goal::AtMost(12.0)).reached(),
            Some(true)
        );
        assert_eq!(
            figure.clone().goal(Goal::AtLeast(12.0)).reached(),
            Some(false)
        );
        assert_eq!(figure.goal(Goal::RatioAtMost(1.3)).reached(), Some(false));
    }

    #[test]
    fn a_number_that_could_not_be_had_is_short() {
        let figure = Figure::plain("x", f64::NAN, "us", "").goal(Goal::AtMost(1.0));
        assert_eq!(figure.reached(), Some(false));
        assert!(json(&[figure]).contains(r#""value": null"#));
    }

    #[test]
    fn the_table_is_aligned() {
        let figures = [
            Figure::plain("a", 1.0, "us", "first"),
            Figure::plain("a.long.name", 12345.6, "cycles", "second").against(2.0),
        ];
        let text = table(&figures);
        let columns: Vec<_> = text
            .lines()
            .zip(["how", "first", "second"])
            .map(|(line, note)| line.find(note))
            .collect();
        assert!(
            columns[0].is_some() && columns.iter().all(|c| *c == columns[0]),
            "{text}"
        );
    }
}
