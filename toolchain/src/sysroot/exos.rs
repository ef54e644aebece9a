//! newlib for programs of ExOS: the processor's plain code, above the functions that `libexos.a`
//! has by their plain names (`kernel/exos/library/src/c`), which the calls with a reentrancy
//! structure are.

use super::parts::{COMPLEX, Extra, Folder, LONG_DOUBLE, Target, headers, libc, libm, sources};

/// Programs of ExOS.
pub const PROGRAMS: Target = Target {
    name: "sysroot-exos",
    plain: true,
    folders: FOLDERS,
    units: UNITS,
    flags: FLAGS,
    headers: headers! {
        "machine/_types.h" "machine/time.h" "sys/errno.h" "sys/_default_fcntl.h" "sys/stat.h" "sys/dirent.h"
        "byteswap.h" "endian.h" "err.h" "error.h" "features.h" "libintl.h" "obstack.h" "sys/mman.h" "sys/resource.h" "sys/uio.h"
        "sys/utsname.h" "syslog.h" "uchar.h"
    },
    appended: &[LONG_DOUBLE, COMPLEX],
    sources: sources! {
        "encodings.h" "fenv.c" "iconv.c" "ldtoa.c" "long_double.c" "math.c" "errors.c" "messages.c" "obstack.c" "wide.c"
    },
};

/// Left out are: what the library has (signals, directories, what ends a process), what would need
/// files of a Unix system (passwords, terminals), and where a function of ours is better.
const FOLDERS: &[Folder] = &[
    libc("libc/argz", ""),
    libc("libc/stdlib", "nano-mallocr.c mallocr.c ldtoa.c system.c"),
    libc("libc/ctype", ""),
    libc("libc/search", ""),
    libc("libc/stdio", "rename.c"),
    // What is left out of these is in assembly, below.
    libc("libc/string", "strerror.c memcpy.c memset.c"),
    libc("libc/signal", "signal.c raise.c"),
    libc("libc/time", ""),
    libc("libc/locale", ""),
    libc("libc/reent", ""),
    libc("libc/errno", ""),
    libc("libc/misc", "lock.c"),
    Folder {
        path: "libc/posix",
        archive: "libc.a",
        flags: &["-fno-builtin", "-D_GNU_SOURCE"],
        without: "closedir.c opendir.c readdir.c readdir_r.c rewinddir.c seekdir.c telldir.c dirfd.c scandir.c _isatty.c isatty.c \
         sleep.c usleep.c execve.c wordexp.c wordfree.c posix_spawn.c",
    },
    libc(
        "libc/unix",
        "getcwd.c getlogin.c getpass.c getpwent.c getut.c pread.c pwrite.c ttyname.c ttyname_r.c",
    ),
    libm(
        "libm/common",
        "s_modf.c s_fdim.c sf_fdim.c s_fma.c sf_fma.c nexttoward.c nexttowardf.c nexttowardl.c sqrtl.c hypotl.c",
    ),
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
        without: "csqrtl.c",
    },
];

const fn malloc(object: &'static str, flags: &'static [&'static str]) -> Extra {
    Extra {
        folder: "libc/stdlib",
        source: "mallocr.c",
        object,
        flags,
    }
}

const fn assembly(source: &'static str, object: &'static str) -> Extra {
    Extra {
        folder: "libc/machine/x86_64",
        source,
        object,
        flags: &[],
    }
}

const UNITS: &[Extra] = &[
    malloc("mallocr", &["-DINTERNAL_NEWLIB", "-DDEFINE_MALLOC"]),
    malloc("freer", &["-DINTERNAL_NEWLIB", "-DDEFINE_FREE"]),
    malloc("reallocr", &["-DINTERNAL_NEWLIB", "-DDEFINE_REALLOC"]),
    malloc("callocr", &["-DINTERNAL_NEWLIB", "-DDEFINE_CALLOC"]),
    malloc("cfreer", &["-DINTERNAL_NEWLIB", "-DDEFINE_CFREE"]),
    malloc("malignr", &["-DINTERNAL_NEWLIB", "-DDEFINE_MEMALIGN"]),
    malloc("vallocr", &["-DINTERNAL_NEWLIB", "-DDEFINE_VALLOC"]),
    malloc("pvallocr", &["-DINTERNAL_NEWLIB", "-DDEFINE_PVALLOC"]),
    malloc("mallinfor", &["-DINTERNAL_NEWLIB", "-DDEFINE_MALLINFO"]),
    malloc(
        "mallstatsr",
        &["-DINTERNAL_NEWLIB", "-DDEFINE_MALLOC_STATS"],
    ),
    malloc(
        "msizer",
        &["-DINTERNAL_NEWLIB", "-DDEFINE_MALLOC_USABLE_SIZE"],
    ),
    malloc("malloptr", &["-DINTERNAL_NEWLIB", "-DDEFINE_MALLOPT"]),
    // `system` as Unix has it, through `sh`.
    Extra {
        folder: "libc/stdlib",
        source: "system.c",
        object: "system",
        flags: &["-Dunix"],
    },
    assembly("setjmp.S", "setjmp"),
    assembly("memcpy.S", "memcpy"),
    assembly("memset.S", "memset"),
];

/// Options of every file: `exos-cc` has those of the first lines, too.
const FLAGS: &[&str] = &[
    "-O2",
    "-static",
    "-fno-pic",
    "-fno-pie",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fno-asynchronous-unwind-tables",
    "-ffunction-sections",
    "-fdata-sections",
    "-w",
    "-U__linux__",
    "-U__linux",
    "-Ulinux",
    "-U__gnu_linux__",
    "-Uunix",
    "-D__exos__=1",
    "-D_COMPILING_NEWLIB",
    "-DREENTRANT_SYSCALLS_PROVIDED",
    "-DMISSING_SYSCALL_NAMES",
    "-DSIGNAL_PROVIDED",
    "-DHAVE_FCNTL",
    "-DHAVE_OPENDIR",
    "-DHAVE_RENAME",
    "-DHAVE_BLKSIZE",
];
