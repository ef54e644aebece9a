//! Clients of plugins: what each may have, who goes when others come, and many at once.

use crate::plugins::{
    BOB, H, SERVING, SETTINGS, ask, decoded_ppm, fault, header, photo, ppm, put, site, transcode,
};

#[test]
fn quotas() {
    let serving = site(SETTINGS);
    let put = |name: &str, source: &str| {
        ask(
            &serving,
            "PUT",
            &format!("/plugins/{name}"),
            BOB,
            source.as_bytes(),
        )
    };
    let plain = |name: &str| format!("{H}int {name}(struct picture *p) {{ return 1; }}");
    let long = format!("{}{}", plain("long"), " ".repeat(2000));
    assert_eq!(put("long", &long).status, Some(413));
    let much = format!("{H}char much[100000]; int eater(struct picture *p) {{ return much[1]; }}");
    let answer = put("eater", &much);
    assert!(
        [422, 429].contains(&answer.status.unwrap()),
        "{}",
        answer.text()
    );
    let two = "char a[5000]; int eater(void *p) { return a[1] + 1; }";
    assert_eq!(put("eater", two).status, Some(201));
    let answer = put(
        "second",
        "char b[5000]; int second(void *p) { return b[1] + 1; }",
    );
    assert_eq!(answer.status, Some(429), "{}", answer.text());
    assert!(header(&answer, "retry-after").is_some());
    assert_eq!(put("one", &plain("one")).status, Some(201));
    assert_eq!(put("two", &plain("two")).status, Some(429));
    assert_eq!(put("one", &plain("one")).status, Some(200));
    let code: String = (0..150)
        .map(|i| format!("static int f{i}(int a){{return a*{i}/7;}}"))
        .collect();
    // What the verifier and the namespace have room for is less than that.
    let answer = put(
        "one",
        &format!(
            "{}int one(void *p){{return f1(1);}}",
            &code[..code.len().min(1900)]
                .rsplit_once("static")
                .unwrap()
                .0
        ),
    );
    assert!(
        [200, 429].contains(&answer.status.unwrap()),
        "{}",
        answer.text()
    );
    assert_eq!(
        ask(&serving, "DELETE", "/plugins/one", BOB, b"").status,
        Some(204)
    );
    assert_eq!(put("two", &plain("two")).status, Some(201));

    // One request at a time: a second one is refused while the first is in its plugin.
    assert_eq!(
        ask(&serving, "DELETE", "/plugins/eater", BOB, b"").status,
        Some(204)
    );
    assert_eq!(
        put("slow", "int slow(void *p) { for (;;) ; }").status,
        Some(201)
    );
    let picture = ppm(&photo(8, 8));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let one = || {
            ask(&serving, "POST", "/transcode?through=slow", BOB, &picture)
                .status
                .unwrap()
        };
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(one)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(
        statuses.contains(&504) && statuses.iter().all(|s| [504, 429].contains(s)),
        "{statuses:?}"
    );
}

#[test]
fn the_guest_that_was_here_longest_ago_goes() {
    let serving = site(SETTINGS);
    let token = |n: usize| format!("guest-number-{n}-0123456789");
    let put = |n: usize| {
        ask(
            &serving,
            "PUT",
            "/plugins/mine",
            &token(n),
            b"int mine(void *p) { return 1; }",
        )
        .status
    };
    let has = |n: usize| ask(&serving, "GET", "/plugins/mine", &token(n), b"").status == Some(200);
    for n in 0..4 {
        assert_eq!(put(n), Some(201));
    }
    assert!((0..4).all(has));
    assert!(has(0));
    assert_eq!(put(4), Some(201));
    assert!(!has(1) && has(0) && has(2) && has(3) && has(4));
}

#[test]
fn plugins_of_a_client_call_each_other() {
    let token = "library-0123456789abcdef";
    assert_eq!(
        put("tools", token, "int half(int x) { return x / 2; }").status,
        Some(201)
    );
    let picture = ppm(&photo(8, 8));
    assert_eq!(
        transcode("through=tools", token, &picture).status,
        Some(422)
    );
    let user = format!(
        "{H}int half(int x); int use(struct picture *p) {{ p->pixels[0] = half(p->argument[0]); return 1; }}"
    );
    assert_eq!(put("use", token, &user).status, Some(201));
    assert_eq!(
        decoded_ppm(&transcode("through=use(84)", token, &picture))[0],
        42
    );
    assert_eq!(
        put("tools", token, "int half(int x) { return x / 2 + 1; }").status,
        Some(200)
    );
    assert_eq!(
        decoded_ppm(&transcode("through=use(84)", token, &picture))[0],
        43
    );
    // A function belongs to one plugin.
    assert_eq!(
        put("thief", token, "int half(int x) { return 0; }").status,
        Some(409)
    );
    // Through the client's and the site's by turns.
    let answer = transcode(
        "through=use(10),gray,use(20),quantise(2),use(30)",
        token,
        &picture,
    );
    assert_eq!(decoded_ppm(&answer)[0], 16);
    // Gone: whoever calls it has a fault that says so.
    assert_eq!(
        ask(&SERVING, "DELETE", "/plugins/tools", token, b"").status,
        Some(204)
    );
    let said = fault(&transcode("through=use(84)", token, &picture), 500);
    assert_eq!(
        (
            &said["kind"],
            said["message"].as_str().unwrap().contains("half")
        ),
        (&"deleted".into(), true)
    );
}

#[test]
fn ten_clients_at_once_while_plugins_are_replaced() {
    let picture = ppm(&photo(32, 32));
    let serving = site(&SETTINGS.replace("guests_most = 4", "guests_most = 20"));
    let source =
        |n: usize| format!("{H}int mark(struct picture *p) {{ p->pixels[0] = {n}; return 1; }}");
    std::thread::scope(|scope| {
        for client in 0..10 {
            let (serving, picture, source) = (&serving, &picture, &source);
            scope.spawn(move || {
                let token = format!("client-number-{client}-0123456789");
                let put = |n: usize| {
                    let status = ask(
                        serving,
                        "PUT",
                        "/plugins/mark",
                        &token,
                        source(n).as_bytes(),
                    )
                    .status;
                    assert!([Some(200), Some(201)].contains(&status), "{status:?}");
                };
                put(10 * client);
                std::thread::scope(|scope| {
                    scope.spawn(|| (1..10).for_each(|n| put(10 * client + n)));
                    for _ in 0..15 {
                        let answer = ask(
                            serving,
                            "POST",
                            "/transcode?through=mark,gray,mark",
                            &token,
                            picture,
                        );
                        let mark = usize::from(decoded_ppm(&answer)[0]);
                        assert_eq!(mark / 10, client);
                    }
                });
                let answer = ask(serving, "POST", "/transcode?through=mark", &token, picture);
                assert_eq!(usize::from(decoded_ppm(&answer)[0]), 10 * client + 9);
            });
        }
    });
    let metrics = serving.get("/metrics").text();
    assert!(
        metrics.contains("postern_plugins_clients 10\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("postern_pictures_total{result=\"done\"} 160\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("postern_plugin_calls_total{plugin=\"gray\"} 150\n"),
        "{metrics}"
    );
}
