//! A landscape, computed: something with the structure of a photograph for the demonstration to
//! work on.

/// A binary PPM (P6) of `width` × `height` pixels: sky, sun, three ridges of mountains and a lake
/// that mirrors them.
pub fn landscape(width: usize, height: usize) -> Vec<u8> {
    let mut ppm = format!("P6\n{width} {height}\n255\n").into_bytes();
    let horizon = 0.62;
    for y in 0..height {
        for x in 0..width {
            let (u, v) = (x as f64 / width as f64, y as f64 / height as f64);
            let color = if v < horizon {
                scene(u, v / horizon)
            } else {
                // The lake: the scene upside down, rippled and darker.
                let depth = (v - horizon) / (1.0 - horizon);
                let ripple = 0.01 * depth * noise(u * 60.0, v * 300.0);
                let mirrored = scene(u + ripple, 1.0 - depth * 0.9);
                mirrored.map(|c| c * (0.75 - 0.3 * depth) + 8.0)
            };
            ppm.extend(color.map(|c| (c + 6.0 * (noise(u * 900.0, v * 900.0) - 0.5)) as u8));
        }
    }
    ppm
}

/// The view above the water; `v` runs from 0 (top) to 1 (shore).
fn scene(u: f64, v: f64) -> [f64; 3] {
    for (layer, &(base, rough, tint)) in [
        (0.95, 0.25, [28.0, 44.0, 30.0]),
        (0.80, 0.40, [62.0, 74.0, 84.0]),
        (0.62, 0.55, [128.0, 138.0, 158.0]),
    ]
    .iter()
    .enumerate()
    {
        let ridge = base - rough * (fractal(u * 3.0 + 7.3 * layer as f64, 2.7) - 0.35);
        if v > ridge {
            let shade = 0.75 + 0.5 * fractal(u * 14.0, v * 14.0 + layer as f64);
            let snow = if layer == 2 && v < ridge + 0.05 {
                70.0
            } else {
                0.0
            };
            return tint.map(|c: f64| (c * shade + snow).min(245.0));
        }
    }
    let (dx, dy) = (u - 0.72, (v - 0.3) * 0.6);
    let sun = (-(dx * dx + dy * dy) * 220.0).exp();
    let cloud = (fractal(u * 4.0, v * 9.0) - 0.5).max(0.0) * 190.0;
    [
        80.0 + 120.0 * v + 120.0 * sun + cloud,
        130.0 + 70.0 * v + 100.0 * sun + cloud,
        205.0 + 20.0 * v + 30.0 * sun + cloud * 0.6,
    ]
    .map(|c| c.clamp(0.0, 248.0))
}

/// Five octaves of noise, in 0..1.
fn fractal(x: f64, y: f64) -> f64 {
    (0..5)
        .map(|octave| {
            let f = f64::from(1 << octave);
            noise(x * f, y * f) / (2.0 * f)
        })
        .sum::<f64>()
        * 32.0
        / 31.0
}

/// Smooth value noise on the unit grid, in 0..1.
fn noise(x: f64, y: f64) -> f64 {
    let (i, j) = (x.floor(), y.floor());
    let smooth = |t: f64| t * t * (3.0 - 2.0 * t);
    let (s, t) = (smooth(x - i), smooth(y - j));
    let at = |dx: f64, dy: f64| hash((i + dx) as i64, (j + dy) as i64);
    let top = at(0.0, 0.0) * (1.0 - s) + at(1.0, 0.0) * s;
    let bottom = at(0.0, 1.0) * (1.0 - s) + at(1.0, 1.0) * s;
    top * (1.0 - t) + bottom * t
}

/// A number in 0..1 for each grid point.
fn hash(i: i64, j: i64) -> f64 {
    let mut h = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (j as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    h = (h ^ h >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (h >> 40) as f64 / f64::from(1 << 24)
}
