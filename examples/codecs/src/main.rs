//! `codec`: compresses and decompresses files by a library that is not trusted.
//!
//! `postern build zlib && cargo run -p postern-example-codecs -- zlib/build/zlib.px compress
//! book.txt book.zz`
#![allow(missing_docs)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use postern::{Domain, Image};
use postern_example_codecs::Codec;

/// Compress or decompress a file by an extension that exports what codec.h declares
#[derive(Parser)]
struct Arguments {
    /// The codec, as `postern build` makes it
    extension: PathBuf,
    work: Work,
    from: PathBuf,
    to: PathBuf,
    /// How hard the codec tries
    #[arg(long, default_value_t = 6)]
    level: i32,
    /// Longest time, in seconds
    #[arg(long, default_value_t = 60)]
    deadline: u64,
    /// Largest result of decompressing, in MiB
    #[arg(long, default_value_t = 32)]
    limit: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Work {
    Compress,
    Decompress,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("codec: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let input = std::fs::read(&arguments.from)?;
    let limit = arguments.limit << 20;
    let image = Image::load(&arguments.extension)?;
    // Room for both buffers and for what the library allocates.
    let heap = 2 * (input.len() as u64 + limit as u64) + (128 << 20);
    let domain = Domain::builder(&image)
        .deadline(Some(Duration::from_secs(arguments.deadline)))
        .heap(heap)
        .build()?;
    let codec = Codec::new(domain)?;
    let output = match arguments.work {
        Work::Compress => codec.compress(&input, arguments.level)?,
        Work::Decompress => codec.decompress(&input, limit)?,
    };
    std::fs::write(&arguments.to, &output)?;
    println!("{} bytes in, {} bytes out", input.len(), output.len());
    Ok(())
}
