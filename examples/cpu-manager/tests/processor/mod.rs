//! A processor in simulated time, of whose processes the manager is told by its services.

use postern::{Caller, Domain, Image};
use postern_example_cpu_manager::extension;
use postern_example_cpu_manager::manager::Manager;
use postern_example_cpu_manager::share::Share;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub fn image() -> Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    let image = IMAGE.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cpu-manager");
        let path = extension::build(&folder).unwrap_or_else(|error| panic!("{error}"));
        Image::load(path).expect("it was just built")
    });
    image.clone()
}

#[derive(Default)]
pub struct Simulated {
    pub used: i64,
    /// Quota and period in us, as set last.
    pub quota: Option<(u64, u64)>,
    left: i64,
    renewed: i64,
    /// Goes before all others.
    pub real_time: bool,
    /// Wants to run.
    pub active: bool,
    pub ended: bool,
}

/// Times in nanoseconds; it advances by milliseconds.
#[derive(Default)]
pub struct Processor {
    pub now: i64,
    pub processes: Vec<Simulated>,
    /// What is said of quotas.
    pub status: i32,
}

const MS: i64 = 1_000_000;

impl Processor {
    /// One millisecond, of who goes first: real time, then clients with quota left, the one that
    /// has most, then who is left. Returns who ran.
    pub fn run(&mut self) -> Option<usize> {
        self.now += MS;
        for process in &mut self.processes {
            if let Some((quota, period)) = process.quota
                && self.now - process.renewed >= period as i64 * 1000
            {
                process.renewed = self.now;
                // A slice that was overdrawn is paid back.
                process.left = process.left.min(0) + quota as i64 * 1000;
            }
        }
        let wants = |process: &&Simulated| process.active && !process.ended;
        let real_time = |(_, process): &(usize, &Simulated)| process.real_time;
        let with_quota =
            |(_, process): &(usize, &Simulated)| process.quota.is_some() && process.left > 0;
        let all = || {
            let all = self.processes.iter().enumerate();
            all.filter(|(_, process)| wants(process))
        };
        let runs = all()
            .find(real_time)
            .or_else(|| {
                all()
                    .filter(with_quota)
                    .max_by_key(|(_, process)| process.left)
            })
            .or_else(|| all().find(|(_, process)| process.quota.is_none()))
            .map(|(number, _)| number)?;
        self.processes[runs].used += MS;
        self.processes[runs].left -= MS;
        Some(runs)
    }
}

#[derive(Clone)]
pub struct Shared(Arc<Mutex<Processor>>);

impl Shared {
    pub fn new(processes: usize) -> Shared {
        let processes = (0..processes).map(|_| Simulated {
            active: true,
            ..Simulated::default()
        });
        Shared(Arc::new(Mutex::new(Processor {
            now: 1_000 * MS,
            processes: processes.collect(),
            status: 0,
        })))
    }

    pub fn lock(&self) -> MutexGuard<'_, Processor> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A manager of this processor's processes.
    pub fn manager(&self) -> Manager {
        let (time, used, quota, background) =
            (self.clone(), self.clone(), self.clone(), self.clone());
        let builder = Domain::builder(&image())
            .service("manager_time", move |_: &Caller<'_>| time.lock().now)
            .service("thread_time", |_: &Caller<'_>| 0i64)
            .service("process_time", move |_: &Caller<'_>, process: u32| {
                let processor = used.lock();
                let process = processor.processes.get(process as usize);
                process.filter(|p| !p.ended).map_or(-1, |p| p.used)
            })
            .service(
                "set_quota",
                move |_: &Caller<'_>, process: u32, slice: u64, period: u64| {
                    let mut processor = quota.lock();
                    assert!((1000..=1_000_000).contains(&period), "{period}");
                    assert!((1000..=period).contains(&slice), "{slice} of {period}");
                    if processor.status == 0 {
                        let process = &mut processor.processes[process as usize];
                        // As the kernel does it: setting a quota refills it.
                        process.quota = Some((slice, period));
                        process.left = process.left.min(0) + slice as i64 * 1000;
                    }
                    processor.status
                },
            )
            .service("set_background", move |_: &Caller<'_>, process: u32| {
                background.lock().processes[process as usize].real_time = false;
                0i32
            });
        Manager::build(builder).expect("a manager")
    }
}

pub fn share(text: &str) -> Share {
    text.parse().expect("a share")
}
