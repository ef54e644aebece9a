//! An extension that makes the system calls which a test tells it to, and a granted directory to
//! make them in.

use crate::support;
pub use crate::support::Directory;
use postern::policy::Sink;
use postern::{Access, CallError, Domain, Func, Image, Offset, Policy, Rules};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

const SOURCE: &str = r#"
extern long sys(long, long, long, long, long, long);
static char room[(2 << 20) + 8192] __attribute__((aligned(4096)));
static const char fixed[64] = "a constant";
char *memory(void) { return room; }
const char *constant(void) { return fixed; }
long call(long n, long a, long b, long c, long d, long e) { return sys(n, a, b, c, d, e); }
int __postern_main(int argc, char **argv)
{
    char **environment = argv + argc + 1;
    if (argv[argc] || argc != 2) return 100;
    if (*environment) sys(1, 1, (long)*environment, 3, 0, 0);
    sys(1, 1, (long)argv[1], 3, 0, 0);
    sys(231, 5, 0, 0, 0, 0);
    return 101;
}
"#;

pub fn image() -> Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE
        .get_or_init(|| support::compile("sys.c", SOURCE, &["-O1", "-g", "-nolibc"]))
        .clone()
}

pub type Six = fn(i64, i64, i64, i64, i64, i64) -> i64;

/// A domain whose system calls the test makes.
#[derive(Clone)]
pub struct Guest {
    pub domain: Domain,
    pub call: Func<Six>,
    pub memory: i64,
}

pub const PATH: i64 = 0;
pub const SECOND: i64 = 4096;
pub const DATA: i64 = 8192;

impl Guest {
    pub fn new(policy: Policy) -> Guest {
        let domain = support::cold(&image()).policy(policy).build().unwrap();
        let memory = domain.func::<fn() -> Offset>("memory").unwrap();
        Guest {
            call: domain.func("call").unwrap(),
            memory: memory.call().unwrap().0.into(),
            domain,
        }
    }

    pub fn sys(&self, number: i64, words: &[i64]) -> i64 {
        let mut all = [0; 5];
        all[..words.len()].copy_from_slice(words);
        let [a, b, c, d, e] = all;
        self.call.call(number, a, b, c, d, e).unwrap()
    }

    pub fn put(&self, at: i64, bytes: &[u8]) -> i64 {
        let place = self.memory + at;
        self.domain.write(Offset(place as u32), bytes).unwrap();
        place
    }

    pub fn get(&self, at: i64, length: usize) -> Vec<u8> {
        let place = Offset((self.memory + at) as u32);
        self.domain.read_vec(place, length).unwrap()
    }

    pub fn path(&self, at: i64, path: &str) -> i64 {
        self.put(at, format!("{path}\0").as_bytes())
    }

    /// A call whose first argument is a path.
    pub fn on(&self, number: i64, path: &str, words: &[i64]) -> i64 {
        let mut all = vec![self.path(PATH, path)];
        all.extend(words);
        self.sys(number, &all)
    }

    /// A call with two paths.
    pub fn on_both(&self, number: i64, path: &str, second: &str) -> i64 {
        let second = self.path(SECOND, second);
        self.on(number, path, &[second])
    }

    pub fn open(&self, path: &str, flags: i32, mode: i64) -> i64 {
        self.on(libc::SYS_open, path, &[flags.into(), mode])
    }

    pub fn write(&self, file: i64, bytes: &[u8]) -> i64 {
        let place = self.put(DATA, bytes);
        self.sys(libc::SYS_write, &[file, place, bytes.len() as i64])
    }

    pub fn read(&self, file: i64, length: usize) -> Vec<u8> {
        let place = self.memory + DATA;
        let read = self.sys(libc::SYS_read, &[file, place, length as i64]);
        assert!(read >= 0, "{read}");
        self.get(DATA, read as usize)
    }

    pub fn close(&self, file: i64) -> i64 {
        self.sys(libc::SYS_close, &[file])
    }

    pub fn exit_status(&self, status: i64) -> Result<i64, CallError> {
        self.call.call(libc::SYS_exit_group, status, 0, 0, 0, 0)
    }
}

pub const BAD: i64 = -(libc::EBADF as i64);
pub const FAULT: i64 = -(libc::EFAULT as i64);
pub const INVALID: i64 = -(libc::EINVAL as i64);
pub const REFUSED: i64 = -(libc::EPERM as i64);
pub const DENIED: i64 = -(libc::EACCES as i64);
pub const MISSING: i64 = -(libc::ENOENT as i64);
pub const READ_ONLY: i64 = -(libc::EROFS as i64);

/// A buffer and a policy that prints there.
pub fn printing() -> (Arc<Mutex<Vec<u8>>>, Policy) {
    let buffer = Arc::default();
    let policy = Policy::compute()
        .stdout(Sink::buffer(&buffer))
        .stderr(Sink::Discard);
    (buffer, policy)
}

/// A granted directory with a file, a link that leads out by its text, one that is absolute, and a
/// secret beside it.
pub fn granted(access: Access) -> (Directory, Guest) {
    let directory = Directory::new();
    let inside = directory.path("granted");
    std::fs::create_dir_all(inside.join("sub")).unwrap();
    std::fs::write(inside.join("text"), "some text").unwrap();
    std::fs::write(directory.path("secret"), "secret").unwrap();
    let link = |text: &Path, name: &str| {
        std::os::unix::fs::symlink(text, inside.join(name)).unwrap();
    };
    link(Path::new("../secret"), "out");
    link(&directory.path("secret"), "absolute");
    link(Path::new(".."), "up");
    link(Path::new("sub/../text"), "good");
    let rules = Rules::new().grant("/data", &inside, access).unwrap();
    (directory, Guest::new(Policy::files(rules)))
}

pub const NEW: i32 = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;

/// How many descriptors of the process are below a directory.
pub fn held(directory: &Directory) -> usize {
    let all = std::fs::read_dir("/proc/self/fd").unwrap();
    all.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .filter(|link| link.starts_with(&directory.0))
        .count()
}
