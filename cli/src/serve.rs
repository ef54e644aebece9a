//! `postern serve`: an HTTP server whose handlers are extensions.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use postern_server::{Components, Server, Site, signals};

use crate::output::{self, Failure, Outcome, REFUSED, SUCCESS};

/// Serve a folder over HTTP: files, and programs in C as extensions, FastCGI or CGI
#[derive(Args)]
#[command(after_help = "\
Without serve.toml, files of DIR/public are served, and each DIR/handlers/NAME.c or NAME.px as an extension at /NAME.
Programs include <libcgi.h>; --header prints it. Plugins include <picture.h>; --picture-header prints that. The book's page \"A web server\" has the keys of serve.toml.
SIGINT and SIGTERM end the server in good order; at SIGUSR1 and SIGHUP it opens its log files again.

Exit status: 0, 1 if a program cannot be built or loaded, 2 if the configuration is wrong or the address is taken.

Examples:
  postern serve examples/site
  postern serve --check examples/site
  postern serve --listen 0.0.0.0:8080 .")]
pub struct Arguments {
    /// Folder of the site
    #[arg(default_value = ".", value_name = "DIR")]
    directory: PathBuf,
    /// Where to listen, instead of where the site says; port 0 lets the kernel choose
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Check the configuration, build and load the programs, and end
    #[arg(long)]
    check: bool,
    /// Print the header for programs, and end
    #[arg(long)]
    header: bool,
    /// Print the header for plugins, and end
    #[arg(long)]
    picture_header: bool,
}

/// All that a server can have.
const COMPONENTS: Components = Components {
    processes: Some(postern_cgi::start),
    plugins: Some(postern_plugins::read),
    page: Some(postern_plugins::serve_page),
};

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    if arguments.header {
        output::print(postern_server::LIBCGI)?;
        return Ok(SUCCESS);
    }
    if arguments.picture_header {
        output::print(postern_plugins::PICTURE_H)?;
        return Ok(SUCCESS);
    }
    let unusable = |error: &dyn std::fmt::Display| Failure::unusable(error.to_string());
    let mut site = Site::load(&arguments.directory, COMPONENTS).map_err(|e| unusable(&e))?;
    if let Some(address) = arguments.listen {
        site.listen = address;
    }
    let handlers = site.handlers.len();
    if arguments.check {
        postern_server::check(&site).map_err(failure)?;
        output::print(&format!(
            "{}: {handlers} handlers, all fine\n",
            arguments.directory.display()
        ))?;
        return Ok(SUCCESS);
    }
    let scheme = if site.tls.is_some() { "https" } else { "http" };
    let server = Server::new(site).map_err(failure)?;
    let address = server.address().map_err(|e| unusable(&e))?;
    let folder = arguments.directory.display();
    output::print(&format!(
        "serving {folder} ({handlers} handlers) at {scheme}://{address}/\n"
    ))?;
    let log = server.log().clone();
    server.run(signals(log)).map_err(failure)?;
    Ok(SUCCESS)
}

fn failure(error: postern_server::ServeError) -> Failure {
    match error {
        postern_server::ServeError::Handler(_) => Failure::new(REFUSED, error.to_string()),
        other => Failure::unusable(other.to_string()),
    }
}
