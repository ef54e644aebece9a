//! Whose turn it is: guests who loop make the others wait for nothing.

use crate::plugins::{H, ask, photo, ppm, site};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[test]
fn one_guests_endless_loops_make_nobody_wait() {
    let serving =
        site("[plugins]\nguests = true\ninstances = 2\ncall_ms = 1000\nwait_ms = 600000\n");
    let guest = "looper-0123456789abcdef";
    let source = format!("{H}int loop(struct picture *p) {{ for (;;) p->count++; }}\n");
    let made = ask(&serving, "PUT", "/plugins/loop", guest, source.as_bytes());
    assert_eq!(made.status, Some(201), "{}", made.text());
    let picture = ppm(&photo(8, 8));
    let ended = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let answer = ask(&serving, "POST", "/transcode?through=loop", guest, &picture);
                ended.fetch_add(1, Ordering::SeqCst);
                assert_eq!(answer.status, Some(504), "{}", answer.text());
            });
        }
        while !serving
            .get("/metrics")
            .text()
            .contains("postern_plugins_waiting 7\n")
        {
            std::thread::sleep(Duration::from_millis(5));
            assert!(ended.load(Ordering::SeqCst) < 3);
        }
        // Whoever has no token, and another guest, at once and again and again.
        for token in ["", "other-0123456789abcdef"].repeat(3) {
            let answer = ask(&serving, "POST", "/transcode?through=gray", token, &picture);
            assert_eq!(answer.status, Some(200), "{}", answer.text());
        }
        let ended = ended.load(Ordering::SeqCst);
        assert!(ended < 6, "{ended} of the loops were through before");
    });
}

#[test]
fn what_is_deleted_while_it_is_called_is_404() {
    let serving = site("[plugins]\nguests = true\ninstances = 3\n");
    let guest = "deleter-0123456789abcdef";
    let source = format!(
        "{H}int gone(struct picture *p) {{ for (int i = 0; i < 200; i++) p->pixels[i] = i; return 1; }}\n"
    );
    let picture = ppm(&photo(16, 16));
    let going = AtomicUsize::new(1);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while going.load(Ordering::Relaxed) == 1 {
                    let answer = ask(&serving, "POST", "/transcode?through=gone", guest, &picture);
                    let status = answer.status;
                    assert!(matches!(status, Some(200 | 404)), "{}", answer.text());
                }
            });
        }
        for _ in 0..150 {
            let made = ask(&serving, "PUT", "/plugins/gone", guest, source.as_bytes());
            assert_eq!(made.status, Some(201), "{}", made.text());
            let deleted = ask(&serving, "DELETE", "/plugins/gone", guest, b"");
            assert_eq!(deleted.status, Some(204), "{}", deleted.text());
        }
        going.store(0, Ordering::Relaxed);
    });
}
