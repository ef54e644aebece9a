/* memcpy, memmove, mempcpy, memset, memcmp, bcmp: what the compiler calls on its own.
 *
 * Short lengths are done with overlapping loads that all come before the first store, so that
 * copying forwards, backwards and in place is one and the same up to eight vectors. Distances are
 * taken in 32 bits, since only that much of a pointer counts. */
#include "vector.h"

#define PX __attribute__((weak, visibility("hidden")))

typedef uint16_t u16 __attribute__((aligned(1), may_alias));
typedef uint32_t u32 __attribute__((aligned(1), may_alias));
typedef uint64_t u64 __attribute__((aligned(1), may_alias));

/* From so many bytes on, the first cache does not hold what is worked on; then memory is asked for
 * so many bytes ahead. */
enum { FAR = 48 << 10, AHEAD = 512 };

/* Bytes from which the memory gate was measured to be as fast. */
enum { MOVE_GATE = 16 * V, FILL_GATE = 8 * V + 1, COMPARE_GATE = 16 * V };

static inline void store_four(char *to, vector a, vector b, vector c, vector e)
{
    store_aligned(to, a);
    store_aligned(to + V, b);
    store_aligned(to + 2 * V, c);
    store_aligned(to + 3 * V, e);
}

/* Less than a vector. */
static inline void copy_short(char *d, const char *s, size_t n)
{
    if (V > 16 && n >= 16) {
        __m128i a = _mm_loadu_si128((const void *)s), b = _mm_loadu_si128((const void *)(s + n - 16));
        _mm_storeu_si128((void *)d, a);
        _mm_storeu_si128((void *)(d + n - 16), b);
    } else if (n >= 8) {
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

/* What the first cache cannot hold: lines are asked for early. Up to 64 bytes past `end`, and a
 * line at a time with vectors of 16 bytes, which wait less for each other here than those of 32. */
static inline void copy_far(char *to, const char *from, char *end)
{
    for (; to < end; to += 64, from += 64) {
        __builtin_prefetch(from + AHEAD);
        __m128i a = _mm_loadu_si128((const void *)from), b = _mm_loadu_si128((const void *)(from + 16));
        __m128i c = _mm_loadu_si128((const void *)(from + 32)), e = _mm_loadu_si128((const void *)(from + 48));
        _mm_store_si128((void *)to, a);
        _mm_store_si128((void *)(to + 16), b);
        _mm_store_si128((void *)(to + 32), c);
        _mm_store_si128((void *)(to + 48), e);
    }
}

/* More than eight vectors. */
static __attribute__((noinline)) void *copy_long(char *d, const char *s, size_t n)
{
    if ((uint32_t)((uintptr_t)d - (uintptr_t)s) >= n) {
        /* Forwards, stores aligned to pairs of vectors, which is a line for 32 bytes; the ends
         * overlap the middle. */
        vector head = load(s), neck = load(s + V);
        vector t0 = load(s + n - 4 * V), t1 = load(s + n - 3 * V), t2 = load(s + n - 2 * V), t3 = load(s + n - V);
        size_t skip = 2 * V - ((uintptr_t)d & (2 * V - 1));
        char *to = d + skip;
        const char *from = s + skip;
        char *end = d + n - 4 * V;
        if (n >= FAR) {
            copy_far(to, from, end);
            to = end;
        }
        while (to + 4 * V < end) {
            vector v0 = load(from), v1 = load(from + V), v2 = load(from + 2 * V), v3 = load(from + 3 * V);
            vector v4 = load(from + 4 * V), v5 = load(from + 5 * V), v6 = load(from + 6 * V), v7 = load(from + 7 * V);
            from += 8 * V;
            store_four(to, v0, v1, v2, v3);
            store_four(to + 4 * V, v4, v5, v6, v7);
            to += 8 * V;
        }
        if (to < end) {
            vector v0 = load(from), v1 = load(from + V), v2 = load(from + 2 * V), v3 = load(from + 3 * V);
            store_four(to, v0, v1, v2, v3);
        }
        store(end, t0);
        store(end + V, t1);
        store(end + 2 * V, t2);
        store(end + 3 * V, t3);
        store(d + V, neck);
        store(d, head);
        return d;
    }
    /* Backwards. */
    vector h0 = load(s), h1 = load(s + V), h2 = load(s + 2 * V), h3 = load(s + 3 * V), last = load(s + n - V);
    size_t cut = (uintptr_t)(d + n) & (V - 1);
    char *to = d + n - cut, *end = d + 4 * V;
    const char *from = s + n - cut;
    do {
        vector a = load(from - V), b = load(from - 2 * V), c = load(from - 3 * V), e = load(from - 4 * V);
        from -= 4 * V;
        store_aligned(to - V, a);
        store_aligned(to - 2 * V, b);
        store_aligned(to - 3 * V, c);
        store_aligned(to - 4 * V, e);
        to -= 4 * V;
    } while (to > end);
    store(d + n - V, last);
    store(d, h0);
    store(d + V, h1);
    store(d + 2 * V, h2);
    store(d + 3 * V, h3);
    return d;
}

PX void *memmove(void *to, const void *from, size_t n)
{
    char *d = to;
    const char *s = from;
    if (n < V) {
        copy_short(d, s, n);
        return to;
    }
    if (n <= 2 * V) {
        vector a = load(s), b = load(s + n - V);
        store(d, a);
        store(d + n - V, b);
        return to;
    }
    if (n > 8 * V)
        return GATE && n >= MOVE_GATE ? __postern_memmove(to, from, n) : copy_long(d, s, n);
    vector a = load(s), b = load(s + V), y = load(s + n - 2 * V), z = load(s + n - V);
    if (n > 4 * V) {
        vector c = load(s + 2 * V), e = load(s + 3 * V), w = load(s + n - 4 * V), x = load(s + n - 3 * V);
        store(d + 2 * V, c);
        store(d + 3 * V, e);
        store(d + n - 4 * V, w);
        store(d + n - 3 * V, x);
    }
    store(d, a);
    store(d + V, b);
    store(d + n - 2 * V, y);
    store(d + n - V, z);
    return to;
}

PX void *memcpy(void *restrict to, const void *restrict from, size_t n) __attribute__((alias("memmove")));
PX void *mempcpy(void *restrict to, const void *restrict from, size_t n) { return (char *)memmove(to, from, n) + n; }

/* As copy_far. */
static __attribute__((noinline)) void fill_far(char *to, vector v, char *end)
{
    for (; to < end; to += 4 * V) {
        __builtin_prefetch(to + AHEAD);
        __builtin_prefetch(to + AHEAD + 2 * V);
        store_four(to, v, v, v, v);
    }
}

PX void *memset(void *to, int value, size_t n)
{
    char *d = to;
    vector v = filled(value);
    if (n < V) {
        uint64_t v8 = (unsigned char)value * 0x0101010101010101u;
        if (V > 16 && n >= 16) {
            __m128i half = _mm_set1_epi64x((long long)v8);
            _mm_storeu_si128((void *)d, half);
            _mm_storeu_si128((void *)(d + n - 16), half);
        } else if (n >= 8) {
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
    if (GATE && n >= FILL_GATE)
        return __postern_memset(to, value, n);
    store(d, v);
    store(d + n - V, v);
    if (n <= 2 * V)
        return to;
    store(d + V, v);
    store(d + n - 2 * V, v);
    if (n <= 4 * V)
        return to;
    store(d + 2 * V, v);
    store(d + 3 * V, v);
    char *end = d + n - 4 * V;
    store(end, v);
    store(end + V, v);
    if (n <= 8 * V)
        return to;
    char *p = (char *)(((uintptr_t)d + 4 * V) & ~(uintptr_t)(V - 1));
    if (n >= FAR) {
        fill_far(p, v, end);
        return to;
    }
    for (; p < end; p += 4 * V)
        store_four(p, v, v, v, v);
    return to;
}

/* The order of two vectors, by the first byte in which they differ. */
static inline int order(const unsigned char *a, const unsigned char *b)
{
    uint32_t where = bits(equal(load(a), load(b))) ^ ALL;
    return where ? (int)a[first(where)] - (int)b[first(where)] : 0;
}

static inline int order_of_two(const unsigned char *a, const unsigned char *b, size_t n)
{
    int found = order(a, b);
    return found ? found : order(a + n - V, b + n - V);
}

static inline int order_of_four(const unsigned char *a, const unsigned char *b)
{
    vector e0 = equal(load(a), load(b)), e1 = equal(load(a + V), load(b + V));
    vector e2 = equal(load(a + 2 * V), load(b + 2 * V)), e3 = equal(load(a + 3 * V), load(b + 3 * V));
    if (bits(both(both(e0, e1), both(e2, e3))) == ALL)
        return 0;
    for (;; a += V, b += V) {
        int found = order(a, b);
        if (found)
            return found;
    }
}

/* By the memory gate; but what differs mostly does so soon. */
static __attribute__((noinline)) int compare_long(const unsigned char *a, const unsigned char *b, size_t n)
{
    int found = order_of_two(a, b, 2 * V);
    return found ? found : __postern_memcmp(a + 2 * V, b + 2 * V, n - 2 * V);
}

PX int memcmp(const void *left, const void *right, size_t n)
{
    const unsigned char *a = left, *b = right;
    if (n >= V) {
        int found;
        if (n <= 2 * V)
            return order_of_two(a, b, n);
        if (n <= 4 * V) {
            found = order_of_two(a, b, 2 * V);
            return found ? found : order_of_two(a + n - 2 * V, b + n - 2 * V, 2 * V);
        }
        if (GATE && n >= COMPARE_GATE)
            return compare_long(a, b, n);
        for (size_t k = 0; k < n - 4 * V; k += 4 * V)
            if ((found = order_of_four(a + k, b + k)))
                return found;
        return order_of_four(a + n - 4 * V, b + n - 4 * V);
    }
#ifdef __AVX2__
    if (n >= 16)
        for (size_t k = 0;; k = n - 16) {
            __m128i x = _mm_loadu_si128((const void *)(a + k)), y = _mm_loadu_si128((const void *)(b + k));
            uint32_t where = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(x, y)) ^ 0xffff;
            if (where)
                return (int)a[k + first(where)] - (int)b[k + first(where)];
            if (k == n - 16)
                return 0;
        }
#endif
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
            return (int)a[k] - (int)b[k];
    return 0;
}

PX int bcmp(const void *left, const void *right, size_t n) __attribute__((alias("memcmp")));
