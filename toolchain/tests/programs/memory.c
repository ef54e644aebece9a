/* The library: copies of every length and overlap, comparisons, the allocator under load. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "mix.h"

static unsigned char buffer[1200], shadow[1200];

NOINLINE static unsigned long moves(unsigned long s)
{
    for (int n = 0; n < 400; n += n < 140 ? 1 : 13)
        for (int shift = -40; shift <= 40; shift += 5) {
            for (int i = 0; i < 1200; i++)
                shadow[i] = buffer[i] = (unsigned char)(i * 7 + n);
            memmove(buffer + 400 + shift, buffer + 400, n);
            /* The same by bytes, through a copy. */
            unsigned char copy[400];
            for (int i = 0; i < n; i++)
                ((volatile unsigned char *)copy)[i] = shadow[400 + i];
            for (int i = 0; i < n; i++)
                ((volatile unsigned char *)shadow)[400 + shift + i] = copy[i];
            for (int i = 0; i < 1200; i++)
                if (buffer[i] != shadow[i])
                    return (unsigned long)(n * 1000 + shift + 50);
            s = mix(s, memcmp(buffer, shadow, 1200) == 0);
        }
    return s;
}
NOINLINE static unsigned long others(unsigned long s)
{
    for (int n = 0; n < 300; n++) {
        int at = n % 19;
        memset(buffer, 1, sizeof buffer);
        memset(buffer + at, n, n);
        memcpy(shadow, buffer, sizeof buffer);
        for (int i = 0; i < 350; i++)
            s = mix(s, buffer[i]);
        if (n > 1) {
            shadow[at + n / 2] ^= 0x80;
            s = mix(s, (memcmp(buffer + at, shadow + at, n) > 0) + 2 * (memcmp(buffer + at, shadow + at, n / 2) == 0));
        }
        memset(buffer, 'x', sizeof buffer);
        buffer[at + n] = 0;
        s = mix(s, strlen((char *)buffer + at));
    }
    return s;
}
/* Lengths that no first cache holds, which take other ways. */
NOINLINE static unsigned long far(unsigned long s)
{
    enum { LEAST = 48 << 10, ROOM = 512 };
    static unsigned char wide[LEAST + 300 + 2 * ROOM];
    static const int more[] = {-300, -1, 0, 1, 31, 64, 65, 127, 130, 257, 300}, shift[] = {-300, -64, -33, -1, 0, 1, 16, 47, 64, 300};
    for (unsigned k = 0; k < sizeof more / sizeof *more; k++)
        for (unsigned j = 0; j < sizeof shift / sizeof *shift; j++) {
            int n = LEAST + more[k], from = ROOM - 3 * (int)k, to = from + shift[j];
            for (int i = 0; i < (int)sizeof wide; i++)
                wide[i] = (unsigned char)(i * 7 + (i >> 8));
            memmove(wide + to, wide + from, n);
            for (int i = 0; i < (int)sizeof wide; i++) {
                int was = i >= to && i < to + n ? i - shift[j] : i;
                if (wide[i] != (unsigned char)(was * 7 + (was >> 8)))
                    return 9;
            }
            memset(wide + to, n, n);
            for (int i = 0; i < n; i++)
                if (wide[to + i] != (unsigned char)n)
                    return 10;
            s = mix(s, wide[to - 1] + 256u * wide[to + n]);
        }
    return s;
}
NOINLINE static unsigned long allocate(unsigned long s)
{
    static unsigned char *p[200];
    static size_t size[200];
    for (int round = 0; round < 6000; round++) {
        s = mix(s, round);
        int k = (int)(s % 200);
        size_t n = (s >> 20) % ((s >> 40) % 16 ? 200 : 6000);
        if (p[k]) {
            for (size_t i = 0; i < size[k]; i++)
                if (p[k][i] != (unsigned char)(k + i))
                    return 1;
        }
        if ((s >> 50) % 4 == 0 && p[k]) {
            p[k] = realloc(p[k], n + 1);
            for (size_t i = 0; i < size[k] && i < n + 1; i++)
                if (p[k][i] != (unsigned char)(k + i))
                    return 2;
        } else if ((s >> 50) % 4 == 1) {
            free(p[k]);
            p[k] = calloc(n + 1, 1);
            for (size_t i = 0; i < n + 1; i++)
                if (p[k][i])
                    return 3;
        } else if ((s >> 50) % 16 == 2) {
            free(p[k]);
            p[k] = aligned_alloc(256, n + 1);
            if ((size_t)p[k] % 256)
                return 5;
        } else {
            free(p[k]);
            p[k] = malloc(n + 1);
        }
        if (!p[k] || (size_t)p[k] % 16)
            return 4;
        size[k] = n + 1;
        for (size_t i = 0; i < size[k]; i++)
            p[k][i] = (unsigned char)(k + i);
    }
    for (int k = 0; k < 200; k++) {
        free(p[k]);
        p[k] = 0;
    }
    return mix(s, malloc((size_t)(s | 1) << 40) == 0);
}

unsigned long run(unsigned long seed) { return allocate(others(far(moves(seed)))); }
