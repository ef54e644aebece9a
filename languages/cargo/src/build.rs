//! What is built, as options say it.

use std::path::PathBuf;

use clap::Args;

/// Options of each build.
#[derive(Args)]
pub struct Build {
    /// Where the crate's Cargo.toml is
    #[arg(long, value_name = "FILE")]
    pub manifest_path: Option<PathBuf>,
    /// The crate of the workspace
    #[arg(short, long, value_name = "NAME")]
    pub package: Option<String>,
    /// The program with this name; without it, the crate's library or its only program
    #[arg(long, value_name = "NAME")]
    pub bin: Option<String>,
    /// Features
    #[arg(long, value_name = "NAMES")]
    pub features: Option<String>,
    /// Without the default features
    #[arg(long)]
    pub no_default_features: bool,
    /// The processor that it needs, such as x86-64-v3
    #[arg(long, value_name = "NAME")]
    pub march: Option<String>,
    /// An option for the link, as `postern cc` has it, such as -fpostern-heap=64M
    #[arg(long = "cc", value_name = "OPTION", allow_hyphen_values = true)]
    pub link: Vec<String>,
    /// The file to write [default: NAME.px in the target folder]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
