/* Memory and string functions against loops over bytes: short lengths, places in a vector, and ends at the last byte before
 * memory that is not there. The loops are volatile, so that the compiler does not make calls of them. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "mix.h"

typedef volatile unsigned char byte;

#ifdef CONFINED
/* Nothing is mapped behind the heap, and nothing here allocates. */
static char *edge(void) { return (char *)(uintptr_t)*(volatile uint32_t *)0x10014; }
#else
static char *edge(void)
{
    static char page[4096];
    return page + sizeof page;
}
#endif

static unsigned long state;
static unsigned random_below(unsigned n)
{
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(state >> 33) % n;
}

/* Fills [from, from + n) with bytes of which few are zero or 'x'. */
static void scatter(char *from, unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        ((byte *)from)[k] = (unsigned char)(random_below(40) == 0 ? 0 : random_below(20) == 0 ? 'x' : 0x70 + random_below(0x20));
}

static int sign(int x) { return (x > 0) - (x < 0); }

static int order(const char *a, const char *b, size_t n, int strings)
{
    for (size_t k = 0; k < n; k++) {
        unsigned char x = ((byte *)a)[k], y = ((byte *)b)[k];
        if (x != y)
            return x < y ? -1 : 1;
        if (strings && !x)
            return 0;
    }
    return 0;
}

NOINLINE static unsigned long searches(unsigned long s)
{
    char *end = edge();
    for (unsigned n = 1; n < 150; n++) {
        char *p = end - n;
        for (unsigned round = 0; round < 3; round++) {
            scatter(p, n);
            size_t first_x = n, last_x = n, zero = n;
            for (unsigned k = n; k-- > 0;) {
                if (((byte *)p)[k] == 'x') {
                    first_x = k;
                    last_x = last_x == n ? k : last_x;
                }
                if (!((byte *)p)[k])
                    zero = k;
            }
            if (memchr(p, 'x', n) != (first_x == n ? 0 : p + first_x) || memrchr(p, 'x', n) != (last_x == n ? 0 : p + last_x))
                return n;
            if (strnlen(p, n) != zero || memchr(p, 'x' + 256, n) != memchr(p, 'x', n) || memchr(p, 'y', 0))
                return 1000 + n;
            ((byte *)p)[n - 1] = 0;
            zero = zero == n ? n - 1 : zero;
            char *x = 0, *y = 0;
            for (size_t k = 0; k < zero; k++)
                if (((byte *)p)[k] == 'x') {
                    x = x ? x : p + k;
                    y = p + k;
                }
            if (strlen(p) != zero || strchr(p, 'x') != x || strrchr(p, 'x') != y || strchr(p, 0) != p + zero || strrchr(p, 0) != p + zero
                || strchrnul(p, 'x') != (x ? x : p + zero))
                return 2000 + n;
            if (strpbrk(p, "\1x\xff") != x || strcspn(p, "x") != (x ? (size_t)(x - p) : zero))
                return 3000 + n;
            size_t k = 0;
            while (((byte *)p)[k] >= 0x70 && ((byte *)p)[k] <= 0x79)
                k++;
            if (strspn(p, "yxwvutsrqp") != k)
                return 4000 + n;
            s = mix(s, zero + first_x * 256 + last_x * 65536);
        }
    }
    return s;
}

NOINLINE static unsigned long comparisons(unsigned long s)
{
    static char other[4096 + 200];
    char *end = edge();
    for (unsigned n = 0; n < 150; n++)
        for (unsigned shift = 0; shift < 34; shift += 2 + n / 20) {
            char *p = end - n, *q = other + 4096 - 100 + shift;
            scatter(p, n);
            for (unsigned k = 0; k < n; k++)
                ((byte *)q)[k] = ((byte *)p)[k];
            for (unsigned round = 0; round < 3; round++) {
                if (sign(memcmp(p, q, n)) != order(p, q, n, 0) || sign(memcmp(q, p, n)) != order(q, p, n, 0))
                    return 5000 + n;
                if (sign(strncmp(p, q, n)) != order(p, q, n, 1) || sign(strncmp(q, p, n / 2)) != order(q, p, n / 2, 1))
                    return 6000 + n;
                if (n) {
                    unsigned char kept = ((byte *)p)[n - 1];
                    ((byte *)p)[n - 1] = 0;
                    if (sign(strcmp(p, q)) != order(p, q, n, 1) || sign(strcmp(q, p)) != order(q, p, n, 1))
                        return 7000 + n;
                    ((byte *)p)[n - 1] = kept;
                    ((byte *)q)[random_below(n)] ^= 0x80;
                }
                s = mix(s, (unsigned long)sign(memcmp(p, q, n)) & 3);
            }
        }
    return s;
}

/* Copies and fills of n bytes, at the edge and elsewhere. */
NOINLINE static unsigned long copies(unsigned long s)
{
    static char from[900], to[900], wanted[900];
    char *end = edge();
    for (unsigned n = 0; n < 640; n += n < 70 ? 1 : 19)
        for (unsigned shift = 0; shift < 34; shift += n < 40 ? 3 : 11) {
            scatter(from, sizeof from);
            char *p = end - n, *q = from + shift;
            memcpy(p, q, n);
            if (order(p, q, n, 0) || memcmp(p, q, n))
                return 10000 + n;
            memset(to, 1, sizeof to);
            if (memcpy(to + 7 + shift, p, n) != to + 7 + shift || order(to + 7 + shift, q, n, 0))
                return 11000 + n;
            if (((byte *)to)[6 + shift] != 1 || ((byte *)to)[7 + shift + n] != 1)
                return 12000 + n;
            for (int distance = -70; distance <= 70; distance += 10) {
                for (unsigned k = 0; k < sizeof from; k++)
                    ((byte *)to)[k] = ((byte *)wanted)[k] = ((byte *)from)[k];
                for (unsigned k = 0; k < n; k++)
                    ((byte *)wanted)[100 + shift + distance + k] = ((byte *)from)[100 + shift + k];
                memmove(to + 100 + shift + distance, to + 100 + shift, n);
                if (order(to, wanted, sizeof to, 0))
                    return 13000 + n;
            }
            memset(to, 1, sizeof to);
            memset(to + shift + 3, (int)n + 0x1a5, n);
            memset(p, (int)n + 0xa5, n);
            if (order(to + shift + 3, p, n, 0) || ((byte *)to)[shift + 2] != 1 || ((byte *)to)[shift + 3 + n] != 1)
                return 14000 + n;
            for (unsigned k = 0; k < n; k++)
                if (((byte *)p)[k] != (unsigned char)(n + 0xa5))
                    return 15000 + n;
            s = mix(s, n + shift);
        }
    return s;
}

NOINLINE static unsigned long strings(unsigned long s)
{
    static char to[300];
    char *end = edge();
    for (unsigned n = 1; n < 120; n++) {
        char *p = end - n;
        scatter(p, n);
        ((byte *)p)[n - 1] = 0;
        size_t length = strlen(p);
        memset(to, 'a', sizeof to);
        if (strcpy(to + n % 16, p) != to + n % 16 || stpcpy(to + 150, p) != to + 150 + length || strcmp(to + n % 16, p))
            return 20000 + n;
        if (strcmp(to + 150, p) || strcat(to + 150, "tail") != to + 150 || strlen(to + 150) != length + 4 || ((byte *)to)[155 + length] != 'a')
            return 21000 + n;
        s = mix(s, length);
    }
    return s;
}

unsigned long run(unsigned long seed)
{
    state = seed;
    return strings(copies(comparisons(searches(seed))));
}
