//! A real browser: Debian's Chromium without a screen, driven through its WebDriver program.
//!
//! Invariant: both end with the test, also with one that fails.

use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder};
use http::Method;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use std::future::Future;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use url::{ParseError, Url};

/// Longer than anything here takes: what has not happened by then will not.
const LONG: Duration = Duration::from_secs(120);

/// Keys by the numbers that WebDriver gives them.
pub mod key {
    pub const TAB: char = '\u{e004}';
    pub const ENTER: char = '\u{e007}';
    pub const CONTROL: char = '\u{e009}';
    pub const ESCAPE: char = '\u{e00c}';
    pub const LEFT: char = '\u{e012}';
}

/// The WebDriver program.
struct Driver {
    child: Child,
    port: u16,
}

impl Driver {
    fn new() -> Driver {
        let mut child = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver cannot be started: apt-get install chromium chromium-driver");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.by_ref().find_map(|line| {
            let line = line.unwrap();
            line.split("successfully on port ")
                .nth(1)?
                .trim_end_matches('.')
                .parse()
                .ok()
        });
        // It may say more; somebody must listen.
        std::thread::spawn(move || lines.for_each(drop));
        let port = port.expect("chromedriver has not said its port");
        Driver { child, port }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that WebDriver itself does not have.
#[derive(Debug)]
struct Own(&'static str, Value);

impl WebDriverCompatibleCommand for Own {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!(
            "session/{}/{}",
            session.unwrap_or_default(),
            self.0
        ))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.1.to_string()))
    }
}

/// A window of the browser.
#[derive(Clone)]
pub struct Browser {
    pub client: Client,
}

/// Opens a browser of its own for a test, and closes it whatever becomes of the test.
pub fn with<F: Future<Output = ()> + Send + 'static>(test: impl FnOnce(Browser) -> F) {
    let driver = Driver::new();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let result = runtime.block_on(async {
        let mut capabilities = serde_json::Map::new();
        capabilities.insert(
            "goog:chromeOptions".to_owned(),
            json!({ "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb"] }),
        );
        capabilities.insert("goog:loggingPrefs".to_owned(), json!({ "browser": "ALL" }));
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{}", driver.port))
            .await
            .expect("Chromium cannot be started");
        let browser = Browser { client: client.clone() };
        let result = tokio::spawn(test(browser)).await;
        let _ = client.close().await;
        result
    });
    if let Err(error) = result {
        std::panic::resume_unwind(error.into_panic());
    }
}

impl Browser {
    async fn own(&self, path: &'static str, body: Value) -> Value {
        self.client.issue_cmd(Own(path, body)).await.unwrap()
    }

    async fn devtools(&self, command: &str, parameters: Value) {
        self.own(
            "goog/cdp/execute",
            json!({ "cmd": command, "params": parameters }),
        )
        .await;
    }

    /// What the viewport is like.
    pub async fn viewport(&self, width: u32, height: u32, mobile: bool) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.devtools("Emulation.setDeviceMetricsOverride", size)
            .await;
    }

    /// Dark or light.
    pub async fn scheme(&self, name: &str) {
        let feature = json!({ "features": [{ "name": "prefers-color-scheme", "value": name }] });
        self.devtools("Emulation.setEmulatedMedia", feature).await;
    }

    /// The value of an expression.
    pub async fn value(&self, expression: &str) -> Value {
        let script = format!("return ({expression});");
        self.client
            .execute(&script, vec![])
            .await
            .unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    pub async fn text(&self, selector: &str) -> String {
        let value = self
            .value(&format!(
                "document.querySelector({selector:?})?.innerText ?? null"
            ))
            .await;
        value
            .as_str()
            .unwrap_or_else(|| panic!("no {selector}"))
            .to_owned()
    }

    /// Waits until an expression is true.
    pub async fn until(&self, expression: &str) {
        let began = Instant::now();
        while self.value(expression).await != Value::Bool(true) {
            if began.elapsed() > LONG {
                self.shot("given-up").await;
                panic!(
                    "never: {expression}; the page says {:?}",
                    self.text("#said").await
                );
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    pub async fn click(&self, selector: &str) {
        let element = self
            .client
            .find(fantoccini::Locator::Css(selector))
            .await
            .unwrap();
        element.click().await.unwrap();
    }

    /// Types as a person does, into what has the focus.
    pub async fn keys(&self, keys: &str) {
        let focus = self.client.active_element().await.unwrap();
        focus.send_keys(keys).await.unwrap();
    }

    /// Presses keys one after the other, and lets them go together.
    pub async fn press(&self, keys: &[char]) {
        let mut actions = KeyActions::new("keyboard".to_owned());
        for &value in keys {
            actions = actions.then(KeyAction::Down { value });
        }
        for &value in keys.iter().rev() {
            actions = actions.then(KeyAction::Up { value });
        }
        self.client.perform_actions(actions).await.unwrap();
    }

    /// Width, height and pixels (RGBA) of a canvas.
    pub async fn pixels(&self, id: &str) -> (usize, usize, Vec<u8>) {
        let script = format!(
            "(() => {{ const c = document.getElementById({id:?}); return [c.width, c.height, [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]]; }})()"
        );
        let value = self.value(&script).await;
        let number = |value: &Value| value.as_u64().unwrap() as usize;
        let pixels = value[2].as_array().unwrap().iter().map(|v| number(v) as u8);
        (number(&value[0]), number(&value[1]), pixels.collect())
    }

    /// The whole page as a picture, kept as output of the test.
    pub async fn shot(&self, name: &str) {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("page");
        std::fs::create_dir_all(&folder).unwrap();
        let width = self.value("innerWidth").await.as_u64().unwrap() as u32;
        let whole = self
            .value("document.scrollingElement.scrollHeight")
            .await
            .as_u64()
            .unwrap() as u32;
        self.viewport(width, whole, width < 600).await;
        let picture = self.client.screenshot().await.unwrap();
        std::fs::write(folder.join(format!("{name}.png")), picture).unwrap();
        self.viewport(width, 900, width < 600).await;
    }

    /// Errors that the console shows, without what the browser says itself of answers that the test
    /// asked for: those of these addresses.
    pub async fn complaints(&self, expected: &[String]) -> Vec<String> {
        let log = self.own("se/log", json!({ "type": "browser" })).await;
        let severe = log
            .as_array()
            .unwrap()
            .iter()
            .filter(|entry| entry["level"] == "SEVERE");
        let messages = severe.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned());
        let own = |message: &String| {
            expected.iter().any(|url| {
                message.starts_with(&format!(
                    "{url} - Failed to load resource: the server responded with a status of "
                ))
            })
        };
        messages.filter(|message| !own(message)).collect()
    }

    /// Nothing is wider than the window.
    pub async fn assert_fits(&self) {
        let wide = self
            .value("[document.scrollingElement.scrollWidth, innerWidth]")
            .await;
        assert!(
            wide[0].as_u64() <= wide[1].as_u64(),
            "the page is {wide} wide"
        );
    }
}
