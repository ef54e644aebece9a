//! Hand-written extensions for tests: GNU assembly in the confined form, assembled and linked when
//! the test runs.
//!
//! Imports are symbols at their gate slots, so `call name` calls a service. `.data` and `.rodata`
//! are linked where the window's layout puts them. Nothing here is trusted: what comes out passes
//! the image loader and the verifier like any other file.
#![allow(dead_code, unused_imports, clippy::undocumented_unsafe_blocks)]

pub mod directory;

pub use directory::{Directory, compile};
use object::{Object, ObjectSection, ObjectSymbol};
use postern::{Domain, DomainBuilder, Image};
use postern_image::ImageBuilder;
use postern_verifier::window;
use std::collections::HashMap;
use std::process::{Command, Output};
use std::time::Duration;

/// What every source may use: pads, guarded branches, the data stack.
const MACROS: &str = r#"
.allow_index_reg
.macro PAD
    .byte 0x0f,0x1f,0x84,0x20,0,0,0,0
.endm
.macro GUARDED reg, how:vararg
    movl \reg, %r11d
    cmpq $0x20841f0f, %gs:(%r11d)
    jne bad_jump
    .byte 0x65,0x67,0x4c,0x0b,0x1c,0x25,0,0,1,0
    \how *%r11
.endm
.macro PUSH reg
    leaq -8(%r15), %r15
    movq \reg, %gs:(%r15d)
.endm
.macro POP reg
    movq %gs:(%r15d), \reg
    leaq 8(%r15), %r15
.endm
.text
"#;

/// Linked machine code that can still be given flags.
pub struct Code {
    pub builder: ImageBuilder,
    pub symbols: HashMap<String, u32>,
}

impl Code {
    pub fn image(&self) -> Image {
        match self.load() {
            Ok(image) => image,
            Err(error) => panic!("{error}"),
        }
    }

    pub fn load(&self) -> Result<Image, postern::LoadError> {
        Image::from_bytes(&self.builder.build().unwrap())
    }

    /// Offset of a label.
    pub fn at(&self, label: &str) -> u32 {
        self.symbols[label]
    }
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Assembles `source` with imports and exports given as `(name, signature)`.
pub fn code(imports: &[(&str, &str)], exports: &[(&str, &str)], source: &str) -> Code {
    let directory = Directory::new();
    let file = |name: &str| directory.path(name).to_str().unwrap().to_owned();
    let (s, o, x) = (file("a.s"), file("a.o"), file("a.x"));
    // The failed check of a jump target lands here unless the source has its own place.
    let trap = if source.contains("bad_jump:") {
        ""
    } else {
        "\nbad_jump: int3\n"
    };
    std::fs::write(&s, format!("{MACROS}{source}{trap}")).unwrap();
    run("as", &["-o", &o, &s]);

    let mut builder = ImageBuilder::new([0xcc]);
    let mut definitions = Vec::new();
    for (name, signature) in imports {
        let signature = (!signature.is_empty()).then(|| signature.parse().unwrap());
        let slot = builder.import(*name, signature);
        definitions.push(format!("--defsym={name}={:#x}", window::slot(slot)));
    }
    let mut symbols = HashMap::new();
    // Twice: where rodata and data lie is known once the sizes are.
    for _ in 0..2 {
        let layout = builder.layout().unwrap();
        let mut arguments: Vec<String> = vec![
            "-o".into(),
            x.clone(),
            o.clone(),
            "-e0".into(),
            "-no-pie".into(),
            "-z".into(),
            "noexecstack".into(),
            format!("-Ttext={:#x}", builder.text_offset()),
            format!("--section-start=.rodata={:#x}", layout.text_end),
            format!("-Tdata={:#x}", layout.data),
        ];
        arguments.extend(definitions.iter().cloned());
        run(
            "ld",
            &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        let bytes = std::fs::read(&x).unwrap();
        let elf = object::File::parse(&*bytes).unwrap();
        let section = |name| {
            elf.section_by_name(name)
                .map_or_else(Vec::new, |s| s.data().unwrap().to_vec())
        };
        builder.text(section(".text"));
        builder.rodata(section(".rodata"));
        builder.data(
            section(".data"),
            elf.section_by_name(".bss").map_or(0, |s| s.size()),
        );
        symbols = elf
            .symbols()
            .filter_map(|s| Some((s.name().ok()?.to_owned(), s.address() as u32)))
            .collect();
    }
    for (name, signature) in exports {
        let signature = (!signature.is_empty()).then(|| signature.parse().unwrap());
        let position = symbols[*name] - builder.text_offset();
        builder.export(*name, position, signature);
    }
    Code { builder, symbols }
}

/// An image without imports.
pub fn image(exports: &[(&str, &str)], source: &str) -> Image {
    code(&[], exports, source).image()
}

/// A domain without imports, cold so that tests in one process do not contend for the hot window.
pub fn domain(exports: &[(&str, &str)], source: &str) -> Domain {
    cold(&image(exports, source)).build().unwrap()
}

pub fn cold(image: &Image) -> DomainBuilder {
    Domain::builder(image).placement(postern::Placement::Cold)
}

const CHILD: &str = "POSTERN_TEST_CHILD";

/// Runs `body` in a process of its own: in the child, runs it and exits with 0; in the parent,
/// returns how the child ended. `test` is the full name of the calling test.
pub fn in_child(test: &str, body: impl FnOnce()) -> Output {
    if std::env::var(CHILD).as_deref() == Ok(test) {
        body();
        std::process::exit(0);
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, test)
        .output()
        .unwrap();
    // Nothing would fail where nothing runs.
    let none = String::from_utf8_lossy(&output.stdout).contains("running 0 tests");
    assert!(!none, "no test here is called {test}");
    output
}

/// As [`in_child`], and the child must succeed.
pub fn succeeds_in_child(test: &str, body: impl FnOnce()) {
    let output = in_child(test, body);
    assert!(
        output.status.success(),
        "{:?}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Forks; the child runs `body` and leaves with 0 if it returns true. Returns the wait status.
pub fn fork(body: impl FnOnce() -> bool) -> i32 {
    unsafe {
        match libc::fork() {
            0 => {
                let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
                libc::_exit(if good.unwrap_or(false) { 0 } else { 9 })
            }
            child => {
                assert!(child > 0);
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &mut status, 0), child);
                status
            }
        }
    }
}

/// Number of mappings of this process.
pub fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps")
        .unwrap()
        .lines()
        .count()
}

/// Number of open descriptors.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Number of threads. One that was joined may be listed a moment longer, so the fewest of some
/// looks count.
pub fn threads() -> usize {
    let look = |_| {
        std::thread::sleep(Duration::from_millis(2));
        std::fs::read_dir("/proc/self/task").unwrap().count()
    };
    (0..20).map(look).min().unwrap()
}

/// Waits until the watchdog has seen calls inside the domain for more than `time` from now on, and
/// has drawn its conclusions.
pub fn watched(domain: &Domain, time: Duration) {
    let inside = || domain.counters().time_inside;
    // The first look, looks for that time, and one more, before which the last of them was over.
    for more in [Duration::ZERO, time, Duration::ZERO] {
        let before = inside();
        while inside() <= before + more {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Runs `body` with the stack pointer at the top of `stack`, as coroutine libraries do.
pub fn on_stack<R>(stack: &mut [u8], body: impl FnOnce() -> R) -> R {
    extern "C" fn go<F: FnOnce() -> R, R>(slot: *mut (Option<F>, Option<R>)) {
        unsafe {
            let body = (*slot).0.take().unwrap();
            (*slot).1 = Some(body());
        }
    }
    fn pointer<F: FnOnce() -> R, R>(_: &F) -> extern "C" fn(*mut (Option<F>, Option<R>)) {
        go::<F, R>
    }
    let function = pointer::<_, R>(&body);
    let mut slot = (Some(body), None::<R>);
    let top = (stack.as_mut_ptr() as usize + stack.len()) & !15;
    unsafe {
        std::arch::asm!(
            "mov r12, rsp", "mov rsp, {top}", "call {function}", "mov rsp, r12",
            top = in(reg) top, function = in(reg) function, in("rdi") &raw mut slot, out("r12") _,
            clobber_abi("C"));
    }
    slot.1.unwrap()
}

/// What may be done at an address now: read, write.
pub fn protections() -> impl Fn(u64) -> (bool, bool) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let lines: Vec<(u64, u64, bool, bool)> = maps
        .lines()
        .map(|line| {
            let (range, rest) = line.split_once(' ').unwrap();
            let (start, end) = range.split_once('-').unwrap();
            let hex = |text| u64::from_str_radix(text, 16).unwrap();
            let rights = &rest.as_bytes()[..2];
            (hex(start), hex(end), rights[0] == b'r', rights[1] == b'w')
        })
        .collect();
    move |address| {
        let found = lines.iter().find(|l| (l.0..l.1).contains(&address));
        found.map_or((false, false), |l| (l.2, l.3))
    }
}

/// Mappings that leave the kernel no room for another one, until they are dropped.
pub struct Fill {
    start: usize,
    pages: usize,
}

/// Uses up `vm.max_map_count`.
pub fn fill_mappings() -> Fill {
    const PAGES: usize = 1 << 18;
    let none = libc::PROT_NONE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let start = unsafe { libc::mmap(std::ptr::null_mut(), PAGES * 4096, none, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    let start = start as usize;
    let fill = Fill {
        start,
        pages: PAGES,
    };
    fill.again();
    fill
}

impl Fill {
    /// Every other page gets a mapping of its own, as far as the kernel allows.
    pub fn again(&self) {
        let read = |page: usize| unsafe {
            libc::mprotect((self.start + page * 4096) as *mut _, 4096, libc::PROT_READ) == 0
        };
        assert!(
            !(1..self.pages).step_by(2).all(read),
            "vm.max_map_count is too large to test"
        );
    }

    /// Gives up some mappings.
    pub fn less(&self, mappings: usize) {
        let bytes = 2 * mappings * 4096;
        unsafe { libc::mprotect(self.start as *mut _, bytes, libc::PROT_NONE) };
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        unsafe { libc::munmap(self.start as *mut _, self.pages * 4096) };
    }
}
