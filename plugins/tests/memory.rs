//! What pictures take of the memory. By itself, since memory is the process's.
#![allow(missing_docs)]

#[allow(dead_code)]
#[path = "../../server/tests/serve/site.rs"]
mod site;

use image::{DynamicImage, ImageFormat, RgbaImage};
use postern_server::Components;
use site::{Serving, example_plugins, folder, request};
use std::io::Cursor;

/// What the server has here.
pub const COMPONENTS: Components = Components {
    processes: None,
    plugins: Some(postern_plugins::read),
    page: None,
};

/// MiB of this process, by its name in `/proc/self/status`.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes >> 10
}

#[test]
fn small_files_of_large_pictures_take_no_more_than_the_budget_and_give_it_back() {
    let folder = folder();
    example_plugins(folder.path());
    let serving = Serving::of(
        folder,
        "[plugins]\ninstances = 8\nmemory_bytes = 268435456\nwait_ms = 600000\n",
    );
    let mut file = Cursor::new(Vec::new());
    // 60 MiB of pixels in 60 KiB.
    let picture = DynamicImage::from(RgbaImage::new(4000, 3900));
    picture.write_to(&mut file, ImageFormat::Png).unwrap();
    drop(picture);
    let file = file.into_inner();
    let headers = format!("Content-Length: {}\r\n", file.len());
    let bytes = request("POST", "/transcode?through=gray,scale2", &headers, &file);
    // One warms up what is kept, whatever it takes.
    assert_eq!(serving.send(&bytes).status, Some(200));
    let (peak, before) = (memory("VmHWM"), memory("VmRSS"));
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| assert_eq!(serving.send(&bytes).status, Some(200)));
        }
    });
    // They take turns: the most is not twenty times one's, nor eight times.
    let most = memory("VmHWM");
    assert!(most < 2 * peak + 64, "{most} MiB, {peak} of one");
    let after = memory("VmRSS");
    assert!(after < before + 48, "{after} MiB, {before} before");
}
