//! Figures as a picture: lines over logarithmic axes, in SVG that is readable on light and dark
//! pages.

use plotters::coord::Shift;
use plotters::prelude::*;
use std::path::Path;

/// One line.
#[derive(Clone, Debug)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// In the chart's units; what is 0 is drawn at the axis' left end.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// One without points.
    pub fn new(name: &str) -> Series {
        Series {
            name: name.to_owned(),
            points: Vec::new(),
        }
    }
}

/// A picture.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Of its file, without the ending.
    pub name: String,
    /// Above the picture.
    pub title: String,
    /// What goes to the right.
    pub x: &'static str,
    /// What goes up.
    pub y: &'static str,
    /// The lines.
    pub series: Vec<Series>,
}

const SIZE: (u32, u32) = (760, 420);
/// Colours that those who see no red or no green tell apart.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(150, 150, 150),
];
/// Half of the smallest place on the axis that is not 0.
const ZERO: f64 = 0.5;

impl Chart {
    /// Whether there is something to draw.
    pub fn has_lines(&self) -> bool {
        self.series.iter().any(|line| line.points.len() > 1)
    }

    /// Writes it to `FOLDER/NAME.svg`.
    ///
    /// # Errors
    /// There is nothing to draw, or the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), String> {
        let path = folder.join(format!("{}.svg", self.name));
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let mut text = String::new();
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        self.draw(&area).map_err(|error| failed(&error))?;
        drop(area);
        std::fs::write(&path, text).map_err(|error| failed(&error))
    }

    fn draw<'a>(
        &self,
        area: &DrawingArea<SVGBackend<'a>, Shift>,
    ) -> Result<(), Box<dyn std::error::Error + 'a>> {
        let points = || self.series.iter().flat_map(|line| &line.points);
        let bounds = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, 0f64), |(low, high), value| {
                (low.min(value), high.max(value))
            })
        };
        let (left, right) = bounds(&mut points().map(|point| point.0.max(ZERO)));
        let (low, high) = bounds(&mut points().map(|point| point.1));
        if !(low > 0.0 && high > 0.0 && left < right) {
            return Err("nothing to draw".into());
        }
        // The legend goes to the emptier one of two corners.
        let (half, middle) = ((left * right).sqrt(), (low * high).sqrt());
        let covered = |is_right: bool| {
            let inside = |&&(x, y): &&(f64, f64)| {
                (x.max(ZERO) > half) == is_right && (y < middle) == is_right
            };
            points().filter(inside).count()
        };
        let legend = match covered(true) > covered(false) {
            true => SeriesLabelPosition::UpperLeft,
            false => SeriesLabelPosition::LowerRight,
        };
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(64)
            .build_cartesian_2d(
                (left..right * 1.1).log_scale().base(2.0),
                (low / 1.5..high * 1.5).log_scale(),
            )?;
        let number = |value: &f64| match *value <= ZERO {
            true => "0".to_owned(),
            false => value.round().to_string(),
        };
        chart
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .x_label_formatter(&number)
            .y_label_formatter(&number)
            .light_line_style(WHITE)
            .label_style(("sans-serif", 13))
            .draw()?;
        for (line, colour) in self.series.iter().zip(COLOURS.iter().cycle()) {
            let points = line.points.iter().map(|&(x, y)| (x.max(ZERO), y));
            chart
                .draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?
                .label(&line.name)
                .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
            chart.draw_series(points.map(|at| Circle::new(at, 3, colour.filled())))?;
        }
        chart
            .configure_series_labels()
            .position(legend)
            .background_style(WHITE.mix(0.8))
            .label_font(("sans-serif", 13))
            .draw()?;
        area.present()?;
        Ok(())
    }
}
