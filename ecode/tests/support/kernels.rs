//! What measurements run: the files of `ecode/kernels`, each with a function `long kernel(long
//! rounds)`.

/// Name, and rounds that take a millisecond or two.
pub const KERNELS: [(&str, u32); 10] = [
    ("grayscale", 20),
    ("convolution", 1),
    ("crc", 8),
    ("sha256", 4000),
    ("search", 15),
    ("matrix", 2),
    ("quicksort", 2),
    ("mandelbrot", 3),
    ("base64", 25),
    ("varint", 20),
];
