//! What std does in an extension, a row each: the same function native and confined.

use std::cell::Cell;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, mpsc};

pub type Row = (&'static str, fn(u64) -> u64);

/// The rows, by the names that the book's table has.
pub const ROWS: &[Row] = &[
    ("arithmetic", arithmetic),
    ("floating point", floating_point),
    ("match", matches),
    ("strings", strings),
    ("formatting", formatting),
    ("collections", collections),
    ("sorting", sorting),
    ("closures and trait objects", objects),
    ("thread_local!", thread_locals),
    ("Arc, Mutex, OnceLock, channels", shared),
    ("catch_unwind", unwinding),
    ("large frames", large_frames),
    ("time", time),
];

#[unsafe(no_mangle)]
pub extern "C" fn rows() -> u64 {
    ROWS.len() as u64
}

#[unsafe(no_mangle)]
pub extern "C" fn row(number: u64, seed: u64) -> u64 {
    ROWS[number as usize].1(seed)
}

/// A thread is the host's to start.
#[unsafe(no_mangle)]
pub extern "C" fn spawns() -> u64 {
    u64::from(std::thread::Builder::new().spawn(|| ()).is_ok())
}

#[unsafe(no_mangle)]
pub extern "C" fn panics(place: u64) -> u64 {
    [1, 2, 3][place as usize]
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

fn arithmetic(seed: u64) -> u64 {
    let mut random = Random(seed);
    let mut sum = 0u128;
    for _ in 0..2000 {
        let (a, b) = (random.next(), random.next() | 1);
        sum = sum.wrapping_mul(31).wrapping_add(u128::from(a) * u128::from(b));
        sum ^= u128::from(a / b) + u128::from(a % b) + u128::from(a.leading_zeros());
        sum = sum.rotate_left((b % 128) as u32) / 3 + u128::from((a as i64 / (b as i64 | 1)) as u64);
        sum ^= u128::from(a.checked_add(b).unwrap_or(7)) + u128::from((a as u8).saturating_sub(b as u8));
    }
    hash(sum)
}

fn floating_point(seed: u64) -> u64 {
    let mut random = Random(seed);
    let mut sum = 0.0f64;
    for _ in 0..1000 {
        let a = (random.next() >> 11) as f64 / 1e9;
        sum = (sum + a.sqrt()) * 0.5 + (a as f32 * 3.0) as f64 + (a as i32) as f64 + a.floor() - a.rem_euclid(3.0);
    }
    sum.to_bits()
}

fn matches(seed: u64) -> u64 {
    let mut random = Random(seed);
    let mut sum = 0u64;
    for _ in 0..5000 {
        let a = random.next();
        sum = match a % 13 {
            0 => sum + 3,
            1 => sum * 7,
            2 => sum ^ a,
            3 => sum >> 1,
            4 => sum.rotate_left(5),
            5 => sum - sum / 5,
            6 => !sum,
            7 => sum.swap_bytes(),
            8 => sum | a & 0xff,
            n @ 9..=11 => sum.wrapping_sub(n),
            _ => sum.wrapping_mul(a),
        }
        .wrapping_add(1)
        .min(u64::MAX >> 4);
    }
    sum
}

fn strings(seed: u64) -> u64 {
    let mut random = Random(seed);
    let text: String = (0..500)
        .map(|_| char::from_u32((random.next() % 0x24ff) as u32).unwrap_or('x'))
        .collect();
    let words: Vec<String> = text.split(|c: char| c.is_whitespace()).map(str::to_uppercase).collect();
    let number: i64 = "-12345".parse().unwrap();
    let wrong = "12x".parse::<u8>().unwrap_err().to_string();
    hash((words.join("-").replace('A', "bb"), number, wrong, text.find('q'), String::from_utf8_lossy(&[0xff, 65]).into_owned()))
}

fn formatting(seed: u64) -> u64 {
    let mut random = Random(seed);
    let mut text = String::new();
    for _ in 0..200 {
        let a = random.next();
        let float = f64::from_bits(a);
        writeln!(text, "{a:>24x}|{:<+12}|{:08.3}|{float:?}|{:e}|{:?}", a as i32, (a >> 40) as f32 / 7.0, float, Some((a, "q\n")))
            .unwrap();
    }
    hash(text)
}

fn collections(seed: u64) -> u64 {
    let mut random = Random(seed);
    let (mut map, mut tree, mut set) = (HashMap::new(), BTreeMap::new(), HashSet::new());
    let (mut heap, mut queue) = (BinaryHeap::new(), VecDeque::new());
    for k in 0..3000 {
        let a = random.next() % 700;
        *map.entry(a).or_insert(0u64) += k;
        tree.entry(format!("{a:x}")).or_insert_with(Vec::new).push(k);
        set.insert(a / 3);
        heap.push(a);
        queue.push_front(a);
        if k % 3 == 0 {
            tree.remove(&format!("{:x}", a / 2));
            queue.pop_back();
        }
    }
    let mut pairs: Vec<_> = map.into_iter().collect();
    pairs.sort_unstable();
    hash((pairs, tree, set.len(), heap.into_sorted_vec(), queue))
}

fn sorting(seed: u64) -> u64 {
    let mut random = Random(seed);
    let mut numbers: Vec<u64> = (0..5000).map(|_| random.next() % 2000).collect();
    let mut texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
    numbers.sort_unstable_by_key(|n| std::cmp::Reverse(*n));
    texts.sort();
    texts.dedup();
    hash((numbers.binary_search_by(|n| 1000.cmp(n)).is_ok(), numbers, texts))
}

trait Shape {
    fn area(&self) -> u64;
}
struct Square(u64);
struct Oblong(u64, u64);
impl Shape for Square {
    fn area(&self) -> u64 {
        self.0 * self.0
    }
}
impl Shape for Oblong {
    fn area(&self) -> u64 {
        self.0 * self.1
    }
}

fn objects(seed: u64) -> u64 {
    let mut random = Random(seed);
    let mut shapes: Vec<Rc<dyn Shape>> = Vec::new();
    let mut steps: Vec<Box<dyn FnMut(u64) -> u64>> = Vec::new();
    for _ in 0..100 {
        let a = random.next() % 1000;
        shapes.push(if a % 2 == 0 { Rc::new(Square(a)) } else { Rc::new(Oblong(a, 3)) });
        let mut kept = a;
        steps.push(Box::new(move |x| {
            kept += x % 10;
            kept ^ x
        }));
    }
    let areas: u64 = shapes.iter().map(|shape| shape.area()).sum();
    steps.iter_mut().rev().fold(areas, |sum, step| step(sum))
}

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(5) };
    static NAME: std::cell::RefCell<String> = std::cell::RefCell::new("n".repeat(3));
}

fn thread_locals(seed: u64) -> u64 {
    COUNT.set(5);
    for k in 0..seed % 100 {
        COUNT.set(COUNT.get() + k);
    }
    NAME.with_borrow_mut(|name| {
        *name = seed.to_string();
        name.len() as u64
    }) + COUNT.get()
}

fn shared(seed: u64) -> u64 {
    static ONCE: OnceLock<Mutex<u64>> = OnceLock::new();
    let sum = Arc::new(Mutex::new(seed));
    let (sender, receiver) = mpsc::channel();
    for k in 0..10 {
        sender.send((Arc::clone(&sum), k)).unwrap();
    }
    drop(sender);
    for (sum, k) in receiver {
        *sum.lock().unwrap() ^= k << 3;
    }
    *ONCE.get_or_init(|| Mutex::new(7)).lock().unwrap() + *sum.lock().unwrap() / 2
}

struct Counted<'a>(&'a Cell<u64>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

fn unwinding(seed: u64) -> u64 {
    let dropped = Cell::new(0);
    let mut caught = 0;
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    for k in 0..20 {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let _one = Counted(&dropped);
            deeper(k, seed, &dropped)
        }));
        match outcome {
            Ok(value) => caught += value,
            Err(what) => caught += what.downcast_ref::<String>().map_or(1, |text| hash(text) % 1000),
        }
    }
    std::panic::set_hook(quiet);
    caught * 100 + dropped.get()
}

#[inline(never)]
fn deeper(k: u64, seed: u64, dropped: &Cell<u64>) -> u64 {
    let _two = Counted(dropped);
    let values = vec![k; 4];
    match (k + seed) % 4 {
        0 => values[(seed % 3) as usize],
        1 => values[values.len() + k as usize],
        2 => panic!("at {k}"),
        _ => u64::from("x".repeat(k as usize).parse::<u64>().is_err()) + catch_unwind(|| panic!("inner")).map_or(1, |()| 0),
    }
}

#[inline(never)]
fn large_frames(seed: u64) -> u64 {
    let mut table = [0u64; 10_000];
    let mut random = Random(seed);
    for _ in 0..1000 {
        let a = random.next();
        table[(a % 10_000) as usize] += a >> 8;
    }
    std::hint::black_box(&table).iter().fold(0, |sum, x| sum.wrapping_mul(31).wrapping_add(*x))
}

fn time(_: u64) -> u64 {
    let start = std::time::Instant::now();
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::from(start.elapsed().as_secs() < 1000 && since.as_secs() > 1_000_000_000)
}
