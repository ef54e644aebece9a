//! What the C library is made of: newlib's folders, what is left out of them and why, and our own
//! headers and sources.

use std::hash::{Hash, Hasher};
use std::io::Write as _;
use std::path::Path;

use super::source::Source;
use crate::archive::LibraryError;
use crate::cache;
use crate::error::CompileError;

/// Whom a library is built for.
#[derive(Debug, Hash)]
pub struct Target {
    /// What its folder in the cache begins with.
    pub name: &'static str,
    /// Compiled to the processor's plain code, not confined.
    pub plain: bool,
    /// newlib's folders.
    pub folders: &'static [Folder],
    /// Files that their Makefiles do not name in a form that is read.
    pub units: &'static [Extra],
    /// Options of every file.
    pub flags: &'static [&'static str],
    /// Headers in place of newlib's or besides them.
    pub headers: &'static [(&'static str, &'static str)],
    /// What newlib's headers lack, by header.
    pub appended: &'static [(&'static str, &'static str)],
    /// Sources besides newlib's, with the headers that they include.
    pub sources: &'static [(&'static str, &'static str)],
}

/// One file of newlib's by name.
#[derive(Debug, Hash)]
pub struct Extra {
    /// Its folder below `newlib/`.
    pub folder: &'static str,
    /// Its name there.
    pub source: &'static str,
    /// The object's name without its ending.
    pub object: &'static str,
    /// More options.
    pub flags: &'static [&'static str],
}

/// Extensions: confined, above the service `sys`.
pub const EXTENSIONS: Target = Target {
    name: "sysroot",
    plain: false,
    folders: FOLDERS,
    units: &[],
    flags: FLAGS,
    headers: HEADERS,
    appended: APPENDED,
    sources: SOURCES,
};

/// A folder of newlib's.
#[derive(Debug, Hash)]
pub struct Folder {
    /// Below `newlib/`.
    pub path: &'static str,
    /// The archive that its objects go to.
    pub archive: &'static str,
    /// More options for its files.
    pub flags: &'static [&'static str],
    /// Sources that are left out.
    pub without: &'static str,
}

pub const fn libc(path: &'static str, without: &'static str) -> Folder {
    Folder {
        path,
        archive: "libc.a",
        flags: &["-fno-builtin"],
        without,
    }
}

pub const fn libm(path: &'static str, without: &'static str) -> Folder {
    Folder {
        path,
        archive: "libm.a",
        flags: &["-fbuiltin", "-fno-math-errno"],
        without,
    }
}

/// Left out everywhere: smaller variants of the formatted input and output.
pub const SMALL_VARIANTS: &str = "nano-";

/// The folders. Left out are: what our library has (memory and string functions, the malloc family,
/// locks, abort, assertions), what reaches processes (exec, spawn, popen, wordexp), what would need
/// files of a Unix system (passwords, terminals), and what our own layer does on the service `sys`
/// (directories, positioned reads).
const FOLDERS: &[Folder] = &[
    libc("libc/argz", ""),
    libc(
        "libc/stdlib",
        "abort.c assert.c malloc.c calloc.c realloc.c reallocarray.c aligned_alloc.c malign.c msize.c mtrim.c mstats.c mlock.c \
         valloc.c ldtoa.c nano-mallocr.c mallocr.c system.c quick_exit.c",
    ),
    libc("libc/ctype", ""),
    libc("libc/search", ""),
    libc("libc/stdio", "makebuf.c tmpfile.c remove.c"),
    libc(
        "libc/string",
        "memcpy.c mempcpy.c memmove.c memset.c memcmp.c bcmp.c memchr.c memrchr.c strlen.c strnlen.c strchr.c strchrnul.c strrchr.c strcmp.c strncmp.c \
         stpcpy.c strcpy.c strcat.c strspn.c strcspn.c strpbrk.c strerror.c",
    ),
    libc("libc/signal", ""),
    libc("libc/time", "clock.c"),
    libc("libc/locale", ""),
    libc(
        "libc/reent",
        "closer.c execr.c fcntlr.c fstatr.c gettimeofdayr.c isattyr.c linkr.c lseekr.c mkdirr.c openr.c readr.c renamer.c \
         sbrkr.c signalr.c statr.c timesr.c unlinkr.c writer.c fstat64r.c lseek64r.c open64r.c stat64r.c getreent.c",
    ),
    libc("libc/errno", ""),
    libc("libc/misc", "init.c fini.c lock.c"),
    Folder {
        path: "libc/posix",
        archive: "libc.a",
        flags: &["-fno-builtin", "-D_GNU_SOURCE"],
        without: "closedir.c opendir.c readdir.c readdir_r.c rewinddir.c seekdir.c telldir.c dirfd.c scandir.c creat.c _isatty.c isatty.c \
         sleep.c usleep.c execl.c execle.c execlp.c execv.c execve.c execvp.c wordexp.c wordfree.c popen.c posix_spawn.c",
    },
    libc(
        "libc/unix",
        "getcwd.c getlogin.c getpass.c getpwent.c getut.c pread.c pwrite.c ttyname.c ttyname_r.c",
    ),
    libm(
        "libm/common",
        "s_modf.c s_fdim.c sf_fdim.c s_fma.c sf_fma.c nexttoward.c nexttowardf.c nexttowardl.c sqrtl.c hypotl.c",
    ),
    // Not as built-in functions: sincos would call itself.
    Folder {
        path: "libm/math",
        archive: "libm.a",
        flags: &["-fno-builtin"],
        without: "w_tgamma.c wf_tgamma.c el_hypot.c e_sqrt.c ef_sqrt.c",
    },
    Folder {
        path: "libm/complex",
        archive: "libm.a",
        flags: &["-fno-builtin"],
        // One of ours.
        without: "csqrtl.c",
    },
];

/// Mistakes of this version that are mended when it is unpacked: the files, what is there, what has
/// to be.
pub const MENDED: &[(&str, &str, &str)] = &[
    // The list of arguments is a parameter, that is, a pointer already: positional arguments would
    // be read from its own place.
    (
        "libc/stdio/vfprintf.c libc/stdio/vfwprintf.c",
        "fmt_anchor, &ap,",
        "fmt_anchor, (va_list *) ap,",
    ),
    (
        "libc/stdio/vfscanf.c libc/stdio/vfwscanf.c",
        "get_arg (n, &ap,",
        "get_arg (n, (va_list *) ap,",
    ),
    // Only +1 to the power of a NaN is 1, not -1.
    (
        "libm/math/e_pow.c",
        "if(((ix-0x3ff00000)|lx)==0) return one;",
        "if(((hx-0x3ff00000)|lx)==0) return one;",
    ),
    (
        "libm/math/ef_pow.c",
        "if(ix==0x3f800000) return one;",
        "if(hx==0x3f800000) return one;",
    ),
    // "0x" without a hexadecimal digit behind it is a 0.
    (
        "libc/stdlib/strtol.c libc/stdlib/strtoul.c libc/stdlib/strtoll.c libc/stdlib/strtoull.c libc/stdlib/strtoimax.c \
         libc/stdlib/strtoumax.c",
        "(*s == 'x' || *s == 'X')) {",
        "(*s == 'x' || *s == 'X') && ((s[1] >= '0' && s[1] <= '9') || ((s[1] | 32) >= 'a' && (s[1] | 32) <= 'f'))) {",
    ),
    (
        "libc/stdlib/wcstol.c libc/stdlib/wcstoul.c libc/stdlib/wcstoll.c libc/stdlib/wcstoull.c libc/stdlib/wcstoimax.c \
         libc/stdlib/wcstoumax.c",
        "(*s == L'x' || *s == L'X')) {",
        "(*s == L'x' || *s == L'X') && ((s[1] >= '0' && s[1] <= '9') || ((s[1] | 32) >= 'a' && (s[1] | 32) <= 'f'))) {",
    ),
];

/// Options of every file.
const FLAGS: &[&str] = &[
    "-O2",
    "-fvisibility=hidden",
    "-w",
    "-Uunix",
    "-D_COMPILING_NEWLIB",
    "-DREENTRANT_SYSCALLS_PROVIDED",
    "-DMALLOC_PROVIDED",
    "-DHAVE_FCNTL",
    "-DHAVE_OPENDIR",
    "-DHAVE_RENAME",
    "-DHAVE_BLKSIZE",
    "-DNO_EXEC",
];

/// The configuration that newlib's `configure` would write: everything in the formatted input and
/// output, wide characters, UTF-8, locks that we provide, streams that all threads share.
const NEWLIB_H: &str = include_str!("../../lib/libc/include/newlib.h");

macro_rules! headers {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../lib/libc/include/", $name)))),*]
    };
}
pub(super) use headers;
macro_rules! sources {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../lib/libc/", $name)))),*]
    };
}
pub(super) use sources;

/// Our own headers, in place of newlib's or besides them: numbers and structures are those of Linux
/// on x86-64, so that nothing has to be translated on the way to `sys`.
const HEADERS: &[(&str, &str)] = headers! {
    "machine/_types.h" "machine/time.h" "sys/errno.h" "sys/_default_fcntl.h" "sys/stat.h" "sys/dirent.h" "sys/ioctl.h"
    "arpa/inet.h" "byteswap.h" "dlfcn.h" "endian.h" "err.h" "error.h" "features.h" "ftw.h" "libintl.h" "netdb.h" "netinet/in.h" "netinet/tcp.h" "obstack.h" "poll.h" "pthread.h" "semaphore.h" "sys/_pthreadtypes.h" "sys/mman.h" "sys/poll.h" "sys/random.h" "sys/resource.h" "sys/socket.h" "sys/statvfs.h" "sys/syscall.h" "sys/uio.h" "sys/un.h" "sys/utsname.h" "syslog.h" "termios.h" "threads.h" "uchar.h"
};

/// Names with 64 for what has 64 bits under every name.
const LARGE: &str = include_str!("../../lib/libc/include/large.h");

/// What newlib's headers lack, by header.
const APPENDED: &[(&str, &str)] = &[
    LONG_DOUBLE,
    ("stdio.h", LARGE),
    ("unistd.h", LARGE),
    ("fcntl.h", LARGE),
    ("sys/stat.h", LARGE),
    ("sys/types.h", LARGE),
    ("limits.h", "\n#include <gnu/stubs.h>\n"),
    ("sys/features.h", "\n#include <gnu/stubs.h>\n"),
    COMPLEX,
];

/// Functions of `long double` that newlib lacks.
pub const LONG_DOUBLE: (&str, &str) = (
    "math.h",
    include_str!("../../lib/libc/include/long_double.h"),
);

/// How complex numbers are written.
pub const COMPLEX: (&str, &str) = (
    "complex.h",
    "\n#if !defined(CMPLX) && !defined(__cplusplus)\n#define CMPLX(x, y) __builtin_complex((double)(x), (double)(y))\n\
     #define CMPLXF(x, y) __builtin_complex((float)(x), (float)(y))\n\
     #define CMPLXL(x, y) __builtin_complex((long double)(x), (long double)(y))\n#endif\n",
);

/// Our own sources.
const SOURCES: &[(&str, &str)] = sources! {
    "call.h" "thread.h" "encodings.h" "files.c" "directories.c" "clock.c" "process.c" "memory.c" "locks.c" "buffer.c" "fenv.c" "ldtoa.c" "long_double.c" "math.c" "errors.c" "assert.c" "main.c"
    "reent.c" "threads.c" "thread_start.c" "mapping.c" "unavailable.c" "network.c" "iconv.c" "system.c" "messages.c" "walk.c" "obstack.c" "wide.c" "large.c"
};

/// Functions that are there for programs to link and that always fail.
const UNAVAILABLE: &str = include_str!("../../lib/libc/unavailable.c");

/// The header that names the functions of `source`, as glibc's does: configure scripts and meson
/// report a function as missing if `__stub_` with its name is defined.
fn stubs(source: &str) -> String {
    let mut out = String::from(
        "/* Functions that always fail, because what they do cannot be here. */\n#pragma once\n",
    );
    for line in source.lines() {
        let inside = ["ENOSYS(", "NOTHING(", "NUMBER("].iter();
        let inside = inside.filter_map(|start| line.strip_prefix(start)).next();
        if let Some(name) = inside.and_then(|text| text.split(", ").nth(1)) {
            out.push_str(&format!("#define __stub_{name}\n"));
        }
    }
    out
}

/// Feeds everything in this file that a sysroot depends on.
pub fn identify(target: &Target, hasher: &mut impl Hasher) {
    (NEWLIB_H, target, MENDED).hash(hasher);
    include_str!("compile.rs").hash(hasher);
}

/// Fills `folder` with the headers and the names that they declare.
pub fn write_headers(source: &Source, target: &Target, folder: &Path) -> Result<(), LibraryError> {
    let scratch = folder.join("source");
    create(&scratch)?;
    let root = source.unpack(&scratch)?;
    let include = folder.join("include");
    copy_headers(&root.join("libc/include"), &include)?;
    copy_headers(&root.join("libc/machine/x86_64/sys"), &include.join("sys"))?;
    cache::write(
        &include,
        &[
            ("newlib.h", NEWLIB_H),
            (
                "_newlib_version.h",
                "#define _NEWLIB_VERSION \"3.3.0\"\n#define __NEWLIB__ 3\n#define __NEWLIB_MINOR__ 3\n\
                 #define __NEWLIB_PATCHLEVEL__ 0\n",
            ),
        ],
    )?;
    cache::write(&include, target.headers)?;
    cache::write(&include, &[("gnu/stubs.h", &stubs(UNAVAILABLE))])?;
    for (name, text) in target.appended {
        let path = include.join(name);
        let file = std::fs::OpenOptions::new().append(true).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(CompileError::file(&path))?;
    }
    let mut names = std::collections::BTreeSet::new();
    read_names(&include, &mut names)?;
    let names: Vec<String> = names.into_iter().collect();
    cache::write(folder, &[("names", &names.join("\n"))])?;
    Ok(std::fs::remove_dir_all(&scratch).map_err(CompileError::file(&scratch))?)
}

/// The identifiers in the headers below a folder.
fn read_names(
    folder: &Path,
    names: &mut std::collections::BTreeSet<String>,
) -> Result<(), CompileError> {
    for entry in entries(folder)? {
        if entry.is_dir() {
            read_names(&entry, names)?;
            continue;
        }
        let bytes = std::fs::read(&entry).map_err(CompileError::file(&entry))?;
        let text = String::from_utf8_lossy(&bytes);
        let identifier = |c: char| c.is_ascii_alphanumeric() || c == '_';
        names.extend(
            text.split(|c| !identifier(c))
                .filter(|word| word.starts_with(|c: char| !c.is_ascii_digit()))
                .map(str::to_owned),
        );
    }
    Ok(())
}

fn copy_headers(from: &Path, to: &Path) -> Result<(), CompileError> {
    create(to)?;
    for entry in entries(from)? {
        let name = entry.file_name().unwrap_or_default();
        if entry.is_dir() {
            copy_headers(&entry, &to.join(name))?;
        } else if entry.extension().is_some_and(|ending| ending == "h") {
            std::fs::copy(&entry, to.join(name)).map_err(CompileError::file(&entry))?;
        }
    }
    Ok(())
}

/// What is in a folder.
pub fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>, CompileError> {
    std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .map_err(CompileError::file(folder))
}

/// Makes a folder.
pub fn create(path: &Path) -> Result<(), CompileError> {
    std::fs::create_dir_all(path).map_err(CompileError::file(path))
}

#[cfg(test)]
mod tests {
    use super::FOLDERS;

    /// newlib's archive is searched first, and its string functions work a word or a byte at a
    /// time: what our library has by vectors must not be in it.
    #[test]
    fn memory_and_string_functions_are_ours() {
        let strings = FOLDERS.iter().find(|f| f.path == "libc/string");
        let without: Vec<&str> = strings.unwrap().without.split_whitespace().collect();
        let sources = [
            include_str!("../../lib/memory.c"),
            include_str!("../../lib/string.c"),
        ];
        let mut seen = 0;
        let functions = sources.iter().flat_map(|source| source.lines());
        for line in functions.filter_map(|line| line.strip_prefix("PX ")) {
            let name = line.split('(').next().unwrap();
            let name = name.rsplit([' ', '*']).next().unwrap();
            assert!(
                without.contains(&&*format!("{name}.c")),
                "{name} is newlib's"
            );
            seen += 1;
        }
        assert!(seen >= 20, "{seen}");
    }
}
