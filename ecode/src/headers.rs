//! Headers that every source may include, and the source with all that it may include behind it.

use alloc::string::String;
use alloc::vec::Vec;

use crate::lex::File;

/// The headers that are always there. The types of stddef.h, stdint.h and stdbool.h are known
/// without them.
const BUILTIN: &[(&str, &str)] = &[
    (
        "limits.h",
        "#pragma once
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN (-128)
#define CHAR_MAX 127
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-LONG_MAX - 1)
#define ULONG_MAX 18446744073709551615ul
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX 18446744073709551615ull
",
    ),
    (
        "stdarg.h",
        "#pragma once
typedef __builtin_va_list va_list;
#define va_start(list, last) __builtin_va_start(list, last)
#define va_arg(list, type) __builtin_va_arg(list, type)
#define va_copy(to, from) __builtin_va_copy(to, from)
#define va_end(list) __builtin_va_end(list)
",
    ),
    ("stdbool.h", "#define __bool_true_false_are_defined 1\n"),
    (
        "stddef.h",
        "#pragma once
typedef int wchar_t;
#define offsetof(type, member) __builtin_offsetof(type, member)
",
    ),
    (
        "stdint.h",
        "#pragma once
typedef signed char int_least8_t, int_fast8_t;
typedef short int_least16_t;
typedef int int_least32_t;
typedef long int_least64_t, int_fast16_t, int_fast32_t, int_fast64_t, intmax_t;
typedef unsigned char uint_least8_t, uint_fast8_t;
typedef unsigned short uint_least16_t;
typedef unsigned uint_least32_t;
typedef unsigned long uint_least64_t, uint_fast16_t, uint_fast32_t, uint_fast64_t, uintmax_t;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807l - 1)
#define INT64_MAX 9223372036854775807l
#define UINT64_MAX 18446744073709551615ul
#define INTPTR_MIN INT64_MIN
#define INTPTR_MAX INT64_MAX
#define UINTPTR_MAX UINT64_MAX
#define INTMAX_MIN INT64_MIN
#define INTMAX_MAX INT64_MAX
#define UINTMAX_MAX UINT64_MAX
#define PTRDIFF_MIN INT64_MIN
#define PTRDIFF_MAX INT64_MAX
#define SIZE_MAX UINT64_MAX
#define INT8_C(c) c
#define INT16_C(c) c
#define INT32_C(c) c
#define INT64_C(c) c ## l
#define UINT8_C(c) c
#define UINT16_C(c) c
#define UINT32_C(c) c ## u
#define UINT64_C(c) c ## ul
#define INTMAX_C(c) c ## l
#define UINTMAX_C(c) c ## ul
",
    ),
];

/// The source with all headers behind it, and which is where. Those that the host gives count
/// before those of the same name here.
pub(crate) fn together(source: &[u8], given: &[(String, Vec<u8>)]) -> (Vec<u8>, Vec<File>) {
    let mut whole = Vec::from(source);
    let mut files = Vec::new();
    let builtin = BUILTIN.iter().map(|(name, text)| (*name, text.as_bytes()));
    let given = given.iter().map(|(name, text)| (name.as_str(), &text[..]));
    let mut add = |name: &str, start: usize, end: usize| {
        files.push(File {
            name: name.into(),
            start: start as u32,
            end: end as u32,
            once: false,
            included: None,
        });
    };
    add("", 0, whole.len());
    for (name, text) in given.chain(builtin) {
        whole.push(b'\n');
        let start = whole.len();
        whole.extend_from_slice(text);
        add(name, start, whole.len());
    }
    (whole, files)
}
