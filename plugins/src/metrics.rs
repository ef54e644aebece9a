//! What plugins did, as Prometheus reads it. Those of clients are counters together: there may be
//! many.

use crate::plugins::Plugins;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

impl Plugins {
    /// Lines for `/metrics`.
    pub fn metrics_text(&self) -> String {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let seconds = |counter: &AtomicU64| load(counter) as f64 / 1e9;
        let brought = self.clients.sum(|client| client.plugins().len());
        let with = self.clients.sum(|client| usize::from(client.has_space()));
        let pictures = &self.pictures;
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, lines: &[(String, f64)]| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (label, value) in lines {
                let _ = writeln!(text, "{name}{label} {value}");
            }
        };
        let alone = |value: f64| [(String::new(), value)];
        family(
            "postern_plugins_clients",
            "gauge",
            "Clients that have a namespace.",
            &alone(with as f64),
        );
        family(
            "postern_plugins_brought",
            "gauge",
            "Plugins that clients have.",
            &alone(brought as f64),
        );
        family(
            "postern_plugins_waiting",
            "gauge",
            "Requests that wait until others are done.",
            &alone(self.queue.waiting() as f64),
        );
        family(
            "postern_plugins_kept_bytes",
            "gauge",
            "Bytes of shared areas that are kept for the next pictures.",
            &alone(self.context.kept.load(Ordering::Relaxed) as f64),
        );
        let (work, lying) = self.memory.taken();
        family(
            "postern_pictures_bytes",
            "gauge",
            "Memory of pictures: what is worked on, at most, and bodies and answers on their way.",
            &[
                ("{part=\"work\"}".to_owned(), work as f64),
                ("{part=\"lying\"}".to_owned(), lying as f64),
            ],
        );
        let results = [
            ("done", &pictures.done),
            ("refused", &pictures.refused),
            ("fault", &pictures.faults),
        ];
        family(
            "postern_pictures_total",
            "counter",
            "Pictures by what became of them.",
            &results
                .map(|(name, counter)| (format!("{{result=\"{name}\"}}"), load(counter) as f64)),
        );
        let steps = [
            ("decode", &pictures.decode),
            ("plugins", &pictures.inside),
            ("encode", &pictures.encode),
        ];
        family(
            "postern_pictures_seconds_total",
            "counter",
            "Time of pictures that were not refused before, by step.",
            &steps.map(|(name, counter)| (format!("{{step=\"{name}\"}}"), seconds(counter))),
        );
        let set = self.site();
        let of = |value: &dyn Fn(&crate::plugin::Plugin) -> f64| -> Vec<(String, f64)> {
            let plugins = set.plugins.values();
            plugins
                .map(|plugin| (format!("{{plugin=\"{}\"}}", plugin.name), value(plugin)))
                .collect()
        };
        family(
            "postern_plugin_calls_total",
            "counter",
            "Calls of the site's plugins.",
            &of(&|plugin| load(&plugin.calls) as f64),
        );
        family(
            "postern_plugin_faults_total",
            "counter",
            "Calls of the site's plugins that ended in a fault.",
            &of(&|plugin| load(&plugin.faults) as f64),
        );
        family(
            "postern_plugin_seconds_total",
            "counter",
            "Time inside the site's plugins.",
            &of(&|plugin| seconds(&plugin.busy)),
        );
        text
    }
}
