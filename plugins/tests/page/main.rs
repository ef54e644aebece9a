//! The page in a real browser: a person types a plugin, runs it, and attacks the server.
#![allow(missing_docs)]

mod browser;
#[allow(dead_code)]
#[path = "../../../server/tests/serve/site.rs"]
mod site;

use browser::{Browser, key};
use fantoccini::Locator;
use postern_server::Components;
use serde_json::Value;
use site::{Serving, example_plugins, folder, handler};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What the server has here.
pub const COMPONENTS: Components = Components {
    processes: None,
    plugins: Some(postern_plugins::read),
    page: Some(postern_plugins::serve_page),
};

/// Browsers are large: one at a time.
static ONE: Mutex<()> = Mutex::new(());

const PLUGIN: &str = "#include \"picture.h\"
int swap(struct picture *p)
{
unsigned long n = (unsigned long)p->width * p->height;
for (unsigned long i = 0; i < n; i++) {
const unsigned char *from = p->pixels + i * p->channels;
unsigned char *to = p->out + 3 * i;
to[0] = 255 - from[2]; to[1] = from[0]; to[2] = from[1] / 2;
}
p->channels = 3;
return 0;
}
";

fn serving() -> Serving {
    let beat = handler("/beat", "protected", "instances = 2\n");
    Serving::new(&format!(
        "[page]\nenabled = true\nheartbeat = \"/beat/hello\"\n[plugins]\nguests = true\ncall_ms = 2000\n{beat}"
    ))
}

const WIDTH: usize = 64;
const HEIGHT: usize = 40;

/// The colours of the test's photograph.
fn colour(x: usize, y: usize) -> [u8; 3] {
    [5 * x, 7 * y, 3 * x + 11 * y].map(|value| value as u8)
}

/// The photograph as a file that browsers read: a bitmap of 24 bits. (A row is a multiple of four
/// bytes.)
fn photograph() -> Vec<u8> {
    let size = 3 * WIDTH * HEIGHT;
    let head = [
        54 + size,
        0,
        54,
        40,
        WIDTH,
        HEIGHT,
        24 << 16 | 1,
        0,
        size,
        0,
        0,
        0,
        0,
    ];
    let mut file = b"BM".to_vec();
    file.extend(head.iter().flat_map(|&n| (n as u32).to_le_bytes()));
    for y in (0..HEIGHT).rev() {
        file.extend((0..WIDTH).flat_map(|x| colour(x, y).into_iter().rev()));
    }
    file
}

/// All pixels of a picture as a canvas has them.
fn pixels(of: impl Fn([u8; 3]) -> [u8; 3]) -> Vec<u8> {
    let places = (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (x, y)));
    let opaque = |(x, y)| {
        let [r, g, b] = of(colour(x, y));
        [r, g, b, 255]
    };
    places.flat_map(opaque).collect()
}

/// Opens the page, and gives it the photograph.
async fn open(browser: &Browser, serving: &Serving) {
    let url = format!("http://{}/", serving.address);
    browser.client.goto(&url).await.unwrap();
    browser
        .until("document.querySelectorAll('#domains button').length > 0")
        .await;
    let path = serving.path().join("photograph.bmp");
    std::fs::write(&path, photograph()).unwrap();
    let input = browser.client.find(Locator::Css("#file")).await.unwrap();
    input.send_keys(path.to_str().unwrap()).await.unwrap();
    browser.until(DONE).await;
}

/// Nothing runs any more.
const DONE: &str = "document.querySelector('#run').getAttribute('aria-disabled') === 'false'";

async fn write(browser: &Browser, source: &str) {
    browser.click("#source").await;
    browser.press(&[key::CONTROL, 'a']).await;
    browser.keys(source).await;
}

fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_plugin_is_typed_and_run_and_attacks_are_reported() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let serving = serving();
    let address = serving.address;
    browser::with(async move |browser: Browser| {
        browser.viewport(1360, 900, false).await;
        browser.scheme("light").await;
        open(&browser, &serving).await;
        let (width, height, before) = browser.pixels("before").await;
        assert_eq!((width, height), (WIDTH, HEIGHT));
        assert_eq!(before, pixels(|colour| colour));
        // The example that is there in the beginning.
        let (_, _, after) = browser.pixels("after").await;
        let gray = |[r, g, b]: [u8; 3]| {
            [((77 * u32::from(r) + 150 * u32::from(g) + 29 * u32::from(b)) >> 8) as u8; 3]
        };
        assert_eq!(after, pixels(gray));

        write(&browser, PLUGIN).await;
        browser.click("#run").await;
        browser.until(DONE).await;
        assert!(
            browser
                .text("#said")
                .await
                .starts_with("swap turned 64 × 40 into 64 × 40")
        );
        let swap = |[r, g, b]: [u8; 3]| [255 - b, r, g / 2];
        let (_, _, after) = browser.pixels("after").await;
        assert_eq!(after, pixels(swap));
        for number in ["compile", "verify", "call", "code"] {
            let text = browser.text(&format!("#n-{number}")).await;
            assert!(
                text.starts_with(|c: char| c.is_ascii_digit()),
                "{number}: {text}"
            );
        }
        browser
            .until("document.querySelectorAll('#machine .gs').length > 3")
            .await;
        browser.click("#tab-facts").await;
        assert!(
            browser
                .value("document.querySelectorAll('#facts dd').length > 2")
                .await
                == true
        );
        browser.click("#tab-code").await;
        // What was sent is the visitor's own, in a domain that the table marks and whose window is
        // shown.
        browser.until("document.querySelector('#domains tr:has(.yours:not([hidden]))')?.innerText.includes('plugin')").await;
        browser
            .until("document.querySelector('#window-name').innerText.startsWith('guest-')")
            .await;
        assert_eq!(
            browser
                .value("document.querySelector('#domains tr:has(.yours:not([hidden])) td:last-child').innerText.startsWith('0')")
                .await,
            false
        );

        // A mistake is shown where it is, with what to do.
        write(
            &browser,
            "int bad(struct picture *p)\n{\nreturn p->widht;\n}\n",
        )
        .await;
        browser.press(&[key::CONTROL, key::ENTER]).await;
        browser
            .until("document.querySelectorAll('#problems li').length > 0")
            .await;
        let shown = browser.text("#problems").await;
        assert!(shown.contains("Line"), "{shown}");
        assert_eq!(
            browser
                .value("document.querySelector('#source').ariaInvalid")
                .await,
            "true"
        );

        for (place, (name, kind, line)) in ATTACKS.into_iter().enumerate() {
            let counted = number(&status(&serving)["requests"]);
            let attack = format!("#attacks button:nth-child({})", place + 1);
            browser.click(&attack).await;
            browser.until(DONE).await;
            let report = browser.text("#report").await;
            assert!(report.contains(kind), "{name}: {report}");
            let wrong = browser.text("#paint .wrong").await;
            assert!(wrong.trim_start().starts_with(line), "{name}: {wrong}");
            assert_eq!(
                browser.text("#tab-fault[aria-selected=true]").await,
                "Fault report"
            );
            // Others are answered: the page's own requests go on.
            let beats = number(
                &browser
                    .value(
                        "Number(document.querySelector('#requests').innerText.replaceAll(',', ''))",
                    )
                    .await,
            );
            browser.until(&format!("Number(document.querySelector('#requests').innerText.replaceAll(',', '')) > {beats}")).await;
            // A report is used for a moment.
            while number(&status(&serving)["requests"]) <= counted {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            browser.shot(&format!("attack-{name}")).await;
        }
        // After all that, plugins run as before.
        write(&browser, PLUGIN).await;
        browser.press(&[key::CONTROL, key::ENTER]).await;
        browser
            .until("document.querySelector('#said').innerText.startsWith('swap turned')")
            .await;
        assert_eq!(browser.pixels("after").await.2, pixels(swap));
        // What was typed is there again, and for whoever has the link.
        let link = browser.value("document.querySelector('#link').href").await;
        let typed = browser
            .value("document.querySelector('#source').value")
            .await;
        let there = "document.querySelectorAll('#domains button').length > 0";
        browser
            .client
            .goto(&format!("http://{address}/"))
            .await
            .unwrap();
        browser.until(there).await;
        assert_eq!(
            browser
                .value("document.querySelector('#source').value")
                .await,
            typed
        );
        browser.value("localStorage.clear()").await;
        browser.client.goto("about:blank").await.unwrap();
        browser.client.goto(link.as_str().unwrap()).await.unwrap();
        browser.until(there).await;
        assert_eq!(
            browser
                .value("document.querySelector('#source').value")
                .await,
            typed
        );
        browser.click("#landscape").await;
        browser.until(DONE).await;
        browser
            .until("document.querySelector('#after').width === 720")
            .await;
        browser.shot("desktop-light").await;

        let mut expected = vec![format!("http://{address}/plugins/bad")];
        expected
            .extend(ATTACKS.map(|(name, ..)| format!("http://{address}/transcode?through={name}")));
        assert_eq!(browser.complaints(&expected).await, Vec::<String>::new());
    });
}

/// Plugin, kind of the fault, and the line that is shown.
const ATTACKS: [(&str, &str, &str); 4] = [
    ("loop", "deadline", "while (1) turns += p->width;"),
    ("wild", "write", "*server = 'X';"),
    ("jump", "jump", "return anywhere();"),
    ("recurse", "stack-overflow", "static int deeper(int depth)"),
];

fn status(serving: &Serving) -> Value {
    serde_json::from_str(&serving.get("/status").text()).unwrap()
}

#[test]
fn on_a_phone_and_in_the_dark_nothing_is_too_wide() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let serving = serving();
    let address = serving.address;
    browser::with(async move |browser: Browser| {
        browser.viewport(390, 844, true).await;
        browser.scheme("light").await;
        open(&browser, &serving).await;
        let light = browser
            .value("getComputedStyle(document.body).backgroundColor")
            .await;
        browser.assert_fits().await;
        browser.click("#landscape").await;
        browser.until(DONE).await;
        browser
            .until("document.querySelector('#after').width === 720")
            .await;
        browser.assert_fits().await;
        browser.shot("phone-light").await;
        browser.scheme("dark").await;
        let dark = browser
            .value("getComputedStyle(document.body).backgroundColor")
            .await;
        assert_ne!(light, dark);
        browser.click("#attacks button:nth-child(2)").await;
        browser.until(DONE).await;
        for tab in ["code", "facts", "fault"] {
            browser.click(&format!("#tab-{tab}")).await;
            browser.assert_fits().await;
        }
        browser.shot("phone-dark").await;
        browser.viewport(1360, 900, false).await;
        browser.click("#run").await;
        browser.until(DONE).await;
        browser.shot("desktop-dark").await;
        let expected = [format!("http://{address}/transcode?through=wild")];
        assert_eq!(browser.complaints(&expected).await, Vec::<String>::new());
    });
}

#[test]
fn all_of_it_can_be_done_with_the_keyboard() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let serving = serving();
    let address = serving.address;
    browser::with(async move |browser: Browser| {
        let url = format!("http://{address}/");
        browser.client.goto(&url).await.unwrap();
        browser
            .until("document.querySelectorAll('#domains button').length > 0")
            .await;
        // The first stop leads past everything, to the editor.
        browser.press(&[key::TAB]).await;
        assert_eq!(focus(&browser).await, "To the editor");
        browser.press(&[key::ENTER]).await;
        browser
            .until("document.activeElement.id === 'source'")
            .await;
        browser.press(&[key::CONTROL, 'a']).await;
        browser.keys("int x;\n\t").await;
        assert_eq!(
            browser
                .value("document.querySelector('#source').value")
                .await,
            "int x;\n\t"
        );
        browser.press(&[key::CONTROL, 'a']).await;
        browser.keys("{\n{\nx;\n}\n}").await;
        assert_eq!(
            browser
                .value("document.querySelector('#source').value")
                .await,
            "{\n\t{\n\t\tx;\n\t}\n}"
        );
        browser.press(&[key::CONTROL, 'a']).await;
        browser.keys(PLUGIN).await;
        browser.press(&[key::CONTROL, key::ENTER]).await;
        browser
            .until("document.querySelector('#said').innerText.startsWith('swap turned')")
            .await;
        // Out of the editor, and on to each thing that can be pressed.
        browser.press(&[key::ESCAPE]).await;
        let mut stops = Vec::new();
        while stops.last().is_none_or(|last| last != "/status") {
            browser.press(&[key::TAB]).await;
            stops.push(focus(&browser).await);
            assert!(stops.len() < 60, "{stops:?}");
            match &**stops.last().unwrap() {
                stop if stop.starts_with("Wild write") => {
                    browser.press(&[key::ENTER]).await;
                    browser.until("document.querySelector('#said').innerText.startsWith('wild was stopped')").await;
                }
                "Fault report" => {
                    browser.press(&[key::LEFT]).await;
                    assert_eq!(focus(&browser).await, "Verifier’s facts");
                    assert_eq!(
                        browser
                            .value("document.querySelector('#panel-facts').hidden")
                            .await,
                        false
                    );
                }
                _ => {}
            }
        }
        for stop in [
            "Endless loop",
            "Recursion",
            "Choose a photograph",
            "Landscape",
            "Fault report",
            "/beat#1",
        ] {
            let there = stops.iter().any(|found| found.starts_with(stop));
            assert!(there, "{stop}: {stops:?}");
        }
        let expected = [format!("http://{address}/transcode?through=wild")];
        assert_eq!(browser.complaints(&expected).await, Vec::<String>::new());
    });
}

/// Plugin of the example's site, arguments that the page proposes, and the size of what comes of
/// the landscape.
const OFFERED: [(&str, &str, &str); 7] = [
    ("deflate", "", "720 × 480"),
    ("gray", "", "720 × 480"),
    ("quantise", "4", "720 × 480"),
    ("roi", "180,120,360,240", "360 × 240"),
    ("scale", "3", "240 × 160"),
    ("scale2", "", "360 × 240"),
    ("sharpen", "", "720 × 480"),
];

#[test]
fn plugins_of_the_site_are_offered_and_run_with_arguments() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let site = folder();
    example_plugins(site.path());
    let serving = Serving::of(
        site,
        "[page]\nenabled = true\n[plugins]\nguests = true\ncall_ms = 5000\n",
    );
    let address = serving.address;
    browser::with(async move |browser: Browser| {
        browser.viewport(1360, 900, false).await;
        browser
            .client
            .goto(&format!("http://{address}/"))
            .await
            .unwrap();
        browser
            .until("document.querySelector('#sample optgroup[label=\"On this server\"]') !== null")
            .await;
        for (name, values, size) in OFFERED {
            let option = format!("//optgroup[@label='On this server']/option[.='{name}']");
            let option = browser.client.find(Locator::XPath(&option)).await.unwrap();
            option.click().await.unwrap();
            let done = format!("{name} turned 720 × 480 into {size} ");
            browser
                .until(&format!(
                    "document.querySelector('#said').innerText.startsWith({done:?})"
                ))
                .await;
            browser.until(DONE).await;
            let shown = browser
                .value("document.querySelector('#source').value")
                .await;
            let function = format!("int {name}(struct picture *p)");
            assert!(shown.as_str().unwrap().contains(&function), "{shown}");
            let field = browser
                .value("(({ value, parentElement }) => parentElement.hidden ? '' : value)(document.querySelector('#values'))")
                .await;
            assert_eq!(field, values, "{name}");
            if name == "roi" {
                browser.click("#values").await;
                browser.press(&[key::CONTROL, 'a']).await;
                browser.keys("700, 400, 100, 50").await;
                browser.press(&[key::ENTER]).await;
                browser
                    .until("document.querySelector('#said').innerText.startsWith('roi turned 720 × 480 into 20 × 50 ')")
                    .await;
                browser.until(DONE).await;
            }
        }
        assert_eq!(browser.complaints(&[]).await, Vec::<String>::new());
    });
}

#[test]
fn a_token_is_asked_for_and_a_photograph_can_be_dropped() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let serving = Serving::new(
        "[page]\nenabled = true\n[plugins]\nclients = [{ name = \"ann\", token = \"ann-0123456789abcdef\" }]\n",
    );
    let address = serving.address;
    browser::with(async move |browser: Browser| {
        browser
            .client
            .goto(&format!("http://{address}/"))
            .await
            .unwrap();
        browser.click("#run").await;
        browser
            .until("!document.querySelector('#token-form').hidden")
            .await;
        browser.click("#token").await;
        browser.keys("ann-0123456789abcdef").await;
        browser.press(&[key::ENTER]).await;
        browser
            .until("document.querySelector('#said').innerText.startsWith('gray turned 720 × 480')")
            .await;
        browser
            .until("document.querySelector('#domains tr:has(.yours:not([hidden]))')?.innerText.includes('ann')")
            .await;
        let dropped = format!(
            "(() => {{ const data = new DataTransfer(); data.items.add(new File([new Uint8Array({:?})], 'a.bmp', {{ type: 'image/bmp' }})); return document.querySelector('#drop').dispatchEvent(new DragEvent('drop', {{ dataTransfer: data, cancelable: true }})); }})()",
            photograph()
        );
        // The page takes it, the browser does not.
        assert_eq!(browser.value(&dropped).await, false);
        browser
            .until("document.querySelector('#said').innerText.startsWith('gray turned 64 × 40')")
            .await;
        let expected = [format!("http://{address}/plugins/gray")];
        assert_eq!(browser.complaints(&expected).await, Vec::<String>::new());
    });
}

/// What has the keyboard's focus, as it is called.
async fn focus(browser: &Browser) -> String {
    let name =
        "document.activeElement.getAttribute('aria-label') || document.activeElement.innerText";
    browser
        .value(name)
        .await
        .as_str()
        .unwrap_or_default()
        .to_owned()
}
