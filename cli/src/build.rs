//! `postern build`: an extension from its description, with a line for each step.

use std::path::PathBuf;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use postern_image::ImageFile;
use postern_toolchain::project::{Event, Options, Project, ProjectError};
use postern_verifier::Profile;

use crate::judgement::{FactsView, Subject};
use crate::output::{self, Failure, Outcome, REFUSED, SUCCESS, Style};

/// Build the extension that postern.toml describes
#[derive(Args)]
#[command(after_help = "\
Compiles what has changed, several sources at once, links, and has the verifier judge the result.
The book's page \"postern.toml\" lists the keys of the description.

Exit status: 0, 1 if the sources or the description are wrong, 2 if there is no description or a file cannot be used.

Examples:
  postern build
  postern build examples/codecs/zlib --native -j 4")]
pub struct Arguments {
    /// Folder of postern.toml
    #[arg(default_value = ".", value_name = "DIR")]
    directory: PathBuf,
    /// Folder for objects and the result [default: DIR/build]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Build an ordinary shared object of the same sources, too, to compare
    #[arg(long)]
    native: bool,
    /// Compilers that run at once [default: one for each processor]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Print each step as a JSON object on a line of its own
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let failure = |error: ProjectError| match error {
        ProjectError::Missing(_) | ProjectError::File { .. } => {
            Failure::unusable(error.to_string())
        }
        other => Failure::new(REFUSED, other.to_string()),
    };
    let project = Project::load(&arguments.directory).map_err(failure)?;
    let folder = arguments.folder.clone();
    let beside = arguments.directory.strip_prefix(".");
    let beside = beside.unwrap_or(&arguments.directory).join("build");
    let mut options = Options::new(folder.unwrap_or(beside));
    options.native = arguments.native;
    options.jobs = arguments.jobs.map_or(options.jobs, usize::from);
    options.colour = Style::stderr().is_on() && !arguments.json;

    let mut steps = Steps::new(arguments.json);
    let built = project.build(&options, &mut |event| steps.tell(event));
    steps.bar.finish_and_clear();
    let built = built.map_err(failure)?;

    let file = output::read(&built.extension)?;
    let image = ImageFile::parse(&file).map_err(|e| Failure::new(REFUSED, e.to_string()))?;
    let facts = match Subject::image(&image, &file).judge(Profile::User) {
        Ok(facts) => FactsView::from(&facts),
        Err(refusal) => {
            let text = format!(
                "{}: refused at {}",
                built.extension.display(),
                refusal.place()
            );
            return Err(Failure::new(REFUSED, text));
        }
    };
    if arguments.json {
        let event = serde_json::json!({
            "event": "verified", "output": built.extension, "native": built.native, "facts": facts,
        });
        output::print(&format!("{event}\n"))?;
    } else {
        steps.line("verify", &facts.sentence());
    }
    Ok(SUCCESS)
}

/// What a person or a program sees of a build.
struct Steps {
    json: bool,
    bar: ProgressBar,
}

impl Steps {
    fn new(json: bool) -> Steps {
        // Hidden by itself where standard error is no terminal.
        let bar = if json {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(0)
        };
        if let Ok(style) = ProgressStyle::with_template("{prefix:>9} [{bar:40}] {pos}/{len}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix("compile");
        Steps { json, bar }
    }

    fn tell(&mut self, event: &Event) {
        if self.json {
            let line = serde_json::to_string(event).unwrap_or_default();
            // A reader that went away does not stop the build.
            let _ = output::print(&(line + "\n"));
            return;
        }
        match event {
            Event::Fetch { name, version } => self.line("source", &format!("{name} {version}")),
            Event::Plan { stale, .. } => {
                self.bar.reset();
                self.bar.set_length(*stale as u64);
            }
            Event::Compiled {
                source,
                messages,
                native,
            } => {
                self.bar.inc(1);
                self.line(if *native { "gcc" } else { "compile" }, source);
                self.messages(messages);
            }
            Event::Failed { source, messages } => {
                self.bar.inc(1);
                self.line("failed", source);
                self.messages(messages);
            }
            Event::Linked { output, .. } => self.line("link", &output.display().to_string()),
            Event::Fresh { output, .. } => {
                self.line("fresh", &output.display().to_string());
            }
        }
    }

    /// One line for one step.
    fn line(&self, step: &str, what: &str) {
        let style = Style::stdout();
        let step = format!("{step:>9}");
        let step = if step.ends_with("failed") {
            style.red(&step)
        } else {
            style.bold(&step)
        };
        self.bar.suspend(|| {
            let _ = output::print(&format!("{step}  {what}\n"));
        });
    }

    /// What the compiler says, as it says it.
    fn messages(&self, messages: &str) {
        if !messages.is_empty() {
            self.bar.suspend(|| eprintln!("{}", messages.trim_end()));
        }
    }
}
