//! Segments that nobody should send: what is kept for strangers is bounded, and nothing panics.

use postern_exos_web::frame::{ACK, FIN, Fields, HEADERS, OPTIONS, PSH, RST, SYN, Template};
use postern_exos_web::sum::Sum;

use crate::platform::{ADDRESS, PORT, STATION, server};

const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 9];
const WORDS: [&[u8]; 6] = [
    b"",
    b"GET /100 HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /9999 HTTP/1.1\r\nHo",
    b"st: h\r\n\r\n",
    b"PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 30000\r\n\r\n",
    b"\xff\r\n\r\n",
];

#[test]
fn segments_at_random_around_what_is_expected() {
    for seed in 0..60 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut server = server(8, 3);
        let mut now = 1;
        // What each of a dozen senders last heard: our next number, and theirs.
        let mut heard = [(0u32, 0u32); 12];
        for _ in 0..3000 {
            let who = random.usize(..heard.len());
            let (sequence, acknowledged) = heard[who];
            let near = |random: &mut fastrand::Rng, number: u32| match random.u32(..8) {
                0 => random.u32(..),
                1 => number.wrapping_add(random.u32(..70_000)),
                2 => number.wrapping_sub(random.u32(..3000)),
                _ => number,
            };
            let flags = match random.u32(..20) {
                0..4 => SYN,
                4 => FIN | ACK,
                5 => RST,
                6 => random.u8(..),
                _ => ACK | PSH,
            };
            let mut data = WORDS[random.usize(..WORDS.len())].to_vec();
            if random.u32(..10) == 0 {
                data = vec![b'a'; random.usize(..1460)];
            }
            let fields = Fields {
                sequence: near(&mut random, sequence),
                acknowledged: near(&mut random, acknowledged),
                flags,
                window: [0, 1, 100, 65_535][random.usize(..4)],
            };
            let from = (OTHER, 0x0a00_0300 + who as u32, 4000);
            let template = Template::new(from, (STATION, ADDRESS, PORT));
            let mut headers = [0; HEADERS + OPTIONS];
            let length = template.fill(&mut headers, &fields, &[], (data.len(), Sum::of(&data)));
            let mut frame = [&headers[..length], &data[..]].concat();
            if random.u32(..20) == 0 {
                let at = random.usize(14..frame.len());
                frame[at] ^= 1 << random.u32(..8);
            }
            server.web.frame(&frame, now);
            server.room.set(random.usize(..6));
            server.web.flush(now);
            now += random.u64(..400_000);
            server.web.tick(now);
            for sent in server.sent.borrow_mut().drain(..) {
                let to = sent[33] as usize;
                let word =
                    |at: usize| u32::from_be_bytes(*sent[at..].first_chunk().expect("words"));
                let ends = u32::from(sent[47] & (SYN | FIN) != 0);
                let next = word(38).wrapping_add((sent.len() - 54) as u32 * (1 - ends) + ends);
                heard[to % 12] = (word(42), next);
            }
            assert!(server.web.tcp.count() <= 8);
        }
        // All ends at last.
        server.room.set(usize::MAX);
        for _ in 0..400 {
            now += 1_000_000;
            server.web.tick(now);
            server.web.flush(now);
        }
        assert_eq!(server.web.tcp.count(), 0, "{seed}");
        assert!(
            server.web.tcp.counts.opened > 0,
            "{:?}",
            server.web.tcp.counts
        );
        let objects = server.web.objects.count();
        assert!(objects <= 2, "{objects} objects are left");
    }
}
