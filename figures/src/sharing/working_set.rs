//! Calls whose working set is large: what a domain that others have, too, adds to them, and what a
//! pipe to a process that does the same adds (figure 8 of the paper on user-level sandboxing).

use super::domains::{common, function, private, repeat};
use crate::clock::best_of;
use crate::figure::Figure;
use crate::plot::{Chart, Series};
use crate::touching::{going_through, touching};
use crate::trusted::{cycle, process};
use postern::{CommonMemory, Image};

/// Calls in one round, if they are short.
const CALLS: u64 = 50_000;
const ROUNDS: usize = 15;
/// Pages that a function touches.
pub const PAGES: [u32; 8] = [0, 1, 4, 16, 64, 256, 1024, 4096];

/// What of the pages is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// A word of each is written.
    Data,
    /// An instruction of each is run.
    Instructions,
}

impl Of {
    /// In the names of figures.
    pub fn name(self) -> &'static str {
        match self {
            Of::Data => "data",
            Of::Instructions => "instructions",
        }
    }

    fn image(self, pages: u32) -> Result<Image, String> {
        match self {
            Of::Data => touching(pages).map(|(image, _)| image),
            Of::Instructions => going_through(pages),
        }
    }
}

/// Cycles of one call, as it is had.
struct Costs {
    private: f64,
    common: f64,
    pipe: f64,
}

fn costs(of: Of, pages: u32) -> Result<Costs, String> {
    let image = of.image(pages)?;
    let memory = CommonMemory::new(&image).map_err(|error| error.to_string())?;
    let domains = [private(&image)?, common(&image, &memory)?];
    let own = function(&domains[0], "touch")?;
    let shared = function(&domains[1], "touch")?;
    let count = (CALLS / u64::from(pages.max(1)) / 4).max(4);
    let call = |x| own.call(x).expect("the function returns");
    let times = best_of(
        ROUNDS,
        [
            &mut || cycle::chain(10 * CALLS),
            &mut || repeat(count, call),
            &mut || repeat(count, |x| shared.call(x).expect("the function returns")),
        ],
    );
    let trips = (count.min(500)) as u32;
    let trip = process::pipe_round_trip_for(ROUNDS, trips, || {
        std::hint::black_box(call(1));
    })?;
    let cycle = times[0] / 10.0 / CALLS as f64;
    let [private, common] = [1, 2].map(|index| times[index] / cycle / count as f64);
    Ok(Costs {
        private,
        common,
        pipe: trip / cycle,
    })
}

/// Those of one kind of pages.
fn figures_of(of: Of) -> Result<Vec<Figure>, String> {
    let touched = match of {
        Of::Data => "writes to",
        Of::Instructions => "runs through",
    };
    let mut figures = Vec::new();
    for pages in PAGES {
        let costs = costs(of, pages)?;
        let row = |name: &str, beside: &str| {
            let name = format!("sharing.{}.{pages}{name}", of.name());
            let how = format!("a call that {touched} {pages} pages, over {beside}");
            Figure::plain(name, costs.common, "cycles", how)
        };
        figures.push(row("", "the same in a private domain").against(costs.private));
        let beside = "a pipe to a process on the same core that does so, and back";
        figures.push(row(".pipe", beside).against(costs.pipe));
    }
    Ok(figures)
}

/// The figures.
pub fn figures() -> Result<Vec<Figure>, String> {
    let mut figures = figures_of(Of::Data)?;
    figures.extend(figures_of(Of::Instructions)?);
    Ok(figures)
}

/// A picture of those of each kind that were measured.
pub fn charts(figures: &[Figure]) -> Vec<Chart> {
    [Of::Data, Of::Instructions]
        .into_iter()
        .map(|of| {
            let mut lines = ["private domain", "common domain", "pipe"].map(Series::new);
            for pages in PAGES {
                let named = |ending: &str| {
                    let name = format!("sharing.{}.{pages}{ending}", of.name());
                    figures.iter().find(|figure| figure.name == name)
                };
                let (call, pipe) = (named(""), named(".pipe"));
                let values = [
                    call.and_then(|figure| figure.baseline),
                    call.map(|figure| figure.value),
                    pipe.and_then(|figure| figure.baseline),
                ];
                for (line, value) in lines.iter_mut().zip(values) {
                    line.points
                        .extend(value.map(|value| (f64::from(pages), value)));
                }
            }
            Chart {
                name: format!("sharing-{}", of.name()),
                title: format!("A call, by its working set of {}", of.name()),
                x: "pages",
                y: "cycles",
                series: lines.into(),
            }
        })
        .collect()
}
