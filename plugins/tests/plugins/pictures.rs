//! The plugins that are shipped, pixel by pixel: as E-code, by `postern cc` and by gcc, and as they
//! should be.

use crate::plugins::{ask, decoded_ppm, header, photo, ppm, site};
use crate::site::Serving;

/// A picture of so many channels, as PNG: of these all are kept.
fn png(width: u32, height: u32, channels: usize) -> (Vec<u8>, Vec<u8>) {
    let colour = [
        image::ExtendedColorType::L8,
        image::ExtendedColorType::La8,
        image::ExtendedColorType::Rgb8,
        image::ExtendedColorType::Rgba8,
    ][channels - 1];
    let mut random = fastrand::Rng::with_seed(1);
    let size = (width * height) as usize * channels;
    let pixels: Vec<u8> = (0..size).map(|_| random.u8(..)).collect();
    let mut file = Vec::new();
    let encoder = image::codecs::png::PngEncoder::new(&mut file);
    image::ImageEncoder::write_image(encoder, &pixels, width, height, colour).unwrap();
    (file, pixels)
}

/// The answer's picture: width, height, channels, pixels.
fn through(serving: &Serving, query: &str, file: &[u8]) -> (u32, u32, usize, Vec<u8>) {
    let answer = ask(
        serving,
        "POST",
        &format!("/transcode?through={query}"),
        "",
        file,
    );
    assert_eq!(answer.status, Some(200), "{query}: {}", answer.text());
    let image = image::load_from_memory(&answer.body).unwrap();
    let channels = usize::from(image.color().channel_count());
    (image.width(), image.height(), channels, image.into_bytes())
}

fn expected(name: &str, (w, h, n): (usize, usize, usize), p: &[u8]) -> (u32, u32, usize, Vec<u8>) {
    let at = |x: usize, y: usize, c: usize| u32::from(p[(y * w + x) * n + c]);
    let colours = if n % 2 == 0 { n - 1 } else { n };
    let make = |w2: usize, h2: usize, n2: usize, f: &dyn Fn(usize, usize, usize) -> u32| {
        let all = (0..h2).flat_map(|y| (0..w2).flat_map(move |x| (0..n2).map(move |c| (x, y, c))));
        let pixels = all.map(|(x, y, c)| u8::try_from(f(x, y, c)).unwrap());
        (w2 as u32, h2 as u32, n2, pixels.collect())
    };
    match name {
        "gray" if n < 3 => make(w, h, 1, &|x, y, _| at(x, y, 0)),
        "gray" => make(w, h, 1, &|x, y, _| {
            (77 * at(x, y, 0) + 150 * at(x, y, 1) + 29 * at(x, y, 2)) >> 8
        }),
        "scale2" => make(w / 2, h / 2, n, &|x, y, c| {
            let (x, y) = (2 * x, 2 * y);
            (at(x, y, c) + at(x + 1, y, c) + at(x, y + 1, c) + at(x + 1, y + 1, c) + 2) / 4
        }),
        "scale(3)" => make(w / 3, h / 3, n, &|x, y, c| {
            let block = (0..9).map(|i| at(3 * x + i % 3, 3 * y + i / 3, c));
            (block.sum::<u32>() + 4) / 9
        }),
        "roi(5,3,10,100)" => make(10.min(w - 5), h - 3, n, &|x, y, c| at(x + 5, y + 3, c)),
        "quantise(4)" => make(w, h, n, &|x, y, c| match c < colours {
            true => at(x, y, c) * 4 / 256 * 255 / 3,
            false => at(x, y, c),
        }),
        "sharpen" => make(w, h, n, &|x, y, c| {
            let rim = x == 0 || y == 0 || x + 1 == w || y + 1 == h;
            if rim || c >= colours {
                return at(x, y, c);
            }
            let around = at(x - 1, y, c) + at(x + 1, y, c) + at(x, y - 1, c) + at(x, y + 1, c);
            (5 * at(x, y, c)).saturating_sub(around).min(255)
        }),
        other => panic!("{other}"),
    }
}

const NAMES: [&str; 6] = [
    "gray",
    "scale2",
    "scale(3)",
    "roi(5,3,10,100)",
    "quantise(4)",
    "sharpen",
];

/// As three servers run them.
fn servings() -> [Serving; 3] {
    ["ecode", "protected", "unprotected"].map(|run| site(&format!("[plugins]\nrun = \"{run}\"\n")))
}

#[test]
fn every_pixel_is_as_it_should_be() {
    for serving in servings() {
        for (width, height) in [(40, 30), (17, 9), (8, 5)] {
            for channels in 1..=4 {
                let (file, pixels) = png(width, height, channels);
                let size = (width as usize, height as usize, channels);
                for name in NAMES {
                    let found = through(&serving, name, &file);
                    assert!(found == expected(name, size, &pixels), "{name} {size:?}");
                }
                let found = through(&serving, "sharpen,scale2,gray", &file);
                let (w, h, n, p) = expected("sharpen", size, &pixels);
                let (w, h, n, p) = expected("scale2", (w as usize, h as usize, n), &p);
                assert!(
                    found == expected("gray", (w as usize, h as usize, n), &p),
                    "{size:?}"
                );
            }
        }
        // Too small for some: refused, or as it is.
        let (file, pixels) = png(1, 1, 3);
        assert_eq!(through(&serving, "sharpen", &file).3, pixels);
        for name in [
            "scale2",
            "scale(2)",
            "scale(0)",
            "scale(-1)",
            "scale(100)",
            "roi(1,0,1,1)",
            "roi(-1,0,1,1)",
            "quantise(1)",
            "quantise",
            "quantise(257)",
        ] {
            let answer = ask(
                &serving,
                "POST",
                &format!("/transcode?through={name}"),
                "",
                &file,
            );
            assert_eq!(answer.status, Some(422), "{name}");
        }
        let far = "roi(0,0,2147483647,2147483647)";
        assert_eq!(through(&serving, far, &file).3, pixels);
    }
}

#[test]
fn deflated_answers_are_zlib_streams() {
    let large = photo(301, 203);
    for serving in servings() {
        for picture in [
            large.clone(),
            photo(1, 1),
            photo(2, 1),
            image::RgbImage::new(400, 300),
        ] {
            let file = ppm(&picture);
            let answer = ask(&serving, "POST", "/transcode?through=deflate", "", &file);
            assert_eq!(answer.status, Some(200), "{}", answer.text());
            assert_eq!(header(&answer, "content-encoding"), Some("deflate"));
            assert_eq!(
                header(&answer, "content-type"),
                Some("image/x-portable-pixmap")
            );
            assert_eq!(inflated(&answer.body), file);
            let gray = ask(
                &serving,
                "POST",
                "/transcode?through=gray,deflate",
                "",
                &file,
            );
            let plain = ask(&serving, "POST", "/transcode?through=gray", "", &file);
            assert_eq!(inflated(&gray.body), plain.body);
            assert!(!decoded_ppm(&plain).is_empty());
        }
        // What repeats itself becomes short.
        let flat = ppm(&image::RgbImage::new(400, 300));
        let answer = ask(&serving, "POST", "/transcode?through=deflate", "", &flat);
        assert!(answer.body.len() < flat.len() / 50, "{}", answer.body.len());
        // What has no order stays within nine eighths.
        let (file, pixels) = png(200, 100, 3);
        let answer = ask(
            &serving,
            "POST",
            "/transcode?through=deflate&format=ppm",
            "",
            &file,
        );
        assert!(inflated(&answer.body).ends_with(&pixels));
    }
}

/// By somebody else's decoder.
fn inflated(stream: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(stream), &mut bytes).unwrap();
    bytes
}
