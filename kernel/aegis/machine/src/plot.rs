//! Numbers of some, drawn as text and as a picture (SVG): slices that each environment has had,
//! over ticks; how long answers take, over how many run.

use std::fmt::Write;

use crate::said::Trace;

/// What is drawn over what.
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    /// Upwards.
    pub up: &'static str,
    /// To the right.
    pub right: &'static str,
}

/// The shares of a processor.
pub const SHARES: Axes = Axes {
    up: "slices",
    right: "ticks",
};

/// How long answers take.
pub const LATENCY: Axes = Axes {
    up: "1000",
    right: "run",
};

/// Columns and rows of the text's field.
const COLUMNS: usize = 64;
const ROWS: usize = 18;

/// Width, height and margin of the picture.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const MARGIN: f64 = 50.0;

/// Colours that are told apart in print, too.
const COLOURS: [&str; 4] = ["#1b6ca8", "#d1603d", "#4c8c4a", "#7a5195"];

/// The least and greatest tick, and the most slices; no field is empty.
fn extent(trace: &Trace) -> Option<(u64, u64, u64)> {
    let (first, last) = (trace.points.first()?.0, trace.points.last()?.0);
    let most = trace.points.iter().flat_map(|(_, counts)| counts).max()?;
    Some((first, last.max(first + 1), (*most).max(1)))
}

/// The slices of each at the end, as shares of those of the last one, which has the least: `3.0 :
/// 2.0 : 1.0`.
pub fn shares(trace: &Trace) -> String {
    let Some((_, counts)) = trace.points.last() else {
        return "no slices".to_owned();
    };
    let least = counts.iter().min().copied().unwrap_or(1).max(1);
    let shares = counts
        .iter()
        .map(|count| format!("{:.2}", *count as f64 / least as f64));
    shares.collect::<Vec<_>>().join(" : ")
}

/// The character of an environment: the first of its label, if that tells it from the others.
fn letter(trace: &Trace, index: usize) -> char {
    let first = |label: &String| label.chars().next().unwrap_or('*');
    let own = trace.labels.get(index).map_or('*', first);
    match trace
        .labels
        .iter()
        .filter(|label| first(label) == own)
        .count()
    {
        1 => own,
        _ => char::from(b'a' + (index % 26) as u8),
    }
}

/// As text: a character for each environment.
pub fn text(trace: &Trace, axes: Axes) -> String {
    let Some((first, last, most)) = extent(trace) else {
        return "no trace\n".to_owned();
    };
    let mut field = vec![[' '; COLUMNS]; ROWS];
    for (tick, counts) in &trace.points {
        let column = (tick - first) as usize * (COLUMNS - 1) / (last - first) as usize;
        for (index, count) in counts.iter().enumerate() {
            let row = *count as usize * (ROWS - 1) / most as usize;
            field[ROWS - 1 - row][column] = letter(trace, index);
        }
    }
    let mut drawn = String::new();
    for (number, row) in field.iter().enumerate() {
        let scale = match number {
            0 => most.to_string(),
            _ if number == ROWS - 1 => "0".to_owned(),
            _ => String::new(),
        };
        let row: String = row.iter().collect();
        writeln!(drawn, "{scale:>7} |{}", row.trim_end()).ok();
    }
    writeln!(drawn, "{:>7} +{}", "", "-".repeat(COLUMNS)).ok();
    let width = COLUMNS - first.to_string().len();
    let Axes { up, right } = axes;
    writeln!(drawn, "{up:<8} {first}{last:>width$} {right}").ok();
    for (index, label) in trace.labels.iter().enumerate() {
        writeln!(drawn, "         {}: {label}", letter(trace, index)).ok();
    }
    drawn
}

/// As a picture.
pub fn svg(trace: &Trace, axes: Axes) -> String {
    let Some((first, last, most)) = extent(trace) else {
        return "<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n".to_owned();
    };
    let (left, bottom) = (MARGIN, HEIGHT - MARGIN);
    let x =
        |tick: u64| left + (WIDTH - 3.0 * MARGIN) * (tick - first) as f64 / (last - first) as f64;
    let y = |count: u64| bottom - (HEIGHT - 2.0 * MARGIN) * count as f64 / most as f64;
    let mut drawn = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <path d=\"M{left} {MARGIN}V{bottom}H{}\" fill=\"none\" stroke=\"black\"/>\n",
        x(last)
    );
    let write = |x: f64, y: f64, anchor: &str, words: &str| {
        let words = words.replace('&', "&amp;").replace('<', "&lt;");
        format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>\n")
    };
    drawn += &write(left - 6.0, y(most) + 4.0, "end", &most.to_string());
    drawn += &write(left - 6.0, bottom, "end", "0");
    drawn += &write(left, bottom + 20.0, "middle", &first.to_string());
    drawn += &write(
        x(last),
        bottom + 20.0,
        "middle",
        &format!("{last} {}", axes.right),
    );
    drawn += &write(left, MARGIN - 16.0, "middle", axes.up);
    for (index, label) in trace.labels.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let points = trace.points.iter();
        let points: String = points
            .map(|(tick, counts)| format!("{:.1},{:.1} ", x(*tick), y(counts[index])))
            .collect();
        writeln!(
            drawn,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.trim_end()
        )
        .ok();
        let end = trace.points.last().map_or(0, |(_, counts)| counts[index]);
        drawn += &write(x(last) + 8.0, y(end) + 4.0, "start", label);
    }
    drawn + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace() -> Trace {
        let labels = ["three", "two", "one"].map(str::to_owned).to_vec();
        let points = (0..=60).map(|tick| (tick, vec![tick / 2, tick / 3, tick / 6]));
        Trace {
            labels,
            points: points.collect(),
        }
    }

    #[test]
    fn shares_are_of_the_least() {
        assert_eq!(shares(&trace()), "3.00 : 2.00 : 1.00");
        assert_eq!(shares(&Trace::default()), "no slices");
    }

    #[test]
    fn text_has_each_line_where_it_belongs() {
        let text = text(&trace(), SHARES);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("     30 |") && lines[0].ends_with('a'));
        assert!(lines[ROWS - 1].starts_with("      0 |"));
        assert!(lines[ROWS - 4].ends_with('o'), "{text}");
        assert!(lines.iter().all(|line| line.len() <= 80));
        assert_eq!(super::text(&Trace::default(), SHARES), "no trace\n");
    }

    #[test]
    fn the_picture_has_a_line_for_each() {
        let svg = svg(&trace(), SHARES);
        assert_eq!(svg.matches("<polyline").count(), 3);
        assert!(svg.ends_with("</svg>\n") && svg.contains(">three</text>"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        let mut one = trace();
        one.points.truncate(1);
        one.labels[0] = "<&".to_owned();
        let svg = super::svg(&one, LATENCY);
        assert!(!svg.contains("NaN") && svg.contains("&lt;&amp;"));
    }
}
