//! The same function confined and native: measured in turn, results compared, shown as rows and as
//! geometric means.

use crate::clock::{best_of, geometric_mean};
use crate::figure::{Figure, Goal};
use crate::trusted::library::Library;
use postern::{CallError, Domain, Image, Placement};
use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

/// The best times of one build, or of all.
#[derive(Clone, Copy)]
pub struct Times {
    /// Seconds of the shared object.
    pub native: f64,
    /// Seconds in the hot window, if it is free.
    pub hot: Option<f64>,
    /// Seconds in another window.
    pub window: f64,
}

/// Best times of `function` (`unsigned long f(void)`) in the shared object, in the hot window if
/// that is free, and in another. It begins anew with each call, so every result must be the first
/// native one.
pub fn measure(
    extension: &Path,
    native: &Path,
    function: &str,
    deadline: Option<Duration>,
    rounds: usize,
) -> Result<Times, String> {
    let library = Library::open(native)?;
    let native = library.kernel(function)?;
    let image = Image::load(extension).map_err(|e| e.to_string())?;
    let domain = |placement| {
        let domain = Domain::builder(&image)
            .placement(placement)
            .deadline(deadline)
            .build()
            .map_err(|e| e.to_string())?;
        let function = domain
            .func::<fn() -> u64>(function)
            .map_err(|e| e.to_string())?;
        Ok::<_, String>((domain, function))
    };
    let (first, hot) = domain(Placement::Hot)?;
    let (_second, window) = domain(Placement::Cold)?;
    let wanted = native();
    let wrong = RefCell::new(None);
    let expect = |result: Result<u64, CallError>| match result {
        Ok(found) if found == wanted => {}
        Ok(found) => drop(wrong.replace(Some(format!(
            "one build computes {found:#x}, the native one {wanted:#x}: the rewriter is wrong"
        )))),
        Err(error) => drop(wrong.replace(Some(error.to_string()))),
    };
    let [native, hot, window] = best_of(
        rounds,
        [
            &mut || expect(Ok(native())),
            &mut || expect(hot.call()),
            &mut || expect(window.call()),
        ],
    );
    match wrong.into_inner() {
        Some(wrong) => Err(wrong),
        None => Ok(Times {
            native,
            hot: first.is_hot().then_some(hot),
            window,
        }),
    }
}

/// The rows of a group, which grow by what is measured.
pub struct Comparison {
    group: &'static str,
    note: &'static str,
    figures: Vec<Figure>,
    hot: Vec<f64>,
    window: Vec<f64>,
}

impl Comparison {
    /// A group without rows; `note` says against what it is held.
    pub fn new(group: &'static str, note: &'static str) -> Comparison {
        Comparison {
            group,
            note,
            figures: Vec::new(),
            hot: Vec::new(),
            window: Vec::new(),
        }
    }

    /// The rows of one function.
    pub fn add(&mut self, name: &str, times: &Times) {
        if let Some(hot) = times.hot {
            self.hot.push(hot / times.native);
            self.row(name, "hot", hot, times.native);
        }
        self.window.push(times.window / times.native);
        self.row(name, "window", times.window, times.native);
    }

    fn row(&mut self, name: &str, place: &str, seconds: f64, native: f64) {
        let name = format!("{}.{name}.{place}", self.group);
        let row = Figure::plain(name, seconds * 1e3, "ms", self.note);
        self.figures.push(row.against(native * 1e3));
    }

    /// All rows, with the means and the ratios that these are to reach, in the hot window and in
    /// another.
    pub fn figures(mut self, hot: f64, window: f64) -> Vec<Figure> {
        for (place, ratios, goal) in [("hot", &self.hot, hot), ("window", &self.window, window)] {
            if ratios.is_empty() {
                eprintln!(
                    "postern bench: the hot window is not free, so nothing is measured in it"
                );
                continue;
            }
            let name = format!("{}.mean.{place}", self.group);
            let how = format!(
                "geometric mean over gcc -O2 of {} {}",
                ratios.len(),
                self.group
            );
            self.figures.push(
                Figure::plain(name, geometric_mean(ratios), "times", how)
                    .against(1.0)
                    .goal(Goal::RatioAtMost(goal)),
            );
        }
        self.figures
    }
}
