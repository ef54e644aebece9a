/* memcpy, memmove, memset, memcmp, strlen: what the compiler calls on its own.
 *
 * 16-byte vectors of the x86-64 baseline. Short lengths are done with overlapping loads that all come before the first
 * store, so that copying forwards, backwards and in place is one and the same up to 128 bytes. Distances are taken in 32
 * bits, since only that much of a pointer counts. */
#include <emmintrin.h>
#include <stddef.h>
#include <stdint.h>

#define PX __attribute__((weak, visibility("hidden")))

typedef uint16_t u16 __attribute__((aligned(1), may_alias));
typedef uint32_t u32 __attribute__((aligned(1), may_alias));
typedef uint64_t u64 __attribute__((aligned(1), may_alias));

static inline __m128i load(const void *p) { return _mm_loadu_si128(p); }
static inline void store(void *p, __m128i v) { _mm_storeu_si128(p, v); }

static inline void copy_up_to_16(char *d, const char *s, size_t n)
{
    if (n >= 8) {
        uint64_t a = *(const u64 *)s, b = *(const u64 *)(s + n - 8);
        *(u64 *)d = a;
        *(u64 *)(d + n - 8) = b;
    } else if (n >= 4) {
        uint32_t a = *(const u32 *)s, b = *(const u32 *)(s + n - 4);
        *(u32 *)d = a;
        *(u32 *)(d + n - 4) = b;
    } else if (n >= 2) {
        uint16_t a = *(const u16 *)s, b = *(const u16 *)(s + n - 2);
        *(u16 *)d = a;
        *(u16 *)(d + n - 2) = b;
    } else if (n) {
        *d = *s;
    }
}

static __attribute__((noinline)) void *copy_long(char *d, const char *s, size_t n)
{
    if ((uint32_t)((uintptr_t)d - (uintptr_t)s) >= n) {
        /* Forwards, stores aligned; the ends overlap the middle. */
        __m128i head = load(s), t0 = load(s + n - 64), t1 = load(s + n - 48), t2 = load(s + n - 32), t3 = load(s + n - 16);
        size_t skip = 16 - ((uintptr_t)d & 15);
        char *to = d + skip;
        const char *from = s + skip;
        char *end = d + n - 64;
        ptrdiff_t left = (ptrdiff_t)(n - 64 - skip);
        do {
            __m128i a = load(from), b = load(from + 16), c = load(from + 32), e = load(from + 48);
            _mm_store_si128((__m128i *)to, a);
            _mm_store_si128((__m128i *)(to + 16), b);
            _mm_store_si128((__m128i *)(to + 32), c);
            _mm_store_si128((__m128i *)(to + 48), e);
            to += 64;
            from += 64;
            left -= 64;
        } while (left > 0);
        store(end, t0);
        store(end + 16, t1);
        store(end + 32, t2);
        store(end + 48, t3);
        store(d, head);
        return d;
    }
    /* Backwards. */
    __m128i h0 = load(s), h1 = load(s + 16), h2 = load(s + 32), h3 = load(s + 48), last = load(s + n - 16);
    size_t cut = (uintptr_t)(d + n) & 15;
    char *to = d + n - cut;
    const char *from = s + n - cut;
    ptrdiff_t left = (ptrdiff_t)(n - cut - 64);
    do {
        __m128i a = load(from - 16), b = load(from - 32), c = load(from - 48), e = load(from - 64);
        _mm_store_si128((__m128i *)(to - 16), a);
        _mm_store_si128((__m128i *)(to - 32), b);
        _mm_store_si128((__m128i *)(to - 48), c);
        _mm_store_si128((__m128i *)(to - 64), e);
        to -= 64;
        from -= 64;
        left -= 64;
    } while (left > 0);
    store(d + n - 16, last);
    store(d, h0);
    store(d + 16, h1);
    store(d + 32, h2);
    store(d + 48, h3);
    return d;
}

PX void *memmove(void *to, const void *from, size_t n)
{
    char *d = to;
    const char *s = from;
    if (n <= 16) {
        copy_up_to_16(d, s, n);
        return to;
    }
    if (n <= 32) {
        __m128i a = load(s), b = load(s + n - 16);
        store(d, a);
        store(d + n - 16, b);
        return to;
    }
    __m128i a = load(s), b = load(s + 16), y = load(s + n - 32), z = load(s + n - 16);
    if (n > 64) {
        if (n > 128)
            return copy_long(d, s, n);
        __m128i c = load(s + 32), e = load(s + 48), w = load(s + n - 64), x = load(s + n - 48);
        store(d + 32, c);
        store(d + 48, e);
        store(d + n - 64, w);
        store(d + n - 48, x);
    }
    store(d, a);
    store(d + 16, b);
    store(d + n - 32, y);
    store(d + n - 16, z);
    return to;
}

PX void *memcpy(void *restrict to, const void *restrict from, size_t n) __attribute__((alias("memmove")));

PX void *memset(void *to, int value, size_t n)
{
    char *d = to;
    uint64_t v8 = (unsigned char)value * 0x0101010101010101u;
    if (n <= 16) {
        if (n >= 8) {
            *(u64 *)d = v8;
            *(u64 *)(d + n - 8) = v8;
        } else if (n >= 4) {
            *(u32 *)d = (uint32_t)v8;
            *(u32 *)(d + n - 4) = (uint32_t)v8;
        } else if (n >= 2) {
            *(u16 *)d = (uint16_t)v8;
            *(u16 *)(d + n - 2) = (uint16_t)v8;
        } else if (n) {
            *d = (char)v8;
        }
        return to;
    }
    __m128i v = _mm_set1_epi64x((long long)v8);
    store(d, v);
    store(d + n - 16, v);
    if (n <= 32)
        return to;
    store(d + 16, v);
    store(d + n - 32, v);
    if (n <= 64)
        return to;
    store(d + 32, v);
    store(d + 48, v);
    store(d + n - 64, v);
    store(d + n - 48, v);
    char *p = (char *)(((uintptr_t)d + 64) & ~(uintptr_t)15);
    ptrdiff_t left = d + n - 64 - p;
    while (left > 0) {
        _mm_store_si128((__m128i *)p, v);
        _mm_store_si128((__m128i *)(p + 16), v);
        _mm_store_si128((__m128i *)(p + 32), v);
        _mm_store_si128((__m128i *)(p + 48), v);
        p += 64;
        left -= 64;
    }
    return to;
}

static inline int byte_order(const unsigned char *a, const unsigned char *b) { return (int)*a - (int)*b; }

PX int memcmp(const void *left, const void *right, size_t n)
{
    const unsigned char *a = left, *b = right;
    if (n >= 16) {
        size_t k = 0;
        for (;;) {
            unsigned equal = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(load(a + k), load(b + k)));
            if (equal != 0xffff) {
                k += (unsigned)__builtin_ctz(~equal);
                return byte_order(a + k, b + k);
            }
            k += 16;
            if (k == n)
                return 0;
            if (k > n - 16)
                k = n - 16;
        }
    }
    if (n >= 8) {
        uint64_t x = *(const u64 *)a, y = *(const u64 *)b;
        if (x == y) {
            x = *(const u64 *)(a + n - 8);
            y = *(const u64 *)(b + n - 8);
        }
        if (x == y)
            return 0;
        return __builtin_bswap64(x) < __builtin_bswap64(y) ? -1 : 1;
    }
    if (n >= 4) {
        uint32_t x = *(const u32 *)a, y = *(const u32 *)b;
        if (x == y) {
            x = *(const u32 *)(a + n - 4);
            y = *(const u32 *)(b + n - 4);
        }
        if (x == y)
            return 0;
        return __builtin_bswap32(x) < __builtin_bswap32(y) ? -1 : 1;
    }
    for (size_t k = 0; k < n; k++)
        if (a[k] != b[k])
            return byte_order(a + k, b + k);
    return 0;
}

/* Aligned loads never reach into a page that the string does not touch. */
PX size_t strlen(const char *s)
{
    const __m128i zero = _mm_setzero_si128();
    const char *p = (const char *)((uintptr_t)s & ~(uintptr_t)15);
    unsigned skip = (unsigned)((uintptr_t)s & 15);
    unsigned found = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128((const __m128i *)p), zero)) >> skip;
    if (found)
        return (unsigned)__builtin_ctz(found);
    for (;;) {
        p += 16;
        found = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128((const __m128i *)p), zero));
        if (found)
            return (size_t)(p - s) + (unsigned)__builtin_ctz(found);
    }
}
