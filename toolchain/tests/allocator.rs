//! The library's allocator with several threads inside, and with callers that are wrong.

use std::path::{Path, PathBuf};
use std::time::Duration;

use postern::{Domain, Image};
use postern_toolchain::{Build, Language};

const SOURCE: &str = r"
#include <stdlib.h>

static void *passed[64];

/* Fills, checks and frees chunks, of which some go to whichever thread comes next. */
unsigned long churn(unsigned long s)
{
    unsigned char *own[50] = {0};
    unsigned size[50];
    for (int round = 0; round < 20000; round++) {
        s = s * 6364136223846793005ul + 1442695040888963407ul;
        unsigned k = (s >> 33) % 50, n = 1 + (s >> 40) % ((s >> 56) % 16 ? 300 : 5000);
        if (own[k]) {
            for (unsigned i = 0; i < size[k]; i++)
                if (own[k][i] != (unsigned char)(k + size[k] + i))
                    return 1;
            if (s >> 62)
                free(own[k]);
            else
                free(__atomic_exchange_n(&passed[(s >> 20) % 64], own[k], __ATOMIC_ACQ_REL));
        }
        own[k] = s >> 61 & 1 ? calloc(n, 1) : malloc(n);
        if (!own[k])
            return 2;
        if (s >> 61 & 1)
            for (unsigned i = 0; i < n; i++)
                if (own[k][i])
                    return 3;
        if (s >> 60 & 1 && !(own[k] = realloc(own[k], n = 1 + (s >> 30) % 400)))
            return 2;
        size[k] = n;
        for (unsigned i = 0; i < n; i++)
            own[k][i] = (unsigned char)(k + n + i);
    }
    for (unsigned k = 0; k < 50; k++)
        free(own[k]);
    return 0;
}

unsigned long twice(unsigned long n)
{
    void *volatile p = malloc(n), *volatile q = malloc(n);
    free(p);
    free(q);
    free(p);
    return 0;
}

unsigned long freed(unsigned long n)
{
    void *volatile p = malloc(n);
    free(p);
    return realloc(p, 2 * n) != 0;
}
";

fn image() -> Image {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("allocator");
    std::fs::create_dir_all(&folder).unwrap();
    let name = format!("{:?}", std::thread::current().id());
    let file: PathBuf = folder.join(format!("{name}.c"));
    std::fs::write(&file, SOURCE).unwrap();
    let built = Build::new(Language::C)
        .file(&file)
        .flags(["-O2", "-w", "-fno-builtin"])
        .output(folder.join(format!("{name}.px")))
        .run();
    Image::load(built.unwrap_or_else(|error| panic!("{error}"))).unwrap()
}

fn domain(image: &Image) -> Domain {
    let deadline = Some(Duration::from_secs(60));
    Domain::builder(image).deadline(deadline).build().unwrap()
}

#[test]
fn threads_keep_their_chunks_apart() {
    let image = image();
    let domain = domain(&image);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let churn = domain.func::<fn(u64) -> u64>("churn").unwrap();
            scope.spawn(move || {
                for round in 0..3 {
                    assert_eq!(churn.call(seed * 100 + round).unwrap(), 0, "seed {seed}");
                }
            });
        }
    });
}

#[test]
fn a_chunk_that_is_free_is_neither_freed_nor_resized() {
    let image = image();
    for name in ["twice", "freed"] {
        for size in [24, 3000] {
            let domain = domain(&image);
            let function = domain.func::<fn(u64) -> u64>(name).unwrap();
            assert!(function.call(size).is_err(), "{name} with {size} bytes");
        }
    }
}
