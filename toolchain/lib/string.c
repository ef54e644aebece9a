/* The string functions that programs live by.
 *
 * A string's end is not known before it is found, so vectors are loaded only where they touch no
 * page that the string does not: at multiples of their size, or, where two strings lie differently,
 * away from the end of a page. */
#include "vector.h"

#define PX __attribute__((weak, visibility("hidden")))

/* Bytes from which the memory gate was measured to be as fast. It has no better loops for searches
 * than these with 32-byte vectors. */
enum { PAGE = 4096, FIND_GATE = 384, LENGTH_GATE = 256, SEARCH_GATE = GATE && V == 16 };

void *memcpy(void *restrict, const void *restrict, size_t);

/* Bytes above a multiple of the vectors' size. */
static inline unsigned over(const char *s) { return (unsigned)((uintptr_t)s & (V - 1)); }
static inline int begins_four(const char *s) { return ((uintptr_t)s & (4 * V - 1)) == 0; }
/* Whether `n` bytes at `s` reach into the next page. */
static inline int at_edge(const char *s, unsigned n) { return ((uintptr_t)s & (PAGE - 1)) > PAGE - n; }

PX size_t strlen(const char *s)
{
    const char *p = s - over(s);
    uint32_t found = zeros(load(p)) >> over(s);
    if (found)
        return first(found);
    do {
        p += V;
        if ((found = zeros(load(p))))
            return (size_t)(p - s) + first(found);
    } while (!begins_four(p + V));
    p += V;
    while (!zeros(least(least(load(p), load(p + V)), least(load(p + 2 * V), load(p + 3 * V))))) {
        p += 4 * V;
        if (SEARCH_GATE && (size_t)(p - s) >= LENGTH_GATE)
            return __postern_strlen(s, (size_t)(p - s));
    }
    while (!(found = zeros(load(p))))
        p += V;
    return (size_t)(p - s) + first(found);
}

PX void *memchr(const void *from, int c, size_t n)
{
    const char *s = from, *p = s - over(s);
    if (!n)
        return 0;
    vector wanted = filled(c);
    uint32_t found = bits(equal(load(p), wanted)) >> over(s) << over(s);
    size_t left = n + over(s); /* from p on */
    if (SEARCH_GATE && n >= FIND_GATE && !found)
        return __postern_memchr(p + V, c, n - (V - over(s)));
    if (left < n)
        left = ~(size_t)0;
    for (;;) {
        if (found)
            return first(found) < left ? (char *)p + first(found) : 0;
        if (left <= V)
            return 0;
        left -= V;
        p += V;
        if (begins_four(p))
            while (left >= 4 * V) {
                vector e0 = equal(load(p), wanted), e1 = equal(load(p + V), wanted);
                vector e2 = equal(load(p + 2 * V), wanted), e3 = equal(load(p + 3 * V), wanted);
                if (bits(either(either(e0, e1), either(e2, e3))))
                    break;
                left -= 4 * V;
                p += 4 * V;
                if (!left)
                    return 0;
            }
        found = bits(equal(load(p), wanted));
    }
}

PX void *memrchr(const void *from, int c, size_t n)
{
    const char *s = from;
    if (!n)
        return 0;
    vector wanted = filled(c);
    const char *end = s + n - 1, *p = end - over(end);
    uint32_t found = bits(equal(load(p), wanted)) & (((uint32_t)2 << over(end)) - 1);
    for (;;) {
        if (found)
            return p + last(found) >= s ? (char *)p + last(found) : 0;
        if (p <= s)
            return 0;
        p -= V;
        found = bits(equal(load(p), wanted));
    }
}

PX size_t strnlen(const char *s, size_t most)
{
    const char *end = memchr(s, 0, most);
    return end ? (size_t)(end - s) : most;
}

/* All ones where the string has `c` or ends. */
static inline vector wanted_or_end(vector v, vector wanted) { return either(equal(v, wanted), equal(v, filled(0))); }

PX char *strchrnul(const char *s, int c)
{
    const char *p = s - over(s);
    vector wanted = filled(c);
    uint32_t found = bits(wanted_or_end(load(p), wanted)) >> over(s) << over(s);
    while (!found) {
        p += V;
        found = bits(wanted_or_end(load(p), wanted));
    }
    return (char *)p + first(found);
}

PX char *strchr(const char *s, int c)
{
    char *found = strchrnul(s, c);
    return *found == (char)c ? found : 0;
}

PX char *strrchr(const char *s, int c)
{
    const char *p = s - over(s), *best = 0;
    vector wanted = filled(c);
    uint32_t keep = ALL << over(s);
    for (;; p += V, keep = ALL) {
        vector v = load(p);
        uint32_t end = zeros(v) & keep, found = bits(equal(v, wanted)) & keep;
        if (end) {
            found &= end ^ (end - 1);
            return found ? (char *)p + last(found) : (char *)best;
        }
        if (found)
            best = p + last(found);
    }
}

/* Zero where the strings differ or end. */
static inline vector same(const char *a, const char *b)
{
    vector x = load(a);
    return least(x, equal(x, load(b)));
}

/* Up to `most` bytes, which is far from the largest number. */
static inline int compare(const char *a, const char *b, size_t most)
{
    size_t k = 0;
    while (k < most) {
        uint32_t stop = 0;
        if (at_edge(a + k, 4 * V) | at_edge(b + k, 4 * V)) {
            if (at_edge(a + k, V) | at_edge(b + k, V)) {
                unsigned x = (unsigned char)a[k], y = (unsigned char)b[k];
                if (x != y || !x)
                    return (int)x - (int)y;
                k++;
                continue;
            }
            stop = zeros(same(a + k, b + k));
            k += stop ? 0 : V;
        } else if (!(stop = zeros(same(a + k, b + k)))) {
            k += V;
            vector s1 = same(a + k, b + k), s2 = same(a + k + V, b + k + V), s3 = same(a + k + 2 * V, b + k + 2 * V);
            if (!zeros(least(least(s1, s2), s3))) {
                k += 3 * V;
                continue;
            }
            if (!(stop = zeros(s1))) {
                k += V;
                if (!(stop = zeros(s2))) {
                    k += V;
                    stop = zeros(s3);
                }
            }
        }
        if (stop) {
            k += first(stop);
            return k < most ? (int)(unsigned char)a[k] - (int)(unsigned char)b[k] : 0;
        }
    }
    return 0;
}

enum { ENDLESS = 0x7fffffff };

PX int strcmp(const char *a, const char *b) { return compare(a, b, (size_t)ENDLESS << 1); }
PX int strncmp(const char *a, const char *b, size_t n) { return compare(a, b, n < ENDLESS ? n : (size_t)ENDLESS << 1); }

PX char *stpcpy(char *restrict to, const char *restrict from)
{
    size_t n = strlen(from);
    memcpy(to, from, n + 1);
    return to + n;
}

PX char *strcpy(char *restrict to, const char *restrict from)
{
    memcpy(to, from, strlen(from) + 1);
    return to;
}

PX char *strcat(char *restrict to, const char *restrict from)
{
    strcpy(to + strlen(to), from);
    return to;
}

/* A set of bytes as 256 bits. */
struct set {
    uint64_t word[4];
};

static inline struct set set_of(const char *bytes)
{
    struct set set = {{0}};
    for (; *bytes; bytes++)
        set.word[(unsigned char)*bytes / 64] |= (uint64_t)1 << (unsigned char)*bytes % 64;
    return set;
}

static inline int in(const struct set *set, char c) { return (int)(set->word[(unsigned char)c / 64] >> (unsigned char)c % 64 & 1); }

PX size_t strspn(const char *s, const char *accept)
{
    struct set set = set_of(accept);
    size_t k = 0;
    while (in(&set, s[k]))
        k++;
    return k;
}

PX size_t strcspn(const char *s, const char *reject)
{
    struct set set = set_of(reject);
    set.word[0] |= 1;
    size_t k = 0;
    while (!in(&set, s[k]))
        k++;
    return k;
}

PX char *strpbrk(const char *s, const char *accept)
{
    s += strcspn(s, accept);
    return *s ? (char *)s : 0;
}
