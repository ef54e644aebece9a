//! Executes accepted code for as long as wanted: `postern-soundness [seconds] [seed]`. For `make
//! fuzz`.

use postern_soundness::campaign::Campaign;
use std::time::{Duration, Instant};

fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|a| a.parse::<u64>().unwrap_or(0));
    let seconds = arguments.next().unwrap_or(60);
    let seed = arguments.next().unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |t| t.as_nanos() as u64)
    });
    println!("seed {seed}");
    let mut campaign = match Campaign::new(seed) {
        Ok(campaign) => campaign,
        Err(error) => {
            eprintln!("{error}");
            return 2.into();
        }
    };
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end && campaign.tally.broken.is_empty() {
        for singles in [true, true, false] {
            campaign.batch(singles);
        }
    }
    print!("{}", campaign.tally);
    u8::from(!campaign.tally.broken.is_empty()).into()
}
