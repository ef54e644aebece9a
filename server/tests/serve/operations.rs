//! What an operator sees and does.

use crate::site::{Answer, Serving, connect, folder, handler, read, request};
use postern_server::Site;
use std::io::Write;
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

#[test]
fn health_and_metrics() {
    let serving = Serving::new(&handler("/p", "protected", "instances = 2\n"));
    assert_eq!(serving.get("/healthz").text(), "ok\n");
    assert_eq!(serving.get("/p/hello").status, Some(200));
    assert_eq!(serving.get("/p/null").status, Some(500));
    let text = serving.get("/metrics").text();
    for line in [
        "postern_serve_answers_total{handler=\"/p\",run=\"protected\",status=\"2xx\"} 1\n",
        "postern_serve_answers_total{handler=\"/p\",run=\"protected\",status=\"5xx\"} 1\n",
        "postern_serve_faults_total{handler=\"/p\",run=\"protected\"} 1\n",
        "postern_serve_seconds_count{handler=\"/p\",run=\"protected\"} 2\n",
        "# TYPE postern_serve_connections gauge\n",
        "postern_faults_total{image=\"program-0.px\",kind=\"null-pointer\"} ",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let value = line.rsplit(' ').next().unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

#[test]
fn operators_have_a_listener_of_their_own() {
    let serving = Serving::new("[operations]\nlisten = \"127.0.0.1:0\"\n");
    assert_eq!(serving.get("/metrics").status, Some(404));
    let mut stream = connect(serving.operations.unwrap());
    stream
        .write_all(&request("GET", "/metrics", "", b""))
        .unwrap();
    assert!(read(stream).text().contains("postern_serve_answers_total"));
    let mut stream = connect(serving.operations.unwrap());
    stream
        .write_all(&request("GET", "/index.html", "", b""))
        .unwrap();
    assert_eq!(read(stream).status, Some(404));
}

#[test]
fn a_changed_program_is_served_and_a_broken_one_is_not() {
    let runs = ["protected", "unprotected", "fastcgi", "cgi"];
    let serving = Serving::new(
        &runs
            .map(|run| handler(&format!("/{run}"), run, "instances = 2\n"))
            .concat(),
    );
    let source = include_str!("programs/program.c");
    let write = |text: &str| std::fs::write(serving.path().join("program.c"), text).unwrap();
    for run in runs {
        assert_eq!(serving.get(&format!("/{run}/hello")).text(), "<p>Hello\n");
    }
    write(&source.replace("<p>Hello", "<p>Good evening"));
    for run in runs {
        // The old program until the new one is there, and never anything else.
        loop {
            let answer = serving.get(&format!("/{run}/hello"));
            match &*answer.text() {
                "<p>Good evening\n" => break,
                text => assert_eq!(text, "<p>Hello\n", "{run}"),
            }
        }
    }
    write("int cgi_main(void) { return nonsense; }");
    while serving
        .errors
        .get()
        .matches("the former program goes on")
        .count()
        < 4
    {
        assert_eq!(serving.get("/protected/hello").text(), "<p>Good evening\n");
    }
    assert!(
        serving.errors.get().contains("program.c:1"),
        "{}",
        serving.errors.get()
    );
    for run in runs {
        assert_eq!(
            serving.get(&format!("/{run}/hello")).text(),
            "<p>Good evening\n",
            "{run}"
        );
    }
}

#[test]
fn it_ends_when_the_last_request_is_answered() {
    let mut serving = Serving::new(&handler("/p", "protected", ""));
    let mut stream = serving.connect();
    let head = request(
        "POST",
        "/p/echo",
        "Transfer-Encoding: chunked\r\n",
        b"1\r\nx\r\n",
    );
    stream.write_all(&head).unwrap();
    // Until it is being served.
    while !serving
        .get("/metrics")
        .text()
        .contains("postern_serve_instances{handler=\"/p\",state=\"busy\"} 1")
    {}
    serving.tell_to_end();
    stream.write_all(b"1\r\ny\r\n0\r\n\r\n").unwrap();
    let answer = read(stream);
    assert!(answer.whole && answer.body == b"xy", "{answer:?}");
    serving.wait();
    assert!(std::net::TcpStream::connect(serving.address).is_err());
}

#[test]
fn each_request_is_a_line_of_the_access_log() {
    let mut serving = Serving::new(&handler("/p", "protected", ""));
    serving.get("/p/big?1000");
    serving.get("/none");
    serving.wait();
    let log = serving.access.get();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(lines[0].starts_with("127.0.0.1 - - ["), "{log}");
    assert!(
        lines[0].contains("\"GET /p/big?1000 HTTP/1.1\" 200 1000 "),
        "{log}"
    );
    assert!(lines[1].contains("\"GET /none HTTP/1.1\" 404 "), "{log}");
}

#[test]
fn encrypted_connections() {
    let folder = folder();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.path().join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(
        folder.path().join("key.pem"),
        made.signing_key.serialize_pem(),
    )
    .unwrap();
    let serving = Serving::of(
        folder,
        "[tls]\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n",
    );
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from(made.cert.der().to_vec()))
        .unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(client, serving.connect());
    stream.write_all(&request("GET", "/", "", b"")).unwrap();
    assert_eq!(read(stream).text(), "<h1>home</h1>\n");
    // Who does not speak TLS hears nothing of the site.
    assert_ne!(serving.get("/").status, Some(200));
}

#[test]
fn handlers_of_the_folder_come_and_go() {
    let folder = folder();
    let handlers = folder.path().join("handlers");
    std::fs::create_dir(&handlers).unwrap();
    let write = |name: &str, says: &str| {
        let text = format!(
            "#include <libcgi.h>\nint cgi_main(void) {{ return cgi_puts(\"{says}\") < 0; }}\n"
        );
        std::fs::write(handlers.join(name), text).unwrap();
    };
    write("first.c", "first");
    let serving = Serving::found(folder);
    let until = |path: &str, is: &dyn Fn(&Answer) -> bool| {
        serving.wait_for(|_| is(&serving.get(path)));
    };
    assert_eq!(serving.get("/first").text(), "first");
    assert_eq!(serving.get("/second").status, Some(404));
    write("second.c", "second");
    until("/second", &|answer| answer.text() == "second");
    // One that does not compile is told once, and served when it does.
    std::fs::write(
        handlers.join("third.c"),
        "int cgi_main(void) { return no; }",
    )
    .unwrap();
    serving.wait_for(|log| log.contains("(it is not served)"));
    assert_eq!(serving.get("/third").status, Some(404));
    write("third.c", "third");
    until("/third", &|answer| answer.text() == "third");
    std::fs::remove_file(handlers.join("first.c")).unwrap();
    until("/first", &|answer| answer.status == Some(404));
    assert_eq!(serving.get("/second").text(), "second");
    let log = serving.errors.get();
    assert_eq!(log.matches("(it is not served)").count(), 1, "{log}");
    assert!(!log.contains("former program"), "{log}");
}

#[test]
fn two_listeners_at_one_address_and_a_log_that_cannot_be_written_are_told() {
    let folder = folder();
    for (toml, expected) in [
        (
            "listen = \"127.0.0.1:4711\"\n[operations]\nlisten = \"0.0.0.0:4711\"\n",
            "operations.listen: 0.0.0.0:4711 is where the site listens",
        ),
        (
            "[log]\naccess = \"nowhere/log\"\n",
            "nowhere/log: No such file",
        ),
        ("[log]\nerror = \"public\"\n", "public: Is a directory"),
    ] {
        let site = Site::parse(folder.path(), toml, crate::COMPONENTS).unwrap();
        let error = postern_server::check(&site).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_killed_servers_left_is_cleared_away() {
    let place = std::env::temp_dir();
    let left = tempfile::Builder::new()
        .prefix("postern-serve-")
        .tempdir_in(&place)
        .unwrap();
    std::fs::write(left.path().join("program-0.px"), "x").unwrap();
    let held = tempfile::Builder::new()
        .prefix("postern-serve-")
        .tempdir_in(&place)
        .unwrap();
    let lock = std::fs::File::open(held.path()).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let [one, other] = [Serving::new(""), Serving::new("")];
    assert!(!left.path().exists() && held.path().exists());
    // Those that live leave each other alone.
    for serving in [one, other] {
        assert_eq!(serving.get("/").status, Some(200));
    }
    let _ = left.close();
}
