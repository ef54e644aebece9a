//! What a request costs in a pool that resets: by the threads that make requests at once, each with
//! a domain, and by the pages that a request writes.
//!
//! Baseline of a row with several threads is the same with one. Goals are set for as many threads
//! as there are processors at most: more of them wait for each other by definition.

use crate::figure::{Figure, Goal};
use crate::touching::touching;
use postern::{Domain, Func, Image, Pool};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;

/// Threads that make requests.
const THREADS: [usize; 3] = [1, 2, 4];

/// Pages that a request writes.
const PAGES: [u32; 4] = [1, 3, 16, 64];

/// Time of a request, at most, for as few pages as a small request writes.
const SMALL: (u32, f64) = (3, 4.0);

const REQUESTS: u32 = 500;
const ROUNDS: usize = 100;

type Touch = Func<fn(i32) -> i32>;

/// A pool with a domain for each thread.
fn pool(image: &Image, threads: usize) -> Result<Pool<Touch>, String> {
    let image = image.clone();
    let make = move || -> Result<Touch, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Domain::builder(&image).build()?.func("touch")?)
    };
    let pool = Pool::builder(make).size(threads);
    pool.build().map_err(|e| e.to_string())
}

/// Seconds that a request takes while so many threads make them. They begin together, and none
/// ceases before all have been timed.
fn request(pool: &Pool<Touch>, threads: usize) -> Result<f64, String> {
    let (begun, timed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || -> Result<f64, String> {
        let all = |requests: u32| -> Result<(), String> {
            for _ in 0..requests {
                match pool.with(|touch| touch.call(1)) {
                    Ok(Ok(2)) => {}
                    other => return Err(format!("a request came to {other:?}")),
                }
            }
            Ok(())
        };
        let warm = all(20);
        begun.fetch_add(1, SeqCst);
        while begun.load(SeqCst) < threads {
            std::thread::yield_now();
        }
        let start = Instant::now();
        let done = warm.and_then(|()| all(REQUESTS));
        let spent = start.elapsed().as_secs_f64() / f64::from(REQUESTS);
        timed.fetch_add(1, SeqCst);
        done?;
        while timed.load(SeqCst) < threads {
            all(1)?;
        }
        Ok(spent)
    };
    let spent: Result<Vec<f64>, String> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended = running.into_iter().map(|thread| thread.join());
        ended
            .map(|spent| spent.unwrap_or_else(|_| Err("a thread panicked".to_owned())))
            .collect()
    });
    Ok(spent?.into_iter().sum::<f64>() / threads as f64)
}

/// The figures of the group.
pub fn figures() -> Result<Vec<Figure>, String> {
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut figures = Vec::new();
    for pages in PAGES {
        let (image, _) = touching(pages)?;
        let pools = THREADS.map(|threads| pool(&image, threads));
        let mut best = [f64::INFINITY; THREADS.len()];
        for _ in 0..ROUNDS {
            for ((pool, threads), best) in pools.iter().zip(THREADS).zip(&mut best) {
                let spent = request(pool.as_ref().map_err(String::clone)?, threads)?;
                *best = best.min(spent);
            }
        }
        for (threads, spent) in THREADS.into_iter().zip(best) {
            let name = format!("pools.reset-{threads}-{pages}");
            let note = format!("{threads} threads, a request each that writes {pages} pages");
            let figure = Figure::plain(name, spent * 1e6, "us", note);
            figures.push(match threads {
                1 if pages == SMALL.0 => figure.goal(Goal::AtMost(SMALL.1)),
                1 => figure,
                _ if threads <= processors => {
                    let figure = figure.against(best[0] * 1e6);
                    figure.goal(Goal::RatioAtMost(1.2))
                }
                _ => figure.against(best[0] * 1e6),
            });
        }
    }
    Ok(figures)
}
