//! Parts of an experiment alone: shares, bursts, places of control groups, nice values, files.

use postern_example_cpu_manager::controls::nice;
use postern_example_cpu_manager::disturbance::{LONGEST, bursts};
use postern_example_cpu_manager::groups::{Groups, Place, Version, places};
use postern_example_cpu_manager::manager::State;
use postern_example_cpu_manager::report::{self, Run, Sample};
use postern_example_cpu_manager::setup::Quota;
use postern_example_cpu_manager::share::Share;
use postern_example_cpu_manager::{plot, share};
use std::fs;
use std::path::PathBuf;

#[test]
fn shares_are_read_and_shown() {
    let share: Share = "40/400".parse().expect("a share");
    assert_eq!((share.target, share.period), (40_000, 400_000));
    assert_eq!(
        (share.to_string(), share.part()),
        ("40/400 ms".to_owned(), 0.1)
    );
    for wrong in [
        "", "/", "1", "1/", "/1", "-1/2", "1/2/3", "2/1", "0/1", "1/1001", "1.5/2",
    ] {
        assert!(wrong.parse::<share::Share>().is_err(), "{wrong}");
    }
}

#[test]
fn bursts_are_their_seed() {
    let long = bursts(1, 600);
    assert_eq!(long, bursts(1, 600));
    assert_ne!(long, bursts(2, 600));
    assert!(bursts(1, 0).is_empty() && bursts(1, 1).is_empty());
    let mut end = 1000;
    for burst in &long {
        assert!(
            burst.start >= end + 100 && burst.end > burst.start,
            "{burst:?}"
        );
        assert!(
            burst.end - burst.start <= LONGEST && burst.end <= 600_000,
            "{burst:?}"
        );
        end = burst.end;
    }
    // 1.5 s between them, and 5 steps of 100 ms, less what is cut off.
    assert!((240..400).contains(&long.len()), "{}", long.len());
    let active: u64 = long.iter().map(|burst| burst.end - burst.start).sum();
    assert!((90_000..200_000).contains(&active), "{active}");
}

#[test]
fn nice_values_are_weights() {
    // 1024 at 0, and a factor of 1.25 for each step: 110 at 10, 15 at 19.
    for (slice, period, value) in [(1, 1, 0), (30, 100, 5), (20, 100, 7), (10, 100, 10)] {
        assert_eq!(nice(slice, period), value, "{slice} of {period}");
    }
    assert_eq!(nice(0, 0), 19);
    assert_eq!(nice(1, u64::MAX), 19);
    assert_eq!(nice(u64::MAX, 1), 0);
}

const MOUNTS: &str = "\
25 30 0:23 / /proc rw - proc proc rw
31 30 0:28 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw
35 30 0:32 /outer /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
36 30 0:33 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
";

#[test]
fn places_are_found() {
    let place = |folder: &str, version| Place {
        folder: folder.into(),
        version,
    };
    let own = "4:cpu,cpuacct:/outer/inner\n3:cpuset:/\n0::/user/shell\n";
    let wanted = [
        place("/sys/fs/cgroup/unified/user/shell", Version::Two),
        place("/sys/fs/cgroup/unified/user", Version::Two),
        place("/sys/fs/cgroup/cpu,cpuacct/inner", Version::One),
    ];
    assert_eq!(places(own, MOUNTS), wanted);
    let top = [place("/sys/fs/cgroup/unified", Version::Two)];
    assert_eq!(places("0::/\n", MOUNTS), top);
    for (own, mounts) in [
        ("", MOUNTS),
        (own, ""),
        ("::\n:\n0\n", " - \n - cgroup2\na - cgroup2 x y\n"),
    ] {
        assert_eq!(places(own, mounts), [], "{own:?} {mounts:?}");
    }
}

/// With folders that look like control groups.
#[test]
fn groups_are_made_where_they_can_be() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |version| Place {
        folder: folder.path().to_owned(),
        version,
    };
    let refused = Groups::make_in(&place(Version::Two), &[1]).expect_err("no such files");
    assert_eq!(refused.kind(), std::io::ErrorKind::NotFound);
    fs::write(folder.path().join("cgroup.subtree_control"), "memory\n").expect("a file");
    fs::write(folder.path().join("cgroup.controllers"), "memory io\n").expect("a file");
    let refused = Groups::make_in(&place(Version::Two), &[1]).expect_err("no controller");
    assert!(
        refused.to_string().contains("no `cpu` controller"),
        "{refused}"
    );
    fs::write(folder.path().join("cgroup.controllers"), "memory cpu\n").expect("a file");

    let name = |number| {
        let host = std::process::id();
        folder
            .path()
            .join(format!("postern-cpu-manager-{host}-{number}"))
    };
    let groups = Groups::make_in(&place(Version::Two), &[17, 18]).expect("groups");
    assert_eq!(
        fs::read_to_string(folder.path().join("cgroup.subtree_control"))
            .ok()
            .as_deref(),
        Some("+cpu")
    );
    assert_eq!(groups.quota(1), Some(Quota::Max(name(1).join("cpu.max"))));
    assert_eq!(groups.quota(2), None);
    assert_eq!(
        fs::read_to_string(name(1).join("cgroup.procs"))
            .ok()
            .as_deref(),
        Some("18")
    );
    groups.lift();
    assert_eq!(
        fs::read_to_string(name(0).join("cpu.max")).ok().as_deref(),
        Some("max")
    );
    // Those of the kernel are removed with their files; these are not.
    for number in 0..2 {
        fs::remove_file(name(number).join("cpu.max")).expect("a file");
        fs::remove_file(name(number).join("cgroup.procs")).expect("a file");
    }
    drop(groups);
    assert!(!name(0).exists() && !name(1).exists());

    // Its maker is no process: numbers are smaller.
    let left = folder.path().join("postern-cpu-manager-4294967295-0");
    let other = folder.path().join("postern-cpu-manager-x-0");
    fs::create_dir(&left).expect("a folder");
    fs::create_dir(&other).expect("a folder");
    let groups = Groups::make_in(&place(Version::One), &[19]).expect("groups");
    assert_eq!(groups.quota(0), Some(Quota::Cfs(name(0))));
    assert!(!left.exists() && other.exists());
    // What stands in the way stays, and what was made before it does not.
    fs::remove_file(name(0).join("cgroup.procs")).expect("a file");
    drop(groups);
    fs::create_dir(name(1)).expect("a folder");
    Groups::make_in(&place(Version::One), &[20, 21]).expect_err("one is there");
    assert!(name(1).exists());
}

fn run() -> Run {
    let shares: Vec<Share> = ["40/400", "60/200"]
        .map(|s| s.parse().expect("a share"))
        .into();
    // 10 % and 30 %, but for a second without.
    let samples = (0..=50u64).map(|n| {
        let time = n * 100_000_000;
        let ran = time - n.saturating_sub(20).min(10) * 100_000_000;
        Sample {
            time,
            clients: vec![ran / 10, ran * 3 / 10],
            disturbance: time - ran,
        }
    });
    let samples: Vec<Sample> = samples.collect();
    Run {
        placement: "thread".to_owned(),
        ticks: "by <nobody> & never".to_owned(),
        held: "not at all".to_owned(),
        notes: vec!["a note".to_owned()],
        deviations: report::deviations(&samples, &shares),
        shares,
        bursts: bursts(1, 5),
        samples,
        manager: State {
            ticks: 0,
            skipped: 0,
            lapsed: 0,
            busy: 0,
            widest: 0,
            processes: Vec::new(),
        },
        manager_time: None,
    }
}

#[test]
fn errors_are_of_the_processor() {
    let run = run();
    let [first, second] = run.deviations[..] else {
        panic!("{:?}", run.deviations);
    };
    assert!((first.worst - 10.0).abs() < 1e-9 && (second.worst - 30.0).abs() < 1e-9);
    // 31 samples begin in the second of which it had nothing, or end in it: 9 whole ones.
    assert!(second.mean > 6.0 && second.mean < 9.0, "{second:?}");
    let series = report::client_series(&run.samples, 0, run.shares[0]);
    assert_eq!(series.len(), 47);
    assert!((series[0].0 - 0.4).abs() < 1e-9 && (series[0].1 - 0.1).abs() < 1e-9);
    assert_eq!(report::deviations(&[], &run.shares)[0].worst, 0.0);
    assert!(report::client_series(&run.samples[..1], 0, run.shares[0]).is_empty());
}

#[test]
fn runs_become_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plot.svg");
    plot::draw(&path, &[run(), run()]).expect("a plot");
    let text = fs::read_to_string(&path).expect("a file");
    assert!(
        text.starts_with("<svg") && text.trim_end().ends_with("</svg>"),
        "{text}"
    );
    assert!(text.contains("40/400 ms") && text.contains("disturbance"));
    assert!(text.contains("&lt;nobody&gt; &amp; never"), "{text}");
    plot::draw(&path, &[]).expect("an empty plot");
    let nowhere = PathBuf::from("/proc/nowhere/plot.svg");
    let error = plot::draw(&nowhere, &[run()]).expect_err("no such folder");
    assert!(error.to_string().contains("/proc/nowhere"), "{error}");

    let csv = report::csv(&[run()]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "placement,process,seconds,share,target");
    assert_eq!(lines[1], "thread,0,0.400,0.1000,0.1000");
    assert_eq!(lines.len(), 1 + 47 + 49 + 50);
    assert!(lines.iter().all(|line| line.split(',').count() == 5));
    let table = report::table(&[run()]);
    assert!(
        table.contains("a note") && table.contains("client 1"),
        "{table}"
    );
}
