//! Shares over time as SVG: a panel for each placement, with targets as thin lines and the
//! disturbance's bursts shaded.

use crate::error::Error;
use crate::report::{self, Run};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::path::Path;

const WIDTH: u32 = 860;
const HEIGHT: u32 = 250;
/// Of the clients, in order; they differ in the dark, too, and to most who do not see all colours.
const COLOURS: [RGBColor; 4] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 140, 100),
    RGBColor(170, 70, 140),
];

/// Draws all runs into a file.
///
/// # Errors
/// It cannot be written.
pub fn draw(path: &Path, runs: &[Run]) -> Result<(), Error> {
    let wrong = |reason: String| Error::Plot {
        path: path.to_owned(),
        reason,
    };
    let height = HEIGHT * runs.len().max(1) as u32;
    let area = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    // Its own ground: the picture is the same on a light page and on a dark one.
    area.fill(&WHITE)
        .map_err(|error| wrong(error.to_string()))?;
    for (panel, run) in area.split_evenly((runs.len().max(1), 1)).iter().zip(runs) {
        draw_run(panel, run).map_err(|error| wrong(error.to_string()))?;
    }
    area.present().map_err(|error| wrong(error.to_string()))
}

type Drawn<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw_run(
    panel: &Drawn<'_>,
    run: &Run,
) -> Result<(), DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>> {
    let seconds = run
        .samples
        .last()
        .map_or(1.0, |s| s.time as f64 / 1e9)
        .max(0.1);
    let largest = run
        .shares
        .iter()
        .map(|share| share.part())
        .fold(0.1, f64::max);
    let top = (largest * 200.0).clamp(20.0, 100.0);
    let mut chart = ChartBuilder::on(panel)
        .caption(
            format!("{}: {}", run.placement, run.ticks),
            ("sans-serif", 15),
        )
        .margin(8)
        .margin_right(110)
        .x_label_area_size(32)
        .y_label_area_size(44)
        .build_cartesian_2d(0.0..seconds, 0.0..top)?;
    chart.draw_series(run.bursts.iter().map(|burst| {
        let (from, to) = (burst.start as f64 / 1e3, burst.end as f64 / 1e3);
        Rectangle::new([(from, 0.0), (to, top)], RGBColor(225, 225, 225).filled())
    }))?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(235, 235, 235))
        .x_desc("seconds")
        .y_desc("% of the processor")
        .label_style(("sans-serif", 12))
        .axis_desc_style(("sans-serif", 12))
        .draw()?;
    for (client, share) in run.shares.iter().enumerate() {
        let colour = COLOURS[client % COLOURS.len()];
        let target = share.part() * 100.0;
        chart.draw_series(DashedLineSeries::new(
            [(0.0, target), (seconds, target)],
            5,
            4,
            colour.mix(0.7).stroke_width(1),
        ))?;
        let series = report::client_series(&run.samples, client, *share);
        let points = series.into_iter().map(|(x, y)| (x, (y * 100.0).min(top)));
        chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
        let label = format!("{share}");
        let (left, above) = (WIDTH as i32 - 104, 40 + 20 * client as i32);
        panel.draw(&PathElement::new(
            [(left, above), (left + 18, above)],
            colour.stroke_width(2),
        ))?;
        let place = (left + 24, above - 6);
        panel.draw(&Text::new(label, place, ("sans-serif", 12)))?;
    }
    if !run.bursts.is_empty() {
        let (left, above) = (WIDTH as i32 - 104, 40 + 20 * run.shares.len() as i32);
        let grey = RGBColor(205, 205, 205).filled();
        let corners = [(left, above - 5), (left + 18, above + 5)];
        panel.draw(&Rectangle::new(corners, grey))?;
        let place = (left + 24, above - 6);
        panel.draw(&Text::new("disturbance", place, ("sans-serif", 12)))?;
    }
    Ok(())
}
