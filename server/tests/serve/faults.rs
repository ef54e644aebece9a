//! Programs that fail, and what their clients, the log, and everybody else notice.

use crate::site::{Answer, Serving, handler};
use crate::variants::ALL;
use std::sync::LazyLock;

/// Each way twice, once with little time for a call.
static SERVING: LazyLock<Serving> = LazyLock::new(|| {
    let handlers = ALL.map(|run| {
        let heap = match run {
            "protected" => "heap_bytes = 16777216",
            _ => "",
        };
        let more = format!("instances = 2\n{heap}\n");
        let brief = format!("{more}call_ms = 300\n");
        handler(&format!("/{run}"), run, &more) + &handler(&format!("/brief/{run}"), run, &brief)
    });
    Serving::new(&handlers.concat())
});

/// Those that a fault does not take the server with.
const APART: [&str; 3] = ["/protected", "/fastcgi", "/cgi"];

/// The line of the log that has the answer's id.
fn logged(answer: &Answer) -> String {
    let text = answer.text();
    let id = text.split("id ").nth(1).map(str::trim_end).expect("an id");
    let log = SERVING.errors.get();
    let line = log.lines().find(|line| line.contains(id));
    line.unwrap_or_else(|| panic!("{id} is not in the log: {log}"))
        .to_owned()
}

fn goes_on(path: &str) {
    for _ in 0..3 {
        assert_eq!(
            SERVING.get(&format!("{path}/hello")).text(),
            "<p>Hello\n",
            "{path}"
        );
    }
}

#[test]
fn a_fault_is_500_with_an_id_and_the_log_has_its_line() {
    let source = include_str!("programs/program.c");
    let line = source
        .lines()
        .position(|line| line.contains("the line of the fault"))
        .unwrap()
        + 1;
    for _ in 0..3 {
        let answer = SERVING.get("/protected/null");
        assert_eq!(answer.status, Some(500));
        let logged = logged(&answer);
        assert!(logged.contains(&format!("program.c:{line}")), "{logged}");
        assert!(logged.contains("null pointer access"), "{logged}");
        goes_on("/protected");
    }
    // Another domain, or the same begun anew.
    let count: u32 = SERVING.get("/protected/count").text().parse().unwrap();
    assert!(count < 20);
    goes_on("/fastcgi");
    goes_on("/cgi");
}

#[test]
fn a_process_that_crashes_is_500_and_the_next_one_serves() {
    for path in ["/fastcgi", "/cgi"] {
        let answer = SERVING.get(&format!("{path}/null"));
        assert_eq!(answer.status, Some(500), "{path}: {answer:?}");
        assert!(
            logged(&answer).contains("signal: 11"),
            "{path}: {}",
            logged(&answer)
        );
        goes_on(path);
    }
}

#[test]
fn an_answer_that_fails_on_the_way_is_cut_off() {
    for path in APART {
        let answer = SERVING.get(&format!("{path}/late-null"));
        match answer.status {
            Some(200) => assert!(!answer.whole, "{path}: {answer:?}"),
            // A process that ends at once, before anything was sent.
            status => assert!(
                status == Some(500) && path != "/protected",
                "{path}: {answer:?}"
            ),
        }
        goes_on(path);
    }
}

#[test]
fn a_loop_is_504() {
    for path in APART {
        let answer = SERVING.get(&format!("/brief{path}/loop"));
        assert_eq!(answer.status, Some(504), "{path}: {answer:?}");
        assert!(logged(&answer).contains("no answer within"), "{path}");
        // The time is little for a busy machine, too.
        while SERVING.get(&format!("/brief{path}/hello")).text() != "<p>Hello\n" {}
    }
}

#[test]
fn loops_in_all_instances_do_not_stop_others() {
    let loops: Vec<_> = (0..4)
        .map(|_| std::thread::spawn(|| SERVING.get("/brief/protected/loop").status))
        .collect();
    goes_on("/fastcgi");
    goes_on("/unprotected");
    for status in loops {
        assert_eq!(status.join().unwrap(), Some(504));
    }
    goes_on("/protected");
}

#[test]
fn memory_has_a_limit() {
    let answer = SERVING.get("/protected/eat");
    assert_eq!((answer.status, &*answer.text()), (Some(200), "no more"));
    goes_on("/protected");
}

#[test]
fn failing_and_leaving() {
    for run in ALL {
        let answer = SERVING.get(&format!("/{run}/fail"));
        assert_eq!(answer.status, Some(500), "{run}: {answer:?}");
        assert!(
            logged(&answer).contains("status 7"),
            "{run}: {}",
            logged(&answer)
        );
        goes_on(&format!("/{run}"));
    }
    for path in APART {
        let answer = SERVING.get(&format!("{path}/exit"));
        assert_eq!(answer.status, Some(500), "{path}: {answer:?}");
        goes_on(path);
    }
}

#[test]
fn no_answer_is_split() {
    for run in ALL {
        for what in ["split", "fold", "length", "chunks", "line", "number"] {
            let answer = SERVING.get(&format!("/{run}/{what}"));
            assert_eq!(answer.status, Some(502), "{run} {what}: {answer:?}");
            assert!(
                !answer.head.to_lowercase().contains("set-cookie"),
                "{run} {what}"
            );
            logged(&answer);
        }
        goes_on(&format!("/{run}"));
    }
}
