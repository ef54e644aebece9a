//! The service `sys`: what each policy grants and refuses, and that hostile arguments get an errno and nothing else.
mod support;
use postern::policy::{Call, Input, Request, SYSTEM_CALLS, Sink, Target};
use postern::{
    Access, CallError, Caller, Domain, FaultKind, Func, Image, Offset, Policy, Rules, Verdict,
};
use postern_toolchain::{Build, Language};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

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

fn image() -> Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE
        .get_or_init(|| {
            let directory = Directory::new();
            let source = directory.path("sys.c");
            std::fs::write(&source, SOURCE).unwrap();
            let built = Build::new(Language::C)
                .file(&source)
                .flags(["-O1", "-g", "-nolibc"])
                .output(directory.path("sys.px"))
                .run()
                .unwrap();
            Image::load(built).unwrap()
        })
        .clone()
}

/// A directory of the host's that goes when the test ends.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("postern-policy-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

type Six = fn(i64, i64, i64, i64, i64, i64) -> i64;

/// A domain whose system calls the test makes.
#[derive(Clone)]
struct Guest {
    domain: Domain,
    call: Func<Six>,
    memory: i64,
}

const PATH: i64 = 0;
const SECOND: i64 = 4096;
const DATA: i64 = 8192;

impl Guest {
    fn new(policy: Policy) -> Guest {
        let domain = support::cold(&image()).policy(policy).build().unwrap();
        let memory = domain.func::<fn() -> Offset>("memory").unwrap();
        Guest {
            call: domain.func("call").unwrap(),
            memory: memory.call().unwrap().0.into(),
            domain,
        }
    }

    fn sys(&self, number: i64, words: &[i64]) -> i64 {
        let mut all = [0; 5];
        all[..words.len()].copy_from_slice(words);
        let [a, b, c, d, e] = all;
        self.call.call(number, a, b, c, d, e).unwrap()
    }

    fn put(&self, at: i64, bytes: &[u8]) -> i64 {
        let place = self.memory + at;
        self.domain.write(Offset(place as u32), bytes).unwrap();
        place
    }

    fn get(&self, at: i64, length: usize) -> Vec<u8> {
        let place = Offset((self.memory + at) as u32);
        self.domain.read_vec(place, length).unwrap()
    }

    fn path(&self, at: i64, path: &str) -> i64 {
        self.put(at, format!("{path}\0").as_bytes())
    }

    /// A call whose first argument is a path.
    fn on(&self, number: i64, path: &str, words: &[i64]) -> i64 {
        let mut all = vec![self.path(PATH, path)];
        all.extend(words);
        self.sys(number, &all)
    }

    /// A call with two paths.
    fn on_both(&self, number: i64, path: &str, second: &str) -> i64 {
        let second = self.path(SECOND, second);
        self.on(number, path, &[second])
    }

    fn open(&self, path: &str, flags: i32, mode: i64) -> i64 {
        self.on(libc::SYS_open, path, &[flags.into(), mode])
    }

    fn write(&self, file: i64, bytes: &[u8]) -> i64 {
        let place = self.put(DATA, bytes);
        self.sys(libc::SYS_write, &[file, place, bytes.len() as i64])
    }

    fn read(&self, file: i64, length: usize) -> Vec<u8> {
        let place = self.memory + DATA;
        let read = self.sys(libc::SYS_read, &[file, place, length as i64]);
        assert!(read >= 0, "{read}");
        self.get(DATA, read as usize)
    }

    fn close(&self, file: i64) -> i64 {
        self.sys(libc::SYS_close, &[file])
    }

    fn exit_status(&self, status: i64) -> Result<i64, CallError> {
        self.call.call(libc::SYS_exit_group, status, 0, 0, 0, 0)
    }
}

const BAD: i64 = -(libc::EBADF as i64);
const FAULT: i64 = -(libc::EFAULT as i64);
const INVALID: i64 = -(libc::EINVAL as i64);
const REFUSED: i64 = -(libc::EPERM as i64);
const DENIED: i64 = -(libc::EACCES as i64);
const MISSING: i64 = -(libc::ENOENT as i64);
const READ_ONLY: i64 = -(libc::EROFS as i64);

/// A buffer and a policy that prints there.
fn printing() -> (Arc<Mutex<Vec<u8>>>, Policy) {
    let buffer = Arc::default();
    let policy = Policy::compute()
        .stdout(Sink::buffer(&buffer))
        .stderr(Sink::Discard);
    (buffer, policy)
}

#[test]
fn none_refuses_and_counts() {
    let guest = Guest::new(Policy::none());
    assert_eq!(guest.sys(libc::SYS_getpid, &[]), REFUSED);
    assert_eq!(guest.write(1, b"x"), REFUSED);
    assert_eq!(guest.sys(i64::MIN, &[-1; 5]), REFUSED);
    assert_eq!(guest.sys(libc::SYS_socket, &[2, 1, 0]), REFUSED);
    let counters = guest.domain.counters();
    assert_eq!(counters.refused_system_calls, 4);
    assert_eq!(counters.last_refused, Some(libc::SYS_socket as u64));
    let end = guest.exit_status(7);
    assert!(matches!(end, Err(CallError::Exited(7))), "{end:?}");
    assert_eq!(guest.domain.counters().system_calls, 1);
    // The end of a call is none of the domain.
    assert_eq!(guest.sys(libc::SYS_getpid, &[]), REFUSED);
}

#[test]
fn streams_go_where_the_host_says() {
    let (printed, policy) = printing();
    let guest = Guest::new(policy.stdin(Input::bytes("some input")));
    assert_eq!(guest.write(1, b"one "), 4);
    assert_eq!(guest.write(2, b"nobody hears"), 12);
    let long = vec![b'x'; (1 << 20) + 100];
    assert_eq!(
        guest.write(1, &long),
        1 << 20,
        "long writes are done in part"
    );
    assert_eq!(guest.write(1, b""), 0);
    assert_eq!(printed.lock().unwrap().len(), 4 + (1 << 20));
    assert_eq!(guest.read(0, 4), b"some");
    assert_eq!(guest.read(0, 100), b" input");
    assert_eq!(guest.read(0, 100), b"");
    assert_eq!(guest.write(0, b"x"), BAD);
    let place = guest.memory + DATA;
    assert_eq!(guest.sys(libc::SYS_read, &[1, place, 4]), BAD);
    let pipe = -i64::from(libc::ESPIPE);
    assert_eq!(guest.sys(libc::SYS_lseek, &[1, 0, 0]), pipe);
    assert_eq!(guest.sys(libc::SYS_pread64, &[0, place, 1, 0]), pipe);
    let terminal = guest.sys(libc::SYS_ioctl, &[1, libc::TCGETS as i64, place]);
    assert_eq!(terminal, -i64::from(libc::ENOTTY));
    assert_eq!(guest.sys(libc::SYS_fstat, &[1, place]), 0);
    let mode = u32::from_le_bytes(guest.get(DATA + 24, 4).try_into().unwrap());
    assert_eq!(mode & libc::S_IFMT, libc::S_IFIFO);
    // A reset begins the input again.
    guest.domain.reset().unwrap();
    assert_eq!(guest.read(0, 100), b"some input");
}

#[test]
fn closing_stdout_twice_harms_nobody_else() {
    let (printed, policy) = printing();
    let (first, second) = (Guest::new(policy.clone()), Guest::new(policy));
    assert_eq!((first.close(1), first.close(1)), (0, BAD));
    assert_eq!(first.write(1, b"lost"), BAD);
    assert_eq!(second.write(1, b"kept"), 4);
    assert_eq!(*printed.lock().unwrap(), b"kept");
    // The process's own are still there, too.
    let inheriting = Guest::new(Policy::compute().stderr(Sink::Inherit));
    assert_eq!((inheriting.close(2), inheriting.close(2)), (0, BAD));
    assert!(std::fs::metadata("/proc/self/fd/2").is_ok());
    // Standard error goes to the terminal's place as long as a duplicate is open.
    assert_eq!(first.sys(libc::SYS_dup, &[2]), 1);
    assert_eq!(first.write(1, b"to stderr"), 9);
    assert_eq!(first.sys(libc::SYS_dup2, &[2, 9]), 9);
    assert_eq!(first.sys(libc::SYS_dup3, &[2, 2, 0]), INVALID);
    assert_eq!(
        first.sys(libc::SYS_fcntl, &[2, libc::F_DUPFD.into(), 9]),
        10
    );
    for number in [-1, i64::MIN | 256, i64::MAX, 1 << 31, 256, 1 << 20] {
        assert_eq!(first.close(number), BAD, "{number}");
        assert_eq!(first.sys(libc::SYS_dup2, &[2, number]), BAD, "{number}");
        let from = libc::F_DUPFD.into();
        assert_eq!(
            first.sys(libc::SYS_fcntl, &[2, from, number]),
            INVALID,
            "{number}"
        );
    }
}

#[test]
fn bad_pointers_are_efault_and_nothing_happens() {
    let (printed, policy) = printing();
    let guest = Guest::new(policy.stdin(Input::bytes("input")));
    let constant = guest.domain.func::<fn() -> Offset>("constant").unwrap();
    let constant = i64::from(constant.call().unwrap().0);
    let bad = [0, 8, 0xffff, 0xffff_ffff, 0xffff_fff0, 0x9000_0000];
    for pointer in bad {
        for (number, words) in [
            (libc::SYS_write, [1, pointer, 32, 0]),
            (libc::SYS_read, [0, pointer, 32, 0]),
            (libc::SYS_writev, [1, pointer, 2, 0]),
            (libc::SYS_readv, [0, pointer, 2, 0]),
            (libc::SYS_clock_gettime, [0, pointer.max(8), 0, 0]),
            (libc::SYS_uname, [pointer, 0, 0, 0]),
            (libc::SYS_getrandom, [pointer, 32, 0, 0]),
            (libc::SYS_fstat, [0, pointer, 0, 0]),
            (libc::SYS_open, [pointer, 0, 0, 0]),
            (libc::SYS_nanosleep, [pointer, 0, 0, 0]),
            (libc::SYS_fcntl, [1, libc::F_SETLK.into(), pointer, 0]),
            (libc::SYS_rename, [pointer, pointer, 0, 0]),
        ] {
            assert_eq!(guest.sys(number, &words), FAULT, "{number} {pointer:#x}");
        }
    }
    // What may be read must not be written.
    assert_eq!(guest.sys(libc::SYS_read, &[0, constant, 4]), FAULT);
    assert_eq!(guest.sys(libc::SYS_write, &[1, constant, 4]), 4);
    assert_eq!(guest.sys(libc::SYS_getrandom, &[0x1_2000, 4, 0]), FAULT);
    assert_eq!(*printed.lock().unwrap(), b"a co");
    // Nothing was taken from the input meanwhile. High halves of pointers do not count.
    let place = guest.memory + DATA;
    assert_eq!(guest.sys(libc::SYS_read, &[0, place | 7 << 32, 3]), 3);
    assert_eq!(guest.get(DATA, 5), b"inp\0\0");
    assert_eq!(guest.sys(libc::SYS_gettimeofday, &[0, 0]), 0);
    assert!(guest.sys(libc::SYS_time, &[0]) > 1_600_000_000);
    // A path without an end.
    let long = guest.put(DATA, &[b'a'; 8192]);
    let too_long = -i64::from(libc::ENAMETOOLONG);
    assert_eq!(guest.sys(libc::SYS_open, &[long, 0, 0]), too_long);
}

#[test]
fn vectors_of_buffers_are_bounded() {
    let (printed, policy) = printing();
    let guest = Guest::new(policy.stdin(Input::bytes("0123456789")));
    let vector = |parts: &[(i64, i64)]| {
        let words = parts.iter().flat_map(|p| [p.0, p.1]);
        let bytes: Vec<u8> = words.flat_map(i64::to_le_bytes).collect();
        guest.put(PATH, &bytes)
    };
    let place = guest.put(DATA, b"abcdef");
    let parts = vector(&[(place, 2), (0, 0), (place + 4, 2)]);
    assert_eq!(guest.sys(libc::SYS_writev, &[1, parts, 3]), 4);
    assert_eq!(*printed.lock().unwrap(), b"abef");
    assert_eq!(guest.sys(libc::SYS_readv, &[0, parts, 3]), 4);
    assert_eq!(guest.get(DATA, 6), b"01cd23");
    for count in [-1, 1025, i64::MIN, i64::MAX] {
        assert_eq!(guest.sys(libc::SYS_writev, &[1, parts, count]), INVALID);
    }
    let parts = vector(&[(place, i64::MAX), (place, i64::MAX)]);
    assert_eq!(guest.sys(libc::SYS_writev, &[1, parts, 2]), INVALID);
    let parts = vector(&[(place, 2), (8, 2)]);
    assert_eq!(guest.sys(libc::SYS_writev, &[1, parts, 2]), FAULT);
    assert_eq!(guest.sys(libc::SYS_readv, &[0, parts, 2]), FAULT);
    assert_eq!(guest.read(0, 1), b"4", "nothing was lost");
    let parts = vector(&[(place, 1 << 20), (8, 1 << 20)]);
    assert_eq!(guest.sys(libc::SYS_writev, &[1, parts, 2]), 1 << 20);
}

#[test]
fn clocks_numbers_and_waiting() {
    let guest = Guest::new(Policy::compute());
    let place = guest.memory + DATA;
    for clock in [0, 1, 2, 3, 4, 5, 6, 7] {
        assert_eq!(guest.sys(libc::SYS_clock_gettime, &[clock, place]), 0);
        assert_eq!(guest.sys(libc::SYS_clock_getres, &[clock, place]), 0);
    }
    for clock in [-1, 8, 100, i64::MIN | 8, i64::MAX] {
        assert_eq!(guest.sys(libc::SYS_clock_gettime, &[clock, place]), INVALID);
    }
    for (number, value) in [
        (libc::SYS_getpid, 2),
        (libc::SYS_getppid, 1),
        (libc::SYS_getuid, 1000),
        (libc::SYS_sched_yield, 0),
        (libc::SYS_umask, 0o022),
    ] {
        assert_eq!(guest.sys(number, &[0o77]), value, "{number}");
    }
    assert_eq!(guest.sys(libc::SYS_umask, &[0]), 0o77);
    assert_eq!(guest.sys(libc::SYS_uname, &[place]), 0);
    assert_eq!(guest.get(DATA, 6), b"Linux\0");
    assert_eq!(guest.sys(libc::SYS_getcwd, &[place, 2]), 2);
    assert_eq!(
        guest.sys(libc::SYS_getcwd, &[place, 1]),
        -i64::from(libc::ERANGE)
    );
    assert_eq!(guest.sys(libc::SYS_getrandom, &[place, 0, 0]), 0);
    assert_eq!(guest.sys(libc::SYS_getrandom, &[place, 64, 0]), 64);
    assert_ne!(guest.get(DATA, 64), [0; 64]);
    let words = |a: i64, b: i64| guest.put(PATH, &[a.to_le_bytes(), b.to_le_bytes()].concat());
    assert_eq!(guest.sys(libc::SYS_nanosleep, &[words(0, 1000), 0]), 0);
    for (a, b) in [(-1, 0), (0, -1), (0, 1_000_000_000), (i64::MIN, i64::MIN)] {
        assert_eq!(guest.sys(libc::SYS_nanosleep, &[words(a, b), 0]), INVALID);
    }
    // Longer than anybody waits: the deadline ends it.
    let sleepy = support::cold(&image())
        .policy(Policy::compute())
        .deadline(Some(Duration::from_millis(20)))
        .build()
        .unwrap();
    let memory = sleepy.func::<fn() -> Offset>("memory").unwrap();
    let time = memory.call().unwrap();
    sleepy.write(time, &i64::MAX.to_le_bytes()).unwrap();
    let call = sleepy.func::<Six>("call").unwrap();
    let end = call.call(libc::SYS_nanosleep, time.0.into(), 0, 0, 0, 0);
    let kind = end.unwrap_err().fault().map(|fault| fault.kind);
    assert_eq!(kind, Some(FaultKind::Deadline));
}

#[test]
fn a_signal_to_itself_ends_the_call() {
    let guest = Guest::new(Policy::compute());
    assert_eq!(guest.sys(libc::SYS_kill, &[2, 0]), 0);
    for other in [1, -1, std::process::id().into(), i64::MIN + 7] {
        assert_eq!(guest.sys(libc::SYS_kill, &[other, 9]), REFUSED, "{other}");
    }
    assert_eq!(guest.sys(libc::SYS_kill, &[2, 65]), INVALID);
    let end = guest
        .call
        .call(libc::SYS_tgkill, 2, 2, 6, 0, 0)
        .unwrap_err();
    let fault = end.fault().expect("a fault");
    assert_eq!(fault.kind, FaultKind::Aborted);
    assert!(end.to_string().contains("SIGABRT"), "{end}");
}

/// A granted directory with a file, a link that leads out by its text, one that is absolute, and a secret beside it.
fn granted(access: Access) -> (Directory, Guest) {
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

const NEW: i32 = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;

#[test]
fn paths_stay_in_the_granted_directory() {
    let (directory, guest) = granted(Access::ReadWrite);
    let secret = directory.path("secret");
    let absolute = secret.to_str().unwrap();
    let outside = [
        "/data/../secret",
        "/data/sub/../../secret",
        "/data/out",
        "/data/absolute",
        "/data/up/secret",
        "/data/up/granted/text",
        "/secret",
        "/etc/passwd",
        "secret",
        absolute,
        "/proc/self/root/etc/passwd",
        "/data/../../../../../../../etc/passwd",
        "/data/sub/../../../../../../../etc/passwd",
    ];
    for path in outside {
        for flags in [
            libc::O_RDONLY,
            libc::O_RDWR,
            NEW,
            libc::O_RDONLY | libc::O_PATH,
        ] {
            let opened = guest.open(path, flags, 0o644);
            let expected = [DENIED, MISSING, INVALID, -i64::from(libc::EXDEV)];
            assert!(expected.contains(&opened), "{path}: {opened}");
        }
        let place = guest.memory + DATA;
        assert!(guest.on(libc::SYS_stat, path, &[place]) < 0, "{path}");
        assert!(guest.on(libc::SYS_chmod, path, &[0]) < 0, "{path}");
        assert!(guest.on(libc::SYS_truncate, path, &[0]) < 0, "{path}");
        assert!(guest.on(libc::SYS_chdir, path, &[]) < 0, "{path}");
        assert!(guest.on(libc::SYS_access, path, &[0]) < 0, "{path}");
        for (from, to) in [(path, "/data/x"), ("/data/text", path)] {
            if !["/data/out", "/data/absolute"].contains(&path) {
                assert!(guest.on_both(libc::SYS_rename, from, to) < 0, "{path}");
                assert!(guest.on_both(libc::SYS_link, from, to) < 0, "{path}");
            }
        }
        assert!(guest.on(libc::SYS_rmdir, path, &[]) < 0, "{path}");
        assert!(guest.on(libc::SYS_mkdir, path, &[0o755]) < 0, "{path}");
    }
    assert_eq!(std::fs::read(&secret).unwrap(), b"secret");
    assert!(guest.domain.counters().refused_system_calls > 0);
    // Links of its own must not lead out either.
    for text in ["/etc", "../secret", "sub/../../secret", ".."] {
        let made = guest.on_both(libc::SYS_symlink, text, "/data/link");
        assert_eq!(made, REFUSED, "{text}");
    }
    assert_eq!(guest.on_both(libc::SYS_symlink, "text", "/data/link"), 0);
    for path in [
        "/data/text",
        "/data/link",
        "/data/good",
        "/data/sub/../text",
    ] {
        let file = guest.open(path, libc::O_RDONLY, 0);
        assert_eq!(guest.read(file, 100), b"some text", "{path}");
        assert_eq!(guest.close(file), 0);
    }
    let place = guest.memory + DATA;
    let read = guest.on(libc::SYS_readlink, "/data/link", &[place, 3]);
    assert_eq!((read, &guest.get(DATA, 3)[..]), (3, &b"tex"[..]));
}

#[test]
fn a_read_only_directory_stays_as_it_is() {
    let (directory, guest) = granted(Access::Read);
    let file = guest.open("/data/text", libc::O_RDONLY, 0);
    assert_eq!(guest.read(file, 4), b"some");
    assert_eq!(guest.write(file, b"x"), BAD);
    assert_eq!(guest.sys(libc::SYS_ftruncate, &[file, 0]), INVALID);
    assert_eq!(guest.sys(libc::SYS_fchmod, &[file, 0]), READ_ONLY);
    let place = guest.memory + DATA;
    assert_eq!(guest.sys(libc::SYS_utimensat, &[file, 0, 0, 0]), READ_ONLY);
    for flags in [
        libc::O_WRONLY,
        libc::O_RDWR,
        NEW,
        libc::O_TRUNC,
        libc::O_APPEND,
    ] {
        assert_eq!(guest.open("/data/text", flags, 0), READ_ONLY, "{flags:#o}");
    }
    // As on a read-only file system, what exists may be "created".
    assert!(guest.open("/data/text", libc::O_CREAT, 0o644) > 0);
    assert_eq!(guest.open("/data/new", libc::O_CREAT, 0o644), READ_ONLY);
    for (number, words) in [
        (libc::SYS_unlink, &[][..]),
        (libc::SYS_truncate, &[0]),
        (libc::SYS_chmod, &[0o777]),
        (libc::SYS_creat, &[0o644]),
    ] {
        assert_eq!(guest.on(number, "/data/text", words), READ_ONLY, "{number}");
    }
    assert_eq!(guest.on(libc::SYS_mkdir, "/data/new", &[0o755]), READ_ONLY);
    assert_eq!(guest.on(libc::SYS_rmdir, "/data/sub", &[]), READ_ONLY);
    assert_eq!(
        guest.on_both(libc::SYS_rename, "/data/text", "/data/x"),
        READ_ONLY
    );
    assert_eq!(
        guest.on_both(libc::SYS_link, "/data/text", "/data/x"),
        READ_ONLY
    );
    assert_eq!(
        guest.on_both(libc::SYS_symlink, "text", "/data/x"),
        READ_ONLY
    );
    assert_eq!(
        guest.on(libc::SYS_access, "/data/text", &[libc::W_OK.into()]),
        READ_ONLY
    );
    assert_eq!(
        guest.on(libc::SYS_access, "/data/text", &[libc::R_OK.into()]),
        0
    );
    let path = guest.path(PATH, "/data/text");
    assert_eq!(
        guest.sys(libc::SYS_utimensat, &[-100, path, 0, 0]),
        READ_ONLY
    );
    assert_eq!(guest.sys(libc::SYS_newfstatat, &[-100, path, place, 0]), 0);
    let names = std::fs::read_dir(directory.path("granted"))
        .unwrap()
        .count();
    assert_eq!(names, 6);
    assert_eq!(
        std::fs::read(directory.path("granted/text")).unwrap(),
        b"some text"
    );
}

#[test]
fn files_are_written_read_and_looked_at() {
    use std::os::unix::fs::MetadataExt;
    let (directory, guest) = granted(Access::ReadWrite);
    let host = |name: &str| directory.path("granted").join(name);
    let flags = libc::O_CREAT | libc::O_RDWR | libc::O_EXCL;
    let file = guest.open("/data/new", flags, 0o666);
    assert_eq!(file, 3);
    assert_eq!(guest.open("/data/new", flags, 0), -i64::from(libc::EEXIST));
    assert_eq!(guest.write(file, b"0123456789"), 10);
    assert_eq!(
        guest.sys(libc::SYS_lseek, &[file, -4, libc::SEEK_END.into()]),
        6
    );
    assert_eq!(guest.read(file, 100), b"6789");
    assert_eq!(
        guest.sys(libc::SYS_lseek, &[file, 2, libc::SEEK_SET.into()]),
        2
    );
    assert_eq!(
        guest.sys(libc::SYS_lseek, &[file, 3, libc::SEEK_CUR.into()]),
        5
    );
    let place = guest.memory + DATA;
    assert_eq!(guest.sys(libc::SYS_pread64, &[file, place, 0, 1]), 0);
    assert_eq!(guest.sys(libc::SYS_pread64, &[file, place, 3, 1]), 3);
    assert_eq!(guest.get(DATA, 3), b"123");
    guest.put(DATA, b"AB");
    assert_eq!(guest.sys(libc::SYS_pwrite64, &[file, place, 2, 8]), 2);
    assert_eq!(
        guest.read(file, 100),
        b"567AB",
        "the position is the descriptor's"
    );
    let again = guest.sys(libc::SYS_dup, &[file]);
    assert_eq!(
        guest.sys(libc::SYS_lseek, &[again, 1, libc::SEEK_SET.into()]),
        1
    );
    assert_eq!(guest.read(file, 1), b"1", "duplicates share the position");
    assert_eq!(guest.sys(libc::SYS_ftruncate, &[file, 4]), 0);
    assert_eq!(guest.sys(libc::SYS_fsync, &[file]), 0);
    assert_eq!(std::fs::read(host("new")).unwrap(), b"0123");
    let add = guest.open("/data/new", libc::O_WRONLY | libc::O_APPEND, 0);
    assert_eq!(guest.write(add, b"+"), 1);
    assert_eq!(
        guest.sys(libc::SYS_fcntl, &[add, libc::F_GETFL.into(), 0]),
        0o2001
    );
    assert_eq!(
        guest.sys(libc::SYS_fcntl, &[add, libc::F_SETFD.into(), 1]),
        0
    );
    assert_eq!(
        guest.sys(libc::SYS_fcntl, &[add, libc::F_GETFD.into(), 0]),
        1
    );
    assert_eq!(std::fs::read(host("new")).unwrap(), b"0123+");

    // The kernel's structure, but for the owner.
    let found = std::fs::metadata(host("new")).unwrap();
    let fields = |guest: &Guest| {
        let bytes = guest.get(DATA, 144);
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        (
            word(8),
            word(16),
            word(24) as u32,
            word(28) as u32,
            word(48),
            word(88),
        )
    };
    let expected = (found.ino(), 1, found.mode(), 1000, 5, found.mtime() as u64);
    assert_eq!(guest.sys(libc::SYS_fstat, &[file, place]), 0);
    assert_eq!(fields(&guest), expected);
    assert_eq!(guest.on(libc::SYS_stat, "/data/new", &[place]), 0);
    assert_eq!(fields(&guest), expected);
    assert_eq!(guest.on(libc::SYS_lstat, "/data/good", &[place]), 0);
    assert_eq!(fields(&guest).2 & libc::S_IFMT, libc::S_IFLNK);

    let times = [5i64, 6, 7, 8].map(i64::to_le_bytes).concat();
    let times = guest.put(DATA, &times);
    let path = guest.path(PATH, "/data/new");
    assert_eq!(guest.sys(libc::SYS_utimensat, &[-100, path, times, 0]), 0);
    assert_eq!(std::fs::metadata(host("new")).unwrap().mtime(), 7);
    assert_eq!(guest.on(libc::SYS_chmod, "/data/new", &[0o6640]), 0);
    assert_eq!(
        std::fs::metadata(host("new")).unwrap().mode() & 0o7777,
        0o640
    );
    assert_eq!(
        guest.on_both(libc::SYS_link, "/data/new", "/data/sub/two"),
        0
    );
    assert_eq!(
        guest.on_both(libc::SYS_rename, "/data/new", "/data/sub/one"),
        0
    );
    assert_eq!(guest.on(libc::SYS_unlink, "/data/sub/two", &[]), 0);
    assert_eq!(
        guest.on(libc::SYS_unlink, "/data/sub", &[]),
        -i64::from(libc::EISDIR)
    );
    let full = -i64::from(libc::ENOTEMPTY);
    assert_eq!(guest.on(libc::SYS_rmdir, "/data/sub", &[]), full);
    assert_eq!(guest.on(libc::SYS_mkdir, "/data/more", &[0o777]), 0);
    assert_eq!(
        std::fs::metadata(host("more")).unwrap().mode() & 0o777,
        0o755
    );
    assert_eq!(guest.on(libc::SYS_rmdir, "/data/more", &[]), 0);
    // A file that never had a name.
    let unnamed = guest.open("/data", libc::O_TMPFILE | libc::O_RDWR, 0o600);
    // Not every file system has them.
    if unnamed != -i64::from(libc::EOPNOTSUPP) {
        assert_eq!(guest.write(unnamed, b"hidden"), 6, "{unnamed}");
    }
    assert_eq!(std::fs::read_dir(host("")).unwrap().count(), 6);
    assert_eq!(
        guest.read(file, 9).len(),
        3,
        "a file lives as long as it is open"
    );
}

#[test]
fn directories_are_listed_and_walked() {
    let (_directory, guest) = granted(Access::ReadWrite);
    let place = guest.memory + DATA;
    let list = |path: &str, room: i64| {
        let file = guest.open(path, libc::O_RDONLY | libc::O_DIRECTORY, 0);
        assert!(file >= 0, "{path}: {file}");
        let mut names = Vec::new();
        loop {
            let read = guest.sys(libc::SYS_getdents64, &[file, place, room]);
            assert!(read >= 0, "{read}");
            let bytes = guest.get(DATA, read as usize);
            if bytes.is_empty() {
                break;
            }
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let size = usize::from(u16::from_le_bytes([rest[16], rest[17]]));
                let name = rest[19..size].split(|&b| b == 0).next().unwrap();
                names.push(String::from_utf8(name.to_vec()).unwrap());
                rest = &rest[size..];
            }
        }
        assert_eq!(guest.sys(libc::SYS_lseek, &[file, 0, 0]), 0);
        assert!(guest.sys(libc::SYS_getdents64, &[file, place, 4096]) > 0);
        assert_eq!(guest.close(file), 0);
        names.sort();
        names
    };
    let names = [".", "..", "absolute", "good", "out", "sub", "text", "up"];
    assert_eq!(list("/data", 4096), names);
    assert_eq!(list("/data/", 40), names, "in small pieces");
    assert_eq!(list("/", 4096), [".", "..", "data"]);
    assert_eq!(guest.open("/", libc::O_RDWR, 0), -i64::from(libc::EISDIR));
    let file = guest.open("/data", libc::O_RDONLY, 0);
    assert_eq!(guest.sys(libc::SYS_getdents64, &[file, place, 8]), INVALID);
    // From an open directory, and from the working directory.
    let path = guest.path(PATH, "sub/../text");
    assert!(guest.sys(libc::SYS_openat, &[file, path, 0, 0]) > 0);
    assert_eq!(guest.on(libc::SYS_chdir, "/data/sub", &[]), 0);
    assert!(guest.open("../text", 0, 0) > 0);
    assert_eq!(guest.sys(libc::SYS_getcwd, &[place, 100]), 10);
    assert_eq!(guest.get(DATA, 10), b"/data/sub\0");
    assert_eq!(guest.sys(libc::SYS_fchdir, &[file]), 0);
    assert!(guest.open("text", 0, 0) > 0);
    assert_eq!(
        guest.on(libc::SYS_chdir, "text", &[]),
        -i64::from(libc::ENOTDIR)
    );
    assert_eq!(guest.sys(libc::SYS_openat, &[77, path, 0, 0]), BAD);
    assert_eq!(guest.open("text/x", 0, 0), -i64::from(libc::ENOTDIR));
    assert_eq!(guest.open("", 0, 0), MISSING);
}

#[test]
fn hostile_numbers_are_errors() {
    let (directory, guest) = granted(Access::ReadWrite);
    let file = guest.open("/data/text", libc::O_RDWR, 0);
    let place = guest.memory + DATA;
    let extreme = [
        i64::MIN,
        i64::MIN + 1,
        -1,
        i64::MAX,
        1 << 62,
        1 << 32,
        (1 << 62) + 1,
    ];
    for number in extreme {
        for other in [
            libc::SYS_read,
            libc::SYS_write,
            libc::SYS_fstat,
            libc::SYS_close,
        ] {
            if !(0..=file).contains(&i64::from(number as i32)) {
                assert_eq!(guest.sys(other, &[number, place, 10]), BAD, "{number}");
            }
        }
        if number < 0 {
            assert_eq!(
                guest.sys(libc::SYS_pread64, &[file, place, 1, number]),
                INVALID
            );
            assert_eq!(
                guest.sys(libc::SYS_pwrite64, &[file, place, 1, number]),
                INVALID
            );
            assert_eq!(guest.sys(libc::SYS_ftruncate, &[file, number]), INVALID);
            assert_eq!(guest.sys(libc::SYS_lseek, &[file, number, 0]), INVALID);
        }
        let locked = [0x1_0001i64, number, number, 0]
            .map(i64::to_le_bytes)
            .concat();
        let locked = guest.put(DATA, &locked);
        let lock = guest.sys(libc::SYS_fcntl, &[file, libc::F_SETLK.into(), locked]);
        assert!(lock <= 0, "{lock}");
        guest.sys(libc::SYS_lseek, &[file, number, libc::SEEK_CUR.into()]);
        guest.sys(libc::SYS_lseek, &[file, number, libc::SEEK_END.into()]);
        guest.sys(libc::SYS_lseek, &[file, 0, number]);
        guest.sys(libc::SYS_lseek, &[file, 0, 0]);
    }
    // As far as a file reaches, and not past it.
    assert_eq!(guest.sys(libc::SYS_lseek, &[file, i64::MAX, 0]), i64::MAX);
    assert!(guest.write(file, b"x") < 0);
    assert!(guest.sys(libc::SYS_read, &[file, place, 10]) <= 0);
    assert_eq!(
        guest.sys(libc::SYS_lseek, &[file, 1, libc::SEEK_CUR.into()]),
        INVALID
    );
    assert!(guest.sys(libc::SYS_read, &[file, place, -1]) <= 1 << 20);
    assert_eq!(
        std::fs::read(directory.path("granted/text")).unwrap(),
        b"some text"
    );
}

#[test]
fn limits_of_files_and_bytes() {
    let directory = Directory::new();
    let rules = Rules::new()
        .grant("/", &directory.0, Access::ReadWrite)
        .unwrap()
        .open_files(6)
        .file_size(10_000)
        .written(40_000);
    let guest = Guest::new(Policy::files(rules));
    let files: Vec<i64> = (0..4)
        .map(|i| guest.open(&format!("/f{i}"), NEW, 0o644))
        .collect();
    assert_eq!(files, [3, 4, 5, -i64::from(libc::EMFILE)]);
    let big = -i64::from(libc::EFBIG);
    assert_eq!(guest.write(3, &[1; 20_000]), 10_000);
    assert_eq!(guest.write(3, &[1]), big);
    assert_eq!(guest.sys(libc::SYS_ftruncate, &[3, 10_001]), big);
    let place = guest.memory + DATA;
    assert_eq!(guest.sys(libc::SYS_pwrite64, &[3, place, 1, 10_000]), big);
    assert_eq!(guest.sys(libc::SYS_lseek, &[4, 1 << 40, 0]), 1 << 40);
    assert_eq!(guest.write(4, b"x"), big);
    // Four names of 4096 and 10,000 bytes are spent; names that exist cost nothing.
    let full = -i64::from(libc::EDQUOT);
    assert_eq!(guest.write(5, &[1; 10_000]), 10_000);
    assert_eq!(guest.close(5), 0);
    assert_eq!(guest.open("/f2", NEW, 0), 5);
    assert_eq!(guest.write(5, &[1; 10_000]), 3_616);
    assert_eq!(guest.write(5, &[1]), full);
    assert_eq!(guest.on(libc::SYS_mkdir, "/d", &[0o755]), full);
    assert_eq!(guest.close(5), 0);
    assert_eq!(guest.open("/new", NEW, 0o644), full);
    assert!(!directory.path("new").exists() && !directory.path("d").exists());
}

/// `struct flock` over bytes from `start`.
fn lock(guest: &Guest, file: i64, command: i32, kind: i32, start: i64, length: i64) -> i64 {
    let words = [i64::from(kind), start, length, 0];
    let place = guest.put(DATA, &words.map(i64::to_le_bytes).concat());
    guest.sys(libc::SYS_fcntl, &[file, command.into(), place])
}

#[test]
fn locks_are_between_domains() {
    let directory = Directory::new();
    let rules = Rules::new()
        .grant("/", &directory.0, Access::ReadWrite)
        .unwrap();
    let policy = Policy::files(rules);
    let (one, two) = (Guest::new(policy.clone()), Guest::new(policy));
    let flags = libc::O_CREAT | libc::O_RDWR;
    let file = one.open("/base", flags, 0o644);
    let second = one.open("/base", flags, 0o644);
    let other = two.open("/base", flags, 0o644);
    let (set, get) = (libc::F_SETLK, libc::F_GETLK);
    let busy = -i64::from(libc::EAGAIN);
    assert_eq!(lock(&one, file, set, libc::F_WRLCK, 10, 5), 0);
    // The same domain's other descriptor is the same owner, as for a process.
    assert_eq!(lock(&one, second, set, libc::F_WRLCK, 10, 5), 0);
    assert_eq!(lock(&two, other, set, libc::F_RDLCK, 12, 1), busy);
    assert_eq!(lock(&two, other, set, libc::F_RDLCK, 15, 0), 0);
    assert_eq!(lock(&one, file, set, libc::F_WRLCK, 15, 1), busy);
    assert_eq!(lock(&two, other, get, libc::F_WRLCK, 0, 0), 0);
    let found: Vec<i64> = two
        .get(DATA, 24)
        .chunks(8)
        .map(|word| i64::from_le_bytes(word.try_into().unwrap()))
        .collect();
    assert_eq!((found[0] as i16, found[1], found[2]), (1, 10, 5));
    // Closing any descriptor of the file gives all back, as POSIX has it.
    assert_eq!(one.close(second), 0);
    assert_eq!(lock(&two, other, set, libc::F_WRLCK, 0, 0), 0);
    assert_eq!(lock(&one, file, set, libc::F_RDLCK, 0, 1), busy);
    two.domain.reset().unwrap();
    assert_eq!(lock(&one, file, libc::F_SETLKW, libc::F_WRLCK, 0, 0), 0);
    let whole = |guest: &Guest, file, how: i32| guest.sys(libc::SYS_flock, &[file, how.into()]);
    assert_eq!(whole(&one, file, libc::LOCK_EX), 0);
    assert_eq!(whole(&one, file, libc::LOCK_EX | libc::LOCK_NB), 0);
    let other = two.open("/base", flags, 0o644);
    assert_eq!(whole(&two, other, libc::LOCK_SH | libc::LOCK_NB), busy);
    assert_eq!(whole(&one, file, libc::LOCK_UN), 0);
    assert_eq!(whole(&two, other, libc::LOCK_SH | libc::LOCK_NB), 0);
    assert_eq!(whole(&two, other, 64), INVALID);
    assert_eq!(lock(&one, file, set, 77, 0, 0), INVALID);
    assert_eq!(lock(&one, 1, set, libc::F_WRLCK, 0, 0), INVALID);
}

/// How many descriptors of the process are below a directory.
fn held(directory: &Directory) -> usize {
    let all = std::fs::read_dir("/proc/self/fd").unwrap();
    all.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .filter(|link| link.starts_with(&directory.0))
        .count()
}

#[test]
fn files_are_closed_by_reset_by_another_policy_and_with_the_domain() {
    let (directory, guest) = granted(Access::ReadWrite);
    let open = || guest.open("/data/text", libc::O_RDONLY, 0);
    assert_eq!((open(), open(), held(&directory)), (3, 4, 3));
    guest.domain.reset().unwrap();
    assert_eq!(held(&directory), 1, "the grant stays");
    assert_eq!(open(), 3);
    guest.domain.set_policy(Policy::compute());
    assert_eq!(held(&directory), 0);
    assert_eq!((guest.close(3), open()), (BAD, DENIED));
    guest.domain.set_policy(Policy::none());
    assert_eq!(guest.sys(libc::SYS_getpid, &[]), REFUSED);
    let (directory, guest) = granted(Access::ReadWrite);
    assert_eq!(guest.open("/data/text", libc::O_RDONLY, 0), 3);
    drop(guest);
    assert_eq!(held(&directory), 0);
}

#[test]
fn devices_and_pipes_are_not_opened() {
    let (directory, guest) = granted(Access::ReadWrite);
    let pipe = directory.path("granted/pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for flags in [libc::O_RDONLY, libc::O_RDWR, NEW] {
        let opened = guest.open("/data/pipe", flags, 0);
        assert!(
            [DENIED, -i64::from(libc::ENXIO)].contains(&opened),
            "{opened}"
        );
    }
    let everything = Rules::new().grant("/", "/", Access::Read).unwrap();
    let guest = Guest::new(Policy::files(everything));
    for path in [
        "/dev/null",
        "/proc/self/mem",
        "/proc/self/environ",
        "/proc",
        "/sys/kernel",
    ] {
        assert_eq!(guest.open(path, libc::O_RDONLY, 0), DENIED, "{path}");
    }
}

#[test]
fn the_host_decides_call_by_call() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let (printed, base) = printing();
    let policy = Policy::custom(base, move |caller: &Caller<'_>, request: &Request| {
        assert!(!caller.domain().is_poisoned());
        match &request.call {
            Call::Write { file: 1, bytes, .. } if bytes.starts_with(b"bad") => {
                Verdict::Deny(libc::EIO)
            }
            Call::Open { path, .. } => {
                log.lock()
                    .unwrap()
                    .push(String::from_utf8_lossy(&path.bytes).into_owned());
                match &path.bytes[..] {
                    b"/virtual" => Verdict::Emulate(50, Vec::new()),
                    b"/fatal" => Verdict::Kill("asked for /fatal".into()),
                    _ => Verdict::Deny(0),
                }
            }
            Call::Read {
                file: 50, length, ..
            } => {
                assert_eq!(request.room, *length);
                Verdict::Emulate(5, b"virtual file".to_vec())
            }
            Call::Stat(Target::Open(50)) => Verdict::Emulate(0, vec![7; 1000]),
            Call::Unknown { number: 41, words } => Verdict::Emulate(words[0] as i64, Vec::new()),
            _ => Verdict::Allow,
        }
    });
    let guest = Guest::new(policy);
    assert_eq!(guest.write(1, b"good"), 4);
    assert_eq!(guest.write(1, b"bad"), -i64::from(libc::EIO));
    assert_eq!(*printed.lock().unwrap(), b"good");
    assert_eq!(guest.open("/virtual", 0, 0), 50);
    assert_eq!(guest.open("/other", 0, 0), REFUSED);
    let place = guest.put(DATA, &[b'.'; 200]);
    assert_eq!(guest.sys(libc::SYS_read, &[50, place, 8]), 5);
    assert_eq!(
        guest.get(DATA, 10),
        b"virtual ..",
        "no more than there is room for"
    );
    assert_eq!(guest.sys(libc::SYS_fstat, &[50, place]), 0);
    assert_eq!(guest.get(DATA + 142, 4), [7, 7, b'.', b'.']);
    assert_eq!(
        guest.sys(libc::SYS_read, &[50, 8, 8]),
        FAULT,
        "the host is not asked"
    );
    assert_eq!(guest.sys(41, &[9]), 9);
    assert_eq!(guest.sys(42, &[9]), -i64::from(libc::ENOSYS));
    assert_eq!(guest.domain.counters().last_refused, Some(42));
    let end = guest.call.call(libc::SYS_exit_group, 3, 0, 0, 0, 0);
    assert!(matches!(end, Err(CallError::Exited(3))), "{end:?}");
    guest.path(PATH, "/fatal");
    let end = guest.call.call(libc::SYS_open, guest.memory, 0, 0, 0, 0);
    assert!(end.unwrap_err().to_string().contains("asked for /fatal"));
    assert_eq!(*seen.lock().unwrap(), ["/virtual", "/other", "/fatal"]);
}

#[test]
fn the_table_names_what_the_decoder_knows() {
    let unknown = Arc::new(Mutex::new(Vec::new()));
    let found = unknown.clone();
    let policy = Policy::custom(Policy::none(), move |_: &Caller<'_>, request: &Request| {
        if let Call::Unknown { number, .. } = request.call {
            assert_eq!(number, request.number);
            found.lock().unwrap().push(number);
        }
        Verdict::Allow
    });
    let guest = Guest::new(policy);
    let ends = [libc::SYS_exit, libc::SYS_exit_group];
    let numbers = || (-3..600).filter(|n| !ends.contains(n));
    for number in numbers() {
        guest.sys(number, &[]);
    }
    let known: Vec<i64> = SYSTEM_CALLS.iter().map(|call| call.number).collect();
    let wanted: Vec<i64> = numbers().filter(|n| !known.contains(n)).collect();
    assert_eq!(*unknown.lock().unwrap(), wanted);
}

#[test]
fn threads_work_in_one_domain_at_once() {
    let (directory, guest) = granted(Access::ReadWrite);
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let guest = guest.clone();
            std::thread::spawn(move || {
                // Each in a page of its own.
                let base = 65536 + thread * 65536;
                for round in 0..100 {
                    let path = guest.path(base, &format!("/data/{thread}-{round}"));
                    let file = guest.sys(libc::SYS_open, &[path, NEW.into(), 0o644]);
                    assert!(file >= 3, "{file}");
                    assert_eq!(guest.sys(libc::SYS_write, &[file, path, 8]), 8);
                    assert_eq!(guest.close(file), 0);
                    assert_eq!(guest.sys(libc::SYS_unlink, &[path]), 0);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(held(&directory), 1);
    assert_eq!(guest.open("/data/text", 0, 0), 3, "no descriptor was lost");
}

#[test]
fn a_blocked_read_holds_nobody_up() {
    let (send, receive) = mpsc::channel::<u8>();
    let receive = Mutex::new(receive);
    let (reached, at) = mpsc::channel();
    let input = Input::function(move |buffer: &mut [u8]| {
        reached.send(()).unwrap();
        buffer[0] = receive.lock().unwrap().recv().unwrap();
        1
    });
    let guest = Guest::new(Policy::compute().stdin(input).stdout(Sink::Discard));
    let reader = guest.clone();
    let blocked = std::thread::spawn(move || reader.read(0, 10));
    at.recv().unwrap();
    let place = guest.put(PATH, b"x");
    assert_eq!(guest.sys(libc::SYS_write, &[1, place, 1]), 1);
    assert_eq!(guest.close(0), 0);
    assert_eq!(guest.sys(libc::SYS_dup, &[1]), 0);
    send.send(b'!').unwrap();
    assert_eq!(blocked.join().unwrap(), b"!");
}

#[test]
fn forked_children_make_system_calls_whatever_others_were_at() {
    let (_directory, guest) = granted(Access::ReadWrite);
    let stop = Arc::new(AtomicU32::new(0));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let stop = stop.clone();
            std::thread::spawn(move || {
                let (_directory, busy) = granted(Access::Read);
                while stop.load(Ordering::Relaxed) == 0 {
                    let file = busy.open("/data/text", 0, 0);
                    assert_eq!(busy.close(file), 0, "{file}");
                }
            })
        })
        .collect();
    for _ in 0..20 {
        let status = support::fork(|| {
            let file = guest.open("/data/text", libc::O_RDONLY, 0);
            assert_eq!(guest.read(file, 4), b"some");
            guest.domain.reset().unwrap();
            guest.domain.set_policy(Policy::none());
            guest.sys(libc::SYS_getpid, &[]) == REFUSED
        });
        assert_eq!(status, 0);
    }
    stop.store(1, Ordering::Relaxed);
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn programs_get_arguments_and_end_with_a_status() {
    let (printed, policy) = printing();
    let guest = Guest::new(policy);
    let none: [&str; 0] = [];
    let status = guest.domain.run_main(&["name", "abc"], &["E=1"]);
    assert_eq!(
        (status.unwrap(), &printed.lock().unwrap()[..]),
        (5, &b"E=1abc"[..])
    );
    assert_eq!(guest.domain.run_main(&["name"], &none).unwrap(), 100);
    let bad = guest.domain.run_main(&["name", "a\0b"], &none);
    assert!(matches!(bad, Err(CallError::Arguments(_))), "{bad:?}");
    let long = "x".repeat(2 << 20);
    let bad = guest.domain.run_main(&["name", &long], &none);
    assert!(matches!(bad, Err(CallError::Arguments(_))), "{bad:?}");
    let plain = support::code(&[], &[("f", "v()")], "f: ret").image();
    let bad = Domain::builder(&plain)
        .build()
        .unwrap()
        .run_main(&["x"], &none);
    assert!(matches!(bad, Err(CallError::NoMain)), "{bad:?}");
}

#[test]
fn grants_that_make_no_sense_are_refused() {
    let directory = Directory::new();
    for guest in ["relative", "", "/a/../b", "/nul\0"] {
        assert!(
            Rules::new()
                .grant(guest, &directory.0, Access::Read)
                .is_err(),
            "{guest}"
        );
    }
    assert!(
        Rules::new()
            .grant("/a", directory.path("missing"), Access::Read)
            .is_err()
    );
    let rules = Rules::new()
        .grant("/a", &directory.0, Access::Read)
        .unwrap();
    assert!(rules.grant("/a/", &directory.0, Access::Read).is_err());
}
