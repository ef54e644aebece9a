//! Functions of glibc that std calls: which of them mean the same in the C library of extensions,
//! which do not, and which are not there.
//!
//! std knows layouts and numbers of glibc. The C library here has the kernel's for files and
//! errors, which are the same; where it has its own, a function of `glibc.c` stands between.

/// What becomes of a function that the bitcode does not define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is linked.
    Same,
    /// One of `glibc.c` stands for it.
    Renamed,
    /// The link is refused.
    Absent,
}

/// Same layouts, numbers and meaning.
const SAME: &str = "environ abort calloc close bcmp closedir dup exit _exit fcntl fdatasync fdopendir free fstat64 fsync ftruncate64 getcwd \
    getenv getpid getppid getuid gettid getrandom isatty link linkat lseek64 lstat64 malloc memalign memchr memcmp memcpy memmem memmove \
    memrchr memset mkdir open64 openat64 opendir poll posix_memalign pread64 pwrite64 read readdir64 readlink readv realloc realpath \
    rename rmdir stat64 strlen strcmp strncmp symlink sched_yield unlink unlinkat write writev __xpg_strerror_r pthread_key_create \
    pthread_key_delete pthread_setspecific pthread_getspecific chmod fchmod access";

/// Their numbers or layouts are others here, or what they are asked for is not there.
const RENAMED: &str = "gnu_get_libc_version __errno_location clock_gettime dl_iterate_phdr dlsym getauxval mmap64 mprotect munmap nanosleep \
    clock_nanosleep pause pthread_attr_destroy pthread_attr_getguardsize pthread_attr_getstack pthread_attr_init \
    pthread_attr_setstacksize pthread_create pthread_detach pthread_getattr_np pthread_join pthread_self pthread_setname_np \
    sched_getaffinity sigaction sigaltstack signal sysconf syscall rust_eh_personality";

/// Functions of the mathematical library, without the suffix for `float`.
const MATH: &str = "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma fmax fmin \
    fmod frexp hypot ldexp lgamma_r log log10 log1p log2 logb modf nextafter pow remainder rint round roundeven scalbn sin sincos sinh \
    sqrt tan tanh tgamma trunc";

/// Names of which std's are weak: it asks whether they are there.
const ASKED: &str = "statx copy_file_range __cxa_thread_atexit_impl __dso_handle __pthread_get_minstack preadv2 pwritev2";

fn among(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|other| other == name)
}

/// What becomes of `name`.
pub fn fate(name: &str) -> Fate {
    let made = ["_Unwind_", "__postern_", "_GLOBAL_OFFSET_TABLE_"];
    if among(RENAMED, name) {
        Fate::Renamed
    } else if among(SAME, name)
        || among(ASKED, name)
        || among(MATH, name)
        || name.strip_suffix('f').is_some_and(|stem| among(MATH, stem))
        || made.iter().any(|start| name.starts_with(start))
    {
        Fate::Same
    } else {
        Fate::Absent
    }
}

/// Whether the compiler made the name, and no function of the crate's author has it.
pub fn is_compilers(name: &str) -> bool {
    ["_ZN", "_R", "__rust", "__rdl", "__rg", "rust_"]
        .iter()
        .any(|start| name.starts_with(start))
        || name == "main"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_in_two_lists() {
        let all: Vec<&str> = [SAME, RENAMED, MATH, ASKED]
            .iter()
            .flat_map(|list| list.split_whitespace())
            .collect();
        for name in &all {
            assert_eq!(
                all.iter().filter(|other| *other == name).count(),
                1,
                "{name}"
            );
        }
        assert!(include_str!("glibc.c").contains("PT(absent)"));
        assert_eq!(fate("getaddrinfo"), Fate::Absent);
        assert_eq!(fate("sinf"), Fate::Same);
        assert_eq!(fate("sysconf"), Fate::Renamed);
    }

    /// Whatever is renamed is defined.
    #[test]
    fn what_stands_between_is_there() {
        let source = include_str!("glibc.c");
        for name in RENAMED.split_whitespace() {
            assert!(source.contains(&format!("PT({name})")), "{name}");
        }
    }
}
