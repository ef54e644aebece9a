/* What the C of wasm2c 1.0.32 finds around it in an extension: in place of wabt's own wasm-rt.h,
 * its run-time library and the helpers at the top of each file that it writes.
 *
 * There is one instance of the module, and everything of it is static in one translation unit, so
 * that the compiler sees that a store into linear memory changes neither the memory's size nor a
 * global. Linear memory is an array at a fixed place of the window; the driver says with macros how
 * large it is (toolchain/src/wasm.rs).
 *
 * Invariant: no access reaches linear memory but through WASM_CHECK, which traps as WebAssembly
 * says. It is about the meaning of the module; that the window is not left is the verifier's
 * business. */
#ifndef POSTERN_WASM_PRELUDE
#define POSTERN_WASM_PRELUDE

#include <postern/extension.h>
#include <stdbool.h>
#include <stddef.h>

/* In place of <stdint.h>, so that no C library's headers are needed. */
#define WASM_RT_CORE_TYPES_DEFINED
typedef __UINT8_TYPE__ u8;
typedef __INT8_TYPE__ s8;
typedef __UINT16_TYPE__ u16;
typedef __INT16_TYPE__ s16;
typedef __UINT32_TYPE__ u32;
typedef __INT32_TYPE__ s32;
typedef __UINT64_TYPE__ u64;
typedef __INT64_TYPE__ s64;
typedef float f32;
typedef double f64;

#define INT32_MAX __INT32_MAX__
#define INT32_MIN (-__INT32_MAX__ - 1)
#define UINT32_MAX __UINT32_MAX__
#define INT64_MAX __INT64_MAX__
#define INT64_MIN (-__INT64_MAX__ - 1)
#define UINT64_MAX __UINT64_MAX__

#define WASM_EXPORT __attribute__((visibility("default"), used, externally_visible))
#define WASM_INLINE static inline __attribute__((always_inline))
#define WASM_RARE(x) __builtin_expect(!!(x), 0)
#define assert(x) ((void)0)
#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()
#define FUNC_PROLOGUE
#define FUNC_EPILOGUE

void *calloc(size_t, size_t);
void *realloc(void *, size_t);

/* Traps, with the words of WebAssembly's own tests. */
#define WASM_TRAP(name, text)                                                                                              \
    static __attribute__((cold, noinline, noreturn)) void wasm_trap_##name(void) { __postern_abort(text); }
WASM_TRAP(memory, "out of bounds memory access")
WASM_TRAP(table, "out of bounds table access")
WASM_TRAP(division, "integer divide by zero")
WASM_TRAP(overflow, "integer overflow")
WASM_TRAP(conversion, "invalid conversion to integer")
WASM_TRAP(unreachable, "unreachable")
WASM_TRAP(element, "undefined element")
WASM_TRAP(null, "uninitialized element")
WASM_TRAP(type, "indirect call type mismatch")
#define UNREACHABLE wasm_trap_unreachable()

/* Linear memory. */
#define WASM_PAGE 65536ull

typedef struct {
    u32 pages;
} wasm_rt_memory_t;

#ifdef WASM_MEMORY_RESERVED
static u8 wasm_data[WASM_MEMORY_RESERVED * WASM_PAGE] __attribute__((aligned(4096)));
#ifdef WASM_MEMORY_FIXED
#define wasm_size ((s64)(WASM_MEMORY_FIXED * WASM_PAGE))
#else
static s64 wasm_size;
#endif

/* `at` is below 2^33 and `bytes` at most 2^32: nothing here can overflow. A constant beyond
 * everything that the memory can become traps without a question, so that the compiler never makes
 * an address of it that the small code model cannot have. */
#define WASM_CHECK(at, bytes)                                                                                              \
    do {                                                                                                                   \
        if (__builtin_constant_p(at) && (u64)(at) + (bytes) > WASM_MEMORY_RESERVED * WASM_PAGE)                            \
            wasm_trap_memory();                                                                                            \
        if (WASM_RARE((s64)(at) > wasm_size - (s64)(bytes)))                                                               \
            wasm_trap_memory();                                                                                            \
    } while (0)

WASM_INLINE void wasm_rt_allocate_memory(wasm_rt_memory_t *memory, u32 pages, u32 most)
{
    (void)most;
    memory->pages = pages;
#ifndef WASM_MEMORY_FIXED
    wasm_size = (s64)(pages * WASM_PAGE);
#endif
}

WASM_INLINE u32 wasm_rt_grow_memory(wasm_rt_memory_t *memory, u32 more)
{
    u32 before = memory->pages;
    if (more > WASM_MEMORY_RESERVED - before)
        return (u32)-1;
    memory->pages = before + more;
#ifndef WASM_MEMORY_FIXED
    wasm_size = (s64)((before + more) * WASM_PAGE);
#endif
    return before;
}

#define wasm_rt_free_memory(memory) ((void)(memory))

#define WASM_LOAD(name, stored, extended, result)                                                                          \
    WASM_INLINE result name(const wasm_rt_memory_t *memory, u64 at)                                                        \
    {                                                                                                                      \
        stored value;                                                                                                      \
        (void)memory;                                                                                                      \
        WASM_CHECK(at, sizeof value);                                                                                      \
        __builtin_memcpy(&value, &wasm_data[at], sizeof value);                                                            \
        return (result)(extended)value;                                                                                    \
    }
WASM_LOAD(i32_load, u32, u32, u32)
WASM_LOAD(i64_load, u64, u64, u64)
WASM_LOAD(f32_load, f32, f32, f32)
WASM_LOAD(f64_load, f64, f64, f64)
WASM_LOAD(i32_load8_s, s8, s32, u32)
WASM_LOAD(i64_load8_s, s8, s64, u64)
WASM_LOAD(i32_load8_u, u8, u32, u32)
WASM_LOAD(i64_load8_u, u8, u64, u64)
WASM_LOAD(i32_load16_s, s16, s32, u32)
WASM_LOAD(i64_load16_s, s16, s64, u64)
WASM_LOAD(i32_load16_u, u16, u32, u32)
WASM_LOAD(i64_load16_u, u16, u64, u64)
WASM_LOAD(i64_load32_s, s32, s64, u64)
WASM_LOAD(i64_load32_u, u32, u64, u64)

#define WASM_STORE(name, stored, given)                                                                                    \
    WASM_INLINE void name(wasm_rt_memory_t *memory, u64 at, given value)                                                   \
    {                                                                                                                      \
        stored low = (stored)value;                                                                                        \
        (void)memory;                                                                                                      \
        WASM_CHECK(at, sizeof low);                                                                                        \
        __builtin_memcpy(&wasm_data[at], &low, sizeof low);                                                                \
    }
WASM_STORE(i32_store, u32, u32)
WASM_STORE(i64_store, u64, u64)
WASM_STORE(f32_store, f32, f32)
WASM_STORE(f64_store, f64, f64)
WASM_STORE(i32_store8, u8, u32)
WASM_STORE(i32_store16, u16, u32)
WASM_STORE(i64_store8, u8, u64)
WASM_STORE(i64_store16, u16, u64)
WASM_STORE(i64_store32, u32, u64)

WASM_INLINE void memory_fill(wasm_rt_memory_t *memory, u32 to, u32 value, u32 bytes)
{
    (void)memory;
    WASM_CHECK(to, bytes);
    __builtin_memset(&wasm_data[to], (int)value, bytes);
}

WASM_INLINE void memory_copy(wasm_rt_memory_t *into, const wasm_rt_memory_t *memory, u32 to, u32 from, u32 bytes)
{
    (void)into, (void)memory;
    WASM_CHECK(to, bytes);
    WASM_CHECK(from, bytes);
    __builtin_memmove(&wasm_data[to], &wasm_data[from], bytes);
}

WASM_INLINE void memory_init(wasm_rt_memory_t *memory, const u8 *segment, u32 size, u32 to, u32 from, u32 bytes)
{
    (void)memory;
    if (WASM_RARE((u64)from + bytes > size))
        wasm_trap_memory();
    WASM_CHECK(to, bytes);
    if (bytes)
        __builtin_memcpy(&wasm_data[to], &segment[from], bytes);
}

#define LOAD_DATA(memory, to, segment, bytes) memory_init(&(memory), segment, bytes, to, 0, bytes)
#endif

/* References and tables. `module_instance` is in wasm2c's C and means nothing here. */
typedef void (*wasm_rt_function_ptr_t)(void);

typedef struct {
    u32 func_type;
    wasm_rt_function_ptr_t func;
    void *module_instance;
} wasm_rt_funcref_t;

typedef void *wasm_rt_externref_t;

typedef struct {
    u32 func_type_index;
    wasm_rt_function_ptr_t func;
    size_t module_offset;
} wasm_elem_segment_expr_t;

#define wasm_rt_funcref_null_value ((wasm_rt_funcref_t){0, NULL, NULL})
#define wasm_rt_externref_null_value ((wasm_rt_externref_t)NULL)

/* Entries that a table without a maximum may have. */
#define WASM_TABLE_MOST 0x100000u

#define WASM_TABLE(kind)                                                                                                   \
    typedef struct {                                                                                                       \
        wasm_rt_##kind##_t *data;                                                                                          \
        u32 max_size, size;                                                                                                \
    } wasm_rt_##kind##_table_t;                                                                                            \
    WASM_INLINE void wasm_rt_allocate_##kind##_table(wasm_rt_##kind##_table_t *table, u32 entries, u32 most)             \
    {                                                                                                                      \
        table->max_size = most < WASM_TABLE_MOST ? most : WASM_TABLE_MOST;                                                 \
        table->size = entries;                                                                                             \
        table->data = calloc(entries ? entries : 1, sizeof *table->data);                                                  \
        if (!table->data)                                                                                                  \
            __postern_abort("the heap has no room for the module's tables");                                               \
    }                                                                                                                      \
    WASM_INLINE u32 wasm_rt_grow_##kind##_table(wasm_rt_##kind##_table_t *table, u32 more, wasm_rt_##kind##_t entry)     \
    {                                                                                                                      \
        u32 before = table->size;                                                                                          \
        if (before > table->max_size || more > table->max_size - before)                                                   \
            return (u32)-1;                                                                                                \
        wasm_rt_##kind##_t *data = realloc(table->data, ((size_t)before + more + 1) * sizeof *data);                       \
        if (!data)                                                                                                         \
            return (u32)-1;                                                                                                \
        for (u32 k = 0; k < more; k++)                                                                                     \
            data[before + k] = entry;                                                                                      \
        table->data = data;                                                                                                \
        table->size = before + more;                                                                                       \
        return before;                                                                                                     \
    }                                                                                                                      \
    WASM_INLINE void wasm_rt_free_##kind##_table(wasm_rt_##kind##_table_t *table) { table->size = 0; }                   \
    WASM_INLINE wasm_rt_##kind##_t kind##_table_get(const wasm_rt_##kind##_table_t *table, u32 k)                          \
    {                                                                                                                      \
        if (WASM_RARE(k >= table->size))                                                                                   \
            wasm_trap_table();                                                                                             \
        return table->data[k];                                                                                             \
    }                                                                                                                      \
    WASM_INLINE void kind##_table_set(const wasm_rt_##kind##_table_t *table, u32 k, wasm_rt_##kind##_t entry)              \
    {                                                                                                                      \
        if (WASM_RARE(k >= table->size))                                                                                   \
            wasm_trap_table();                                                                                             \
        table->data[k] = entry;                                                                                            \
    }                                                                                                                      \
    WASM_INLINE void kind##_table_fill(const wasm_rt_##kind##_table_t *table, u32 to, wasm_rt_##kind##_t entry, u32 n)   \
    {                                                                                                                      \
        if (WASM_RARE((u64)to + n > table->size))                                                                          \
            wasm_trap_table();                                                                                             \
        for (u32 k = 0; k < n; k++)                                                                                        \
            table->data[to + k] = entry;                                                                                   \
    }                                                                                                                      \
    WASM_INLINE void kind##_table_copy(wasm_rt_##kind##_table_t *into, const wasm_rt_##kind##_table_t *table, u32 to,    \
                                         u32 from, u32 n)                                                                  \
    {                                                                                                                      \
        if (WASM_RARE((u64)to + n > into->size || (u64)from + n > table->size))                                            \
            wasm_trap_table();                                                                                             \
        __builtin_memmove(into->data + to, table->data + from, n * sizeof *table->data);                                   \
    }
WASM_TABLE(funcref)
WASM_TABLE(externref)

WASM_INLINE void funcref_table_init(wasm_rt_funcref_table_t *table, const wasm_elem_segment_expr_t *segment, u32 size,
                                      u32 to, u32 from, u32 n, void *instance, const u32 *types)
{
    (void)instance;
    if (WASM_RARE((u64)from + n > size || (u64)to + n > table->size))
        wasm_trap_table();
    for (u32 k = 0; k < n; k++) {
        const wasm_elem_segment_expr_t *entry = &segment[from + k];
        table->data[to + k] = (wasm_rt_funcref_t){entry->func ? types[entry->func_type_index] : 0, entry->func, NULL};
    }
}

WASM_INLINE void externref_table_init(wasm_rt_externref_table_t *table, u32 size, u32 to, u32 from, u32 n)
{
    if (WASM_RARE((u64)from + n > size || (u64)to + n > table->size))
        wasm_trap_table();
    for (u32 k = 0; k < n; k++)
        table->data[to + k] = NULL;
}

WASM_INLINE void wasm_entry(const wasm_rt_funcref_table_t *table, u32 k, u32 type)
{
    if (WASM_RARE(k >= table->size))
        wasm_trap_element();
    if (WASM_RARE(table->data[k].func_type != type)) {
        if (!table->data[k].func)
            wasm_trap_null();
        wasm_trap_type();
    }
}

/* The driver's `func_types` numbers equal types equally, from 1; the empty entry's is 0. */
#define CALL_INDIRECT(table, function, type, k, ...)                                                                       \
    (wasm_entry(&(table), k, func_types[type]), ((function)(table).data[k].func)(__VA_ARGS__))

/* Integers. */
#define I32_CLZ(x) ((x) ? (u32)__builtin_clz(x) : 32u)
#define I64_CLZ(x) ((x) ? (u64)__builtin_clzll(x) : 64u)
#define I32_CTZ(x) ((x) ? (u32)__builtin_ctz(x) : 32u)
#define I64_CTZ(x) ((x) ? (u64)__builtin_ctzll(x) : 64u)
#define I32_POPCNT(x) ((u32)__builtin_popcount(x))
#define I64_POPCNT(x) ((u64)__builtin_popcountll(x))
#define I32_ROTL(x, n) ((x) << ((n)&31) | (x) >> (-(n)&31))
#define I32_ROTR(x, n) ((x) >> ((n)&31) | (x) << (-(n)&31))
#define I64_ROTL(x, n) ((x) << ((n)&63) | (x) >> (-(n)&63))
#define I64_ROTR(x, n) ((x) >> ((n)&63) | (x) << (-(n)&63))

#define WASM_DIVIDE(bits, least)                                                                                           \
    WASM_INLINE u##bits I##bits##_DIV_S(u##bits x, u##bits y)                                                              \
    {                                                                                                                      \
        if (WASM_RARE(!y))                                                                                                 \
            wasm_trap_division();                                                                                          \
        if (WASM_RARE((s##bits)x == least && (s##bits)y == -1))                                                            \
            wasm_trap_overflow();                                                                                          \
        return (u##bits)((s##bits)x / (s##bits)y);                                                                         \
    }                                                                                                                      \
    WASM_INLINE u##bits I##bits##_REM_S(u##bits x, u##bits y)                                                              \
    {                                                                                                                      \
        if (WASM_RARE(!y))                                                                                                 \
            wasm_trap_division();                                                                                          \
        return (s##bits)y == -1 ? 0 : (u##bits)((s##bits)x % (s##bits)y);                                                  \
    }
WASM_DIVIDE(32, INT32_MIN)
WASM_DIVIDE(64, INT64_MIN)

#define WASM_UNSIGNED(x, op, y)                                                                                            \
    ({                                                                                                                     \
        if (WASM_RARE(!(y)))                                                                                               \
            wasm_trap_division();                                                                                          \
        (x) op(y);                                                                                                         \
    })
#define DIV_U(x, y) WASM_UNSIGNED(x, /, y)
#define REM_U(x, y) WASM_UNSIGNED(x, %, y)

/* Floating point. */
#define copysign __builtin_copysign
#define copysignf __builtin_copysignf
#define wasm_fabs __builtin_fabs
#define wasm_fabsf __builtin_fabsf
#define wasm_sqrt __builtin_sqrt
#define wasm_sqrtf __builtin_sqrtf
/* The conversion after it makes a signaling NaN quiet by itself. */
#define wasm_quiet(x) (x)
#define wasm_quietf(x) (x)

#define FMIN(x, y)                                                                                                         \
    ((x) != (x) ? (x) + (y) : (y) != (y) ? (y) + (x) : (x) == (y) ? (__builtin_signbit(x) ? (x) : (y)) : (x) < (y) ? (x) : (y))
#define FMAX(x, y)                                                                                                         \
    ((x) != (x) ? (x) + (y) : (y) != (y) ? (y) + (x) : (x) == (y) ? (__builtin_signbit(x) ? (y) : (x)) : (x) > (y) ? (x) : (y))

#define WASM_REINTERPRET(name, from, to)                                                                                   \
    WASM_INLINE to name(from x)                                                                                            \
    {                                                                                                                      \
        to y;                                                                                                              \
        __builtin_memcpy(&y, &x, sizeof y);                                                                                \
        return y;                                                                                                          \
    }
WASM_REINTERPRET(f32_reinterpret_i32, u32, f32)
WASM_REINTERPRET(i32_reinterpret_f32, f32, u32)
WASM_REINTERPRET(f64_reinterpret_i64, u64, f64)
WASM_REINTERPRET(i64_reinterpret_f64, f64, u64)

/* From `whole` on a number is whole; below it, adding and subtracting `whole` rounds to the
 * nearest, ties to even. What is not a number becomes quiet by the addition. */
#define WASM_ROUND(suffix, type, whole)                                                                                    \
    WASM_INLINE type wasm_nearbyint##suffix(type x)                                                                        \
    {                                                                                                                      \
        type size = __builtin_fabs##suffix(x);                                                                             \
        if (!(size < whole))                                                                                               \
            return x + 0;                                                                                                  \
        return __builtin_copysign##suffix(size + whole - whole, x);                                                        \
    }                                                                                                                      \
    WASM_INLINE type wasm_floor##suffix(type x)                                                                            \
    {                                                                                                                      \
        type near = wasm_nearbyint##suffix(x);                                                                             \
        return near > x ? near - 1 : near;                                                                                 \
    }                                                                                                                      \
    WASM_INLINE type wasm_ceil##suffix(type x)                                                                             \
    {                                                                                                                      \
        type near = wasm_nearbyint##suffix(x);                                                                             \
        return near < x ? __builtin_copysign##suffix(near + 1, x) : near;                                                  \
    }                                                                                                                      \
    WASM_INLINE type wasm_trunc##suffix(type x)                                                                            \
    {                                                                                                                      \
        type size = __builtin_fabs##suffix(x), near = wasm_nearbyint##suffix(size);                                        \
        return __builtin_copysign##suffix(near > size ? near - 1 : near, x);                                               \
    }
WASM_ROUND(f, f32, 8388608.f)
WASM_ROUND(, f64, 4503599627370496.)

/* `within` is the condition on x under which the cast has a meaning. */
#define WASM_TRUNCATE(name, float, result, through, within, least, most)                                              \
    WASM_INLINE result name##float(f##float x)                                                                             \
    {                                                                                                                      \
        if (WASM_RARE(!(within)))                                                                                          \
            x != x ? wasm_trap_conversion() : wasm_trap_overflow();                                                        \
        return (result)(through)x;                                                                                         \
    }
#define WASM_SATURATE(name, float, result, through, within, least, most)                                              \
    WASM_INLINE result name##float(f##float x)                                                                             \
    {                                                                                                                      \
        if (WASM_RARE(!(within)))                                                                                          \
            return x != x ? 0 : x < 0 ? (result)least : (result)most;                                                      \
        return (result)(through)x;                                                                                         \
    }
#define WASM_TO_INTEGER(kind, trap)                                                                                        \
    kind(I32_##trap##_S_F, 32, u32, s32, x >= -2147483648.f && x < 2147483648.f, INT32_MIN, INT32_MAX)                   \
    kind(I32_##trap##_S_F, 64, u32, s32, x > -2147483649. && x < 2147483648., INT32_MIN, INT32_MAX)                      \
    kind(I32_##trap##_U_F, 32, u32, u32, x > -1 && x < 4294967296.f, 0, UINT32_MAX)                                      \
    kind(I32_##trap##_U_F, 64, u32, u32, x > -1 && x < 4294967296., 0, UINT32_MAX)                                       \
    kind(I64_##trap##_S_F, 32, u64, s64, x >= -9223372036854775808.f && x < 9223372036854775808.f, INT64_MIN, INT64_MAX) \
    kind(I64_##trap##_S_F, 64, u64, s64, x >= -9223372036854775808. && x < 9223372036854775808., INT64_MIN, INT64_MAX)   \
    kind(I64_##trap##_U_F, 32, u64, u64, x > -1 && x < 18446744073709551616.f, 0, UINT64_MAX)                            \
    kind(I64_##trap##_U_F, 64, u64, u64, x > -1 && x < 18446744073709551616., 0, UINT64_MAX)
WASM_TO_INTEGER(WASM_TRUNCATE, TRUNC)
WASM_TO_INTEGER(WASM_SATURATE, TRUNC_SAT)

#endif
