//! What libstdc++ is told about the system: the headers that differ from one system to another.
//!
//! Most are those that libstdc++ has for newlib and for processors in general. `c++config.h` is the
//! one of the installed compiler without what is said there of the host's C library, but for what
//! newlib has, too.

use std::path::Path;

use crate::cache;
use crate::error::CompileError;

/// From the compiler's source (below `config/`) to the name in `include/`.
const FROM_SOURCE: &[(&str, &str)] = &[
    ("os/newlib/ctype_base.h", "bits/ctype_base.h"),
    ("os/newlib/ctype_inline.h", "bits/ctype_inline.h"),
    ("os/generic/error_constants.h", "bits/error_constants.h"),
    ("locale/generic/c_locale.h", "bits/c++locale.h"),
    (
        "locale/generic/c++locale_internal.h",
        "bits/c++locale_internal.h",
    ),
    (
        "locale/generic/messages_members.h",
        "bits/messages_members.h",
    ),
    ("locale/generic/time_members.h", "bits/time_members.h"),
    ("io/basic_file_stdio.h", "bits/basic_file.h"),
    ("io/c_io_stdio.h", "bits/c++io.h"),
    ("cpu/generic/atomic_word.h", "bits/atomic_word.h"),
    ("cpu/generic/cpu_defines.h", "bits/cpu_defines.h"),
    ("cpu/generic/cxxabi_tweaks.h", "bits/cxxabi_tweaks.h"),
    ("cpu/generic/opt/bits/opt_random.h", "bits/opt_random.h"),
    ("cpu/generic/opt/ext/opt_random.h", "ext/opt_random.h"),
    ("allocator/new_allocator_base.h", "bits/c++allocator.h"),
];

/// From the installed compiler.
const FROM_INSTALLED: &[&str] = &["bits/gthr.h", "bits/stdc++.h", "bits/extc++.h"];

/// Ours.
const OURS: &[(&str, &str)] = &[
    (
        "include/bits/gthr-default.h",
        include_str!("../../lib/cxx/gthr-default.h"),
    ),
    (
        "include/bits/os_defines.h",
        include_str!("../../lib/cxx/os_defines.h"),
    ),
    // The C library's files are as large as files get.
    ("include/bits/largefile-config.h", ""),
];

/// `_GLIBCXX_HAVE_…` of the installed configuration that hold for newlib.
const HAVE: &str = "ACOSF ACOSL ALIGNED_ALLOC ASINF ASINL ATAN2F ATAN2L ATANF ATANL ATOMIC_LOCK_POLICY CEILF CEILL COMPLEX_H \
    COSF COSHF COSHL COSL DIRENT_H EXCEPTION_PTR_SINCE_GCC46 EXPF EXPL FABSF FABSL FCNTL_H FENV_H FLOAT_H FLOORF FLOORL FMODF \
    FMODL FREXPF FREXPL GETIPINFO HYPOTF HYPOTL INTTYPES_H ISWBLANK LC_MESSAGES LDEXPF LDEXPL LOCALE_H LOG10F LOG10L LOGF \
    LOGL MBSTATE_T MEMORY_H MODFF MODFL POSIX_MEMALIGN POWF POWL SETENV SINF SINHF SINHL SINL SQRTF SQRTL STDALIGN_H STDBOOL_H \
    STDINT_H STDLIB_H STRERROR_R STRINGS_H STRING_H STRTOF STRTOLD SYS_PARAM_H SYS_STAT_H SYS_TIME_H SYS_TYPES_H S_ISREG TANF \
    TANHF TANHL TANL TGMATH_H TLS UNISTD_H UTIME_H VFWSCANF VSWSCANF VWSCANF WCHAR_H WCSTOF WCTYPE_H";

/// `_GLIBCXX_USE_…` of the installed configuration that hold for newlib.
const USE: &str = "C99 C99_COMPLEX_TR1 C99_CTYPE_TR1 C99_FENV_TR1 C99_INTTYPES_TR1 C99_INTTYPES_WCHAR_T_TR1 C99_MATH_TR1 \
    C99_STDINT_TR1 CLOCK_MONOTONIC CLOCK_REALTIME GETTIMEOFDAY LONG_LONG RANDOM_TR1 ST_MTIM WCHAR_T";

/// Other names that do not hold.
const NOT: &[&str] = &[
    "_GLIBCXX_X86_RDRAND",
    "_GLIBCXX_X86_RDSEED",
    "_GLIBCXX_SYMVER",
    "_GLIBCXX_SYMVER_GNU",
    "_GLIBCXX_ICONV_CONST",
    "_GLIBCXX_RES_LIMITS",
    "_GTHREAD_USE_MUTEX_TIMEDLOCK",
];

/// Everything in this file that the result depends on.
pub const IDENTITY: (&[(&str, &str)], &str) = (OURS, include_str!("configuration.rs"));

/// Fills `folder/include`; the compiler's source is in `folder/source`.
pub fn write(folder: &Path, installed: &Path) -> Result<(), CompileError> {
    let config = folder.join("source/libstdc++-v3/config");
    let mut files: Vec<(String, String)> = Vec::new();
    for (from, to) in FROM_SOURCE {
        files.push((format!("include/{to}"), read(&config.join(from))?));
    }
    for name in FROM_INSTALLED {
        files.push((format!("include/{name}"), read(&installed.join(name))?));
    }
    let text = read(&installed.join("bits/c++config.h"))?;
    files.push(("include/bits/c++config.h".to_owned(), configured(&text)));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .chain(OURS.iter().copied())
        .collect();
    cache::write(folder, &files)
}

/// The configuration without what does not hold. It begins behind the part that is the same on all
/// systems.
fn configured(text: &str) -> String {
    let mut system = false;
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        system |= line.contains("PSTL_ASSERT_MSG");
        let name = line
            .strip_prefix('#')
            .and_then(|rest| rest.trim_start().strip_prefix("define "))
            .and_then(|rest| rest.split_whitespace().next());
        if !system || name.is_none_or(holds) {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

fn holds(name: &str) -> bool {
    let listed = |list: &str, name: &str| list.split_whitespace().any(|word| word == name);
    if let Some(name) = name.strip_prefix("_GLIBCXX_HAVE_") {
        return listed(HAVE, name);
    }
    if let Some(name) = name.strip_prefix("_GLIBCXX_USE_") {
        return listed(USE, name);
    }
    !NOT.contains(&name)
}

fn read(path: &Path) -> Result<String, CompileError> {
    std::fs::read_to_string(path).map_err(CompileError::file(path))
}

#[cfg(test)]
mod tests {
    use super::configured;

    #[test]
    fn what_does_not_hold_goes() {
        let text = "#define _GLIBCXX_USE_DEPRECATED 1\n# define _PSTL_ASSERT_MSG(a, b)\n#define _GLIBCXX_HAVE_EXECINFO_H 1\n\
                    #define _GLIBCXX_HAVE_SINF 1\n#define _GLIBCXX_USE_NLS 1\n#define _GLIBCXX_HOSTED 1\n";
        let expected = "#define _GLIBCXX_USE_DEPRECATED 1\n# define _PSTL_ASSERT_MSG(a, b)\n#define _GLIBCXX_HAVE_SINF 1\n\
                        #define _GLIBCXX_HOSTED 1\n";
        assert_eq!(configured(text), expected);
    }
}
