//! What the web server of ExOS has to serve at first: `programs/site`, its programs made by
//! `postern cc` of sources as other servers have them, and a picture.

use crate::extensions::{self, ExtensionsError};
use crate::place;

/// The folder in the archive.
pub const FOLDER: &str = "www";

/// Width and height of the picture.
pub const SIZE: (u32, u32) = (96, 64);

/// A picture, as a PPM file: colours that go over into each other.
pub fn picture() -> Vec<u8> {
    let (width, height) = SIZE;
    let mut file = format!("P6\n{width} {height}\n255\n").into_bytes();
    for y in 0..height {
        let row = (0..width).flat_map(|x| [(x * 255 / width) as u8, (y * 255 / height) as u8, 128]);
        file.extend(row);
    }
    file
}

/// Names of files in the archive, and their bytes.
pub fn make() -> Result<Vec<(String, Vec<u8>)>, ExtensionsError> {
    let folder = place::sources().join("programs/site");
    let page = folder.join("index.html");
    let bytes = std::fs::read(&page).map_err(|error| ExtensionsError::File(page, error))?;
    let mut files = vec![
        (format!("{FOLDER}/index.html"), bytes),
        (format!("{FOLDER}/picture.ppm"), picture()),
    ];
    let include = format!("-I{}", place::repository().join("server/include").display());
    for (name, bytes) in extensions::of(&folder.join("cgi"), &["-O2", &include])? {
        files.push((format!("{FOLDER}/cgi/{name}"), bytes));
    }
    Ok(files)
}
