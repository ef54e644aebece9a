//! What the server says about itself.

use crate::site::{Serving, handler, request};
use serde_json::Value;
use std::io::Read;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn domains_and_answers_are_counted() {
    let program = handler("/p", "protected", "instances = 1\n");
    let serving = Serving::new(&format!(
        "[page]\nenabled = true\nheartbeat = \"/p\"\n{program}"
    ));
    assert_eq!(serving.get("/p/null").status, Some(500));
    assert_eq!(serving.get("/p/hello").status, Some(200));
    // A report is used for a moment, and answers are counted when they are through.
    let status = loop {
        let answer = serving.get("/status");
        assert!(
            answer.head.contains("content-type: application/json"),
            "{}",
            answer.head
        );
        let status = json(&answer.text());
        if status["answers"]["5xx"] == 1 && status["domains"][0]["calls"] == 2 {
            break status;
        }
    };
    assert!(status["requests"].as_u64().unwrap() >= 2, "{status}");
    assert_eq!(status["heartbeat"], "/p");
    assert_eq!(status["domains"].as_array().unwrap().len(), 1);
    let domain = &status["domains"][0];
    assert_eq!(domain["name"], "/p#1");
    assert_eq!(domain["kind"], "handler");
    assert_eq!(domain["owner"], "site");
    assert_eq!(domain["state"], "ready");
    assert_eq!(domain["faults"], 1);
    assert_ne!(domain["busy_us"], 0);
    assert_ne!(domain["resident_bytes"], 0);

    let id = domain["id"].as_str().unwrap();
    let window = json(&serving.get(&format!("/status/domains/{id}/window")).text());
    assert_eq!(window["name"], "/p#1");
    let areas = window["areas"].as_array().unwrap();
    let text = areas.iter().find(|area| area["protection"] == "x").unwrap();
    assert_eq!(text["what"], "gate slots and text");
    for pair in areas.windows(2) {
        assert!(pair[0]["end"].as_u64() <= pair[1]["start"].as_u64());
    }
    for wrong in ["0", "x", "ffffffffffffffffffff", ""] {
        let answer = serving.get(&format!("/status/domains/{wrong}/window"));
        assert_eq!(answer.status, Some(404), "{wrong}");
    }
    assert_eq!(serving.post("/status", b"").status, Some(405));
}

#[test]
fn reports_come_as_events_until_the_server_ends() {
    let mut serving = Serving::new("[page]\nenabled = true\n");
    let mut stream = serving.connect();
    std::io::Write::write_all(&mut stream, &request("GET", "/status/events", "", b"")).unwrap();
    let mut text = String::new();
    while text.matches("data: {\"requests\":").count() < 2 {
        let mut bytes = [0; 4096];
        let read = stream.read(&mut bytes).unwrap();
        assert_ne!(read, 0, "{text}");
        text += &String::from_utf8_lossy(&bytes[..read]);
    }
    assert!(text.contains("content-type: text/event-stream"), "{text}");
    serving.wait();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("0\r\n\r\n"), "{text}");
}
