//! What filters from strangers can cost at most: a kernel compiles sets of them in an arena and on
//! a stack of fixed size.

use crate::support::arena::room;
use crate::support::expressions;

use fastrand::Rng;
use postern_filter::set::{Claim, Limits, Set};
use postern_filter::{Filter, NoNames, Options};

/// Aegis's: bytes of a text, filters, tests of one and of all, bytes of the stack and of the arena.
const TEXT: usize = 512;
const FILTERS: usize = 127;
const TESTS: usize = 512;
const ALL: usize = 2048;
const STACK: usize = 256 << 10;
const ARENA: usize = 8 << 20;

/// As many conditions as fit, from a function of their number.
fn filled(start: &str, join: &str, condition: impl Fn(usize) -> String) -> String {
    let mut text = start.to_string();
    for index in 0.. {
        let next = condition(index);
        let join = if text.len() == start.len() { "" } else { join };
        if text.len() + join.len() + next.len() > TEXT {
            break;
        }
        text += join;
        text += &next;
    }
    text
}

/// Texts that are long to compile; `n` makes them differ.
fn hostile(n: usize) -> Vec<String> {
    let number = |index: usize| format!("{}", (n * 131 + index * 7919) % 65536);
    let mut texts = vec![
        filled("host ", " or ", |i| format!("10.{}.{n}.{i}", i * 7)),
        filled("port ", " or ", number),
        filled("not port ", " or ", number),
        filled("", " or ", |i| format!("port {}", number(i))),
        filled("", " and ", |i| format!("not port {}", number(i))),
        filled("portrange ", " or ", |i| {
            format!("{}-{}", n + i, n + 9 * i + 1000)
        }),
        filled("", " or ", |i| format!("ip protochain {}", (n + i) % 256)),
        filled("", " or ", |i| format!("ip6 protochain {}", (n + i) % 256)),
        filled("", " and ", |i| format!("(ether[{i}]={n} or ip[{i}]={n})")),
        filled("", " and ", |i| {
            format!("({i}:1={} or {}:1=2)", n % 256, i + 1)
        }),
        filled("", " or ", |i| format!("{i}:1&{}!=0", 1 + n % 200)),
        filled("", " and ", |i| {
            format!("(len>{i} or tcp[{i}]<{})", n % 256)
        }),
        filled("", " and ", |_| "vlan".to_string()),
        filled("", " or ", |_| "geneve".to_string()),
        filled("", " and ", |i| format!("(vlan {i} or mpls {n})")),
        filled("", " or ", |i| format!("net {}.{i}.0.0/16", n % 256)),
        filled("", " or ", |i| format!("ip6 host {n:x}::{i:x}")),
        filled("", " and not ", |i| format!("ip6 net {n:x}:{i:x}::/29")),
        filled("ether host ", " or ", |i| {
            format!("2:0:0:0:{:x}:{i:x}", n % 256)
        }),
        filled("", " or ", |i| format!("tcp[{i}:4]*{n}=len/{}", i + 2)),
        filled("len=0", "", |i| format!("+(len-{i}")) + &")".repeat(80),
        "(".repeat(199) + "ip" + &")".repeat(199),
        "not ".repeat(120) + "ip",
        "ip[".repeat(50) + "0" + &"]".repeat(50) + "=1",
        "tcp[".repeat(100) + "0" + &"]".repeat(100) + "=1",
        "(".repeat(512),
        "x".repeat(512),
    ];
    let mut random = Rng::with_seed(n as u64);
    texts.push(filled("", " or ", |_| {
        expressions::expression(&mut Rng::with_seed(random.clone().u64(..)), 3)
    }));
    for size in [2, 5, 9] {
        texts.push(expressions::expression(&mut random, size));
    }
    texts.retain(|text| text.len() <= TEXT);
    texts
}

/// A set of these texts as the kernel makes it, those left out that it refuses: how many there are,
/// and bytes of their code and tables.
fn compiled<'a>(texts: impl Iterator<Item = &'a str>) -> (usize, usize, usize) {
    let mut set = Set::within(Limits::SMALL);
    let options = Options {
        tests: TESTS,
        ..Options::default()
    };
    let mut left = ALL;
    for (owner, text) in texts.enumerate().take(FILTERS) {
        if let Ok(filter) = Filter::compile_with(text, &NoNames, options)
            && let Some(rest) = left.checked_sub(filter.tests())
        {
            left = rest;
            let claim = Claim {
                owner: owner as u32,
                priority: owner as u32 % 5,
                may_steal: owner + 1 < FILTERS,
            };
            let _ = set.insert(&filter, claim);
        }
    }
    let mut random = Rng::with_seed(1);
    let made = set.kernel_code(4096, move || random.u64(..)).unwrap();
    let facts = made.code.verify().unwrap();
    assert!(facts.longest_path.is_some());
    (set.len(), made.code.text().len(), 8 * made.tables.len())
}

#[test]
fn what_strangers_choose_has_room_in_an_arena_and_on_a_stack() {
    let work = || {
        let mut most = 0;
        let count = hostile(0).len();
        for kind in 0..count {
            let texts: Vec<_> = (0..FILTERS)
                .filter_map(|n| hostile(n).get(kind).cloned())
                .collect();
            let before = std::time::Instant::now();
            let (bytes, made) = room(|| compiled(texts.iter().map(String::as_str)));
            if std::env::var_os("SHOW").is_some() {
                let text = &texts[0][..texts[0].len().min(40)];
                println!("{kind:2} {bytes:9} {made:?} {:?} {text}", before.elapsed());
            }
            most = most.max(bytes);
        }
        // All kinds in one set, too.
        for seed in 0..8 {
            let mut random = Rng::with_seed(seed);
            let mut texts: Vec<_> = (0..40).flat_map(hostile).collect();
            random.shuffle(&mut texts);
            let before = std::time::Instant::now();
            let (bytes, made) = room(|| compiled(texts.iter().map(String::as_str)));
            if std::env::var_os("SHOW").is_some() {
                println!("mixed {bytes} {made:?} {:?}", before.elapsed());
            }
            most = most.max(bytes);
        }
        assert!(most <= ARENA, "{most} bytes");
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work);
    thread.unwrap().join().unwrap();
}
